# behaviour.sh - see behaviour.py.
. "$VWN_SOURCE/tests/torch/lib.inc"
"$PY" "$VWN_SOURCE/tests/torch/behaviour.py"
