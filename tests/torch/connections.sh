# connections.sh - see connections.py.
. "$VWN_SOURCE/tests/torch/lib.inc"
"$PY" "$VWN_SOURCE/tests/torch/connections.py"
