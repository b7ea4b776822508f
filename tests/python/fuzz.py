"""fuzz.py SEED [SECONDS] - random calls in a random order with random arguments, on several threads.

In:  a small model; a seed.   Out: status 0: every call returned or raised what it may, and the interpreter is still there.
The one idea: a child makes the calls, so that a crash is a status; it writes each call before it makes it, so that one can be made
again.
"""
import gc
import os
import random
import subprocess
import sys
import threading
import time

import vwn
from common import OF_PYTHON, model

ALLOWED = (vwn.Error, TypeError, ValueError, KeyError, IndexError, BufferError, OverflowError, MemoryError)
try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


class Odd:
    """Numbers that are none."""

    def __index__(self):
        raise ValueError("odd")

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **how):
        return object()


class Calls:
    def __init__(self, seed, path, log):
        self.draw = random.Random(seed)
        self.path, self.log = path, log
        self.models, self.tensors, self.views, self.events = [], [], [], []
        self.made = self.refused = 0

    def pick(self, *items):
        return self.draw.choice(items)

    def numbers(self, depth=0):
        d = self.draw
        kind = d.randrange(14)
        if kind < 6:
            rows, columns = d.choice((1, 1, 2, 4)), d.choice((1, 3, 16, 16, 16, 17))
            most = d.choice((255, 255, 255, 256, 1 << 40))
            ids = [[d.randint(-1 if d.random() < 0.05 else 0, most) for _ in range(columns)] for _ in range(rows)]
            form = d.randrange(5)
            if form == 0 and numpy:
                a = numpy.array(ids)
                return d.choice((a, a.astype(d.choice(("int32", "uint8", "float32", "int16", ">i4", "bool"))), a.T, a[::2], a[:, ::-1]))
            if form == 1 and torch:
                a = torch.tensor(ids)
                return d.choice((a, a.int(), a.T, a.float(), a[:, ::2], a.expand(rows, columns)))
            return ids
        if kind < 9 and self.tensors:
            return d.choice(self.tensors)
        if kind < 10:
            shape = [d.choice((0, 1, 2, 4, 16, 32, 256)) for _ in range(d.randrange(4))]

            def fill(s):
                return [fill(s[1:]) for _ in range(s[0])] if s else d.choice((0.0, 1.0, -3e38, float("nan"), float("inf"), 1e-40))
            return fill(shape)
        return d.choice((None, 3, 2.5, "text", b"bytes", [], [[]], {}, object(), Odd(), [[True]], [["a"]], range(4), [[1 << 70]],
                         [[1], [1, 2]], memoryview(b"abcd"), float("nan"), [[None]], vwn.Tensor))

    def name(self):
        known = ["logits", "closed", "loss", "loss.next", "layer[1].ffn.state", "layer[2].attention.read", "head.lm.W", "embedded",
                 "embed.tokens.W", "layer[1].ffn.up.W", "layer[1].ffn", "%1", "%2", "%50", "%213"]
        return self.draw.choice(known if self.draw.random() < 0.85 else
                                ["", "nothing", "%", "%0", "%99999999999999999999", "\0", "é" * 300, None, 3, b"logits"])

    def names(self):
        d = self.draw
        return d.choice(([self.name() for _ in range(d.randrange(5))], "logits", None, 5))

    def open(self):
        d, kind = self.draw, self.draw.randrange(6)
        how = {"threads": d.choice((1, 2, 2, 2, 0, -1, "x", 5000))} if d.random() < 0.9 else {}
        if d.random() < 0.1:
            how["device"] = d.choice(("reference", "reference", "tpu", "cuda:99", "", 7))
        if kind < 2:
            return vwn.Run(d.choice(("./small", "./small", "./small@3", "nowhere", "", None, "common.py")), **how)
        run = d.choice((None, None, "driven", "small", ""))
        return vwn.Trainer(d.choice((self.path, self.path, self.path, "nothing", "model m {\n}\n")),
                           d.choice((None, None, {"train.batch": "2 seqs"}, {"D": 3}, {"x": object()}, ["a=b"], "x")), run=run,
                           overwrite=d.random() < 0.7 and run == "driven", resume=d.random() < 0.2, **how)

    def one(self):
        d = self.draw
        if not self.models or d.random() < 0.03:
            if len(self.models) > 5:
                self.models.pop(d.randrange(len(self.models)))
            self.models.append(self.open())
            return
        m = d.choice(self.models)
        what = d.choice(("logits", "tensors", "loss", "parameter", "put", "gradient", "backward", "update", "take", "batch", "forward", "save",
                         "encode", "decode", "view", "drop", "close", "collect", "set_gradient", "sample", "describe", "events", "logits",
                         "tensors", "backward", "take", "view"))
        # a model of 4 sequences and 16 positions, mostly
        ids = [[d.randrange(256) for _ in range(16)] for _ in range(4)] if d.random() < 0.6 else self.numbers()
        self.log(f"{what} {m!r} {str(ids)[:60]}")
        if what == "logits":
            self.tensors.append(m.logits(ids, **({"labels": self.numbers()} if d.random() < 0.2 else {})))
        elif what == "tensors":
            self.tensors += m.tensors(self.names(), ids, self.pick(None, ids, self.numbers())).values()
        elif what == "loss":
            m.loss(ids, self.pick(None, ids, self.numbers()))
        elif what == "parameter":
            self.tensors.append(m.parameters[self.name()])
        elif what == "put":
            name = self.name()
            m.set_parameter(name, m.parameters[name].tolist() if d.random() < 0.7 else self.numbers())
        elif what == "events" and d.random() < 0.05:
            if self.events and d.random() < 0.5:
                self.events.pop()
            elif self.events:
                next(self.events[0], None)
            else:
                self.events.append(vwn.train(self.path, run=f"events{id(self)}", overwrite=True, threads=1))
        elif what == "encode":
            m.encode(d.choice(("abc", "", "é", 3, "\ud800")))
        elif what == "decode":
            m.decode(self.pick([1, 2], [300], self.numbers()))
        elif what == "sample" and isinstance(m, vwn.Run) and d.random() < 0.1:
            m.sample(self.pick("a", "", 3), self.pick(2, 5, -1), temperature=self.pick(0, 1.0, float("nan"), -1.0))
        elif what == "describe":
            repr(m), repr(m.parameters), len(m.parameters), m.closed, m.nodes
        elif what == "close":
            if d.random() < 0.1:
                m.close()
        elif what == "collect":
            gc.collect()
        elif what == "drop":
            for some in (self.tensors, self.views):
                d.shuffle(some)
                del some[d.randrange(len(some) + 1):]
        elif what == "view" and self.tensors:
            t = d.choice(self.tensors)
            kind = d.randrange(6)
            if kind == 0:
                self.views.append(t.memory)
            elif kind == 1:
                self.views.append(t.__dlpack__())
            elif kind == 2 and numpy:
                self.views.append(t.numpy())
            elif kind == 3 and torch:
                self.views.append(t.torch())
            elif kind == 4:
                t[self.pick(0, (0, 0), (0, 0, 0), -1, 99, "a", None)]
            else:
                sum(t.memory.cast("B")[:64]), repr(t), len(t), float(t)
        elif isinstance(m, vwn.Trainer):
            if what == "gradient":
                m.gradient(*self.pick((), (ids, ids), (self.numbers(), self.numbers())))
            elif what == "backward":
                node = self.name()
                shape = [len(ids), len(ids[0])] + [m.nodes[node][-1]] if isinstance(ids, list) and m.nodes.get(node) else None
                g = self.numbers()
                if shape and d.random() < 0.8 and all(isinstance(x, int) for x in shape):
                    g = [[[d.gauss(0, 1) for _ in range(shape[2])] for _ in range(shape[1])] for _ in range(shape[0])]
                m.backward(self.pick({node: g}, {node: g}, {node: g}, {}, 3), ids, add=d.random() < 0.3)
            elif what == "update":
                m.update(*self.pick((), (1.0,), (float("inf"),), ("x",)))
            elif what == "take":
                m.take(*self.pick((), (ids, ids), (self.numbers(), ids)))
            elif what == "batch":
                self.tensors += m.batch()
            elif what == "forward":
                self.tensors += m.forward(ids, self.names()).values()
            elif what == "save":
                m.save()
            elif what == "set_gradient":
                name = self.name()
                m.set_gradient(name, m.gradients[name].tolist() if d.random() < 0.7 else self.numbers())

    def go(self, until, others):
        while time.monotonic() < until:
            if others and self.draw.random() < 0.05 and others[0].models:
                self.models[:1] = others[0].models[:1]  # a model of two threads
            self.made += 1
            try:
                self.one()
            except ALLOWED as e:
                if isinstance(e, vwn.BugError):
                    raise
                self.refused += 1


def child(seed, seconds):
    path = model()
    file = open(f"calls{seed}.log", "w")

    def log(text):
        file.write(f"{threading.get_ident() % 1000} {text}\n")
        file.flush()

    if not os.path.isdir("small"):
        for _ in vwn.train(path, run="small"):
            pass
    until = time.monotonic() + seconds
    first = Calls(seed, path, log)
    second = Calls(seed + 1000000, path, log)
    wrong = []

    def work():
        try:
            second.go(until, [first])
        except BaseException as e:
            wrong.append(e)
            raise

    thread = threading.Thread(target=work)
    thread.start()
    first.go(until, [])
    thread.join()
    if wrong:
        raise wrong[0]
    print(f"seed {seed}: {first.made + second.made} calls, {first.refused + second.refused} refused")
    assert first.made > first.refused


if len(sys.argv) > 3:
    child(int(sys.argv[1]), float(sys.argv[2]))
    sys.exit(0)
seed, seconds = int(sys.argv[1]), float(os.environ.get("VWN_FUZZ_SECONDS", 2))
each = min(seconds, 30)
for i in range(max(1, int(seconds / each))):
    out = subprocess.run([sys.executable, "-X", "faulthandler", __file__, str(seed + i), str(each), "child"], text=True,
                         capture_output=True, timeout=each + 300, env=OF_PYTHON)
    print(out.stdout, end="")
    if out.returncode or out.stderr:
        print(f"FAILED: seed {seed + i}: status {out.returncode}\n{out.stderr[-4000:]}")
        sys.exit(1)
