# rows.sh - what products of two bytes read lies in rows that begin at sixteen bytes, whatever the extents are, and so do logits;
# with the same numbers. What weights take so is in the memory that is predicted.
# When: quick, slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"

# run NAME FLAGS...: a few steps with odd extents everywhere; products in two bytes are in NAME.products: extents, rows of
# left, right and result.
run() {
    name=$1
    shift
    set -- --set D=64 --set 'sub=ffn(hidden = 75, activation = silu, gated = true)' --set embed.tokens.vocab=1003 \
        --set model.context=32 --set 'train.length=4 steps' "$@" \
        --set 'train.precision=mixed(compute = bf16, master = fp32)' --set 'train.eval.every=2 steps'
    expect 0 "$VWN" cost small.vwn --device cuda --json "$@"
    cp out "$name.cost"
    FAKE_CUDA_LOG=$name.log
    export FAKE_CUDA_LOG
    train cuda "$name" "$@"
    unset FAKE_CUDA_LOG
    train cpu "$name-cpu" "$@"
    near "$name" "$name-cpu" 4 2e-2
    sed -n 's/^[0-9]* cublasLtMatmul \([0-9]*\) x \([0-9]*\) x \([0-9]*\), [0-9]*, type 14, rows of \([0-9 ]*\), .*/\1 \2 \3 \4/p' \
        "$name.log" | sort -u > "$name.products"
    [ "$(wc -l < "$name.products")" -gt 8 ] || fail "$name: few products of two bytes"
    awk '$4 % 8 || $5 % 8' "$name.products" > odd
    [ ! -s odd ] || fail "$name: $(cat odd)"
    # what lasts from step to step is one piece of memory, whose tensors begin at 256 bytes; what lies in between is another
    lasting=0
    for part in weights copies gradients optimizer inputs; do
        lasting=$((lasting + $(sed -n "s/.*\"bytes_$part\":\([0-9]*\).*/\1/p" "$name.cost")))
    done
    # shellcheck disable=SC2046 # two numbers
    set -- $(sed -n 's/^[0-9]* cuMemAlloc \([0-9]*\) bytes.*/\1/p' "$name.log" | tail -n 2)
    [ "$lasting" -gt 2000000 ] && { near_above "$lasting" "$1" || near_above "$lasting" "$2"; } ||
        fail "$name: $lasting bytes predicted, $1 and $2 taken"
}

# near_above A B: B is A and no more than what begins at 256 bytes leaves unused.
near_above() { [ "$2" -ge "$1" ] && [ "$2" -le $(($1 + 15000)) ]; }

run apart
grep -q '^1008 128 64 1008 64 1008$' apart.products || fail "logits are not in rows of 1008: $(cat apart.products)"
run parts --set 'train.micro_batch=2 seqs'
run tied --set 'head.lm.tie=tokens'
grep -q '^1008 128 64 64 64 1008$' tied.products || fail "logits are not in rows of 1008: $(cat tied.products)"
finish
