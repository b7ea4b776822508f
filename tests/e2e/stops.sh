# stops.sh - what stops a run says what and where; evaluation does not depend on how the work is cut.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"
yes 'the quick brown fox jumps over the lazy dog' | head -n 300 > text.txt

# model LR BATCH HEAD: a small file, on stdout
model() {
    cat << END
edition = 1
import "std/transformer"
import "std/connections"

model tiny {
  context    = 16
  width      = 16
  mask       = causal
  init       = normal(std = 0.1)
  out_init   = normal(std = 0.1)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = residual()
  embed tokens { vocab = 256 }
  ffn { hidden = 32, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6)$3 }
}

train {
  data      = text_file("text.txt", val = 20%)
  tokenizer = bytes()
  batch     = 8 seqs$2
  length    = 8 steps
  seed      = 1
  precision = fp32
  optimizer sgd { lr = $1, momentum = 0, weight_decay = 0 }
  eval { every = 4 steps, batches = 2 }
  log { every = 1 steps }
}
END
}

# an update that leaves the numbers in the last step: 0 / 0 where a row of the table has no token. Nothing with such numbers is kept
model 1e-3 '' '' | sed -e 's/optimizer sgd.*/optimizer adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 0, weight_decay = 0 }/' \
    -e 's/length    = 8 steps/length    = 1 steps/' -e 's/eval {.*/checkpoint { every = 1 steps, keep = 1 }/' > last.vwn
for device in cpu reference; do
    for keep in 1 0; do
        expect 4 "$VWN" train last.vwn --run runs/last --overwrite --device $device --set "train.checkpoint.keep=$keep"
        has err 'step 1: its update has left the range of the numbers: number 1 of `embed.tokens.W` is not a number'
        lacks err 'trained at step'
        [ -z "$(ls runs/last/ckpt/*.safetensors 2> /dev/null)" ] || fail "a checkpoint without numbers is there"
    done
done

# a learning rate that is none: the expression, its place, the step, the value, what it reads
model 'sqrt(3 - step)' '' '' > rate.vwn
expect 0 "$VWN" check rate.vwn
expect 1 "$VWN" train rate.vwn
has err 'error[E0208]: step 5: the learning rate `sqrt(3 - step)` is nan'
has err "rate.vwn:$(grep -n 'lr = ' rate.vwn | cut -d: -f1):24"
has err 'with step = 4'
lacks err 'step      1/8' # known before the first step
model 'if train.loss > 0 then sqrt(3 - step) else 1' '' '' > rate.vwn
expect 1 "$VWN" train rate.vwn --overwrite
has err 'step 5: the learning rate `if train.loss > 0 then sqrt(3 - step) else 1` is nan'
has err 'step      4/8'
lacks err 'in `'
model '0.1 * train.loss' '' '' > rate.vwn
expect 1 "$VWN" train rate.vwn --overwrite
has err 'step 1: the learning rate `0.1 * train.loss` is inf'
model 'if train.loss > 100 then 0.2 else 0.1' '' '' > rate.vwn
expect 0 "$VWN" train rate.vwn --overwrite --json
grep -q '"event":"step","step":1,.*"lr":0.2,' out || fail "the first rate: $(grep '"step":1,' out)"
grep -q '"event":"step","step":2,.*"lr":0.1,' out || fail "the second rate"

# a run-time number of the model that is none is named before the module that it breaks
model 0.1 '' '' | sed 's/residual()/residual(branch_scale = 1 \/ (3 - step))/' > weight.vwn
expect 4 "$VWN" train weight.vwn --run weight
has err 'step 4: the loss is'
has err 'the run-time number `(1 / (3 - step))` is inf;'

# 2 batches of 8 are 16 sequences, whatever the micro-batch
value() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" out; }
for micro in 8 4 1; do
    model 0.1 ", micro_batch = $micro seqs" '' > parts.vwn
    expect 0 "$VWN" train parts.vwn --run parts$micro
    expect 0 "$VWN" eval runs/parts$micro --json
    [ "$(value windows)" = 16 ] || fail "micro-batch $micro: $(value windows) windows"
done

# run-time numbers of the model mean the same in `vwn eval` as in the evaluation while training
model 0.1 '' '' | sed 's/residual()/residual(branch_scale = 1 + 9 * epoch + progress)/; s/= 8 steps/= 2 epochs/' > epoch.vwn
expect 0 "$VWN" train epoch.vwn --run epoch --until '12 steps' --json
trained=$(value eval_loss | tail -n 1)
expect 0 "$VWN" eval runs/epoch --json
[ "$(value loss)" = "$trained" ] || fail "the loss of eval is not $trained"

# perplexity is that of the true labels, also when trained on smoothed ones
model 0.1 '' ', smoothing = 0.3' > smooth.vwn
expect 0 "$VWN" train smooth.vwn --overwrite
expect 0 "$VWN" eval runs/tiny --json
awk -v m="$(value metric.next)" -v s="$(value loss.next)" -v p="$(value perplexity)" \
    'BEGIN { e = exp(m) / p; exit !(m > 0 && s > 1.01 * m && e > 0.999999 && e < 1.000001) }' ||
    fail "smoothed: $(cat out)"

# in a step that takes long the first signal says so, and that a second one stops at once
model 0.1 '' '' | sed 's/batch     = 8 seqs/batch     = 512 seqs/; s/hidden = 32/hidden = 30_000/' > long.vwn
"$VWN" train long.vwn --run long --device reference > out 2> err < /dev/null &
pid=$!
i=0
until grep -q '^ *Training' err || [ $((i += 1)) -gt 300 ]; do sleep 0.1; done
sleep 2.5
kill -TERM $pid
i=0
until grep -q '^interrupted' err || [ $((i += 1)) -gt 100 ]; do sleep 0.1; done
last='SIGTERM in a long step'
grep -q '^interrupted: finishing this step, which has taken [1-9][0-9]* s so far; a second signal stops at once$' err ||
    fail 'the first signal does not say how long the step takes'
kill -0 $pid || fail 'the first signal stops at once'
kill -TERM $pid
wait $pid
[ $? -eq 130 ] || fail 'the second signal does not stop it'
[ -z "$(ls runs/long/ckpt/*.safetensors 2> /dev/null)" ] || fail 'the second signal waits for a checkpoint'

# a real disk that is full while training on the CPU: a sentence, no half file, and after room is made the run goes on
# to the losses of one that was never stopped
mkdir disk
if mount -t tmpfs -o size=140k none disk 2> /dev/null; then
    trap 'umount disk' EXIT
    model 0.1 '' '' > full.vwn
    sed -i 's/log { every/checkpoint { every = 2 steps, keep = 9 }; &/' full.vwn
    expect 0 "$VWN" train full.vwn --run whole
    expect 5 "$VWN" train full.vwn --run "$PWD/disk/run"
    has err 'could not be written: No space left on device'
    has err '(cpu)'
    kept=$(ls disk/run/ckpt/*.safetensors | wc -l)
    [ "$kept" -ge 1 ] && [ "$kept" -lt 4 ] || fail "$kept checkpoints on the full disk"
    [ -z "$(ls -A disk/run/ckpt | grep -v safetensors\$)" ] || fail "leftovers: $(ls -A disk/run/ckpt)"
    mount -o remount,size=4m disk
    expect 0 "$VWN" train full.vwn --run "$PWD/disk/run" --resume
    cmp -s runs/whole/ckpt/step_00000008.safetensors disk/run/ckpt/step_00000008.safetensors ||
        fail "another last checkpoint"
fi
finish
