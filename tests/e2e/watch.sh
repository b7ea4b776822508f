# watch.sh - `vwn watch`: what it says of a run that is not there yet, goes on, was trained, interrupted, killed, diverged
# or has damaged lines, in a terminal of any width, in a pipe and as JSON, against the events themselves.
. "$VWN_SOURCE/tests/support/lib.inc"

# events of a run whose loss falls along a line from 10 to 1, written by hand: fall END-LINE... > events.jsonl
fall() {
    echo '{"v":1,"event":"start","step":0,"steps":200,"tokens":0,"train_flops_per_token":1000,"text":"made: by hand","seconds":0}'
    awk 'BEGIN { for (i = 1; i <= 100; i++) {
        printf "{\"v\":1,\"event\":\"step\",\"step\":%d,\"steps\":200,\"tokens\":%d,\"loss\":%.4f,\"loss.next\":%.4f,\"loss.mtp\":0.5,\"metric.ppl\":12.5,\"lr\":0.001,\"grad_norm\":1.5,\"tok_s\":20000,\"mem\":1048576,\"eta\":7384,\"seconds\":%d}\n", i, i * 10, 10 - (i - 1) / 11, 9 - (i - 1) / 11, i
        if (i == 50) print "{\"v\":1,\"event\":\"eval\",\"step\":50,\"steps\":200,\"tokens\":500,\"eval_loss\":6.125,\"seconds\":50}" } }'
    [ $# -eq 0 ] || printf '%s\n' "$@"
}
end() { echo "{\"v\":1,\"event\":\"end\",\"step\":100,\"steps\":200,\"tokens\":1000,\"status\":\"$1\",\"loss\":1,\"eval_loss\":6.125,\"seconds\":100}"; }
mkdir -p runs/on/ckpt runs/dead/ckpt runs/bad/ckpt runs/spike/ckpt
: > runs/on/lock
fall > runs/on/events.jsonl
fall > runs/dead/events.jsonl
fall "$(end diverged)" > runs/spike/events.jsonl
fall | sed '31s/.*/{"v":1,"event":"st/; 40s/.*/not JSON at all/' > runs/bad/events.jsonl
printf '{"v":1,"event":"ste' >> runs/bad/events.jsonl

expect 2 "$VWN" watch runs/none --once
has err '`runs/none` is no run directory'
expect 2 "$VWN" watch

# nobody holds the lock and no end was written
expect 0 "$VWN" watch runs/dead --once
has out 'ended without a word'
has out 'step 100/200  loss 1.0000  eval 6.1250 (step 50)  20k tok/s'
has out 'next 0'
has out 'mtp 0.5  ppl 12.5'
lacks out 'eta'
expect 5 "$VWN" watch runs/dead
expect 4 "$VWN" watch runs/spike
has out 'diverged'
expect 0 "$VWN" watch runs/spike --once --json
json out
has out '"state":"diverged","step":100,"steps":200,"tokens":1000,"flops":1000000,"seconds":100,"loss":1,"eval_loss":6.125,"eval_step":50,'
expect 0 "$VWN" watch runs/bad --once --json
has err 'runs/bad/events.jsonl:31: 2 damaged lines are passed over'
has out '"loss":1,'

# the picture: one mark or more in each column, from the upper left to the lower right, through the middle in the middle
expect 0 env LC_ALL=C "$VWN" watch runs/dead --once
grep '|' out | sed 's/^.......|//' > rows
awk '{ for (i = 1; i <= length($0); i++) if (substr($0, i, 1) == "*") { if (!(i in top)) top[i] = NR; low[i] = NR; if (i > n) n = i } }
    END { for (i = 5; i <= n; i++) if (!(i in top) || (i > 5 && top[i] < top[i - 1])) exit 1; exit n < 60 }' rows || fail "no line falls: $(cat out)"
half=$(grep -n '' rows | awk -F: 'index($2, "o") { print $1 }')
awk -v at="$half" 'NR == at { c = index($0, "o"); d = c / 71 - 50 / 100; exit d > 0.03 || d < -0.03 }' rows || fail "the evaluation of step 50 of 100 is not in the middle"

# a process holds the lock, as one that trains does
flock -F runs/on/lock sleep 60 &
holder=$!
sleep 0.2
touch -d '5 minutes ago' runs/on/events.jsonl
expect 0 "$VWN" watch runs/on --once
has out 'running, silent for 5 min'
touch runs/on/events.jsonl
if script -qec true typed > out 2> err < /dev/null; then
    for columns in 20 40 80 200; do
        for locale in C C.UTF-8; do
            expect 0 env LC_ALL=$locale TERM=xterm script -qec "stty cols $columns rows 24; $VWN watch runs/on --once" typed
            tr -d '\r' < typed | grep -v '^Script' > shown
            has shown 'loss 1.0000'
            has shown 'eval 6.1250'
            grep -qE 'eta 2:0[23]:[0-9][0-9]' shown || fail "$columns columns: no time left"
            longest=$(LC_ALL=C.UTF-8 awk '{ if (length($0) > n) n = length($0) } END { print n }' shown)
            [ "$longest" -lt "$columns" ] || { [ "$locale" = C.UTF-8 ] && [ "$(LC_ALL=C.UTF-8 wc -L < shown)" -lt "$columns" ]; } ||
                fail "$columns columns, $locale: a line of $longest"
            [ "$(grep -c . shown)" -lt 24 ] || fail "$columns columns: $(grep -c . shown) lines"
        done
    done
    # it follows; Ctrl-C gives the terminal back, and the run goes on
    expect 130 env TERM=xterm script -qec "$VWN watch runs/on & sleep 1.5; kill -INT \$!; wait \$!" typed
    [ "$(grep -c "$(printf '\033\\[?1049h')" typed)" -eq 1 ] || fail "no screen of its own"
    [ "$(grep -c "$(printf '\033\\[?1049l')" typed)" -eq 1 ] || fail "the terminal is not given back"
    kill -0 $holder || fail "the run was stopped"
fi
kill $holder
wait $holder 2> /dev/null

# a run that comes later: waited for, followed, ended with it
expect 0 "$VWN" new nano
"$VWN" watch runs/late > late 2> said &
watcher=$!
"$VWN" watch runs/late --json > late.json 2>> said &
second=$!
sleep 0.3
expect 0 "$VWN" train nano/model.vwn --run late --set D=48 --set L=1 --until '40 steps' -q
wait $watcher || fail "watch: status $?"
wait $second || fail "watch --json: status $?"
has said 'Waiting there is no run runs/late yet'
grep -q '^runs/late:  stopped  step 40/400  loss' late || fail "the end is not shown: $(cat late)"
cp late.json out
json out
grep -q '"state":"stopped","step":40,' late.json || fail "the end is no object"
grep -qF "$(sed -n 's/.*"event":"end".*"loss":\([0-9.]*\).*/"loss":\1,/p' runs/late/events.jsonl)" late.json || fail "another loss than the run's own"
finish
