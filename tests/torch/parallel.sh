# parallel.sh - see parallel.py.
. "$VWN_SOURCE/tests/torch/lib.inc"
"$PY" "$VWN_SOURCE/tests/torch/parallel.py"
