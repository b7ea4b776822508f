# task.sh - `vwn eval --task`: what is counted, what is computed, and what is said of lines that are no requests. The numbers themselves are
# compared with lm-evaluation-harness in tests/torch/harness.sh.
. "$VWN_SOURCE/tests/support/lib.inc"

squares > text.txt
block='block running()(x: [B, T, D]) -> [B, T, D] {
  param w : [D] = ones
  return w * cumsum(x, over = 2) / (1 + unsqueeze(cast(arange(T), real)))
}
block counted()(x: [B, T, D]) -> [B, T, D] { return x / cast(T, real) }'
layer='attention { heads = 2, position = rope(base = 100) }'
end='head lm { norm = rms_norm(eps = 1e-6) }'
train="$(small_train 'length = 4 steps
optimizer adamw { lr = 1e-2, betas = [0.9, 0.99], eps = 1e-8, weight_decay = 0 }')"
{ small_model '' "embed tokens { vocab = 256 }; $layer; $end" && echo "$train"; } > kept.vwn
{ small_model "$block" "embed tokens { vocab = 256 }; $layer; running { }; $end" && echo "$train"; } > sums.vwn
{ small_model "$block" "embed tokens { vocab = 256 }; $layer; counted { }; $end" && echo "$train"; } > whole.vwn
for kind in kept sums whole; do
    expect 0 "$VWN" train $kind.vwn --run $kind -q
done

# of each: together, and every continuation alone
cat > together.jsonl << 'END'
{"id": "a", "context": "line 1 sa", "continuations": [" that", "yX", " 12 345"], "gold": 0}
{"context": "squar", "continuations": ["e of 1", "zz"], "gold": 1, "id": 7}

{"contexts": ["ab", "the", "a b  "], "continuation": " is", "gold": 2}
{"context": "", "continuation": "line"}
END
cat > alone.jsonl << 'END'
{"context": "line 1 sa", "continuation": " that"}
{"context": "line 1 sa", "continuation": "yX"}
{"context": "line 1 sa", "continuation": " 12 345"}
{"context": "squar", "continuation": "e of 1"}
{"context": "squar", "continuation": "zz"}
{"context": "ab", "continuation": " is"}
{"context": "the", "continuation": " is"}
{"context": "a b  ", "continuation": " is"}
{"context": "", "continuation": "line"}
END
logprobs() { sed 's/.*"logprob":\[\([^]]*\).*/\1/' "$1" | tr ',' '\n'; }
member() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" out; }
for kind in kept sums whole; do
    expect 0 "$VWN" eval $kind --task alone.jsonl -o alone.out --json
    computed_alone=$(member computed)
    gzip -c together.jsonl > together.jsonl.gz
    expect 0 "$VWN" eval $kind --task together.jsonl.gz -o together.out --json
    json out
    json together.out
    logprobs alone.out > alone.txt
    logprobs together.out > together.txt
    close alone.txt together.txt 1e-5
    # 13, 10 and 15 positions, of which all but one of the context are there; 10 and 6 of the second request; those of contexts that differ
    # from their first letter on, the last of which has its blanks in the continuation; 4
    [ "$(member tokens)" -eq 37 ] || fail "$kind: $(member tokens) tokens"
    want=$computed_alone
    [ $kind != kept ] || want=$((computed_alone - 8 - 8 - 4))
    [ "$(member computed)" -eq "$want" ] || fail "$kind: $(member computed) positions, not $want"
done
[ "$computed_alone" -eq 74 ] || fail "$computed_alone positions"
[ "$(sed -n 's/.*"line":\([0-9]*\).*/\1/p' together.out | tr '\n' ' ')" = "1 2 4 5 " ] || fail "other lines"
has together.out '"id":"a","gold":0'
has together.out '"id":7,"gold":1'

# what is counted
awk -F '[][]' '{ split($2, x, ","); split($0, g, "\"gold\":"); gold = g[2] + 0; best = 1; for (i in x) if (x[i] > x[best] + 0) best = i
    right += best == gold + 1 } END { printf "%.6f\n", right / NR }' together.out > acc.txt
member acc | awk '{ printf "%.6f\n", $1 }' > said.txt
cmp -s acc.txt said.txt || fail "acc is $(cat said.txt), and $(cat acc.txt) of the lines"

# a text that is longer than the context is told; one whose continuation is, refused
echo '{"context": "a text that is longer than the context", "continuation": " is"}' > long.jsonl
expect 0 "$VWN" eval kept --task long.jsonl
has err '1 texts have more tokens than the model'
has out 'acc              1.0000'
lacks out '+-'

# bad LINE SAID: the second line of a task
bad() {
    printf '{"context": "a", "continuation": "b"}\n%s\n' "$1" > bad.jsonl
    expect "${3:-1}" "$VWN" eval kept --task bad.jsonl
    has err "bad.jsonl:2: $2"
    empty out
}
bad '{"context": "a", "continuations": ["b", "c"]}' '`gold` is missing'
bad '{"context": "a", "continuations": ["b", "c"], "gold": 2}' '`gold` is a place among the 2, from 0 to 1'
bad '{"context": "a", "continuations": [], "gold": 0}' '`continuations` is a list of 1 to'
bad '{"context": "a", "continuations": ["b", 1], "gold": 0}' 'entry 2 of `continuations` is no text'
bad '{"context": "a", "continuations": ["b", ""], "gold": 0}' 'continuation 2 is empty'
bad '{"contexts": ["a", "b"], "continuations": ["b", "c"], "gold": 0}' 'several `contexts` have one `continuation`'
bad '{"context": "a", "contexts": ["a"], "continuation": "b"}' '`context` and `contexts` exclude each other'
bad '{"context": "a"}' '`continuation` or `continuations` is missing'
bad '{"context": "a", "continuation": "b", "label": 0}' 'a request has no member `label`'
bad '{"context": "a", "continuation": "b"' 'byte 37 of the line: '
bad '["a", "b"]' 'the line is no object'
bad '{"context": "a", "continuation": "that does not fit into it"}' 'a continuation of 25 tokens does not fit'
bad "$(printf '{"context": "\377", "continuation": "b"}')" 'byte 14 of the line: '
bad "$(awk 'BEGIN { for (i = 0; i < 200; i++) printf "[" }')" 'byte '
: > empty.jsonl
expect 1 "$VWN" eval kept --task empty.jsonl
has err 'empty.jsonl holds no request'
expect 5 "$VWN" eval kept --task none.jsonl
has err 'none.jsonl'
expect 2 "$VWN" eval kept --task empty.jsonl --batches 3
has err 'leave `--batches` out'
expect 2 "$VWN" eval kept -o x.jsonl
has err '`-o` is for `--task`'
finish
