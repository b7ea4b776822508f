# connections.sh - see connections.py.
# When: quick, slow. It runs what is emitted, without vwn.
. "$VWN_SOURCE/tests/torch/lib.inc"
"$PY" "$VWN_SOURCE/tests/torch/connections.py"
