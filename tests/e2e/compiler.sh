# compiler.sh - a C compiler that hangs is given up after a limit, or when the run is asked to stop, and it ends
# with vwn, however that ends, with all that it has started.
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
finish
