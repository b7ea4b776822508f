# inject.sh - every write, fsync, rename, link and allocation of a small run, which grows, and of `vwn emit c` fails once: the
# status is 5 with one sentence, or 0 where it does no harm, and the run can be resumed to the same bytes.
# VWN_CALLS: how many calls of a kind are tried at most (some 9 otherwise; 0: all).
# When: quick, slow. The sanitizers report crashes themselves, stand in for malloc and need address space without
#       end.
. "$VWN_SOURCE/tests/faults/tiny.inc"
most=${VWN_CALLS:-9}
tried=0 refused=0

# judge: the last command ended with 0, or with 5 and one sentence
judge() {
    tried=$((tried + 1))
    case $got in
    0) ;;
    5)
        refused=$((refused + 1))
        [ "$(grep -c '^error' err)" -eq 1 ] || fail "not one sentence"
        ;;
    *) fail "$last: status $got" ;;
    esac
}

for kind in write fsync rename link malloc; do
    rm -rf runs/faulty emitted
    faulty $kind 0 "$VWN" train tiny.vwn --run faulty
    [ $got -eq 0 ] || fail "the shim alone: status $got"
    calls=$(cat count)
    stride=1
    [ "$most" -eq 0 ] || stride=$((calls / most + 1))
    n=1
    while [ $n -le "$calls" ]; do
        rm -rf runs/faulty
        faulty $kind $n "$VWN" train tiny.vwn --run faulty
        judge
        if [ $got -eq 5 ]; then
            again=--overwrite
            [ ! -e runs/faulty/events.jsonl ] || again=--resume
            "$VWN" train tiny.vwn --run faulty $again > out 2> err || fail "$last, then $again: $?"
        fi
        lacks err 'damaged'
        # (where no temporary file can be written, it says so and computes in the reference evaluator)
        grep -q 'temporary files cannot be written' err || cmp -s runs/whole/ckpt/$last_step runs/faulty/ckpt/$last_step || fail "$last: other weights"
        [ -z "$(ls -A runs/faulty/ckpt | grep -v '^step\|^before_wider.safetensors$')" ] || fail "$last: $(ls -A runs/faulty/ckpt)"
        n=$((n + stride))
    done
    echo "train, $kind: $calls calls, every ${stride}th"
    faulty $kind 0 "$VWN" emit c still.vwn -o emitted --force
    calls=$(cat count)
    stride=1
    [ "$most" -eq 0 ] || stride=$((calls / most + 1))
    n=1
    while [ $n -le "$calls" ]; do
        rm -rf emitted
        faulty $kind $n "$VWN" emit c still.vwn -o emitted --force
        judge
        n=$((n + stride))
    done
    echo "emit, $kind: $calls calls, every ${stride}th"
done
echo "$tried calls failed, $refused of them ended with 5"
finish
