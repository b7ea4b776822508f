# power.sh - the power is cut before each operation of a run on its files: what was announced as a
# checkpoint is there and whole, and no other checkpoint is damaged. VWN_STRIDE=1: each (else one of five).
# When: slow. The sanitizers report crashes themselves, stand in for malloc and need address space without end.
. "$VWN_SOURCE/tests/faults/tiny.inc"
stride=${VWN_STRIDE:-5}
run() { faulty "$1" "$2" "$VWN" train tiny.vwn --run cut --json --set train.optimizer.lr=0.05; }
rm -rf runs/cut
expect 0 "$VWN" train tiny.vwn --run undisturbed --set train.optimizer.lr=0.05
run power 0
[ $got -eq 0 ] || fail "the shim alone: status $got"
operations=$(head -n 1 count) several=$(tail -n +2 count)
[ -n "$several" ] || fail 'no two names are ever new at one time'
[ "$operations" -gt 40 ] || fail "only $operations operations"
cuts=0
small=$(wc -c < runs/undisturbed/ckpt/before_wider.safetensors) # bytes of a model that has not grown
[ "$(wc -c < runs/undisturbed/ckpt/$last_step)" -gt "$small" ] || fail 'the grown model is no larger'
# look: what the cut has left is whole
look() {
    [ $got -eq 99 ] || fail "status $got"
    announced=$(sed -n 's/.*"event":"checkpoint","step":\([0-9]*\).*/\1/p' out | tail -n 1)
    grown=$(grep -c '"event":"growth"' out)
    found=
    for path in runs/cut/ckpt/step_*; do
        [ -e "$path" ] || continue
        found=$(echo "$path" | sed 's/.*step_0*\([0-9]*\).*/\1/')
        "$VWN" eval "$path" --batches 1 > out 2> err || fail "$path is damaged"
        for file in origins.json resolved.vwn record.jsonl; do
            [ -s runs/cut/$file ] || fail "$path is there, $file is not"
        done
        [ "$(wc -c < "$path")" -le "$small" ] || [ -e $kept ] || fail "$path is the grown model, and the one before has no name"
    done
    [ "$grown" -eq 0 ] || [ -e $kept ] || fail "the model before the growth step is gone"
    [ ! -e $kept ] || "$VWN" eval $kept --batches 1 > out2 2> err || fail "$kept is damaged"
    [ "${found:-0}" -ge "${announced:-0}" ] ||
        fail "step $announced was announced, of step ${found:-none} there is a checkpoint"
    cuts=$((cuts + 1))
}
kept=runs/cut/ckpt/before_wider.safetensors
for kind in power names; do
    n=1
    while [ $n -le "$operations" ]; do
        rm -rf runs/cut
        run $kind $n
        look
        if [ $((cuts % 8)) -eq 0 ] && [ -n "$found" ]; then # also in the middle of the growth step
            "$VWN" train tiny.vwn --run cut --resume -q --set train.optimizer.lr=0.05 > out 2> err || fail "cannot go on"
            cmp -s runs/undisturbed/ckpt/$last_step runs/cut/ckpt/$last_step || fail "goes on to other weights"
        fi
        n=$((n + stride))
    done
done
# of several new names a disk may keep any
for n in $several; do
    some=1 names=2
    while [ $some -lt $(((1 << names) - 1)) ]; do
        rm -rf runs/cut
        run names "$n $some"
        names=$(head -n 1 count)
        look
        some=$((some + 1))
    done
done
echo "$cuts cuts at $operations operations; several names may be lost before $(echo $several | wc -w) of them"
finish
