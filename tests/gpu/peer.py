# peer.py - a training step of gpt.vwn or vwn23.vwn in PyTorch (peer_model.py) on the GPU, to stand beside `vwn bench`.
#
# In:  model, width, layers, sequences, precision, and how: eager (attention written out), sdpa (PyTorch's own), compiled
#      (the same by torch.compile); tokens at random.     Out: one JSON object: the times of steps by events and their median.
#      Where PyTorch or a GPU is missing, {"skipped": why}. `--device cpu` measures by the host's clock: to try it out.
# The one idea: no straw man: AdamW is fused, the tokens are there, nothing is read back in a step.
import argparse
import json
import statistics
import sys
import time

from peer_model import VOCAB, build, optimizer_of, step


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


def measure(torch, args):
    torch.manual_seed(1)
    attention = "eager" if args.how == "eager" else "sdpa"
    model, _ = build(torch, args.model, args.layers, args.width, args.context, args.hidden, attention)
    model.to(args.device)
    optimizer = optimizer_of(torch, model, fused=True)
    forward = torch.compile(model) if args.how == "compiled" else model
    rows = torch.randint(VOCAB, (args.batch, args.context + 1), device=args.device)
    clock, times, losses = Clock(torch, args.device == "cuda"), [], []
    for _ in range(args.warmup + args.steps):
        clock.start()
        losses.append(step(torch, model, forward, optimizer, rows, args.precision).detach())
        times.append(clock.stop())
    times = times[args.warmup:]
    return {"torch": torch.__version__, "device": args.device, "weights": sum(p.numel() for p in model.parameters()),
            "first": losses[0].item(), "loss": losses[-1].item(),
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


if __name__ == "__main__":
    sys.exit(main())
