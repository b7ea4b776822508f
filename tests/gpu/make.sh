#!/bin/sh
# make.sh - a folder for all.sh and kernels.sh, to be carried to a machine with a GPU.
#
#     sh tests/gpu/make.sh BUILD FOLDER [--tiny] [NAME...]
#
# In:  a build folder with vwn, test_gpu_make_cases and test_gpu_make_model; names of sources of
#      tests/support/examples.h and models.h (none: all). --tiny: two small models are measured.
#      $PREDICT: the GPU that times are predicted for (none: h100).
# Out: FOLDER/cases, FOLDER/models, FOLDER/programs, FOLDER/src, FOLDER/vwn, FOLDER/all.sh, FOLDER/kernels.sh. Less than 64 MiB: long files are packed.
set -eu
build=$(cd "$1" && pwd)
folder=$2
shift 2
tiny=
if [ "${1:-}" = --tiny ]; then
    tiny=1
    shift
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
rm -rf "$folder"
mkdir -p "$folder/src" "$folder/models"
cp "$here"/run_kernels.c "$here"/cases.h "$here"/../support/half_bits.h "$here"/measure.c "$here"/measured.h "$here"/report.py \
    "$root"/compiler/emitted/compute_cuda.c "$root"/compiler/emitted/compute.h \
    "$root"/compiler/emitted/blocks.h "$root"/compiler/emitted/common.c "$root"/compiler/portable/device_call.h \
    "$root"/compiler/portable/host_value.h "$root"/compiler/portable/host.def "$folder/src"
cp "$here"/kernels.sh "$here"/all.sh "$build/vwn" "$folder"
cp "$here"/all.py "$here"/peer.py "$root"/tests/bench/peer_model.py "$folder/src"
mkdir "$folder/programs"
cp "$root"/tests/bench/gpt.vwn "$root"/tests/bench/vwn23.vwn "$folder/programs"
# A text of its own making, so that none has to be carried.
awk 'BEGIN { x = 7
    for (i = 0; i < 40000; i++) {
        x = (x * 1103515245 + 12345) % 2147483648
        printf "%s", i % 70 == 69 ? "\n" : substr("abcdefghijklmno ", 1 + int(x / 65536) % (1 + i % 16), 1)
    } }' > "$folder/programs/kjv.txt"

"$build/tests/gpu/test_gpu_make_cases" "$folder/cases" "$@"

# model NAME FILE SEQUENCES PATH=EXPR...: left out, with the reason, when a kernel is not there yet
model() {
    name=$1
    shift
    "$build/tests/gpu/test_gpu_make_model" "$folder/models/$name" "$@" 2> "$folder/reason" ||
        echo "left out: $name: $(sed -n '1s,^raised [0-9]*: ,,p' "$folder/reason")"
    rm -f "$folder/reason"
    [ ! -d "$folder/models/$name" ] || predict "$@"
}
# predict FILE SEQUENCES PATH=EXPR...: what each kernel of $name should take, from its machine code; without nvdisasm, or of
# a file that does not train by itself, there is none
predict() {
    file=$1
    sequences=$2
    shift 2
    for setting in "$@"; do
        set -- "$@" --set "$setting"
        shift
    done
    "$build/vwn" ir "$file" --stage cubin --predict "${PREDICT:-h100}" --json --batch "$sequences seqs" "$@" \
        > "$folder/models/$name/predicted.jsonl" 2> "$folder/reason" || {
        echo "not predicted: $name: $(sed -n 's/.*"message":"\([^"]*\)".*/\1/p' "$folder/reason" | head -n 1)"
        rm -f "$folder/models/$name/predicted.jsonl"
    }
    rm -f "$folder/reason"
}
if [ "$tiny" ]; then
    model gpt "$root/tests/bench/gpt.vwn" 2 D=16 L=1 model.context=8
    model gpt_bf16 "$root/tests/bench/gpt.vwn" 2 D=64 L=1 model.context=32 'train.precision=mixed(compute = bf16, master = fp32)'
else
    model gpt "$root/tests/bench/gpt.vwn" 32 D=768
    model gpt_bf16 "$root/tests/bench/gpt.vwn" 32 D=768 'train.precision=mixed(compute = bf16, master = fp32)'
    model gpt_fp16 "$root/tests/bench/gpt.vwn" 32 D=768 'train.precision=mixed(compute = fp16, master = fp32)'
    model vwn23 "$root/tests/bench/vwn23.vwn" 32 D=768
    model vwn23_bf16 "$root/tests/bench/vwn23.vwn" 32 D=768 'train.precision=mixed(compute = bf16, master = fp32)'
    model nano "$root/examples/01_nano.vwn" 64
    model olmo "$root/examples/02_olmo_1b.vwn" 4 L=4
    model olmo_hyper "$root/examples/02_olmo_1b.vwn" 4 L=4 'conn=hyper(n = 4, dynamic = true)'
    model vwn_x8 "$root/examples/07_vwn_x8_moe.vwn" 2 L=2
    model xformer "$root/examples/08_xformer_500m.vwn" 2
    model nexus "$root/examples/09_nexus_growth.vwn" 4 L=4
    model tokenformer "$root/examples/10_tokenformer_growth.vwn" 4
    model olmoe "$root/examples/15_olmoe_1b_7b.vwn" 2 L=2
    model over_encoding "$root/examples/19_over_encoding.vwn" 2
    model mtp "$root/examples/20_mtp_chain.vwn" 2
    model deepseek_mtp "$root/examples/21_deepseek_mtp.vwn" 1
    model xformer_moe "$root/examples/24_xformer_moe.vwn" 2 experts=8
    model qwen3 "$root/examples/03_qwen3_0_6b.vwn" 1 L=4
    model vwn_mtp "$root/examples/06_vwn_1_5x_mtp.vwn" 1
    model own_connection "$root/examples/14_own_connection.vwn" 4
    model transformer_pp "$root/examples/16_transformer_pp.vwn" 4
    model mhc "$root/examples/16_transformer_pp.vwn" 4 'conn=mhc(n = 4)'
    model widths "$root/examples/26_width_shapes.vwn" 8
    model quickstart "$root/examples/quickstart.vwn" 64
    model nexus_released "$root/examples/25_nexus_released.vwn" 4
fi
find "$folder" -type f -size +100k -exec gzip -n {} +
du -sh "$folder"
[ "$(du -sm "$folder" | cut -f 1)" -lt 64 ] || { echo "$folder is too large to be carried"; exit 1; }
