# model.sh - see model.py: a run's values, lifetimes of views, steps driven from Python, with the standard library alone.
# When: quick.
. "$VWN_SOURCE/tests/python/lib.inc"
"$PY" "$VWN_SOURCE/tests/python/model.py" || exit 1
"$PY" "$VWN_SOURCE/examples/python/own_loss.py" small.vwn 2 > example || exit 1
[ "$(grep -c 'own loss' example)" = 5 ] || { echo "FAILED: $(cat example)"; exit 1; }
