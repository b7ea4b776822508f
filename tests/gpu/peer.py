# peer.py - a training step of gpt.vwn or vwn23.vwn (tests/bench) in PyTorch on the GPU, to stand beside `vwn bench`.
#
# In:  model, width, layers, sequences, precision, and how: eager (attention written out), sdpa (PyTorch's own), compiled
#      (the same by torch.compile); tokens at random.     Out: one JSON object: the times of steps by events and their median.
#      Where PyTorch or a GPU is missing, {"skipped": why}.
# The one idea: no straw man: q, k and v are one product, gate and up another, AdamW is fused, nothing is read back in a step.
import argparse
import json
import math
import statistics
import sys
import time

HEADS, VOCAB, EPS, M, N = 8, 256, 1e-6, 2, 3


def build(torch, args):
    nn, F = torch.nn, torch.nn.functional
    D, T, head = args.width, args.context, args.width // HEADS

    class Norm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.g = nn.Parameter(torch.ones(width))

        def forward(self, x):
            x = x.float()
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * self.g

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
            turn = torch.arange(T)[:, None] * 10000.0 ** (-torch.arange(0, head, 2) / head)
            self.register_buffer("cos", torch.cat([turn.cos()] * 2, -1))
            self.register_buffer("sin", torch.cat([-turn.sin(), turn.sin()], -1))
            self.register_buffer("mask", torch.full((T, T), -math.inf).triu(1))

        def forward(self, x):
            batch = x.shape[0]
            q, k, v = self.qkv(x).view(batch, T, 3, HEADS, head).permute(2, 0, 3, 1, 4)
            q, k = ((z * self.cos + z.roll(head // 2, -1) * self.sin).to(v.dtype) for z in (q, k))
            if args.how == "eager":
                p = (q @ k.transpose(-1, -2) * head ** -0.5 + self.mask).softmax(-1)
                y = p.to(v.dtype) @ v
            else:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(batch, T, D))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.down = nn.Linear(D, 2 * args.hidden, bias=False), nn.Linear(args.hidden, D, bias=False)

        def forward(self, x):
            gate, up = self.wide(x).split(args.hidden, -1)
            return self.down(F.silu(gate) * up)

    class Residual(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.norm, self.inner = Norm(D), inner

        def forward(self, x):
            return x + self.inner(self.norm(x))

    class Connection(nn.Module):
        def __init__(self, inner):
            super().__init__()
            width = D // M
            self.norm, self.inner, self.state_norm = Norm(D), inner, Norm(width)
            self.A = nn.Parameter(torch.cat([torch.eye(N, M), torch.eye(N)], 1))
            self.B = nn.Parameter(torch.eye(M).repeat(1, 2)[:, :N].contiguous())
            self.S_A, self.S_B = nn.Parameter(torch.ones(N, M + N)), nn.Parameter(torch.ones(M, N))
            self.dynamic = nn.Linear(width, M + N + M, bias=False)

        def forward(self, state):
            u = torch.tanh(self.dynamic(self.state_norm(state)) / math.sqrt(D // M))
            a = self.A + self.S_A * u[..., :M + N]
            b = self.B + self.S_B * u[..., M + N:].transpose(-1, -2)
            mixed = a.transpose(-1, -2) @ state
            x = mixed[..., :M, :].reshape(*state.shape[:2], D)
            y = self.inner(self.norm(x)).view(*state.shape[:2], M, D // M)
            return mixed[..., M:, :] + b.transpose(-1, -2) @ y

    wide = args.model == "vwn23"

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCAB, D * N // M if wide else D)
            kind = Connection if wide else Residual
            self.sublayers = nn.ModuleList(kind(inner()) for _ in range(args.layers) for inner in (Attention, FeedForward))
            self.reduce = nn.Linear(D * N // M, D, bias=False) if wide else nn.Identity()
            self.norm, self.head = Norm(D), nn.Linear(D, VOCAB, bias=False)

        def forward(self, tokens):
            x = self.embed(tokens)
            if wide:
                x = x.view(*tokens.shape, N, D // M)
            for sub in self.sublayers:
                x = sub(x)
            return self.head(self.norm(self.reduce(x.reshape(*tokens.shape, -1))))

    return Model()


def measure(torch, args):
    torch.manual_seed(1)
    model = build(torch, args).to(args.device)
    cuda = args.device == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=cuda)
    forward = torch.compile(model) if args.how == "compiled" else model
    rows = torch.randint(VOCAB, (args.batch, args.context + 1), device=args.device)
    times, loss = [], None
    for _ in range(args.warmup + args.steps):
        if cuda:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
        clock = time.perf_counter()
        with torch.autocast(args.device, dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            logits = forward(rows[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB).float(), rows[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if cuda:
            end.record()
            torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) if cuda else 1e3 * (time.perf_counter() - clock))
    times = times[args.warmup:]
    return {"torch": torch.__version__, "weights": sum(p.numel() for p in model.parameters()), "loss": loss.item(),
            "median_ms": statistics.median(times), "best_ms": min(times), "times_ms": times}


def main():
    parser = argparse.ArgumentParser(description="PyTorch's side of the benchmarks on a GPU")
    parser.add_argument("--model", choices=("gpt", "vwn23"), default="gpt")
    parser.add_argument("--how", choices=("eager", "sdpa", "compiled"), default="eager")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    for name, value in (("width", 768), ("layers", 6), ("batch", 32), ("context", 256), ("hidden", 704), ("steps", 20),
                        ("warmup", 5)):
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    try:
        import torch
    except ImportError:
        print(json.dumps({"skipped": "there is no PyTorch"}))
        return 0
    if args.device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"skipped": "PyTorch sees no GPU"}))
        return 0
    torch.backends.cuda.matmul.allow_tf32 = False  # float32 products are float32 ones, as vwn's are
    print(json.dumps(measure(torch, args)))
    return 0


sys.exit(main())
