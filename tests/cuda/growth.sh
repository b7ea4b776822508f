# growth.sh - a run grows on a GPU: its losses are the CPU's before, at and behind the steps; what is stopped, killed or
# moved to the other device goes on; no growth step waits for a compiler.
# When: first, slow, whole. e2e.growth, train.growth_rows and the tests of fake_cuda go the same ways.
. "$VWN_SOURCE/tests/cuda/small.inc"

sed 's/hidden = 10/hidden = hidden/; s/heads = 2,/heads = heads, head_dim = 6,/; s/^let wide .*/&\nlet hidden = 10\nlet heads  = 2/
    s/precision = fp32/precision = fp32, average = ema(decay = 0.9)/
    s/  eval {/  checkpoint { every = 5 steps, keep = 9 }\n  eval {/' small.vwn > plain.vwn
cat plain.vwn - > small.vwn <<EOF
grow wider {
  when = step >= 6
  let hidden = 16
  fill { exit = zeros }
  old { lr_scale = 0.5, warmup = 4 steps }
  new { lr_scale = 2 }
}
grow deeper {
  when = plateau(train.loss, window = 4 steps, less_than = 50%)
  let heads = 3
  let widths = [D, D, D]
  fill { exit = zeros, layers = identity }
  old { lr_scale = 0 }
  train { length = 8 steps }
  check preserves(1e-6)
}
EOF

train cpu cpu
steps=$(sed -n 's/.*"event":"growth","step":\([0-9]*\).*/\1/p' cpu.json | tr '\n' ' ')
[ "$steps" = "6 14 " ] || fail "grown at steps $steps"
VWN_CACHE=$PWD/kernels train cuda gpu
[ "$(sed -n 's/.*"event":"growth","step":\([0-9]*\).*/\1/p' gpu.json | tr '\n' ' ')" = "$steps" ] || fail "a GPU grows elsewhere"
near cpu gpu 22 1e-5
[ "$(grep '"event":"compile"' gpu.json | grep -v '"step":0,' | grep -c ' 0 compiled')" -eq 2 ] || fail "a growth step compiles"
[ "$(grep '"event":"growth"' gpu.json | grep -Ec 'difference (0|-?[0-9.]+e-0[7-9])"')" -eq 2 ] || fail "the GPU measures another loss across a step"

# resumed before, at and behind a step: the same bytes; from the CPU to the GPU within it: the same losses
for at in 6 16; do
    draw 3 || continue
    train cuda stopped --until "$at steps"
    expect 0 "$VWN" train small.vwn --device cuda --run stopped --resume -q
    same_weights gpu stopped 22
done
train cpu moved --until '6 steps'
expect 0 "$VWN" train small.vwn --device cuda --run moved --resume --until '15 steps' --json
grep '"event":"step"' out >> moved.json
expect 0 "$VWN" train small.vwn --device cpu --run moved --resume --json
grep '"event":"step"' out >> moved.json
near cpu moved 22 1e-5

# killed when the step's first checkpoint is there
"$VWN" train small.vwn --device cuda --run killed -q > out 2> err &
pid=$!
while kill -0 $pid 2> /dev/null && [ ! -e runs/killed/ckpt/before_wider.safetensors ]; do sleep 0.01; done
kill -9 $pid 2> /dev/null
wait $pid 2> /dev/null
expect 0 "$VWN" train small.vwn --device cuda --run killed --resume -q
same_weights gpu killed 22
finish
