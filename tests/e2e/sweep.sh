# sweep.sh - `vwn sweep`: which points there are against awk, what they cost against `vwn cost` of each alone, runs and tables
# against single runs, any number at a time, kill -9 and Ctrl-C anywhere, pruning against a sort, what is refused.
# When: quick, first, released.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
{ small_model 'let H    = 24
let rate = 1e-2
let act  = gelu' '  embed tokens { vocab = 256 }
  attention { heads = 2 }
  ffn { hidden = H, activation = act }
  head lm { norm = rms_norm(eps = 1e-6) }'
small_train '  length    = 12 steps
  optimizer adamw { lr = constant(peak = rate), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval       { every = 2 steps, batches = 2 }
  checkpoint { every = 2 steps, keep = 9 }'; } > model.vwn
cat > sizes.vwn <<EOF
edition = 1
import "model.vwn" as m

sweep sizes {
  of = m
  vary {
    D    = [8, 12, 16]
    H    = range(16, 32, 2)
    rate = [1e-2, 2e-2, 3e-2]
  }
  zip    = [D, rate]
  let act = if D > 12 then relu else gelu
  skip   = D == 12 and H == 32
  seeds  = [1, 2]
  order  = interleaved
  report = table(rows = H, columns = D, value = eval.loss, spread = seeds)
}
EOF
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) { gsub(/"/, "", $i); if ($i == name) c = i } next } { gsub(/"/, "", $c); print $c }' "$2"; }
# without the times, which differ from run to run
timeless() { cut -d, -f1-15 "$1"; }

# ---- the points ----
expect 0 "$VWN" check sizes.vwn
has out 'sweep sizes: 10 points over 3 axes, 5 settings, 1 skipped'
expect 0 "$VWN" sweep sizes.vwn --list --csv
empty err
mv out list.csv
if script -qec true typed > out 2> err < /dev/null; then # a terminal sees how far it is, in one line
    expect 0 env TERM=xterm script -qec "$VWN sweep sizes.vwn --list --csv > typed.csv" typed
    [ "$(grep -c ' counted' out)" -eq 1 ] || fail "what is counted is more than one line"
    has out '5 of 5 counted'
    cmp -s typed.csv list.csv || fail "a list at a terminal is another list"
fi
awk 'BEGIN { n = split("8 12 16", d); split("0.01 0.02 0.03", r); m = split("16 32", h)
             for (i = 1; i <= n; i++) for (k = 1; k <= m; k++) if (!(d[i] == 12 && h[k] == 32)) print "D-" d[i] "_H-" h[k] "_rate-" r[i] }' > wanted
column point list.csv | cmp -s - wanted || fail "points: $(column point list.csv)"
sed 1d list.csv | tr -d '"' | while IFS=, read -r name d h rate _ live stored flops width kv memory _; do
    act=gelu
    [ "$d" -gt 12 ] && act=relu
    "$VWN" cost model.vwn --set D=$d --set H=$h --set rate=$rate --set act=$act --json > cost
    for pair in live=$live stored=$stored flops_per_token=$flops kv_at_context=$kv; do
        got=$(grep -o "\"${pair%=*}\":[0-9.e+]*" cost | head -n 1 | sed 's/.*://')
        [ "$got" = "${pair#*=}" ] || echo "$name: $pair, vwn cost says $got"
    done
    # memory has what the compiler keeps in it, in pieces of 16 KiB
    grep -o '"bytes_total":[0-9]*' cost | sed 's/.*://' | awk -v m="$memory" '{ exit !(m > 0.995 * $1 && m < 1.005 * $1) }' || echo "$name: memory $memory"
    [ "$width" = "$d" ] || echo "$name: mean width $width"
done > differ
[ -s differ ] && fail "$(cat differ)"
[ ! -e runs ] || fail "a list leaves a folder"
# the pages of a point's context are those of the one before: nothing that is counted depends on it, or on how many count
expect 0 "$VWN" sweep sizes.vwn --list --csv --jobs 1
cmp -s out list.csv || fail "one at a time, a list is another one: $(diff out list.csv)"
# at a terminal the points that are counted, and the table below
expect 0 env TERM=xterm script -qec "stty cols 80; $VWN sweep sizes.vwn --list" typed
tr '\r' '\n' < typed | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' > lines
grep -qx '5 of 5 counted' lines || fail "the last is counted: $(cat lines)"
grep -q '^  point ' lines || fail "the table begins a line: $(cat lines)"
expect 0 "$VWN" sweep sizes.vwn --list
lacks err counted

# ---- at a terminal a line says which point is planned, and leaves nothing behind; elsewhere, and with -q, there is none ----
expect 0 env TERM=xterm script -qec "stty cols 30; $VWN sweep model.vwn --vary D=8,12 --run planned" typed
tr '\r' '\n' < typed | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' > lines
[ "$(grep -cx '   Planning the points of mod' lines)" -eq 1 ] || fail "the file is planned: $(cat lines)"
for point in '1/2 D-8' '2/2 D-12'; do # its kernels before all training, then the run
    [ "$(grep -cx "   Planning $point" lines)" -eq 2 ] || fail "$point is planned: $(cat lines)"
done
# what a reader has before him in the end
sed 's/.*\r\x1b\[K//; s/\x1b\[[0-9;]*[A-Za-z]//g' typed > stays
lacks stays Planning
expect 0 env TERM=xterm script -qec "$VWN sweep model.vwn --vary D=8,12 --run planned --overwrite -q" typed
lacks typed Planning
rm -r runs

# ---- training: any number at a time, and each as a single run ----
expect 0 "$VWN" sweep sizes.vwn -q --csv --svg loss.svg
mv out one.csv
expect 0 "$VWN" sweep sizes.vwn -q --csv --jobs 3 --threads 3 --run three
timeless one.csv > a
timeless out | cmp -s - a || fail "three at a time give other numbers"
[ "$(grep -o '<circle' loss.svg | wc -l)" -eq 5 ] || fail "five points in the picture"
expect 0 "$VWN" train model.vwn -q --run alone --set D=16 --set H=32 --set rate=0.03 --set act=relu --set train.seed=2
last() { grep '"event":"eval"' "$1/events.jsonl" | tail -n 1 | grep -o '"eval_loss":[0-9.e+-]*' | sed 's/.*://'; }
got=$(grep 'D-16_H-32_rate-0.03_seed-2' one.csv | tr -d '"' | cut -d, -f15)
[ "$got" = "$(last runs/alone)" ] || fail "the point has $got, a run of its own $(last runs/alone)"
expect 0 "$VWN" compare runs/sizes/D-16_H-32_rate-0.03_seed-2 runs/alone
has out '0.0000 ='
expect 0 "$VWN" train model.vwn -q --run runs/sizes/D-8_H-16_rate-0.01_seed-1 --resume

# means and spreads over seeds, and the table of the file
expect 0 "$VWN" sweep sizes.vwn -q --resume
cp out table.txt
wanted=$(grep 'D-16_H-16_' one.csv | cut -d, -f15 | awk '{ s += $1; a[NR] = $1 } END { d = a[1] - a[2]; printf "%.4f (%.4f)", s / 2, d < 0 ? -d : d }')
has out "$wanted"
has out 'eval.loss: H down, D across; spread in brackets'
[ "$(sed -n '/H down/,$p' out | sed -n 4p | grep -o '([0-9.]*)' | wc -l)" -eq 2 ] || fail "what is skipped is empty in the table"
wanted=$(sed 1d one.csv | awk -F, '{ split($1, p, "_seed"); s[p[1]] += $15 / 2 } END { for (k in s) printf "%.4f %s\n", s[k], k }' | tr -d '"' | sort -n | head -n 1)
grep -q "^\(best\|lowest\): ${wanted#* }, eval ${wanted% *} +-" out || fail "the lowest is $wanted"
# with intervals, and the word best, as `vwn compare` of its folder has them
expect 0 "$VWN" compare runs/sizes --json
cp out compared
sed 's/.*"best":\(true\|false\),"tied":\[\([^]]*\)\].*/\1 \2/; s/"//g; s/,/, /g' compared > verdict_of
case $(cat verdict_of) in
'true '*) grep -q '^best: .*: its difference to each other is more than seeds explain' table.txt || fail "compare says best: $(tail -n 1 table.txt)" ;;
*) grep -q "^lowest: .*, tied with $(sed 's/^false //' verdict_of): differences" table.txt || fail "compare says $(cat verdict_of): $(tail -n 1 table.txt)" ;;
esac
tr '{' '\n' < compared | sed -n 's/.*"name":"\([^"]*\)","runs":2,.*"interval":\([0-9.e-]*\),.*/\1 \2/p' | awk '{ printf "%s %.4f\n", $1, $2 }' | sort > wanted
awk '$1 ~ /^D-/ && NF > 10 { print $1, $NF }' table.txt | sort | cmp -s wanted - || fail "other intervals: $(cat wanted)"
[ "$(wc -l < wanted)" -eq 5 ] || fail "five settings"
# interleaved: the first seed first, and at every moment each value of an axis about as often as the others
grep -o '"name":"D-[^"]*' runs/sizes/sweep.json | sed 's/.*"//' > order
[ "$(head -n 5 order | grep -c seed-1)" -eq 5 ] || fail "the first seed does not come first"
[ "$(head -n 3 order | sed 's/_.*//' | sort -u | wc -l)" -eq 3 ] || fail "three points have three values of D"

# ---- killed anywhere ----
killed() { # seconds: lets a sweep run so long
    timeout -s KILL "$1" "$VWN" sweep sizes.vwn -q --run killed ${2:-} --jobs 2 > /dev/null 2>&1
}
more=
for seconds in 0.15 0.3 0.2 0.5 0.35; do
    killed $seconds $more
    [ -e runs/killed/sweep.json ] && more=--resume
done
[ -n "$more" ] || fail "the sweep was never begun"
expect 0 "$VWN" sweep sizes.vwn -q --run killed --resume
cmp -s out table.txt || fail "after kill -9 the table is another one"
[ "$(ls runs/killed | grep -c '^D-')" -eq 10 ] || fail "ten runs"
"$VWN" sweep sizes.vwn -q --run stopped --jobs 2 > /dev/null 2> err &
sleep 0.4
kill -TERM $!
wait $!
status=$?
[ $status -eq 130 ] || [ $status -eq 0 ] || fail "a sweep that is interrupted ends with $status"
expect 0 "$VWN" sweep sizes.vwn -q --run stopped --resume
cmp -s out table.txt || fail "after an interrupt the table is another one"
# nothing is done twice: events of a run that was killed are those of one that was not
sed 's/"seconds":.*//; s/"tok_s".*//' runs/killed/D-16_H-32_rate-0.03_seed-2/events.jsonl | grep -c '"event":"step"' | grep -qx 12 || fail "12 steps"

# ---- runs that keep no checkpoint: killed anywhere, and between the end of a run and the manifest that says so ----
sed 's/keep = 9/keep = 0/' model.vwn > none.vwn
none="$VWN sweep none.vwn --vary D=8,12,16 --vary rate=1e-2,2e-2 -q --csv"
expect 0 $none --run no_ckpt
cut -d, -f1-13 out > a
[ "$(column step out | sort -u)" = 12 ] && [ -z "$(find runs/no_ckpt -name '*.safetensors')" ] || fail "six runs to their ends, without checkpoints"
cat runs/no_ckpt/*/events.jsonl > before
sed -i 's/"state":"done"/"state":"waiting"/; s/,"step":.*"eval_loss":[^,}]*//' runs/no_ckpt/sweep.json
grep -q '"step"' runs/no_ckpt/sweep.json && fail "the manifest still knows results: $(cat runs/no_ckpt/sweep.json)"
expect 0 $none --run no_ckpt --resume
cut -d, -f1-13 out | cmp -s - a || fail "ended runs that no manifest knew: $(cat out)"
cat runs/no_ckpt/*/events.jsonl | cmp -s - before || fail "an ended run is trained again"
more=
for seconds in 0.1 0.25 0.15 0.4 0.2; do
    timeout -s KILL $seconds $none --run cut_off $more --jobs 2 > /dev/null 2>&1
    [ -e runs/cut_off/sweep.json ] && more=--resume
done
expect 0 $none --run cut_off $more
cut -d, -f1-13 out | cmp -s - a || fail "without checkpoints and killed: $(cat out)"

# ---- the command line ----
expect 0 "$VWN" sweep model.vwn --vary D=8,12 --seeds 3 --list
has err '`--seeds 3` is one seed, 3; 3 of them are `--seeds 1,2,3`'
has out 'each with the seed 3: 2 runs'
expect 0 "$VWN" sweep model.vwn --vary D=8,12 --seeds 1,4 --list
lacks err 'one seed'
has out 'each with the seeds 1, 4: 4 runs'
expect 1 "$VWN" sweep model.vwn --vary D=8,12 --set D=16 --list
has err '`D` is set and varied'
sed 's/text\.txt/none.txt/' model.vwn > gone.vwn # what cannot be trained is not compiled
expect 5 "$VWN" sweep gone.vwn --vary D=8,12 --run gone
has err 'none.txt'
lacks err 'compiled in'
rm -r runs/gone
expect 1 "$VWN" sweep model.vwn
has err 'model.vwn has no `sweep`, and no `--vary` is given'
expect 0 "$VWN" sweep model.vwn --vary D=8,12 --vary 'rate=range(1e-3, 1e-1, 3, scale = log)' --set H=16 --list --csv
column rate out | sort -u | tr '\n' ' ' | grep -qx '0.001 0.01 0.1 ' || fail "rates: $(column rate out)"
[ "$(wc -l < out)" -eq 7 ] || fail "six points and a head"
expect 0 "$VWN" sweep sizes.vwn --set D=12 --vary H=16,20,24 --list --csv
[ "$(sed 1d out | wc -l)" -eq 9 ] || fail "D is fixed: three rates, three H"
lacks out '"D"'
expect 0 "$VWN" sweep model.vwn --seeds 1,2,3 --until '2 steps' --run seeds -q --csv
[ "$(column seed out | tr '\n' ' ')" = "1 2 3 " ] || fail "three seeds"
[ "$(column step out | sort -u)" = 2 ] || fail "two steps each"
expect 0 "$VWN" sweep model.vwn --seeds 1,2,3 --run seeds -q --csv --resume
[ "$(column step out | sort -u)" = 12 ] || fail "the same sweep, now to the end"
[ "$(grep -c '"event":"start"' runs/seeds/seed-1/events.jsonl)" -eq 2 ] || fail "its runs went on from their checkpoints"
expect 0 "$VWN" sweep model.vwn --vary D=8,12 --until '128 tokens' --run tokens -q --csv
[ "$(column step out | sort -u)" = 2 ] || fail "128 tokens are two steps of four times 16"
expect 0 "$VWN" sweep model.vwn --vary D=8,12 --until '0.000001 s' --run time -q --csv
[ "$(column step out | sort -u)" = 1 ] || fail "no time: one step"
expect 0 sh -c "\"$VWN\" sweep - --vary D=8,12 --list --csv < model.vwn"
[ "$(wc -l < out)" -eq 3 ] || fail "from the standard input"

# ---- halton, drawn numbers ----
drawn() { printf 'edition = 1\nimport "model.vwn" as m\nsweep s {\n  of = m\n  vary { D = [8, 16], rate = between(0, 1), H = between(8, 64, round = 8) }\n  random = %s\n}\n' "$1" > drawn.vwn; }
drawn 'draws(16, sequence = halton)'
expect 0 "$VWN" sweep drawn.vwn --list --csv --set D=8
# van der Corput in base 2, Halton's second axis in base 3
awk 'function radical(i, b,   x, f) { x = 0; f = 1; while (i > 0) { f /= b; x += f * (i % b); i = int(i / b) } return x }
     BEGIN { for (i = 1; i <= 16; i++) { h = 8 + 56 * radical(i, 3); printf "%.6g %d\n", radical(i, 2), int(h / 8 + 0.5) * 8 } }' > wanted
sed 1d out | tr -d '"' | awk -F, '{ printf "%.6g %d\n", $2, $3 }' | cmp -s - wanted || fail "halton: $(cat out)"
head -n 4 wanted | awk '{ printf "%s ", $1 }' | grep -qx '0.5 0.25 0.75 0.125 ' || fail "van der Corput's own numbers"
drawn 8
expect 0 "$VWN" sweep drawn.vwn --list --csv --set D=8
sed 1d out | cut -d, -f1 > eight
drawn 'draws(40)'
expect 0 "$VWN" sweep drawn.vwn --list --csv --set D=8
sed 1d out | cut -d, -f1 | head -n 8 | cmp -s - eight || fail "more draws change the first ones"
column rate out | awk '{ s += $1; if ($1 < 0 || $1 >= 1) bad = 1 } END { exit bad || s / NR < 0.3 || s / NR > 0.7 }' || fail "rates are not even"
[ "$(column rate out | sort -u | wc -l)" -eq 40 ] || fail "forty different rates"
drawn 3
expect 0 "$VWN" sweep drawn.vwn --list --csv --set D=8 --random 8 # in the place of what the file says
sed 1d out | cut -d, -f1 | cmp -s - eight || fail "--random draws others"
expect 0 "$VWN" sweep model.vwn --vary 'rate=between(1e-4, 1e-2, scale = log)' --random 'draws(5, seed = 2)' --list --csv
[ "$(sed 1d out | wc -l)" -eq 5 ] || fail "five rates without a sweep in the file"
expect 1 "$VWN" sweep model.vwn --vary 'rate=between(1e-4, 1e-2)' --list
has err 'vwn sweep --random 20'
expect 1 "$VWN" sweep model.vwn --vary rate=1e-3 --random 5 --list
has err 'without an axis that is drawn'
drawn 'draws(8, seed = 7)'
expect 0 "$VWN" sweep drawn.vwn --list --csv --set D=8
sed 1d out | cut -d, -f1 | cmp -s - eight && fail "another seed draws the same"

# ---- schedules of widths: kernels are compiled before the first point, and then none ----
sed 's/between(16, 24,/between(3, 5,/' "$VWN_SOURCE/examples/37_sweep_widths.vwn" > widths.vwn # the example, of fewer layers
expect 0 env VWN_CACHE="$PWD/fresh" "$VWN" sweep widths.vwn --random 3 --run widths --until '2 steps' \
    --set 'train.data=text_file("text.txt", val = 10%)'
grep -q '^ *Compiling [1-9][0-9]* kernels$' err || fail "nothing is said while the kernels are compiled"
grep -o '[0-9]* kernels of 3 files: 0 cached, [1-9][0-9]* compiled' err || fail "the kernels of all points come first"
[ "$(cat runs/widths/*/events.jsonl | grep -c '"event":"compile".*: [0-9]* cached, 0 compiled')" -eq 3 ] || fail "a point compiles: $(grep -h '"compile"' runs/widths/*/events.jsonl)"
find runs/widths -name '*.safetensors' > left
[ "$(wc -l < left)" -eq 3 ] || fail "points that are stopped before their end keep a checkpoint: $(cat left)"
ls runs/widths | grep -q '^L-[0-9]*_share-3$' || fail "names of drawn lists: $(ls runs/widths)"

# ---- pruning: at each rung a third stays, by the losses that the events tell ----
cat > prune.vwn <<EOF
edition = 1
import "model.vwn" as m
sweep prune {
  of = m
  vary { rate = [1e-4, 1e-3, 3e-3, 1e-2, 2e-2, 3e-2] }
  prune = halving(rungs = [4 steps, 8 steps], keep = 50%)
}
EOF
expect 0 "$VWN" sweep prune.vwn -q --csv
mv out prune.csv
[ "$(column step prune.csv | sort | uniq -c | awk '{ printf "%d:%d ", $2, $1 }')" = "12:2 4:3 8:1 " ] || fail "rungs: $(column step prune.csv)"
at() { for rate in 0.0001 0.001 0.003 0.01 0.02 0.03; do
    grep "\"event\":\"eval\",\"step\":$1," "runs/prune/rate-$rate/events.jsonl" | grep -o '"eval_loss":[0-9.e+-]*' | sed "s/.*:\(.*\)/\1 $rate/"
done | sort -g | head -n "$2" | sed 's/.* //' | sort -g | tr '\n' ' '; }
[ "$(at 4 3)" = "$(awk -F, 'NR > 1 && $9 > 4 { gsub(/"/, "", $2); print $2 }' prune.csv | sort -g | tr '\n' ' ')" ] || fail "the first rung"
[ "$(at 8 2)" = "$(awk -F, 'NR > 1 && $9 > 8 { gsub(/"/, "", $2); print $2 }' prune.csv | sort -g | tr '\n' ' ')" ] || fail "the second rung"
sed 's/rate = \[/rate = [2e-4, /' prune.vwn > wider.vwn
expect 2 "$VWN" sweep wider.vwn --run prune --resume
has err 'a sweep that is pruned, of 6 points; with 7 others would go on'
for other in 's/keep = 50%/keep = 25%/' 's/8 steps/10 steps/'; do
    sed "$other" prune.vwn > wider.vwn
    expect 2 "$VWN" sweep wider.vwn --run prune --resume
    has err 'a sweep '
done
more=
for seconds in 0.2 0.4 0.3; do
    timeout -s KILL $seconds "$VWN" sweep prune.vwn -q --run pruned $more --jobs 2 > /dev/null 2>&1
    [ -e runs/pruned/sweep.json ] && more=--resume
done
expect 0 "$VWN" sweep prune.vwn -q --csv --run pruned $more
cut -d, -f1-12 prune.csv > a
cut -d, -f1-12 out | cmp -s - a || fail "a pruned sweep that was killed ends otherwise"

# ---- points may be added: the old ones are kept, and nothing of them is trained again ----
cat > added.vwn <<EOF
edition = 1
import "model.vwn" as m
sweep added {
  of = m
  vary { rate = between(1e-3, 1e-2), H = between(8, 64, round = 8) }
  random = 3
  until = 2 steps
}
EOF
losses() { column point "$1" > points; column eval_loss "$1" | paste -d " " points - | sort; }
expect 0 "$VWN" sweep added.vwn -q --csv
losses out > three_drawn
cat runs/added/*/events.jsonl > events_of_three
expect 0 "$VWN" sweep added.vwn --random 7 --run whole -q --csv
losses out > seven_drawn
sed -i 's/random = 3/random = 7/' added.vwn
expect 0 "$VWN" sweep added.vwn --resume --csv
lacks err Planning
has err 'added: 7 points in runs/added, 3 of them finished, 4 new'
losses out | cmp -s - seven_drawn || fail "seven draws, three of them earlier: $(cat out)"
[ "$(comm -12 three_drawn seven_drawn | wc -l)" -eq 3 ] || fail "the first three draws are among the seven"
sed 1d out | cut -d, -f1 | tr -d '"' | head -n 3 | while read -r point; do cat "runs/added/$point/events.jsonl"; done | sort > a
sort events_of_three | cmp -s - a || fail "the first three points are as they were"
expect 2 "$VWN" sweep added.vwn --resume --random 5
has err 'a sweep with other points: its point 6'
expect 2 "$VWN" sweep added.vwn --resume --random 'draws(9, seed = 3)'
has err 'a sweep with other points: its point 1'
# an axis with one value more, in the middle, and a sweep in the file that it varies
{ cat model.vwn; printf 'sweep longer {\n  vary { D = [8, 16] }\n  until = 2 steps\n}\n'; } > own.vwn
expect 0 "$VWN" sweep own.vwn -q --csv
losses out > two_widths
sed -i 's/D = \[8, 16\]/D = [8, 12, 16, 24]/' own.vwn
expect 0 "$VWN" sweep own.vwn --resume --csv
has err '4 points in runs/longer, 2 of them finished, 2 new'
losses out > a
[ "$(comm -12 two_widths a | wc -l)" -eq 2 ] || fail "the two first widths keep their losses"
[ "$(column step out | sort -u)" = 2 ] || fail "all four have two steps"
sed -i 's/let H    = 24/let H    = 32/' own.vwn
expect 2 "$VWN" sweep own.vwn --resume
has err 'a sweep of an earlier text of `own.vwn`'
# killed before the added points are trained: they are waiting, and the next call goes on
expect 0 "$VWN" sweep model.vwn --vary D=8,12 --until '2 steps' --run grows -q
expect 2 "$VWN" sweep model.vwn --vary D=8,12,16 --until '2 steps' --run grows --resume --set H=32
has err 'its point 1, `D-8`, is none of the 3 that this call has'
expect 0 "$VWN" sweep model.vwn --vary D=8 --set H=32 --until '2 steps' --run fixed -q
expect 2 "$VWN" sweep model.vwn --vary D=8 --until '2 steps' --run fixed --resume
has err "was started with \`--set 'H=32'\`: give that again"
timeout -s KILL 0.1 "$VWN" sweep model.vwn --vary D=8,12,16,20,24 --until '2 steps' --run grows --resume -q > /dev/null 2>&1
expect 0 "$VWN" sweep model.vwn --vary D=8,12,16,20,24 --until '2 steps' --run grows --resume -q --csv
[ "$(column state out | sort | uniq -c | awk '{ print $1, $2 }')" = "5 done" ] || fail "five points: $(cat out)"

# ---- what fails is named, and the others run ----
expect 1 "$VWN" sweep model.vwn --vary D=8,9,12 --run wrong --until '2 steps' --csv
has err 'D-9'
has err 'error[E'
[ "$(column state out | sort | uniq -c | awk '{ printf "%d %s ", $1, $2 }')" = "2 done 1 wrong " ] || fail "states: $(column state out)"
expect 1 "$VWN" sweep model.vwn --vary D=8,12,16 --vary train.seed=-1,-2 --run all --csv
[ "$(grep -c 'error\[E' err)" -le 2 ] || fail "what all points have wrong is shown once: $(cat err)"
[ "$(grep -c '^error: D-' err)" -eq 6 ] || fail "each of them is named"
# what the file itself has wrong is told before anything runs, as by `vwn check`
expect 1 "$VWN" check model.vwn --set train.seed=-1
grep '^error' err > a
expect 1 "$VWN" sweep model.vwn --vary D=8,12,16 --set train.seed=-1 --run none_of_it
grep '^error' err | cmp -s - a || fail "other messages than of check: $(cat err)"
[ ! -e runs/none_of_it ] || fail "a folder for a file that is wrong"
sed 's/^let D = 16/let D = 16\ncheck D > 16/' model.vwn > false.vwn
expect 3 "$VWN" sweep false.vwn --vary D=24,32 --list
has err 'check failed: D > 16'
expect 0 "$VWN" sweep false.vwn --vary H=24,32 --set D=24 --list
expect 1 "$VWN" sweep model.vwn --vary D=8,12 --set model.widht=32 --list
has err 'did you mean `--set model.width=32`?'

# ---- attributes that the file writes, as settings of all points and as axes: the file, a point's resume and check agree ----
{ cat model.vwn; cat <<EOF
sweep own_train {
  vary { train.optimizer.lr = [1e-3, 1e-2], train.batch = [2 seqs, 4 seqs], train.eval.every = [1 steps, 2 steps] }
  zip = [train.batch, train.eval.every]
  train.length = 4 steps
}
EOF
} > attributes.vwn
expect 0 "$VWN" check attributes.vwn
expect 0 "$VWN" sweep attributes.vwn -q --csv
[ "$(column step out | tr '\n' ' ')" = "4 4 4 4 " ] || fail "four points of four steps: $(cat out)"
point=runs/own_train/lr-0.01_batch-2_seqs_every-1_step
[ "$(grep -c '"event":"eval"' $point/events.jsonl)" -eq 4 ] || fail "an evaluation behind every step: $(ls runs/own_train)"
expect 0 "$VWN" train attributes.vwn -q --run $point --resume
expect 0 "$VWN" train model.vwn -q --run by_hand --set train.optimizer.lr=1e-2 --set 'train.batch=2 seqs' --set 'train.eval.every=1 steps' --set 'train.length=4 steps'
[ "$(last $point)" = "$(last runs/by_hand)" ] || fail "$(last $point) in a sweep, $(last runs/by_hand) by hand"

# ---- a rung before anything is evaluated: refused by both, also where the command line makes it so ----
sed 's/rungs = \[4 steps/rungs = [1 steps/' prune.vwn > early.vwn
for verb in check sweep; do
    expect 1 "$VWN" $verb early.vwn
    has err 'points are compared after 1 steps, before anything is evaluated'
done
expect 1 "$VWN" sweep prune.vwn --set 'train.eval.every=5 steps' --run seldom
has err 'points are compared after 4 steps, before anything is evaluated'
expect 1 "$VWN" sweep prune.vwn --vary 'train.eval.every=2 steps,8 steps' --run seldom
[ ! -e runs/seldom ] || fail "a folder for a sweep that is refused"
expect 4 "$VWN" sweep model.vwn --vary rate=0.01,1000 --run far --csv --jobs 2
has err 'rate-1000: diverged: step '
[ "$(column state out | tr '\n' ' ')" = "done diverged " ] || fail "states: $(column state out)"
expect 4 "$VWN" sweep model.vwn --vary rate=0.01,1000 --run far -q --resume
has out 'diverged'
# a run of another file where a point's is to be: named, the others run, and nothing of it is touched
expect 0 "$VWN" sweep model.vwn --vary D=8,12,16 --until '2 steps' --run others -q
sed -i '/"name":"D-12"/s/"state":"done"/"state":"waiting"/; /"name":"D-16"/s/"state":"done"/"state":"waiting"/' runs/others/sweep.json
rm -r runs/others/D-12 runs/others/D-16
cp -r runs/alone runs/others/D-12
find runs/others/D-12 -type f ! -name lock -exec cksum {} + | sort > a
expect 5 "$VWN" sweep model.vwn --vary D=8,12,16 --until '2 steps' --run others --resume --csv
has err 'error: D-12: failed: the run was started with `--set'
[ "$(column state out | tr '\n' ' ')" = "done failed done " ] || fail "states: $(column state out)"
find runs/others/D-12 -type f ! -name lock -exec cksum {} + | sort | cmp -s - a || fail "a run of another file is changed"
expect 1 "$VWN" sweep model.vwn --vary D=8,9 --list
has out 'wrong'

# ---- what is refused, and what is damaged ----
expect 2 "$VWN" sweep sizes.vwn
has err 'already holds a sweep'
expect 2 "$VWN" sweep sizes.vwn --run none --resume
has err 'there is no sweep in `runs/none` to resume'
expect 2 "$VWN" sweep sizes.vwn nobody
has err 'has no sweep `nobody`; it has sizes'
expect 2 "$VWN" sweep model.vwn --vary D=8,16 --run sizes --resume
has err 'with other points'
expect 2 "$VWN" sweep sizes.vwn --resume --set D=12 --run sizes
has err 'with other points'
cp model.vwn saved.vwn
echo '# changed' >> model.vwn
expect 2 "$VWN" sweep sizes.vwn --resume
has err 'a sweep of an earlier text of `model.vwn`'
mv saved.vwn model.vwn
expect 1 "$VWN" sweep model.vwn --vary d=8,16
has err 'did you mean `D`?'
expect 1 "$VWN" sweep model.vwn
has err 'for example `--vary D=256,512`'
expect 1 "$VWN" sweep model.vwn --vary D
has err '`--vary` needs PATH=VALUES'
expect 2 "$VWN" sweep model.vwn --vary D=8 --list --svg x.svg
expect 2 "$VWN" sweep model.vwn --vary D=8 --by D
cp -r runs/sizes runs/cut
head -c 300 runs/sizes/sweep.json > runs/cut/sweep.json
expect 5 "$VWN" sweep sizes.vwn --run cut --resume
has err 'runs/cut/sweep.json is damaged'
has err 'the runs of its points are untouched'
cp runs/sizes/sweep.json runs/cut/
sed -i 's/"state":"done"/"state":"waiting"/' runs/cut/sweep.json
echo '{"v":1,"eve' >> runs/cut/D-8_H-16_rate-0.01_seed-1/events.jsonl
echo >> runs/cut/D-8_H-16_rate-0.01_seed-1/events.jsonl
expect 0 "$VWN" sweep sizes.vwn --run cut --resume -q
cmp -s out table.txt || fail "runs that were done are read again"
expect 0 "$VWN" sweep sizes.vwn --overwrite -q --until '2 steps' --csv
[ "$(column step out | sort -u)" = 2 ] || fail "begun anew"
expect 0 "$VWN" sweep model.vwn --vary D=8,12 --run lines --json --until '2 steps'
json out
[ "$(grep -c '"event":"point_end"' out)" -eq 2 ] || fail "two points end"
[ "$(grep '"event":"point_end"' out | grep -c '"eta":[0-9]')" -eq 2 ] && grep -q '"finished":2,.*"event":"point_end".*"eta":0,\|"event":"point_end".*"finished":2,.*"eta":0,' out ||
    fail "how long the others take is not told"
tail -n 1 out | grep -q '"event":"sweep","name":"small"' || fail "the table comes last"
# what the picture is over is known before anything is trained
expect 2 "$VWN" sweep sizes.vwn --run early --svg early.svg --by nothing
has err '`--by nothing`: an axis of the sweep, params, stored or flops is needed'
[ ! -e runs/early ] || fail "a folder for a picture that cannot be drawn"
# a folder holds a run or a sweep, never both; verbs of runs say what it is
expect 2 "$VWN" train model.vwn --run lines
has err '`runs/lines` holds a sweep'
expect 2 "$VWN" train model.vwn --run lines --overwrite
point=$(ls -d runs/lines/*/ | head -n 1)
expect 2 "$VWN" sweep model.vwn --vary D=8,12 --run "$point" --overwrite
has err 'holds a run: choose another directory'
[ ! -e "$point/sweep.json" ] || fail "a sweep in a run"
for verb in eval inspect 'inspect --stats'; do
    expect 2 "$VWN" $verb runs/lines
    has err '`runs/lines` is no run directory: it holds a sweep, whose runs are the folders in it: `runs/lines/*/`'
done
# those that look at several runs take its points, as if they were named
for verb in 'report -o page.html' export-log; do
    expect 0 "$VWN" $verb runs/lines/
    cat out page.html > of_sweep
    expect 0 "$VWN" $verb runs/lines/D-8 runs/lines/D-12
    cat out page.html | cmp -s - of_sweep || fail "$verb of a sweep is not that of its points"
done
expect 0 "$VWN" plot runs/lines loss --csv
cp out of_sweep
[ "$(head -n 1 of_sweep)" = 'step,"D-8","D-12"' ] || fail "curves of two points: $(head -n 5 of_sweep)"
expect 0 "$VWN" export-log runs/lines --tensorboard -o board
[ "$(ls board | tr '\n' ' ')" = 'D-12 D-8 ' ] || fail "a folder for each point"
# a run and measuring have their own place beside a sweep of their file
expect 0 "$VWN" sweep model.vwn --vary D=8 --until '1 steps' -q
[ -e runs/small-sweep/sweep.json ] && [ ! -e runs/small ] || fail "a sweep without a name is where the run of its file would be"
expect 0 "$VWN" train model.vwn -q --until '1 steps'
expect 0 "$VWN" sweep model.vwn --vary D=8 --until '2 steps' -q --resume
mkdir -p bench/runs && cp -r runs/small-sweep bench/runs/small && cp model.vwn text.txt bench/
expect 0 "$VWN" bench -C bench model.vwn --steps 1
# ---- watched: one is done after 10 s, one has 30 s to go, one has not begun: 30 s and the mean of 10 and 20 + 30 ----
mkdir -p runs/on/D-12
begins='/"event":"\(start\|compile\)"/!' # these stand before the time of a run
sed "$begins"'s/"seconds":[0-9.e-]*}/"seconds":10}/' runs/lines/D-8/events.jsonl > events.8
sed '/"event":"end"/d; '"$begins"'s/"seconds":[0-9.e-]*}/"seconds":20}/; s/"eta":[0-9]*/"eta":30/' runs/lines/D-12/events.jsonl > events.12
mkdir -p runs/on/D-8 && cp events.8 runs/on/D-8/events.jsonl && cp events.12 runs/on/D-12/events.jsonl
touch runs/on/D-12/lock runs/on/lock
sed '/"name":"D-12"/{ s/"state":"done"/"state":"waiting"/; h; s/D-12/D-16/; s/]}$/,/; s/$/,/; s/,,*$/,/; G; }' runs/lines/sweep.json > runs/on/sweep.json
tr -d '\n' < runs/on/sweep.json > whole && json whole
expect 0 "$VWN" watch runs/on --once --json
json out
has out '"state":"stopped","of":3,"finished":1,"eta":null'
expect 130 "$VWN" watch runs/on
has out 'runs/on:  stopped  1 of 3 points finished'
flock -F runs/on/lock sleep 20 &
holders=$!
flock -F runs/on/D-12/lock sleep 20 &
holders="$holders $!"
sleep 0.2
touch runs/on/D-12/events.jsonl
expect 0 "$VWN" watch runs/on --once --json
json out
has out '"name":"D-12","state":"running","step":2,'
has out '"name":"D-16","state":"waiting","step":null,'
eta=$(sed 's/.*"finished":1,"eta":\([0-9]*\),.*/\1/' out)
[ "$eta" -ge 57 ] && [ "$eta" -le 60 ] || fail "30 s of one and 30 s of another are $eta"
expect 0 "$VWN" watch runs/on --once
has out ' left'
kill $holders
expect 0 "$VWN" watch runs/lines
has out 'done  2 of 2 points finished'
expect 2 "$VWN" compare "$point" runs/lines/lock
has err '`runs/lines/lock` is no run directory: it is a file of a sweep, whose runs are `runs/lines/*/`'
# data that is missing is told in full once
sed 's/"text.txt"/"gone.txt"/' model.vwn > gone.vwn
expect 5 "$VWN" sweep gone.vwn --vary D=8,16,24 --run gone
[ "$(grep -c 'gone.txt: No such file' err)" -eq 1 ] && [ "$(grep -c 'failed, as D-' err)" -eq 2 ] || fail "told for each point: $(cat err)"
finish
