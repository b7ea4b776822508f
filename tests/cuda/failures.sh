# failures.sh - every call that a run makes of the driver, of the compiler and of the products fails once: one sentence, exit
# status 5, nothing left on the device, and a run directory that goes on to the same weights.
# When: first, slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"
export VWN_CACHE= # compiled and chosen anew each time; the fake compiler has a cache of its own
expect 0 "$VWN" train small.vwn --device cuda --until '1 steps' -q --run warm
expect 0 env FAKE_CUDA_LOG=log "$VWN" train small.vwn --device cuda --until '2 steps' -q --run first
sed -n 's/^count //p' log > calls
cp log whole.log
[ "$(wc -l < calls)" -gt 40 ] || fail "few kinds of calls: $(wc -l < calls)"

# The device that could not be given back is what is left; a compiled text that is not forgotten harms nobody.
allowed='cuDevicePrimaryCtxRelease nvrtcDestroyProgram'
tried=0 whole=0

# Which calls fail: of each kind the first in every phase of a run (opening the device, loading kernels and weights,
# recording, launching what was recorded, closing), for a phase does with a failure what it does with all; and the last one.
# With ALL_CALLS=1 all.
if [ "${ALL_CALLS:-0}" = 1 ]; then
    while read -r name n; do seq -f "$name:%.0f" "$n"; done < calls
else
    awk '$1 !~ /^[0-9]+$/ { next }
        { n[$2]++ }
        phase < 1 && $2 == "cuModuleLoadData" { phase = 1 }
        phase < 2 && $2 == "cuStreamBeginCapture" { phase = 2 }
        phase < 3 && $2 == "cuGraphLaunch" { phase = 3 }
        phase < 4 && $2 == "cuGraphExecDestroy" { phase = 4 }
        !(($2, phase) in met) { met[$2, phase]; print $2 ":" n[$2] }
        END { for (name in n) print name ":" n[name]; exit phase != 4 }' log || fail "a phase is missing"
fi | sort -u > places
while read -r place; do
    case " $allowed " in *" ${place%:*} "*) continue ;; esac
    case $place in nvrtcGetProgramLog*) continue ;; esac # a message that is not there is not needed
    draw 11 || continue
    rm -rf runs/it
    expect 5 env FAKE_CUDA_FAIL="$place" FAKE_CUDA_LOG=log "$VWN" train small.vwn --device cuda --run it -q \
        --until '2 steps'
    [ "$(wc -l < err)" -eq 1 ] || fail "$place: not one sentence"
    awk '/^leaked/ && $3 > 0' log > leaks
    [ -s leaks ] && fail "$place: $(cat leaks)"
    tried=$((tried + 1))
    resume= # or there was no run yet
    [ -e runs/it/resolved.vwn ] && resume=--resume && whole=$((whole + 1))
    expect 0 "$VWN" train small.vwn --device cuda --run it -q $resume --until '2 steps'
    same_weights first it 02
done < places
[ "$cases" -gt 80 ] && [ "$tried" -gt 6 ] || fail "only $tried of $cases calls failed"
[ "$whole" -gt 3 ] || fail "only $whole of $tried runs went on"

# a run is not overwritten by one that has no memory: the arena's and the tensors' are the last two pieces
for n in $(($(sed -n 's/^cuMemAlloc //p' calls) - 1)) "$(sed -n 's/^cuMemAlloc //p' calls)"; do
    expect 5 env FAKE_CUDA_FAIL="cuMemAlloc:$n" "$VWN" train small.vwn --device cuda --run first --overwrite -q
    has err 'out of memory of cuda:0'
    [ -e runs/first/ckpt/step_00000002.safetensors ] || fail "allocation $n failed, and the run that was there is gone"
done

# an error that comes late is told with the kernels that were queued last, or with the one that it was
expect 5 env FAKE_CUDA_FAIL=cuMemcpyDtoHAsync:11=700 "$VWN" train small.vwn --device cuda --run late -q
grep -q 'queued last: recorded calls of the model (update, run 3), recorded calls of the model (train, run 3); ' err ||
    fail "what was queued last: $(cat err)"
# in the first run, whose calls are made one by one, with their kernels and places
expect 5 env FAKE_CUDA_FAIL=cuMemcpyDtoHAsync:1=700 "$VWN" train small.vwn --device cuda --run late --overwrite -q
grep -q 'queued last: k_[0-9a-f]* of .* at std/transformer.vwn:[0-9]*:[0-9]* (train, run 1), k_[0-9a-f]* of .* (train, run 1); ' err ||
    fail "what was queued last: $(cat err)"
expect 5 env FAKE_CUDA_FAIL=cuMemcpyDtoHAsync:11=700 "$VWN" train small.vwn --device cuda --run late --overwrite -q
has err 'VWN_CUDA_SYNC=1 names the call'
expect 5 env VWN_CUDA_SYNC=1 FAKE_CUDA_FAIL=cuLaunchKernel:40=700 "$VWN" train small.vwn --device cuda --run late --overwrite -q
has err 'failed in k_'
has err ' at '
lacks err 'names the call'
# a product behind a kernel that failed: not the library's number is told, but the driver's, and what was queued
lost=$(grep -n -m 1 ' cublasLtMatmul ' whole.log | cut -d: -f1)
lost=$(head -n "$lost" whole.log | grep -c '^[0-9]* cuLaunchKernel ')
expect 5 env "FAKE_CUDA_FAIL=cuLaunchKernel:$lost>700" "$VWN" train small.vwn --device cuda --run late --overwrite -q
has err 'cuda:0 failed in a product of '
has err '(error 700); queued last: k_'
lacks err 'cuBLASLt says'
# what fails in a kernel is lost for the process: no further point of a sweep begins, on a GPU or, unasked, elsewhere
expect 5 env "FAKE_CUDA_FAIL=cuLaunchKernel:$lost>700" "$VWN" sweep small.vwn --device auto --vary train.seed=1,2,3 --until '2 steps' --csv
[ "$(grep -c ',failed,' out)" -eq 3 ] || fail "what becomes of the points: $(cat out)"
[ "$(grep -c 'a GPU failed before in this process, which gets none again' err)" -eq 1 ] || fail "no reason, or more than one: $(cat err)"
has err 'seed-3: failed, as seed-2'
lacks err 'the CPU'
# the checkpoint before it is whole
sed 's/eval { every/checkpoint { every = 5 steps }\n  &/' small.vwn > kept.vwn
expect 5 env FAKE_CUDA_FAIL=cuGraphLaunch:14=719 "$VWN" train kept.vwn --device cuda --run kept
has err '`--resume` goes on from step 5'
expect 0 "$VWN" train kept.vwn --device cuda --run kept --resume -q
finish
