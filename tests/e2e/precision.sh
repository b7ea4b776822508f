# precision.sh - `precision` is what is computed: bf16 products train as float32 does, or a run says that there are none.
# When: slow, optimised. The sanitizers see the same kernels and numbers, ten times slower.
. "$VWN_SOURCE/tests/support/lib.inc"

mixed='train.precision=mixed(compute = bf16, master = fp32)'
half='train.precision=mixed(compute = fp16, master = fp32)'
expect 0 "$VWN" new nano --from nano
sed -i "s/32 seqs/8 seqs/" nano/model.vwn
expect 0 "$VWN" ir nano/model.vwn --stage plan
lacks out bf16
expect 0 "$VWN" ir nano/model.vwn --stage plan --set "$mixed"
has out 'matmul bf16'
expect 0 "$VWN" ir nano/model.vwn --stage kernel --set "$mixed"
has out 'write bf16'
cp out kernels
expect 0 "$VWN" ir --from kernels --stage kernel
cmp -s kernels out || fail "kernels that store bf16 do not read back"
sed 's/\(^buffer .*\) bf16 /\1 fp16 /' kernels > narrow
cmp -s kernels narrow && fail "there is no buffer of bf16"
expect 0 "$VWN" ir --from narrow --stage kernel
cmp -s narrow out || fail "kernels that store fp16 do not read back"
expect 0 "$VWN" ir nano/model.vwn --stage plan --set "$half"
lacks out fp16
expect 0 "$VWN" ir nano/model.vwn --stage cuda --set "$half"
has out 'fp16 *__restrict__'
lacks out 'bf16 *__restrict__'
expect 0 "$VWN" ir nano/model.vwn --stage plan --program predict --set "$mixed"
lacks out bf16

# The last loss of a run, from its events.
last_loss() { sed -n 's/.*"event":"step".*"loss":\([0-9.e+-]*\).*/\1/p' "$1" | tail -n 1; }
# At a rate so low that rounding does not grow from step to step, by whatever products a processor has: are the last losses
# within 0.5 %? (Seen: 0.03.)
rate='train.optimizer.lr=3e-4'
near() {
    awk -v a="$(last_loss "$1")" -v b="$(last_loss "$2")" \
        'BEGIN { exit !(a > 0 && b > 0 && b < 1.005 * a && b > 0.995 * a) }'
}

expect 0 "$VWN" doctor
cp out doctor
expect 0 "$VWN" train nano/model.vwn --run plain --until '40 steps' --json --set "$rate"
cp out plain
expect 0 "$VWN" train nano/model.vwn --run mixed --until '40 steps' --json --set "$rate" --set "$mixed"
cp out mixed
if grep -q '^bf16 products: none' doctor; then
    has out 'products are computed in float32'
else
    lacks out 'products are computed in'
    has out 'matrix products of a step are rounded to bf16 and their products added in float32; all else is computed in float32'
    cmp -s plain mixed && fail "the runs are the same: nothing was computed in bf16"
    expect 0 "$VWN" train nano/model.vwn --run other --until '40 steps' --json --set "$rate" --set "$mixed" --threads 1
    [ "$(last_loss mixed)" = "$(last_loss out)" ] || fail "another number of threads gives another loss"
fi
near plain mixed || fail "loss $(last_loss plain) in float32, $(last_loss mixed) in bf16"
expect 0 "$VWN" eval runs/mixed --batches 1
has out loss
expect 0 "$VWN" sample runs/mixed --tokens 4

# fp16: the numbers are, products are of float32, and the loss is scaled
expect 0 "$VWN" train nano/model.vwn --run half --until '40 steps' --json --set "$rate" --set "$half"
has out 'matrix products of a step are rounded to fp16 and multiplied in float32; all else is computed in float32; the loss is scaled'
cmp -s plain out && fail "the runs are the same: nothing was rounded to fp16"
near plain out || fail "loss $(last_loss plain) in float32, $(last_loss out) in fp16"
finish
