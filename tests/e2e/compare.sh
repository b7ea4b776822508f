# compare.sh - `vwn compare`: numbers of the table and the points against the events themselves, computed again with awk;
# groups of seeds; a run that goes on after a stop; damaged lines; a picture whose points lie in it.
# When: quick, released.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
{ small_model '' '  embed tokens { vocab = 256 }
  ffn { hidden = 24, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }'
small_train '  length    = 20 steps
  optimizer adamw { lr = constant(peak = 1e-2), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval       { every = 5 steps, batches = 2 }
  checkpoint { every = 5 steps, keep = 9 }'; } > model.vwn
expect 0 "$VWN" train model.vwn --run runs/a -q
expect 0 "$VWN" train model.vwn --run runs/b -q --set train.seed=2 --until '10 steps'
expect 0 "$VWN" train model.vwn --run runs/b -q --resume
expect 0 "$VWN" train model.vwn --run runs/wide -q --set D=24 --set 'train.length=12 steps'

# value EVENTS EVENT KEY STEP: the number of that name
value() { grep "\"event\":\"$2\",\"step\":$4," "$1" | sed "s/.*\"$3\":\([0-9.e+-]*\).*/\1/"; }
same() { echo "$1 $2" | awk '{ d = $1 - $2; if (d < 0) d = -d; exit !(d <= 1e-6 * ($2 < 0 ? -$2 : $2)) }' || fail "$3 is $1, wanted $2"; }
key() { sed "s/.*\"$1\":\([0-9.e+-]*\).*/\1/" out; }

# all runs at step 12, where `wide` ends: between two evaluations of the others
expect 0 "$VWN" compare runs/wide seeds=runs/a,runs/b --json
json out
same "$(key at)" 12 "the last common step"
for run in a b; do
    for step in 10 15; do value runs/$run/events.jsonl eval eval_loss $step; done
done > values
same "$(key value)" "$(awk '{ s += (NR % 2 ? 0.6 : 0.4) * $1 / 2 } END { printf "%.12g", s }' values)" "the mean of two seeds"
expect 0 "$VWN" compare runs/wide seeds=runs/a,runs/b
has out 'seeds (2)'
has out 'at 12'
has out 'spread'

# ---- what differs besides, and what seeds explain ----
has out 'seeds differ: wide 1; seeds 1, 2'
has out 'steps of whole runs: wide has 12; seeds has 20'
has out 'lowest at 12: '
has out 'of a single run nobody knows how much is chance'
lacks out 'favours' # the rate is constant
lacks out 'losses of other data'
# intervals and ties of three runs each against awk: t of 2 degrees is 4.30265, Welch's degrees of 3 and 3 alike numbers are 4 (2.77645)
hand() { # NAME SEED LOSS: a run whose loss is a line to LOSS at step 10 and on to half of it at 20
    mkdir -p runs/$1
    echo "{\"v\":1,\"event\":\"start\",\"step\":0,\"steps\":20,\"tokens\":0,\"train_flops_per_token\":${4:-10},\"seconds\":0}" > runs/$1/events.jsonl
    for at in 0 10 20; do
        awk -v at=$at -v loss="$3" -v slow="${5:-1}" 'BEGIN { printf "{\"v\":1,\"event\":\"eval\",\"step\":%d,\"steps\":20,\"tokens\":%d,\"eval_loss\":%.6f,\"seconds\":%g}\n",
            at, at * 100, at == 0 ? 2 * loss : at == 10 ? loss : loss / 2, at * slow }' >> runs/$1/events.jsonl
    done
    sed "s/seed *= 1/seed = $2/; s/constant(peak = 1e-2)/cosine(peak = 1e-2, floor = 0, warmup = 0)/" model.vwn > runs/$1/resolved.vwn
}
i=0
for loss in 1.00 1.02 1.04; do i=$((i + 1)); hand x$i $i $loss; done
i=0
for loss in 1.03 1.05 1.07; do i=$((i + 1)); hand y$i $i $loss 20 3; done
i=0
for loss in 1.50 1.52 1.54; do i=$((i + 1)); hand z$i $i $loss; done
expect 0 "$VWN" compare x=runs/x1,runs/x2,runs/x3 y=runs/y1,runs/y2,runs/y3 z=runs/z1,runs/z2,runs/z3
# at step 20 losses are halves: s = 0.01, se = 0.01 / sqrt(3); of a difference sqrt(2) as much
half=$(awk 'BEGIN { printf "%.4f", 4.302652730 * 0.01 / sqrt(3) }')
gap=$(awk 'BEGIN { printf "%.4f", 2.776445105 * 0.01 * sqrt(2 / 3) }')
has out "0.5100 +-$half"
has out "+0.0150 +-$gap ="
has out "+0.2500 +-$gap "
lacks out "+0.2500 +-$gap ="
has out 'lowest at 20: x, tied with y: differences that seeds explain (95 %)'
lacks out 'seeds differ'
# at equal FLOPs and seconds the runs of y are where they were earlier: 2000 tokens of x and z are 1000 of y's, 20 s are step 6.67
has out 'at equal FLOPs x has done 100 %, y has done 50 %, z has done 100 % of its steps: a rate that falls'
expect 0 "$VWN" compare x=runs/x1,runs/x2,runs/x3 y=runs/y1,runs/y2,runs/y3 --json
json out
tr '{' '\n' < out | grep '"x":20000,' | sed 's/.*"mean":\([0-9.]*\),.*/\1/' | tail -n 1 > flops_of_y
same "$(cat flops_of_y)" 1.05 "the mean of y at 20 kFLOP"
tr '{' '\n' < out | grep '"x":20,' | sed 's/.*"mean":\([0-9.]*\),.*/\1/' | tail -n 1 > seconds_of_y
same "$(cat seconds_of_y)" "$(awk 'BEGIN { printf "%.12g", 2.1 - 1.05 * 20 / 30 }')" "the mean of y after 20 s"
has out '"lowest":"x","best":false,"tied":["y"]'
expect 0 "$VWN" compare x=runs/x1,runs/x2,runs/x3 z=runs/z1,runs/z2,runs/z3
has out 'lowest at 20: x, the best'
lacks out 'another order'
for name in p q; do cp -r runs/x1 runs/$name && head -n 3 runs/x1/events.jsonl > runs/$name/events.jsonl; done
expect 0 "$VWN" compare runs/p runs/q
has out 'all are at 50 % of their steps'
# runs whose files differ in the seed alone are one on request; a seed that is there twice is told
expect 0 "$VWN" compare --group runs/x1 runs/z1 runs/x2 runs/x3
has out 'x (4)' # the files of z and x are the same
hand x4 3 1.06
expect 0 "$VWN" compare x=runs/x1,runs/x3,runs/x4
has out 'x has a seed twice (1, 3, 3)'
# a seed by another name
for i in 1 2; do
    sed "s/^let D = 16/let D = 16\nlet s = $i/; s/seed *= 1/seed = s/" model.vwn > runs/x$i/resolved.vwn
    sed "s/^let D = 16/let D = 24\nlet s = $i/; s/seed *= 1/seed = s/" model.vwn > runs/z$i/resolved.vwn
done
expect 0 "$VWN" compare --group runs/x1 runs/z1 runs/x2 runs/z2
has out 'x (2)'
has out 'z (2)'
lacks out twice
# another machine, by the last start of each
for i in 1 2; do
    echo '{"v":1,"event":"record","host":"one","processor":"P","device":"cpu","threads":2}' > runs/x$i/record.jsonl
    cp runs/x$i/record.jsonl runs/z$i/
done
expect 0 "$VWN" compare runs/x1 runs/z1
lacks out machines
echo '{"v":1,"event":"record","host":"two","processor":"P","device":"cpu","threads":2}' >> runs/z1/record.jsonl
expect 0 "$VWN" compare runs/x1 runs/z1
has out 'machines: x1 has one, P, cpu, 2 threads; z1 has two, P, cpu, 2 threads: seconds are not the same measure'
# other data: another text, or the same name with other bytes
sed 's/text.txt/other.txt/' model.vwn > runs/z3/resolved.vwn
expect 0 "$VWN" compare runs/x3 runs/z3
has out 'train.data: x3 has text_file("text.txt", val = 10%); z3 has text_file("other.txt", val = 10%): losses of other data'
expect 0 "$VWN" train model.vwn --run runs/before -q --until '5 steps'
echo more >> text.txt
expect 0 "$VWN" train model.vwn --run runs/after -q --until '5 steps'
expect 0 "$VWN" compare runs/before runs/after
has out 'the files have changed between the runs'
# equal losses are a tie
cp -r runs/before runs/twin
expect 0 "$VWN" compare runs/before runs/twin
has out 'lowest at 5: before, tied with twin'

# runs of a group that end elsewhere: what all have reached, and not the mean of their lengths
expect 0 "$VWN" compare mixed=runs/wide,runs/b
has out '12 to 20'
has out 'the runs of mixed end after 12 to 20 steps'
lacks out ' 16 '
expect 0 "$VWN" compare mixed=runs/wide,runs/b --json
has out '"step":12,'
has out '"step_most":20,'

# FLOPs of training: three times the forward products, for every token, through the stop
per=$("$VWN" cost model.vwn --json | grep -o '"flops_per_token":[0-9.e+]*' | head -n 1 | sed 's/.*://')
expect 0 "$VWN" compare runs/b --by flops --metric loss --smooth 1 --json
same "$(key flops)" "$(echo "$per" | awk '{ printf "%.12g", 3 * $1 * 20 * 64 }')" "FLOPs of 20 steps"
same "$(key last)" "$(value runs/b/events.jsonl step loss 20)" "the last loss"
[ "$(tr '[' '\n' < out | grep -c '^[0-9.e+]*,[0-9.]*\]')" -eq 20 ] || fail "20 steps are 20 points"

# a mean over five points around each
expect 0 "$VWN" compare runs/a --metric loss --smooth 5 --json
wanted=$(for i in 8 9 10 11 12; do value runs/a/events.jsonl step loss $i; done | awk '{ s += $1 } END { printf "%.12g", s / 5 }')
same "$(grep -o '\[10,[0-9.]*\]' out | sed 's/.*,\(.*\)\]/\1/')" "$wanted" "the smoothed loss of step 10"

expect 0 "$VWN" compare runs/a runs/b --csv
[ "$(wc -l < out)" -eq 9 ] || fail "four evaluations of two runs and a head"
has out "\"a\",\"runs/a\",10,640,"

# seconds add up through a stop
expect 0 "$VWN" compare runs/b --by time --json
tr '[' '\n' < out | sed -n 's/^\([0-9.e+-]*\),.*/\1/p' | sort -g -c || fail "time goes back"

# they are of the first step of each start on: two starts, of which one warns before it begins and one has compiled for 20 s
mkdir runs/kept
awk 'function line(event, step, seconds) { printf "{\"v\":1,\"event\":\"%s\",\"step\":%d,\"steps\":9,\"tokens\":%d,\"loss\":2,\"seconds\":%s}\n", event, step, step, seconds }
    BEGIN { line("start", 0, 1); line("compile", 0, 21); line("step", 3, 24); line("end", 3, 24.5)
        line("warning", 3, 0.25); line("start", 3, 0.5); line("compile", 3, 1); line("step", 6, 2); line("note", 6, 2.5); line("end", 6, 3)
        line("warning", 6, 30); line("start", 6, 40); line("compile", 6, 41); line("growth", 6, 42); line("compile", 6, 60); line("step", 9, 61) }' > runs/kept/events.jsonl
expect 0 "$VWN" runs runs/kept --json
same "$(key seconds)" 7.5 "the time of three starts, 3.5 + 2 + 1 + 1 s"
expect 0 "$VWN" train model.vwn --run runs/longer -q --until '10 steps'
expect 0 "$VWN" train model.vwn --run runs/longer -q --resume --set 'train.length=20 steps'
expect 0 "$VWN" train model.vwn --run runs/longer -q --resume --set 'train.length=30 steps'
grep -E '"event":"(start|compile|warning)"' runs/longer/events.jsonl > before
[ "$(grep -c '"seconds":0}' before)" -eq "$(grep -c . before)" ] || fail "what lies before the first step is counted: $(cat before)"
[ "$(grep -c '"event":"warning"' before)" -ge 2 ] || fail "no start warns"
sum=$(grep '"event":"end"' runs/longer/events.jsonl | sed 's/.*"seconds":\([0-9.e-]*\)}/\1/' | awk '{ s += $1 } END { if (NR != 3) exit 1; printf "%.12g", s }')
expect 0 "$VWN" runs runs/longer --json
same "$(key seconds)" "$sum" "the time of three starts"

# every point of the picture lies in it
expect 0 "$VWN" compare seeds=runs/a,runs/b runs/wide --svg 'curves & "more".svg' --metric loss
[ "$(grep -c '<path class="c s' 'curves & "more".svg')" -eq 2 ] || fail "two curves"
grep -o 'class="c s[0-9]" d="[^"]*"' 'curves & "more".svg' | sed 's/.*d="//; s/"//' | tr 'ML' '  ' | tr ' ' '\n' | grep . |
    awk 'NR % 2 { if ($1 < 62 || $1 > 610) exit 1; n++ } END { exit n < 30 }' || fail "points lie outside"
tail -n 1 'curves & "more".svg' | grep -q '^</svg>$' || fail "the picture does not end"
# thirty names, longer than there was room for: each has a line of its own, inside (report_seen.sh measures them as a browser draws them)
for i in $(seq 30); do cp -r runs/a "runs/a-run-whose-name-says-all-that-was-changed_D-$i"; done
expect 0 "$VWN" compare runs/a-run-whose-name-* --svg long.svg
sed -n 's/.*viewBox="0 0 \([0-9]*\) \([0-9]*\)".*/\1 \2/p' long.svg > box
sed -n 's/.*<text x="\([0-9]*\)" y="\([0-9.]*\)">\(a-run-whose-name[^<]*\)<.*/\1 \2 \3/p' long.svg | sort -g -k2 > names
[ "$(wc -l < names)" -eq 30 ] || fail "thirty names"
awk 'NR == FNR { wide = $1; high = $2; next } { if ($1 + 7 * length($3) > wide || $2 < 40 || $2 > high - 40 || ($2 - was < 14.9 && was)) { print; bad = 1 } was = $2 }
    END { exit bad }' box names > clipped || fail "clipped, or one above the other: $(cat clipped)"
# a path alone may have commas
cp -r runs/a 'runs/a, as it was, and more'
expect 0 "$VWN" compare 'runs/a, as it was, and more' runs/b
has out 'a, as it was, and more'
# no extreme of a long curve is left out: the highest loss of 3,000 is at step 1,234
mkdir runs/long
awk 'BEGIN { print "{\"v\":1,\"event\":\"start\",\"step\":0,\"steps\":3000,\"tokens\":0,\"train_flops_per_token\":10,\"seconds\":0}"
    for (i = 1; i <= 3000; i++) printf "{\"v\":1,\"event\":\"step\",\"step\":%d,\"steps\":3000,\"tokens\":%d,\"loss\":%s,\"seconds\":%d}\n", i, i, i == 1234 ? 3 : 2, i }' > runs/long/events.jsonl
cp runs/a/resolved.vwn runs/long/
expect 0 "$VWN" compare runs/long --metric loss --smooth 1 --svg long.svg
grep -o 'class="c s0" d="[^"]*"' long.svg | tr 'ML' '  ' | tr ' ' '\n' | sed -n '4,$p' | awk 'NR % 2 == 0 { y[$1 + 0] = 1; n++ } END { for (v in y) k++; exit !(k == 2 && n > 200 && n < 1200) }' ||
    fail "one loss of 3,000 is not drawn"
expect 5 "$VWN" compare runs/a --svg nowhere/curves.svg
has err 'cannot write nowhere/curves.svg'

# what is damaged or still being written is passed over
cp -r runs/a runs/broken
{ head -n 4 runs/a/events.jsonl; echo '{"v":1,"event":"eval","st'; tail -n +5 runs/a/events.jsonl; printf '{"v":1,"eve'; } > runs/broken/events.jsonl
expect 0 "$VWN" compare runs/broken runs/a --json
has err 'runs/broken/events.jsonl:5: 1 damaged line is passed over'
[ "$(grep -c 'damaged line' err)" -eq 1 ] || fail "said once"
same "$(key value)" "$(value runs/a/events.jsonl eval eval_loss 20)" "the last evaluation"

# a folder is the runs in it
mkdir two && cp -r runs/a runs/b two
expect 0 "$VWN" compare two/a two/b --json
cp out named
expect 0 "$VWN" compare two --json
cmp -s out named || fail "a folder of runs is not its runs"
rm -r two
expect 2 "$VWN" compare runs/a runs/none
has err '`runs/none` is no run directory'
expect 2 "$VWN" compare runs/a --metric loss.of.nobody
has err 'has written no `loss.of.nobody`'
sed -i 's/"train_flops_per_token":[0-9.e+]*,//' runs/broken/events.jsonl
expect 2 "$VWN" compare runs/broken --by flops
has err 'has not written its FLOPs'
expect 0 "$VWN" compare runs/broken
expect 2 "$VWN" compare runs/a --csv --json
finish
