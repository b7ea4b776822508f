# families.sh - see families.py: models of transformers, into runs and back.
# When: slow. It looks at numbers, ten times slower.
. "$VWN_SOURCE/tests/torch/lib.inc"
"$PY" -c 'import transformers, safetensors' 2> no_transformers || {
    echo "skipped: $PY has no transformers ($(tail -n 1 no_transformers)); VWN_PYTHON names one that has"
    exit 77
}
OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error TQDM_DISABLE=1
export OMP_NUM_THREADS HF_HUB_OFFLINE TRANSFORMERS_VERBOSITY TQDM_DISABLE
"$PY" "$VWN_SOURCE/tests/torch/families.py"
