"""arrays.py - arrays of numpy and tensors of PyTorch go in and come out, without a copy where that can be.

In:  a small model.   Out: status 0, the test that failed, or 77: Python has neither.
Oracles: the same numbers as lists; the losses that PyTorch computes and differentiates.
"""
import gc
import sys

import vwn
from common import TEXT, model, raised, run

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

TOKENS = [list(TEXT.encode()[i:i + 16]) for i in (0, 40, 80, 120)]


def of_numpy():
    t = vwn.Trainer(model())
    logits = t.logits(TOKENS)
    a = logits.numpy()
    assert a.shape == (4, 16, 256) and a.dtype == numpy.float32 and not a.flags.writeable
    assert a.ctypes.data == logits._raw.data == numpy.asarray(logits).ctypes.data == numpy.from_dlpack(logits).ctypes.data
    assert a.tolist() == logits.tolist()
    kept = a.copy()
    weights = t.parameters["head.lm.W"].numpy()
    before = weights.copy()
    t.take(TOKENS, TOKENS)
    assert not (weights == before).all() and (a == kept).all()
    t.close()
    del logits, t
    gc.collect()
    assert (a == kept).all() and weights.shape == (16, 256)
    t = vwn.Trainer(model())
    wanted = t.logits(TOKENS).tolist()
    ids = numpy.array(TOKENS)
    for form in (ids, ids.astype("int32"), ids.astype("uint16"), ids.astype("uint8"), ids.T.copy().T, ids.repeat(2, 1)[:, ::2],
                 numpy.asfortranarray(ids), ids.astype("uint64")):
        assert t.logits(form).tolist() == wanted, form.dtype
    for form in (ids.astype("float32"), ids.astype(">i8"), ids.astype("complex64"), ids.astype("datetime64[s]"), ids > 3,
                 ids.astype("float16"), ids.astype(object)):
        raised(TypeError, "tokens", t.logits, form)
    raised(ValueError, "64 bits", t.logits, numpy.array([[2**63 + 1]], "uint64"))
    raised(vwn.UsageError, "[B, T]", t.logits, numpy.array(3))
    raised(vwn.UsageError, "at least one", t.logits, numpy.zeros((0, 16), "int64"))
    raised(ValueError, "axes", t.logits, numpy.zeros([1] * 9, "int64"))
    g = numpy.random.default_rng(1).standard_normal((4, 16, 256))
    t.backward({"logits": g}, ids)
    wide = t.gradients["head.lm.W"].numpy().copy()
    t.backward({"logits": numpy.asfortranarray(g.astype("float32"))}, ids)
    assert abs(wide - t.gradients["head.lm.W"].numpy()).max() < 1e-4 * abs(wide).max() > 0
    raised(TypeError, "logits", t.backward, {"logits": g.astype("float16")}, ids)
    t.set_gradient("head.lm.W", wide * 2)
    assert (t.gradients["head.lm.W"].numpy() == wide * 2).all()
    x = t.tensors(["closed"], ids)["closed"].numpy()
    gain, w = t.parameters["head.lm.norm.g"].numpy(), t.parameters["head.lm.W"].numpy()
    y = x / numpy.sqrt((x.astype("float64") ** 2).mean(-1, keepdims=True) + 1e-6) * gain @ w
    assert numpy.allclose(y, t.logits(ids).numpy(), atol=1e-5)


def of_torch():
    t = vwn.Trainer(model())
    logits = t.logits(TOKENS)
    a = torch.from_dlpack(logits)
    assert a.data_ptr() == logits._raw.data == logits.torch().data_ptr() and a.dtype == torch.float32
    assert list(a.shape) == [4, 16, 256] and a.tolist() == logits.tolist()
    wanted = logits.tolist()
    ids = torch.tensor(TOKENS)
    for form in (ids, ids.int(), ids.T.contiguous().T, ids.repeat_interleave(2, 1)[:, ::2], ids.to(torch.uint8),
                 ids.expand(4, 16)):
        assert t.logits(form).tolist() == wanted
    for form in (ids.float(), ids > 3, ids.to(torch.bfloat16), ids.to(torch.complex64), ids.to("meta"), ids.to_sparse()):
        raised(TypeError, "tokens", t.logits, form)
    kept = a.clone()
    t.close()
    del t, logits
    gc.collect()
    assert (a == kept).all()
    # a loss of one's own, by autograd: that of the file, and one that the file has not
    t = vwn.Trainer(model())
    tokens, labels = t.batch()
    loss = t.gradient(tokens, labels)
    wanted = {n: g.torch().clone() for n, g in t.gradients.items()}
    x = t.forward(tokens)["logits"].torch().clone().requires_grad_()
    mine = torch.nn.functional.cross_entropy(x.flatten(0, 1), labels.torch().flatten())
    mine.backward()
    assert abs(float(mine.detach()) - loss) < 1e-5
    t.backward({"logits": x.grad}, tokens)
    for n, g in t.gradients.items():
        assert torch.allclose(g.torch(), wanted[n], rtol=1e-4, atol=1e-6 * float(wanted[n].abs().max()) + 1e-9), n
    first = None
    for _ in range(5):
        x = t.forward(tokens, ["logits", "layer[1].ffn.state"])
        x = {n: v.torch().clone().requires_grad_() for n, v in x.items()}
        mine = x["logits"].square().mean() + x["layer[1].ffn.state"].abs().mean()
        mine.backward()
        t.backward({n: v.grad for n, v in x.items()}, tokens)
        first = first or float(mine.detach())
        t.update(float(mine.detach()))
    assert float(mine.detach()) < first


tests = [test for test, library in ((of_numpy, numpy), (of_torch, torch)) if library]
if not tests:
    print(f"skipped: {sys.executable} has neither numpy nor torch; VWN_PYTHON names one that has")
    sys.exit(77)
run(tests)
