# inspect.sh - `vwn inspect --growth`: rows for the checkpoints since a growth step, the overlap of one tensor computed
# again from the files' bytes, what a run that has not grown is told.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
{ small_model 'import "std/growable"

let M = 20
let A = 24' '  embed tokens { vocab = 256 }
  attention { heads = 2, head_dim = 8, position = rope(base = 10_000), q_proj = nexus_rank(M = M, A = A) }
  head lm { norm = rms_norm(eps = 1e-6) }'
small_train '  length    = 16 steps
  optimizer adamw { lr = constant(peak = 1e-2), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval       { every = 4 steps, batches = 2 }
  checkpoint { every = 4 steps, keep = 9 }'
    cat <<EOF

grow wider {
  when = step >= 4
  let M = 30
  fill { entry = zeros }
}

grow widest {
  when = step >= 12
  let A = 40
  fill { entry = zeros }
}
EOF
} > model.vwn

expect 0 "$VWN" train model.vwn --run grown -q
expect 0 "$VWN" inspect runs/grown --growth
has out 'before_widest.safetensors, step 12'
has out '100 equal bins'
[ "$(grep -c '^ *1[26] ' out)" -eq 2 ] || fail "a row for the step and one for the end"
expect 0 "$VWN" inspect runs/grown --growth --step wider --json
json out
[ "$(tr '{' '\n' < out | grep -c '^"step":')" -eq 2 ] || fail "checkpoints after the next growth step are of another model"
has out '"radius":0,"log_radius":null'
expect 0 "$VWN" inspect runs/grown --growth --step wider --noc kde --json
has out '"noc":"kde","points":2001,"samples":3000'

# numbers FILE TENSOR: its float32 numbers, by the file format alone
numbers() {
    header=$(od -A n -t u8 -N 8 "$1" | tr -d ' ')
    range=$(head -c $((header + 8)) "$1" | tail -c "$header" | grep -a -o "\"$2\":{[^}]*}" |
        sed 's/.*"data_offsets":\[\([0-9]*\), *\([0-9]*\)\].*/\1 \2/')
    first=${range% *} last=${range#* }
    tail -c +$((header + 8 + first + 1)) "$1" | head -c $((last - first)) | od -A n -v -t f4 -w4
}

path=attention.q_proj.W_M
numbers runs/grown/ckpt/before_wider.safetensors $path > x
numbers runs/grown/ckpt/step_00000008.safetensors $path > y
[ "$(wc -l < x)" -eq 320 ] && [ "$(wc -l < y)" -eq 480 ] || fail "the tensors have other sizes"
awk 'function at(v) { k = int((v - lo) / (hi - lo) * 20); return k > 19 ? 19 : k }
     NR == FNR { x[++n] = $1 }
     NR != FNR { y[++m] = $1 }
     { v = $1 + 0; if (NR == 1 || v < lo) lo = v; if (NR == 1 || v > hi) hi = v }
     END {
         for (i = 1; i <= n; i++) f[at(x[i])]++
         for (i = 1; i <= m; i++) g[at(y[i])]++
         for (k = 0; k < 20; k++) s += f[k] / n < g[k] / m ? f[k] / n : g[k] / m
         printf "%.9f\n", s
     }' x y > wanted
expect 0 "$VWN" inspect runs/grown/ckpt/before_wider.safetensors runs/grown@8 --growth --by tensor --bins 20 --json
json out
has out '"before":"runs/grown/ckpt/before_wider.safetensors"'
has out '"rows":[{"step":8,'
grep -o "\"path\":\"$path\".*" out | sed 's/^[^{]*{[^}]*"noc":\([0-9.e-]*\).*/\1/' > got
paste got wanted | awk '{ d = $1 - $2; if (d < 0) d = -d; exit !(d < 1e-6) }' || fail "NOC of $path is $(cat got), wanted $(cat wanted)"
lacks out '"radius"'

# the same weights are the same: everything overlaps, and nothing is surprising
expect 0 "$VWN" inspect runs/grown@8 runs/grown@8 --growth --tensors $path --json
grep -Eq '"noc":(1|0\.99999[0-9]*|1\.00000[0-9]*),"u_p":1' out || fail "weights differ from themselves"

expect 2 "$VWN" inspect runs/grown --growth --step widget
has err 'has not grown by a step `widget`; it has wide'
expect 2 "$VWN" inspect runs/grown@8 runs/grown@8 --growth
has err 'choose some with --tensors'
expect 2 "$VWN" inspect runs/grown --growth --tensors 'layer[*]'
has err 'selects no weight'
expect 2 "$VWN" inspect runs/grown --step wider
has err 'belongs to `vwn inspect RUN --growth`'
expect 2 "$VWN" inspect runs/grown --growth --tokens 100
has err 'does not belong to `--growth`'
expect 2 "$VWN" inspect runs/grown --growth --noc kde --bins 5
expect 2 "$VWN" inspect nowhere --growth
has err 'is no run directory'
head -c 5000 runs/grown/ckpt/step_00000008.safetensors > damaged.safetensors
expect 5 "$VWN" inspect runs/grown@8 damaged.safetensors --growth
has err 'damaged.safetensors'

# Layers that are put between have other numbers behind the step, and what becomes experts other paths: at the step each old weight is
# compared with itself, or with its copies, so nothing has moved (NOC 1, U_P 1).
renamed() { # NAME SETTINGS-OF-THE-STEP: a run of two layers, grown at step 2
    { small_model 'let L = 2
let sub = ffn(hidden = 6, activation = silu, gated = true)' '  embed tokens { vocab = 256 }
  for layer in 1..L { sub }
  head lm { norm = rms_norm(eps = 1e-6) }' | sed 's/^import "std\/connections"/&\nimport "std\/growable"/'
        small_train '  length    = 3 steps
  optimizer adamw { lr = 1e-2, betas = [0.9, 0.99], eps = 1e-8, weight_decay = 0.1 }
  checkpoint { every = 1 steps, keep = 9 }'
        echo "grow $1 { when = step >= 2, $2 }"; } > $1.vwn
    expect 0 "$VWN" train $1.vwn --run $1 --device reference
}
renamed deeper 'let L = 4, fill { layers = replicate }'
expect 0 "$VWN" inspect runs/deeper --growth --tensors 'layer[2].sub' --by tensor --json
one='"step":2,"eval_loss":null,"noc":(1|0\.99999[0-9]*|1\.00000[0-9]*),'
[ "$(tr '{' '\n' < out | grep -Ec "$one\"u_p\":1,")" -eq 5 ] || fail "layer 2 is layer 3 now: $(cat out)"
expect 2 "$VWN" inspect runs/deeper --growth # no weight has another shape, and it says so
has err 'choose some with --tensors'
of='layer[*].sub'
renamed experts "let sub = moe(experts = 4, active = 2, hidden = 6, activation = silu, scores = softmax, normalize = true, balance = 0.01)
  fill { $of.up { layers = copy(of = $of.up.W) }, $of.gate { layers = copy(of = $of.gate.W) }, $of.down { layers = copy(of = $of.down.W) } }"
expect 0 "$VWN" inspect runs/experts --growth --json
grep -Eq "$one" out || fail "experts are copies: $(cat out)"
expect 0 "$VWN" inspect runs/experts --growth --tensors 'layer[1].sub.down' --json
grep -Eq "$one" out || fail "experts are copies: $(cat out)"
finish
