# compare.sh - `vwn compare`: numbers of the table and the points against the events themselves, computed again with awk;
# groups of seeds; a run that goes on after a stop; damaged lines; a picture whose points lie in it.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
cat > model.vwn <<EOF
edition = 1
import "std/transformer"
import "std/connections"

let D = 16

model small {
  context    = 16
  width      = D
  mask       = causal
  init       = normal(std = 0.1)
  out_init   = normal(std = 0.1)
  connection = residual()
  pre_norm   = rms_norm(eps = 1e-6)

  embed tokens { vocab = 256 }
  ffn { hidden = 24, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }
}

train {
  data      = text_file("text.txt", val = 10%)
  tokenizer = bytes()
  batch     = 4 seqs
  length    = 20 steps
  seed      = 1
  precision = fp32
  optimizer adamw { lr = constant(peak = 1e-2), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval       { every = 5 steps, batches = 2 }
  checkpoint { every = 5 steps, keep = 9 }
  log        { every = 1 steps }
}
EOF
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

# every point of the picture lies in it
expect 0 "$VWN" compare seeds=runs/a,runs/b runs/wide --svg 'curves & "more".svg' --metric loss
[ "$(grep -c '<path class="c s' 'curves & "more".svg')" -eq 2 ] || fail "two curves"
grep -o 'class="c s[0-9]" d="[^"]*"' 'curves & "more".svg' | sed 's/.*d="//; s/"//' | tr 'ML' '  ' | tr ' ' '\n' | grep . |
    awk 'NR % 2 { if ($1 < 62 || $1 > 610) exit 1; n++ } END { exit n < 30 }' || fail "points lie outside"
tail -n 1 'curves & "more".svg' | grep -q '^</svg>$' || fail "the picture does not end"
expect 5 "$VWN" compare runs/a --svg nowhere/curves.svg
has err 'cannot write nowhere/curves.svg'

# what is damaged or still being written is passed over
cp -r runs/a runs/broken
{ head -n 4 runs/a/events.jsonl; echo '{"v":1,"event":"eval","st'; tail -n +5 runs/a/events.jsonl; printf '{"v":1,"eve'; } > runs/broken/events.jsonl
expect 0 "$VWN" compare runs/broken runs/a --json
has err 'runs/broken/events.jsonl:5: 1 damaged line is passed over'
[ "$(grep -c 'damaged line' err)" -eq 1 ] || fail "said once"
same "$(key value)" "$(value runs/a/events.jsonl eval eval_loss 20)" "the last evaluation"

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
