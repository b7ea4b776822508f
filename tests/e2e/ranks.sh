# ranks.sh - one run of one, two, four and eight processes: the same weights to the bit, through growth, kills and other numbers of them.
. "$VWN_SOURCE/tests/support/lib.inc"
squares > text.txt
export TMPDIR="/tmp/vwn-e2e-$$" # of sockets, whose paths are to be short
mkdir "$TMPDIR"

# what a step can add up: experts with losses of their own, dropout, a second head, clipping, an average, micro-batches, growth
cat > model.vwn <<'EOF'
edition = 1
import "std/transformer"
import "std/connections"

let D = 8
let H = 12

model all {
  context    = 12
  width      = D
  mask       = causal
  init       = normal(std = 0.1)
  out_init   = normal(std = 0.1)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D, init = eye))

  embed tokens { vocab = 256, width = D * 3 / 2 }
  attention { heads = 2, position = rope(base = 10_000), dropout = 0.1 }
  moe       { experts = 4, active = 2, hidden = H, activation = silu, scores = softmax, normalize = true, balance = 0.01, z_loss = 0.001 }
  head lm   { norm = rms_norm(eps = 1e-6) }
  head mtp  {
    predict = 2
    weight  = 0.3
    norm    = rms_norm(eps = 1e-6)
    mix     = linear()
    tie     = lm
    layer { ffn { hidden = 12, activation = gelu } }
  }
}

train {
  data        = text_file("text.txt", val = 10%)
  tokenizer   = bytes()
  batch       = 16 seqs
  lanes       = 8
  micro_batch = 1 seqs
  length      = 4 steps
  seed        = 1
  precision   = fp32
  clip        = 1.0
  average     = ema(decay = 0.9)

  optimizer muon {
    lr = linear(peak = 0.02, floor = 0), momentum = 0.95, weight_decay = 0.1
    adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 1e-8 }
    group "head.*" { update = adamw }
  }

  eval       { every = 2 steps, batches = 1 }
  checkpoint { every = 1 steps, keep = 9 }
  log        { every = 1 steps }
}

grow wider {
  when = step >= 2
  let H = 16
  fill { exit = zeros, entry = normal(std = 0.02) }
  check preserves(1e-5)
}
EOF
children() { sed -n "s/^\([0-9]*\) ([a-z0-9 ]*) . $1 .*/\1/p" /proc/[0-9]*/stat 2> /dev/null | sort -n; }
# Waits for the first checkpoint of a run, as long as process $2 is there.
wait_for() { while kill -0 "$2" 2> /dev/null && ! ls "runs/$1"/ckpt/step_00000001* > /dev/null 2>&1; do sleep 0.02; done; }
last_of() { echo "$1/ckpt/step_00000004.safetensors"; }
same_as_one() { cmp "$(last_of runs/r1)" "$(last_of "$1")" > said 2>&1 || fail "$1 has other weights than one process: $(cat said)"; }
train() { expect 0 "$VWN" launch -n "$1" train model.vwn --device reference --run "r$1"; }

expect 0 "$VWN" train model.vwn --device reference --run r1
stages=$(grep -c 'Training' err) # with the growth step
for n in 2 8; do
    train $n
    same_as_one runs/r$n
    has out 'trained at step 4 of 4'
    [ "$(grep -c 'Training' err)" -eq "$stages" ] || fail "$n processes say what they do $(grep -c 'Training' err) times"
    [ "$(grep -c '"event":"step"' runs/r$n/events.jsonl)" -eq 4 ] || fail "the events are not those of one process"
    losses runs/r1/events.jsonl > one
    losses runs/r$n/events.jsonl > other
    cmp one other || fail "other losses"
    evals runs/r1/events.jsonl > one
    evals runs/r$n/events.jsonl > other
    cmp one other || fail "other losses of evaluations"
done
# on the processor, with products in 16 bits: weights that are tied, AdamW, clipping, an average; what each process sends in a step, and
# the memory of states, are what `vwn cost` has planned
small_model 'let H = 96' '  embed tokens { vocab = 256, width = D }
  attention { heads = 2 }
  ffn { hidden = H, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6), tie = tokens }' | sed 's/^let D = 16/let D = 64/' > tied.vwn
small_train 'lanes = 4
length = 3 steps
clip = 0.5
average = ema(decay = 0.9)
optimizer adamw { lr = linear(peak = 0.01, floor = 0), betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }
eval { every = 2 steps, batches = 1 }
checkpoint { every = 1 steps, keep = 9 }' | sed 's/precision = fp32/precision = mixed(compute = fp16, master = fp32)/; s/batch     = 4/batch = 16/' >> tied.vwn
list_of() { sed -n "s/.*\"$1\":\[\([^]]*\)\].*/\1/p" "$2" | tail -n 1 | tr , '\n'; }
costs_of() { grep -o "\"$1\":[0-9]*" out | sed 's/.*://'; }
expect 0 "$VWN" train tied.vwn --device cpu --run t1
lacks err 'so nothing is rounded'
for n in 2 4; do
    expect 0 "$VWN" launch -n $n train tied.vwn --device cpu --run t$n
    cmp runs/t1/ckpt/step_00000003.safetensors runs/t$n/ckpt/step_00000003.safetensors || fail "$n processes have other weights on the processor"
    expect 0 "$VWN" cost tied.vwn --ranks $n --json
    list_of sent runs/t$n/events.jsonl > sent
    costs_of bytes_sent > planned
    [ "$(wc -l < sent)" -eq $n ] || fail "bytes sent of $(wc -l < sent) processes instead of $n"
    cmp sent planned || fail "$n processes send $(paste -s -d, sent) bytes in a step, and not $(paste -s -d, planned)"
    # what a process has beside its states and its arena is the same in all of them
    list_of rank_mem runs/t$n/events.jsonl > memory
    for key in bytes_optimizer bytes_average bytes_arena; do costs_of $key | tail -n $n > $key; done
    paste memory bytes_optimizer bytes_average bytes_arena | awk '{ print $1 - $2 - $3 - $4 }' | sort -u > rest
    [ "$(wc -l < rest)" -eq 1 ] || fail "memory of $n processes: $(paste -s -d, memory); without states: $(paste -s -d, rest)"
    [ "$(awk '{ n += $1 } END { print n }' bytes_optimizer)" -eq "$(awk -v n=$n '{ s += $1 } END { print 2 * s }' bytes_average)" ] || fail "AdamW has two moments"
    [ "$(sort -u bytes_optimizer | wc -l)" -gt 1 ] || fail "all processes have the same states"
done
# who has computed, waited and communicated is on the page of the run
expect 0 "$VWN" report runs/t4 -o t4.html --connections none
has t4.html '<dt>rank 3</dt><dd>computing '
lacks t4.html '<dt>rank 4</dt>'
# the same of a few steps that nobody keeps
expect 0 "$VWN" bench tied.vwn --ranks 2 --steps 2 --device cpu
has out 'rank 1'
lacks out 'rank 2'
has out '2 processes, means of 2 steps'
expect 0 "$VWN" bench tied.vwn --ranks 2 --steps 2 --device cpu --json
json out
grep -o '"sent":[0-9]*' out | sed 's/.*://' > measured
expect 0 "$VWN" cost tied.vwn --ranks 2 --json
costs_of bytes_sent > planned
cmp measured planned || fail "two processes send $(paste -s -d, measured) bytes in a step, and not $(paste -s -d, planned)"
expect 2 "$VWN" bench tied.vwn --ranks 2 --kernels
has err 'goes with `--steps` alone'
expect 2 "$VWN" bench tied.vwn --ranks 3
has err '3 processes cannot share the 4 lanes of a step'
# one lane and eight are two orders of adding: the same losses but for rounding
expect 0 "$VWN" train model.vwn --device reference --run plain --set train.lanes=1
losses runs/r1/events.jsonl > one
losses runs/plain/events.jsonl > other
close one other 1e-9
cmp -s "$(last_of runs/r1)" "$(last_of runs/plain)" && fail "lanes change nothing"

# stopped at 4, going on at 2, at 8, at 1
expect 0 "$VWN" launch -n 4 train model.vwn --device reference --run parts --until '1 steps'
expect 0 "$VWN" launch -n 2 resume runs/parts --device reference --until '2 steps'
expect 0 "$VWN" launch -n 8 train model.vwn --resume --device reference --run parts --until '3 steps'
expect 0 "$VWN" resume runs/parts --device reference
same_as_one runs/parts

# a process that is killed ends all, with a sentence; --restarts goes on from the last checkpoint
"$VWN" launch -n 4 --restarts 2 train model.vwn --device reference --run killed > out 2> err < /dev/null &
launcher=$!
wait_for killed $launcher
victim=$(children $launcher | sed -n 3p)
kill -9 "$victim"
wait $launcher || fail "--restarts has not gone on: $(tail -n 3 err)"
last="launch --restarts"
if grep -q 'Restarting' err; then # else it was done before
    has err 'was ended by signal 9 (Killed)'
    has err 'has gone: its connection ended'
fi
same_as_one runs/killed

# one that was killed before there was a run begins it
VWN_RESTARTED=1 expect 0 "$VWN" train model.vwn --resume --device reference --run fresh --until '1 steps'
has err '`runs/fresh` has no checkpoint yet: starting from the beginning'
expect 2 "$VWN" train model.vwn --resume --device reference --run other
has err 'there is no run in `runs/other` to resume'

# who is silent is named
VWN_TIMEOUT=5 "$VWN" launch -n 2 train model.vwn --device reference --run silent "--set=train.length=4000 steps" > out 2> err < /dev/null &
launcher=$!
wait_for silent $launcher
victim=$(children $launcher | sed -n 2p)
grep -q '^vwn rank [01]$' "/proc/$victim/comm" || fail "a process is called $(cat "/proc/$victim/comm") in the list of processes"
kill -STOP "$victim"
wait $launcher
[ $? -eq 5 ] || fail "a process that is silent ends a run with another status"
last="launch, one stopped"
has err 'rank 1 of 2 (process '
has err 'has sent nothing for 5 seconds'
[ "$(grep -c '^error' err)" -eq 1 ] || fail "not one sentence"

# what does not fit is refused, once
expect 2 "$VWN" cost tied.vwn --ranks 8
has err '8 processes cannot share the 4 lanes of a step: start 1, 2 or 4, or give `train` more lanes: `--set train.lanes=8`'
expect 2 "$VWN" cost tied.vwn --bandwidth 1e9
has err '`--bandwidth` is that of several processes'
expect 0 "$VWN" cost tied.vwn --ranks 2 --bandwidth 1e6 --latency 1 --json
has out '"exchanges":5,"time_exchange":5.'
expect 0 "$VWN" cost tied.vwn --ranks 2 --bandwidth 1e6 --latency 1
has out 'none of it is hidden'
has out 'memory of rank 0 in training'
expect 2 "$VWN" launch -n 3 train model.vwn --device reference --run no
has err '3 processes cannot share the 8 lanes of a step: start 1, 2, 4 or 8'
[ "$(grep -c '^error' err)" -eq 1 ] || fail "not one sentence"
expect 2 "$VWN" launch -n 2 train model.vwn --device reference --run no --set train.lanes=1
has err '2 processes cannot share the 1 lane of a step: start 1, or give `train` more lanes: `--set train.lanes=2`'
expect 2 "$VWN" launch -n 2 train model.vwn --device reference --run r1
has err 'already holds a run'
[ "$(grep -c '^error' err)" -eq 1 ] || fail "not one sentence"
expect 2 "$VWN" launch -n 2 sample r1
has err '`vwn launch` starts `train` or `resume`'
expect 2 "$VWN" launch train model.vwn
has err 'how many processes? vwn launch -n 4 train ...'
expect 2 "$VWN" launch -n 2 train -
has err 'only one process can read `-`'
expect 2 "$VWN" launch -n 2 --restarts 1 train model.vwn --overwrite
has err '`--restarts` goes on with what is there'
RANK=2 WORLD_SIZE=2 expect 2 "$VWN" train model.vwn
has err 'RANK is `2`; it must be a whole number from 0 to 1'
RANK=0 WORLD_SIZE=2 expect 2 "$VWN" train model.vwn
has err 'nothing says where the first listens'
RANK=0 WORLD_SIZE=2 MASTER_ADDR=192.0.2.1 MASTER_PORT=29999 expect 5 "$VWN" train model.vwn
has err 'ranks on several machines need a secret'

# by the variables of torchrun, of srun and of mpirun, over TCP: another setting, file or text in one of them is refused, and named
port=$((10000 + $$ % 20000))
group() { # FILE of rank 1, arguments of it
    file=$1
    shift
    export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
    SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 "$VWN" train "$file" --device reference --run group --overwrite "$@" > /dev/null 2> err1 < /dev/null &
    other=$!
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$VWN" train model.vwn --device reference --run group --overwrite > out 2> err < /dev/null
    status=$?
    wait $other
    unset MASTER_ADDR MASTER_PORT
    port=$((port + 1))
    last="two processes over TCP, the other with $file $*"
}
group model.vwn
[ $status -eq 0 ] || fail "exit status $status"
same_as_one runs/group
group model.vwn --set train.seed=2
[ $status -ne 0 ] || fail "another seed is no mistake"
has err 'rank 1 has another file, or other settings, than rank 0'
squares | sed 's/line 7 /Line 7 /' > other.txt
sed 's/text\.txt/other.txt/' model.vwn > other.vwn
group other.vwn
has err 'rank 1 has another text to train on than rank 0'
mkdir -p elsewhere && cp model.vwn elsewhere && cp other.txt elsewhere/text.txt
group elsewhere/model.vwn
has err 'rank 1 has another text to train on than rank 0'
echo '}' > wrong.vwn
group wrong.vwn
[ $status -ne 0 ] || fail "a file with errors in one process is no mistake"
has err 'rank 1 of 2 (process '
has err 'has failed: '

# a sweep's points are shared by three processes, also what is left behind a rung: the same runs, the same table
small_model '' '  embed tokens { vocab = 256, width = D }
  head lm { norm = rms_norm(eps = 1e-6) }' > points.vwn
small_train 'length = 4 steps
optimizer adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }
eval { every = 1 steps, batches = 1 }' >> points.vwn
cat >> points.vwn <<'EOF'
sweep rates {
  vary { train.optimizer.lr = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2] }
  prune = halving(rungs = [1 steps, 2 steps], keep = 50%)
}
EOF
seconds() { awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "seconds") s = i } { if (s) $s = ""; print }' out; }
expect 0 "$VWN" sweep points.vwn --device reference --run alone --csv
seconds > alone.csv
expect 0 "$VWN" sweep points.vwn --device reference --run shared --csv --launch 3
seconds > shared.csv
cmp alone.csv shared.csv || fail "three processes have another table: $(cat shared.csv)"
[ "$(grep -c ' Point ' err)" -ge 5 ] || fail "not all points are told"
points=0
for file in runs/alone/*/ckpt/*.safetensors; do
    points=$((points + 1))
    cmp "$file" "runs/shared/${file#runs/alone/}" || fail "a point of three processes has other weights"
done
[ $points -ge 5 ] || fail "$points checkpoints of points"
expect 2 "$VWN" sweep points.vwn --launch 2 --list
has err '`--list` and `--launch` exclude each other'
expect 2 "$VWN" sweep points.vwn --device reference --run shared --launch 2
has err 'already holds a sweep'
[ "$(grep -c '^error' err)" -eq 1 ] || fail "not one sentence"

# Ctrl-C ends all of them, once, with a checkpoint, though it comes to all of a terminal, and is passed on, too
setsid "$VWN" launch -n 2 train model.vwn --device reference --run stopped "--set=train.length=4000 steps" > out 2> err < /dev/null &
launcher=$!
wait_for stopped $launcher
kill -s TERM -- "-$launcher"
wait $launcher
[ $? -eq 130 ] || fail "an interrupted run ends with another status"
last="launch, interrupted"
lacks err 'error'
has out 'interrupted at step'
# before they can listen to it, too; nothing is begun again
"$VWN" launch -n 2 --restarts 2 train model.vwn --device reference --run never "--set=train.length=4000 steps" > out 2> err < /dev/null &
launcher=$!
while kill -0 $launcher 2> /dev/null && [ -z "$(children $launcher)" ]; do :; done
kill -TERM $launcher
wait $launcher
[ $? -eq 130 ] || fail "interrupted at the beginning, it ends with another status"
last="launch, interrupted at the beginning"
lacks err 'error'
lacks err 'Restarting'
rmdir "$TMPDIR" || fail "folders of sockets are left: $(ls "$TMPDIR")"
finish
