# crash.sh - a crash ends with 70, one sentence and a report that says what was run.
# When: slow. The sanitizers report crashes themselves, stand in for malloc and need address space without end.
. "$VWN_SOURCE/tests/support/lib.inc"
[ "$VWN_BUILD_TYPE" != Sanitize ] || exit 77 # the sanitizers report crashes themselves
export TMPDIR="$PWD/reports"
mkdir reports
expect 0 "$VWN" new nano
sed -i "s/32 seqs/4 seqs/; s/log *{[^}]*}/log { every = 1 steps }/" nano/model.vwn

# reported SIGNAL: the report of the last command says so
reported() {
    path=$(sed -n 's/^a report was saved in //p' err)
    [ -f "$path" ] || { fail "$last: no report"; return; }
    has err "error: this is a bug in vwn: it crashed with $1 ("
    [ "$(grep -c '^error' err)" -eq 1 ] || fail "$last: not one sentence"
    for line in "$("$VWN" --version)" 'verb: train' 'operand: nano/model.vwn' 'flag: --run crashed' \
        "it crashed with $1" 'instruction: 0x'; do
        has "$path" "$line"
    done
    grep -q 'r-xp .*vwn' "$path" || fail "$last: the report does not say where the program lies"
    [ "$(stat -c %a "$path")" = 600 ] || fail "$last: others may read the report"
    rm -f "$path"
}

for signal in SEGV BUS FPE ILL ABRT; do
    last="a run that gets SIG$signal"
    rm -f out
    "$VWN" train nano/model.vwn --run crashed --overwrite --json > out 2> err &
    run=$!
    tries=0
    while ! grep -qs '"event":"step"' out && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -$signal $run
    wait $run
    status=$?
    [ $status -eq 70 ] || fail "status $status after SIG$signal"
    reported SIG$signal
done
[ -z "$(ls reports)" ] || fail "left behind: $(ls reports)"

# no thread that helps keeps the signals of a crash from the handler
last="threads that help"
rm -f out
"$VWN" train nano/model.vwn --run crashed --overwrite --threads 2 --json > out 2> err &
run=$!
tries=0
while ! grep -qs '"event":"step"' out && [ $tries -lt 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
blocked=0
for task in /proc/$run/task/*; do # SIGSEGV is number 11, bit 10
    mask=$(sed -n 's/^SigBlk:.*\(...\)$/\1/p' "$task/status")
    [ $((0x$mask & 0x400)) -eq 0 ] || blocked=$((blocked + 1))
done
[ $blocked -eq 0 ] || fail "$blocked threads block SIGSEGV"
kill -KILL $run
wait $run 2> /dev/null
rm -rf reports/*

# the stack ends: the handler has another one. A stack so small is not ours to mend.
last="a small stack"
(ulimit -s 64; exec "$VWN" check nano/model.vwn) > out 2> err
status=$?
[ $status -eq 5 ] || fail "status $status"
has err 'error: the stack is too small'
[ -z "$(ls reports)" ] || fail "left behind: $(ls reports)"

# no place for a report: the sentence is said all the same
last="no place for reports"
mkfifo pipe
TMPDIR=/proc/nowhere "$VWN" check - 2> err < pipe &
run=$!
exec 3> pipe
tries=0
while [ "$(readlink /proc/$run/exe)" != "$(realpath "$VWN")" ] || ! grep -q 'SigCgt.*[4-7c-f]..$' /proc/$run/status; do
    sleep 0.1
    tries=$((tries + 1))
    [ $tries -lt 100 ] || break
done
kill -SEGV $run
wait $run
status=$?
[ $status -eq 70 ] || fail "status $status"
exec 3>&-
has err 'it crashed with SIGSEGV'
lacks err 'a report was saved'
finish
