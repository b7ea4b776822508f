# arrays.sh - see arrays.py: numpy and PyTorch, each where Python has it.
# When: slow. Memory is looked at by model.sh.
. "$VWN_SOURCE/tests/python/lib.inc"
"$PY" "$VWN_SOURCE/tests/python/arrays.py"
