# text.sh - 16 steps (whole: 200) on real English text have pinned losses; another thread count, a stop and a resume on the
# way change nothing, to the bit.
# When: first, slow, optimised. The sanitizers see the same kernels and numbers, ten times slower.
. "$VWN_SOURCE/tests/support/lib.inc"
[ -r "$VWN_DATA/kjv.txt" ] || exit 77
every="train.log.every=1 steps"
last_step=16 stop=7 end=15
if whole; then last_step=200 stop=70 end=130; fi
ln -s "$VWN_DATA/kjv.txt" kjv.txt
cp "$VWN_SOURCE/examples/quickstart.vwn" .

losses() { sed -n 's/.*"event":"step".*"step":\([0-9]*\),.*"loss":\([0-9.e+-]*\).*/\1 \2/p' "$1/events.jsonl"; }

# pinned STEP LOSS: the loss of this step of runs/whole, within 4 %; processors round differently
pinned() {
    losses runs/whole | awk -v step="$1" -v want="$2" '
        $1 == step { got = $2 }
        END { print step, got, want; exit !(got > 0 && got < 1.04 * want && got > 0.96 * want) }' > out || fail "loss of step $1"
}

expect 0 "$VWN" train quickstart.vwn --set "$every" --run whole --until "$last_step steps" --threads 2
pinned 1 5.5833
pinned 16 3.3816
if whole; then
    pinned 25 2.6181
    pinned 50 2.2772
    pinned 100 1.9951
    pinned 150 1.7999
    pinned 200 1.7808
fi

expect 0 "$VWN" train quickstart.vwn --set "$every" --run parts --until "$stop steps" --threads 1
expect 0 "$VWN" train quickstart.vwn --set "$every" --run parts --resume --until "$end steps" --threads 4
losses runs/whole | awk -v end="$end" '$1 <= end' > whole.txt
losses runs/parts > parts.txt
cmp -s whole.txt parts.txt || fail "other losses after a stop and another number of threads"
[ "$(wc -l < parts.txt)" -eq "$end" ] || fail "steps are missing or doubled in events.jsonl"
finish
