# growth.sh - a model grows in the middle of its training: the loss does not change, what is stopped and resumed before, at
# and after a step is the same run, and bad steps are refused before anything is done.
# When: quick, first, released.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt

{ small_model 'let hidden = 24
let heads  = 2
let layers = 2' '  embed tokens { vocab = 256 }
  for layer in 1..layers {
    attention { heads = heads, head_dim = 8, position = rope(base = 10_000) }
    ffn       { hidden = hidden, activation = gelu }
  }
  head lm { norm = rms_norm(eps = 1e-6) }'
small_train '  length    = 12 steps
  average   = ema(decay = 0.9)
  optimizer adamw { lr = constant(peak = 1e-2), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval       { every = 4 steps, batches = 2 }
  checkpoint { every = 4 steps, keep = 9 }'
    cat <<EOF

grow wider {
  when = step >= 4
  let hidden = 48
  fill { exit = zeros }
}

grow deeper {
  when   = eval.loss < 100 and step >= 8
  let layers = 3
  let heads = 3
  moments = zeros
  fill { exit = zeros, layers = identity }
  check preserves(1e-6)
  check alive(steps = 2)
}
EOF
} > model.vwn

final=ckpt/step_00000012.safetensors

expect 0 "$VWN" train model.vwn --run whole --json
json out
losses out > cpu
evals out > cpu_evals
[ "$(grep -c '"event":"growth"' out)" -eq 2 ] || fail "two growth steps are two events"
[ "$(losses out | wc -l)" -eq 12 ] || fail "each step is reported once"
has out 'wider:'
preserved out 2 2e-6
# every output was measured beside the old model's, and each kind of new block after 0, 1 and 2 updates
[ "$(grep -c '"event":"output"' out)" -eq 2 ] || fail "two growth steps measure their output"
[ "$(grep -c '"event":"block"' out)" -eq 14 ] || fail "a row for each kind of new block"
has out '"path":"layer[*].ffn.up.W","role":"entry","grad_norm":[[0,0],['
for kept in before_wider before_deeper; do
    filled runs/whole/ckpt/$kept.safetensors
done
has runs/whole/resolved.vwn '/- grow wider'
has runs/whole/resolved.vwn 'let hidden = 48'

# before, at and after each step, and killed between the two checkpoints of one
for at in 4 3 8 5 9; do # the steps that grow, 4 and 8, before and behind them
    draw 2 4 || continue
    expect 0 "$VWN" train model.vwn --run parts --overwrite --until "$at steps" -q
    expect 0 "$VWN" train model.vwn --run parts --resume -q
    cmp -s runs/whole/$final runs/parts/$final || fail "a run stopped at step $at is another run"
done
rm runs/parts/ckpt/step_0000001*.safetensors
mv runs/parts/ckpt/before_deeper.safetensors runs/parts/ckpt/step_00000008.safetensors
expect 0 "$VWN" train model.vwn --run parts --resume -q
cmp -s runs/whole/$final runs/parts/$final || fail "a run killed within a growth step is another run"
expect 0 "$VWN" train model.vwn --run parts --overwrite --until '2 steps' -q
[ "$(ls runs/parts/ckpt)" = step_00000002.safetensors ] || fail "--overwrite leaves checkpoints of the run before"

# a grown checkpoint is a checkpoint
expect 0 "$VWN" eval runs/whole
expect 0 "$VWN" sample runs/whole --tokens 3 --seed 1
expect 0 "$VWN" eval runs/whole/ckpt/before_wider.safetensors

# the float64 evaluator trains and grows the same
expect 0 "$VWN" train model.vwn --run reference --device reference --json
preserved out 2 0
losses out > reference
evals out > reference_evals
close cpu reference 1e-4
close cpu_evals reference_evals 1e-5

# what is proved of real numbers is measured in those of the machine: 0 times infinity is none
sed '/^grow wider/,/^}/d; s/check alive(steps = 2)/check alive(none)/; s/exit = zeros, layers/entry = zeros, exit = fill(1e39), layers/' model.vwn > infinite.vwn
expect 0 "$VWN" check infinite.vwn
expect 4 "$VWN" train infinite.vwn --run infinite
has err 'the growth step `deeper` changed the output `logits`'
has err 'numbers left the range of float32'
[ "$(ls runs/infinite/ckpt | tail -n 1)" = step_00000008.safetensors ] || fail "a refused growth step leaves something"

# a step at the end of the length gives the run another one; a stop that was asked for is none
sed '/^grow deeper/,/^}/d; s/step >= 4/step >= end/; s/length    = 12 steps/length    = end * 1 steps/; s/let hidden = 48/let hidden = 48\n  let end = 15/; s/^let hidden = 24/let hidden = 24\nlet end = 12/' model.vwn > longer.vwn
expect 0 "$VWN" train longer.vwn --run longer --until '12 steps' -q
expect 0 "$VWN" train longer.vwn --run longer --resume -q
filled runs/longer/ckpt/step_00000015.safetensors
filled runs/longer/ckpt/before_wider.safetensors

# the file must keep the steps that were carried out
sed 's/grow wider/grow broader/' model.vwn > other.vwn
expect 1 "$VWN" train other.vwn --run whole --resume
has err 'has grown by the step `wider`, which is not step 1 of the file; that is `broader`'
awk '/^grow wider/ { wide = 1 } wide { kept = kept $0 "\n"; if ($0 == "}") wide = 0; next } { print } END { printf "%s", kept }' model.vwn > swapped.vwn
sed -i 's/step >= 4$/step >= 9/' swapped.vwn
expect 1 "$VWN" train swapped.vwn --run whole --resume
has err 'has grown by the step `wider`, which is not step 1 of the file; that is `deeper`'

# a checkpoint that is not of the model before the step; the run stays as it was
state() { (cd runs/odd && find . -type f ! -name lock -exec cksum {} + | sort); }
expect 0 "$VWN" train model.vwn --run odd --until '4 steps' -q
odd() { # WHAT MESSAGE: a file of another model in the place of step 4
    cp "$1" runs/odd/ckpt/step_00000004.safetensors
    state > was
    expect 1 "$VWN" train model.vwn --run odd --resume
    state | cmp -s was - || fail "a refused growth step changes the run"
    has err "$2"
}
sed '/^grow/,/^}/d' model.vwn > first.vwn
sed 's/^let hidden = 24/let hidden = 28/' first.vwn > wide.vwn
expect 0 "$VWN" train wide.vwn --run wide --until '4 steps' -q
odd runs/wide/ckpt/step_00000004.safetensors '`layer[1].ffn.up.W` has the shape [16, 28] in runs/odd/ckpt/step_00000004.safetensors, and the model before the growth step `wider` needs [16, 24]'
sed 's/activation = gelu/activation = gelu, bias = true/' first.vwn > biased.vwn
expect 0 "$VWN" train biased.vwn --run biased --until '4 steps' -q
odd runs/biased/ckpt/step_00000004.safetensors 'the model behind the growth step `wider` has no place for `layer[1].ffn.up.b`'
sed 's/activation = gelu/activation = gelu, bias = biased/; s/^let hidden = 24/&\nlet biased = false/; s/let hidden = 48/&\n  let biased = true/' model.vwn > making.vwn
expect 0 "$VWN" train making.vwn --run making --until '4 steps' -q
cp runs/biased/ckpt/step_00000004.safetensors runs/making/ckpt
expect 1 "$VWN" train making.vwn --run making --resume
has err 'has `layer[1].ffn.up.b` already, which the growth step `wider` is to make'
sed 's/^let layers = 2/let layers = 1/' first.vwn > short.vwn
expect 0 "$VWN" train short.vwn --run short --until '4 steps' -q
odd runs/short/ckpt/step_00000004.safetensors 'has no tensor `layer[2].'

# what is wrong is refused before the first step
sed 's/fill { exit = zeros }/fill { exit = split(share = 2) }/' model.vwn > share.vwn
expect 1 "$VWN" train share.vwn --run share
has err 'a share lies between 0 and 1'
[ ! -e runs/share/events.jsonl ] || fail "a refused run has begun"
finish
