# plot.sh - `vwn plot`: schedules of a file against their formulas, computed again with awk, and against what a run that grows
# has written; widths over depth; drawings of a width; what cannot be drawn.
# When: quick, released.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
small_model 'let wide  = 24
let sizes = [24, 8, 40]
let rate  = cosine(peak = 1e-2, floor = 1e-3, warmup = 4 steps)' '  embed tokens { vocab = 256 }
  for layer in 1..3 {
    ffn { hidden = sizes[layer] + wide, activation = gelu }
  }
  head lm { norm = rms_norm(eps = 1e-6) }' > model.vwn
small_train '  length = 20 steps
  optimizer adamw { lr = rate, betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval { every = 5 steps, batches = 2 }' >> model.vwn
cp model.vwn plain.vwn
# near FILE FILE: rows of numbers that agree
near() {
    paste -d, "$1" "$2" | awk -F, '{ n = NF / 2; for (i = 1; i <= n; i++) { d = $i - $(n + i); if (d < 0) d = -d
        if (d > 1e-12 + 1e-6 * ($(n + i) < 0 ? -$(n + i) : $(n + i)) || ($i == "") != ($(n + i) == "")) { print NR ": " $0; bad = 1 } } } END { exit bad }' > differ ||
        fail "$3: $(head -n 3 differ)"
    [ "$(wc -l < "$1")" -eq "$(wc -l < "$2")" ] || fail "$3: $(wc -l < "$1") rows, wanted $(wc -l < "$2")"
}

# a cosine: (step + 1) / warmup of the peak, then half a cosine over what is left
expect 0 "$VWN" plot model.vwn train.optimizer.lr --csv
[ "$(head -n 1 out)" = 'step,"train.optimizer.lr"' ] || fail "the head of the table"
tail -n +2 out > got
awk 'BEGIN { pi = atan2(0, -1); for (s = 0; s < 20; s++) { x = s < 4 ? 0 : (s - 4) / 16
    printf "%d,%.12g\n", s + 1, s < 4 ? 1e-2 * (s + 1) / 4 : 1e-3 + 9e-3 * (1 + cos(pi * x)) / 2 } }' > wanted
near got wanted "the cosine"
expect 0 "$VWN" plot model.vwn rate 'if step < 4 then 1 else 0' 'step >= 4' --csv
tail -n +2 out > got
awk -F, '{ print $0 "," ($1 <= 4) "," ($1 > 4) }' wanted > 'more'
near got more "a let, and conditions"
expect 0 "$VWN" plot model.vwn train.optimizer.lr --csv --set 'rate=wsd(peak = 1e-2, floor = 2e-3, warmup = 3 steps, decay = 25%)'
tail -n +2 out > got
awk 'BEGIN { for (s = 0; s < 20; s++) { r = s < 3 ? 1e-2 * (s + 1) / 3 : s < 15 ? 1e-2 : 1e-2 - 8e-3 * (s - 15) / 5; printf "%d,%.12g\n", s + 1, r } }' > wanted
near got wanted "warm-up, constant, decay"
expect 0 "$VWN" plot model.vwn '2 * step + 1' 'train.optimizer.beta1' tokens epoch --csv
tail -n +2 out > got
windows=$(awk -v n="$(wc -c < text.txt)" 'BEGIN { print int((n - int(n * 0.1)) / 16) - 1 }') # one less than fit: they begin anywhere in the first
awk -v w=$windows 'BEGIN { for (s = 0; s < 20; s++) printf "%d,%d,0.9,%d,%.12g\n", s + 1, 2 * s + 1, s * 64, s * 64 / (w * 16) }' > wanted
near got wanted "expressions of the run"
expect 0 "$VWN" plot model.vwn 'clamp(step / 2, 1, 4)' 'where(step >= 4, clamp(7, 0, 5), step)' --csv
tail -n +2 out > got
awk 'BEGIN { for (s = 0; s < 20; s++) { c = s < 2 ? 1 : s < 8 ? s / 2 : 4; w = s < 4 ? s : 5; printf "%d,%.12g,%d\n", s + 1, c, w } }' > wanted
near got wanted "clamp and where of numbers of the run"
# a constant on either side of a number of the run, in every function and operator of two
expect 0 "$VWN" plot model.vwn 'max(7, step)' 'max(step, 7)' 'min(7, step)' 'min(step, 7)' 'step mod 7' '50 mod (step + 1)' '2 ^ step' 'step ^ 2' \
    '7 - step' 'step - 7' '7 / (step + 1)' 'step / 7' --csv
tail -n +2 out > got
awk 'BEGIN { for (s = 0; s < 20; s++) { a = s > 7 ? s : 7; b = s < 7 ? s : 7
    printf "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.12g,%.12g\n", s + 1, a, a, b, b, s % 7, 50 % (s + 1), 2 ^ s, s ^ 2, 7 - s, s - 7, 7 / (s + 1), s / 7 } }' > wanted
near got wanted "functions of a constant and a number of the run"
expect 0 "$VWN" plot model.vwn '7 > step' 'step > 7' '7 >= step' 'step >= 7' '7 < step' 'step < 7' '7 <= step' 'step <= 7' '7 == step' 'step != 7' \
    'not step < 7' 'step > 3 and step < 7' 'step < 3 or step > 7' 'where(step > 7, 1, step)' 'where(step > 7, step, 1)' --csv
tail -n +2 out > got
awk 'BEGIN { for (s = 0; s < 20; s++)
    printf("%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d\n", s + 1, 7 > s, s > 7, 7 >= s, s >= 7, 7 < s, s < 7, 7 <= s, s <= 7, 7 == s, s != 7,
        s >= 7, s > 3 && s < 7, s < 3 || s > 7, s > 7 ? 1 : s, s > 7 ? s : 1) }' > wanted
near got wanted "comparisons of a constant and a number of the run"

# no more points than asked for, the first and the last among them
expect 0 "$VWN" plot model.vwn train.optimizer.lr --points 4 --json --set 'train.length=1M steps'
json out
[ "$(tr '[' '\n' < out | grep -c '^[0-9]')" -le 5 ] || fail "more points than wanted"
has out '[[1,0.0025],'
tr '[' '\n' < out | grep -q '^1000000,0.00100000' || fail "the last step is missing"

# over depth: attributes, a list, what modules read, write and hold
expect 0 "$VWN" plot model.vwn 'layer[*].ffn.hidden' 'layer[*].ffn.params' 'layer[*].ffn.reads' 'layer[*].ffn.up.writes' --csv
[ "$(tail -n +2 out | tr '\n' ' ')" = "1,48,1552,16,48 2,32,1040,16,32 3,64,2064,16,64 " ] || fail "numbers over depth: $(cat out)"
expect 0 "$VWN" plot model.vwn sizes --json
has out '"over":"index","series":[{"name":"sizes","points":[[1,24],[2,8],[3,40]]}]'
expect 0 "$VWN" plot model.vwn
has out 'layer[*].ffn.hidden'
has out 'train.optimizer.lr'

# a file in which nothing varies
echo 'let D = 4' > still.vwn
expect 0 "$VWN" plot still.vwn
has out 'nothing: no number of the file varies over depth or steps'
expect 2 "$VWN" plot still.vwn wide
has err 'has nothing to draw called `wide`: nothing in it varies over depth or steps'

# drawings: no line is too wide, and ASCII stays ASCII
expect 2 "$VWN" plot model.vwn 'layer[*].ffn.hidden' sizes
has err 'is over layer, and `sizes` over index: draw them apart'
COLUMNS=60 expect 0 "$VWN" plot model.vwn 'layer[*].ffn.hidden' 'layer[*].ffn.up.writes'
[ "$(awk '{ if (length($0) > n) n = length($0) } END { print n }' out)" -le 60 ] || fail "a line is wider than the terminal"
tr -d '\n\040-\176' < out | grep -q . && fail "signs that ASCII has not"
LC_ALL=C.UTF-8 expect 0 "$VWN" plot model.vwn train.optimizer.lr
tr -d '\n\040-\176' < out | grep -q . || fail "no signs of the locale"
# the lowest and the highest point of a rising line are at its ends
expect 0 "$VWN" plot model.vwn step
grep '^ *[0-9]*[+|]' out | grep -n '\*' | sed -n '1p;$p' | awk -F: '{ n++; at[n] = length($0) } END { exit !(at[1] > at[2]) }' || fail "a line falls"

# a picture: its points lie in it
expect 0 "$VWN" plot model.vwn train.optimizer.lr step -o both.svg
[ "$(grep -c '<path class="c s' both.svg)" -eq 2 ] || fail "two curves"
has both.svg 'viewBox="0 0 760 840"'
expect 0 "$VWN" plot model.vwn sizes -o sizes.csv
has sizes.csv '3,40'
expect 5 "$VWN" plot model.vwn sizes -o nowhere/p.svg
expect 2 "$VWN" plot model.vwn sizes -o p.png
has err 'must end in .svg, .json or .csv'

# a run that grows has trained as the file said it would; its schedule began again
cat >> model.vwn <<'EOT'

grow more {
  when = tokens >= 512
  let wide = 40
  train {
    length = 10 steps
    optimizer adamw { lr = linear(peak = 5e-3, floor = 0, warmup = 2 steps) }
  }
  check alive(none)
  check preserves(none)
}
EOT
expect 0 "$VWN" train model.vwn --run runs/a -q
expect 0 "$VWN" plot model.vwn train.optimizer.lr --csv
tail -n +2 out > planned
expect 0 "$VWN" plot runs/a lr --csv
tail -n +2 out > trained
near trained planned "the rate over a growth step"
[ "$(wc -l < planned)" -eq 18 ] || fail "8 steps and 10"
expect 0 "$VWN" plot model.vwn train.optimizer.lr --json
has out '"growth":[{"name":"more","at":8}]'
expect 0 "$VWN" plot runs/a loss eval_loss --csv
sed -n 's/.*"event":"step","step":\([0-9]*\),.*"loss":\([0-9.e+-]*\),.*/\1,\2/p' runs/a/events.jsonl > wanted
sed 1d out | awk -F, '$2 != "" { print $1 "," $2 }' > got
near got wanted "the losses of a run"
[ "$(sed 1d out | cut -d, -f3 | grep -c .)" -eq "$(grep -c '"event":"eval"' runs/a/events.jsonl)" ] || fail "evaluations"
expect 0 "$VWN" plot runs/a loss --by tokens --json
has out '"over":"tokens","series":[{"name":"loss","points":[[64,'
expect 0 "$VWN" plot runs/a loss
has out 'at 8: more'
expect 0 "$VWN" plot runs/a
has out 'grad_norm'

# evaluations and steps have a loss of one name
expect 0 "$VWN" plot runs/a loss.next --csv
[ "$(wc -l < out)" -eq 19 ] || fail "the losses of 18 steps"
expect 0 "$VWN" plot runs/a eval/loss.next --csv
[ "$(sed 1d out | wc -l)" -eq "$(grep -c '"event":"eval"' runs/a/events.jsonl)" ] || fail "those of evaluations"

# rates of groups, and of the weights before and behind a growth step
sed 's/weight_decay = 0.1 }/weight_decay = 0.1\n group vector { lr_scale = 0.5, weight_decay = 0 } }/
     s/let wide = 40/let wide = 40\n  old { lr_scale = 0.1 }\n  new { lr_scale = 4, warmup = 5 steps }/' model.vwn > rates.vwn
expect 0 "$VWN" plot rates.vwn train.optimizer.lr train.optimizer.group.vector.lr train.optimizer.group.vector.weight_decay \
    grow.more.old grow.more.new --csv
sed 1d out > got
awk -F, '{ s = $1 - 1; lr = $2; f = s - 8 < 4 ? (s - 7) / 5 : 1
    printf "%d,%.12g,%.12g,0,%.12g,", $1, lr, lr / 2, s < 8 ? lr : lr / 10; if (s < 8) print ""; else printf "%.12g\n", 4 * lr * f }' planned > wanted
near got wanted "rates of weights"

# a stage whose beginning only the run decides
sed 's/when = tokens >= 512/when = train.loss < 3/' model.vwn > late.vwn
expect 0 "$VWN" plot late.vwn train.optimizer.lr --csv
has err 'when the growth step `more` begins is decided in the run'
[ "$(wc -l < out)" -eq 21 ] || fail "20 steps without the growth step"

# below a curve over layers there are no halves of one, and labels are whole
expect 0 env LC_ALL=C "$VWN" plot model.vwn 'layer[*].ffn.hidden' 'layer[*].ffn.up.writes'
layers=$("$VWN" plot model.vwn 'layer[*].ffn.hidden' --csv | tail -n 1 | cut -d, -f1)
[ "$(sed -n '/^ *+[-+]*$/{n;p}' out | tr -s ' ' '\n' | grep -c .)" -le "$layers" ] || fail "more labels than layers: $(cat out)"
sed -n '/^ *+[-+]*$/{n;p}' out | grep -q '[0-9]' || fail "no labels"
lacks out ' 1.5'
expect 0 env LC_ALL=C "$VWN" plot model.vwn train.optimizer.eps # labels are as wide as they must be
[ "$(awk '/\|/ && !/\| at/ { print index($0, "|") }' out | sort -u | wc -l)" -eq 1 ] || fail "the axis is bent: $(cat out)"
expect 0 "$VWN" plot runs/a loss -o picture.svg
has err 'Written picture.svg'
expect 0 "$VWN" plot runs/a loss -o picture.svg -q
empty err

expect 2 "$VWN" plot model.vwn 'layer[*].ffn.hiden'
has err 'did you mean `layer[*].ffn.hidden`?'
expect 2 "$VWN" plot model.vwn D
has err '`D` is one number, 16'
expect 2 "$VWN" plot model.vwn 'layer[2].ffn.hidden'
has err 'is one number, 32; a curve goes over a loop: `layer[*].ffn.hidden`'
expect 2 "$VWN" plot model.vwn 'nothing('
has err 'has nothing to draw called `nothing(`'
expect 2 "$VWN" plot model.vwn 'train.loss + 1'
has err 'depends on what the run measures'
expect 2 "$VWN" plot runs/a grad_nrom
has err 'did you mean `grad_norm`?'
expect 2 "$VWN" plot model.vwn sizes --by tokens
expect 2 "$VWN" plot runs/a loss --set D=3
expect 2 "$VWN" plot model.vwn --csv
expect 2 "$VWN" plot model.vwn sizes -o p.svg --json
# lines that are damaged are passed over, said, and stay as they are
cp -r runs/a hurt
printf '{"v":1,"event":"step","st\n\377\000 no event\n' >> hurt/events.jsonl
cp hurt/events.jsonl events
expect 0 "$VWN" plot hurt loss
has err 'hurt/events.jsonl:'
has err '2 damaged lines are passed over'
expect 0 "$VWN" plot runs/a loss -o whole.csv
expect 0 "$VWN" plot hurt loss -o passed.csv
sed "s|hurt|runs/a|" passed.csv | cmp -s - whole.csv || fail "the rest is drawn: $(cat passed.csv)"
cmp -s hurt/events.jsonl events || fail "a damaged file is changed"
mkdir empty
expect 2 "$VWN" plot empty loss
has err 'is no run directory'
# where a sublayer reads a part of the state it reads what its norm, which sees all of it, is as wide as; the state is as wide as the widest
widths="$VWN_SOURCE/examples/08_xformer_500m.vwn"
expect 0 "$VWN" plot "$widths" 'layer[*].ffn.reads' 'layer[*].ffn.pre_norm.D' --csv
[ "$(tail -n +2 out | awk -F, '$2 == $3' | wc -l)" -eq 24 ] || fail "other widths than those of the norms"
[ "$(tail -n +2 out | cut -d, -f2 | sort -n -u | sed -n '1p;$p' | tr '\n' ' ')" = '288 1760 ' ] || fail "not from 288 to 1760"
# a growth step gives an argument of what stands in `train` another value, as the whole expression with it does
stage() {
    { cat plain.vwn; printf 'grow later {\n  when = step >= 10\n  let wide = 48\n  train { length = 8 steps, optimizer adamw { %s } }\n}\n' "$1"; } > stage.vwn
    expect 0 "$VWN" plot stage.vwn train.optimizer.lr train.optimizer.beta2 --csv
}
stage 'lr = cosine(peak = 5e-3, floor = 1e-3, warmup = 2 steps), betas = [0.9, 0.99]'
cp out whole
[ "$(tail -n 6 out | head -n 1 | cut -d, -f2,3)" = '0.005,0.99' ] || fail "no peak behind the step"
stage 'lr.peak = 5e-3, lr.warmup = 2 steps, betas[2] = 0.99'
cmp -s out whole || fail "other rates than those of the whole expression"
finish
