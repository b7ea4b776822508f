# streams.sh - closed pipes, full disks, missing streams.
. "$VWN_SOURCE/tests/e2e/lib.inc"
nano="$VWN_SOURCE/examples/01_nano.vwn"

last="a closed pipe"
("$VWN" ir "$nano" --stage tensor; echo $? > status) 2> err | head -n 1 > out
empty err
[ "$(cat status)" -eq 141 ] || [ "$(cat status)" -eq 0 ] || fail "status $(cat status)"

if [ -e /dev/full ]; then
    last="a full disk"
    "$VWN" params "$nano" > /dev/full 2> err
    [ $? -eq 5 ] || fail "writing to a full disk"
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
