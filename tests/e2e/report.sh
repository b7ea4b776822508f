# report.sh - `vwn report`: the page loads nothing, escapes what users wrote, has the run's own numbers, and models and connections
# once. What a browser makes of it: report_seen.sh; of a hundred runs: report_many.sh.
. "$VWN_SOURCE/tests/support/lib.inc"

expect 0 "$VWN" new nano
sed -i 's/every = [0-9]* steps, batches = [0-9]*/every = 10 steps, batches = 1/; s/log *{[^}]*}/log { every = 1 steps }/' nano/model.vwn
sed 's/connection = residual()/connection = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))/; s/vocab = 256/vocab = 256, width = D * 3 \/ 2/' nano/model.vwn > nano/ghc.vwn
expect 0 "$VWN" train nano/model.vwn --run plain --set D=48 --set L=2 --set 'train.batch=4 seqs' -q --until '30 steps'
odd='runs/<script>alert("1")&amp;'
expect 0 "$VWN" train nano/ghc.vwn --run "$odd" --set D=48 --set L=2 --set 'train.batch=4 seqs' -q --until '30 steps'
cp -r runs/plain runs/broken
printf 'no JSON\n' >> runs/broken/events.jsonl
i=0 # more errors than checking goes on after
while [ $i -lt 30 ]; do echo "let a$i = nobody$i"; i=$((i + 1)); done > runs/broken/resolved.vwn

expect 2 "$VWN" report runs/plain
has err 'needs `-o FILE.html`'
expect 2 "$VWN" report runs/plain --json -o -
has err 'exclude each other'
empty out
expect 2 "$VWN" report runs/none -o page.html
has err '`runs/none` is no run directory'
[ ! -e page.html ] || fail "a report of nothing was written"
expect 5 "$VWN" report runs/plain -o nowhere/page.html
expect 0 "$VWN" report runs/plain -o - # the same bytes, whoever reads them
cp out plain.html
expect 0 "$VWN" report runs/plain -o one.html --json
json out
cmp -s plain.html one.html || fail "stdout has another page than the file: $(cmp plain.html one.html)"
expect 0 "$VWN" report runs/broken -o broken.html
has err 'broken/events.jsonl:'
has err 'resolved.vwn does not check'
expect 0 "$VWN" report runs/plain "$odd" -o both.html
empty out
# connections: as `vwn inspect` has them, or why not
last='the pages of runs without and with connections'
has both.html 'each reads the sum of all that was written before it'
lacks one.html '<svg class="h"'
has both.html '<figcaption>What each sublayer reads of what earlier ones wrote. The unfolded connection matrix C(0): '
expect 0 "$VWN" inspect "$odd" --what connections --tokens 1024 --json
grep -q '"path":"layer\[1\].attention"' out || fail "no connections"
python3 - out both.html <<'EOP' || fail "the page has another C(0)"
import json, re, sys
c = json.loads(open(sys.argv[1]).read().splitlines()[-1])["connections"]
page = open(sys.argv[2]).read()
svg = re.search(r'<svg class="h".*?</svg>', page, re.S).group(0)
assert ">C(0)<" in svg
rest = svg.split(">C(0)<")[1]
got = [float(x) for x in re.findall(r"<rect class=.[pn]\d+. [^>]*><title>([^<]*)</title>", rest)]
want = [s[b] for r in c["reads"] for b in range(r["segments"]) for src in r["mean"] for s in src]
assert len(got) == len(want) > 30, (len(got), len(want))
assert all(abs(g - w) <= 1e-3 * max(1, abs(w)) for g, w in zip(got, want)), list(zip(got, want))[:5]
EOP
expect 0 "$VWN" report "$odd" -o none.html --connections none
lacks none.html '<svg class="h"'
lacks none.html 'Connections, measured'
expect 2 "$VWN" report "$odd" -o none.html --connections some
expect 0 "$VWN" train nano/ghc.vwn --run wide --set D=768 --set L=2 --set 'train.batch=1 seqs' -q --until '1 steps'
cp nano/model.vwn kept.vwn
expect 2 "$VWN" report runs/wide -o kept.vwn
has err 'the name must end in .html'
cmp -s nano/model.vwn kept.vwn || fail "a model was written over"
expect 0 "$VWN" report runs/wide -o wide.html
grep -q 'not measured, since that takes [0-9]* GFLOP' wide.html || fail "a large model is not measured, and the page says so"
lacks wide.html '<svg class="h"'
mv nano/text.txt nano/away.txt
expect 0 "$VWN" report "$odd" -o away.html
has away.html 'Its connections are not measured: '
mv nano/away.txt nano/text.txt
expect 0 "$VWN" report runs/plain "$odd" -o both.html
empty out

for page in one both broken; do
    last="the page $page.html"
    has $page.html "default-src 'none'"
    # without its own scripts and style sheets: nothing that is fetched, nothing that is run
    sed '/^<script>$/,/<\/script>$/d; /^<style>$/,/<\/style>$/d; s/<pre>.*//; s/ on [a-z]//g; s/>[^<]*</></g' $page.html > bare
    for bad in '<script>' ' src=' ' href=' '@import' 'url(h' 'url(/' '<link' '<iframe' ' on' '<img'; do
        if grep -qF -e "$bad" bare; then fail "$page.html: $bad"; fi
    done
    [ "$(grep -c '<script>$' $page.html)" -eq 6 ] || fail "six scripts: a library and five of its own"
    [ "$(grep -o '</script>' $page.html | wc -l)" -eq 7 ] || fail "a script or the data ends early"
    # an id stands once
    grep -o ' id="[^"]*"' bare | sort | uniq -d > twice
    empty twice
done
last='the page both.html, of runs/plain and a run whose name is a script'
has both.html '&lt;script&gt;alert(&quot;1&quot;)&amp;amp;'
has both.html '"name":"\u003cscript>alert(\"1\")&amp;"'
# the library says where it is from, and its licence goes with it
for said in 'https://github.com/leeoniya/uPlot (v1.6.' 'The MIT License (MIT)' 'Permission is hereby granted, free of charge'; do has one.html "$said"; done

# the numbers of the run, of `vwn cost` and of the weights
last='the page one.html, of runs/plain'
last() { sed -n "s/.*\"event\":\"$1\".*\"$2\":\([0-9.]*\).*/\1/p" runs/plain/events.jsonl | tail -n 1; }
has one.html "<td class=\"n\">$(printf %.4f "$(last step loss)")</td><td class=\"n\">$(printf %.4f "$(last eval eval_loss)")</td>"
has one.html '<td class="n">30 / 400</td>'
has one.html "$(sed -n 's/.*"event":"compile".*"text":"\([^"]*\)".*/\1/p' runs/plain/events.jsonl)"
has one.html '<dt>settings</dt><dd>D=48'
has one.html '<dt>device</dt><dd>cpu</dd>'
has one.html '<dt>file</dt><dd>nano/model.vwn</dd>'
commas() { echo "$1" | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta'; }
expect 0 "$VWN" cost nano/ghc.vwn --set D=48 --set L=2 --json
for key in stored flops_per_token flop_training; do
    last="the page both.html beside \`vwn cost\`: $key"
    has both.html "<td class=\"n\">$(commas "$(grep -o "\"$key\":[0-9]*" out | head -n 1 | sed 's/.*://')")</td>"
done
expect 0 "$VWN" params nano/ghc.vwn --set D=48 --set L=2 --by tensor
weights=$(awk '$1 ~ /^layer.*\.connection\./ { gsub(",", "", $2); n += $2 } END { print n }' out)
last='the page both.html beside `vwn params`: the weights of its connection'
has both.html "<td>ghc</td><td class=\"n\">4</td><td class=\"n\">48</td><td class=\"n\">72</td><td class=\"n\">$weights</td>"
# losses of 30 steps and of 3 evaluations, all of them, as the events have them
values() { grep -o "\"name\":\"$1\",\"axis\":[0-9]*,\"mean\":\[[^]]*" one.html | sed 's/.*\[//' | tr ',' '\n'; }
values loss > got
losses runs/plain/events.jsonl | awk '{ printf "%.7g\n", $1 }' > wanted
[ "$(wc -l < wanted)" -eq 30 ] || fail "30 losses"
cmp -s got wanted || fail "losses of the page: $(head -n 3 got), wanted $(head -n 3 wanted)"
values eval_loss > got
evals runs/plain/events.jsonl | awk '{ printf "%.7g\n", $1 }' > wanted
[ "$(wc -l < wanted)" -eq 3 ] || fail "3 evaluations"
cmp -s got wanted || fail "evaluations of the page: $(head -n 3 got), wanted $(head -n 3 wanted)"

# what is no number is not hidden: events have null for it
mkdir runs/odd
cp runs/plain/resolved.vwn runs/odd/
sed '/"step":2[5-9],/s/"loss":[0-9.]*/"loss":null/; /"step":30,/s/"loss":[0-9.]*/"loss":null/' runs/plain/events.jsonl > runs/odd/events.jsonl
expect 0 "$VWN" report runs/odd -o odd.html
has odd.html '<td class="n">nan or inf</td>'
has odd.html '"loss":null,'
has odd.html '"odd":6,"oddFrom":25,'
# runs that differ in how they train alone share a model, which stands there once, and connections of one of them
for seed in 2 3; do
    cp -r "$odd" runs/seed$seed
    sed -i "s/seed *= 1/seed = $seed/; s/0.004/0.00$seed/" runs/seed$seed/resolved.vwn
done
expect 0 "$VWN" report "$odd" runs/seed2 runs/seed3 -o shared.html
last='the page of three runs of one model'
[ "$(grep -c '<h2>Model' shared.html)" -eq 1 ] || fail "$(grep -c '<h2>Model' shared.html) models"
has shared.html 'the lowest loss of 3 runs'
[ "$(grep -o '>C(0)<' shared.html | wc -l)" -eq 1 ] || fail "connections of one run"
expect 0 "$VWN" report "$odd" runs/plain -o shared.html
[ "$(grep -c '<h2>Model' shared.html)" -eq 2 ] || fail "other connections are another model"
# a folder of runs is all of them
mkdir folder
cp -r runs/plain folder/x
cp -r runs/plain folder/y
expect 0 "$VWN" report folder -o folder.html --json
has out '"runs":2'
finish
