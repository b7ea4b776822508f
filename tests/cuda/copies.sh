# copies.sh - weights are rounded to two bytes once, when a run begins; from then on an update writes what products read, and no
# step rounds a weight again. A run that goes on from a checkpoint rounds what it has read: to the same bits.
# When: slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"

# run NAME PRECISION FLAGS...: calls are made one by one, and logged in NAME.log.
run() {
    name=$1 precision=$2
    shift 2
    expect 0 env VWN_CUDA_SYNC=1 FAKE_CUDA_LOG="$name.log" "$VWN" train small.vwn --device cuda --json "$@" \
        --set D=64 --set 'sub=ffn(hidden = 64, activation = silu, gated = true)' --set model.context=32 \
        --set 'train.batch=4 seqs' --set 'train.micro_batch=2 seqs' \
        --set "train.precision=mixed(compute = $precision, master = fp32)" --set 'train.length=4 steps'
    lacks err mistake
    sed -n 's/^[0-9]* cuLaunchKernel \([^ ]*\) .*/\1/p' "$name.log" | sort | uniq -c | sed 's/^ *//' | sort > "$name.kernels"
}

for precision in bf16 fp16; do
    run short "$precision" --run "$precision-short" --until '2 steps' --overwrite
    run whole "$precision" --run "$precision-whole" --overwrite
    # one kernel alone is launched no more often in four steps than in two, once: the weights of both layers are rounded together
    comm -12 short.kernels whole.kernels > once
    [ "$(cat once | wc -l)" -eq 1 ] && grep -q '^1 ' once || fail "$precision: launched as often in 2 steps as in 4: $(cat once)"
    run short "$precision" --run "$precision-short" --resume
    same_weights "$precision-whole" "$precision-short" 04
done
finish
