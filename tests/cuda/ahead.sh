# ahead.sh - a GPU never waits for the host to read a loss: the next step is queued before the numbers of the last are read.
# What ends a run is seen on the device and told of the right step; the weights are the same bits as where the host decides.
# When: first, slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"
waits='0 * min(train.loss, 1)' # a file that reads the last loss has each step waited for

# counted NAME FLAGS...: the calls of a run are in NAME.log.
counted() {
    FAKE_CUDA_LOG=$1.log
    export FAKE_CUDA_LOG
    train cuda "$@"
    unset FAKE_CUDA_LOG
}

# How often the host waits for all that is queued.
syncs() {
    sed -n 's/^count cuStreamSynchronize //p' "$1.log"
}

# For each time the host waits for numbers that have come down: how many programs were queued behind these; then how often.
behind() {
    awk '$2 == "cuMemcpyDtoHAsync" { down = 1; next }
        $2 == "cuEventRecord" && down { posted[$4] = programs; waiting[$4] = 1 }
        $2 == "cuGraphLaunch" { programs++ }
        $2 == "cuEventSynchronize" && waiting[$4] { seen[programs - posted[$4]]++; waiting[$4] = 0 }
        { down = 0 }
        END { for (n in seen) print n, seen[n] }' "$1.log" | sort
}

# How often a batch, of 512 bytes, has come up behind the last program that was queued, before its numbers are waited for.
fed() {
    awk '$2 == "cuMemcpyDtoHAsync" { down = 1; next }
        $2 == "cuEventRecord" && down { waiting[$4] = 1 }
        $2 == "cuGraphLaunch" { up = 0 }
        $2 == "cuMemcpyHtoDAsync" && $3 == 512 { up = 1 }
        $2 == "cuEventSynchronize" && waiting[$4] { n += up; up = waiting[$4] = 0 }
        { down = 0 }
        END { print n + 0 }' "$1.log"
}

# 10 and 20 steps, and 10 whose numbers are read first
once='train.eval.every=1000 steps'
rate='train.optimizer.lr=1e-2'
few='train.length=10 steps'
counted short --set "$once" --set "$rate" --set "$few"
counted long --set "$once" --set "$rate"
counted asks --set "$once" --set "$rate + $waits" --set "$few"
[ "$(syncs short)" -gt 0 ] && [ "$(syncs short)" -eq "$(syncs long)" ] ||
    fail "10 more steps wait $(($(syncs long) - $(syncs short))) times for all that is queued"
[ "$(behind long)" = "0 1
2 19" ] || fail "programs behind the numbers that are waited for, and how often: $(behind long)"
behind asks | grep -q '^[1-9]' && fail "the host decides, and steps are queued: $(behind asks)"
[ "$(fed long)" -ge 18 ] && [ "$(fed asks)" -ge 9 ] || fail "next batches that come up meanwhile: $(fed long) of 19, $(fed asks) of 9"
near short asks 10 1e-30
train cuda parts --set 'train.micro_batch=1 seqs' --set "$rate" --set "$few" --set 'train.eval.every=5 steps'
train cuda asks --set 'train.micro_batch=1 seqs' --set "$rate + $waits" --set "$few" --set 'train.eval.every=5 steps'
near parts asks 10 1e-30
for run in parts asks; do
    sed -n 's/.*"event":"eval".*"eval_loss":\([-0-9.e+]*\),.*/\1/p' "$run.json" > "$run.evals"
done
[ "$(wc -l < parts.evals)" -eq 2 ] && cmp parts.evals asks.evals || fail "evaluations: $(cat parts.evals asks.evals)"

# In fp16 whether a step is skipped, and how the loss of the next one is scaled, is seen on the device as well: losses, scales and
# skipped steps are those of a run whose host waits. A loss that is a million times as large in some steps leaves the range again and again.
cp small.vwn plain.vwn
sed -i 's/^  head lm .*/&\n  head mtp { predict = 2, weight = if step == 6 or step == 7 or step == 15 then 1e7 else 0.1, norm = norm, mix = linear()\n    layer { sub } }/' small.vwn
half() {
    name=$1
    shift
    counted "$name" --set "$once" --set D=64 --set 'sub=ffn(hidden = 64, activation = silu, gated = true)' --set model.context=8 \
        --set 'train.batch=2 seqs' --set 'train.micro_batch=1 seqs' --set 'train.precision=mixed(compute = fp16, master = fp32)' "$@"
    sed -n 's/.*"event":"step".*\("loss_scale":[^,}]*\).*\("skipped":[^,}]*\).*/\1 \2/p' "$name.json" > "$name.scales"
}
half fp16 --set "$rate" --set 'train.length=16 steps'
half fp16asks --set "$rate + $waits" --set 'train.length=16 steps'
near fp16 fp16asks 16 1e-30
[ "$(wc -l < fp16.scales)" -eq 16 ] && cmp fp16.scales fp16asks.scales || fail "scales: $(paste fp16.scales fp16asks.scales)"
skips=$(sed -n '$s/.*"skipped"://p' fp16.scales)
[ "$skips" -ge 3 ] && [ "$(uniq fp16.scales | wc -l)" -ge 4 ] || fail "$skips skipped steps: $(cat fp16.scales)"
half fp16long --set "$rate" --set 'train.length=18 steps'
[ "$(syncs fp16)" -eq "$(syncs fp16long)" ] || fail "2 more steps in fp16 wait $(($(syncs fp16long) - $(syncs fp16))) times"
[ "$(behind fp16long)" = "0 1
5 17" ] || fail "fp16: programs behind the numbers that are waited for, and how often: $(behind fp16long)"
behind fp16asks | grep -q '^[1-9]' && fail "the host decides in fp16, and steps are queued: $(behind fp16asks)"
half fp16halves --set "$rate" --set 'train.length=16 steps' --until '7 steps' # the next step has another scale than the one before
expect 0 "$VWN" train small.vwn --device cuda --run fp16halves --resume
same_weights fp16 fp16halves 16
cp plain.vwn small.vwn

# ends NAME DEVICE RATE FLAGS...: what a run says that diverges.
ends() {
    name=$1 device=$2 rate=$3
    shift 3
    expect 4 "$VWN" train small.vwn --device "$device" --run "$name" --overwrite --set "$once" --set "train.optimizer.lr=$rate" "$@"
    lacks err mistake
    grep '^error: ' err > "$name.end"
    filled "$name.end"
}

ends device cuda '1e19 * (step + 1)'
ends host cuda "1e19 * (step + 1) + $waits"
ends cpu cpu '1e19 * (step + 1)'
cmp device.end host.end && cmp device.end cpu.end || fail "the ends differ: $(cat device.end host.end cpu.end)"

jump='if step == 204 then 30 else 1e-2'
set -- --set 'train.length=220 steps' --set 'train.batch=1 seqs' --set 'widths=[D]' --set model.context=4 # a median of two hundred steps, small ones
ends device cuda "$jump" "$@"
ends cpu cpu "$jump" "$@"
for name in device cpu; do
    has "$name.end" 'the loss jumped'
    sed -i 's/jumped to [0-9.]* from a median of \([0-9]*\.[0-9][0-9]\)[0-9]*/jumped from \1/' "$name.end"
done
cmp device.end cpu.end || fail "the ends differ: $(cat device.end cpu.end)"
finish
