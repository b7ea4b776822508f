# growth_train.sh - what a growth step says about training: rates of old and new weights, a training of its own, plateaus,
# the start and epochs as triggers, averages, micro-batches and fp16 over a step. Each is the same run when it is stopped
# and resumed before, at and behind the step, and no step waits for a compiler.
# When: first, slow, whole. It grows for minutes.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt

{ small_model 'import "std/growable"

let hidden = 24
let heads  = 2
let layers = 2
let rank   = 12
let peak   = 1e-2' '  embed tokens { vocab = 256 }
  for layer in 1..layers {
    attention { heads = heads, head_dim = 8, position = rope(base = 10_000), q_proj = nexus_rank(M = rank, A = 2 * rank) }
    ffn       { hidden = hidden, activation = gelu }
  }
  head lm { norm = rms_norm(eps = 1e-6) }'
small_train '  length    = 16 steps
  clip      = 1
  average   = ema(decay = 0.9)
  optimizer adamw { lr = constant(peak = peak), betas = [0.9, 0.999], eps = 1e-8, weight_decay = 0.1 }
  eval       { every = 5 steps, batches = 2 }
  checkpoint { every = 8 steps, keep = 9 }'; } > base.vwn

# sizes that no kernel depends on, all at once: nothing is compiled in mid-run
cat > cold.vwn <<EOF
$(sed 's/16 steps/6 steps/' base.vwn)
grow all {
  when = step >= 4
  let hidden = 40
  let rank = 14
  let heads = 3
  let layers = 3
  fill { exit = zeros, layers = identity }
  old { lr_scale = 0.1, warmup = 3 steps }
}
EOF
VWN_CACHE=$PWD/kernels expect 0 "$VWN" train cold.vwn --run cold --json
grep '"event":"compile"' out | sed -n 's/.*"step":\([0-9]*\).* \([0-9]*\) compiled in.*/\1 \2/p' > compiled
[ "$(cut -d' ' -f1 compiled | tr '\n' ' ')" = '0 0 4 ' ] || fail "compiled at steps $(cat compiled)"
[ "$(sed -n 3p compiled)" = '4 0' ] || fail "the growth step waits for a compiler: $(cat compiled)"
has out 'kernels of growth steps to come'

# one after the other
cat > sizes.vwn <<EOF
$(cat base.vwn)
grow wider  { when = step >= 4, let hidden = 40, fill { exit = zeros }, old { lr_scale = 0.1, warmup = 3 steps } }
grow ranked { when = step >= 5, let rank = 14, fill { exit = zeros }, new { lr_scale = if step < 7 then 2 else 1, warmup = 2 steps } }
grow headed { when = step >= 6, let heads = 3, fill { exit = zeros }, old { lr_scale = 0 } }
grow deeper { when = step >= 9, let layers = 3, fill { layers = identity }, old { lr_scale = 1 } }
EOF

# same FILE LAST STEPS...: stopped at the first of the steps (whole: at each) and resumed it is the same run
same() {
    file=$1 final=ckpt/step_000000$2.safetensors first=$3
    shift 2
    expect 0 "$VWN" train $file.vwn --run whole --overwrite --json
    cp out $file.json
    filled runs/whole/$final
    for at in "$@"; do
        [ "$at" = "$first" ] || whole || continue
        expect 0 "$VWN" train $file.vwn --run parts --overwrite --until "$at steps" -q
        expect 0 "$VWN" train $file.vwn --run parts --resume -q
        cmp -s runs/whole/$final runs/parts/$final || fail "$file: a run stopped at step $at is another run"
    done
}

same sizes 16 4 7
[ "$(grep -c '"event":"growth"' sizes.json)" -eq 4 ] || fail "four growth steps are four events"
preserved sizes.json 4 2e-6
losses sizes.json > cpu
evals sizes.json > cpu_evals
expect 0 "$VWN" train sizes.vwn --run reference --device reference --json
preserved out 4 0
losses out > reference
evals out > reference_evals
close cpu reference 1e-4
close cpu_evals reference_evals 1e-5

# frozen weights and their moments are the bytes that they were; what comes is not
sed 's/let layers = 3/let hidden = 48/; s/layers = identity/exit = zeros/; s/, old { lr_scale = 1 }//' sizes.vwn > frozen.vwn
expect 0 "$VWN" train frozen.vwn --run frozen -q
for tensor in layer[1].ffn.up.W layer[2].attention.v_proj.W embed.tokens.W; do
    for state in '' :m :v; do
        python3 - "runs/frozen/ckpt/before_headed.safetensors" runs/frozen/ckpt/step_00000016.safetensors "$tensor$state" <<'EOF' ||
import json, struct, sys
def read(path, name):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    t = json.loads(b[8:8 + n])[name]
    v = struct.unpack("<%df" % ((t["data_offsets"][1] - t["data_offsets"][0]) // 4), b[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])
    c = t["shape"][1]
    return [v[i * c:(i + 1) * c] for i in range(t["shape"][0])]
old, new = (read(p, sys.argv[3]) for p in sys.argv[1:3])
assert all(new[i][:len(row)] == row for i, row in enumerate(old)), "a frozen number has changed"
assert len(new[0]) == len(old[0]) or any(v != 0 for row in new for v in row[len(old[0]):]), "new weights do not learn"
EOF
            fail "$tensor$state is not frozen"
    done
done

# a training of its own: time begins again, with other data, batch, rate and length
sed 's/square/cube/' text.txt > cubes.txt
cat > fresh.vwn <<EOF
$(cat base.vwn)
grow wider {
  when = step >= 6
  let hidden = 32
  let peak = 2e-2
  fill { exit = zeros }
  train {
    data = text_file("cubes.txt", val = 10%), batch = 8 seqs, micro_batch = 2 seqs, length = 9 steps, clip = 0.5
    optimizer adamw { lr = linear(peak = peak, floor = 0, warmup = 3 steps) }
    eval { every = 4 steps, batches = 1 }
  }
  check preserves(1e-6)
}
grow again { when = step >= 4, let hidden = 40, fill { exit = zeros }, train { length = 3 steps } }
EOF
same fresh 13 6 11
rates() { sed -n 's/.*"event":"step".*"lr":\([0-9.e+-]*\).*/\1/p' "$1"; }
rates fresh.json | tail -n 7 | awk '{ s = (NR - 1) % 4; want = 2e-2 * (s < 3 ? (s + 1) / 3 : 1)
    if ($1 - want > 1e-12 || want - $1 > 1e-12) exit 1 }' || fail "rates: $(rates fresh.json | tail -n 7 | tr '\n' ' ')"
has fresh.json 'is of other data'
has runs/whole/resolved.vwn 'text_file("cubes.txt"'

# plateaus, found again by a loop over the losses that the run has printed
cat > plateau.vwn <<EOF
$(sed 's/16 steps/60 steps/; s/every = 1 steps/every = 1 steps/' base.vwn)
grow wider { when = plateau(train.loss, window = 5 steps, less_than = 10%), let hidden = 32, fill { exit = zeros } }
EOF
expect 0 "$VWN" train plateau.vwn --run whole --overwrite --json
losses out | awk '{ sum += $1 } NR % 5 == 0 { if (NR > 5 && sum > last * 0.9) { print NR; exit } last = sum; sum = 0 }' > want
sed -n 's/.*"event":"growth".*"step":\([0-9]*\).*/\1/p' out > got
cmp -s want got || fail "a plateau at step $(cat got), not $(cat want)"
filled want
at=$(cat want)
same plateau 60 "$at" 6
sed 's/train.loss, window = 5 steps, less_than = 10%/eval.loss, window = 25%, less_than = 90%/' plateau.vwn > held.vwn
same held 60 29

# the start, and epochs
cat > start.vwn <<EOF
$(cat base.vwn)
grow first { when = start, let hidden = 32, fill { exit = zeros } }
grow second { when = epoch >= 0.02, old { lr_scale = 0.5 } }
EOF
same start 16 2
filled runs/whole/ckpt/before_first.safetensors

# fp16 with its scale, a micro-batch
sed 's/precision = fp32/precision = mixed(compute = fp16, master = fp32)/; s/batch     = 4 seqs/batch = 4 seqs, micro_batch = 2 seqs/' sizes.vwn > half.vwn
same half 16 5

# rates that are none are said at their place, before the first step where they are known
sed 's/lr_scale = if step < 7 then 2 else 1/lr_scale = 3 - step/' sizes.vwn > rate.vwn
expect 1 "$VWN" train rate.vwn --run rate -q
has err 'the factor of the rate `3 - step` is'

# other optimizers
sed -i '/^grow ranked/d; /^grow deeper/d' sizes.vwn
sed "s/optimizer adamw.*/optimizer sgd { lr = 0.1, momentum = 0.9, weight_decay = 0.1 }/" sizes.vwn > kind.vwn
same kind 16 5
sed 's/optimizer adamw.*/optimizer muon { lr = 0.02, momentum = 0.9, weight_decay = 0.1, adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 1e-8 } }/
    s/lr_scale = 0 /lr_scale = 0.01 /' sizes.vwn > kind.vwn
same kind 16 5

# streams that are the same stay so: what mixes them has no gradient, and would have one with other weights
sed '/^grow/,$d; s/16 steps/4 steps/; s/residual()/mhc(n = 2, iterations = 2, collapse = learned)/' base.vwn > streams.vwn
echo 'grow deeper { when = step >= 2, let layers = 3, check alive(none) }' >> streams.vwn
expect 0 "$VWN" train streams.vwn --device reference --run streams --overwrite
has err 'no gradient after 0 updates with these weights, and one with others'
lacks err 'bug of vwn'

finish
