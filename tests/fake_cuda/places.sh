# places.sh - libraries of CUDA in the places where machines have them: Python packages, toolkits, folders that are named; `vwn doctor`
# says which file each of them is. The fake ones lie there; the loader's cache, which may know real ones, is left out.
#
# In:  VWN, VWN_SOURCE, VWN_CUDA_LIBRARIES.     Out: 0, 1, or 77 where the loader cannot be told so.
. "$VWN_SOURCE/tests/support/lib.inc"
fakes=$VWN_CUDA_LIBRARIES
loader=$(readelf -l "$VWN" 2> /dev/null | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
[ -n "$loader" ] && "$loader" --inhibit-cache "$VWN" --version > /dev/null 2>&1 || { echo "skipped: no such loader"; exit 77; }
unset VWN_CUDA_LIBRARIES CUDA_HOME CUDA_PATH VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH
mkdir driver home
ln -s "$fakes/libcuda.so.1" driver
path=/usr/bin:/bin # without the nvcc of a toolkit that is there

# lies LIBRARY PLACE: the fake one lies at PLACE.
lies() {
    mkdir -p "$(dirname "$2")"
    ln -s "$fakes/$1" "$2"
}

# found COMPILER PRODUCTS VARIABLES...: doctor, with these variables, finds the two files, and trains on the GPU.
found() {
    compiler=$1 products=$2
    shift 2
    expect 0 env HOME="$PWD/home" LD_LIBRARY_PATH="$PWD/driver" "$@" "$loader" --inhibit-cache "$VWN" doctor
    grep -q "^CUDA driver: 13.0 ($PWD/driver/libcuda.so.1)" out || fail "$*: another driver"
    grep -q "^CUDA compiler (NVRTC): .* ($PWD/$compiler)" out || fail "$*: another compiler"
    grep -q "^CUDA products (cuBLASLt): .* ($PWD/$products)" out || fail "$*: other products"
    has out 'training runs on: cuda:0 (Fake GPU)'
}

# packages of CUDA 13 and of CUDA 12, in an environment that is active, beside the python3 of PATH, where a link of that name leads
at=venv/lib/python3.11/site-packages/nvidia
lies libnvrtc.so.13 $at/cu13/lib/libnvrtc.so.13
lies libcublasLt.so.13 $at/cu13/lib/libcublasLt.so.13
found $at/cu13/lib/libnvrtc.so.13 $at/cu13/lib/libcublasLt.so.13 VIRTUAL_ENV="$PWD/venv"
old=conda/lib/python3.9/site-packages/nvidia
lies libnvrtc.so.13 $old/cuda_nvrtc/lib/libnvrtc.so.12
lies libcublasLt.so.13 $old/cublas/lib/libcublasLt.so.12
found $old/cuda_nvrtc/lib/libnvrtc.so.12 $old/cublas/lib/libcublasLt.so.12 CONDA_PREFIX="$PWD/conda"
mkdir -p venv/bin links
printf '#!/bin/sh\n' > venv/bin/python3
chmod +x venv/bin/python3
found $at/cu13/lib/libnvrtc.so.13 $at/cu13/lib/libcublasLt.so.13 PATH="relative:$PWD/venv/bin:$path"
ln -s "$PWD/venv/bin/python3" links/python3
found $at/cu13/lib/libnvrtc.so.13 $at/cu13/lib/libcublasLt.so.13 PATH="$PWD/links:$path"

# a toolkit beside the nvcc of PATH; one that is named comes first, before packages, and each library by itself
lies libnvrtc.so.13 kit/targets/x86_64-linux/lib/libnvrtc.so.13
lies libcublasLt.so.13 kit/lib64/libcublasLt.so.13
mkdir kit/bin
cp venv/bin/python3 kit/bin/nvcc
found kit/targets/x86_64-linux/lib/libnvrtc.so.13 kit/lib64/libcublasLt.so.13 PATH="$PWD/kit/bin:$path"
found kit/targets/x86_64-linux/lib/libnvrtc.so.13 kit/lib64/libcublasLt.so.13 CUDA_HOME="$PWD/kit" VIRTUAL_ENV="$PWD/venv"
rm kit/lib64/libcublasLt.so.13
found kit/targets/x86_64-linux/lib/libnvrtc.so.13 $at/cu13/lib/libcublasLt.so.13 CUDA_PATH="$PWD/kit" VIRTUAL_ENV="$PWD/venv"

# the packages of a user, where no toolkit comes before them
if [ ! -e /usr/local/cuda ] && [ ! -e /opt/cuda ]; then
    mkdir -p home/.local/lib
    ln -s "$PWD/venv/lib/python3.11" home/.local/lib/python3.12
    mine=home/.local/lib/python3.12/site-packages/nvidia/cu13/lib
    found $mine/libnvrtc.so.13 $mine/libcublasLt.so.13 PATH=/nowhere
fi

# folders that are named: both are looked through, and nothing else, but for the driver
found $at/cu13/lib/libnvrtc.so.13 $old/cublas/lib/libcublasLt.so.12 CUDA_HOME="$PWD/kit" \
    VWN_CUDA_LIBRARIES="$PWD/$old/cublas/lib:/nowhere:$PWD/$at/cu13/lib"
expect 0 env LD_LIBRARY_PATH="$PWD/driver:$fakes" VWN_CUDA_LIBRARIES="$PWD/$old/cublas/lib" "$loader" --inhibit-cache "$VWN" doctor
has out 'training runs on: the CPU, because the CUDA compiler NVRTC (libnvrtc.so.13) is not in '
finish
