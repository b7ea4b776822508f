"""A whole model and blocks of it beside an implementation in plain PyTorch and beside vwn's own training: loss, gradients, steps of
AdamW, weights both ways; compilers; what is refused.
"""

import json
import os
import struct
import subprocess

import torch
import torch.nn.functional as F
from oracle import hyper, rms
from package import check, distance, emitted, finish, refuses

D, HEADS, KV, V, T = 24, 4, 2, 61, 12
_, _, read, write, _ = hyper(D, 2)
TEXT = f"""edition = 1
import "std/transformer"
import "std/connections"

block own(hidden: dim)(x: [.., D]) -> [.., D] {{
  param mix : [D, hidden] = scope.init
  let back = linear(out = D, bias = true)
  return back(tanh(x @ mix) * 0.5)
}}

model whole {{
  context    = {T}
  width      = {D}
  mask       = causal
  init       = normal(std = 0.3)
  out_init   = normal(std = 0.3)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = hyper(n = 2, dynamic = true)
  embed tokens {{ vocab = {V} }}
  for layer in 1..2 {{
    attention {{ heads = {HEADS}, kv_heads = {KV}, position = rope(base = 100) }}
    ffn       {{ hidden = 40, activation = silu, gated = true }}
  }}
  own {{ hidden = 10 }}
  head lm {{ norm = rms_norm(eps = 1e-6) }}
}}
"""


# ---- in plain PyTorch ----


def rotated(x):
    """x [B, T, heads, d]: pairs (i, i + d / 2)."""
    d = x.shape[-1]
    angle = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * 100.0 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    c, s = torch.cos(angle)[:, None], torch.sin(angle)[:, None]
    a, b = x.split(d // 2, -1)
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def attention(x, p):
    x = rms(x) * p["pre_norm.g"]
    q, k, v = (x @ p[f"{n}_proj.W"] for n in "qkv")
    q, k, v = (y.unflatten(-1, (n, -1)) for y, n in ((q, HEADS), (k, KV), (v, KV)))
    q, k, v = (y.transpose(1, 2) for y in (rotated(q), rotated(k), v))
    y = F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), is_causal=True)
    return y.transpose(1, 2).flatten(2) @ p["o_proj.W"]


def ffn(x, p):
    x = rms(x) * p["pre_norm.g"]
    return (F.silu(x @ p["gate.W"]) * (x @ p["up.W"])) @ p["down.W"]


def own(x, p):
    x = rms(x) * p["pre_norm.g"]
    return torch.tanh(x @ p["mix"]) * 0.5 @ p["back.W"] + p["back.b"]


SUBLAYERS = [(f"layer[{i}].{f.__name__}", f) for i in (1, 2) for f in (attention, ffn)] + [("own", own)]


def below(p, path):
    return {name[len(path) + 1 :]: x for name, x in p.items() if name.startswith(path + ".")}


def logits_of(p, tokens):
    H = p["embed.tokens.W"][tokens].unsqueeze(-2).expand(-1, -1, 2, -1)
    for path, f in SUBLAYERS:
        c = below(p, path + ".connection")
        H = write(H, f(read(H, c), below(p, path)), c)
    return rms(H.sum(-2)) * p["head.lm.norm.g"] @ p["head.lm.W"]


def loss_of(p, tokens, labels):
    return F.cross_entropy(logits_of(p, tokens).flatten(0, 1), labels.flatten(), ignore_index=-1)


# ---- the model ----
whole = emitted("whole", TEXT)
torch.manual_seed(0)
model = whole.Model()
with torch.no_grad(): # weights of the connections begin at zero, and hide what depends on them
    for name, p in model.named_parameters():
        if ".connection." in name or name.endswith("back.b"):
            p.add_(0.2 * torch.randn(p.shape))
g = torch.Generator().manual_seed(1)


def near(what, a, b, close):
    d = distance(a, b)
    check(what, d <= close, f"({d:.1e})")


def near_gradients(what, names, found, wanted, close):
    """Some are zero but for rounding: a norm takes out what they would change. They are compared by the size of all of them."""
    wanted = [torch.zeros_like(a) if b is None else b for a, b in zip(found, wanted)]
    size = torch.stack([b.norm() for b in wanted]).norm()
    for n, a, b in zip(names, found, wanted):
        d = ((a.double() - b).norm() / (b.norm() + 0.01 * size)).item()
        check(f"{what} by {n}", d <= close, f"({d:.1e})")


for B, length in ((3, T), (1, 1), (5, 7)):
    tokens, labels = (torch.randint(V, (B, length), generator=g) for _ in range(2))
    labels[0, length // 2 :] = -1 if B > 1 else labels[0, length // 2 :]
    p64 = {n: p.detach().double().requires_grad_() for n, p in model.named_parameters()}
    near(f"logits {B} {length}", model(tokens), logits_of(p64, tokens), 2e-6)
    loss, right = model(tokens, labels), loss_of(p64, tokens, labels)
    near(f"the loss {B} {length}", loss, right, 1e-6)
    names, parameters = zip(*model.named_parameters())
    found = torch.autograd.grad(loss, parameters)
    again = torch.autograd.grad(model(tokens, labels), parameters)
    wanted = torch.autograd.grad(right, list(p64.values()), allow_unused=True)
    near_gradients(f"gradient of the loss {B} {length}", names, found, wanted, 1e-5)
    check("two runs have the same gradients", all(torch.equal(a, b) for a, b in zip(found, again)))
    factor = torch.randn(B, length, V, generator=g)
    found = torch.autograd.grad((model(tokens) * factor).sum(), parameters)
    wanted = torch.autograd.grad((logits_of(p64, tokens) * factor).sum(), list(p64.values()), allow_unused=True)
    near_gradients(f"gradient of logits {B} {length}", names, found, wanted, 1e-5)

tokens, labels = (torch.randint(V, (2, 5), generator=g) for _ in range(2))
for kind in (torch.bfloat16, torch.float16):
    half = whole.Model().to(kind)
    half.load_state_dict(model.state_dict())
    single = whole.Model()
    single.load_state_dict(half.state_dict())
    out = half(tokens, labels)
    out.backward()
    near(f"{kind}, the loss", out, single(tokens, labels), 1e-6)
    check(f"{kind}, gradients of its type", all(p.grad.dtype == kind and torch.isfinite(p.grad).all() for p in half.parameters()))
double = whole.Model().double()
double.load_state_dict(model.state_dict())
p64 = dict(double.named_parameters())
near("float64, the loss", double(tokens, labels), loss_of(p64, tokens, labels), 1e-14)
near("float64, logits", double(tokens=tokens), logits_of(p64, tokens), 1e-14)

found = torch.library.opcheck(whole._op._operators[1], (tokens, labels, [model._tensor(n).detach().requires_grad_() for n in model._uses["loss"][1]]))
check("opcheck of the loss", len(found) == 4 and set(found.values()) == {"SUCCESS"}, found)
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
loss = model(tokens, labels)
check("torch.compile, the whole graph", torch.equal(compiled(tokens, labels), loss))
near("torch.compile, a gradient", torch.autograd.grad(compiled(tokens, labels), model.get_parameter("own.mix"))[0],
     torch.autograd.grad(loss, model.get_parameter("own.mix"))[0], 0)

# ---- beside vwn's own training: steps on a text that has one window ----
STEPS = 3
text = bytes(torch.randint(V, (T + 1,), generator=g).tolist())
with open("ids.bin", "wb") as f:
    f.write(b"".join(struct.pack("<H", c) for c in text))
whole.save(model, "begin.safetensors")
with open("run.vwn", "w") as f:
    f.write(TEXT + f"""
train {{
  data       = token_files("ids.bin", dtype = u16)
  start_from = "begin.safetensors"
  batch      = 1 seqs
  length     = {STEPS} steps
  seed       = 1
  precision  = fp32
  optimizer adamw {{ lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }}
  checkpoint {{ every = 1 steps, keep = {STEPS} }}
}}
""")
ran = subprocess.run([os.environ["VWN"], "train", "run.vwn", "--run", "run", "--json"], stdout=subprocess.PIPE, text=True)
check("vwn trains from what save() wrote", ran.returncode == 0, ran.stdout)
logged = [e["loss"] for e in map(json.loads, ran.stdout.splitlines()) if e["event"] == "step"]
ids = torch.tensor(list(text))
tokens, labels = ids[None, :-1], ids[None, 1:]
plain = {n: p.detach().double().requires_grad_() for n, p in model.named_parameters()}
how = dict(lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
optimizers = [torch.optim.AdamW(list(q), **how) for q in (model.parameters(), plain.values())]
for step in range(1, STEPS + 1):
    losses = model(tokens, labels), loss_of(plain, tokens, labels)
    near(f"the loss of step {step}", *losses, 1e-5)
    check(f"the loss of step {step}, of vwn", abs(losses[0].item() - logged[step - 1]) < 1e-5 * losses[0].item(), logged)
    for loss, optimizer in zip(losses, optimizers):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    run = whole.Model()
    whole.load(run, f"runs/run/ckpt/step_{step:08d}.safetensors")
    for (n, a), b, c in zip(model.named_parameters(), run.parameters(), plain.values()):
        # what the first sublayer reads is normed, so these gradients are rounding alone, which AdamW makes as large as others
        close = 1e-2 if n.startswith("layer[1].attention.connection") else 2e-4
        near(f"{n} after {step} steps, of vwn", b, c, close)
        near(f"{n} after {step} steps, of the package", a, c, close)
last = whole.Model()
whole.load(last, "runs/run")
check("the last checkpoint of a run", all(torch.equal(a, b) for a, b in zip(last.parameters(), run.parameters())))

# ---- blocks ----
for name, first, f, inputs in (("layer[*].attention", "layer[1].attention", attention, 2), ("own", "own", own, 1)):
    package = emitted(f"block_{f.__name__}", TEXT, "--block", name)
    check(f"paths of {name}", package.paths() == [path for path, k in SUBLAYERS if k is f], package.paths())
    block = package.Block(0)
    p64 = {n: p.detach().double().requires_grad_() for n, p in block.named_parameters()}
    x = torch.randn(2, 7, D, generator=g).requires_grad_()
    x64 = x.detach().double().requires_grad_()
    y, right = block(x), f(x64, p64)
    near(name, y, right, 2e-6)
    factor = torch.randn(2, 7, D, generator=g)
    found = torch.autograd.grad((y * factor).sum(), [x, *block.parameters()])
    wanted = torch.autograd.grad((right * factor).sum(), [x64, *p64.values()])
    near_gradients(f"gradient of {name}", ("x", *p64), found, wanted, 1e-5)
    block = package.Block(first).double()
    check(f"gradcheck of {name} in float64", torch.autograd.gradcheck(block, (torch.randn(1, 3, D, dtype=torch.float64, generator=g).requires_grad_(),)))
package = emitted("block_inner", TEXT, "--block", "own.back")
inner = package.Block()
x = torch.randn(4, 10, generator=g)
near("a module within a block, any leading axes", inner(x[:, None, None]), (x @ inner.W + inner.b)[:, None, None], 1e-6)

# ---- what is refused ----
refuses("an id beyond the vocabulary", IndexError, ["`tokens`", f"0 to {V - 1}"], lambda: model(tokens + V))
refuses("a negative id", IndexError, ["`tokens`", f"0 to {V - 1}"], lambda: model(tokens - V))
refuses("more positions than the context", ValueError, [str(T + 1), str(T)], lambda: model(torch.zeros(1, T + 1, dtype=torch.int64)))
refuses("real tokens", TypeError, ["`tokens`", "float32"], lambda: model(tokens.float()))
refuses("an axis too few", ValueError, ["`tokens`", "[12]", "[B, T]"], lambda: model(tokens[0]))
refuses("labels of another shape", ValueError, ["`labels`", "[1, 3]", "T = 12"], lambda: model(tokens, labels[:, :3]))
refuses("too many tensors", TypeError, ["tokens, labels", "3"], lambda: model(tokens, labels, labels))
refuses("another name", TypeError, ["tokens", "targets"], lambda: model(tokens, targets=labels))
refuses("a part of another package", ValueError, ["none"], lambda: whole.Block(0))
refuses("all of a package of parts", ValueError, ["own"], lambda: package.Model())
finish()
