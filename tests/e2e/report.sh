# report.sh - `vwn report`: the page is XML, loads nothing and runs nothing, escapes what users wrote, and has the run's own
# numbers. Where Chromium is installed: 360 pixels are wide enough, and all text stands out, light and dark.
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
    if command -v xmllint > /dev/null; then
        expect 0 xmllint --noout --nonet $page.html
    else
        expect 0 python3 -c "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])" $page.html
    fi
    for bad in '<script' ' src=' ' href=' '@import' 'url(h' 'url(/' '<link' '<iframe' ' on'; do
        if sed 's/<pre>.*//; s/ on [a-z]//g; s/>[^<]*</></g' $page.html | grep -qF -e "$bad"; then fail "$page.html: $bad"; fi
    done
    # an id stands once
    grep -o ' id="[^"]*"' $page.html | sort | uniq -d > twice
    empty twice
done
last='the page both.html, of runs/plain and a run whose name is a script'
has both.html '&lt;script&gt;alert(&quot;1&quot;)&amp;amp;'

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
# losses of 30 steps and of 3 evaluations: as many points in each of the pictures over steps, tokens, FLOPs and seconds
awk '/<title>/ { title = $0 } /<path class="c s0"/ { n = (gsub(/ /, " ") - 2) / 2; print title, n }' one.html > points
[ "$(grep -c '<title>loss</title> 30$' points)" -eq 4 ] || fail "30 losses: $(cat points)"
[ "$(grep -c '<title>eval_loss</title> 3$' points)" -eq 4 ] || fail "3 evaluations: $(cat points)"

command -v chromium > /dev/null || {
    echo "Chromium is not installed: nobody has looked at the page."
    finish
}
# The page in a frame of 360 pixels tells the one around it how wide it is, with everything opened, and the least contrast
# of its texts, after WCAG 2.
cat > measure.js <<'EOF'
function light(c) {
    return c.map(function (v) { v /= 255; return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); })
        .reduce(function (s, v, i) { return s + v * [0.2126, 0.7152, 0.0722][i]; }, 0);
}
function rgb(s) { return s.match(/[0-9.]+/g).slice(0, 3).map(Number); }
function contrast(a, b) { a = light(a); b = light(b); return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }
window.onload = function () {
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
    var back = rgb(getComputedStyle(document.body).backgroundColor), least = 99, texts = 0, smallest = 99;
    document.querySelectorAll('h1,h2,td,th,dt,dd,p,pre,label,summary,figcaption,text').forEach(function (e) {
        var s = getComputedStyle(e), r = e.getBoundingClientRect();
        if (!r.width) return;
        texts++;
        var cell = /^([pn][0-9]+)t/.exec(e.getAttribute('class')); // a number on a cell of a matrix
        var on = cell ? rgb(getComputedStyle(e.ownerSVGElement.querySelector('.' + cell[1])).fill) : back;
        least = Math.min(least, contrast(rgb(e.tagName.toLowerCase() == 'text' ? s.fill : s.color), on));
        var scale = e.ownerSVGElement ? e.ownerSVGElement.getBoundingClientRect().width / e.ownerSVGElement.viewBox.baseVal.width : 1;
        smallest = Math.min(smallest, parseFloat(s.fontSize) * scale);
    });
    parent.postMessage('width ' + document.documentElement.scrollWidth + ' of ' + innerWidth + ', back ' + back.join(' ') +
        ', contrast ' + least.toFixed(2) + ', texts ' + texts + ', smallest ' + smallest.toFixed(1), '*');
};
EOF
for page in one both; do
    { sed 's/<\/body><\/html>//' $page.html; echo '<script>'; sed "s/'width '/'$page: width '/" measure.js; echo '</script></body></html>'; } > measured_$page.html
done
cat > frame.html <<'EOF'
<!DOCTYPE html><script>onmessage = function (e) { document.getElementById("said").append("measured " + e.data + "\n"); };</script>
<body><pre id="said"></pre><iframe src="measured_one.html" style="border:0;width:360px;height:3000px"></iframe>
<iframe src="measured_both.html" style="border:0;width:360px;height:3000px"></iframe></body>
EOF
for scheme in 1 0; do # light, dark
    timeout 120 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --blink-settings=preferredColorScheme=$scheme \
        --virtual-time-budget=5000 --dump-dom "file://$PWD/frame.html" > dom 2> err
    grep -o 'measured [a-z]*: width.*' dom > said
    last="scheme $scheme"
    [ "$(grep -c . said)" -eq 2 ] || { cp dom out; fail "Chromium has not measured both pages"; }
    cat said
    awk -v dark=$((1 - scheme)) '{ gsub(",", ""); if (!($4 <= $6 && $6 == 360 && $12 >= 4.5 && $14 > 50 && $16 >= 9 && ($8 < 60) == dark)) exit 1 }' said ||
        fail "$(cat said)"
done
finish
