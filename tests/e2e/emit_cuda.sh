# emit_cuda.sh - a folder written by `vwn emit cuda` builds with nvcc, where there is one, and without
# a GPU its program says so; run by the emulator of tests/gpu/emulated, host program and kernels as
# they are, it evaluates and trains as `vwn train` does: to 1e-4 of the loss.
# When: first, slow, whole. It compiles kernels without optimising.
. "$VWN_SOURCE/tests/support/lib.inc"
emulated="$VWN_SOURCE/tests/gpu/emulated"
[ "$(uname -m)" = x86_64 ] && command -v g++ cc make > /dev/null || exit 77

# near FILE FILE TOLERANCE: equal lists of numbers to a share of the first
near() {
    filled "$1"
    paste "$1" "$2" | awk -v share="$3" '
        { d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || !(d <= share * $1)) bad = 1 }
        END { exit bad }' || fail "$last: $(tr '\n' ' ' < "$1") and $(tr '\n' ' ' < "$2") differ"
}
# The program of NAME.cuda; not optimised, since that takes longer than what it computes.
compiled() {
    expect 0 make -C "$1.cuda" -f "$emulated/Makefile" SOURCE="$VWN_SOURCE" CFLAGS='-O0 -g -Wall -Wextra -Wpedantic -Wshadow -Werror'
}
steps() { sed -n 's/^step.* loss \([0-9.]*\) .* grad_norm \([0-9.]*\)$/\1\n\2/p' "$1"; }
events() {
    sed -n 's/.*"event":"step".*"loss":\([0-9.]*\),.*"grad_norm":\([0-9.]*\),.*/\1\n\2/p' "$1"
}

expect 0 "$VWN" new nano
expect 0 "$VWN" new wide --from vwn
sed -i 's/model vwn/model wide/' wide/model.vwn
# routed experts, dropout
sed -i 's/ffn  *{.*/moe { experts = 5, active = 2, hidden = 24, activation = silu, scores = softmax, normalize = true, balance = 0.01 }/
    s/group vector { weight_decay = 0 }/&\n    group router { weight_decay = 0 }/
    s/attention  *{ heads = 4/attention { heads = 2, dropout = 0.2/' nano/model.vwn
# widths that vary: older parts of a state are copied
expect 0 "$VWN" new grows
sed -i 's/model nano/model grows/; s/residual()/carried(widths = widths, head = D, final = after_slice)/
    s/^let L = 2/let widths = [68, 20, 44, 68]\nlet L = 4/; s/^    attention/    width = widths[layer]\n&/' grows/model.vwn
head -c 4000 nano/text.txt > small.txt
for kind in nano wide grows; do
    cp small.txt $kind/text.txt
    sed -i 's/let D = 96/let D = 16/; s/let L = 2/let L = 1/; s/context *= 64/context = 12/
        s/32 seqs/4 seqs\n  micro_batch = 2 seqs/; s/400 steps/3 steps/; s/heads = [0-9]*/heads = 2/
        s/every = 100 steps, batches = 4/every = 2 steps, batches = 1/' $kind/model.vwn
    expect 0 "$VWN" emit cuda $kind/model.vwn -o $kind.cuda
    for file in README.md CMakeLists.txt plan.c plan.h kernels.cu compute_cuda.c weights.safetensors; do
        has out "$kind.cuda/$file"
        filled $kind.cuda/$file
    done
    lacks out Makefile
    expect 0 "$VWN" emit cuda "$PWD/$kind/model.vwn" -o "$PWD/$kind.again" -q --train
    diff -r $kind.cuda $kind.again > out || fail "$kind: the bytes differ"
    lacks $kind.cuda/plan.c 'rows(run'
    if [ $kind = grows ]; then has grows.cuda/plan.c 'copy_parts(run'; else lacks $kind.cuda/plan.c 'copy_parts(run'; fi
    has $kind.cuda/kernels.cu '__global__'
    # each kernel says where it comes from; assembly is the prelude's and has a twin, headers are none
    awk '/^\/\* .*\.vwn:[0-9]/ { at = 1 } /^KERNEL\(/ { n++; if (!at) print "no place:", $0; at = 0 }
        END { if (n < 10) print "few kernels" }' $kind.cuda/kernels.cu > out
    sed '/^#ifndef VWN_EMU/,/^#else/d' $kind.cuda/kernels.cu | grep -n -w 'asm\|#include <.*' >> out
    empty out

    compiled $kind
    expect 0 "$VWN" train $kind/model.vwn --set 'train.log.every=1 steps'
    events runs/$kind/events.jsonl > theirs
    expect 0 $kind.cuda/model train small.txt --weights $kind.cuda/weights.safetensors \
        --out $kind.safetensors
    empty err
    steps out > ours
    near theirs ours 1e-4
    [ "$(wc -l < ours)" -eq 6 ] || fail "$kind: not three steps"
    # what it wrote is read again
    expect 0 $kind.cuda/model eval small.txt --all --weights $kind.safetensors
    has out 'after step 3'
    sed -n 's/^loss  *//p' out > ours
    expect 0 "$VWN" eval runs/$kind --data small.txt
    sed -n 's/^loss *\([0-9.]*\)$/\1/p' out > theirs
    near theirs ours 1e-4
done
expect 2 nano.cuda/model eval small.txt --threads 2

# values between kernels in two bytes: near the losses of float32
sed 's/precision = fp32/precision = mixed(compute = bf16, master = fp32)/' wide/model.vwn > wide/bf16.vwn
expect 0 "$VWN" emit cuda wide/bf16.vwn -o bf16.cuda
has bf16.cuda/kernels.cu 'bf16 *__restrict__'
has bf16.cuda/README.md bf16
compiled bf16
expect 0 bf16.cuda/model train small.txt --weights bf16.cuda/weights.safetensors
steps out > ours
events runs/wide/events.jsonl > theirs
near theirs ours 2e-2
cmp -s theirs ours && fail "bf16: the losses of float32"

# sums in any order: the same to rounding, and said
expect 0 "$VWN" emit cuda nano/model.vwn -o fast.cuda --fast
has out '--fast: gradients of embedding tables are added up in any order'
has fast.cuda/README.md 'in any order (`--fast`)'
has fast.cuda/kernels.cu atomicAdd
lacks nano.cuda/kernels.cu atomicAdd
compiled fast
expect 0 fast.cuda/model train small.txt --weights fast.cuda/weights.safetensors
steps out > ours
events runs/nano/events.jsonl > theirs
near theirs ours 1e-4
expect 0 "$VWN" emit cuda nano/model.vwn -o fast.cuda --fast --json
json out
has out '"fast":true'
expect 2 "$VWN" emit c nano/model.vwn -o other --fast
has err '`--fast` is for `vwn emit cuda`'

# fp16: nearer than bf16; what it wrote has the scale of the loss
sed 's/let D = 16/let D = 64/' wide/model.vwn > wide/wider.vwn
sed 's/precision = fp32/precision = mixed(compute = fp16, master = fp32)/' wide/wider.vwn > wide/fp16.vwn
expect 0 "$VWN" train wide/wider.vwn --run wider --set 'train.log.every=1 steps'
events runs/wider/events.jsonl > theirs
expect 0 "$VWN" emit cuda wide/fp16.vwn -o fp16.cuda
has fp16.cuda/kernels.cu 'fp16 *__restrict__'
lacks fp16.cuda/kernels.cu 'bf16 *__restrict__'
has fp16.cuda/README.md 'The loss is scaled'
compiled fp16
expect 0 fp16.cuda/model train small.txt --weights fp16.cuda/weights.safetensors --out fp16.safetensors
steps out > ours
near theirs ours 2.5e-3
cmp -s theirs ours && fail "fp16: the losses of float32"
lacks out skipped
has fp16.safetensors '"loss_scale":"65536","good_steps":"3"'
# a gradient that leaves its range changes no weight and halves the scale
expect 0 fp16.cuda/model train small.txt --weights fp16.cuda/weights.safetensors --steps 1 --out one.safetensors
LC_ALL=C sed 's/"loss_scale":"65536"/"loss_scale":"8e+18"/' one.safetensors > large.safetensors
expect 1 fp16.cuda/model train small.txt --weights large.safetensors --steps 2 --out skipped.safetensors
has err 'it is damaged'
LC_ALL=C sed -i 's/"checksum"/"was_here"/' large.safetensors
expect 0 fp16.cuda/model train small.txt --weights large.safetensors --steps 2 --out skipped.safetensors
has out 'step 2 was skipped: its gradient left the range of fp16; the loss is now scaled by 4e+18'
for weights in one skipped; do
    expect 0 fp16.cuda/model eval small.txt --weights $weights.safetensors
    sed -n 's/^loss  *//p' out > $weights.loss
done
cmp -s one.loss skipped.loss || fail "a skipped step changed the weights"
LC_ALL=C grep -aq '"skipped_steps":"1"' skipped.safetensors || fail "it counts as an update"
# C for a CPU has neither, which is said
expect 0 "$VWN" emit c wide/fp16.vwn -o fp16.c
has fp16.c/README.md 'The file asks for products in fp16'
lacks fp16.c/plan.c .scaled

# more blocks than a grid has: refused when it is written, since nothing would say so when it runs
sed 's/context = 12/context = 64/' wide/model.vwn > wide/large.vwn
expect 0 "$VWN" emit cuda wide/large.vwn -o large --infer --batch '1000000000 seqs'
expect 1 "$VWN" emit cuda wide/large.vwn -o larger --infer --batch '1100000000 seqs'
has err '`attention` has 2200000000 parts of a result for a block of threads each'
[ ! -e larger ] || fail "a folder whose program cannot run"
# without training; what it refuses
expect 0 "$VWN" emit cuda wide/model.vwn -o infer --infer --batch '3 seqs' --json
json out
lacks infer/plan.c update
expect 1 "$VWN" emit cuda "$VWN_SOURCE/examples/13_vit_hyper.vwn" -o other --infer
has err 'image'
expect 2 "$VWN" emit cuda nano/model.vwn -o wide
has err 'has not written'
[ ! -e other ] || fail "a folder for nothing"

# for real GPUs; one architecture, to be quick
nvcc=$(command -v nvcc || ls "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" 2> /dev/null)
fast=
"$nvcc" --help 2> /dev/null | grep -q -e '--Ofast-compile' && fast=' -Ofc=max' # half the time
if [ -n "$nvcc" ] && command -v cmake > /dev/null; then
    expect 0 cmake -S nano.cuda -B nano.build -DCMAKE_CUDA_ARCHITECTURES=80 \
        -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_FLAGS="-Werror=all-warnings$fast" \
        -DCMAKE_C_FLAGS='-Wall -Wextra -Werror'
    expect 0 cmake --build nano.build
    for few in OFF ON; do
        expect 0 cmake -S nano.cuda -B few.build -DCMAKE_CUDA_ARCHITECTURES=80 -DCMAKE_CUDA_COMPILER="$nvcc" \
            -DFEW_REGISTERS=$few -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
        if [ $few = ON ]; then has few.build/compile_commands.json -DVWN_FEW_REGISTERS; else lacks few.build/compile_commands.json -DVWN_FEW_REGISTERS; fi
    done
    if [ ! -e /dev/nvidia0 ]; then
        expect 1 nano.build/model eval small.txt --weights nano.safetensors
        has err 'error: no GPU can be used: '
    fi
else
    echo "without nvcc or cmake: not compiled for GPUs"
fi
finish
