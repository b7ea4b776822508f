# points.sh - schedules of widths one after the other on a workbench: a device loads all kernels before it launches the first,
# and each point learns the bits that it learns alone.
# When: first, slow, whole. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"
kept=1 alone=1
if whole; then kept=3 alone=2; fi
points="${VWN%/vwn}/tests/test_train_points"

loaded_before() { # log: modules are loaded, and all of them before anything is launched
    loads=$(grep -c -E '^[0-9]+ cuModuleLoadData ' "$1")
    [ "$loads" -gt 0 ] || fail "nothing was loaded"
    last=$(grep -n -E '^[0-9]+ cuModuleLoadData ' "$1" | tail -n 1 | cut -d: -f1)
    first=$(grep -n -E '^[0-9]+ (cuLaunchKernel|cuGraphLaunch) ' "$1" | head -n 1 | cut -d: -f1)
    [ "$last" -lt "$first" ] || fail "a module was loaded in line $last of $1, behind the first launch in line $first"
}

expect 0 env FAKE_CUDA_LOG=kept.log "$points" $kept cuda kept
lacks err mistake
loaded_before kept.log
grep '^leaked' kept.log | grep -v ' 0$' && fail "something was not given back"

# the same in one sweep of drawn schedules
squares > kjv.txt
cp "$VWN_SOURCE/examples/37_sweep_widths.vwn" widths.vwn
expect 0 env FAKE_CUDA_LOG=sweep.log "$VWN" sweep widths.vwn --device cuda --vary L=2,3,4 --random 1 --set 'train.batch=1 seqs' --until '1 steps' -q --csv
lacks err mistake
[ "$(grep -c ',done,' out)" -eq 3 ] || fail "three points: $(cat out)"
loaded_before sweep.log
grep '^leaked' sweep.log | grep -v ' 0$' && fail "something was not given back"
[ "$(cat runs/schedules/*/events.jsonl | grep -c '"event":"compile".*: [0-9]* cached, 0 compiled')" -eq 3 ] || fail "a point compiles"

expect 0 "$points" $alone cuda
lacks err mistake
finish
