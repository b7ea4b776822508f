"""Packages of `vwn emit torch` for the tests: written, built and imported."""

import importlib
import os
import subprocess
import sys

import torch


def emitted(name, text, *flags, build=True):
    """The package `name`, of a file with this text; in the current folder."""
    with open(f"{name}.vwn", "w") as f:
        f.write(text)
    command = [os.environ["VWN"], "emit", "torch", f"{name}.vwn", "-o", f"{name}.torch", "--name", name, "-q", *flags]
    subprocess.run(command + (["--build"] if build else []), check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, os.path.abspath(f"{name}.torch"))
    return importlib.import_module(name)


def randomised(module, seed=0):
    """At their initial values most weights are zero and hide what depends on them."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=g) / max(1, p.numel() / max(p.shape[-1:] or (1,))) ** 0.5)
    return module


def short(module):
    """Parameters by their names behind `connection.`."""
    return {name.split("connection.")[-1]: p for name, p in module.named_parameters()}


failures = []


def check(what, holds, note=""):
    if not holds:
        failures.append(what)
        print(f"FAILED: {what} {note}")


def distance(a, b):
    """Of a from b, by b's size."""
    a, b = a.detach().double(), b.detach().double()
    return ((a - b).norm() / (b.norm() + 1e-30)).item()


def refuses(what, kind, words, function):
    """It raises this kind of exception, and says these words."""
    try:
        function()
    except kind as e:
        for word in words:
            check(f"{what}: says {word!r}", word in str(e), f"({e})")
        return
    except BaseException as e:  # noqa: BLE001
        check(f"{what}: raises {kind.__name__}", False, f"({type(e).__name__}: {e})")
        return
    check(f"{what}: raises {kind.__name__}", False, "(nothing raised)")


def finish():
    print(f"{len(failures)} failed")
    sys.exit(1 if failures else 0)
