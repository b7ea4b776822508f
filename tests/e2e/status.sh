# status.sh - the progress line of `vwn train` at a terminal: loss, tokens a second and the time left stay at every
# width, nothing is cut, an evaluation is shown once, the file's own metrics where there is room.
. "$VWN_SOURCE/tests/e2e/lib.inc"
script -qec true typed > out 2> err < /dev/null || exit 77

expect 0 "$VWN" new nano
sed -i 's/every = [0-9]* steps, batches = [0-9]*/every = 4 steps, batches = 1/; s/log *{[^}]*}/log { every = 1 steps }/' nano/model.vwn
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

for columns in 20 28 36 60 80 100 200; do
    lines "$columns"
    if [ "$columns" -ge 60 ]; then
        if grep -qvE 'loss [0-9.]+ .*tok/s  eta ' drawn; then fail "$columns columns: $(cat drawn)"; fi
    fi
done
has drawn 'size '
has drawn 'gnorm '
[ "$(grep -c 'eval ' drawn)" -le 2 ] || fail "evaluations are shown again: $(cat drawn)"
grep -q 'eval ' drawn || fail "no evaluation: $(cat drawn)"
finish
