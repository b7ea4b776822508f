# report_seen.sh - pages of `vwn report` in Chromium, without its window: nothing is wider than a phone or a screen, all text stands out,
# light and dark; what is pointed at, or reached by keys, is what the events say; lines are painted where values are; filters, order,
# smoothing, means of seeds; a name that is a script does nothing. Two renderings of a page have everything in the same place. Pictures of
# `vwn compare --svg` and the page of `vwn inspect` are looked at as well. Skipped where there is no Chromium:
# it takes 120 MB and a minute to install, so `sh tests/run.sh` does not.
command -v chromium > /dev/null || {
    echo "Chromium is not installed: nobody looks at the pages (apt-get install chromium)"
    exit 77
}
. "$VWN_SOURCE/tests/support/lib.inc"
. "$VWN_SOURCE/tests/support/runs.inc"

odd='<img src=none onerror="document.title=1">'
script='a</script><script>document.title=2</script>'
tiny_run 40
expect 0 "$VWN" train tiny.vwn --run runs/second -q --set train.seed=2
mkdir -p "${script%/*}"
cp text.txt "$script"
sed "s|text_file(\"text.txt\"|text_file(\"$script\"|" tiny.vwn > odd.vwn
expect 0 "$VWN" train odd.vwn --run "runs/$odd" -q --set D=24
expect 0 "$VWN" report runs/base runs/second "runs/$odd" -o few.html
has few.html '\u003c/script>'
many_runs 40 many
expect 0 "$VWN" report many -o many.html

for page in few many; do # errors of scripts are told, too
    sed "s|<head>|<head><script>addEventListener(\"error\", (e) => parent.postMessage(\"$page ERROR \" + e.message, \"*\"))</script>|; s|</main>.*||" $page.html > ${page}_used.html
    { echo '<script>'; cat "$VWN_SOURCE/tests/e2e/page.js"; echo '</script></main></body></html>'; } >> ${page}_used.html
done
# pictures of `vwn compare --svg`, `vwn plot` and `vwn inspect`: no text is outside of them, none covers another one
for i in 0 9 18 27 36 39; do cp -r many/p$i "many/WWWWWWWWWWWW with a long name, mostly of wide letters MMMMMMMM $i"; done
mkdir named
mv many/WWW* named/
for i in $(seq 30); do cp -r many/p$i named/run-$i; done
expect 0 "$VWN" compare named/* --svg named.svg
sed 's/residual()/hyper(n = 2, dynamic = true)/' tiny.vwn > hyper.vwn
expect 0 "$VWN" train hyper.vwn --run runs/hyper -q
expect 0 "$VWN" inspect runs/hyper --tokens 64 -o hyper
expect 0 "$VWN" plot tiny.vwn 'step / 1e6' -o small.svg
expect 0 "$VWN" plot tiny.vwn '1e9 + step' -o large.svg
pictures='named.svg small.svg large.svg'
for one in hyper/*.svg; do pictures="$pictures $one"; done
for one in $pictures; do
    {
        echo '<!DOCTYPE html><meta charset="utf-8"><body>'
        cat "$one"
        cat << 'EOT'
<script>
const inside = document.querySelector("svg").getBoundingClientRect(), texts = [...document.querySelectorAll("svg text")].map((one) => one.getBoundingClientRect());
const out = texts.filter((one) => one.left < inside.left || one.right > inside.right || one.top < inside.top || one.bottom > inside.bottom).length;
const scale = inside.width / document.querySelector("svg").viewBox.baseVal.width;
const covered = texts.filter((one, i) => texts.some((two, k) => k < i && Math.min(one.right, two.right) - Math.max(one.left, two.left) > 1 &&
    Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 3 * scale)).length;
onload = () => parent.postMessage("picture " + location.pathname.split("/").pop() + " " + texts.length + " texts, outside " + out + ", covered " + covered, "*");
</script>
EOT
    } > "picture_$(basename "$one" .svg).html"
done
# the page of `vwn inspect` shows the pictures beside it; it runs no script but the one put here
expect 0 "$VWN" inspect runs/base --tokens 64 -o inside
{
    sed "s/default-src 'none';/& script-src 'unsafe-inline';/; s|</main>.*||" inside/index.html
    cat << 'EOT'
<script>
onload = () => parent.postMessage("inside " + document.images.length + " pictures, seen " + [...document.images].filter((one) => one.naturalWidth > 100).length +
    ", as wide as " + (document.documentElement.scrollWidth <= innerWidth ? "it may be" : document.documentElement.scrollWidth), "*");
</script></main></body></html>
EOT
} > inside/used.html
shown=$(find inside -name '*.svg' | wc -l)
# the last one is on top: frames that are covered are seldom drawn
frames="$(for one in picture_*.html; do echo "$one 1280"; done)
inside/used.html 375
few_used.html#phone 375
many_used.html#many 1280
many_used.html#manyagain 1280
many_used.html#manyphone 375
many_used.html#manyshort 1280 500
few_used.html#few:use 1280"
{
    cat << 'EOT'
<!DOCTYPE html><meta charset="utf-8"><script>onmessage = (e) => document.getElementById("said").append("said " + e.data + "\n");</script>
<body style="margin:0"><pre id="said" style="position:absolute;z-index:-1"></pre>
EOT
    echo "$frames" | while read -r page width high; do
        echo "<iframe src=\"$page\" style=\"border:0;position:absolute;left:0;top:0;width:${width}px;height:${high:-2400}px\"></iframe>"
    done
} > frame.html
for scheme in 1 0; do # light, dark
    last="scheme $scheme"
    timeout 300 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$PWD/profile" --window-size=1300,2400 \
        --blink-settings=preferredColorScheme=$scheme --virtual-time-budget=30000 --dump-dom "file://$PWD/frame.html" > dom 2> chromium.log
    sed -n 's/.*said \(\(few\|picture\|inside\|phone\|many\|manyagain\|manyphone\|manyshort\) .*\)/\1/p' dom | sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' > said.$scheme
    cp said.$scheme out
    grep -q '^picture picture_named.html [4-9][0-9] texts' said.$scheme || fail "$(grep '^picture' said.$scheme)"
    if grep '^picture' said.$scheme | grep -qv ' [1-9][0-9]* texts, outside 0, covered 0$'; then fail "$(grep '^picture' said.$scheme | grep -v 'outside 0, covered 0')"; fi
    [ "$(grep -c '^picture' said.$scheme)" -eq "$(echo "$pictures" | wc -w)" ] || fail "pictures: $(grep '^picture' said.$scheme)"
    grep -q "^inside $shown pictures, seen $shown, as wide as it may be$" said.$scheme || fail "$shown pictures: $(grep '^inside' said.$scheme)"
    [ "$(grep -c ' done$' said.$scheme)" -eq 6 ] || fail "six pages are looked at"
    if grep -q ERROR said.$scheme; then fail "$(grep ERROR said.$scheme | head -n 3)"; fi
    # NAME width SCROLLED INNER back RED contrast RATIO texts N smallest SIZE
    awk -v dark=$((1 - scheme)) '$2 == "width" { n++; if ($3 > $4 || $8 < 4.5 || $10 < 50 || $12 < 9 || ($6 < 60) != dark) { print; bad = 1 } }
        END { exit bad || n != 6 }' said.$scheme > wrong || fail "how it looks: $(cat wrong)"
    sed -n 's/^[a-z]* width [0-9]* \([0-9]*\) .*/\1/p' said.$scheme | sort -n | tr '\n' ' ' > widths
    [ "$(cat widths)" = '375 375 1280 1280 1280 1280 ' ] || fail "as wide as they were asked to be: $(cat widths)"
    sed -n 's/^many places/places/p' said.$scheme > once
    sed -n 's/^manyagain places/places/p' said.$scheme > again
    cmp -s once again || fail "two pictures of one page: $(cat once again)"
    grep -q 'of [1-9]' once || fail "no chart is drawn: $(cat once)"
    # what nobody has scrolled to is not drawn
    grep -q '^manyshort places [0-9]* of 0 canvases' said.$scheme || fail "charts below the edge: $(grep '^manyshort places' said.$scheme)"
done

# what was read, against the events
last='the page of three runs'
cp said.1 out
event() { # RUN KIND KEY STEP, as the page writes numbers: five digits that count
    grep "\"event\":\"$2\",\"step\":$4," "$1/events.jsonl" | sed "s/.*\"$3\":\([0-9.e+-]*\).*/\1/" | awk '{ printf "%.5g\n", $1 }'
}
run_of() { case $1 in 0) echo runs/base ;; 1) echo runs/second ;; 2) echo "runs/$odd" ;; esac; }
for run in 0 1 2; do
    for step in 3 20 37; do
        got=$(sed -n "s/^few hover $run $step = .* \([0-9.]*\)$/\1/p" out)
        [ "$got" = "$(event "$(run_of $run)" step loss $step)" ] || fail "run $run pointed at, step $step: $got, wanted $(event "$(run_of $run)" step loss $step)"
    done
    [ "$(sed -n "s/^few painted $run //p" out)" -ge 3 ] || fail "the line of run $run is not where its values are"
done
line() { sed -n "s/^few $1 //p" out; }
is() { [ "$2" = "$3" ] || fail "$1: $2, wanted $3"; }
of() { event "$(run_of "$1")" step loss "$2"; }
is 'evaluations pointed at' "$(line held)" "second $(event runs/second eval eval_loss 40)"
# keys go on where the pointer was: End, one back, ten back
is 'keys' "$(line key | tr '\n' ' ')" "second $(of 1 40) second $(of 1 39) second $(of 1 29) "
is 'half as wide, around step 29, within what there is' "$(line zoomed)" '19.50 of 39.00' # 15 to 34.5
is 'all of it' "$(line whole)" 39.00
is 'log y' "$(line log)" 'other y 3'
is 'and back, the same picture' "$(line again)" same
is 'tokens of step 20, in front of the loss' "$(line by | cut -d' ' -f1)" $((20 * 64))
# 20 % of 40 points: three on both sides
is 'smoothed' "$(line smooth)" "base $(losses runs/base/events.jsonl | awk 'NR >= 17 && NR <= 23 { s += $1 / 7 } END { printf "%.5g", s }')"
# Student's t of one degree of freedom, and the spread of two seeds
{ losses runs/base/events.jsonl | sed -n 20p; losses runs/second/events.jsonl | sed -n 20p; } |
    awk '{ v[NR] = $1 } END { m = (v[1] + v[2]) / 2; d = v[1] - v[2]; printf "%.5g \302\261%s (2 seeds)\n", m, sprintf("%.3g", 12.706204736 * (d < 0 ? -d : d) / 2) + 0 }' > wanted
is 'means of seeds' "$(line seeds)" "2 base and 1 more seed $(cat wanted)"
is 'a constant rate' "$(line flat)" 1.22 # a tenth above and below
is 'the table behind a chart' "$(line table)" "3 $(of 0 40) $(of 1 40) $(of 2 40)"
is 'one seed' "$(line filter)" '1 1 1 of 3 runs are shown.'
for run in 0 1 2; do echo "$(of $run 40) $run"; done | sort -g | cut -d' ' -f2 | tr -d '\n' > order
is 'in order' "$(line sorted | head -n 1)" "$(cat order) ascending"
is 'the other way' "$(line sorted | tail -n 1)" "$(rev order) descending"
is 'without one' "$(line ticked)" '2 2 of 3 runs are shown.'
for run in 0 1 2; do echo "$run $(event "$(run_of $run)" eval eval_loss 40)"; done |
    awk '{ v[$1] = $2; if (NR == 1 || $2 < lo) lo = $2; if (NR == 1 || $2 > hi) hi = $2 }
         END { for (i = 0; i < 3; i++) if (v[i] <= (lo + hi) / 2) { s = s i; n++ } print s, n, "of 3 runs are shown." }' > wanted
is 'the lower half of held-out losses' "$(line brushed)" "$(cat wanted)"
is 'the range taken away' "$(line all)" 3
is 'names for who does not see' "$(line nameless)" '0 images 0 title 3 runs' # no name has become an element, no script has run
finish
