# emit_small.sh - a folder of a model so small that it is compiled in a moment: what its rows of padding count in an evaluation, and
# what each step and part draws, are those of `vwn eval` and `vwn train`.
. "$VWN_SOURCE/tests/support/lib.inc"
command -v make > /dev/null || exit 77
yes 'the quick brown fox jumps over the lazy dog' | head -n 100 > text.txt
cat > tiny.vwn << 'END'
edition = 1
import "std/transformer"
import "std/connections"

model tiny {
  context    = 8
  width      = 8
  mask       = causal
  init       = normal(std = 0.5)
  out_init   = normal(std = 0.5)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = residual()
  embed tokens { vocab = 256 }
  ffn { hidden = 16, activation = gelu, dropout = 0.5 }
  head lm { norm = rms_norm(eps = 1e-6) }
}

train {
  data        = text_file("text.txt", val = 20%)
  tokenizer   = bytes()
  batch       = 6 seqs
  micro_batch = 3 seqs
  length      = 4 steps
  seed        = 1
  precision   = fp32
  optimizer sgd { lr = 0.1, momentum = 0.9, weight_decay = 0 }
  checkpoint { every = 4 steps, keep = 1 }
  log { every = 1 steps }
}
END
expect 0 "$VWN" train tiny.vwn --run run --json
sed -n 's/.*"event":"step","step":\([0-9]*\),.*"loss.next":\([0-9.]*\),.*/\1 \2/p' out > theirs
expect 0 "$VWN" emit c tiny.vwn -o folder
expect 0 make -s -C folder CFLAGS=-O0
expect 0 sh -c 'cd folder && ./model train ../text.txt'
sed -n 's|^step \([0-9]*\)/4 loss \([0-9.]*\) .*|\1 \2|p' out > ours
paste theirs ours | awk '{ d = $2 - $4; if (NF != 4 || $1 != $3 || d > 1e-4 || d < -1e-4) bad = 1 } END { exit bad || NR != 4 }' ||
    fail "losses by step of vwn and of the folder: $(paste theirs ours | tr '\n' ';')"
[ "$(cut -d ' ' -f 2 ours | sort -u | wc -l)" -eq 4 ] || fail "two steps have one loss: $(cat ours)"

# 5 windows in rows of 3: the sixth row counts nothing
head -c 47 text.txt > short.txt
expect 0 "$VWN" eval runs/run/ckpt/step_00000004.safetensors --data short.txt --json
sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' out > theirs
expect 0 folder/model eval short.txt --all --weights runs/run/ckpt/step_00000004.safetensors
sed -n 's/^loss  *\([0-9.]*\)$/\1/p' out > ours
paste theirs ours | awk '{ d = $1 - $2; exit NF != 2 || d > 1e-5 || d < -1e-5 }' ||
    fail "5 windows in two parts of 3 rows: vwn measures $(cat theirs), the folder $(cat ours)"
finish
