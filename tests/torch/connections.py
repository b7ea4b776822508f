"""Each connection against an independent implementation in float64, forward and all gradients; and two runs bit for bit."""

import sys

import torch
from oracle import cases, text
from package import check, distance, emitted, finish, randomised, short

# Of a norm: rounding of float32 in sums of some hundred terms.
CLOSE = 3e-6

torch.set_num_threads(2)
for name, (block, shape, read, write, E) in cases().items():
    if len(sys.argv) > 1 and name not in sys.argv[1:]:
        continue
    width = E if not name.startswith("ghc") else shape[1] * int(name.split("_")[1])
    package = emitted(name, text(block, width, E), "--node", "*")
    c = randomised(package.Connection(1))
    g = torch.Generator().manual_seed(1)
    for lead in ((2, 7), (33,), (3, 5, 61)):
        H = torch.randn(*lead, *shape, generator=g).requires_grad_()
        y = torch.randn(*lead, width, generator=g).requires_grad_()
        weights = [torch.randn(*lead, width, generator=g), torch.randn(*lead, *shape, generator=g)]
        names, values = zip(*short(c).items()) if short(c) else ((), ())
        H64, y64 = (x.detach().double().requires_grad_() for x in (H, y))
        p64 = {n: v.detach().double().requires_grad_() for n, v in zip(names, values)}
        runs = []
        for again in range(3):
            if again < 2:
                out = [c.read(H), c.write(H, y)]
            else:  # the same in one pass less
                x, gates = c.begin(H)
                out = [x, c.end(H, y, gates)]
            loss = sum((o * w).sum() for o, w in zip(out, weights))
            runs.append(out + list(torch.autograd.grad(loss, [H, y, *values], allow_unused=True)))
            torch.set_num_threads(1 + again % 2)
        torch.set_num_threads(2)
        out64 = [read(H64, p64), write(H64, y64, p64)]
        loss = sum((o * w).sum() for o, w in zip(out64, weights))
        right = out64 + list(torch.autograd.grad(loss, [H64, y64, *p64.values()], allow_unused=True))
        for what, a, b, again, begun in zip(("x", "state", "H", "y", *names), runs[0], right, runs[1], runs[2]):
            check(f"{name} {lead}: two runs have the same {what}", torch.equal(a, again))
            d = distance(begun, b)
            check(f"{name} {lead}: {what} by begin and end", d < CLOSE * (10 if b.numel() < 4 else 1), f"({d:.1e})")
            # gradients of a scalar may cancel
            d = distance(a, b)
            check(f"{name} {lead}: {what}", d < CLOSE * (10 if b.numel() < 4 else 1), f"({d:.1e})")
finish()
