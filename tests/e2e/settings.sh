# settings.sh - a resumed run is the same run: it repeats its --set values, is found from every folder, and what
# nobody should miss is said with -q too; bad values of the environment are errors.
# When: optimised.
. "$VWN_SOURCE/tests/support/lib.inc"
home=$PWD
expect 0 "$VWN" new nano --from nano
steps() { sed -n 's/.*"event":"step".*"step":\([0-9]*\),.*"loss":\([0-9.e+-]*\).*/\1 \2/p' "$1/events.jsonl"; }
every='train.log.every=1 steps'

# the values are repeated: the same losses as without a stop
expect 0 "$VWN" train nano/model.vwn --run whole --set D=48 --set "$every" --until '4 steps'
expect 0 "$VWN" train nano/model.vwn --run parts --set D=48 --set "$every" --until '2 steps'
expect 0 "$VWN" train nano/model.vwn --run parts --resume --dry-run -q
empty err
expect 0 "$VWN" train nano/model.vwn --run parts --resume --until '4 steps' -q
empty err
steps runs/whole > whole.txt
steps runs/parts > parts.txt
filled whole.txt
cmp -s whole.txt parts.txt || fail "other losses after resuming without --set: $(cat parts.txt)"
expect 0 "$VWN" train nano/model.vwn --run parts --resume --set D=48 --until '5 steps' -q
empty err
has runs/parts/origins.json '"D=48"'
# without --run the run is that of the model's name
expect 0 "$VWN" train nano/model.vwn --set D=48 --until '1 steps'
expect 0 "$VWN" train nano/model.vwn --resume --until '2 steps' -q
empty err
# another value is another run; a new one is said
expect 2 "$VWN" train nano/model.vwn --run parts --resume --set D=96
has err 'the run was started with `--set D=48` and cannot go on with `--set D=96`'
expect 0 "$VWN" train nano/model.vwn --run parts --resume --set train.clip=0.5 --until '6 steps' -q
has err 'warning: the run was started without `--set train.clip=0.5`'
lacks err 'has changed'
# how long it is may change: with another length, and with another file where no --set decides; what follows from it is said.
# cosine(peak, floor, warmup) in the 3rd step of 4 and of 8, whatever warm-up and peak are: computed here from the file's own words
expect 0 "$VWN" train nano/model.vwn --run longer --set D=48 --set 'train.length=4 steps' --set 'train.optimizer.lr=cosine(peak = 1e-2, floor = 0, warmup = 0 steps)' --until '2 steps'
expect 0 "$VWN" train nano/model.vwn --run longer --resume --set 'train.length=8 steps' --until '4 steps' --json
has out 'the run was started with `--set train.length=4 steps`; it goes on with `--set train.length=8 steps`'
wanted=$(awk 'BEGIN { pi = atan2(0, -1); printf "%.4g instead of %.4g", 0.005 * (1 + cos(pi * 2 / 8)), 0.005 * (1 + cos(pi * 2 / 4)) }')
has out "the run was to end at step 4, and now at step 8: schedules that depend on its length follow the new one from here on, and the rate of step 3 is $wanted"
has runs/longer/origins.json '"train.length=8 steps"'
expect 0 "$VWN" train nano/model.vwn --run longer --resume -q
lacks err 'the run was'
has out 'trained at step 8 of 8'
sed 's/^  length .*/  length = 50 steps/; s/^  clip .*/  clip = 0.75/' nano/model.vwn > nano/other.vwn
expect 0 "$VWN" train nano/other.vwn --run longer --resume -q
has err ': train.clip 1.0 -> 0.75; going on with what it says now, but for `--set D=48`, `--set train.optimizer.lr=cosine(peak = 1e-2, floor = 0, warmup = 0 steps)`, `--set train.length=8 steps`'
has out 'trained at step 8 of 8'
expect 1 "$VWN" train nano/model.vwn --run longer --resume --set 'train.length=3 steps' -q
has err 'is at step 8, but the run has only 3 steps'
# a changed file is said, also with -q
sed -i 's/^  clip .*/  clip = 0.25/' nano/model.vwn
expect 0 "$VWN" train nano/model.vwn --run whole --resume --until '6 steps' -q
has err 'warning: nano/model.vwn has changed since runs/whole/ckpt/step_00000004.safetensors was written: train.clip 1.0 -> 0.25; going on'

# from every folder
expect 0 "$VWN" train nano/model.vwn --run away --until '3 steps' --set "$every" --set 'train.checkpoint.keep=5'
expect 0 "$VWN" train nano/model.vwn --run away --resume --until '4 steps' --set "$every"
mkdir elsewhere
cd elsewhere || exit 1
expect 0 "$VWN" sample "$home/runs/away" --tokens 4
expect 0 "$VWN" eval "$home/runs/away" --batches 1
expect 0 "$VWN" train ../nano/model.vwn --run "$home/runs/away" --resume --until '5 steps' -q
empty err
cd "$home" || exit 1

# a damaged checkpoint is passed over, and it is said, also with -q
newest=$(ls runs/away/ckpt/*.safetensors | tail -n 1)
printf '?' | dd of="$newest" bs=1 seek=6000 conv=notrunc 2> dd.log
expect 0 "$VWN" sample runs/away --tokens 2 -q
has err 'warning: a damaged checkpoint is passed over'
expect 0 "$VWN" eval runs/away --batches 1 -q --json
has err 'warning: a damaged checkpoint is passed over'
has out '{"v":1,"event":"eval","step":4,'
expect 0 "$VWN" train nano/model.vwn --run away --resume --until '6 steps' -q
has err 'warning: a damaged checkpoint is passed over'

# the last line says of which step the evaluation is
expect 0 "$VWN" train nano/model.vwn --run line --until '3 steps' --set 'train.eval.every=2 steps'
grep -q 'eval loss [0-9.]* (of step 2), checkpoint' out || fail "the last line: $(cat out)"
expect 0 "$VWN" train nano/model.vwn --run line --resume --until '3 steps' --json
grep -q '"event":"end".*"eval_step":2' out || fail "the last event"
grep -q '^{"v":1,"event":"start"' out || fail "no version in the events"

# a file is no run
expect 2 "$VWN" sample nano/model.vwn
has err 'train it with `vwn train nano/model.vwn`'
expect 0 "$VWN" sample runs/line --tokens 2 --json
has out '{"v":1,"event":"sample","prompt":'

# several prompts: from flags, from a file, one on each line
printf '1 + 1\n2 + 2\r\n3' > prompts
expect 0 "$VWN" sample runs/line --tokens 2 --json --prompts prompts --prompt 4
[ "$(wc -l < out)" -eq 4 ] || fail "four prompts give $(wc -l < out) lines"
for prompt in '4' '1 + 1' '2 + 2' '3'; do has out "\"prompt\":\"$prompt\""; done
has out '"index":3}'
expect 0 "$VWN" sample runs/line --tokens 5 --temperature 0 --prompt 1 --prompt 2
cp out kept
expect 0 "$VWN" sample runs/line --tokens 5 --temperature 0 --prompt 1 --prompt 2 --recompute
cmp -s out kept || fail "what is kept changes the likeliest text"
expect 5 "$VWN" sample runs/line --prompts nowhere
has err 'cannot read nowhere'
: > prompts
expect 2 "$VWN" sample runs/line --prompts prompts
has err 'holds no prompt'

# evaluation without data is found before training
sed 's/, val = [0-9.]*%//' nano/model.vwn > nano/no_val.vwn
expect 1 "$VWN" check nano/no_val.vwn
has err 'E0604'

# values of the environment
expect 2 env VWN_THREADS=many "$VWN" doctor
has err 'VWN_THREADS is `many`'
expect 2 env VWN_THREADS=0 "$VWN" doctor
expect 0 env VWN_THREADS=1 "$VWN" doctor
expect 2 env VWN_COLOR=blue "$VWN" check nano/model.vwn
has err 'VWN_COLOR is `blue`'
expect 5 env CC=/nonexistent/cc "$VWN" train nano/model.vwn --run none --dry-run
has err "the C compiler '/nonexistent/cc' that CC names does not run"
expect 5 env VWN_CACHE="$home/nano/model.vwn" "$VWN" train nano/model.vwn --run none --dry-run
has err 'the kernel cache'
expect 0 env -u CC PATH=/nonexistent "$VWN" sample runs/line --tokens 2 -q
has err 'warning: no C compiler works here'

# so behind a growth step: 0.01 / 2 (1 + cos(pi 4 / n)) for n = 6, 12 and 10
squares > text.txt
{ small_model 'let hidden = 16' '  embed tokens { vocab = 256 }
  ffn { hidden = hidden, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }'
  small_train '  length    = 6 steps
  optimizer adamw { lr = cosine(peak = 1e-2, floor = 0, warmup = 0 steps), betas = [0.9, 0.99], eps = 1e-8, weight_decay = 0.1 }
  checkpoint { every = 1 steps, keep = 9 }'
  echo 'grow wider { when = step >= 2, let hidden = 24, fill { entry = zeros } }'; } > grown.vwn
expect 0 "$VWN" train grown.vwn --run grown --device reference --until '4 steps'
cp -r runs/grown runs/written
expect 0 "$VWN" train grown.vwn --run grown --resume --device reference --set 'train.length=12 steps' --until '5 steps'
has err 'the run was to end at step 6, and now at step 12: schedules that depend on its length follow the new one from here on, and the rate of step 5 is 0.0075 instead of 0.0025'
sed 's/length *= 6 steps/length = 10 steps/' grown.vwn > other.vwn
expect 0 "$VWN" train other.vwn --run written --resume --device reference --until '5 steps'
has err 'to end at step 6, and now at step 10: schedules that depend on its length follow the new one from here on, and the rate of step 5 is 0.006545 instead of 0.0025'
expect 0 "$VWN" train other.vwn --run written --resume --device reference --until '6 steps'
lacks err 'was to end'
finish
