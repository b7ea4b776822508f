# pays.sh - the comparison of connections, `sh examples/pays.sh`, at a size of seconds.
#
# The steps of a run are the budget divided by the median of what was measured; its rate is the best of the search; the
# table's losses are means of what the runs wrote.
. "$VWN_SOURCE/tests/support/lib.inc"

rm -rf story && mkdir story
cp "$VWN_DATA/kjv.txt" story/
# as if measured: medians of 150 and 300 ms
printf '%s\n' '1 residual 140' '1 moe8 300' '2 residual 150' '2 moe8 310' '3 residual 190' '3 moe8 290' > story/times.txt
HELD_OUT=1 BUDGET=0.6 ONLY='residual moe8' VWN="$VWN" FOLDER="$PWD/story" sh "$VWN_SOURCE/examples/pays.sh" > out 2> err || fail "it ended with $?"
[ "$(cat story/steps.txt)" = "residual 150 4
moe8 300 2" ] || fail 'steps are not what fits into the budget'
[ "$(wc -l < story/search.txt)" -eq 6 ] || fail 'three rates for each'
for name in residual moe8; do
    best=$(sort -k 3 -g story/search.txt | awk -v name=$name '$1 == name { print $2; exit }')
    for seed in 1 2 3; do
        grep -o '"eval_loss":[0-9.]*' story/runs/$name/$seed/events.jsonl | tail -n 1 | cut -d : -f 2
        grep -q '"lr"' story/runs/$name/$seed/events.jsonl || fail 'a run has no rates'
    done | awk '{ sum += $1 } END { printf "%.4f\n", sum / NR }' > mean
    row=$(grep "^$name " story/table.txt)
    # shellcheck disable=SC2086
    set -- $row
    [ "$6" = "$best" ] || fail "$name was trained at $6, the search says $best"
    [ "$8" = "$(cat mean)" ] || fail "$name: the table says $8, the runs $(cat mean)"
done
[ -s story/curves.svg ] || fail 'no picture'
# it goes on where it was
rm -r story/runs/moe8/3
HELD_OUT=1 BUDGET=0.6 ONLY='residual moe8' VWN="$VWN" FOLDER="$PWD/story" sh "$VWN_SOURCE/examples/pays.sh" > again 2> err || fail "it ended with $?"
[ "$(grep -c ' steps$' again)" -eq 1 ] || fail 'what was done is done again'

finish
