# gpt.sh - examples/torch: both GPTs learn, five lines differ; and weights go from a run of vwn into a package and back.
# When: slow. It runs what is emitted, without vwn.
. "$VWN_SOURCE/tests/torch/lib.inc"
set -e
OMP_NUM_THREADS=1 # beside other tests PyTorch's threads wait for each other at every loop
export OMP_NUM_THREADS
here=$VWN_SOURCE/examples/torch
"$VWN" emit torch "$here/wide.vwn" --node '*' -o wide --build -q > /dev/null
[ "$(diff "$here/before.py" "$here/after.py" | grep -c '^> [^"]')" -eq 5 ] || { echo "FAILED: not five lines"; exit 1; }
for name in before after; do
    PYTHONPATH=$PWD/wide "$PY" "$here/$name.py" "$VWN_SOURCE/grammar/README.md" 20 > $name.txt
    tail -n 1 $name.txt | awk -v name=$name '{ print name ": " $0; exit !($2 == 20 && $4 < 3.6) }' || { echo "FAILED: $name"; exit 1; }
done
sed 's/^}$/&/; $ a\
train {\
  data = text_file("text.txt")\
  tokenizer = bytes()\
  batch = 2 seqs\
  length = 3 steps\
  seed = 1\
  precision = fp32\
  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 }\
  checkpoint { every = 3 steps, keep = 1 }\
}' "$here/wide.vwn" > run.vwn
cp "$VWN_SOURCE/grammar/README.md" text.txt
CC=$VWN_SOURCE/tests/cc_O0.sh "$VWN" train run.vwn --run run -q
cat > weights.py << 'END'
import sys

import torch
import wide
from torch import nn

checkpoint = "runs/run/ckpt/step_00000003.safetensors"
net = wide.Connections([nn.Identity()] * 6)
before = {n: p.clone() for n, p in net.named_parameters()}
wide.load(net, checkpoint)
moved = [n for n, p in net.named_parameters() if not torch.equal(p, before[n])]
assert len(moved) > 20, moved
wide.save(net, "back.safetensors")
other = wide.Connections([nn.Identity()] * 6)
wide.load(other, "back.safetensors")
for (n, a), b in zip(net.named_parameters(), other.parameters()):
    assert torch.equal(a, b), n
try:
    wide.load(nn.ModuleList([net]), "short.safetensors")
except ValueError as e:
    assert "has no `" in str(e), e
else:
    sys.exit("a file without the weights was taken")
END
printf '\002\000\000\000\000\000\000\000{}' > short.safetensors
PYTHONPATH=$PWD/wide "$PY" weights.py
# what it wrote is what the run has
"$VWN" diff runs/run/ckpt/step_00000003.safetensors back.safetensors > differ || true
if grep '^ *~.*connection' differ; then echo "FAILED: weights differ"; exit 1; fi
echo "0 failed"
