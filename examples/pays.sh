#!/bin/sh
# pays.sh - which connection pays, for as many tokens, and for as much time: `sh examples/pays.sh`
#
# In:  a Debian 12 (root or sudo where something has to be installed). In the environment BUDGET: seconds of training of a run
#      (else 90), POINTS: shares of it at which all are compared (else 1), SEEDS (else 1 2 3 4 5), TURNS: how often a step is timed
#      (else 3), ONLY: names of variants (else all; residual first), WIDTHS: widths of the state (else 128 192 256 384 512), HELD_OUT:
#      batches of an evaluation (else 32). All of it takes about 150 times the budget: four hours.
# Out: runs in build/pays, and there tokens.txt, time.txt and width.txt, tokens.svg and width.svg, search.txt.
#
# Held equal: the backbone (128 wide, 8 layers), text, batches, seeds, and in turn tokens and time. The time of a step is measured
# for all in turns, the best of each turn, the median of the turns. For equal time a run has as many steps as fit into the budget, so what
# trains on a machine that is busy for a while still gets the steps of its budget; for equal tokens it has the steps of the
# first variant. Each run's rate decays to its end, where it is compared: another POINT is another run, and no curve is read in
# its middle, where a schedule that ends early looks better. The learning rate is searched for each in the same way: three rates,
# half the budget, seed 1, the lowest loss on held-out text. Then all seeds at that rate. Losses are means with their 95 %
# intervals (Student's t), differences with theirs (of as many degrees of freedom as the smaller group has, which is on the safe side);
# what an interval hides has a `=`.
# The width of the state between layers is varied at a constant backbone, as the VWN paper draws it: equal tokens, the rate of vwn2_3.
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
points=${POINTS:-1}
seeds=${SEEDS:-1 2 3 4 5}
widths=${WIDTHS:-128 192 256 384 512}

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

# What the search has found for a variant.
rate_of() { awk -v name="$1" '$1 == name && (best == "" || $3 < best) { best = $3; rate = $2 } END { print rate }' search.txt; }
# A share of a number of steps.
share() { awk -v steps="$1" -v share="$2" 'BEGIN { n = int(steps * share + 0.5); print n < 1 ? 1 : n }'; }
# steps_of WHAT POINT STEPS: of a run that is compared at equal tokens or in equal time
first=$(awk 'NR == 1 { print $3 }' steps.txt)
steps_of() { if [ "$1" = tokens ]; then share "$first" "$2"; else share "$3" "$2"; fi; }

say "All seeds of each"
for seed in $seeds; do
    for what in tokens time; do
        for point in $points; do
            while read -r name ms steps; do
                n=$(steps_of $what "$point" "$steps")
                run "$name" "$n" "$(rate_of "$name")" "$seed" "runs/$name/$n/$seed" < /dev/null
            done < steps.txt
        done
    done
done

# table WHAT POINT: a line for each variant: name, weights, TFLOPs of training, ms, steps, rate, and the losses of its seeds
results() {
    while read -r name ms steps; do
        n=$(steps_of "$1" "$2" "$steps")
        flops=$(with_settings "$name" "$VWN" cost pays.vwn --json | field flop_training)
        weights=$(with_settings "$name" "$VWN" params pays.vwn --json | field stored)
        printf '%s %s %s %s %s %s' "$name" "$weights" "$(awk -v f="$flops" -v n="$n" 'BEGIN { printf "%.10g", f * 2048 * n / 1e12 }')" "$ms" "$n" "$(rate_of "$name")"
        for seed in $seeds; do printf ' %s' "$(last_loss "runs/$name/$n/$seed")"; done
        echo
    done < steps.txt
}
# Means with intervals; the first line is what the others are beside.
table() {
    awk 'BEGIN {
            split("12.7062 4.3027 3.1824 2.7764 2.5706 2.4469 2.3646 2.3060 2.2622", t)
            printf "%-9s %9s %9s %8s %6s %6s %9s %9s  %s\n", "", "weights", "FLOPs", "ms/step", "steps", "rate", "loss", "+-95%", "to the first" }
        { n = NF - 6; sum = squares = 0
          for (i = 7; i <= NF; i++) sum += $i
          mean = sum / n
          for (i = 7; i <= NF; i++) squares += ($i - mean) ^ 2
          s = n > 1 ? squares / (n - 1) / n : 0
          if (NR == 1) { first = mean; s1 = s }
          gap = NR > 1 ? sprintf("%+.4f", mean - first) : ""
          if (NR > 1 && n > 1) { half = t[n - 1] * sqrt(s + s1); d = mean - first; if (d < 0) d = -d; gap = gap sprintf(" +-%.4f%s", half, (d <= half ? " =" : "")) }
          printf "%-9s %8.2fM %8.2fT %8.1f %6d %6s %9.4f %9s  %s\n", $1, $2 / 1e6, $3, $4, $5, $6, mean, (n > 1 ? sprintf("%.4f", t[n - 1] * sqrt(s)) : "-"), gap }'
}

for what in tokens time; do
    : > $what.txt
    for point in $points; do
        if [ $what = tokens ]; then
            say "As many tokens: $(share "$first" "$point") steps of 2,048" | tee -a $what.txt
        else
            say "As much time: $(awk -v b="$budget" -v p="$point" 'BEGIN { print b * p }') s" | tee -a $what.txt
        fi
        results $what "$point" | tee "$what.$point.losses" | table | tee -a $what.txt
    done
    echo "loss: nats per byte of held-out text at the end of runs, whose rate has decayed there" | tee -a $what.txt
done
set --
for name in $names; do
    set -- "$@" "$name=$(echo "$seeds" | sed "s|[0-9][0-9]*|runs/$name/$(share "$first" "${points##* }")/&|g; s/ /,/g")"
done
"$VWN" compare "$@" --by tokens --svg tokens.svg > compare.txt

say "The width of the state, at a constant backbone and as many tokens"
rate=$(rate_of vwn2_3)
again=
[ ! -e width/sweep.json ] || again=--resume
# shellcheck disable=SC2086 # no word, or one
"$VWN" sweep pays.vwn --vary E="$(echo "$widths" | tr ' ' ',')" --seeds "$(echo "$seeds" | tr ' ' ',')" --run "$PWD/width" $again -q --device cpu \
    --set 'conn=ghc(m=2,n=2*E/D,dynamic=true,reduce=linear(out=D))' --set steps="$first" --set rate="${rate:-4e-3}" --set held_out="${HELD_OUT:-32}" \
    --svg width.svg --by E > width.out
tee width.txt < width.out
echo "The pictures are $PWD/tokens.svg and $PWD/width.svg"
