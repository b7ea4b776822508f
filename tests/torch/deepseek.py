"""DeepSeek-V4's manifold-constrained hyper-connections, as transformers has them, with random weights: forward and gradients."""

import sys

import torch
from oracle import text
from package import check, distance, emitted, finish, randomised, short

try:
    from transformers.models.deepseek_v4 import modeling_deepseek_v4 as theirs
    from transformers.models.deepseek_v4.configuration_deepseek_v4 import DeepseekV4Config
except ImportError as e:
    print(f"skipped: no transformers with DeepSeek-V4 ({e})")
    sys.exit(77)

N, D = 4, 64
config = DeepseekV4Config(hidden_size=D, hc_mult=N, hc_sinkhorn_iters=20)
block = (
    f"mhc(n = {N}, iterations = {config.hc_sinkhorn_iters}, start = softmax, eps = {config.hc_eps}, "
    f"norm = rms_norm(eps = {config.rms_norm_eps}, gain = false))"
)
package = emitted("deepseek", text(block, D, D), "--node", "*")
ours = randomised(package.Connection(0))
p = short(ours)
module = theirs.DeepseekV4HyperConnection(config)
with torch.no_grad():
    module.fn.copy_(p["W"].T)
    module.base.copy_(torch.cat([p["read"].flatten(), p["write"].flatten(), p["carry"].flatten()]))
    module.scale.copy_(torch.stack([p["s_r"], p["s_w"], p["s_c"]]))
H = torch.randn(3, 11, N, D, requires_grad=True)
y = torch.randn(3, 11, D, requires_grad=True)
g, gx = torch.randn(3, 11, N, D), torch.randn(3, 11, D)


def run(x, state):
    return torch.autograd.grad((x * gx).sum() + (state * g).sum(), [H, y] + parameters)


parameters = list(p.values())
x, gates = ours.begin(H)
state = ours.end(H, y, gates)
mine = run(x, state)
# as the layer of the model applies it, in the same words
post, comb, collapsed = module(H)
right = post.unsqueeze(-1) * y.unsqueeze(-2) + torch.matmul(comb.transpose(-1, -2), H)
parameters = [module.fn, module.base, module.scale]
other = run(collapsed, right)
check("x", distance(x, collapsed) < 2e-6, distance(x, collapsed))
check("state", distance(state, right) < 2e-6, distance(state, right))
grads = dict(zip(p, mine[2:]))
pairs = {
    "state": (mine[0], other[0]),
    "y": (mine[1], other[1]),
    "W": (grads["W"].T, other[2]),
    "base": (torch.cat([grads[n].flatten() for n in ("read", "write", "carry")]), other[3]),
    "scale": (torch.stack([grads[n] for n in ("s_r", "s_w", "s_c")]), other[4]),
}
for name, (a, b) in pairs.items():
    check(f"gradient of {name}", distance(a, b) < 5e-6, distance(a, b))
finish()
