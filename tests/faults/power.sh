# power.sh - the power is cut before each operation of a run on its files: what was announced as a
# checkpoint is there and whole, and no other checkpoint is damaged. VWN_STRIDE=1: each (else every other).
. "$VWN_SOURCE/tests/faults/tiny.inc"
stride=${VWN_STRIDE:-2}
run() { faulty "$1" "$2" "$VWN" train tiny.vwn --run cut --json --set train.optimizer.lr=0.05; }
rm -rf runs/cut
expect 0 "$VWN" train tiny.vwn --run undisturbed --set train.optimizer.lr=0.05
run power 0
[ $got -eq 0 ] || fail "the shim alone: status $got"
operations=$(cat count)
[ "$operations" -gt 40 ] || fail "only $operations operations"
cuts=0
for kind in power names; do
    n=1
    while [ $n -le "$operations" ]; do
        rm -rf runs/cut
        run $kind $n
        [ $got -eq 99 ] || fail "status $got"
        announced=$(sed -n 's/.*"event":"checkpoint","step":\([0-9]*\).*/\1/p' out | tail -n 1)
        found=
        for path in runs/cut/ckpt/step_*; do
            [ -e "$path" ] || continue
            found=$(echo "$path" | sed 's/.*step_0*\([0-9]*\).*/\1/')
            "$VWN" eval "$path" --batches 1 > out 2> err || fail "$path is damaged"
            for file in origins.json resolved.vwn; do
                [ -s runs/cut/$file ] || fail "$path is there, $file is not"
            done
        done
        kept=runs/cut/ckpt/before_wider.safetensors
        if grep -q '"event":"growth"' out; then
            [ -e $kept ] || fail "the model before the growth step is gone"
        fi
        [ ! -e $kept ] || "$VWN" eval $kept --batches 1 > out2 2> err || fail "$kept is damaged"
        [ "${found:-0}" -ge "${announced:-0}" ] ||
            fail "step $announced was announced, of step ${found:-none} there is a checkpoint"
        if [ $((cuts % 8)) -eq 7 ] && [ -n "$found" ]; then # also in the middle of the growth step
            "$VWN" train tiny.vwn --run cut --resume -q --set train.optimizer.lr=0.05 > out 2> err || fail "cannot go on"
            cmp -s runs/undisturbed/ckpt/$last_step runs/cut/ckpt/$last_step || fail "goes on to other weights"
        fi
        cuts=$((cuts + 1))
        n=$((n + stride))
    done
done
echo "$cuts cuts at $operations operations"
finish
