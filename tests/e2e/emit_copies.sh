# emit_copies.sh - in a folder of `vwn emit cuda` weights are rounded to two bytes when they have been read, then by the update: no
# part of a batch rounds one. What the update leaves is, bit by bit, what a program rounds that reads the new weights from a file.
# When: first, whole. e2e.emit and cuda.copies go the same ways.
. "$VWN_SOURCE/tests/support/lib.inc"
emulated="$VWN_SOURCE/tests/gpu/emulated"
[ "$(uname -m)" = x86_64 ] && command -v g++ cc make > /dev/null || exit 77

expect 0 "$VWN" new wide --from vwn
head -c 4000 wide/text.txt > text && mv text wide/text.txt
sed -i 's/let D = 96/let D = 64/; s/let L = 2/let L = 1/; s/context *= 64/context = 32/
    s/32 seqs/4 seqs\n  micro_batch = 2 seqs/; s/400 steps/3 steps/; s/heads = [0-9]*/heads = 2/
    s/every = 100 steps, batches = 4/every = 2 steps, batches = 1/' wide/model.vwn
expect 0 "$VWN" emit cuda wide/model.vwn -o plain
lacks plain/plan.c COPY
for type in bf16 fp16; do
    sed "s/precision = fp32/precision = mixed(compute = $type, master = fp32)/" wide/model.vwn > wide/$type.vwn
    expect 0 "$VWN" emit cuda wide/$type.vwn -o $type
    has $type/plan.c '{COPY, '
    for program in eval train accumulate; do
        has $type/plan.c "${program}_round(run);"
    done
    # the kernel that rounds them is launched by no part
    kernel=$(sed -n '/^static void accumulate_round(/,/^}/s/.*blocks(run, \(k_[0-9a-f]*\),.*/\1/p' $type/plan.c)
    [ "$(echo "$kernel" | wc -w)" -eq 1 ] || fail "$type: weights are rounded by '$kernel'"
    sed -n '/^static void accumulate_run(/,/^}/p' $type/plan.c > out
    filled out
    lacks out "$kernel"
    expect 0 make -C $type -f "$emulated/Makefile" SOURCE="$VWN_SOURCE"
    expect 0 $type/model train wide/text.txt --weights $type/weights.safetensors --out new.safetensors
    sed -n 's|^step 3/3 eval_loss ||p' out > theirs
    expect 0 $type/model eval wide/text.txt --weights new.safetensors
    sed -n 's/^loss  *//p' out > ours
    filled ours
    cmp -s theirs ours || fail "$type: a loss of $(cat theirs) in the run, of $(cat ours) from a file"
done
finish
