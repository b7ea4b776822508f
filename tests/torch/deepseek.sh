# deepseek.sh - see deepseek.py.
. "$VWN_SOURCE/tests/torch/lib.inc"
"$PY" "$VWN_SOURCE/tests/torch/deepseek.py"
