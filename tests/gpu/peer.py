# peer.py - training steps of gpt.vwn and vwn23.vwn in PyTorch (tests/bench/peer_model.py) on the GPU, to stand beside `vwn bench`.
#
# In:  width, layers, sequences, seconds (none is begun when so many are over); tokens at random.
# Out: an object a line, as soon as it is known: {"peer": NAME, times of steps by events, their median}. NAME is model, precision and how:
#      sdpa (PyTorch's own attention), eager (attention written out), compiled (torch.compile). Where PyTorch or a GPU is
#      missing, {"peer": "none", "skipped": why}. `--device cpu` measures by the host's clock: to try it out.
# The one idea: no straw man: AdamW is fused, the tokens are there, nothing is read back in a step.
import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
from peer_model import VOCAB, build, optimizer_of, step  # noqa: E402


class Clock:
    """Milliseconds between start() and stop(): a GPU's by events in its stream."""

    def __init__(self, torch, cuda):
        self.cuda = torch.cuda if cuda else None

    def start(self):
        if self.cuda:
            self.begin, self.end = (self.cuda.Event(enable_timing=True) for _ in range(2))
            self.begin.record()
        else:
            self.begin = time.perf_counter()

    def stop(self):
        if not self.cuda:
            return 1e3 * (time.perf_counter() - self.begin)
        self.end.record()
        self.cuda.synchronize()
        return self.begin.elapsed_time(self.end)


# What tells most comes first; what compiles for long comes last.
ORDER = [(model, precision, how) for precision, how in (("bf16", "sdpa"), ("bf16", "eager"), ("f32", "sdpa"), ("bf16", "compiled"),
                                                        ("f32", "compiled")) for model in ("gpt", "vwn23")]


def measure(torch, args, kind, precision, how):
    torch.manual_seed(1)
    model, _ = build(torch, kind, args.layers, args.width, args.context, args.hidden, "eager" if how == "eager" else "sdpa")
    model.to(args.device)
    optimizer = optimizer_of(torch, model, fused=True)
    forward = torch.compile(model) if how == "compiled" else model
    rows = torch.randint(VOCAB, (args.batch, args.context + 1), device=args.device)
    clock, times, losses = Clock(torch, args.device == "cuda"), [], []
    for _ in range(args.warmup + args.steps):
        clock.start()
        losses.append(step(torch, model, forward, optimizer, rows, precision).detach())
        times.append(clock.stop())
    times = times[args.warmup:]
    return {"torch": torch.__version__, "device": args.device, "weights": sum(p.numel() for p in model.parameters()),
            "first": losses[0].item(), "loss": losses[-1].item(),
            "median_ms": statistics.median(times), "best_ms": min(times), "times_ms": times}


def say(name, what):
    print(json.dumps({"peer": name, **what}), flush=True)


def main():
    parser = argparse.ArgumentParser(description="PyTorch's side of the benchmarks on a GPU")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    for name, value in (("width", 768), ("layers", 6), ("batch", 32), ("context", 256), ("hidden", 704), ("steps", 20),
                        ("warmup", 5), ("seconds", 150), ("most", len(ORDER))):
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    began = time.monotonic()
    try:
        import torch
    except ImportError:
        return say("none", {"skipped": "there is no PyTorch"})
    if args.device == "cuda" and not torch.cuda.is_available():
        return say("none", {"skipped": "PyTorch sees no GPU"})
    torch.backends.cuda.matmul.allow_tf32 = False  # float32 products are float32 ones, as vwn's are
    for kind, precision, how in ORDER[:args.most]:
        name = f"{kind}-{precision}-{how}"
        if time.monotonic() - began > args.seconds:
            say(name, {"skipped": "no time was left"})
            continue
        try:
            say(name, measure(torch, args, kind, precision, how))
        except Exception as error:  # one that fails hides no other
            say(name, {"skipped": str(error)[-300:]})


if __name__ == "__main__":
    main()
