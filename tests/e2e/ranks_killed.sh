# ranks_killed.sh - processes of a run are killed and stopped at random, hundreds of times: nobody waits for ever, no checkpoint is torn,
# and the weights are those of a run that nobody has disturbed.
#
# Each disturbance comes at a random moment of a start, to a random process; the run then goes on from its last checkpoint, with another
# number of processes. VWN_KILLS says how many disturbances there are.
# When: slow, whole, at most 7200 s. It kills and waits 500 times; e2e.ranks does each once.
. "$VWN_SOURCE/tests/support/lib.inc"
squares > text.txt
export TMPDIR="/tmp/vwn-kill-$$" VWN_TIMEOUT=2
mkdir "$TMPDIR"
most=60 # seconds that a disturbed start may take: the timeout, the grace of the launcher, and a busy machine
kills=${VWN_KILLS:-500}
seed=${VWN_KILLS_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
echo "VWN_KILLS_SEED=$seed"
small_model '' '  embed tokens { vocab = 256, width = D }
  attention { heads = 2 }
  head lm { norm = rms_norm(eps = 1e-6) }' > model.vwn
small_train 'lanes = 4
length = 30 steps
clip = 1.0
average = ema(decay = 0.9)
optimizer adamw { lr = linear(peak = 0.01, floor = 0), betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }
checkpoint { every = 1 steps, keep = 3 }' >> model.vwn
children() { sed -n "s/^\([0-9]*\) ([a-z0-9 ]*) . $1 .*/\1/p" /proc/[0-9]*/stat 2> /dev/null | sort -n; }
weights() { echo "runs/$1/ckpt/step_00000030.safetensors"; }

expect 0 "$VWN" train model.vwn --device reference --run calm
# a line for each disturbance: processes, hundredths of a second before it, whom, signal
awk -v seed="$seed" -v n="$kills" 'BEGIN {
    srand(seed)
    for (i = 0; i < n; i++) {
        ranks = 2 ^ (1 + int(2 * rand()))
        printf "%d %.2f %d %s\n", ranks, rand() * 1.5, 1 + int(ranks * rand()), rand() < 0.5 ? "KILL" : "STOP"
    }
}' > plan
done_runs=0
hit=0
run=1
while read -r ranks after whom signal; do
    resume=
    [ -e "runs/w$run/events.jsonl" ] && resume=--resume
    # shellcheck disable=SC2086
    timeout -s KILL $most "$VWN" launch -n "$ranks" train model.vwn $resume --device reference --run "w$run" > out 2> err < /dev/null &
    guard=$!
    sleep "$after"
    launcher=$(children $guard | head -n 1)
    victim=
    [ -z "$launcher" ] || victim=$(children "$launcher" | sed -n "${whom}p")
    [ -z "$victim" ] || { kill -s "$signal" "$victim" 2> /dev/null && hit=$((hit + 1)); }
    wait $guard
    status=$?
    last="run $run, $ranks processes, $signal of number $whom after $after s"
    case $status in
    0 | 5) ;;
    *) fail "exit status $status" ;;
    esac
    lacks err 'damaged'
    lacks err 'is missing'
    if [ -e "$(weights w$run)" ] && [ $status -eq 0 ]; then
        cmp "$(weights calm)" "$(weights w$run)" || fail "run $run has other weights"
        rm -rf "runs/w$run"
        run=$((run + 1))
        done_runs=$((done_runs + 1))
    fi
done < plan
# what is under way is finished, and every checkpoint that was left can be read
if [ -d "runs/w$run" ]; then
    for file in runs/w$run/ckpt/*.safetensors; do
        [ -e "$file" ] && expect 0 "$VWN" inspect "$file"
    done
    expect 0 "$VWN" launch -n 2 train model.vwn --resume --device reference --run "w$run"
    cmp "$(weights calm)" "$(weights w$run)" || fail "run $run has other weights"
fi
[ "$hit" -ge $((kills / 3)) ] || fail "only $hit of $kills disturbances have met a process"
echo "$hit of $kills disturbances have met a process; $done_runs runs went to their end meanwhile"
rmdir "$TMPDIR" 2> /dev/null || rm -rf "$TMPDIR"
finish
