"""model.py - models that are open: values by name, views that outlive them, and steps that are driven from here.

In:  a small run.   Out: status 0, or the test that failed.
Oracles: `vwn eval` and `vwn sample` of the same run; `vwn train`, to the bit; finite differences.
"""
import gc
import json
import math
import os
import random
import struct
import subprocess
import threading

import vwn
from common import MODEL, TEXT, model, raised, run

PROGRAM = os.environ["VWN"]
TOKENS = [list(TEXT.encode()[i:i + 16]) for i in (0, 40)]


def trained():
    """A run of the small model, made once."""
    path = model()
    if not os.path.isdir("small"):
        subprocess.run([PROGRAM, "train", path, "--run", "./small", "-q"], check=True, capture_output=True)
    return "small"


def log_softmax(row):
    top = max(row)
    total = math.log(sum(math.exp(x - top) for x in row)) + top
    return [x - total for x in row]


def close(a, b, tolerance):
    return abs(a - b) <= tolerance * max(1e-3, abs(a), abs(b))


def values():
    with vwn.Run(trained()) as r:
        assert r.name == "small" and r.context == 16 and r.step == 6 and r.dtype == "float32" and not r.closed
        assert r.inputs["tokens"] == ("tokens", ("B", "T"), "int64", 256)
        text = TEXT[100:117]
        assert r.encode(text) == list(text.encode()) and r.decode(r.encode(text)) == text
        with open("one.txt", "w") as f:
            f.write(text)
        out = subprocess.run([PROGRAM, "eval", "./small", "--data", "one.txt", "--json"], check=True, capture_output=True)
        theirs = json.loads(out.stdout)
        assert theirs["tokens"] == 16
        ids = r.encode(text)
        assert close(r.loss([ids]), theirs["loss"], 1e-6), (r.loss([ids]), theirs["loss"])
        assert r.loss([ids[:-1]], [ids[1:]]) == r.loss([ids])
        logits = r.logits([ids[:-1]])
        assert logits.shape == (1, 16, 256) and r.nodes["logits"] == ("B", "T", 256)
        mine = -sum(log_softmax(row)[y] for row, y in zip(logits.tolist()[0], ids[1:])) / 16
        assert close(mine, theirs["loss"], 1e-5), (mine, theirs["loss"])
        # labels that are left out do not count
        assert close(r.loss([ids[:-1]], [[-1] * 15 + ids[16:]]), -log_softmax(logits[0, 15])[ids[16]], 1e-5)
        # the likeliest token, again and again, is what `vwn sample` takes
        prompt, rest = r.encode("line 3"), []
        for _ in range(8):
            row = r.logits([prompt + rest])[0, -1]
            rest.append(max(range(256), key=lambda i: row[i]))
        drawn = r.sample("line 3", 8, temperature=0)  # where bytes are no UTF-8 it says so in other places
        assert drawn.replace("\ufffd", "") == r.decode(rest).replace("\ufffd", "") != ""
        # shorter texts, more of them
        both = r.logits([t[:5] for t in TOKENS])
        assert both.shape == (2, 5, 256)
        assert all(close(a, b, 1e-5) for a, b in zip(both[1, 4], r.logits([TOKENS[1]])[0, 4]))


def names():
    """What stands behind each other in the model does so here."""
    with vwn.Run(trained()) as r:
        state = ["opened"] + [f"layer[{i}].{s}.state" for i in (1, 2) for s in ("attention", "ffn")]
        wrote = [f"layer[{i}].{s}.wrote" for i in (1, 2) for s in ("attention", "ffn")]
        t = r.tensors(state + wrote + ["embedded", "layer[2].ffn", "layer[2].ffn.down", "logits", "loss", "loss.next", "%2"], TOKENS,
                      [row[1:] + [0] for row in TOKENS])
        flat = {n: x.memory.cast("B").cast("q" if x.dtype == "int64" else "f").tolist() for n, x in t.items() if x.shape}
        assert set(r.nodes) >= set(t) - {"%2"} and all(x.name == n for n, x in t.items())
        assert flat["embedded"] == flat["opened"] and t["layer[2].ffn"].shape == (2, 16, 32)
        for before, step, after in zip(state, wrote, state[1:]):
            assert all(close(a + b, c, 1e-5) for a, b, c in zip(flat[before], flat[step], flat[after])), after
        assert flat["layer[2].ffn.down"] == flat[wrote[-1]]
        assert close(float(t["loss"]), float(t["loss.next"]), 0) and t["loss"].tolist() == float(t["loss"])
        gain, w = r.parameters["head.lm.norm.g"].tolist(), r.parameters["head.lm.W"].tolist()
        x = t[state[-1]][1, 7]
        root = math.sqrt(sum(v * v for v in x) / 16 + 1e-6)
        y = [v / root * g for v, g in zip(x, gain)]
        assert all(close(sum(a * row[k] for a, row in zip(y, w)), t["logits"][1, 7, k], 1e-4) for k in (0, 101, 255))
        assert list(r.parameters)[0] == "embed.tokens.W" and len(r.parameters) == len(list(r.parameters.items()))


def lifetimes():
    """What was handed out is never written again, and outlives the run."""
    r = vwn.Run(trained())
    first = r.logits(TOKENS)
    kept, view, numbers = first.memory, memoryview(first.memory), first.tolist()
    weights = r.parameters["layer[1].ffn.up.W"]
    before = weights.tolist()
    for i in range(5):
        other = r.logits([[i] * 16] * 2)
        assert other.tolist() != numbers and first.tolist() == numbers
    address = r.logits(TOKENS)._raw.data
    assert r.logits(TOKENS)._raw.data == address  # nobody looks at it: its memory is used again
    shorter = r.logits([t[:3] for t in TOKENS])
    r.set_parameter("layer[1].ffn.up.W", [[0.0] * len(before[0])] * len(before))
    assert weights.tolist() == [[0.0] * len(before[0])] * len(before)  # a parameter is the model's own
    assert r.logits(TOKENS).tolist() != numbers
    r.set_parameter("layer[1].ffn.up.W", before)
    assert r.logits(TOKENS).tolist() == numbers and weights.tolist() == before
    r.close()
    r.close()
    del first, r
    gc.collect()
    junk = [bytearray(len(kept.cast("B"))) for _ in range(20)]
    assert kept.tolist() == view.tolist() == numbers and weights.tolist() == before and shorter.shape == (2, 3, 256)
    del junk, kept, view, weights
    gc.collect()
    raised(TypeError, "", memoryview(shorter.memory).__setitem__, (0, 0, 0), 1.0)
    # by DLPack, and a capsule that nobody takes
    capsule = shorter.__dlpack__()
    assert shorter.__dlpack_device__() == (1, 0) and "dltensor" in repr(capsule)
    del capsule, shorter
    gc.collect()
    raised(BufferError, "CPU", other.__dlpack__, dl_device=(2, 0))


def safetensors(path):
    """The tensors of a checkpoint, as bytes."""
    with open(path, "rb") as f:
        data = f.read()
    n, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in head.items() if k != "__metadata__"}


def steps():
    """The bits of `vwn train`."""
    for more in ({}, {"train.micro_batch": "2 seqs"}):
        path = model()
        sets = [x for k, v in more.items() for x in ("--set", f"{k}={v}")]
        subprocess.run([PROGRAM, "train", path, "--run", "./theirs", "--overwrite", "-q", *sets], check=True, capture_output=True)
        with open("theirs/events.jsonl") as f:
            losses = [e["loss"] for e in map(json.loads, f) if e["event"] == "step"]
        with vwn.Trainer(path, more, run="mine", overwrite=True) as t:
            assert (t.batch_size, t.positions, t.step) == (4, 16, 0)
            for i in range(3):
                tokens, labels = t.batch()
                assert tokens.shape == labels.shape == (4, 16)
                step = t.take([list(row) for row in tokens.tolist()], labels)
                assert step.loss == losses[i] and step.step == t.step == i + 1 and step.steps == 6, (step, losses[i])
            t.save()
            t.save()
        with vwn.Trainer(path, more, run="mine", resume=True) as t:
            assert t.step == 3
            for i in range(3, 6):
                loss = t.gradient()
                assert loss == losses[i] and t.update().loss == loss
            raised(vwn.UsageError, "6 steps", t.take)
            t.save()
        a, b = (safetensors(f"{d}/ckpt/step_00000006.safetensors") for d in ("theirs", "mine"))
        assert a == b and len(a) > 10
        events = [json.loads(x) for x in open("mine/events.jsonl")]
        assert [e["loss"] for e in events if e["event"] == "step"] == losses
        assert vwn.Run("mine").logits(TOKENS).tolist() == vwn.Run("theirs").logits(TOKENS).tolist()


def flat(tensor):
    return tensor.memory.cast("B").cast("f").tolist()


def losses_of_ones_own():
    """Given the gradients of the file's own loss, those of the weights are the file's; parts of a batch add up."""
    t = vwn.Trainer(model())
    tokens, labels = (x.tolist() for x in t.batch())
    loss = t.gradient(tokens, labels)
    theirs = {n: flat(g) for n, g in t.gradients.items()}
    assert len(theirs) == len(t.parameters) and any(theirs["embed.tokens.W"])

    def of_softmax(rows, ys):
        out = []
        for row, y in zip(rows, ys):
            p = [math.exp(x) / 64 for x in log_softmax(row)]
            p[y] -= 1 / 64
            out.append(p)
        return out

    logits = t.forward(tokens)["logits"].tolist()
    given = [of_softmax(rows, ys) for rows, ys in zip(logits, labels)]
    t.backward({"logits": given}, tokens)
    whole = {n: flat(g) for n, g in t.gradients.items()}
    for n in theirs:
        scale = max(map(abs, theirs[n]))
        assert all(abs(a - b) <= 1e-5 * scale + 1e-9 for a, b in zip(theirs[n], whole[n])), n
    t.backward({"logits": given[:1]}, tokens[:1])
    t.backward({"logits": given[1:]}, tokens[1:], add=True)
    for n, g in t.gradients.items():
        scale = max(map(abs, theirs[n]))
        assert all(abs(a - b) <= 1e-5 * scale + 1e-9 for a, b in zip(whole[n], flat(g))), n
    # a step by them, and one by the file's, change the weights alike
    first = t.parameters["layer[1].ffn.up.W"].tolist()
    view = t.parameters["layer[1].ffn.up.W"]
    step = t.update(loss)
    assert step.step == 1 and step.loss == loss and view.tolist() != first
    other = vwn.Trainer(model())
    their_step = other.take(tokens, labels)
    assert close(step.grad_norm, their_step.grad_norm, 1e-5) and step.lr == their_step.lr
    raised(vwn.UsageError, "no gradient to take", t.update)
    raised(vwn.UsageError, "no gradient to add", t.backward, {"logits": given}, tokens, add=True)
    # what is put there is what the step is taken by
    for n in t.gradients:
        t.set_gradient(n, [[0.0] * len(r) for r in t.parameters[n].tolist()] if len(t.parameters[n].shape) == 2
                       else [0.0] * t.parameters[n].size)
    assert t.update().grad_norm == 0
    t.set_gradient("head.lm.norm.g", [math.nan] * 16)
    now = view.tolist()
    raised(vwn.DivergedError, "not a number", t.update)
    assert view.tolist() == now and t.step == 2


def differences():
    """Of two values in the middle, with dropout, against finite differences."""
    t = vwn.Trainer(model("drops.vwn", "ghc(m = 2, n = 2, dynamic = true)", ", dropout = 0.5"))
    draw = random.Random(5)
    for n, p in t.parameters.items():
        draws = [[draw.gauss(0, 0.3) for _ in range(p.shape[-1])] for _ in range(p.size // p.shape[-1])] if p.shape else 0.5
        t.set_parameter(n, draws if len(p.shape) == 2 else draws[0] if len(p.shape) == 1 else draws)
    tokens = [row[:6] for row in TOKENS]
    names = ["layer[1].ffn.wrote", "layer[2].attention.state"]

    def numbers(shape):
        return [numbers(shape[1:]) for _ in range(shape[0])] if shape else draw.gauss(0, 1)

    values = t.forward(tokens, names)
    assert t.forward(tokens, names)[names[0]].tolist() == values[names[0]].tolist()
    assert t.tensors(names, tokens)[names[0]].tolist() != values[names[0]].tolist()  # dropout
    factor = {n: numbers(v.shape) for n, v in values.items()}

    def total():
        out = t.forward(tokens, names)
        def dot(a, b):
            return sum(map(dot, a, b)) if isinstance(a, list) else a * b
        return sum(dot(out[n].tolist(), factor[n]) for n in names)

    t.backward(factor, tokens)
    looked_at = 0
    for name in ["layer[1].ffn.up.W", "layer[1].ffn.down.W", "embed.tokens.W", "layer[1].attention.v_proj.W"]:
        p = t.parameters[name].tolist()
        i, k = (tokens[0][0] if name.startswith("embed") else 3), 5
        was, h = p[i][k], 1e-2
        sides = []
        for d in (h, -h):
            p[i][k] = was + d
            t.set_parameter(name, p)
            sides.append(total())
        p[i][k] = was
        t.set_parameter(name, p)
        mine, there = (sides[0] - sides[1]) / (2 * h), t.gradients[name][i, k]
        assert abs(mine - there) < 1e-2 * abs(there) + 2e-4, (name, mine, there)
        looked_at += abs(there) > 2e-2
    assert looked_at >= 3
    assert not any(flat(t.gradients["head.lm.W"]))  # nothing depends on it


def refused():
    r = vwn.Run(trained())
    for what, text, arguments in (
            (vwn.UsageError, "[B, T]", ([1, 2],)), (vwn.UsageError, "at least one sequence", ([[]],)),
            (vwn.UsageError, "[B, T]", ([],)),
            (vwn.UsageError, "context is 16", ([[1] * 17],)), (vwn.UsageError, "at most 255", ([[256]],)),
            (vwn.UsageError, "-1", ([[-1]],)), (ValueError, "one length", ([[1], [1, 2]],)),
            (TypeError, "integers", ([[1.5]],)), (TypeError, "bool", ([[True]],)), (TypeError, "str was given", ("text",)),
            (ValueError, "beyond 64 bits", ([[1 << 70]],)), (TypeError, "numbers, and object", (object(),)),
            (TypeError, "dict", ({},)), (vwn.UsageError, "[1, 1, 1]", ([[[1]]],)), (vwn.UsageError, "[B, T]", (b"abc",)), (vwn.UsageError, "reads `tokens`", ())):
        error = raised(what, text, r.logits, *arguments)
        assert isinstance(error, (ValueError, TypeError))
    raised(vwn.UsageError, "did you mean `logits`", r.tensors, ["logit"], TOKENS)
    raised(vwn.UsageError, "no node `%100000`", r.tensors, ["%100000"], TOKENS)
    raised(vwn.UsageError, "no node is asked for", r.tensors, [], TOKENS)
    raised(TypeError, "a list of names", r.tensors, "logits", TOKENS)
    raised(TypeError, "a name is a string", r.tensors, [3], TOKENS)
    raised(vwn.UsageError, "no input `colour`", r.tensors, ["logits"], TOKENS, colour=TOKENS)
    raised(vwn.UsageError, "`labels`, which is not given", r.tensors, ["loss"], TOKENS)
    raised(vwn.UsageError, "`labels` is [B, T] with B = 2 and T = 16, and [1, 16]", r.loss, TOKENS, TOKENS[:1])
    raised(vwn.UsageError, "[B, T + 1]", r.loss, [[1]])
    raised(vwn.UsageError, "document begins", r.logits, TOKENS, document=[[16] * 16] * 2) if "document" in r.inputs else None
    raised(KeyError, "nothing", r.parameters.__getitem__, "nothing")
    raised(vwn.UsageError, "did you mean `head.lm.W`", r.set_parameter, "head.lm.w", [1.0])
    raised(vwn.UsageError, "[16, 256], and [1]", r.set_parameter, "head.lm.W", [1.0])
    raised(TypeError, "real numbers", r.set_parameter, "head.lm.W", [["a"]])
    raised(vwn.UsageError, "the id 256", r.decode, [256])
    raised(vwn.UsageError, "[n]", r.decode, [[1]])
    raised(vwn.MachineError, "no-such-run", vwn.Run, "no-such-run")
    raised(vwn.UsageError, "is no device", vwn.Run, "small", device="tpu")
    raised(vwn.MachineError, "", vwn.Run, "small", device="cuda:7")
    raised(TypeError, "threads is an integer", vwn.Run, "small", threads="2")
    raised(vwn.UsageError, "already holds a run", vwn.Trainer, model(), run="small")
    raised(vwn.UsageError, "give its folder", vwn.Trainer, model(), resume=True)
    raised(vwn.InputError, "no `train`", vwn.Trainer, MODEL[:MODEL.index("train {")] % ("residual()", ""))
    raised(vwn.InputError, "E0101", vwn.Trainer, "model m {\n  widht = 4\n}\n")
    t = vwn.Trainer(model())
    raised(vwn.UsageError, "4 sequences of 16 positions", t.take, TOKENS, TOKENS)
    raised(vwn.UsageError, "opened without a run", t.save)
    raised(vwn.UsageError, "differentiates it", t.backward, {"loss": 1.0}, TOKENS)
    raised(vwn.UsageError, "no gradient is given", t.backward, {}, TOKENS)
    raised(vwn.UsageError, "[B, T, 256]", t.backward, {"logits": [[[1.0]]]}, TOKENS)
    raised(TypeError, "mapping", t.backward, 1, TOKENS)
    # data that is not there is not asked for without a run
    with vwn.Trainer(model("other.vwn", text="missing.txt")) as other:
        assert other.take([[1] * 16] * 4, [[2] * 16] * 4).step == 1
    raised(vwn.MachineError, "missing.txt", vwn.Trainer, "other.vwn", run="other")
    r.close()
    for call in (lambda: r.logits(TOKENS), lambda: r.parameters["head.lm.W"], lambda: r.encode("a"), lambda: r.sample("a")):
        raised(vwn.ClosedError, "closed", call)
    assert "closed" in repr(r)


def threads():
    """Calls of several threads wait for each other, and a child has no model."""
    r = vwn.Run(trained(), threads=2)
    wanted = [r.logits([t]).tolist() for t in TOKENS]
    wrong = []

    def work(k):
        try:
            for i in range(15):
                if r.logits([TOKENS[(i + k) % 2]]).tolist() != wanted[(i + k) % 2]:
                    wrong.append((k, i))
        except Exception as e:
            wrong.append(e)

    all_of_them = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join()
    assert not wrong, wrong
    child = os.fork()
    if not child:
        try:
            r.logits(TOKENS)
        except vwn.ClosedError as e:
            os._exit(3 if "another process" in str(e) else 4)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3 if hasattr(os, "waitstatus_to_exitcode") else True


run([values, names, lifetimes, steps, losses_of_ones_own, differences, refused, threads])
