# compiler.sh - a C compiler that hangs is given up after a limit, or when the run is asked to stop, and it ends
# with vwn, however that ends, with all that it has started.
# When: optimised.
. "$VWN_SOURCE/tests/support/lib.inc"
expect 0 "$VWN" new nano
export XDG_CACHE_HOME="$PWD/cache"
export TMPDIR="$PWD/temporary" # for reports of the crash
mkdir temporary
export HANGING="$PWD/hanging"
cat > hang << 'END'
#!/bin/sh
[ "$1" = --version ] && { echo 'hang 1.0'; exit 0; }
echo $$ >> "$HANGING"
sleep 1000 & echo $! >> "$HANGING"
wait
END
chmod +x hang
cat > hang_at_once << 'END'
#!/bin/sh
exec sleep 1000
END
chmod +x hang_at_once

# gone: everything that the compiler has started ends soon
gone() {
    filled hanging
    for pid in $(cat hanging); do
        tries=0
        while kill -0 $pid 2> /dev/null && ! grep -q '^State:.*Z' /proc/$pid/status && [ $tries -lt 100 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
        [ $tries -lt 100 ] || { fail "$last: process $pid of the compiler goes on"; kill -9 $pid; }
    done
    rm -f hanging
}

export CC="$PWD/hang"
expect 5 env VWN_COMPILE_SECONDS=1 "$VWN" train nano/model.vwn --run hanging
has err 'it took too long and was ended (VWN_COMPILE_SECONDS is its limit)'
[ "$(grep -c '^error' err)" -eq 1 ] || fail 'not one error'
gone
expect 5 env VWN_COMPILE_SECONDS=1 CC="$PWD/hang_at_once" "$VWN" train nano/model.vwn --run hanging
has err 'does not run'
expect 2 env VWN_COMPILE_SECONDS=never "$VWN" train nano/model.vwn --run hanging
has err 'VWN_COMPILE_SECONDS is `never`'

# One that crashes over a kernel, as gcc says it: that alone is made with less optimisation, which is said once, and computes the
# same. If it does so however it is called the run ends.
cat > crash << 'END'
#!/bin/sh
for word; do
    case $word in -O[0-2]) level=$word ;; *.c) file=$word ;; esac
done
[ -z "${file:-}" ] || echo "$level $(grep -c '^KERNEL' "$file")" >> "$CALLS"
if [ -n "${file:-}" ] && case $level in $CRASHES) ;; *) false ;; esac && grep -q '^KERNEL.*'"$OVER" "$file"; then
    echo 'during GIMPLE pass: dom' >&2
    echo 'cc: internal compiler error: Segmentation fault signal terminated program cc1' >&2
    exit 4
fi
exec cc "$@"
END
chmod +x crash
export CALLS="$PWD/calls"
kernel=$("$VWN" ir nano/model.vwn --stage c | sed -n 's/^KERNEL \(k_[0-9a-f]*\).*/\1/p' | sed -n 3p)
expect 0 env CC="$PWD/crash" CRASHES=-O2 OVER="$kernel" "$VWN" train nano/model.vwn --run crashed --until '1 steps'
has err "crashed over 1 kernel ($kernel of "
has err 'and made it with -O1: slower than with -O2'
[ "$(grep -c "crashed over" err)" -eq 1 ] || fail "$last: it is not said once"
[ "$(grep -v '^-O2' calls)" = '-O1 1' ] || fail "$last: not the kernel alone has less optimisation: $(cat calls)"
rm -rf cache
expect 5 env CC="$PWD/crash" CRASHES='-O[012]' OVER="$kernel" "$VWN" train nano/model.vwn --run never
has err "crashes over the kernel $kernel, with -O0, too: cc: internal compiler error: Segmentation fault"
has err 'set CC'
[ "$(grep -c '^error' err)" -eq 1 ] || fail "$last: not one error"

signals='TERM INT KILL SEGV'
[ "${VWN_BUILD_TYPE:-}" != Sanitize ] || signals='TERM INT KILL' # a crash is the sanitizers' there
for verb in 'bench nano/model.vwn' 'train nano/model.vwn --run killed --overwrite'; do
    for signal in $signals; do
        last="vwn $verb, SIG$signal"
        # (a job in the background ignores SIGINT, unless something sets it back)
        env --default-signal=INT,HUP "$VWN" $verb > out 2> err &
        run=$!
        tries=0
        while [ ! -s hanging ] && [ $tries -lt 300 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
        sleep 0.2
        kill -$signal $run
        wait $run
        got=$?
        case "$verb $signal" in
        train*TERM | train*INT) # stopped in order: nothing is left, and the run can be begun again
            [ $got -eq 130 ] || fail "$last: status $got"
            has err 'interrupted while kernels were compiled'
            lacks err 'error:'
            [ -z "$(ls "$TMPDIR")" ] || fail "$last: left $(ls "$TMPDIR")" ;;
        *) [ $got -gt 4 ] || fail "$last: status $got" ;;
        esac
        gone
        rm -rf "$TMPDIR"/vwn-*
    done
done
unset CC
expect 0 "$VWN" train nano/model.vwn --run killed --until '1 steps'
expect 0 "$VWN" train nano/model.vwn --run killed --resume --until '2 steps'
loss() { sed -n 's/.*"event":"step","step":1,.*"loss":\([0-9.]*\).*/\1/p' "runs/$1/events.jsonl"; }
{ loss killed && loss crashed; } | awk '{ x[NR] = $1 } END { d = x[1] - x[2]; exit NR != 2 || d < -1e-4 || d > 1e-4 }' ||
    fail "the kernel with less optimisation computes another loss: $(loss killed) and $(loss crashed)"
finish
