# pays.sh - the comparison of connections, `sh examples/pays.sh`, at a size of seconds.
#
# The steps of a run are the budget divided by the median of what was measured, or those of the first variant; its rate is the best of the
# search and has decayed where it is compared; the tables' losses are means of what the runs wrote, with the intervals of `vwn compare`.
# When: slow, whole, optimised. The sanitizers see the same kernels and numbers, ten times slower.
. "$VWN_SOURCE/tests/support/lib.inc"

rm -rf story && mkdir story
cp "$VWN_DATA/kjv.txt" story/
# as if measured: medians of 150 and 300 ms
printf '%s\n' '1 residual 140' '1 moe8 300' '2 residual 150' '2 moe8 310' '3 residual 190' '3 moe8 290' > story/times.txt
story() {
    HELD_OUT=1 BUDGET=0.6 ONLY='residual moe8' SEEDS='1 2' WIDTHS='192' VWN="$VWN" FOLDER="$PWD/story" \
        sh "$VWN_SOURCE/examples/pays.sh" > "$1" 2> err || fail "it ended with $?"
}
story out
[ "$(cat story/steps.txt)" = "residual 150 4
moe8 300 2" ] || fail 'steps are not what fits into the budget'
[ "$(wc -l < story/search.txt)" -eq 6 ] || fail 'three rates for each'
for what in tokens time; do
    for name in residual moe8; do
        steps=4
        [ "$what $name" != 'time moe8' ] || steps=2
        best=$(sort -k 3 -g story/search.txt | awk -v name=$name '$1 == name { print $2; exit }')
        for seed in 1 2; do
            events=story/runs/$name/$steps/$seed/events.jsonl
            grep -o '"eval_loss":[0-9.]*' $events | tail -n 1 | cut -d : -f 2
            grep -q '"event":"end","step":'$steps',"steps":'$steps',' $events || fail "$events ends elsewhere than its schedule"
        done | awk '{ sum += $1 } END { printf "%.4f\n", sum / NR }' > mean
        row=$(grep "^$name " story/$what.txt)
        # shellcheck disable=SC2086
        set -- $row
        [ "$5 $6" = "$steps $best" ] || fail "$what: $name was trained $5 steps at $6, $steps fit and the search says $best"
        [ "$7" = "$(cat mean)" ] || fail "$what: $name: the table says $7, the runs $(cat mean)"
        "$VWN" compare "a=story/runs/$name/$steps/1,story/runs/$name/$steps/2" --json > compared
        sed 's/.*"value":[0-9.]*,"interval":\([0-9.e-]*\),.*/\1/' compared | awk '{ printf "%.4f\n", $1 }' > half
        [ "$8" = "$(cat half)" ] || fail "$what: $name: the interval is $8, compare says $(cat half)"
    done
done
[ -s story/tokens.svg ] && [ -s story/width.svg ] || fail 'no picture'
[ "$(ls story/width | grep -c '^E-192_seed-[12]$')" -eq 2 ] && grep -q '^  E-192 .*  4 ' story/width.txt || fail "a width with two seeds: $(cat story/width.txt)"
# it goes on where it was
rm -r story/runs/moe8/2/2
story again
[ "$(grep -c ' steps$' again)" -eq 1 ] || fail 'what was done is done again'

finish
