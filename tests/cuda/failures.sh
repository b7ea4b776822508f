# failures.sh - every call that a run makes of the driver, of the compiler and of the products fails once: one sentence, exit
# status 5, nothing left on the device, and a run directory that goes on.
. "$VWN_SOURCE/tests/cuda/small.inc"
export VWN_CACHE= # compiled and chosen anew each time; the fake compiler has a cache of its own
expect 0 "$VWN" train small.vwn --device cuda --until '1 steps' -q --run warm
expect 0 env FAKE_CUDA_LOG=log "$VWN" train small.vwn --device cuda --until '2 steps' -q --run first
sed -n 's/^count //p' log > calls
[ "$(wc -l < calls)" -gt 40 ] || fail "few kinds of calls: $(wc -l < calls)"

# The device that could not be given back is what is left; a compiled text that is not forgotten harms nobody.
allowed='cuDevicePrimaryCtxRelease nvrtcDestroyProgram'
tried=0

# places N: which of N calls fail: those of a run's beginning, of its middle and of its end; with ALL_CALLS=1 all.
places() {
    if [ "${ALL_CALLS:-0}" = 1 ]; then
        seq "$1"
    else
        printf '%s\n' 1 $((($1 + 1) / 2)) "$1" | sort -un
    fi
}
while read -r name n; do
    case " $allowed " in *" $name "*) continue ;; esac
    for i in $(places "$n"); do
        case $name:$i in nvrtcGetProgramLog*) continue ;; esac # a message that is not there is not needed
        rm -rf runs/it
        expect 5 env FAKE_CUDA_FAIL="$name:$i" FAKE_CUDA_LOG=log "$VWN" train small.vwn --device cuda --run it -q \
            --until '2 steps'
        [ "$(wc -l < err)" -eq 1 ] || fail "$name:$i: not one sentence"
        awk '/^leaked/ && $3 > 0' log > leaks
        [ -s leaks ] && fail "$name:$i: $(cat leaks)"
        tried=$((tried + 1))
    done
done < calls
[ "$tried" -gt 60 ] || fail "only $tried calls failed"

# an error that comes late is told with the kernels that were queued last, or with the one that it was
expect 5 env FAKE_CUDA_FAIL=cuMemcpyDtoHAsync:9=700 "$VWN" train small.vwn --device cuda --run late -q
has err 'queued last: recorded calls of the model (update, run '
has err 'VWN_CUDA_SYNC=1 names the call'
expect 5 env VWN_CUDA_SYNC=1 FAKE_CUDA_FAIL=cuLaunchKernel:40=700 "$VWN" train small.vwn --device cuda --run late --overwrite -q
has err 'failed in k_'
has err ' at '
lacks err 'names the call'
# the checkpoint before it is whole
sed 's/eval { every/checkpoint { every = 5 steps }\n  &/' small.vwn > kept.vwn
expect 5 env FAKE_CUDA_FAIL=cuGraphLaunch:14=719 "$VWN" train kept.vwn --device cuda --run kept
has err '`--resume` goes on from step 5'
expect 0 "$VWN" train kept.vwn --device cuda --run kept --resume -q
finish
