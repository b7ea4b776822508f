#!/bin/sh
# growth.sh - models that grow in the middle of their training, beside those that do not: `sh examples/growth.sh`
#
# In:  a Debian 12 (root or sudo where something has to be installed). STEPS in the environment: how many (else 1,200).
# Out: five runs in build/growth, on the same text, with the same seed and batches; a table and, in curves.svg, a picture.
#        small    growth_nexus.vwn as it is, without a step (the step comes when training ends)
#        grown    the same, M and A twice as large from the middle on; what feeds the new units is zero, what reads them random
#        dead     the same with zeros everywhere, as the paper's text says: nothing new ever learns, it stays the small model
#        scratch  the large model from the start, for as many FLOPs of training as `grown` has taken
#        wide     growth_width.vwn: a residual transformer that becomes a Virtual Width Network in the middle
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
# shellcheck source=tests/setup.sh
. tests/setup.sh

if [ -z "${VWN:-}" ]; then
    install_packages flex bison cmake gcc g++ make libc6-dev libdnnl2 bible-kjv bible-kjv-text
    build_folder build/growth
    make_text
    build_vwn build Release
    VWN="$PWD/build/vwn"
    mkdir -p build/growth
    cp examples/growth_nexus.vwn examples/growth_width.vwn build/data/kjv.txt build/growth/
    cd build/growth
else
    # a program that is built already, in a folder with kjv.txt
    cp "$PWD/examples/growth_nexus.vwn" "$PWD/examples/growth_width.vwn" "$FOLDER"
    cd "$FOLDER"
fi
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

say "What the growth steps do"
"$VWN" grow growth_nexus.vwn wider --plan | tail -n 3 || true
"$VWN" grow growth_nexus.vwn wider --plan --set new_out=zeros | tail -n 3 || true
"$VWN" grow growth_width.vwn virtual_width --plan | tail -n 3 || true

run small growth_nexus.vwn "$steps" --set grow_at="$steps"
run grown growth_nexus.vwn "$steps" --set grow_at="$half"
run dead growth_nexus.vwn "$steps" --set grow_at="$half" --set new_out=zeros
flops=$("$VWN" compare runs/grown --json | sed 's/.*"flops":\([0-9.e+]*\).*/\1/')
each=$("$VWN" cost growth_nexus.vwn --set M=224 --set A=256 --json | sed 's/.*"flop_training":\([0-9.e+]*\).*/\1/')
budget=$(echo "$flops $each" | awk '{ printf "%d", $1 / ($2 * 16 * 64) }')
run scratch growth_nexus.vwn "$budget" --set M=224 --set A=256 --set grow_at="$budget"
run wide growth_width.vwn "$steps" --set grow_at="$half"

say "By FLOPs of training"
"$VWN" compare runs/small runs/grown runs/dead runs/scratch runs/wide --by flops --svg curves.svg

# the losses of the training steps: `dead` is `small`, to the last bit
losses() { sed -n 's/.*"event":"step","step":\([0-9]*\),.*"loss":\([0-9.e+-]*\),.*/\1 \2/p' "$1"; }
losses runs/small/events.jsonl > small.txt
losses runs/dead/events.jsonl > dead.txt
if cmp -s small.txt dead.txt; then
    echo "All $(wc -l < small.txt) losses of \`dead\` are those of \`small\`, to the last bit: its new weights never learned."
else
    echo "The losses of \`dead\` are not those of \`small\`."
fi
echo "The picture is $PWD/curves.svg"
