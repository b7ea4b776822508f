# bench.sh - `vwn bench` on a GPU has the time of every launch from the GPU's clock, which here takes 5 microseconds for each
# piece of work; `vwn doctor --measure` keeps the GPU's rates apart from the CPU's, and `vwn cost` estimates with them.
# When: slow, whole. e2e.bench and the tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"
command -v python3 > /dev/null || { echo "skipped: no python3"; exit 77; }
FAKE_CUDA_DEVICE=sms=1 # yardsticks are as large as the GPU
VWN_CACHE=$PWD/kernels
export FAKE_CUDA_DEVICE VWN_CACHE
number() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" out; }
whole() {
    awk '/^leaked/ && $3 > 0' log > leaks
    [ ! -s leaks ] || fail "$last: $(cat leaks)"
    lacks err mistake
}

expect 0 "$VWN" cost small.vwn --device cuda:0
has out 'time of training on cuda:0, Fake GPU: no estimate; cuda:0, Fake GPU has not been measured: `vwn doctor --measure --device cuda:0`'
has out 'memory of the GPU in training'
expect 0 env FAKE_CUDA_LOG=log "$VWN" doctor --measure --device cuda:0
has out 'rates of: cuda:0, Fake GPU'
has out 'launch: 5.0 us'
whole
[ "$(sed -n 's/^count cublasLtMatmul //p' log)" -gt 20 ] && ! grep 'a product of zeros' log || fail "a yardstick multiplies zeros"
expect 0 "$VWN" cost small.vwn --device cpu
has out 'no estimate; this machine has not been measured with'
FAKE_CUDA_DEVICE=sms=2 expect 0 "$VWN" cost small.vwn --device cuda:0
has out 'has not been measured'
expect 5 "$VWN" cost small.vwn --device cuda:3
has err 'there is no cuda:3'

for set in 'conn=residual()' 'sub=moe(experts = 5, active = 2, hidden = 7, activation = silu, scores = softmax, normalize = true, balance = 0.01)'; do
    expect 0 env FAKE_CUDA_LOG=log "$VWN" bench small.vwn --device cuda:0 --kernels --steps 2 --json -q --set "$set"
    json out
    whole
    grep -q ' cublasLtMatmul 512 x 512 x 512' log && ! grep 'a product of zeros: 512 x 512 x 512' log || fail "a yardstick multiplies zeros"
    python3 - out > verdict 2>&1 << 'END' || fail "$set: $(cat verdict)"
import json, sys
b = json.load(open(sys.argv[1]))
k, step, machine = b["kernels"], b["step"], b["machine"]
assert b["backend"] == "cuda" and b["device"] == "cuda:0, Fake GPU" and machine["multiprocessors"] == 1
assert machine["copy_gb_s"] > 0 and machine["fma_gflop_s"] > 0
assert abs(step["host_ms"] + step["waited_ms"] - step["median_ms"]) < 1e-3 and step["host_ms"] > 0
launches = sum(x["launches"] for x in k)
assert launches > 50 and abs(step["launches_ms"] - 0.005 * launches) < 1e-4, (launches, step)
for x in k:
    assert abs(x["best_ms"] - 0.005 * x["launches"]) < 1e-5 * x["launches"], x
    if x["kind"] == "kernel":
        assert x["blocks"] >= 1 and x["blocks_sm"] >= 1 and x["registers"] > 0, x
        assert abs(x["waves"] - x["blocks"] / x["blocks_sm"]) < 1e-4, x
assert {x["kind"] for x in k} == {"kernel", "product"}
END
    estimate=$(sed -n 's/.*"step":{[^}]*"estimate_ms":\([-0-9.e+]*\).*/\1/p' out)
    expect 0 "$VWN" cost small.vwn --device cuda:0 --json --set "$set"
    json out
    awk -v a="$(number time_step)" -v b="${estimate:-0}" 'BEGIN { exit !(b > 0 && 1000 * a / b > 0.999 && 1000 * a / b < 1.001) }' ||
        fail "$set: cost says $(number time_step) s, bench $estimate ms"
done

# in bf16, for people
expect 0 "$VWN" bench small.vwn --device cuda:0 --kernels --steps 1 --set D=64 --set 'sub=ffn(hidden = 64, activation = silu, gated = true)' \
    --set model.context=32 --set 'train.batch=2 seqs' --set 'train.precision=mixed(compute = bf16, master = fp32)'
has out 'product of random 512 x 512'
has out ', in bf16 '
has out 'then waits for the GPU for'
has out ' waves  registers '
[ ! -e runs ] || fail "a run was left behind"

# what fails meanwhile
for call in cuEventRecordWithFlags:1 cuEventRecordWithFlags:40 cuEventElapsedTime:1 cuOccupancyMaxActiveBlocksPerMultiprocessor:3; do
    expect 5 env FAKE_CUDA_FAIL=$call FAKE_CUDA_LOG=log "$VWN" bench small.vwn --device cuda:0 --steps 1 -q
    [ "$(wc -l < err)" -eq 1 ] || fail "$call: not one sentence"
    awk '/^leaked/ && $3 > 0' log > leaks
    [ ! -s leaks ] || fail "$call: $(cat leaks)"
done
finish
