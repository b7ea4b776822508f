# whole.sh - see whole.py.
# When: slow. It runs what is emitted, without vwn.
. "$VWN_SOURCE/tests/torch/lib.inc"
OMP_NUM_THREADS=1 # beside other tests PyTorch's threads wait for each other at every loop
export OMP_NUM_THREADS
CC=$VWN_SOURCE/tests/cc_O0.sh "$PY" "$VWN_SOURCE/tests/torch/whole.py"
