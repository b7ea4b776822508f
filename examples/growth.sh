#!/bin/sh
# growth.sh - models that grow in the middle of their training, beside those that do not: `sh examples/growth.sh`
#
# In:  a Debian 12 (root or sudo where something has to be installed). STEPS in the environment: how many (else 1,200).
# Out: five runs in build/growth, on the same text, with the same seed and batches; a table and, in curves.svg, a picture.
#        small    growth_nexus.vwn as it is, without a step (the step comes when training ends)
#        grown    the same, M and A about three times as large from the middle on; what feeds the new units is zero, what reads them random
#        dead     the same with zeros everywhere, as the paper's text says: nothing new ever learns, it stays the small model
#        scratch  the large model from the start, for as many FLOPs of training as `grown` has taken
#        wide     growth_width.vwn: a residual transformer that becomes a Virtual Width Network in the middle
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
# shellcheck source=tests/setup.sh
. tests/setup.sh

example_folder build/growth growth_nexus.vwn growth_width.vwn
steps=${STEPS:-1200}
half=$((steps / 2))
every="train.eval.every=$((steps / 12)) steps"

# run NAME FILE STEPS SETTINGS...
run() {
    name=$1
    file=$2
    length=$3
    shift 3
    say "$name"
    "$VWN" train "$file" --run "runs/$name" --overwrite --device cpu -q --set "$every" --set steps="$length" "$@"
    grep -o '"event":"growth".*"text":"[^"]*"' "runs/$name/events.jsonl" | sed 's/.*"text":"/  growth: /; s/"$//' || true
}

say "Zeros everywhere are refused, unless the file says that what is new need not learn"
if "$VWN" check growth_nexus.vwn --set new_out=zeros; then
    echo "they are not" >&2
    exit 1
fi

say "What the growth steps do"
"$VWN" grow growth_nexus.vwn wider --plan | tail -n 3 || true
"$VWN" grow growth_nexus.vwn wider --plan --set new_out=zeros --set within=none | tail -n 3 || true
"$VWN" grow growth_width.vwn virtual_width --plan | tail -n 3 || true

run small growth_nexus.vwn "$steps" --set grow_at="$steps"
run grown growth_nexus.vwn "$steps" --set grow_at="$half"
run dead growth_nexus.vwn "$steps" --set grow_at="$half" --set new_out=zeros --set within=none
flops=$("$VWN" compare runs/grown --json | sed 's/.*"flops":\([0-9.e+]*\).*/\1/')
each=$("$VWN" cost growth_nexus.vwn --set M=192 --set A=256 --json | sed 's/.*"flop_training":\([0-9.e+]*\).*/\1/')
budget=$(echo "$flops $each" | awk '{ printf "%d", $1 / ($2 * 16 * 64) }')
run scratch growth_nexus.vwn "$budget" --set M=192 --set A=256 --set grow_at="$budget"
run wide growth_width.vwn "$steps" --set grow_at="$half"

say "By FLOPs of training"
"$VWN" compare runs/small runs/grown runs/dead runs/scratch runs/wide --by flops --svg curves.svg

say "What never learns"
losses() { sed -n 's/.*"event":"step","step":\([0-9]*\),.*"loss":\([0-9.e+-]*\),.*/\1 \2/p' "$1"; }
losses runs/small/events.jsonl > small.txt
losses runs/dead/events.jsonl > dead.txt
paste small.txt dead.txt | awk '{ d = $2 - $4; if (d < 0) d = -d; if (d > most) most = d }
    END { printf "The losses of `dead` differ from those of `small` by at most %.2g; sums of float32 over more numbers may be rounded elsewhere.\n", most }'
# in float64, in which the reference evaluator adds up one number after the other, a small one is the same to the last bit
tiny() {
    "$VWN" train growth_nexus.vwn --run "runs/$1" --overwrite --device reference -q --set D=16 --set M=20 --set A=24 --set new_out=zeros --set within=none \
        --set steps=8 --set grow_at="$2" --set 'train.batch=2 seqs' --set 'train.log.every=1 steps' --set 'train.eval.every=8 steps' \
        --set 'train.eval.batches=1' > /dev/null 2>&1
    losses "runs/$1/events.jsonl" > "$1.txt"
}
tiny tiny_small 8
tiny tiny_dead 4
cmp tiny_small.txt tiny_dead.txt
echo "In float64 the losses of a tiny one, which grows after 4 of 8 steps, are those of its small model to the last bit."
echo "The picture is $PWD/curves.svg"
