# order.sh - `vwn sample` continues a text only with a model whose predictions do not depend on later tokens: what
# reads them by a mask, a shift, a sum, a product or in a way of its own is refused with its place; attention that
# is written out with a causal mask of numbers is not. A run says at its start where the order of tokens may be lost.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"
head -c 20000 "$VWN_SOURCE/grammar/README.md" > text.txt

# model NAME MASK BODY: trains a step of a model with a sublayer of this body
model() {
    cat > $1.vwn <<END
import "std/transformer"
import "std/connections"

block own()(x: [B, T, D]) -> [B, T, D] {
  $3
}
model $1 {
  context    = 16
  width      = 16
  mask       = $2
  init       = normal(std = 0.5)
  out_init   = normal(std = 0.5)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = residual()
  allow      = [sees_the_answer]
  embed tokens { vocab = 256 }
  attention { heads = 2 }
  own { }
  head lm { norm = rms_norm(eps = 1e-6) }
}
train {
  data      = text_file("text.txt")
  tokenizer = bytes()
  batch     = 2 seqs
  length    = 1 steps
  seed      = 1
  precision = fp32
  optimizer sgd { lr = 1e-3, momentum = 0, weight_decay = 0 }
}
END
    expect 0 "$VWN" train $1.vwn
    mv err $1.start
}
refused() { # NAME NODE WHY PLACE
    place=$4
    [ "$place" != '(text of the model):' ] || place=$1.vwn: # which a run still has as a file
    has $1.start "$place"
    has $1.start "\`$2\` $3: unless a mask hides them, predictions depend on later tokens"
    for how in "" --recompute; do
        expect 1 "$VWN" sample runs/$1 --tokens 3 $how
        has err "what this model predicts at a position depends on later tokens"
        has err "$4"
        has err "\`$2\` $3"
        empty out
    done
}
model encoder full 'return x'
refused encoder sdpa 'reads later positions (its mask is not causal)' 'std/transformer.vwn:'
model shifted causal 'return shift(x, -1)'
refused shifted shift 'reads later positions' '(text of the model):'
model mixed causal 'return x + mean(x, over = 2, keep = true)'
refused mixed mean 'runs over all positions' '(text of the model):'
model product causal 'return (x @ permute(x, [1, 3, 2])) @ x'
refused product @ 'sums over all positions' '(text of the model):'

# The same product with a mask of numbers sees earlier positions only.
model masked causal 'return ((x @ permute(x, [1, 3, 2])) * where(unsqueeze(arange(T), 2) >= unsqueeze(arange(T), 1), 1, 0)) @ x'
has masked.start 'predictions depend on later tokens'
expect 0 "$VWN" sample runs/masked --tokens 3
has err 'every token is predicted from the whole context'
filled out
model plain causal 'return shift(x, 1) + cumsum(x, over = 2)'
lacks plain.start 'later tokens'
for how in "" --recompute; do
    expect 0 "$VWN" sample runs/plain --tokens 3 $how
    lacks err 'later tokens'
    filled out
done
finish
