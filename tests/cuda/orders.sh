# orders.sh - whatever order a device chooses, and whether it is waited for or not, a run has the same bits.
# When: slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"
train cuda first
for order in shuffled:1 eager; do
    export FAKE_CUDA_ORDER=$order FAKE_CUDA_BLOCKS=shuffled
    train cuda again
    same_weights first again 20
done
unset FAKE_CUDA_BLOCKS
# the device is waited for after every call; another list of algorithms, which the kept choices do not follow
export FAKE_CUDA_ORDER=late
VWN_CUDA_SYNC=1 train cuda again
same_weights first again 20
FAKE_CUDA_HEURISTIC=1 train cuda again
same_weights first again 20
unset FAKE_CUDA_HEURISTIC FAKE_CUDA_ORDER
# each GPU has its own choices
export FAKE_CUDA_DEVICE VWN_CACHE="$PWD/own"
for FAKE_CUDA_DEVICE in sms=1 sms=2; do train cuda again --until '1 steps'; done
[ "$(find own -name 'products-*.txt' -size +0 | wc -l)" -eq 2 ] || fail "choices of two GPUs: $(find own -name 'products-*')"
finish
