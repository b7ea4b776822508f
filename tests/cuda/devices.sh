# devices.sh - which device a run is on, and why: devices that are not there, not able, not free, or too small.
# When: slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"
export FAKE_CUDA_DEVICE
all=$VWN_CUDA_LIBRARIES

# refused SENTENCE: what was asked for is refused, and `auto` says the same and takes the CPU, as `vwn doctor` does.
refused() {
    expect 5 "$VWN" train small.vwn --device "${2:-cuda}" --overwrite
    has err "$1"
    has err '`--device cpu` runs on the processor'
    [ "$(wc -l < err)" -eq 1 ] || fail "$1: not one sentence"
    [ "${2:-cuda}" = cuda ] || return 0
    expect 0 "$VWN" train small.vwn --until '1 steps' --overwrite
    has err 'Device the CPU: '
    has err "$1"
    has err '(cpu)'
    expect 0 "$VWN" doctor
    has out 'training runs on: the CPU, because '
    has out "$1"
}
FAKE_CUDA_DEVICE='devices=2'
refused 'there is no cuda:9: the GPUs here are cuda:0 to cuda:1' cuda:9
expect 0 "$VWN" train small.vwn --device cuda:1 --until '1 steps' --overwrite
has err 'Device cuda:1, Fake GPU'
# each of several processes has a GPU of its own, by what its launcher says; with one GPU they share it. The weights are those of one
expect 0 "$VWN" train small.vwn --device cuda --until '2 steps' --run one --set train.lanes=4
last_of() { echo "runs/$1/ckpt/step_00000002.safetensors"; }
expect 0 env FAKE_CUDA_LOG=log "$VWN" launch -n 2 train small.vwn --device cuda --until '2 steps' --run two --set train.lanes=4
cmp "$(last_of one)" "$(last_of two)" || fail "two GPUs have other weights than one"
expect 5 "$VWN" launch -n 4 train small.vwn --device cuda --until '2 steps' --run four --set train.lanes=4
has err 'there is no GPU for process '
has err ' of this machine, which has 2: start no more than one for each'
FAKE_CUDA_DEVICE=
expect 0 "$VWN" launch -n 4 train small.vwn --device cuda --until '2 steps' --run four --overwrite --set train.lanes=4
cmp "$(last_of one)" "$(last_of four)" || fail "four processes of one GPU have other weights than one"
refused 'there is no cuda:1: the only GPU here is cuda:0' cuda:1
FAKE_CUDA_DEVICE='devices=0'
refused 'the CUDA driver finds no GPU'
FAKE_CUDA_DEVICE='capability=75'
refused 'cuda:0 (Fake GPU) is of compute capability 7.5, and the kernels are for 8.0 and later'
FAKE_CUDA_DEVICE='capability=210'
refused 'makes no code for cuda:0 (Fake GPU, compute capability 21.0): install a newer CUDA toolkit' cuda:0
FAKE_CUDA_DEVICE='driver=14000' # the toolkit is older, which is no harm
expect 0 "$VWN" train small.vwn --device cuda --until '1 steps' --overwrite
has err 'Device cuda:0, Fake GPU'
FAKE_CUDA_DEVICE='driver=11080'
refused "the GPU's driver is for CUDA 11.8, and 12.0 or later is needed: install a newer driver"
FAKE_CUDA_DEVICE='driver=12040'
refused "is of CUDA 13 and the GPU's driver of CUDA 12.4: install a newer driver"
FAKE_CUDA_DEVICE='compiler=11080'
refused "is of CUDA 11, and that of CUDA 12 or later is needed: install a newer CUDA toolkit"
FAKE_CUDA_DEVICE='compiler=12000 driver=13000' # older than the driver: it makes what this GPU runs
expect 0 "$VWN" train small.vwn --device cuda --until '1 steps' --overwrite
has err 'Device cuda:0, Fake GPU'
FAKE_CUDA_DEVICE='compiler=12000 driver=13000 capability=120'
refused 'the CUDA compiler 12.0'
FAKE_CUDA_DEVICE='memory=2000 taken=1950'
refused 'of 2000.0 MiB free: other processes'
FAKE_CUDA_DEVICE=
export VWN_CUDA_LIBRARIES=
refused 'the CUDA driver is not looked for: VWN_CUDA_LIBRARIES is empty'
for missing in libcuda.so.1 libnvrtc.so.13 libcublasLt.so.13; do
    rm -rf some
    mkdir some
    ln -s "$all"/lib* some
    rm some/$missing
    VWN_CUDA_LIBRARIES=$PWD/some
    refused "($missing) is not in $PWD/some"
done
VWN_CUDA_LIBRARIES=$all

# a model that does not fit is refused before anything is taken, with what would fit; `auto` takes the CPU
FAKE_CUDA_DEVICE='memory=800'
expect 5 env FAKE_CUDA_LOG=log "$VWN" train small.vwn --device cuda --dry-run --overwrite --set D=256 --set model.context=256 --set 'train.batch=256 seqs'
has err 'are available on the GPU: weights'
has err '`micro_batch = '
[ "$(sed -n 's/^count cuModuleLoadData //p' log)" = "" ] || fail "kernels were loaded"
awk '$2 == "cuMemAlloc" && $3 > 32 * 1048576' log > taken # more than products and copies have at any time
[ ! -s taken ] || fail "memory was taken: $(cat taken)"
expect 0 "$VWN" train small.vwn --dry-run --overwrite --set D=256 --set model.context=256 --set 'train.batch=256 seqs'
has err 'Device the CPU: training needs'

# so are an evaluation and a sampling, of models that were trained on the CPU
expect 0 "$VWN" train small.vwn --device cpu --run long --until '1 steps' -q --overwrite --set model.context=64
FAKE_CUDA_DEVICE='memory=500'
expect 5 env FAKE_CUDA_LOG=log "$VWN" eval runs/long --device cuda --batch '8192 seqs'
has err 'evaluating 8192 sequences at once needs '
has err ' are available on the GPU; `--batch '
[ "$(sed -n 's/^count cuModuleLoadData //p' log)" = "" ] || fail "kernels were loaded"
fits=$(sed -n "s/.*\`--batch '\(.*\) seqs'\`.*/\1/p" err)
[ "$fits" -ge 2 ] && [ "$fits" -lt 8192 ] || fail "no batch that fits: $fits"
expect 0 "$VWN" eval runs/long --batch '8192 seqs'
has err 'Device the CPU: evaluating '
cp out measured
expect 0 "$VWN" eval runs/long --device cuda --batch '2 seqs'
awk 'FNR == 1 { x[NR > FNR] = $2 } END { d = x[0] / x[1] - 1; exit !(d < 1e-5 && d > -1e-5) }' measured out || fail "two sequences at once measure $(cat out)"
sed 's/heads = 2,/heads = 16,/' small.vwn > large.vwn
expect 0 "$VWN" train large.vwn --device cpu --run large --until '1 steps' -q --overwrite --set D=1792
FAKE_CUDA_DEVICE='memory=505'
expect 5 env FAKE_CUDA_LOG=log "$VWN" sample runs/large --device cuda --tokens 3
has err 'sampling needs '
has err ' are available on the GPU: weights, keys and values of several texts, activations; `--device cpu` takes the processor'
expect 5 env FAKE_CUDA_LOG=log "$VWN" inspect runs/large --device cuda --tokens 64
has err 'looking inside needs '
[ "$(sed -n 's/^count cuModuleLoadData //p' log)" = "" ] || fail "kernels were loaded"
[ "$(sed -n 's/^count cuModuleLoadData //p' log)" = "" ] || fail "kernels were loaded"
rm -r runs/large
FAKE_CUDA_DEVICE=

# quiet, unknown and explicit
expect 0 "$VWN" train small.vwn --device auto --until '1 steps' --overwrite -q
empty err
expect 0 "$VWN" train small.vwn --device cpu --until '1 steps' --overwrite
lacks err Device
for word in cuda: cuda:x cuda:1.5 cuda:99999; do
    expect 2 "$VWN" train small.vwn --device $word --overwrite
    has err "\`--device $word\`: one of"
done
expect 2 "$VWN" train small.vwn --device gpu --overwrite
has err 'a GPU is `--device cuda`'
expect 0 "$VWN" doctor
has out 'training runs on: cuda:0 (Fake GPU)'
finish
