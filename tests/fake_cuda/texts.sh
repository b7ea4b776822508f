# texts.sh - the kernels of a model, as NVRTC gets them: the fake one makes a cubin of each that the product can read.
#
# In:  VWN, VWN_SOURCE, VWN_CUDA_LIBRARIES, FAKE_CUDA_CACHE.     Out: 0, 1, or 77 without a C++ compiler.
set -eu

command -v "${CXX:-g++}" > /dev/null || {
    echo "skipped: no C++ compiler: set CXX, or install g++"
    exit 77
}
XDG_CACHE_HOME=$(mktemp -d)
export XDG_CACHE_HOME
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT

wanted=$("$VWN" ir "$VWN_SOURCE/examples/01_nano.vwn" --stage cuda | grep -c '^KERNEL(')
export FAKE_CUDA_LOG=calls.log
"$VWN" ir "$VWN_SOURCE/examples/01_nano.vwn" --stage cubin --program train --arch sm_90a > out.txt
got=$(grep -c '^  k_' out.txt)
echo "$got kernels of $wanted"
[ "$got" -eq "$wanted" ] && [ "$wanted" -gt 10 ]
grep -q '^leaked programs 0$' calls.log
