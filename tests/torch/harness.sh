# harness.sh - see harness.py: the numbers of lm-evaluation-harness.
# When: slow, whole. It opens PyTorch and the harness, and looks at numbers.
. "$VWN_SOURCE/tests/torch/lib.inc"
"$PY" -c 'import transformers, tokenizers, lm_eval.models.huggingface' 2> no_harness || {
    echo "skipped: $PY has no lm_eval with transformers ($(tail -n 1 no_harness)); VWN_PYTHON names one that has"
    exit 77
}
OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 HF_HOME=$PWD/hf_home TRANSFORMERS_VERBOSITY=error TQDM_DISABLE=1
export OMP_NUM_THREADS HF_HUB_OFFLINE HF_DATASETS_OFFLINE HF_HOME TRANSFORMERS_VERBOSITY TQDM_DISABLE
"$PY" "$VWN_SOURCE/tests/torch/harness.py"
