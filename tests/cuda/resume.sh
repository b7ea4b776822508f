# resume.sh - a run goes on where it stopped, on the same device or another; what it has learned is
# measured, looked into and sampled alike.
# When: slow. The tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"
go_on() { # DEVICE RUN
    expect 0 "$VWN" train small.vwn --device "$1" --run "$2" --resume --json
    grep '"event":"step"' out >> "$2.json"
}

train cpu cpu
train cuda gpu
train cuda stopped --until '10 steps'
go_on cuda stopped
same_weights gpu stopped 20

# killed in a step behind its checkpoint
sed 's/eval { every/checkpoint { every = 5 steps }\n  &/' small.vwn > kept.vwn
expect 0 "$VWN" train kept.vwn --device cuda --run whole -q
"$VWN" train kept.vwn --device cuda --run killed -q > out 2> err &
pid=$!
while kill -0 $pid 2> /dev/null && [ ! -e runs/killed/ckpt/step_00000005.safetensors ]; do sleep 0.02; done
kill -9 $pid 2> /dev/null
wait $pid 2> /dev/null
expect 0 "$VWN" train kept.vwn --device cuda --run killed --resume -q
same_weights whole killed 20

# from the CPU to the GPU and back
train cpu moved --until '7 steps'
expect 0 "$VWN" train small.vwn --device cuda --run moved --resume --until '14 steps' --json
grep '"event":"step"' out >> moved.json
go_on cpu moved
near cpu moved 20 1e-5

expect 0 "$VWN" eval runs/cpu --device cpu
cp out measured
expect 0 "$VWN" eval runs/cpu --device cuda
cmp -s measured out || fail "another device measures: $(cat out) for $(cat measured)"
for device in cpu cuda; do # inside it looks alike, to three digits
    expect 0 "$VWN" inspect runs/cpu --device $device --tokens 64 --what connections
    cp out inside.$device
done
cmp -s inside.cpu inside.cuda || fail "another device sees: $(cat inside.cuda) for $(cat inside.cpu)"
for flags in '--seed 5' '--temperature 0' '--recompute --seed 2'; do
    # shellcheck disable=SC2086
    expect 0 "$VWN" sample runs/cpu --device cpu --tokens 30 --prompt abc $flags
    cp out sampled
    # shellcheck disable=SC2086
    expect 0 "$VWN" sample runs/cpu --device cuda --tokens 30 --prompt abc $flags
    cmp -s sampled out || fail "$flags: another text: $(cat out) for $(cat sampled)"
done
finish
