# emit.sh - a folder written by `vwn emit c` builds without warnings, and its losses are those of
# `vwn eval` and `vwn train` on the same weights and data: evaluation to 1e-5 of the loss, training
# (where rounding differences of products add up over steps) to 1e-4.
# When: first.
. "$VWN_SOURCE/tests/support/lib.inc"
command -v make > /dev/null || exit 77

cc=cc
command -v cc > /dev/null || exit 77

# near FILE FILE TOLERANCE: equal lists of numbers to a share of the first
near() {
    filled "$1"
    paste "$1" "$2" | awk -v share="$3" '
        { d = $1 - $2; if (d < 0) d = -d
          if (NF != 2 || !(d <= share * $1)) { print "number " NR " is " $1 " and " ($2 == "" ? "missing" : $2); exit } }' > unequal
    [ ! -s unequal ] || fail "$last: $(cat unequal), of $(wc -l < "$1") that the folder and vwn print"
}
results() { sed -n 's/^\(loss\|metric\)[a-z._]* *\([0-9.]*\)$/\2/p' "$1"; }
steps() { sed -n 's/^step.* loss \([0-9.]*\) .* grad_norm \([0-9.]*\)$/\1\n\2/p' "$1"; }
events() {
    sed -n 's/.*"event":"step".*"loss":\([0-9.]*\),.*"grad_norm":\([0-9.]*\),.*/\1\n\2/p' "$1"
}

expect 0 "$VWN" new nano
expect 0 "$VWN" new wide --from vwn
sed -i 's/model vwn/model wide/' wide/model.vwn
head -c 20000 nano/text.txt > small.txt
mkdir again
for kind in nano wide; do
    cp small.txt $kind/text.txt
    sed -i 's/let D = 96/let D = 32/; s/32 seqs/8 seqs/; s/100 steps/2 steps/' \
        $kind/model.vwn
done

# routed experts, dropout, characters, two parts to a step, an average of the weights
mkdir moe
cp small.txt moe/text.txt
sed -e 's/ffn  *{.*/moe { experts = 5, active = 2, hidden = 24, activation = silu, scores = softmax, normalize = true, balance = 0.01 }/' \
    -e 's/heads = 4,/heads = 2, dropout = 0.2,/' -e 's/model nano/model moe/' \
    -e 's/bytes()/chars()/' -e 's/causal/document/' -e 's/val = 5%/val = 5%, separator = "\\n"/' -e 's/vocab = 256/vocab = 32/' \
    -e 's/8 seqs/8 seqs\n  micro_batch = 4 seqs\n  average = ema(decay = 0.5)/' \
    -e 's/group vector { weight_decay = 0 }/group vector { weight_decay = 0 }\n    group router { weight_decay = 0 }/' \
    nano/model.vwn > moe/model.vwn

# the plainest and the richest; `wide` has the most kernels, and its texts are those that train
kinds='nano moe'
if whole; then kinds='nano wide moe'; fi
fast=${CC:-cc}
plain='-std=gnu17 -O0 -march=native -fopenmp-simd -Wno-unused'
for kind in $kinds; do
    expect 0 "$VWN" emit c $kind/model.vwn -o $kind.c
    for file in README.md Makefile plan.c plan.h kernels.c main.c weights.safetensors; do
        has out "$kind.c/$file"
        filled $kind.c/$file
    done
    # equal bytes from elsewhere, and over an older one
    expect 0 "$VWN" emit c "$PWD/$kind/model.vwn" -o "$PWD/again/$kind" -C /
    [ "$(cat again/$kind/* | grep -c "$PWD")" -eq 0 ] || fail "$kind: a path of this machine"
    expect 0 "$VWN" emit c $kind/model.vwn -o again/$kind -q
    diff -r $kind.c again/$kind > out || fail "$kind: the bytes differ"
    has $kind.c/plan.c ', std/transformer.vwn:'
    has $kind.c/plan.c 'to layer[1].attention.q_proj [B, T, 32]'
    # most of the time is the compiler's: one folder is built as users build it
    if [ $kind = nano ] || whole; then set --; else set -- CC="$fast"; fi
    expect 0 make -s -C $kind.c CFLAGS='-O2 -Wall -Wextra -Wpedantic -Werror' "$@"
    empty err

    expect 0 "$VWN" train $kind/model.vwn --until '2 steps' --set 'train.log.every=1 steps'
    expect 0 $kind.c/model eval small.txt --all --weights runs/$kind/ckpt/step_00000002.safetensors
    results out > ours
    has out 'after step 2'
    expect 0 "$VWN" eval runs/$kind --data small.txt
    results out > theirs
    near theirs ours 1e-5
    # the held-out part: the same tokens, the same losses
    expect 0 $kind.c/model eval small.txt --weights runs/$kind/ckpt/step_00000002.safetensors
    results out > ours
    sed -n 's/^on  *\([0-9]*\) tokens.*/\1/p' out >> ours
    expect 0 "$VWN" eval runs/$kind
    results out > theirs
    sed -n 's/^on  *\([0-9,]*\) tokens.*/\1/p' out | tr -d , >> theirs
    near theirs ours 1e-6

    # from the start, and from the checkpoint of step 2
    expect 0 "$VWN" train $kind/model.vwn --resume --until '4 steps' --set 'train.log.every=1 steps'
    events runs/$kind/events.jsonl > theirs
    expect 0 $kind.c/model train small.txt --steps 4 --weights $kind.c/weights.safetensors \
        --out $kind.safetensors --threads 2
    steps out > ours
    sed -n 's/.* eval_loss //p' out > ours.eval
    near theirs ours 1e-4
    sed -n 's/.*"event":"eval".*"eval_loss":\([0-9.]*\),.*/\1/p' runs/$kind/events.jsonl > theirs.eval
    near theirs.eval ours.eval 1e-4
    expect 0 $kind.c/model train small.txt --steps 4 --threads 1 \
        --weights runs/$kind/ckpt/step_00000002.safetensors
    steps out > ours
    sed 1,4d theirs > rest
    near rest ours 1e-4

    # what it wrote is read again; vwn's weights give the same losses
    expect 0 $kind.c/model eval small.txt --all --weights $kind.safetensors
    results out > ours
    expect 0 "$VWN" eval runs/$kind --data small.txt
    results out > theirs
    near theirs ours 1e-4
done

if whole && command -v clang > /dev/null; then
    expect 0 make -s -C nano.c clean
    expect 0 make -s -C nano.c CC=clang CFLAGS='-O2 -Wall -Wextra -Wpedantic -Werror'
    expect 0 nano.c/model eval small.txt --all --weights nano.safetensors
    results out > ours
    expect 0 "$VWN" eval runs/nano --data small.txt
    results out > theirs
    near theirs ours 1e-4
fi

# strict C17 for what is not a kernel; addresses and sizes are watched over
for file in main common compute file files json loop order progress safetensors threads tokens plan; do
    expect 0 $cc -std=c17 -Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only moe.c/$file.c
done
if echo 'int main(void) { return 0; }' | $cc -x c -fsanitize=address,undefined -o watched - 2> err; then
    expect 0 make -s -C moe.c clean
    expect 0 make -s -C moe.c KERNEL="$plain" CFLAGS='-O0 -g -fsanitize=address,undefined -fno-sanitize-recover'
    expect 0 moe.c/model train small.txt --steps 2 --threads 2 --weights moe.c/weights.safetensors
    empty err
fi
for blas in openblas cblas blas; do
    printf '#include <cblas.h>\nint main(void) { return cblas_isamax(0, 0, 1) > 0; }\n' > probe.c
    whole && $cc -o probe probe.c -l$blas > out 2> err || continue
    mv nano.c/kernels.o . # the only one without products
    expect 0 make -s -C nano.c clean
    mv kernels.o nano.c
    expect 0 make -s -C nano.c BLAS=$blas CFLAGS='-O2 -Wall -Wextra -Werror'
    expect 0 nano.c/model eval small.txt --all --weights nano.safetensors
    results out > ours
    expect 0 "$VWN" eval runs/nano --data small.txt
    results out > theirs
    near theirs ours 1e-4
    break
done

# without training: token ids, another number of sequences at a time
iconv -f ascii -t utf-16le small.txt > ids.bin
sed -e 's/text_file("text.txt", val = 5%)/token_files("ids.bin", dtype = u16)/' -e '/tokenizer/d' \
    -e '/eval  /d' nano/model.vwn > ids.vwn
expect 0 "$VWN" emit c ids.vwn -o ids --infer --batch '3 seqs' --json
json out
lacks ids/plan.c update
expect 0 make -s -C ids CC="$fast"
expect 0 ids/model eval ids.bin --all --weights nano.safetensors
results out > ours
expect 0 nano.c/model eval small.txt --all --weights nano.safetensors --batches 100
results out > theirs
near theirs ours 1e-5
expect 1 ids/model train ids.bin
has err 'without training'

# A step in parts of different numbers of targets is the step of the whole batch: token files of one window, whose last
# position has no target, between longer ones; heads of a chain lose different numbers of them.
mkdir parts
i=0
while [ $i -lt 24 ]; do
    head -c $((2000 + 18 * i)) small.txt | tail -c $((i % 3 ? 8 : 18)) | iconv -f ascii -t utf-16le > parts/$((10 + i)).bin
    i=$((i + 1))
done
sed -e 's/context *= [0-9]*/context = 8/' -e 's|text_file("text.txt", val = 5%)|token_files("parts/*.bin", dtype = u16, val = 40%)|' \
    -e '/tokenizer/d' \
    -e 's/^  head lm .*/&\n  for k in 2..3 { head mtp { predict = k, weight = 0.5, mix = linear(), norm = rms_norm(eps = 1e-6), layer { ffn { hidden = 32, activation = silu } } } }/' \
    nano/model.vwn > parts.vwn
expect 0 "$VWN" train parts.vwn --run whole --until '3 steps' --set 'train.log.every=1 steps' --set 'train.eval.every=1 steps' --set 'train.eval.batches=9'
events runs/whole/events.jsonl > theirs
evals() { sed -n 's/.*"event":"eval".*"eval_loss":\([0-9.]*\),.*/\1/p' "$1"; }
evals runs/whole/events.jsonl > theirs.eval
for micro in 1 2 4; do
    expect 0 "$VWN" train parts.vwn --run in-$micro --until '3 steps' --set 'train.log.every=1 steps' --set 'train.eval.every=1 steps' \
        --set 'train.eval.batches=9' --set "train.micro_batch=$micro seqs"
    events runs/in-$micro/events.jsonl > ours
    near theirs ours 2e-6
    evals runs/in-$micro/events.jsonl > ours
    near theirs.eval ours 2e-6
done
expect 0 "$VWN" emit c parts.vwn -o parts.c --batch '1 seqs' --set train.lanes=4 --set 'train.eval.every=1 steps' --set 'train.eval.batches=9'
expect 0 make -s -C parts.c CC="$fast"
expect 0 parts.c/model train parts/*.bin --steps 3 --weights parts.c/weights.safetensors
sed -n 's/^step.* loss \([0-9.]*\) lr .*/\1/p' out > ours
sed -n 's/.*"event":"step".*"loss":\([0-9.]*\),.*/\1/p' runs/whole/events.jsonl > theirs
sed -n 's/.* eval_loss //p' out > ours.eval
near theirs ours 2e-6
near theirs.eval ours.eval 2e-6

# what it refuses
expect 2 "$VWN" emit c nano/model.vwn
has err 'needs `-o DIR`'
expect 2 "$VWN" emit fortran nano/model.vwn -o fortran
has err 'writes c, cuda or torch, not `fortran`'
[ ! -e fortran ] || fail "a folder for nothing"
expect 2 "$VWN" emit c nano/model.vwn -o wide
has err 'has not written'
has err '--force'
# a link there, or another name of a file, is replaced, and what it leads to is left alone
echo mine > mine.txt
cp mine.txt mine.too
ln -sf "$PWD/mine.txt" wide/plan.c
ln -f mine.too wide/README.md
expect 0 "$VWN" emit c nano/model.vwn -o wide --force
[ "$(cat mine.txt mine.too)" = "$(printf 'mine\nmine')" ] || fail "a file behind a link was written over"
[ ! -L wide/plan.c ] && grep -q . wide/plan.c || fail "the link was not replaced"
expect 2 "$VWN" emit c nano/model.vwn -o small.txt
has err 'is not a folder'
expect 5 "$VWN" emit c nano/model.vwn -o no/such/folder
expect 2 "$VWN" emit c nano/model.vwn -o other --train --infer
expect 2 "$VWN" emit c nano/model.vwn -o other --batch '3 seqs'
has err 'do not divide'
sed '/^train {/,/^}/d' nano/model.vwn > plain.vwn
expect 1 "$VWN" emit c plain.vwn -o other --train
has err 'has no `train`'
expect 0 "$VWN" emit c plain.vwn -o plain
expect 1 "$VWN" emit c "$VWN_SOURCE/examples/13_vit_hyper.vwn" -o other --infer
has err 'image'
[ ! -e other ] || fail "a folder for nothing"
expect 1 "$VWN" emit c no-such-file.vwn -o other

# weights that are none
expect 1 nano.c/model eval small.txt --weights small.txt
has err 'not a safetensors file'
head -c 3000 nano.safetensors > cut.safetensors
expect 1 nano.c/model eval small.txt --weights cut.safetensors
expect 1 nano.c/model eval small.txt --weights moe.safetensors
expect 1 nano.c/model eval no-such-text
expect 2 nano.c/model eval
finish
