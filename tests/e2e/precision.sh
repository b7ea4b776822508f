# precision.sh - `precision` is what is computed: bf16 products train as float32 does, or a run says that there are none.
. "$VWN_SOURCE/tests/e2e/lib.inc"

mixed='train.precision=mixed(compute = bf16, master = fp32)'
half='train.precision=mixed(compute = fp16, master = fp32)'
expect 0 "$VWN" new nano --from nano
expect 0 "$VWN" ir nano/model.vwn --stage plan
lacks out bf16
expect 0 "$VWN" ir nano/model.vwn --stage plan --set "$mixed"
has out 'matmul bf16'
expect 0 "$VWN" ir nano/model.vwn --stage kernel --set "$mixed"
has out 'write bf16'
cp out kernels
expect 0 "$VWN" ir --from kernels --stage kernel
cmp -s kernels out || fail "kernels that store bf16 do not read back"
expect 0 "$VWN" ir nano/model.vwn --stage plan --program predict --set "$mixed"
lacks out bf16

# The last loss of a run, from its events.
last_loss() { sed -n 's/.*"event":"step".*"loss":\([0-9.e+-]*\).*/\1/p' "$1" | tail -n 1; }

expect 0 "$VWN" doctor
cp out doctor
expect 0 "$VWN" train nano/model.vwn --run plain --until '80 steps' --json
cp out plain
expect 0 "$VWN" train nano/model.vwn --run mixed --until '80 steps' --json --set "$mixed"
cp out mixed
if grep -q '^bf16 products: none' doctor; then
    has out 'products are computed in float32'
else
    lacks out 'products are computed in'
    cmp -s plain mixed && fail "the runs are the same: nothing was computed in bf16"
    expect 0 "$VWN" train nano/model.vwn --run other --until '80 steps' --json --set "$mixed" --threads 1
    [ "$(last_loss mixed)" = "$(last_loss out)" ] || fail "another number of threads gives another loss"
fi
awk -v a="$(last_loss plain)" -v b="$(last_loss mixed)" \
    'BEGIN { exit !(a > 0 && b > 0 && b < 1.03 * a && b > 0.97 * a) }' ||
    fail "loss $(last_loss plain) in float32, $(last_loss mixed) in bf16"
expect 0 "$VWN" eval runs/mixed --batches 1
has out loss
expect 0 "$VWN" sample runs/mixed --tokens 4

# There are no products of fp16
expect 0 "$VWN" train nano/model.vwn --run half --until '1 steps' --set "$half"
has err 'fp16 products on no device'
finish
