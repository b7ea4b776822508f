# rename.sh - a loop and a let are renamed, so every path is another one: with `names` the run goes on bit
# for bit, in weights and in optimizer states; without, or with a table that does not fit, it says so.
. "$VWN_SOURCE/tests/support/lib.inc"

# model FILE LOOP LET: a model with that loop variable, and a block with that let.
model() {
    cat > "$1" << END
edition = 1
import "std/transformer"
import "std/connections"
block mlp(hidden: int)(x: [.., D]) -> [.., D] {
  let $3   = linear(out = hidden)
  let down = linear(out = D)
  return down(gelu($3(x)))
}
model letters {
  context    = 8
  width      = 8
  init       = normal(std = 0.02)
  out_init   = normal(std = 0.02)
  pre_norm   = none
  connection = residual()
  embed tokens { vocab = 256 }
  for $2 in 1..2 {
    mlp { hidden = 12 }
  }
  head lm { norm = none }
}
train {
  data      = text_file("letters.txt", val = 20%)
  tokenizer = bytes()
  batch     = 2 seqs
  length    = 6 steps
  seed      = 1
  precision = fp32
  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }
  eval       { every = 6 steps, batches = 2 }
  checkpoint { every = 3 steps }
}
END
}
# numbers FILE: the bytes of the tensors of a checkpoint, which stand in the order of the model.
numbers() {
    header=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    tail -c +$((header + 9)) "$1"
}
i=0
while [ $i -lt 30 ]; do
    echo 'abcdefg gfedcba'
    i=$((i + 1))
done > letters.txt

# the whole run with the old names, and half of it
model old.vwn layer up
expect 0 "$VWN" train -q old.vwn --run whole
expect 0 "$VWN" train -q old.vwn --run half --until '3 steps'

model new.vwn stage wide
cp -r runs/half runs/lost
expect 1 "$VWN" train -q new.vwn --run lost --resume
has err 'the model has no tensor `layer[1].mlp.up.W`'
has err '`names old { "layer[1].mlp.up.W" = stage[1].mlp.wide.W }`'

# a table for one of the two lets only
cp new.vwn part.vwn
echo 'names before { "layer[{stage}].mlp.up.W" = stage[*].mlp.wide.W }' >> part.vwn
expect 1 "$VWN" train -q part.vwn --run lost --resume
has err 'the model has no tensor `layer[1].mlp.down.W`'

cat >> new.vwn << 'END'
names before {
  "layer[{stage}].mlp.up.W"   = stage[*].mlp.wide.W
  "layer[{stage}].mlp.down.W" = stage[*].mlp.down.W
}
END
expect 0 "$VWN" train -q new.vwn --run half --resume
whole=runs/whole/ckpt/$(ls runs/whole/ckpt | tail -n 1)
half=runs/half/ckpt/$(ls runs/half/ckpt | tail -n 1)
numbers "$whole" > a
numbers "$half" > b
[ -s a ] || fail "no numbers in $whole"
cmp -s a b || fail "the run with other names is another run"
grep -aq 'stage\[1\].mlp.wide.W:v' "$half" || fail "the checkpoint has the old names"

# what it wrote has the new names and needs no table, though its text has one
expect 0 "$VWN" eval runs/whole
cp out was
expect 0 "$VWN" eval runs/half
cmp -s was out || fail "another evaluation"

# `.T`: the weights were kept with their axes swapped, and so were their moments
for how in 'rows [hidden, D] W.T' 'columns [D, hidden] W'; do
    set -- $how
    model "$1.vwn" layer up
    sed -i -e "s/^  let up .*/  param W : $2 $3 = normal(std = 0.5)/" -e "s/gelu(up(x))/gelu(x @ $4)/" "$1.vwn"
done
expect 0 "$VWN" train -q rows.vwn --run columns --until '3 steps'
expect 1 "$VWN" train -q columns.vwn --run columns --resume
has err 'has the shape [12, 8], the model needs [8, 12]'
cp columns.vwn named.vwn
echo 'names turned { "layer[{layer}].mlp.V" = layer[*].mlp.W.T }' >> named.vwn
sed -i 's/param W/param V/; s/x @ W/x @ V/' rows.vwn
expect 0 "$VWN" train -q rows.vwn --run turned
expect 0 "$VWN" eval runs/turned
cp out was
expect 0 "$VWN" train -q rows.vwn --run half_turned --until '3 steps'
expect 0 "$VWN" train -q named.vwn --run half_turned --resume
expect 0 "$VWN" eval runs/half_turned
awk 'NR == FNR { a[$1] = $2; next } $1 == "loss" { ok = (a[$1] - $2) ^ 2 < 1e-8 } END { exit !ok }' was out ||
    fail "another loss with swapped axes"

# so of each of a number of experts, whose matrices are the last two axes
choice='broadcast(cast(arange(T) mod 2, int), [B, T])'
for how in 'each_rows V [2,hidden,D] V.T' 'each W [2,D,hidden] W'; do
    set -- $how
    model "$1.vwn" layer up
    sed -i -e "s/^  let up .*/  param $2 : $3 = normal(std = 0.5)/" -e "s/gelu(up(x))/gelu(expert_matmul(x, $4, $choice))/" "$1.vwn"
done
echo 'names turned { "layer[{layer}].mlp.V" = layer[*].mlp.W.T }' >> each.vwn
expect 0 "$VWN" train -q each_rows.vwn --device reference --run each_whole
expect 0 "$VWN" eval runs/each_whole --device reference
cp out was
expect 0 "$VWN" train -q each_rows.vwn --device reference --run each --until '3 steps'
expect 0 "$VWN" train -q each.vwn --device reference --run each --resume
expect 0 "$VWN" eval runs/each --device reference
awk 'NR == FNR { a[$1] = $2; next } $1 == "loss" { ok = (a[$1] - $2) ^ 2 < 1e-8 } END { exit !ok }' was out ||
    fail "another loss with the axes of each expert swapped"
finish
