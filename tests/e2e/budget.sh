# budget.sh - what a kernel asks of the C compiler: loops that it makes vectors of have few places that lie apart.
#
# GCC took 150 s for the kernel of such a loop with 392 of them: linear attention in 16 bits, whose running sum is a
# matrix for each head.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"

cat > linear.vwn <<'END'
edition = 1
import "std/transformer"
import "std/connections"

block linear_attention(heads: int)(x: [B, T, D]) -> [B, T, D] {
  let d = D / heads
  let q_proj = linear(out = D)
  let k_proj = linear(out = D)
  let v_proj = linear(out = D)
  q = relu(reshape(q_proj(x), [B, T, heads, d])) + 1
  k = relu(reshape(k_proj(x), [B, T, heads, d])) + 1
  v = reshape(v_proj(x), [B, T, heads, d])
  S = cumsum(reshape(k, [B, T, heads, d, 1]) * reshape(v, [B, T, heads, 1, d]), over = 2)
  z = cumsum(k, over = 2)
  y = reshape(reshape(q, [B, T, heads, 1, d]) @ S, [B, T, heads, d]) / sum(q * z, over = -1, keep = true)
  return reshape(y, [B, T, D])
}

model linear {
  context = 128
  width = 128
  mask = causal
  init = normal(std = 0.02)
  out_init = normal(std = 0.02)
  pre_norm = rms_norm(eps = 1e-6)
  connection = residual()
  embed tokens { vocab = 256 }
  for layer in 1..2 {
    linear_attention { heads = 8 }
    ffn { hidden = 344, activation = silu, gated = true }
  }
  head lm { norm = rms_norm(eps = 1e-6) }
}

train {
  data = text_file("none.txt", val = 2%)
  tokenizer = bytes()
  batch = 8 seqs
  length = 200 steps
  seed = 1
  precision = mixed(compute = bf16, master = fp32)
  optimizer adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0 }
}
END

expect 0 "$VWN" ir linear.vwn --stage c
most=$(awk '/omp simd/ { n = 0; on = 1 } on { n += gsub(/\[[^]]*\]/, "") } /^}/ { if (n > most) most = n; n = on = 0 }
    END { print most + 0 }' out)
[ "$most" -gt 30 ] || fail "no loop of vectors was found"
[ "$most" -le 320 ] || fail "$most places in one loop" # some of them are neighbours
finish
