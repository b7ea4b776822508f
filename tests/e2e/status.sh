# status.sh - the progress line of `vwn train` at a terminal: loss, tokens a second and the time left stay at every
# width, also after the terminal was resized, nothing is cut, an evaluation is shown while it is new, the file's own
# metrics and losses where there is room. Into a pipe one line for each step that is logged; with --json none.
# When: quick, released.
. "$VWN_SOURCE/tests/support/lib.inc"
script -qec true typed > out 2> err < /dev/null || exit 77

expect 0 "$VWN" new nano
sed -i 's/every = [0-9]* steps, batches = [0-9]*/every = 4 steps, batches = 1/; s/log *{[^}]*}/log { every = 1 steps }/; s/32 seqs/4 seqs/' nano/model.vwn
sed -i '/^import "std\/connections"/a block probe()(x: [.., D]) -> [.., D] {\n  metric.size = mean(x * x)\n  return x\n}' nano/model.vwn
sed -i 's/^  head lm/  probe { }\n  head lm/' nano/model.vwn
train="$VWN train nano/model.vwn --until '8 steps' --overwrite --run status --set D=48 --set L=1"

# lines COLUMNS: what the terminal was shown, a line for each time the progress line was drawn, without escapes.
lines() {
    expect 0 env TERM=xterm script -qec "stty cols $1; $train" typed
    tr '\r' '\n' < typed | sed 's/\x1b\[[0-9;]*[mK]//g' | grep -E '/s( |$)' > drawn
    filled drawn
    longest=$(awk '{ if (length($0) > n) n = length($0) } END { print n }' drawn)
    [ "$longest" -lt "$1" ] || fail "$1 columns: a line of $longest"
    if grep -qvE '[0-9]\.[0-9]{4}.*/s.* [-0-9]' drawn; then fail "$1 columns: $(cat drawn)"; fi
}

for columns in 20 28 40 60 80 200; do
    lines "$columns"
    # 8 steps at once are drawn at least first and last; the evaluation of step 4 is new at step 8, nothing is before it
    sed -n '1p' drawn > first
    sed -n '$p' drawn > last
    lacks first 'eval '
    [ "$columns" -lt 60 ] || has last 'eval '
    if [ "$columns" -ge 60 ]; then
        if grep -qvE 'loss [0-9.]+ .*tok/s  eta ' drawn; then fail "$columns columns: $(cat drawn)"; fi
    fi
done
has drawn 'size '
has drawn 'gnorm '
lacks drawn ' next '

# a second head has a loss of its own, which is shown beside the sum
sed 's/^  head lm.*/&\n\n  head mtp {\n    predict = 2\n    weight = 0.3\n    norm = rms_norm(eps = 1e-6)\n    mix = linear()\n    tie = lm\n    layer {\n      ffn { hidden = 32, activation = gelu }\n    }\n  }/' nano/model.vwn > nano/two.vwn
expect 0 "$VWN" train nano/two.vwn --until '4 steps' --overwrite --run two --set D=48 --set L=1
grep -qE 'loss [0-9.]+ .*next [0-9.]+  mtp [0-9.]+' err || fail "no further losses: $(cat err)"

# a terminal that becomes narrow while it trains: what is drawn from then on fits
cat > resize.sh <<EOF
stty cols 100
$VWN train nano/model.vwn --run narrow --set D=48 --set L=1 --set 'train.length=100000000 steps' &
until [ "\$(grep -c '"step"' runs/narrow/events.jsonl 2> /dev/null)" -ge 40 ]; do sleep 0.05; done
stty cols 20
printf '\rRESIZED /s \r'
n=\$(wc -l < runs/narrow/events.jsonl)
until [ "\$(wc -l < runs/narrow/events.jsonl)" -ge \$((n + 200)) ]; do sleep 0.05; done
sleep 0.3
kill -TERM \$!
wait \$!
EOF
expect 130 env TERM=xterm script -qec 'sh resize.sh' typed
tr '\r' '\n' < typed | sed 's/\x1b\[[0-9;]*[mK]//g' | grep -E '/s( |$)' > drawn
sed '/RESIZED/,$d' drawn | awk 'length($0) > 60 { wide = 1 } END { exit !wide }' || fail "100 columns are not used: $(cat drawn)"
# the line that was under way may still be wide
sed '1,/RESIZED/d' drawn | tail -n +2 > after
filled after
awk 'length($0) >= 20 || !/^[0-9.e+]+ [0-9.]+[kM]?\/s [0-9]+[dh]/ { exit 1 }' after || fail "20 columns: $(cat after)"

# no terminal: a line for each step that is logged, nothing is rewritten; with --json the events and nothing else
expect 0 "$VWN" train nano/model.vwn --until '8 steps' --overwrite --run status --set D=48 --set L=1 --set 'train.log.every=2 steps'
[ "$(grep -c 'tok/s  eta' err)" -eq 4 ] || fail "every second of 8 steps is 4 lines"
[ "$(grep -c 'eval ' err)" -eq 1 ] || fail "the evaluation of step 4 is shown once, at step 6"
if grep -q "$(printf '[\r\033]')" err; then fail "the cursor moves"; fi
expect 0 "$VWN" train nano/model.vwn --until '8 steps' --overwrite --run status --set D=48 --set L=1 --json
empty err
json out
[ "$(grep -c '"event":"step"' out)" -eq 8 ] || fail "8 steps are 8 events"
grep -v '"event":"device"' out | cmp -s - runs/status/events.jsonl || fail "stdout is not events.jsonl"
finish
