#!/bin/sh
# pays.sh - which connection pays, when all of them may train for the same time: `sh examples/pays.sh`
#
# In:  a Debian 12 (root or sudo where something has to be installed). In the environment BUDGET: seconds of training of a run
#      (else 90), TURNS: how often a step is timed (else 3), ONLY: names of variants (else all), HELD_OUT: batches of an
#      evaluation (else 32). All of them take about 40 times the budget: an hour.
# Out: runs in build/pays, and there table.txt, curves.svg and search.txt.
#
# Held equal: the backbone (128 wide, 8 layers), text, batches, seeds, schedule, and time. The time of a step is measured
# for all in turns, the best of each turn, the median of the turns; a run has as many steps as fit into the budget. So what
# trains on a machine that is busy for a while still gets the steps of its budget. The learning rate is searched for each in the
# same way: three rates, half the budget, seed 1, the lowest loss on held-out text. Then three seeds at that rate.
# A script that was stopped goes on where it was.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
# shellcheck source=tests/setup.sh
. tests/setup.sh

example_folder build/pays pays.vwn
budget=${BUDGET:-90}
turns=${TURNS:-3}
rates="2e-3 4e-3 8e-3"
seeds="1 2 3"

# name, then settings of pays.vwn without spaces
cat > variants.txt << 'END'
residual conn=residual()
hyper4   conn=hyper(n=4,dynamic=true)
frac4    conn=frac(m=4,dynamic=true)
mhc4     conn=mhc(n=4)
vwn2_3   conn=ghc(m=2,n=3,dynamic=true,reduce=linear(out=D)) E=D*3/2
vwn4_8   conn=ghc(m=4,n=8,dynamic=true,reduce=linear(out=D)) E=D*2
widths   width=geometric(layers=L,base=D,bottleneck=0.4*D,at=0.75*L,match=dense(mlp_matrices=3,expansion=8/3),round=16) conn=carried(head=D,widths=width,final=after_slice)
moe8     experts=8
END
names=${ONLY:-$(awk '{ print $1 }' variants.txt)}

# with_settings NAME COMMAND...: the command, with the settings of a variant behind it
with_settings() {
    variant=$1
    shift
    for setting in $(awk -v name="$variant" '$1 == name { $1 = ""; print }' variants.txt); do
        set -- "$@" --set "$setting"
    done
    "$@"
}

# The number behind a name in each line of JSON, where it stands first.
field() { sed -n "s/\"$1\":\([-0-9.e+]*\)/\n\1\n/; s/^[^\n]*\n\([^\n]*\)\n.*/\1/p"; }

# run NAME STEPS RATE SEED DIRECTORY, unless it is done
run() {
    grep -q '"event":"end".*"status":"ok"' "$5/events.jsonl" 2> /dev/null && return 0
    echo "$5: $2 steps"
    rm -rf "$5"
    with_settings "$1" "$VWN" train pays.vwn --run "$5" --device cpu -q --set held_out="${HELD_OUT:-32}" --set steps="$2" --set rate="$3" --set seed="$4"
}

# The held-out loss at the end of a run.
last_loss() { grep '"event":"eval"' "$1/events.jsonl" | tail -n 1 | field eval_loss; }

say "A step of each, in turns"
turn=1
while [ "$turn" -le "$turns" ]; do
    for name in $names; do
        grep -q "^$turn $name " times.txt 2> /dev/null && continue
        best=$(with_settings "$name" "$VWN" bench pays.vwn --steps 12 --json --device cpu 2> /dev/null | field best_ms)
        echo "$turn $name $best" | tee -a times.txt
    done
    turn=$((turn + 1))
done
for name in $names; do
    awk -v name="$name" '$2 == name { print $3 }' times.txt | sort -n |
        awk -v name="$name" -v budget="$budget" '{ v[NR] = $1 } END { ms = v[int((NR + 1) / 2)]; print name, ms, int(budget * 1000 / ms) }'
done > steps.txt

say "Learning rates"
for rate in $rates; do
    while read -r name ms steps; do
        run "$name" $((steps / 2)) "$rate" 1 "search/${name}_$rate" < /dev/null
    done < steps.txt
done
while read -r name ms steps; do
    for rate in $rates; do
        echo "$name $rate $(last_loss "search/${name}_$rate")"
    done
done < steps.txt | tee search.txt

say "Three seeds of each"
for seed in $seeds; do
    while read -r name ms steps; do
        rate=$(awk -v name="$name" '$1 == name && (best == "" || $3 < best) { best = $3; rate = $2 } END { print rate }' search.txt)
        run "$name" "$steps" "$rate" "$seed" "runs/${name}/$seed" < /dev/null
    done < steps.txt
done

say "What they have learned in $budget s"
while read -r name ms steps; do
    cost=$(with_settings "$name" "$VWN" cost pays.vwn --json)
    weights=$(with_settings "$name" "$VWN" params pays.vwn --json | field stored)
    rate=$(awk -v name="$name" '$1 == name && (best == "" || $3 < best) { best = $3; rate = $2 } END { print rate }' search.txt)
    for seed in $seeds; do
        grep '"event":"eval"' "runs/$name/$seed/events.jsonl" | field eval_loss | tr '\n' ' '
        echo
    done | awk -v OFMT=%.10g -v name="$name" -v ms="$ms" -v steps="$steps" -v rate="$rate" -v weights="$weights" \
        -v flops="$(echo "$cost" | field flop_training)" '
        { n++; half += $(int(NF / 2)); last += $NF; if (n == 1 || $NF < low) low = $NF; if (n == 1 || $NF > high) high = $NF }
        END { print name, weights, flops * 2048 * steps, ms, steps, rate, half / n, last / n, high - low }'
done < steps.txt > results.txt
awk -v budget="$budget" 'BEGIN {
        printf "%-9s %9s %9s %8s %6s %6s %9s %9s %8s %9s\n", "", "weights", "FLOPs", "ms/step", "steps", "rate", "half-way", "loss", "spread", "to first" }
    NR == 1 { first = $8 }
    { printf "%-9s %8.2fM %8.2fT %8.1f %6d %6s %9.4f %9.4f %8.4f %+9.4f\n", $1, $2 / 1e6, $3 / 1e12, $4, $5, $6, $7, $8, $9, $8 - first }
    END { printf "\nloss: nats per byte of held-out text, mean of three seeds after %s s of training; spread: highest less lowest of them\n", budget }' \
    results.txt | tee table.txt
set --
for name in $names; do
    set -- "$@" "$name=$(echo "$seeds" | sed "s|\([0-9]\)|runs/$name/\1|g; s/ /,/g")"
done
"$VWN" compare "$@" --by flops --svg curves.svg
echo "The picture is $PWD/curves.svg"
