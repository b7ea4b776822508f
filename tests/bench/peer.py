"""peer.py - gpt.vwn and vwn23.vwn written by hand in PyTorch, to be measured beside vwn.

In:  time: a model, a precision, how many steps.  loss: a checkpoint of vwn and a text.
Out: one JSON object on stdout: step times and peak memory, or the loss on the windows of text that
     `vwn eval` takes, which shows that both compute the same model.

The one idea: no straw man. The model is written for speed as PyTorch 1.13 allows (one product for q, k
and v, one for gate and up, one for all dynamic coefficients; foreach AdamW), and the process starts
itself again with the libraries and the allocator that suit it best: OpenBLAS on the same OpenMP as
torch, one malloc arena that is never trimmed, huge pages. Nothing of vwn needs this file.
"""
import argparse
import glob
import json
import math
import os
import resource
import struct
import sys
import time

D, HEADS, T, VOCAB, HIDDEN, EPS = 256, 8, 256, 256, 704, 1e-6
M, N = 2, 3
HEAD = D // HEADS


def restart(threads):
    """Once more with another environment: the loader and malloc read it at the start only."""
    if os.environ.get("PEER_READY") == str(threads):
        return
    env = dict(os.environ, PEER_READY=str(threads), OMP_NUM_THREADS=str(threads))
    blas = glob.glob("/usr/lib/*/openblas-openmp")
    if blas:
        env["LD_LIBRARY_PATH"] = ":".join(blas + [env.get("LD_LIBRARY_PATH", "")]).rstrip(":")
    env["MALLOC_ARENA_MAX"] = "1"
    env["MALLOC_TRIM_THRESHOLD_"] = env["MALLOC_MMAP_THRESHOLD_"] = str(1 << 40)
    env["MALLOC_TOP_PAD_"] = str(64 << 20)
    env["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    os.execve(sys.executable, [sys.executable] + sys.argv, env)


def build(kind, layers):
    """The model, and for each of its weights the names of vwn's that it is made of."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Norm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.g = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * self.g

    def linear(inputs, outputs):
        return nn.Linear(inputs, outputs, bias=False)

    frequency = 10000.0 ** (-torch.arange(0, HEAD, 2, dtype=torch.float64) / HEAD)
    angle = torch.arange(T, dtype=torch.float64)[:, None] * frequency
    cos = torch.cat([angle.cos()] * 2, -1).float()
    sin = torch.cat([-angle.sin(), angle.sin()], -1).float()
    mask = torch.full((T, T), -math.inf).triu(1)

    def rotate(x):
        return x * cos + x.roll(HEAD // 2, -1) * sin

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = linear(D, 3 * D), linear(D, D)

        def forward(self, x):
            batch = x.shape[0]
            q, k, v = self.qkv(x).view(batch, T, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
            q, k = (rotate(z).reshape(batch * HEADS, T, HEAD) for z in (q, k))
            p = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=HEAD ** -0.5).softmax(-1)
            y = torch.bmm(p, v.reshape(batch * HEADS, T, HEAD))
            return self.out(y.view(batch, HEADS, T, HEAD).transpose(1, 2).reshape(batch, T, D))

        names = {"qkv.weight": ("q_proj.W", "k_proj.W", "v_proj.W"), "out.weight": ("o_proj.W",)}

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.down = linear(D, 2 * HIDDEN), linear(HIDDEN, D)

        def forward(self, x):
            gate, up = self.wide(x).split(HIDDEN, -1)
            return self.down(F.silu(gate) * up)

        names = {"wide.weight": ("gate.W", "up.W"), "down.weight": ("down.W",)}

    class Residual(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.norm, self.inner = Norm(D), inner

        def forward(self, x):
            return x + self.inner(self.norm(x))

        names = {"norm.g": ("pre_norm.g",)}

    class Connection(nn.Module):
        """Reads m segments out of n, carries n over, writes m back: static matrices plus dynamic ones."""

        def __init__(self, inner):
            super().__init__()
            width = D // M
            self.norm, self.inner, self.state_norm = Norm(D), inner, Norm(width)
            self.A = nn.Parameter(torch.cat([torch.eye(N, M), torch.eye(N)], 1))
            self.B = nn.Parameter(torch.eye(M).repeat(1, 2)[:, :N].contiguous())
            self.S_A, self.S_B = nn.Parameter(torch.ones(N, M + N)), nn.Parameter(torch.ones(M, N))
            self.dynamic = linear(width, M + N + M)
            nn.init.zeros_(self.dynamic.weight)
            self.tau = math.sqrt(width)

        def forward(self, state):  # (B, T, n, width)
            u = torch.tanh(self.dynamic(self.state_norm(state)) / self.tau)
            a = self.A + self.S_A * u[..., :M + N]
            b = self.B + self.S_B * u[..., M + N:].transpose(-1, -2)
            mixed = a.transpose(-1, -2) @ state
            x = mixed[..., :M, :].reshape(*state.shape[:2], D)
            y = self.inner(self.norm(x)).view(*state.shape[:2], M, D // M)
            return mixed[..., M:, :] + b.transpose(-1, -2) @ y

        names = {"norm.g": ("pre_norm.g",), "state_norm.g": ("connection.norm.g",),
                 "A": ("connection.A_in", "connection.A_carry"), "B": ("connection.B",),
                 "S_A": ("connection.S_ai", "connection.S_ac"), "S_B": ("connection.S_b",),
                 "dynamic.weight": ("connection.W_ai", "connection.W_ac", "connection.W_b")}

    wide = kind == "vwn23"
    sublayer = Connection if wide else Residual

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            width = D * N // M if wide else D
            self.embed = nn.Embedding(VOCAB, width)
            self.sublayers = nn.ModuleList(
                sublayer(inner()) for _ in range(layers) for inner in (Attention, FeedForward))
            if wide:
                self.reduce = linear(width, D)
            self.norm, self.head = Norm(D), linear(D, VOCAB)
            for p in self.parameters():
                if p.dim() == 2 and min(p.shape) > M + N + M:
                    nn.init.normal_(p, std=0.02)

        def forward(self, tokens):
            x = self.embed(tokens)
            if wide:
                x = x.view(*tokens.shape, N, D // M)
            for sub in self.sublayers:
                x = sub(x)
            if wide:
                x = self.reduce(x.reshape(*tokens.shape, -1))
            return self.head(self.norm(x))

    names = {"embed.weight": ("embed.tokens.W",), "norm.g": ("head.lm.norm.g",),
             "head.weight": ("head.lm.W",),
             "reduce.weight": ("head.lm.connection.close.reduce.W",)}
    for i in range(2 * layers):
        path = f"layer[{i // 2 + 1}].{'ffn' if i % 2 else 'attention'}."
        inner = FeedForward if i % 2 else Attention
        for key, parts in sublayer.names.items():
            names[f"sublayers.{i}.{key}"] = tuple(path + p for p in parts)
        for key, parts in inner.names.items():
            names[f"sublayers.{i}.inner.{key}"] = tuple(path + p for p in parts)
    return Model(), names


def read_safetensors(path):
    import torch
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header, data = json.loads(f.read(size)), f.read()
    out = {}
    for name, x in header.items():
        if name != "__metadata__" and x["dtype"] == "F32":
            lo, hi = x["data_offsets"]
            out[name] = torch.frombuffer(bytearray(data[lo:hi]), dtype=torch.float32)
            out[name] = out[name].view(x["shape"])
    return out


def load(model, names, path):
    """Every weight of the model from the checkpoint; every weight of the checkpoint is used."""
    import torch
    stored = read_safetensors(path)
    taken = set()
    for key, p in model.named_parameters():
        parts = names[key]
        taken.update(parts)
        value = torch.cat([stored[n] for n in parts], -1)
        if key.endswith(".weight") and key != "embed.weight":
            value = value.t()
        with torch.no_grad():
            p.copy_(value)
    left = {n for n in stored if ":" not in n} - taken  # "W:m" is the optimizer's
    if left:
        sys.exit(f"peer.py: the checkpoint has weights that this model lacks: {sorted(left)[:5]}")


def windows(path, val, n):
    """Window i of n: those of `vwn eval`, spread over the last `val` of the text."""
    import torch
    with open(path, "rb") as f:
        text = f.read()
    keep = len(text) - int(len(text) * val)
    held = text[keep:]
    there = len(held) // T
    rows = []
    for i in range(n):
        first = (i * (there // n) + i * (there % n) // n) * T
        rows.append(list(held[first:first + T + 1]))
    return torch.tensor(rows)


def measure_loss(args):
    import torch
    from torch.nn import functional as F
    model, names = build(args.model, args.layers)
    load(model, names, args.checkpoint)
    total = 0.0
    with torch.no_grad():
        for rows in windows(args.text, args.val, args.windows).split(args.batch):
            logits = model(rows[:, :-1])
            total += F.cross_entropy(logits.reshape(-1, VOCAB), rows[:, 1:].reshape(-1),
                                     reduction="sum").item() / T
    return {"weights": sum(p.numel() for p in model.parameters()), "loss": total / args.windows}


def measure_time(args):
    import torch
    from torch.nn import functional as F
    torch.manual_seed(1)
    model, _ = build(args.model, args.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0.1, foreach=True)
    times = []
    for _ in range(args.warmup + args.steps):
        rows = torch.randint(VOCAB, (args.batch, T + 1))
        began = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, VOCAB).float(), rows[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        times.append(1e3 * (time.perf_counter() - began))
    return {"weights": sum(p.numel() for p in model.parameters()),
            "torch": torch.__version__, "times_ms": times[args.warmup:],
            "resident_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}


def main():
    parser = argparse.ArgumentParser(description="PyTorch's side of the benchmark")
    parser.add_argument("what", choices=("time", "loss"))
    parser.add_argument("--model", choices=("gpt", "vwn23"), required=True)
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--checkpoint")
    parser.add_argument("--text")
    parser.add_argument("--val", type=float, default=0.02)
    parser.add_argument("--windows", type=int, default=16)
    args = parser.parse_args()
    restart(args.threads)
    import torch
    torch.set_num_threads(args.threads)
    print(json.dumps(measure_loss(args) if args.what == "loss" else measure_time(args)))


if __name__ == "__main__":
    main()
