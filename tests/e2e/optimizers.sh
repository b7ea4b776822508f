# optimizers.sh - lion, muon and sgd train a model with experts; a resumed run is the same run; the count of states is
# what a checkpoint holds; kernels compute what the reference evaluator does, and so does the folder of `emit c`.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt

model() { # kind, its settings
    cat > "$1.vwn" <<EOF
edition = 1
import "std/transformer"
import "std/connections"

model $1 {
  context    = 16
  width      = 16
  mask       = causal
  init       = normal(std = 0.1)
  out_init   = normal(std = 0.1)
  connection = residual()
  pre_norm   = rms_norm(eps = 1e-6)

  embed tokens { vocab = 256, width = 16 }
  for layer in 1..2 {
    attention { heads = 2, position = none }
    moe       { experts = 4, active = 2, hidden = 24, activation = silu, scores = softmax, normalize = true, balance = 0.01 }
  }
  head lm { norm = rms_norm(eps = 1e-6) }
}

train {
  data      = text_file("text.txt", val = 5%)
  tokenizer = bytes()
  batch     = 4 seqs
  length    = 6 steps
  seed      = 1
  precision = fp32
  clip      = 1.0
  average   = ema(decay = 0.9)
  optimizer $1 $2
  log        { every = 1 steps }
  checkpoint { every = 3 steps }
}
EOF
}

model lion '{ 
    lr = linear(peak = 1e-3, floor = 0), betas = [0.9, 0.99], weight_decay = 0.1
    group "layer[2].*" { lr_scale = 0.5 }
  }'
model muon '{
    lr = linear(peak = 0.02, floor = 0), momentum = 0.95, weight_decay = 0.1
    adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 1e-8 }
    group "head.*" { update = adamw }
    group "layer[2].*" { lr_scale = 0.5, weight_decay = 0 }
  }'

model sgd '{
    lr = linear(peak = 0.5, floor = 0), momentum = 0.9, nesterov = true, weight_decay = 0.5
    group vector { weight_decay = 0 }
  }'
sed 's/nesterov = true/decay = coupled/; s/model sgd/model coupled/' sgd.vwn > coupled.vwn


for kind in muon lion sgd coupled; do
    draw 2 || continue
    expect 0 "$VWN" train $kind.vwn --run $kind --json
    losses out > losses
    expect 0 "$VWN" train $kind.vwn --run $kind-two --until '3 steps' --json
    expect 0 "$VWN" train $kind.vwn --run $kind-two --resume --json
    a=runs/$kind/ckpt/step_00000006.safetensors
    cmp -s $a runs/$kind-two/ckpt/step_00000006.safetensors || fail "$kind: a resumed run is another run"

    # eight bytes of length, then the header: "PATH:m":{"dtype":"F32","shape":[..],"data_offsets":[from,to]}
    expect 0 "$VWN" cost $kind.vwn --json
    json out
    counted=$(sed -n 's/.*"bytes_optimizer":\([0-9]*\).*/\1/p' out)
    stored=$(head -c 100000 $a | tr -d '\000' | tr '{' '\n' | tr '}' '\n' |
        awk '/:[mv]":$/ { state = 1; next }
             state && match($0, /data_offsets":\[[0-9]+,[0-9]+/) {
                 split(substr($0, RSTART + 15, RLENGTH - 15), at, ",")
                 sum += at[2] - at[1]
             }
             { state = 0 }
             END { print sum + 0 }')
    [ "$counted" = "$stored" ] || fail "$kind: $counted bytes of states counted, $stored stored"

    expect 0 "$VWN" train $kind.vwn --run $kind-slow --device reference --json
    losses out | paste losses - > both
    awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 2e-4 * $2) bad = 1; n++ }
         END { exit !(n == 6 && !bad) }' both || fail "$kind: kernels and reference differ: $(cat both)"

    [ $kind != coupled ] && command -v make > made && command -v cc > made || continue # its folder is that of sgd
    expect 0 "$VWN" emit c $kind.vwn -o $kind.c
    expect 0 make -s -C $kind.c CC="${CC:-cc}"
    expect 0 $kind.c/model train text.txt --weights $kind.c/weights.safetensors
    sed -n 's/^step.* loss \([0-9.]*\) .*/\1/p' out | paste losses - > both
    awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4 * $2) bad = 1; n++ }
         END { exit !(n == 6 && !bad) }' both || fail "$kind: the folder differs: $(cat both)"
done
# Two kinds of decay are two runs.
sed 's/decay = coupled/decay = decoupled/' coupled.vwn > plain.vwn
expect 0 "$VWN" train plain.vwn --run plain --json
losses out > plain
expect 0 "$VWN" train coupled.vwn --run again --json
losses out > coupled
if cmp -s plain coupled; then fail "coupled decay is decoupled"; fi

# A rate of the second optimizer is asked for in every step, too
expect 0 "$VWN" check muon.vwn --set 'train.optimizer.adamw.lr=cosine(peak = 1e-3, floor = 0)'
expect 1 "$VWN" train muon.vwn --run bad --set 'train.optimizer.adamw.lr=2 - step'
has err 'step 4: the learning rate'
expect 0 "$VWN" resolve muon.vwn --set 'train.optimizer.adamw.lr=cosine(peak = 1e-3, floor = 0)'
has out 'lr    = cosine(peak = 1e-3, floor = 0, warmup = 0'

# The update of a mixed run stays in float32
expect 0 "$VWN" ir muon.vwn --stage plan --program update --set 'train.precision=mixed(compute = bf16, master = fp32)'
has out matmul
lacks out bf16

# A weight that a group moves to the other optimizer has the decay of that one: the run is as if it were written there, and another one
# than with the decay of the optimizer that it left. On both devices.
moved() { # weight, the optimizer that it moves to, that one's decay, the other one's
    for device in cpu reference; do
        for decay in none "$3" "$4"; do
            with=
            [ "$decay" = none ] || with=", weight_decay = $decay"
            cat > moved.vwn <<EOF
edition = 1
import "std/transformer"
import "std/connections"
model moved {
  context = 8, width = 16, mask = none, init = normal(std = 0.1), connection = residual(), pre_norm = none
  embed tokens { vocab = 256 }
  linear { out = 16 }
  head lm { norm = none, tie = tokens }
}
train {
  data = text_file("text.txt"), tokenizer = bytes(), batch = 4 seqs, length = 4 steps, seed = 1, precision = fp32
  optimizer muon {
    lr = 0.02, momentum = 0.95, weight_decay = 20
    adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 5 }
    group "$1" { update = $2$with }
  }
  log { every = 1 steps }
}
EOF
            expect 0 "$VWN" train moved.vwn --run moved --device $device --overwrite --json
            losses out > "moved.$decay"
        done
        [ "$(wc -l < moved.none)" = 4 ] || fail "$2 for $1, $device: $(wc -l < moved.none) losses, not 4"
        cmp -s moved.none "moved.$3" || fail "$2 for $1, $device: its decay is not the $3 of $2: $(paste moved.none "moved.$3")"
        if cmp -s moved.none "moved.$4"; then fail "$2 for $1, $device: a decay of $3 and one of $4 are one run"; fi
    done
}
moved linear.W adamw 5 20
moved embed.tokens.W muon 20 5
finish
