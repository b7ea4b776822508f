# cubin.sh - `vwn ir --stage cubin`: kernels for GPUs as machine code, without a GPU; cached then.
. "$VWN_SOURCE/tests/support/lib.inc"

expect 0 "$VWN" new nano --from nano
file=nano/model.vwn
expect 2 "$VWN" ir $file --stage plan --arch sm_90a
has err '`--arch` is for `--stage cubin`'
expect 5 env VWN_CUDA_LIBRARIES= "$VWN" ir $file --stage cubin
has err 'the CUDA compiler NVRTC is not looked for: VWN_CUDA_LIBRARIES is empty'
empty out

"$VWN" doctor | grep -q '^CUDA compiler (NVRTC): [0-9]' || {
    [ "$failures" -eq 0 ] && echo "skipped: no CUDA compiler here" && exit 77
}
VWN_CACHE="$PWD/cache"
export VWN_CACHE
expect 2 "$VWN" ir $file --stage cubin --arch sm_12
has err 'makes no code for sm_12'
expect 2 "$VWN" ir $file --stage cubin --arch sm_75
has err 'makes no code for sm_75; kernels are for sm_80 and later'
expect 0 "$VWN" ir $file --stage cubin --arch sm_90a --program eval
grep -Eq 'Compiled ([0-9]+) kernels: 0 cached, \1 compiled in [0-9.]+ s' err || fail "$last: what is said"
has out 'machine code for sm_90a, made by NVRTC'
kernels=$(grep -c '^  k_' out)
[ "$kernels" -gt 3 ] || fail "$last: $kernels kernels"
# of the whole run: what was compiled is found, and all of it the second time
expect 0 "$VWN" ir $file --stage cubin --arch sm_90a
has err "kernels: $kernels cached, "
lacks err ' 0 compiled'
cp out first
expect 0 "$VWN" ir $file --stage cubin --arch sm_90a
has err ' cached, 0 compiled in '
cmp -s out first || fail "$last: other figures from the cache"
expect 0 "$VWN" ir $file --stage cubin --arch sm_90a --json
json out
[ "$(grep -c '"event":"cubin"' out)" -eq "$(grep -c '^  k_' first)" ] || fail "$last: other kernels"
# wide heads want more shared memory than some GPUs have
for arch in sm_86 sm_80; do
    expect 0 "$VWN" ir $file --stage cubin --arch $arch --program eval --set D=512 --set 'layer[*].attention.heads=2'
    [ $arch = sm_80 ] && lacks err 'cannot run' && continue
    has err 'warning: this cannot run on sm_86: k_'
    has err ' of layer[1].attention asks for 102432 bytes of shared memory and a block can have 101376 there'
    has err 'kernels that ask for too much: 1'
done
# a cache that cannot be is a warning
expect 0 env VWN_CACHE=/dev/null/none "$VWN" ir $file --stage cubin --arch sm_90a --program update
has err 'warning: the kernel cache /dev/null/none cannot be used'
has err ' 0 cached, '
finish
