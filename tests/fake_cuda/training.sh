# training.sh - a few steps of a model on the fake GPU: the CPU's losses, the same bits in every order of work, no mistake and
# nothing left on the device. It is short, so that faults that are drawn in the CUDA backend are looked for with it.
#
# In:  VWN, VWN_SOURCE, VWN_CUDA_LIBRARIES, FAKE_CUDA_CACHE.     Out: 0, 1, or 77 without a C++ compiler.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"
command -v "${CXX:-g++}" > /dev/null || {
    echo "skipped: no C++ compiler: set CXX, or install g++"
    exit 77
}
XDG_CACHE_HOME=$PWD/cache # the algorithms of products that earlier runs chose lie there
export XDG_CACHE_HOME
cp "$VWN_SOURCE/tests/cuda/small.vwn" .
awk 'BEGIN { x = 7
    for (i = 0; i < 3000; i++) {
        x = (x * 1103515245 + 12345) % 2147483648
        printf "%s", i % 70 == 69 ? "\n" : substr("abcdefghijklmno ", 1 + int(x / 65536) % (1 + i % 16), 1)
    } }' > text.txt

# train DEVICE RUN [flags]: its losses are in RUN.losses.
train() {
    device=$1 run=$2
    shift 2
    FAKE_CUDA_LOG=$run.log
    export FAKE_CUDA_LOG
    expect 0 "$VWN" train small.vwn --device "$device" --run "$run" --until '5 steps' --json "$@"
    sed -n 's/.*"event":"step".*"loss":\([-0-9.e+]*\),.*/\1/p' out > "$run.losses"
    [ "$(wc -l < "$run.losses")" -eq 5 ] || fail "$run: no five losses"
    lacks err mistake
    [ "$device" = cpu ] && return
    awk '/^leaked/ && $3 > 0' "$run.log" > leaks
    [ ! -s leaks ] || fail "$run: $(cat leaks)"
}

# near A B BOUND: losses that differ by less.
near() {
    paste "$1.losses" "$2.losses" | awk -v most="$3" '
        { d = ($1 - $2) / $1; bad += !(d < most && d > -most) }
        END { exit bad || !NR }' || fail "$1 and $2 are not alike: $(paste "$1.losses" "$2.losses")"
}

same() {
    cmp "runs/$1/ckpt/step_00000005.safetensors" "runs/$2/ckpt/step_00000005.safetensors" || fail "$1 and $2 differ"
}

train cpu cpu
train cuda late
near cpu late 1e-5
export FAKE_CUDA_ORDER=shuffled:1 FAKE_CUDA_HEURISTIC=1
train cuda shuffled
same late shuffled
unset FAKE_CUDA_ORDER FAKE_CUDA_HEURISTIC
wide='sub=ffn(hidden = 64, activation = silu, gated = true)'
train cuda bf16 --set D=64 --set "$wide" --set model.context=32 --set 'train.batch=2 seqs' \
    --set 'train.precision=mixed(compute = bf16, master = fp32)'
near cpu bf16 1
# Heads of 64, whose tiles come by tensor maps: of the two sequences each has its own rows.
set -- --set D=128 --set train.optimizer.lr=1e-3 --set "$wide" --set model.context=40 --set 'train.batch=2 seqs' --set 'train.precision=mixed(compute = bf16, master = fp32)'
train cpu heads-cpu "$@"
train cuda heads "$@"
near heads-cpu heads 2e-2
grep -q ' cuTensorMapEncodeTiled ' heads.log || fail "no tensor map is made"

# Further parts of a batch add to gradients which lie where the first has left them: of each layer those of three and of two
# weights behind each other, a batch of products each.
train cpu parts-cpu --set D=64 --set "$wide" --set model.context=32 --set 'train.micro_batch=1 seqs'
export VWN_CUDA_SYNC=1
train cuda parts --set D=64 --set "$wide" --set model.context=32 --set 'train.micro_batch=1 seqs'
near parts-cpu parts 1e-5
added=$(grep -c ' cublasLtMatmul .*, [23], type .*, added' parts.log)
[ "$added" -eq $((5 * 3 * 2 * 2)) ] || fail "$added batches of gradients are added in 5 steps of 3 further parts, 2 layers"
finish
