"""peer.py - the models of peer_model.py in PyTorch on a CPU, measured beside vwn.

In:  time: a model, a precision, how many steps.  loss: a checkpoint of vwn and a text.
Out: one JSON object on stdout: step times and peak memory, or the loss on the windows of text that
     `vwn eval` takes, which shows that both compute the same model.

The one idea: no straw man. The process starts itself again with the libraries and the allocator that suit it best: OpenBLAS on the same OpenMP as
torch, one malloc arena that is never trimmed, huge pages. Nothing of vwn needs this file.
"""
import argparse
import glob
import json
import os
import resource
import struct
import sys
import time

from peer_model import VOCAB, build, optimizer_of, step

T = 256


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
    model, names = build(torch, args.model, args.layers)
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
    torch.manual_seed(1)
    model, _ = build(torch, args.model, args.layers)
    optimizer = optimizer_of(torch, model, foreach=True)
    times = []
    for _ in range(args.warmup + args.steps):
        rows = torch.randint(VOCAB, (args.batch, T + 1))
        began = time.perf_counter()
        step(torch, model, model, optimizer, rows, args.precision).item()
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
