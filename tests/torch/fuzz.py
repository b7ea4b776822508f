"""Random shapes, strides, types and kinds of tensors: right numbers or an exception, and under AddressSanitizer no access beyond what
a call was given. VWN_FUZZ_SECONDS: how long, else some seconds.
"""

import os
import random
import sys
import time

import fuzzed as package
import torch

SHAPE = (2, 8)
rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
c = package.Connection(1)
with torch.no_grad():
    for p in c.parameters():
        p.copy_(torch.randn(p.shape))
am, b, ar = (c._tensor(f"connection.{n}").detach().double() for n in ("A_m", "B", "A_r"))
FLOATS = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def tensor(shape, dtype):
    """One of this shape that lies somehow in memory."""
    how = rng.randrange(7)
    if how == 0 and len(shape) > 1:
        x = torch.randn(*shape[1:2], *shape[:1], *shape[2:]).transpose(0, 1)
    elif how == 1:
        x = torch.randn(*shape, 3)[..., rng.randrange(3)]
    elif how == 2:
        n = 1
        for k in shape:
            n *= k
        off = rng.randrange(1, 5)
        x = torch.randn(n + off)[off:].view(shape)
    elif how == 3 and shape:
        x = torch.randn(1, *shape[1:]).expand(shape) if shape[0] else torch.randn(shape)
    elif how == 4 and shape:
        x = torch.randn(*shape).flip(0)
    else:
        x = torch.randn(shape)
    return x.to(dtype)


def broken(shape):
    shape = list(shape)
    how = rng.randrange(4)
    if how == 0 and shape:
        shape[rng.randrange(len(shape))] += rng.choice([-1, 1, 7])
    elif how == 1:
        shape = shape[: rng.randrange(len(shape))]
    elif how == 2:
        shape = shape + [rng.randrange(3)]
    else:
        rng.shuffle(shape)
    return [max(0, k) for k in shape]


calls = refused = 0
until = time.time() + float(os.environ.get("VWN_FUZZ_SECONDS", "4"))
while time.time() < until:
    calls += 1
    torch.set_num_threads(rng.choice([1, 1, 2, 3]))
    lead = [rng.choice([0, 1, 2, 3, 5, 17, 40]) for _ in range(rng.randrange(4))]
    dtype = rng.choice(list(FLOATS))
    shapes = [lead + list(SHAPE), lead + [SHAPE[1]]]
    fine = True
    if rng.random() < 0.4:
        k = rng.randrange(2)
        shapes[k], before = broken(shapes[k]), shapes[k]
        fine = shapes[k] == before
    types = [dtype, dtype]
    if rng.random() < 0.1:
        types[rng.randrange(2)] = rng.choice([torch.float64, torch.int64, torch.complex64, torch.bool])
        fine = False
    H, y = (tensor(s, t) for s, t in zip(shapes, types))
    if fine:
        H, y = H.requires_grad_(), y.requires_grad_()
    try:
        state = c.write(H, y)
        x = c.read(H)
    except (ValueError, TypeError) as e:
        refused += 1
        if fine:
            sys.exit(f"FAILED: {shapes} {types} was refused: {e}")
        continue
    if not fine and not (tuple(H.shape[-2:]) == SHAPE and H.shape[:-1][:-1] == y.shape[:-1]):
        sys.exit(f"FAILED: {shapes} {types} was taken")
    if types[0] != types[1] or types[0] not in FLOATS:
        sys.exit(f"FAILED: {types} were taken")
    H64, y64 = H.detach().double(), y.detach().double()
    right = b.T @ y64.unsqueeze(-2) + ar.T @ H64
    if not torch.allclose(state.double(), right, rtol=FLOATS[dtype], atol=20 * FLOATS[dtype]):
        sys.exit(f"FAILED: {shapes} {dtype}: the state is wrong")
    if not torch.allclose(x.double(), (am.T @ H64).squeeze(-2), rtol=FLOATS[dtype], atol=20 * FLOATS[dtype]):
        sys.exit(f"FAILED: {shapes} {dtype}: x is wrong")
    if H.requires_grad:
        g = torch.randn(state.shape)
        gH, gy = torch.autograd.grad(state, [H, y], g.to(dtype))
        if gH.shape != H.shape or not torch.allclose(gy.double(), (b @ g.to(dtype).double()).squeeze(-2), rtol=FLOATS[dtype], atol=20 * FLOATS[dtype]):
            sys.exit(f"FAILED: {shapes} {dtype}: a gradient is wrong")
print(f"{calls} calls, {refused} refused, 0 failed")
