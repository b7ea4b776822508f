# emulated.sh - launches written by make_cases are launched again by run_kernels, emulated, and give
# the same numbers; a kernel that computes something else is found.
. "$VWN_SOURCE/tests/support/lib.inc"
[ "$(uname -m)" = x86_64 ] && command -v g++ cc make > /dev/null || exit 77

build() {
    expect 0 make -B -f "$VWN_SOURCE/tests/gpu/emulated/Makefile" SOURCE="$VWN_SOURCE" OUT=run_kernels \
        MAIN='run_kernels.c compute_cuda.c common.c' CFLAGS='-O1 -g -Wall -Wextra -Wshadow -Werror'
}

expect 0 "$MAKE_CASES" cases gpt 'ghc (2,3)' 'own connection'
has out '3 made, 0 failed'
folders=$(ls -d cases/*)
for folder in $folders; do
    cp "$VWN_SOURCE"/compiler/emitted/blocks.h "$VWN_SOURCE"/compiler/emitted/comp*[ea].[ch] \
        "$VWN_SOURCE"/compiler/emitted/common.c "$VWN_SOURCE"/compiler/portable/device_call.h \
        "$VWN_SOURCE"/compiler/portable/host_value.h "$VWN_SOURCE"/compiler/portable/host.def "$VWN_SOURCE"/tests/gpu/run_kernels.c \
        "$VWN_SOURCE"/tests/gpu/cases.h "$VWN_SOURCE"/tests/support/half_bits.h $folder
    cd $folder || exit 1
    build
    expect 0 ./run_kernels cases.bin --worst 1e-9
    [ "$(grep -c '"good":true' out)" -ge 3 ] || fail "$folder: few kernels"
    "$JSON_LINES" - < out > verdict || fail "$folder: $(cat verdict)"
    cd ../..
done
for type in bf16 fp16; do
    grep -q "train in $type" cases/*/out || fail "no kernel in $type"
done

cd "${folders%%
*}" || exit 1
# a GPU that has too little shared memory
expect 1 env EMULATED_SHARED=40000 ./run_kernels cases.bin
has err ' KiB of shared memory and the GPU has 39.1 for a block: '
# numbers of fp16 that are cut off, not rounded
cp kernels.cu whole.cu
sed -i 's/return {emu_fp16(x)};/return {emu_fp16(vwn_real(vwn_bits(x) \& ~0x1fffu))};/' kernels.cu
build
expect 3 ./run_kernels cases.bin --worst 1e-9
grep -q 'train in fp16.*"good":false' out || fail "a fault is not seen"
mv whole.cu kernels.cu
cd ../..

cd "${folders##*
}" || exit 1
# another sign in every sum of a row
sed -i 's/x += __shfl_xor_sync/x -= __shfl_xor_sync/' kernels.cu
build
expect 3 ./run_kernels cases.bin
has out '"good":false'
expect 3 ./run_kernels cases.bin --from 1
[ "$(wc -l < out)" -eq $(($(grep -c 'CODE(k_' kernels.cu) - 1)) ] || fail "--from leaves out another number of cases"
head -c 3000 cases.bin > cut.bin
expect 1 ./run_kernels cut.bin
has err 'cut off'
expect 1 ./run_kernels kernels.cu
has err 'no file of cases'
cd ../..
finish
