# fuzz.sh - see fuzz.py: with the library compiled for AddressSanitizer, where Python runs under it, and as it is.
# When: slow. It runs what is emitted, without vwn.
. "$VWN_SOURCE/tests/torch/lib.inc"
"$PY" - << 'END' > fuzzed.vwn
from oracle import text
print(text("hyper(n = 2, dynamic = false)", 8, 8))
END
"$VWN" emit torch fuzzed.vwn -o fuzzed --node "*" --name fuzzed -q > /dev/null || exit 1
build=fuzzed/fuzzed/csrc/build.sh
# with the library of C++ before it: of a library that Python loads later its interceptor of exceptions knows nothing
asan="$(cc -print-file-name=libasan.so) $(cc -print-file-name=libstdc++.so.6)"
PYTHONPATH=$PYTHONPATH:$PWD/fuzzed
CC="cc -g -fsanitize=address" sh $build fuzzed/fuzzed/_kernels.so || exit 1
if ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$asan" "$PY" -c 'import torch' 2> asan.txt; then
    ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$asan" "$PY" "$VWN_SOURCE/tests/torch/fuzz.py" 1 || exit 1
    # what is looked for is found: a call whose pointer is to less than it says
    if ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$asan" "$PY" -c '
import ctypes, torch, fuzzed
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
op = fuzzed._op
H = torch.zeros(4, 2, 8)
short = libc.malloc(ctypes.c_size_t(64))
work = torch.empty(op._library.vwn_workspace(0, 4, 1), dtype=torch.uint8)
Am, x = torch.zeros(2, 1), torch.zeros(4, 8)
p = (ctypes.c_void_p * 3)(short, Am.data_ptr(), x.data_ptr())
op._library.vwn_call(0, 4, 1, p, bytes(3), None, work.data_ptr(), 1, 0)
' 2> found.txt; then echo "FAILED: an access beyond the end was not found"; exit 1; fi
    grep -q 'heap-buffer-overflow' found.txt || { echo "FAILED: $(head -n 3 found.txt)"; exit 1; }
else
    echo "without AddressSanitizer: $(tail -n 1 asan.txt)"
fi
sh $build fuzzed/fuzzed/_kernels.so || exit 1
"$PY" "$VWN_SOURCE/tests/torch/fuzz.py" 2
