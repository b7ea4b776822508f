# vocabulary.sh - a text with more characters than the model knows: E0601 at the table or the head
# that is too small, also when only the data says how many there are.
. "$VWN_SOURCE/tests/support/lib.inc"

# model ROWS COLUMNS: letters.vwn looks up so many ids and predicts so many.
model() {
    cat > letters.vwn << END
edition = 1
import "std/transformer"
import "std/connections"
model letters {
  context    = 8
  width      = 8
  init       = normal(std = 0.02)
  out_init   = normal(std = 0.02)
  pre_norm   = none
  connection = residual()
  embed tokens { vocab = $1 }
  ffn { hidden = 8, activation = gelu }
  head lm { vocab = $2, norm = none }
}
train {
  data      = text_file("letters.txt")
  tokenizer = chars()
  batch     = 2 seqs
  length    = 2 steps
  seed      = 1
  precision = fp32
  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 }
}
END
}
i=0
while [ $i -lt 20 ]; do
    echo 'abcdefg gfedcba'
    i=$((i + 1))
done > letters.txt # nine characters with the blank and the newline

model 5 9
expect 0 "$VWN" check -q letters.vwn
expect 1 "$VWN" train letters.vwn
has err 'error[E0601]: the tokenizer produces ids up to 8 but the embedding has 5 rows'
has err '--> letters.vwn:11:18'
has err 'ids 5 to 8 have no row'
has err '9 entries'
has err 'write `vocab = 9`'
model 9 5
expect 1 "$VWN" train letters.vwn
has err 'error[E0601]: the tokenizer produces ids up to 8 but the head has 5 columns'
has err '--> letters.vwn:13:13'
has err 'ids 5 to 8 are never predicted'
model 9 9
expect 0 "$VWN" train -q letters.vwn
finish
