# points.sh - schedules of widths one after the other on a workbench: a device loads all kernels before it launches the first,
# and each point learns the bits that it learns alone.
. "$VWN_SOURCE/tests/cuda/small.inc"
kept=2 alone=1
if whole; then kept=3 alone=2; fi
points="${VWN%/vwn}/tests/test_train_points"

expect 0 env FAKE_CUDA_LOG=kept.log "$points" $kept cuda kept
lacks err mistake
loads=$(grep -c -E '^[0-9]+ cuModuleLoadData ' kept.log)
[ "$loads" -gt 0 ] || fail "nothing was loaded"
last=$(grep -n -E '^[0-9]+ cuModuleLoadData ' kept.log | tail -n 1 | cut -d: -f1)
first=$(grep -n -E '^[0-9]+ (cuLaunchKernel|cuGraphLaunch) ' kept.log | head -n 1 | cut -d: -f1)
[ "$last" -lt "$first" ] || fail "a module was loaded in line $last of kept.log, behind the first launch in line $first"
grep '^leaked' kept.log | grep -v ' 0$' && fail "something was not given back"

expect 0 "$points" $alone cuda
lacks err mistake
finish
