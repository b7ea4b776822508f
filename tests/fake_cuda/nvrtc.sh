# nvrtc.sh - the tests of how kernels are compiled and kept, with the fake compiler.
#
# In:  NVRTC_BUILD, the program of tests/nvrtc/build.c; VWN_CUDA_LIBRARIES, FAKE_CUDA_CACHE.
# Out: what the program ends with, or 77 without a C++ compiler.
# When: released.
set -eu

command -v "${CXX:-g++}" > /dev/null || {
    echo "skipped: no C++ compiler: set CXX, or install g++"
    exit 77
}
"$NVRTC_BUILD"
