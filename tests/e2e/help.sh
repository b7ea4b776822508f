# help.sh - help texts list what exists and nothing else; wrong use is told apart and explained.
# When: quick, released.
. "$VWN_SOURCE/tests/support/lib.inc"

verbs="new check fmt params cost ir emit tokenize grow train resume launch sweep runs watch eval sample serve inspect compare report diff plot graph export export-log
bench resolve explain doc doctor lsp completions"

expect 0 "$VWN"
for verb in $verbs; do has out "vwn $verb "; done
[ "$(grep -c '^  vwn [a-z]' out)" -eq "$(echo "$verbs" | wc -w)" ] || fail "the help lists other verbs"
cp out short
expect 0 "$VWN" --help
cmp -s short out || fail "vwn and vwn --help differ"
expect 0 "$VWN" help
cmp -s short out || fail "vwn and vwn help differ"
expect 0 "$VWN" train --help
cp out long
expect 0 "$VWN" help train
cmp -s long out || fail "vwn train --help and vwn help train differ"
expect 2 "$VWN" help trian
has err "did you mean \`train\`?"
expect 2 "$VWN" sample run --temp 1
has err "did you mean \`--temperature\`?"
expect 0 "$VWN" --version
grep -Eq '^vwn [0-9]+\.[0-9]+\.[0-9]+ \([0-9a-f]{16}\)$' out || fail "--version"

for verb in $verbs; do
    expect 0 "$VWN" $verb --help
    empty err
    [ "$(head -n 2 out | grep -c "^  vwn $verb")" -eq 2 ] || fail "$verb: no two examples first"
    # every flag in the text is known, with its value if it takes one
    behind=. # of `launch`, what stands behind an operand is another verb's
    [ "$verb" != launch ] || behind=
    for flag in $(sed -n 's/^  \(--*[A-Za-z][a-z-]*\).*/\1/p' out); do
        draw 1 9 || continue
        expect 2 "$VWN" $verb $flag $behind --no-such-flag
        lacks err "has no flag \`$flag"
    done
    expect 2 "$VWN" $verb --no-such-flag
    has err "\`vwn $verb\` has no flag \`--no-such-flag\`"
    empty out
done
for absent in import server; do
    expect 2 "$VWN" $absent
    has err "no verb \`$absent\`"
done

expect 2 "$VWN" chekc
has err 'did you mean `check`?'
expect 2 "$VWN" check --fxi a.vwn
has err 'did you mean `--fix`?'
expect 2 "$VWN" train -o out model.vwn
has err 'did you mean `--run`?'
expect 2 "$VWN" check -o out model.vwn
lacks err 'did you mean'
# what other programs call verbs and flags: what is typed, and what is said of it
while IFS='|' read -r typed said; do
    # shellcheck disable=SC2086
    expect 2 "$VWN" $typed
    has err "$said"
done <<'END'
generate nano|did you mean `sample`?
delete nano|did you mean `runs rm`?
fit model.vwn|did you mean `train`?
preprocess a.jsonl|did you mean `tokenize`?
doc nn.Linear|did you mean `linear`?
doc nowhere.at.zzz|`vwn doc --search WORD` finds topics
check a.vwn --strict|did you mean `--deny`?
train a.vwn --num-layers 4|`--set L=4`
train a.vwn --batch_size 4|`--set train.batch='8 seqs'`
train a.vwn --multirun D=1,2|`vwn sweep FILE --vary D=32,64`
train a.vwn --load runs/x|did you mean `--resume`?
quick.vwn|`vwn check quick.vwn` checks it
train a.vwn --device mps|there is no backend for Apple's GPUs: `--device cpu`
train a.vwn --device gpu|a GPU is `--device cuda`
train a.vwn --device cudda|did you mean `cuda`?
train a.vwn --nproc_per_node 4|`vwn launch -n 4 train FILE`
resume nano --load runs/x|a run goes on by `vwn resume RUN`
train a.vwn --fsdp full|nothing is sharded
train --config-path . a|the file is named without a flag
train a.vwn --config x.yaml|the file is named without a flag
export-log nano --csv out.csv|the file to write is named by `-o out.csv`
sample nano --step 30|behind the run: `vwn sample RUN@25`
eval nano --checkpoint 30|behind the run: `vwn eval RUN@25`
eval nano --batch_size 4|did you mean `--batch`?
eval nano --split val|other data is `--data PATH`
sample nano -p x|did you mean `--prompt`?
sample nano -n3|did you mean `-n 3`?
sample nano --prompt --tokens 5|`--prompt` needs TEXT, got the flag `--tokens`; a value that begins so is `--prompt=--tokens`
train a.vwn --run -q|`--run` needs NAME, got the flag `-q`
train a.vwn --run --device=cpu|`--run` needs NAME, got the flag `--device=cpu`
train a.vwn --gpus 2|a process uses one device
train a.vwn --log-level debug|`-v` says more, `-q` less
export-log nano --format csv|the name that is written says the form: `-o out.csv`
export-log nano --wandb|nothing is sent away
plot nano loss --smooth 9|`vwn compare RUN --smooth 20
resume nano --steps 100|`vwn resume RUN --set train.length='100 steps'`
resume nano@25|a run goes on from its last checkpoint: `vwn resume nano`
grow a.vwn nano wider --plan|did you mean `vwn grow nano a.vwn wider --plan`?
--set D=16 train a.vwn|flags stand behind the verb
--sett D=16 train a.vwn|no flag `--sett`
END
expect 2 "$VWN" check
has err 'needs FILE'
expect 2 "$VWN" params a.vwn b.vwn
has err 'has no use for `b.vwn`'
expect 2 "$VWN" params --by weight a.vwn
has err 'one of node, layer, group or tensor'
expect 2 "$VWN" cost --batch 8 a.vwn
has err "8 seqs"
expect 2 "$VWN" cost --batch '9223372036854775807k seqs' a.vwn
has err 'a count is needed'
expect 2 "$VWN" cost --batch '8 steps' a.vwn
expect 2 "$VWN" train --until '10 seqs' a.vwn
expect 2 "$VWN" train --until
has err 'needs a value'
expect 2 "$VWN" train --resume --overwrite a.vwn
expect 2 "$VWN" sample run --temperature nan
expect 2 "$VWN" sample run --top-p 0
for wrong in '--top-k 0' '--top-k -1' '--top-k 2.5' '--top-p -0.1' '--top-p 1.1' '--min-p -0.1' '--min-p 1.5' '--min-p nan' '-n 0' '-n 1e3'; do
    expect 2 "$VWN" sample run $wrong
    has err "\`$wrong\`"
done
expect 2 "$VWN" sample run --threads 0
expect 2 "$VWN" ir
expect 2 "$VWN" -q
expect 2 "$VWN" check --color sometimes a.vwn
expect 2 "$VWN" -C
expect 2 "$VWN" check -C no-such-folder a.vwn
expect 2 "$VWN" check --deny no_such_lint "$VWN_SOURCE/examples/01_nano.vwn"
has err 'no_such_lint'

expect 0 "$VWN" explain
for code in $(awk '{ print $1 }' out); do
    draw 1 9 || continue
    expect 0 "$VWN" explain "$code"
    filled out
done
expect 2 "$VWN" explain E9999
expect 0 "$VWN" doc
has out 'std/transformer.vwn'
expect 0 "$VWN" doc attention
has out 'block attention('
expect 0 "$VWN" doc std/connections
expect 0 "$VWN" doc hidden
has out 'hidden of ffn (std/transformer.vwn): dim; required'
expect 0 "$VWN" doc kv_heads
has out 'kv_heads of attention (std/transformer.vwn): int; heads'
for word in B T scope @ units; do
    expect 0 "$VWN" doc $word
    has out "$word: "
done
expect 0 "$VWN" doc softmax
has out 'for example `softmax([0, log(3)])` is [0.25, 0.75]'
while read -r topic name; do
    expect 0 "$VWN" doc --search "$topic"
    grep -q "^  $name " out || fail "$last: no $name"
done << 'END'
conv Conv1d
sink mhc
loop for
moe moe
warmup cosine
n_head n_head
WARMUP new.warmup
remat rematerialization,
FSDP tensor,
empty W0308
END
expect 0 "$VWN" doc --search 'gradient clipping'
has out '`clip = 1.0` in `train`'
expect 0 "$VWN" doc --search 'expansion rate'
has out '`n` of `hyper`'
# words of a phrase stand each somewhere, joined or apart
while IFS='|' read -r topic said; do
    expect 0 "$VWN" doc --search "$topic"
    has out "$said"
done << 'END'
early stopping|not here: a run ends at
gradient checkpointing|`recompute = [ffn, attention]`
label smoothing|`smoothing = 0.1`
batch size|`batch = 8 seqs`
sliding window|`window = 256`
learning rate decay|cosine(peak
flash attention|no matrix of scores
flashattention|no matrix of scores
kv_cache|keeps keys and values
torch.compile|every model is compiled
top_p|--top-p 0.95
DDP|`vwn launch -n 4 train FILE`
distributed|`vwn launch -n 4 train FILE`
fsdp|each process holds all weights
huggingface|reads safetensors of others
scaling law|a sweep over sizes
nan|exit status 4
weights and biases|export-log
inference|`vwn sample RUN`
mixture of experts|`moe` in the place of `ffn`
lora|examples/34_lora.vwn
END
expect 2 "$VWN" doc --search 'zebra crossing batch'
expect 2 "$VWN" doc --search ' '
expect 2 "$VWN" doc --search zebra
has err 'nothing is about `zebra`'
expect 2 "$VWN" doc --search ''
expect 2 "$VWN" doc --search loop for
has err 'has no use for `for`'
expect 0 "$VWN" doc --search loop --json
json out
expect 2 "$VWN" doc atention
has err 'did you mean `attention`?'
expect 0 "$VWN" doctor
filled out
for verb in explain doc doctor; do
    expect 0 "$VWN" $verb --json
    json out
done

# what other programs have a flag for stands in the file, or has another name
printf 'edition = 1\n' > model.vwn
told() { # SENTENCE WORD...
    sentence=$1
    shift
    expect 2 "$VWN" "$@"
    has err "$sentence"
}
told "\`--set train.length='3 epochs'\`" train model.vwn --epochs 3
told "\`--set train.length='600 steps'\`" train model.vwn --max-steps=600
told "\`--set train.batch='8 seqs'\`" sweep model.vwn --batch_size 3
told 'compute = fp16' train model.vwn --fp16
told 'did you mean `--tokens`?' sample run --max_new_tokens 30
told 'did you mean `-n`?' sample run --num-return-sequences 3
mkdir folder
told '`folder` is a folder and holds no run: name a file' train folder
told 'is the name of a file' export-log folder --tensorboard -o log.csv
i=0
while [ $i -lt 9 ]; do
    echo 'In the beginning God created the heaven and the earth.'
    i=$((i + 1))
done > verse.txt
expect 1 "$VWN" train verse.txt
has err 'verse.txt is a text and no .vwn file'
lacks err 'E0001'
expect 1 "$VWN" train model.vw
has err 'did you mean `model.vwn`?'
cp "$VWN_SOURCE/examples/01_nano.vwn" nano.vwn
told '`nano.vwn` is a file and no run: `vwn train nano.vwn` trains it into runs/nano, which `vwn watch nano` follows' watch nano.vwn
mkdir -p runs/tiny && echo '{"v":1,"event":"sta' > runs/tiny/events.jsonl
expect 0 "$VWN" runs
lacks out nan
expect 124 timeout 1 "$VWN" watch tinny
has err 'there is no run runs/tinny yet; did you mean `runs/tiny`?'
sweeps() { # SENTENCE VARY [WORD]
    said=$1
    shift
    expect "$status" "$VWN" sweep nano.vwn --list --vary "$@"
    has err "$said"
}
status=1
sweeps "\`--vary 'D=range(16, 64, 4)'\`" D=16:64:16
sweeps 'between(0.0001, 0.01, scale = log)' train.optimizer.lr.peak=1e-4..1e-2
sweeps 'seeds are a list: `--seeds 1,2,3`' D=16,32 --seeds 1..3
status=2
sweeps 'did you mean `--vary D=16,32`?' D=16 32
while IFS='|' read -r typed said; do
    expect 1 "$VWN" check nano.vwn --set "$typed"
    has err "$said"
done << 'END'
train.data=foo.txt|`--set 'train.data.path="foo.txt"'`
train.data.path=../foo.txt|`--set 'train.data.path="../foo.txt"'`
batch=4|`--set 'train.batch=4 seqs'`
length=10|`--set 'train.length=10 steps'`
layer.1.ffn.hidden=64|`--set 'layer[1].ffn.hidden=64'`
train/seed=2|`--set 'train.seed=2'`
transformer.h.0.ffn.hidden=64|`--set 'layer[1].ffn.hidden=64'`
layer.*.ffn.hidden=64|`--set 'layer[*].ffn.hidden=64'`
layer[1:2].ffn.hidden=64|one layer is `layer[2]`, and all are `layer[*]`
train.seed=1,2|`vwn sweep FILE --vary train.seed=1,2`
train.seed: 2|write `--set 'train.seed=2'`
END
expect 2 "$VWN" sweep widths
has err '`vwn sweep FILE widths`'
expect 2 "$VWN" doc adamw.lr
has err 'did you mean `lr`?'
expect 2 "$VWN" train nano.vwn ++D=16
has err 'did you mean `--set D=16`?'
# a sentence about each point of a sweep is said once
expect 1 "$VWN" sweep nano.vwn --vary 'D=range(16, 65, 16)' --list
[ "$(grep -c 'wrong: .* is not a whole number' err)" -ge 12 ] && [ "$(grep -c '^error.E0302' err)" -le 2 ] || fail "$(grep -c '^error.E0302' err) errors of one kind"
expect 1 "$VWN" grow model.vwn --plan
has err 'model.vwn has no growth step'
finish
