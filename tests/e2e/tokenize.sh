# tokenize.sh - texts become the same shards however they are packed, with any number of threads, and behind a kill; training reads them,
# and refuses those that are cut, strange, not complete, or of another vocabulary. What the ids are is tested by runtime.shards.
. "$VWN_SOURCE/tests/support/lib.inc"
cp "$VWN_SOURCE"/tests/runtime/tokenizer/ranks.tiktoken "$VWN_SOURCE"/tests/runtime/tokenizer/squares.jsonl.zst .

# model DATA TOKENIZER: m.vwn trains on this data
model() {
    cat > m.vwn << END
edition = 1
import "std/transformer"
import "std/connections"
import "std/tokenizers"
model m {
  context    = 8
  width      = 8
  mask       = causal
  init       = normal(std = 0.02)
  out_init   = normal(std = 0.02)
  pre_norm   = none
  connection = residual()
  embed tokens { vocab = ${3:-512} }
  ffn { hidden = 8, activation = gelu }
  head lm { norm = none }
}
train {
  data      = $1
  $2
  batch     = 2 seqs
  length    = 2 steps
  seed      = 1
  precision = fp32
  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 }
  eval { every = 2 steps }
}
END
}
ranks='tokenizer = file("ranks.tiktoken", split = gpt2_split, special = ["<|endoftext|>"])'
model 'token_files("plain/*.bin", val = 20%)' "$ranks"
cp m.vwn ranks.vwn
tokenize() { expect "$1" "$VWN" tokenize -q --tokenizer ranks.vwn "$2" "$3" "$4" "$5" "$6" "$7" "$8" "$9"; }
# same A B: two folders have the same shards
same() {
    (cd "$1" && cat ./*.bin | cksum && ls ./*.bin) > one
    (cd "$2" && cat ./*.bin | cksum && ls ./*.bin) > two
    cmp -s one two || fail "$last: $1 and $2 have not the same shards"
}

# ---- forms of texts, threads ----
awk 'BEGIN { for (i = 0; i < 400; i++) printf "{\"text\": \"line %d says that %d is the square of %d\"}\n", i, i * i, i }' > squares.jsonl
expect 0 "$VWN" tokenize squares.jsonl -o plain --tokenizer ranks.vwn --shard-tokens 2000 --threads 1
has out ' tokens of 400 documents in '
has out 'documents begin with the token 460'
has out 'data = token_files("plain/*.bin")'
has err 'tokens_000000.bin: 2000 tokens'
[ "$(cat plain/*.bin | od -An -v -tu2 -w2 | grep -c '^ *460$')" -eq 400 ] || fail "there are not 400 separators"
gzip -c squares.jsonl > squares.jsonl.gz
head -c 9000 squares.jsonl | gzip > two.jsonl.gz # one gzip behind another one
tail -c +9001 squares.jsonl | gzip >> two.jsonl.gz
for text in squares.jsonl.gz squares.jsonl.zst two.jsonl.gz; do
    expect 0 "$VWN" tokenize $text -q -o "$text.d" --tokenizer ranks.vwn --shard-tokens 2000 --threads 3
    same plain "$text.d"
done
"$VWN" tokenize - -q -o input --field text --tokenizer ranks.vwn --shard-tokens 2000 < squares.jsonl.zst > out 2> err || fail "the standard input"
same plain input
expect 0 "$VWN" tokenize squares.jsonl -o json --tokenizer ranks.vwn --json
json out
empty err
# shuffled: the same documents in another order, which the seed decides
expect 0 "$VWN" tokenize squares.jsonl -q -o seven --tokenizer ranks.vwn --shuffle 7 --threads 1
expect 0 "$VWN" tokenize squares.jsonl -q -o again --tokenizer ranks.vwn --shuffle 7 --threads 3
expect 0 "$VWN" tokenize squares.jsonl -q -o eight --tokenizer ranks.vwn --shuffle 8
same seven again
documents() { cat "$1"/*.bin | od -An -v -tu2 -w2 | tr -d ' ' | tr '\n' ' ' | sed 's/460 /\n/g' | sort | cksum; }
if cmp -s seven/tokens_000000.bin eight/tokens_000000.bin; then fail "two seeds give one order"; fi
[ "$(documents plain)" = "$(documents seven)" ] && [ "$(documents plain)" = "$(documents eight)" ] || fail "shuffling changes documents"
for text in squares.jsonl.gz squares.jsonl.zst; do
    head -c 1200 "$text" > torn.bin
    expect 5 "$VWN" tokenize torn.bin -q -o torn.d --tokenizer ranks.vwn --overwrite
    has err 'torn.bin: byte 1200: the packed file ends in the middle'
    { head -c 700 "$text" && printf 'damaged' && tail -c +708 "$text"; } > torn.bin
    expect 5 "$VWN" tokenize torn.bin -q -o torn.d --tokenizer ranks.vwn --overwrite
    has err 'torn.bin: byte '
done
mkdir broken
: > broken/libzstd.so.1
expect 5 env LD_LIBRARY_PATH="$PWD/broken" "$VWN" tokenize squares.jsonl.zst -q -o torn.d --overwrite --tokenizer ranks.vwn
has err 'the library libzstd.so.1 is missing: install the Debian package libzstd1'
expect 0 "$VWN" doctor
has out 'texts packed by gzip: zlib'
has out 'texts packed by zstd: zstd'

# ---- a tokenizer made of texts: what tokenizers 0.23.3 trains on the same, its vocabulary and its merges a line each ----
learned() { # FILE SUM
    sed -n '/^"vocab"/,$p' "$1" | sed 's/^"vocab":{//; s/},$/,/; s/,$//; s/]}}$//; /^"merges":\[$/d' | sha256sum | cut -c 1-64 > sum
    [ "$(cat sum)" = "$2" ] || fail "$1: other tokens or merges than those of tokenizers: $(cat sum)"
}
awk 'BEGIN { for (i = 0; i < 300; i++) printf "aaaaaaaa aaaa ababab%d \303\251 e\314\201 \346\274\242\345\255\227 \n\n\t\tif (a == b) return %d;\r\nthe weather of the leather is there\n", i % 7, i * i }' > odd.txt
expect 0 "$VWN" tokenize odd.txt --train 700 -o odd.json --threads 1
has out '700 tokens, 443 merges, of '
learned odd.json af6ac49fc818de061f3cf683f9af0fe0af79c0f2cae946216ef7a8ea0ac70b8f
cp odd.json one.json
expect 0 "$VWN" tokenize odd.txt --train 700 -o odd.json --overwrite --threads 3 --json
json out
cmp -s odd.json one.json || fail "another number of threads makes another tokenizer"
if [ -r "$VWN_DATA/kjv.txt" ]; then
    expect 0 "$VWN" tokenize "$VWN_DATA/kjv.txt" --train 2k -o kjv.json
    learned kjv.json 306870f663b6c5d5187b5304562c476dfd85d1cc0241ed9a50442e6832e11a16
fi
# it makes shards, and is cut by another pattern where that is given
expect 0 "$VWN" tokenize odd.txt -q -o odd.d --tokenizer odd.json
has out 'documents begin with the token 0'
expect 0 "$VWN" tokenize odd.txt --train 300 -o digits.json --split '\p{N}| ?\p{L}+|[^\p{L}\p{N}]+' --separator none
lacks digits.json '<|endoftext|>'
if grep -q '^\["[0-9]*","[0-9]*"\]' digits.json; then fail "digits that the pattern parts are merged"; fi
expect 0 "$VWN" tokenize odd.txt -q -o digits.d --tokenizer digits.json --separator none
# fewer pieces than there are: the rarest go, which is said
awk 'BEGIN { for (i = 0; i < 3000; i++) print "w" i * 7919 % 3000 "x the" }' > many.txt
expect 0 "$VWN" tokenize many.txt --train 300 -o many.json --pieces 1000
has err 'warning: there were more different pieces than `--pieces` keeps'
expect 2 "$VWN" tokenize many.txt --train 300 -o many.json
has err 'many.json is there already: `--overwrite` replaces it'
expect 2 "$VWN" tokenize many.txt --train 32q -o other.json
has err '`--train 32q`: the tokens of the vocabulary are needed'
expect 2 "$VWN" tokenize many.txt --train 100 -o other.json
has err 'a vocabulary has at least 257 tokens'
expect 2 "$VWN" tokenize many.txt --train 32k -o other
has err 'say where with `-o tokenizer.json`'
expect 2 "$VWN" tokenize many.txt --train 32k -o other.json --shuffle 1
has err '`--train` makes a tokenizer and no shards: leave `--shuffle` out'
expect 2 "$VWN" tokenize many.txt --train 32k -o other.json --split '('
expect 2 "$VWN" tokenize many.txt -o other --tokenizer odd.json --split x
has err '`--split` is for `--train`'
[ ! -e other.json ] || fail "a call that failed has written a tokenizer"

# ---- what is wrong ----
expect 2 "$VWN" tokenize squares.jsonl --tokenizer ranks.vwn
has err 'say which with `-o DIR`'
expect 2 "$VWN" tokenize squares.jsonl -o plain
has err '`--tokenizer tokenizer.json`'
expect 2 "$VWN" tokenize squares.jsonl -o plain --tokenizer ranks.vwn --resume --overwrite
expect 2 "$VWN" tokenize squares.jsonl -o plain --tokenizer ranks.vwn
has err 'plain holds shards already: `--overwrite` begins anew'
expect 2 "$VWN" tokenize squares.jsonl -o broken --tokenizer ranks.vwn
has err 'broken holds files that `vwn tokenize` has not written'
expect 2 "$VWN" tokenize squares.jsonl -o one.d --tokenizer ranks.vwn --separator 'no token'
has err 'the separator `no token` is not one token'
expect 1 "$VWN" tokenize squares.jsonl -o none.d --tokenizer "$VWN_SOURCE/examples/01_nano.vwn"
has err 'names no `tokenizer = file(...)`'
expect 5 "$VWN" tokenize absent.txt -o none.d --tokenizer ranks.vwn
has err 'absent.txt: No such file or directory'
expect 1 "$VWN" tokenize squares.jsonl -q -o wrong.d --tokenizer ranks.vwn --field body
has err 'squares.jsonl:1: the object has no member `body`; `--field` says which one'
printf '{"text": "a"}\n\n{"text": 1}\n[]\n' > wrong.jsonl
expect 1 "$VWN" tokenize wrong.jsonl -q -o wrong.d --overwrite --tokenizer ranks.vwn --threads 3
has err 'wrong.jsonl:3: the member `text` is no text'
: > nothing.txt
expect 1 "$VWN" tokenize nothing.txt -q -o wrong.d --overwrite --tokenizer ranks.vwn
has err 'the texts are empty'
expect 0 "$VWN" tokenize squares.jsonl -q -o bare --tokenizer ranks.vwn --separator none
lacks out 'documents begin'

# ---- a kill in the middle: two batches have come when the process is killed, and shards of one are whole ----
awk 'BEGIN { for (i = 0; i < 160000; i++) print "It was line " i " of a long text, which says what its square is: " i * i }' > long.txt
expect 0 "$VWN" tokenize squares.jsonl long.txt -q -o whole --tokenizer ranks.vwn --shard-tokens 500000 --threads 1
mkfifo pipe
sh -c 'head -c 6000000 long.txt && exec sleep 60' > pipe &
feeder=$!
"$VWN" tokenize squares.jsonl - -q -o parts --tokenizer ranks.vwn --shard-tokens 500000 < pipe > out 2> err &
killed=$!
tries=0
while [ ! -f parts/tokens_000001.bin ] && [ $tries -lt 600 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
kill -KILL $killed
wait $killed 2> waited
kill $feeder
[ -f parts/tokens_000001.bin ] && [ ! -f parts/tokens_000005.bin ] || fail "the process was not killed between shards: $(ls parts)"
model 'token_files("parts/*.bin", val = 20%)' "$ranks"
expect 5 "$VWN" train -q m.vwn --run early
has err 'parts/tokens.json: `vwn tokenize` did not come to the end of these shards'
resume() { # STATUS TEXT FLAGS...
    wanted=$1 last="resume $*"
    text=$2
    shift 2
    "$VWN" tokenize squares.jsonl - -q -o parts --tokenizer ranks.vwn "$@" < "$text" > out 2> err
    got=$?
    [ $got -eq "$wanted" ] || fail "$last: exit status $got, wanted $wanted"
}
resume 2 long.txt --shard-tokens 500000
has err 'of a call that did not come to its end: `--resume` goes on'
resume 2 long.txt --shard-tokens 400000 --resume
has err 'these shards were begun with another `--shard-tokens`'
resume 2 long.txt --shard-tokens 500000 --resume --shuffle 1
has err 'these shards were begun with another `--shuffle`'
resume 2 nothing.txt --shard-tokens 500000 --resume
has err 'these are not the texts of the shards that are in parts'
sed 's/line 9 /line 8 /' long.txt > changed.txt
resume 2 changed.txt --shard-tokens 500000 --resume
has err 'these are not the texts of the shards that are in parts'
# and a signal: it ends with 130, and what is whole stays
sh -c 'cat long.txt && exec sleep 60' > pipe &
feeder=$!
"$VWN" tokenize squares.jsonl - -o parts --resume --tokenizer ranks.vwn --shard-tokens 500000 < pipe > out 2> err &
stopped=$!
tries=0
while [ ! -f parts/tokens_000005.bin ] && [ $tries -lt 600 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
kill -TERM $stopped
wait $stopped
[ $? -eq 130 ] || fail "a signal does not end it with 130"
kill $feeder
has err 'whole shards are in parts; the same call goes on with `--resume`'
resume 0 long.txt --shard-tokens 500000 --resume --threads 2
same whole parts
resume 0 long.txt --shard-tokens 500000 --resume # there is nothing to do
same whole parts

# a text that training itself turns into ids can be stopped, too
i=0
while [ $i -lt 8 ]; do
    cat long.txt
    i=$((i + 1))
done > huge.txt
model 'text_file("huge.txt", val = 1%)' "$ranks"
"$VWN" train m.vwn --run stopped > out 2> err &
stopped=$!
tries=0
while ! grep -q huge.txt /proc/$stopped/maps && [ $tries -lt 600 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
kill -TERM $stopped
wait $stopped
[ $? -eq 130 ] || fail "a signal while a text is tokenized does not end training with 130"
has err 'interrupted while ./huge.txt was tokenized: '
rm huge.txt

# ---- shards that training reads ----
expect 0 "$VWN" train -q ranks.vwn
expect 0 "$VWN" eval m --json
has out '"bits_per_byte":'
model 'token_files("plain/*.bin", val = 20%)' '' # without a tokenizer the index knows how many bytes a token stands for
expect 0 "$VWN" train -q m.vwn --run ids
has runs/ids/events.jsonl '"bits_per_byte":'
# the same measure with the tokenizer, whose separator is no text, over the part held out; it is a column of runs and pages
bits() { sed -n 's/.*"event":"eval".*"bits_per_byte":\([0-9.]*\).*/\1/p' "runs/$1/events.jsonl"; }
awk -v a="$(bits ids)" -v b="$(bits m)" 'BEGIN { exit !(a > 0 && a / b > 0.98 && a / b < 1.02) }' || fail "bits per byte: $(bits ids) and $(bits m)"
expect 0 "$VWN" runs --sort bits_per_byte
has out '  bits/byte  '
has out "$(printf '%.4f' "$(bits ids)")"
expect 0 "$VWN" runs --json --filter 'bits_per_byte>1'
has out "\"bits_per_byte\":$(bits ids),"
expect 0 "$VWN" watch ids --once --json
has out "\"bits_per_byte\":$(bits ids),"
expect 0 "$VWN" report runs/ids -o ids.html
has ids.html 'bits/byte'
has ids.html "$(printf '%.4f' "$(bits ids)")"
# runs with different tokenizers are compared by it
model 'token_files("plain/*.bin", val = 20%)' "$ranks"
sed -e 's/token_files.*/text_file("long.txt", val = 1%)/' -e 's/tokenizer = .*/tokenizer = bytes()/' -e 's/2 steps }/1 steps }/' m.vwn > bytes.vwn
sed -e 's/2 steps }/1 steps }/' m.vwn > words.vwn
expect 0 "$VWN" train -q bytes.vwn --run bytes
expect 0 "$VWN" train -q words.vwn --run words
expect 0 "$VWN" compare bytes words
has out 'bits_per_byte by step'
expect 0 "$VWN" compare bytes words --metric eval_loss
has out 'tokenizers differ: `eval_loss` is of different tokens, `--metric bits_per_byte` compares'
expect 0 "$VWN" compare words words
lacks out bits_per_byte
model 'token_files("plain/*.bin", val = 20%, dtype = u32)' "$ranks"
expect 5 "$VWN" train -q m.vwn --run wide
has err './plain/tokens_000000.bin: ./plain/tokens.json says that its ids are stored as u16, and `dtype` is u32'
model 'token_files("plain/*.bin", val = 20%)' "$ranks" 460
expect 1 "$VWN" train -q m.vwn --run narrow
has err 'error[E0601]: the tokenizer produces ids up to 460 but the embedding has 460 rows'
model 'token_files("plain/*.bin", val = 20%)' 'tokenizer = bytes()'
expect 1 "$VWN" train -q m.vwn --run letters
has err 'error[E0601]: `bytes()` did not make these ids: their vocabulary has 461 entries'
has err 'tokenizer = bytes()'
grep -v ' 459$' ranks.tiktoken > other.tiktoken
model 'token_files("plain/*.bin", val = 20%)' "$(echo "$ranks" | sed 's/ranks/other/')"
expect 1 "$VWN" train -q m.vwn --run other
has err 'plain/tokens.json: these ids were made by another tokenizer than other.tiktoken'
model 'token_files("plain/*.bin", val = 20%, separator = 3)' "$ranks"
sed -i 's/^  ffn/  attention { heads = 1, mask = document, position = none }\n&/' m.vwn
expect 1 "$VWN" train -q m.vwn --run begins
has err 'plain/tokens.json: documents begin with the token 460 there, and `separator` is 3'
expect 1 "$VWN" emit c ranks.vwn -o folder
has err 'give `token_files` its `dtype`'
cp -r plain cut.d
model 'token_files("cut.d/*.bin", val = 20%)' "$ranks"
truncate -s 3000 cut.d/tokens_000001.bin
expect 5 "$VWN" train -q m.vwn --run cut
has err 'cut.d/tokens_000001.bin: it has 3000 bytes, and by ./cut.d/tokens.json 2000 tokens of 2 bytes each'
cp plain/tokens_000000.bin cut.d/strange.bin
cp plain/tokens_000001.bin cut.d/
expect 5 "$VWN" train -q m.vwn --run strange
has err 'cut.d/strange.bin: ./cut.d/tokens.json does not list it'
rm cut.d/strange.bin cut.d/tokens.json
expect 5 "$VWN" train -q m.vwn --run unknown
has err 'nothing says how its ids are stored'
echo '{"v":1,"format":"vwn tokens","width":3}' > cut.d/tokens.json
expect 5 "$VWN" train -q m.vwn --run damaged
has err 'cut.d/tokens.json: it does not say how ids are stored'
finish
