# growth_copies.sh - weights that a growth step copies, shares out or rescales, their moments and averages, element by
# element against loops over the numbers of the checkpoint before the step; what is stopped at a step is the same run.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt

cat > model.vwn <<EOF
edition = 1
import "std/transformer"
import "std/connections"

let hidden = 5
let kv     = 1
let width  = 8
let eps    = 1e-3
let layers = 1
let vocab  = 256

model small {
  context    = 16
  width      = width
  mask       = causal
  init       = normal(std = 0.3)
  out_init   = normal(std = 0.3)
  connection = residual()
  pre_norm   = rms_norm(eps = eps)

  embed tokens { vocab = vocab }
  for layer in 1..layers {
    attention { heads = 2, kv_heads = kv, head_dim = 4 }
    ffn       { hidden = hidden, activation = gelu, bias = true }
  }
  head lm { norm = rms_norm(eps = eps), init = uniform(0.9, 1.1) } # a mean far from 0
}

train {
  data      = text_file("text.txt", val = 10%)
  tokenizer = bytes()
  batch     = 4 seqs
  length    = 20 steps
  seed      = 1
  precision = fp32
  average   = ema(decay = 0.9)
  optimizer adamw { lr = constant(peak = 1e-2), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval       { every = 4 steps, batches = 2 }
  checkpoint { every = 4 steps, keep = 9 }
  log        { every = 1 steps }
}

grow units {
  when = step >= 4
  let hidden = 12
  fill { entry = copy, exit = split(share = 0.4) }
  check preserves(1e-5)
}

grow groups {
  when = step >= 8
  let kv = 2
  fill { entry = replicate }
  check preserves(1e-5)
}

grow wider {
  when = step >= 12
  let width = 12
  let eps = 1e-3 * 8 / 12
  fill { entry = zeros, exit = noise(share = 10%), norms = rescale }
  check preserves(1e-5)
}

grow deeper {
  when = step >= 16
  let layers = 2
  fill { layers = copy, layer[*].attention.o_proj { layers = zeros }, layer[*].ffn.down.W { layers = zeros } }
  moments = zeros
}

grow ids {
  when = step >= 18
  let vocab = 260
  fill { embed.tokens { exit = mean }, head.lm { entry = mean } }
}
EOF

# tensor FILE NAME: its numbers, one a line
tensor() {
    length=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    offsets=$(dd if="$1" bs=1 skip=8 count="$length" 2> /dev/null | tr '{}' '\n\n' | grep -F -A1 "\"$2\":" |
        sed -n 's/.*"data_offsets":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p' | head -n 1)
    [ -n "$offsets" ] || { fail "$1 has no $2"; return; }
    set -- "$1" $offsets
    od -An -v -tfF -w4 -j $((8 + length + $2)) -N $(($3 - $2)) "$1"
}

# same NEW OLD AWK: the tensor NEW of the file $after is what AWK makes of OLD's numbers x[0 ...] of the file $before.
same() {
    tensor "$before" "$2" > old.txt
    tensor "$after" "$1" > new.txt
    awk "function far(a, b) { d = a - b; if (d < 0) d = -d; m = a < 0 ? -a : a; return d > 1e-6 * m + ${slack:-1e-30} }
         NR == FNR { x[n++] = \$1; next } { y[k++] = \$1 }
         END { $3; for (i = 0; i < k; i++) if (far(want[i], y[i])) { print i, want[i], y[i]; exit 1 }; exit !(k > 0) }" old.txt new.txt ||
        fail "$1 is not what a loop makes of $2"
}

expect 6 "$VWN" grow model.vwn units --plan
has out 'copies learn at the rates of `new` and begin with the moments of what they copy'
expect 6 "$VWN" grow model.vwn deeper --plan
has out 'copies learn at the rates of `new` and begin with moments of zero'
expect 6 "$VWN" grow model.vwn ids --plan
has out '+ exit 48 = the mean of the old numbers'
expect 0 "$VWN" train model.vwn --run whole -q

# units: column j is column j mod 5; 12 = 2 * 5 + 2, so that two units have two copies, the others one
share='for (j = 0; j < 12; j++) s[j] = j < 5 ? 0.6 : 0.4 / (j % 5 < 2 ? 2 : 1)'
before=runs/whole/ckpt/before_units.safetensors after=runs/whole/ckpt/step_00000004.safetensors
for of in '' :average; do
    same "layer[1].ffn.up.W$of" "layer[1].ffn.up.W$of" "for (i = 0; i < 8; i++) for (j = 0; j < 12; j++) want[i * 12 + j] = x[i * 5 + j % 5]"
    same "layer[1].ffn.up.b$of" "layer[1].ffn.up.b$of" 'for (j = 0; j < 12; j++) want[j] = x[j % 5]'
    same "layer[1].ffn.down.W$of" "layer[1].ffn.down.W$of" "$share; for (j = 0; j < 12; j++) for (i = 0; i < 8; i++) want[j * 8 + i] = s[j] * x[j % 5 * 8 + i]"
done
same 'layer[1].ffn.up.W:m' 'layer[1].ffn.up.W:m' "$share; for (i = 0; i < 8; i++) for (j = 0; j < 12; j++) want[i * 12 + j] = s[j] * x[i * 5 + j % 5]"
same 'layer[1].ffn.up.W:v' 'layer[1].ffn.up.W:v' "$share; for (i = 0; i < 8; i++) for (j = 0; j < 12; j++) want[i * 12 + j] = s[j] * s[j] * x[i * 5 + j % 5]"
same 'layer[1].ffn.up.b:v' 'layer[1].ffn.up.b:v' "$share; for (j = 0; j < 12; j++) want[j] = s[j] * s[j] * x[j % 5]"
for of in m v; do
    same "layer[1].ffn.down.W:$of" "layer[1].ffn.down.W:$of" 'for (j = 0; j < 12; j++) for (i = 0; i < 8; i++) want[j * 8 + i] = x[j % 5 * 8 + i]'
    same "layer[1].attention.q_proj.W:$of" "layer[1].attention.q_proj.W:$of" 'for (i = 0; i < n; i++) want[i] = x[i]'
done
# moments of copies came with the model
same 'layer[1].ffn.up.W:since1' 'layer[1].ffn.up.W:v' 'for (j = 0; j < 12; j++) want[j] = 0'

# groups: both read what one was
before=runs/whole/ckpt/before_groups.safetensors after=runs/whole/ckpt/step_00000008.safetensors
for of in k_proj.W v_proj.W; do
    same "layer[1].attention.$of" "layer[1].attention.$of" 'for (i = 0; i < 8; i++) for (j = 0; j < 8; j++) want[i * 8 + j] = x[i * 4 + j % 4]'
    same "layer[1].attention.$of:m" "layer[1].attention.$of:m" 'for (i = 0; i < 8; i++) for (j = 0; j < 8; j++) want[i * 8 + j] = x[i * 4 + j % 4] / 2'
    same "layer[1].attention.$of:v" "layer[1].attention.$of:v" 'for (i = 0; i < 8; i++) for (j = 0; j < 8; j++) want[i * 8 + j] = x[i * 4 + j % 4] / 4'
done

# wider: gains times sqrt(8 / 12), the new ones 1; what reads new coordinates is noise, a tenth of the old spread
before=runs/whole/ckpt/before_wider.safetensors after=runs/whole/ckpt/step_00000012.safetensors
for norm in 'layer[1].attention.pre_norm.g' 'layer[1].ffn.pre_norm.g' head.lm.norm.g; do
    same "$norm" "$norm" 'for (i = 0; i < 12; i++) want[i] = i < 8 ? sqrt(8 / 12) * x[i] : 1'
    same "$norm:average" "$norm:average" 'for (i = 0; i < 12; i++) want[i] = i < 8 ? sqrt(8 / 12) * x[i] : 1'
    same "$norm:m" "$norm:m" 'for (i = 0; i < 12; i++) want[i] = i < 8 ? x[i] / sqrt(8 / 12) : 0'
    same "$norm:v" "$norm:v" 'for (i = 0; i < 12; i++) want[i] = i < 8 ? x[i] / (8 / 12) : 0'
    same "$norm:since0" "$norm" 'for (i = 0; i < 12; i++) want[i] = i < 8 ? 0 : 3'
done
tensor "$before" head.lm.W > old.txt
tensor "$after" head.lm.W > new.txt
awk 'NR == FNR { s += $1; q += $1 * $1; n++; next } k++ >= n { t += $1; r += $1 * $1; m++ }
     END { had = sqrt(q / n - (s / n) ^ 2); has = sqrt(r / m - (t / m) ^ 2); exit !(m == 1024 && has > 0.09 * had && has < 0.11 * had) }' old.txt new.txt ||
    fail "noise has another spread than a tenth of the old numbers'"
tensor "$after" head.lm.W:average | tail -n 1024 > old.txt
tail -n 1024 new.txt | cmp -s - old.txt || fail "averages of what is drawn do not begin as the weights"

# deeper: the second layer is the first, but for what writes; its moments begin with zeros
before=runs/whole/ckpt/before_deeper.safetensors after=runs/whole/ckpt/step_00000016.safetensors
for of in ffn.up.W ffn.up.b ffn.down.b attention.pre_norm.g attention.v_proj.W ffn.up.W:average; do
    same "layer[2].$of" "layer[1].$of" 'for (i = 0; i < n; i++) want[i] = x[i]'
done
for of in ffn.up.W:m ffn.up.W:v ffn.down.W ffn.down.W:average attention.o_proj.W; do
    same "layer[2].$of" "layer[1].$of" 'for (i = 0; i < n; i++) want[i] = 0'
done
same 'layer[2].ffn.up.W:since1' 'layer[1].ffn.up.b' 'for (i = 0; i < n; i++) want[i] = 4'

# ids: the mean row of the table and the mean column of the head, of weights and of averages; no moments
before=runs/whole/ckpt/before_ids.safetensors after=runs/whole/ckpt/step_00000018.safetensors
slack=1e-7
for of in '' :average; do
    same "embed.tokens.W$of" "embed.tokens.W$of" 'for (j = 0; j < 12; j++) { for (i = 0; i < 256; i++) s[j] += want[i * 12 + j] = x[i * 12 + j]
        for (i = 256; i < 260; i++) want[i * 12 + j] = s[j] / 256 }'
    same "head.lm.W$of" "head.lm.W$of" 'for (i = 0; i < 12; i++) { t = 0; for (j = 0; j < 256; j++) t += want[i * 260 + j] = x[i * 256 + j]
        for (j = 256; j < 260; j++) want[i * 260 + j] = t / 256 }'
done
slack=
for of in m v; do
    same "embed.tokens.W:$of" "embed.tokens.W:$of" 'for (i = 0; i < 260 * 12; i++) want[i] = i < 256 * 12 ? x[i] : 0'
done

# stopped at a step, before and behind one
expect 0 "$VWN" train model.vwn --run parts --until '4 steps' -q
for at in 9 11 16 18; do
    expect 0 "$VWN" train model.vwn --run parts --resume --until "$at steps" -q
done
expect 0 "$VWN" train model.vwn --run parts --resume -q
cmp -s runs/whole/ckpt/step_00000020.safetensors runs/parts/ckpt/step_00000020.safetensors || fail "a run that was stopped is another run"
finish
