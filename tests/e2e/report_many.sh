# report_many.sh - `vwn report` of a hundred runs: below 3 MB, each run's own last numbers, every extreme of curves that are handed
# over in bins, right means of them, and one model. (report_seen.sh looks at pages in a browser.)
. "$VWN_SOURCE/tests/support/lib.inc"
. "$VWN_SOURCE/tests/support/runs.inc"

runs=100
steps=800
if sanitized; then runs=24 steps=1600; fi # fewer, and still longer than what is drawn point by point
tiny_run $steps
many_runs $runs many
expect 0 "$VWN" report many -o many.html --json
json out
has out "\"runs\":$runs}"
last="the page of $runs runs of $steps steps"
size=$(wc -c < many.html)
echo "$runs runs of $steps steps are $size bytes"
[ "$size" -lt 3000000 ] || fail "$size bytes"
# a browser has at most so many elements and numbers to read before the first chart
elements=$(grep -o '<[a-z]' many.html | wc -l)
[ "$elements" -lt $((60 * runs + 500)) ] || fail "$elements elements"
numbers=$(sed -n '/id="data"/,$p' many.html | tr -cd , | wc -c)
[ "$numbers" -lt $((4000 * runs)) ] || fail "$numbers numbers"
[ "$(grep -c '<h2>Model' many.html)" -eq 1 ] || fail "one model is shown $(grep -c '<h2>Model' many.html) times"
[ "$(grep -c '^<tr data-run=' many.html)" -eq $runs ] || fail "rows of the table"

# a line of the data for each run: its last losses are those of its events, to the last digit
sed -n '/id="data"/,$p' many.html | grep -o '{"name":"p[0-9]*","state".*' > data
[ "$(wc -l < data)" -eq $runs ] || fail "lines of data"
awk '/"event":"(step|eval)"/ {
        split(FILENAME, part, "/")
        key = /"event":"step"/ ? "\"loss\":" : "\"eval_loss\":"
        match($0, key "[0-9.e+-]*")
        last[part[2] key] = substr($0, RSTART + length(key), RLENGTH - length(key))
        run[part[2]] = 1
    } END { for (r in run) print r, last[r "\"loss\":"], last[r "\"eval_loss\":"] }' many/p*/events.jsonl | sort > wanted
sed 's/{"name":"\(p[0-9]*\)".*"loss":\([0-9.e+-]*\),"eval_loss":\([0-9.e+-]*\),.*/\1 \2 \3/' data | sort > got
cmp -s got wanted || fail "last losses: $(diff got wanted | head -n 4)"
# and so the table has them
sed -n 's/^<tr data-run=.*<\/svg> \(p[0-9]*\)<.*<td class="n">\([0-9.]*\)<\/td><td class="n">\([0-9.]*\)<\/td><td class="n">[^<]*<\/td><td class="n">[0-9.]*<\/td><td class="n">[0-9.k]*<\/td><\/tr>$/\1 \2 \3/p' many.html |
    sort > rows
awk '{ printf "%s %.4f %.4f\n", $1, $2, $3 }' wanted > rounded
cmp -s rows rounded || fail "losses of the table: $(diff rows rounded | head -n 4)"

# curves in bins, of three runs: the extremes of each bin are those of its steps, and the means are right
bins=$(sed -n 's/.*id="data">{"v":1,"bins":\([0-9]*\),.*/\1/p' many.html)
[ "$bins" -lt $steps ] || fail "nothing was put together: the test needs longer runs"
for run in 0 7 23; do
    line=$(grep "^{\"name\":\"p$run\"," data)
    echo "$line" | sed 's/"curves".*//; s/.*"axes":\[{[^}]*"each":\([0-9]*\),.*/\1/' > each
    echo "$line" | grep -o '"name":"loss","axis":0,.*' | sed 's/},{.*//' > curve
    for what in mean least most; do sed "s/.*\"$what\":\[//; s/\].*//" curve | tr ',' '\n' > $what; done
    paste mean least most > got
    losses many/p$run/events.jsonl | awk -v each="$(cat each)" '
        function end() { printf "%.5g\t%.5g\t%.5g\n", sum / n, least, most; n = sum = 0 }
        { least = !n || $1 < least ? $1 : least; most = !n || $1 > most ? $1 : most; sum += $1; if (++n == each) end() }
        END { if (n) end() }' > wanted
    [ "$(wc -l < got)" -gt 20 ] || fail "p$run has $(wc -l < got) bins"
    paste got wanted | awk '{ for (i = 1; i <= 3; i++) { d = $i - $(i + 3); if (d > 2e-5 * $i || -d > 2e-5 * $i) exit 1 } } END { exit !NR }' ||
        fail "bins of p$run: $(paste got wanted | head -n 3)"
    cmp -s got wanted || [ "$(diff got wanted | grep -c '^<')" -le 2 ] || fail "bins of p$run: $(diff got wanted | head -n 6)"
done

# settings that differ are columns, seeds stand together in the comparison
has many.html '<th scope="col">lr</th><th scope="col">train.seed</th>'
sed -n 's/^  \(p[0-9]*\) (4) .*/\1/p' many.html > groups
[ "$(sort -u groups | wc -l)" -eq $((runs / 4)) ] || fail "runs that differ in their seeds alone are one row each, by names that differ: $(tr '\n' ' ' < groups)"
finish
