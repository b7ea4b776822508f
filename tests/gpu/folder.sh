# folder.sh - the folder that meet.sh carries to a GPU, at full size, with machine code by the real NVRTC: with the tree it is at most
# 60 MiB, every kernel is in it, and what did not change is not made again. What was made is kept in the build for the next time.
# When: whole, at most 3600 s.
. "$VWN_SOURCE/tests/support/lib.inc"
unset VWN_CUDA_LIBRARIES
[ "$(uname -m)" = x86_64 ] && command -v g++ tar > /dev/null || exit 77
"$VWN" doctor 2> /dev/null | grep -q '^CUDA compiler (NVRTC): [1-9]' || { echo "skipped: no NVRTC"; exit 77; }

export MEET_FOLDER="$BUILD/gpu_folder/carried" MEET_MADE="$BUILD/gpu_folder/made"
mkdir -p "$BUILD/gpu_folder"
expect 0 sh "$VWN_SOURCE/tests/gpu/meet.sh" make "$BUILD"
tail -n 3 out
kernels=$(sed -n 's/.* 0 failed, \([0-9]*\) kernels$/\1/p' out)
[ "${kernels:-0}" -ge 2000 ] || fail "$kernels kernels"
bytes=$(find "$MEET_FOLDER" -type f -exec cat {} + | wc -c)
tree=$(cd "$VWN_SOURCE" && find . -type f -not -path './.git/*' -not -path './build*' -not -path './scratch_*' -exec cat {} + | wc -c)
[ $((bytes + tree)) -le $((60 << 20)) ] || fail "$bytes bytes and $tree of the tree"
echo "$((((60 << 20) - bytes - tree) >> 10)) KiB of room are left"
[ "$bytes" -ge $((20 << 20)) ] || fail "only $bytes bytes"
mkdir truth
for pack in "$MEET_FOLDER"/truth/*.pack; do sh "$VWN_SOURCE/tests/gpu/meet.sh" unpack "$pack" truth; done
[ "$(cat truth/*/sm_90a.list | wc -l)" -eq "$kernels" ] || fail "machine code of $(cat truth/*/sm_90a.list | wc -l) kernels of $kernels"
rm -rf truth
expect 0 sh "$VWN_SOURCE/tests/gpu/meet.sh" make "$BUILD"
has out '0 made, '
finish
