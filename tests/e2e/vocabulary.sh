# vocabulary.sh - a text with more characters than the model knows: E0601 at the table or the head
# that is too small, also when only the data says how many there are. A tokenizer's file: trained with, sampled from in whole
# characters, carried by the checkpoint, and refused where it is missing, another one, or too large for the model.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"

# model ROWS COLUMNS: letters.vwn looks up so many ids and predicts so many.
model() {
    cat > letters.vwn << END
edition = 1
import "std/transformer"
import "std/connections"
model letters {
  context    = 8
  width      = 8
  init       = normal(std = 0.02)
  out_init   = normal(std = 0.02)
  pre_norm   = none
  connection = residual()
  embed tokens { vocab = $1 }
  ffn { hidden = 8, activation = gelu }
  head lm { vocab = $2, norm = none }
}
train {
  data      = text_file("letters.txt")
  tokenizer = chars()
  batch     = 2 seqs
  length    = 2 steps
  seed      = 1
  precision = fp32
  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 }
}
END
}
i=0
while [ $i -lt 20 ]; do
    echo 'abcdefg gfedcba'
    i=$((i + 1))
done > letters.txt # nine characters with the blank and the newline

model 5 9
expect 0 "$VWN" check -q letters.vwn
expect 1 "$VWN" train letters.vwn
has err 'error[E0601]: the tokenizer produces ids up to 8 but the embedding has 5 rows'
has err '--> letters.vwn:11:18'
has err 'ids 5 to 8 have no row'
has err '9 entries'
has err 'write `vocab = 9`'
model 9 5
expect 1 "$VWN" train letters.vwn
has err 'error[E0601]: the tokenizer produces ids up to 8 but the head has 5 columns'
has err '--> letters.vwn:13:13'
has err 'ids 5 to 8 are never predicted'
model 9 9
expect 0 "$VWN" train -q letters.vwn

# a text that is stopped is the other one up to there, and what was said before counts less
expect 0 "$VWN" sample runs/letters --prompt a --tokens 80 --seed 4
cp out whole.txt
expect 0 "$VWN" sample runs/letters --prompt a --tokens 80 --seed 4 --stop gab --stop b
head -c "$(($(wc -c < out) - 1))" out > stopped.txt
[ "$(cat stopped.txt)" = "$(tr '\n' '~' < whole.txt | sed 's/b.*/b/' | tr '~' '\n')" ] || fail "\`--stop\` ends a text elsewhere"
expect 0 "$VWN" sample runs/letters --prompt abcdefg --tokens 1 --temperature 0 --repetition 1e-3
expect 2 "$VWN" sample runs/letters --stop ''
has err 'an empty text stops nothing'
expect 2 "$VWN" sample runs/letters --repetition 0
expect 2 "$VWN" sample runs/letters --repetition -1

# ---- the file of a tokenizer ----
expect 0 "$VWN" doctor
has out 'patterns of tokenizers: PCRE2'
cp "$VWN_SOURCE"/tests/runtime/tokenizer/ranks.tiktoken "$VWN_SOURCE"/tests/runtime/tokenizer/vocab.json \
    "$VWN_SOURCE"/tests/runtime/tokenizer/merges.txt .
{
    i=0
    while [ $i -lt 40 ]; do
        echo "In the beginning 漢字 🎉 was the word $i<|endoftext|>"
        i=$((i + 1))
    done
} > words.txt
model 512 512
sed -e 's/letters.txt"/words.txt", val = 20%/' -e 's/model letters/model words/' -e 's/std\/connections"/&\nimport "std\/tokenizers"/' \
    -e 's/chars()/file("ranks.tiktoken", split = gpt2_split, special = ["<|endoftext|>"])/' letters.vwn > words.vwn
expect 0 "$VWN" train -q words.vwn
expect 0 "$VWN" sample runs/words --prompt 'a 漢<|endoftext|>' --tokens 40
has out 'a 漢<|endoftext|>'
mv ranks.tiktoken away
expect 0 "$VWN" sample runs/words --tokens 3 # the checkpoint has it
expect 0 "$VWN" eval runs/words
expect 5 "$VWN" resume runs/words --set 'train.length=3 steps'
has err 'the tokenizer ./ranks.tiktoken: No such file or directory; it is named in words.vwn:18, and its path is relative to the folder of that file'
expect 5 "$VWN" resume runs/words --kept --set 'train.length=3 steps'
has err '; it is named in runs/words/resolved.vwn:'
has err ", and its path is relative to the folder \`$PWD\`"
grep -v ' 459$' away > ranks.tiktoken
expect 5 "$VWN" resume runs/words --set 'train.length=3 steps'
has err "the tokenizer's vocabulary is not the one of"
mkdir elsewhere # the same, in another folder
mv away elsewhere/ranks.tiktoken
sed -i 's/file("ranks/file("elsewhere\/ranks/' words.vwn
expect 0 "$VWN" resume runs/words --set 'train.length=3 steps'
mv elsewhere/ranks.tiktoken .
sed -i 's/elsewhere\///' words.vwn
# bits per byte: every token of a text of one word stands for its four bytes
awk 'BEGIN { for (i = 0; i < 200; i++) printf " the" }' > the.txt
expect 0 "$VWN" eval runs/words --data the.txt --json
sed 's/[{},]/\n/g' out | awk -F: '{ v[$1] = $2 } END { x = v["\"bits_per_byte\""] * 4 * log(2) / v["\"loss.next\""]; exit !(x > 0.99999 && x < 1.00001) }' ||
    fail "bits per byte are not a quarter of a token's"
# a run says it at its evaluations, and runs are compared by it
sed -e 's/  optimizer/  eval { every = 2 steps }\n&/' words.vwn > said.vwn
expect 0 "$VWN" train -q said.vwn --run said
expect 0 "$VWN" eval said --json
bits=$(sed 's/.*"bits_per_byte":\([0-9.]*\).*/\1/' out)
said=$(sed -n 's/.*"event":"eval".*"bits_per_byte":\([0-9.]*\).*/\1/p' runs/said/events.jsonl)
awk -v a="$bits" -v b="$said" 'BEGIN { exit !(a > 0 && a - b < 1e-6 && b - a < 1e-6) }' || fail "bits per byte: $bits and $said"
expect 0 "$VWN" compare said said --metric bits_per_byte
# the same ids by two files, which give the same numbers
sed 's/file("ranks.tiktoken"/file("vocab.json", merges = "merges.txt"/' words.vwn > two.vwn
expect 0 "$VWN" train -q two.vwn --run two
[ "$("$VWN" eval two --json | cut -d, -f 4-)" = "$("$VWN" eval runs/words/ckpt/step_00000002.safetensors --json | cut -d, -f 4-)" ] ||
    fail "two forms of one tokenizer train in another way"
expect 1 "$VWN" emit c words.vwn -o folder
has err 'makes no ids by a tokenizer'
sed -e 's/vocab = 512, width/vocab = 460, width/' -e 's/tokens { vocab = 512/tokens { vocab = 460/' words.vwn > narrow.vwn
expect 1 "$VWN" train -q narrow.vwn
has err 'error[E0601]: the tokenizer produces ids up to 460 but the embedding has 460 rows'
sed 's/, split = gpt2_split//' words.vwn > uncut.vwn
expect 1 "$VWN" train -q uncut.vwn
has err 'ranks do not say how a text is cut: give `split`, a pattern of `std/tokenizers`'
has err '; it is named in uncut.vwn:18'
truncate -s 41M ranks.tiktoken
expect 5 "$VWN" train -q words.vwn --run large
has err 'its files have at most 40 MiB together; it is named in words.vwn:18'
printf '\012\t<unk>\0' > tokenizer.model
sed 's/ranks.tiktoken/tokenizer.model/' words.vwn > model.vwn
expect 1 "$VWN" train -q model.vwn
has err 'the file is no tokenizer.json; those of SentencePiece'
mkdir broken # a library that cannot be opened is missing
: > broken/libpcre2-8.so.0
expect 5 env LD_LIBRARY_PATH="$PWD/broken" "$VWN" train -q two.vwn --run without
has err 'the library libpcre2-8.so.0 is missing: install the Debian package libpcre2-8-0; it is named in two.vwn:18'
expect 0 env LD_LIBRARY_PATH="$PWD/broken" "$VWN" doctor
has out 'patterns of tokenizers: the library libpcre2-8.so.0 is missing'
# a vocabulary of a few letters: an added token has other ones, and a separator must have some
cat > few.json << 'END'
{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3}, "merges": ["a b"]},
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "added_tokens": [{"id": 4, "content": "<|end|>"}]}
END
awk 'BEGIN { for (i = 0; i < 40; i++) printf "abcab<|end|>" }' > few.txt
sed -e 's/letters.txt", val/few.txt", val/' -e 's/words.txt"/few.txt", separator = "<|end|>"/' -e 's/ranks.tiktoken".*/few.json")/' \
    -e 's/^  ffn/  attention { heads = 1, mask = document, position = none }\n&/' words.vwn > few.vwn
expect 0 "$VWN" train -q few.vwn --run few
expect 0 "$VWN" sample few --prompt '<|end|>ab' --tokens 4 --stop '<|end|>'
# ids that stand for nothing are not drawn: of 41 there are five that do, and each of 60 tokens is one of these
sed 's/"id": 4/"id": 40/' few.json > holes.json
sed 's/few.json/holes.json/' few.vwn > holes.vwn
expect 0 "$VWN" train -q holes.vwn --run holes
for how in '--temperature 50' '--temperature 50 --repetition 1.2' '--temperature 50 --top-k 5' '--temperature 0'; do
    # shellcheck disable=SC2086 # flags are words
    expect 0 "$VWN" sample holes --prompt ab --tokens 60 $how
    [ "$(wc -c < out)" -ge 63 ] || fail "ids that stand for nothing are drawn: $(cat out)"
done
sed 's/"<|end|>"/"\\n"/' few.vwn > other.vwn
expect 1 "$VWN" train -q other.vwn --run few2
has err 'the separator: byte 0: the tokenizer has no token for the byte 0x0a; it is named in other.vwn:'
# a pattern by its name as a text, and without its import
sed 's/gpt2_split/"gpt2"/' words.vwn > word.vwn
expect 1 "$VWN" check word.vwn
has err '`split` is a pattern, and `gpt2` is a word'
grep -v std/tokenizers words.vwn > unknown.vwn
expect 1 "$VWN" check unknown.vwn
has err '`gpt2_split` is in the library: `import "std/tokenizers"`'
sed 's/\["<|endoftext|>"\]/[3]/' words.vwn > odd.vwn
expect 1 "$VWN" check odd.vwn
has err '`special` is a list of texts, or of texts with their ids'
finish
