# deepseek.sh - see deepseek.py.
# When: slow. It runs what is emitted, without vwn.
. "$VWN_SOURCE/tests/torch/lib.inc"
"$PY" "$VWN_SOURCE/tests/torch/deepseek.py"
