# cuda.sh - what `vwn doctor` says of CUDA where it is there, half there and not there, and that the
# program trains in each case. Drivers are made up here: a C compiler is needed, a GPU is not.
# When: quick, released.
. "$VWN_SOURCE/tests/support/lib.inc"
. "$VWN_SOURCE/tests/e2e/drivers.inc"
command -v cc > /dev/null || { echo "skipped: no C compiler to make up a driver with"; exit 77; }
reason() { has out "training runs on: the CPU, because $1"; }

# nothing of CUDA is linked
last="the needed libraries"
if command -v readelf > /dev/null; then
    readelf -d "$VWN" | grep NEEDED > out
    lacks out cuda
    lacks out nvrtc
    lacks out cublas
fi

# without any library, and told not to look; a driver of this machine's own would be found
if env -u VWN_CUDA_LIBRARIES -u LD_LIBRARY_PATH CUDA_HOME=/nonexistent "$VWN" doctor | grep -q '^CUDA driver: [0-9]'; then
    echo "skipped: there is a driver here"
    exit 77
fi
mkdir empty
expect 0 env VWN_CUDA_LIBRARIES="$PWD/empty" "$VWN" doctor
has out 'CUDA driver: not found'
has out 'CUDA compiler (NVRTC): not found'
has out 'CUDA products (cuBLASLt): not found'
reason "the CUDA driver (libcuda.so.1) is not in $PWD/empty, nor where the system's loader looks; it comes with the driver of a GPU"
expect 0 env VWN_CUDA_LIBRARIES= "$VWN" doctor
has out 'CUDA driver: the CUDA driver is not looked for: VWN_CUDA_LIBRARIES is empty'
reason 'the CUDA driver is not looked for: VWN_CUDA_LIBRARIES is empty'
expect 0 env VWN_CUDA_LIBRARIES="$PWD/empty" "$VWN" doctor --json
json out

# a file that is no library, and one that is none of CUDA
mkdir text other
echo "no library" > text/libcuda.so.1
expect 0 env VWN_CUDA_LIBRARIES="$PWD/text" "$VWN" doctor
reason "the CUDA driver (libcuda.so.1) is not in $PWD/text"
echo 'int nothing;' > other.c
cc -shared -fPIC -o other/libcuda.so.1 other.c
expect 0 env VWN_CUDA_LIBRARIES="$PWD/other" "$VWN" doctor
has out 'CUDA driver: the library has no function cuInit: another version is needed'
reason 'the library has no function cuInit: another version is needed'

# the toolkit's stub, a driver without a device, a driver that fails, an old device
driver stub 34 0 0
expect 0 env VWN_CUDA_LIBRARIES="$PWD/empty:$PWD/stub" "$VWN" doctor
has out "CUDA driver: there is no CUDA driver, only the toolkit's stub $PWD/stub/libcuda.so.1"
reason "there is no CUDA driver, only the toolkit's stub"
real=${CUDA_HOME:-/usr/local/cuda}/lib64/stubs
if [ -e "$real/libcuda.so" ]; then
    expect 0 env VWN_CUDA_LIBRARIES="$real" "$VWN" doctor
    reason "there is no CUDA driver, only the toolkit's stub"
else
    real=
fi
driver none 100 0 0
expect 0 env VWN_CUDA_LIBRARIES="$PWD/none" "$VWN" doctor
has out "CUDA driver: 12.4 ($PWD/none/libcuda.so.1), the CUDA driver finds no GPU"
reason 'the CUDA driver finds no GPU'
driver broken 999 0 0
expect 0 env VWN_CUDA_LIBRARIES="$PWD/broken" "$VWN" doctor
reason 'the CUDA driver does not start: error 999, made-up error'
driver zero 0 0 0
expect 0 env VWN_CUDA_LIBRARIES="$PWD/zero" "$VWN" doctor
reason 'the CUDA driver finds no GPU'
driver old 0 2 75
expect 0 env VWN_CUDA_LIBRARIES="$PWD/old" "$VWN" doctor
has out 'CUDA device 1: Made-up 1, compute capability 7.5, 2.0 GiB'
reason 'no GPU here has compute capability 8.0 or more'
# a good device without a compiler
driver good 0 1 90
expect 0 env VWN_CUDA_LIBRARIES="$PWD/good" "$VWN" doctor
has out 'CUDA device 0: Made-up 0, compute capability 9.0, 2.0 GiB'
reason 'the CUDA compiler NVRTC (libnvrtc.so.13) is not in'

# the loader's own search finds it too
expect 0 env -u VWN_CUDA_LIBRARIES LD_LIBRARY_PATH="$PWD/old" "$VWN" doctor
has out "CUDA driver: 12.4 ($PWD/old/libcuda.so.1)"
mkdir -p home/lib64
cp none/libcuda.so.1 home/lib64
expect 0 env -u VWN_CUDA_LIBRARIES -u LD_LIBRARY_PATH CUDA_HOME="$PWD/home" "$VWN" doctor
has out "CUDA driver: 12.4 ($PWD/home/lib64/libcuda.so.1)"
# also where folders are named that have none; theirs comes first
expect 0 env VWN_CUDA_LIBRARIES="$PWD/empty" LD_LIBRARY_PATH="$PWD/old" "$VWN" doctor
has out "CUDA driver: 12.4 ($PWD/old/libcuda.so.1)"
expect 0 env VWN_CUDA_LIBRARIES="$PWD/empty:$PWD/none" LD_LIBRARY_PATH="$PWD/old" "$VWN" doctor
has out "CUDA driver: 12.4 ($PWD/none/libcuda.so.1)"
expect 0 env VWN_CUDA_LIBRARIES= LD_LIBRARY_PATH="$PWD/old" "$VWN" doctor
has out 'the CUDA driver is not looked for'

# whatever there is: training goes on
expect 0 "$VWN" new nano --from nano
for folders in "" "$PWD/empty" "$PWD/stub" $real "$PWD/broken" "$PWD/good"; do
    rm -rf runs
    expect 0 env VWN_CUDA_LIBRARIES="$folders" "$VWN" train nano/model.vwn --until '1 steps'
    lacks err stub # what a toolkit links with is no news to a run
done
finish
