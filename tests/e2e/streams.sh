# streams.sh - closed pipes, full disks, missing streams.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"
nano="$VWN_SOURCE/examples/01_nano.vwn"

last="a closed pipe"
("$VWN" ir "$nano" --stage tensor; echo $? > status) 2> err | head -n 1 > out
empty err
[ "$(cat status)" -eq 130 ] || [ "$(cat status)" -eq 0 ] || fail "status $(cat status)"

# what takes long stops when nobody reads on
expect 0 "$VWN" new nano --from nano
last="training into a closed pipe"
("$VWN" train nano/model.vwn --set 'train.log.every=1 steps' --json 2> err; echo $? > status) | head -n 3 > out
[ "$(cat status)" -eq 130 ] || fail "status $(cat status)"
lacks err 'error'
ls runs/nano/ckpt/*.safetensors > /dev/null 2>&1 || fail "no checkpoint"
[ "$(wc -l < runs/nano/events.jsonl)" -lt 100 ] || fail "it went on training"
last="sampling into a closed pipe"
("$VWN" sample runs/nano --tokens 100000 2> err; echo $? > status) | head -c 20 > out
[ "$(cat status)" -eq 130 ] || fail "status $(cat status)"
empty err
last="checking into a closed pipe"
# shellcheck disable=SC2046 # nine operands
("$VWN" check $(for i in 1 2 3 4 5 6 7 8 9; do echo "$nano"; done) --json 2> err; echo $? > status) | true
[ "$(cat status)" -eq 130 ] || fail "status $(cat status)"

if [ -e /dev/full ]; then
    last="a full disk"
    "$VWN" params "$nano" > /dev/full 2> err
    [ $? -eq 5 ] || fail "writing to a full disk"
    has err 'cannot write'
    last="training onto a full disk"
    "$VWN" train nano/model.vwn --resume --json > /dev/full 2> err
    [ $? -eq 5 ] || fail "training onto a full disk"
    has err 'cannot write'
fi
last="no stdout"
"$VWN" params "$nano" >&- 2> err
"$VWN" params "$nano" > out 2>&- || fail "no stderr"
"$VWN" check - > out 2> err <&-
expect 0 "$VWN" doctor --threads 1
expect 0 env HOME=/nonexistent XDG_CACHE_HOME= "$VWN" doctor
expect 0 env TERM=dumb "$VWN" check "$nano"
expect 0 env LC_ALL=de_DE.UTF-8 "$VWN" params "$nano"
cp out german
expect 0 "$VWN" params "$nano"
cmp -s german out || fail "the locale changes numbers"
finish
