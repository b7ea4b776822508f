# fuzz.sh - see fuzz.py: random calls for two seconds; VWN_FUZZ_SECONDS=600 for as long.
# When: slow. What it calls is watched in model.sh.
. "$VWN_SOURCE/tests/python/lib.inc"
"$PY" "$VWN_SOURCE/tests/python/fuzz.py" 1
