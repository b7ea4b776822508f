"""Models that are open: a run to look into, a file to train step by step.

In:  a run or a file; batches.     Out: tensors, losses, texts, steps.
The one idea: names. Whatever a model computes, `vwn ir` and the file call it something, and so does the caller here.
"""
from __future__ import annotations

import ctypes as C
import json
import os
import weakref
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from ._library import NUMBERS, Batch, ClosedError, Context, ModelOptions, RawProgress, RawTensor, SampleOptions, Settings, \
    Text, UsageError, encoded, lib, masked, strings
from ._tensor import Taken, Tensor, handed, let_go, taken

Numbers = Any  #: an array of numpy, a tensor of PyTorch, a Tensor, a buffer, or lists of numbers


class Input(NamedTuple):
    """What a model reads."""
    name: str
    shape: Tuple[Union[int, str], ...]  #: numbers, "B" sequences and "T" positions
    dtype: str
    below: int  #: integers are from 0 to below - 1; 0: any


class Step(NamedTuple):
    """A step that was taken."""
    step: int  #: steps that are done
    steps: int  #: of the whole run
    tokens: int
    loss: float  #: NaN: it was the caller's, and not told
    lr: float
    grad_norm: float  #: before clipping


class _Tensors(Mapping[str, Tensor]):
    """The parameters, or their gradients, by name."""

    def __init__(self, model: "_Model", kind: str, names: List[str]) -> None:
        self._model, self._kind, self._names = model, NUMBERS[kind], names

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        raw = RawTensor()
        self._model._call(lib.vwn_model_tensor, self._kind, encoded(name, "a name"), C.byref(raw))
        return handed([raw])[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{len(self)} tensors: {', '.join(self._names[:3])}{', ...' if len(self) > 3 else ''}>"


def _closed(close: Any, model: Any, context: Context) -> None:
    if os.getpid() == context.process:
        close(model)
    context.close()


class _Model:
    """What is common to all models that are open. Calls of several threads wait for each other."""

    def __init__(self, context: Context, options: ModelOptions) -> None:
        self._context = context
        handle = C.c_void_p()
        try:
            context.ok(masked(lib.vwn_model_open, context.handle, C.byref(options), C.byref(handle)))
        except BaseException:
            if handle:
                lib.vwn_model_close(handle)
            context.close()
            raise
        self._model = handle
        self._close = weakref.finalize(self, _closed, lib.vwn_model_close, handle, context)
        #: what the library had to say when it was opened, or ""
        self.warning: str = (lib.vwn_warning(context.handle) or b"").decode("utf-8", "replace")
        about = self._describe()
        #: the name of the model
        self.name: str = about["model"]
        #: the most positions of a sequence
        self.context: int = about["context"]
        #: "float32", or "float64" on the device "reference"
        self.dtype: str = about["type"]
        #: what it reads, by name: "tokens" and "labels" of texts
        self.inputs: Dict[str, Input] = {i["name"]: Input(i["name"], tuple(i["shape"]), i["type"], i["below"])
                                         for i in about["inputs"]}
        #: what can be asked of it by name, and its shape of numbers, "B" sequences and "T" positions
        self.nodes: Dict[str, Tuple[Union[int, str], ...]] = {n["name"]: tuple(n["shape"]) for n in about["nodes"]}
        self._has_text: bool = about["text"]
        self._sizes = about.get("batch"), about.get("positions")
        self._parameters = _Tensors(self, "VWN_PARAMETER", [p["name"] for p in about["parameters"]])
        self._learned = [p["name"] for p in about["parameters"] if p["learned"]]

    # -- calls --

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._context.lock:
            if not self._close.alive:
                raise ClosedError("the model is closed")
            if os.getpid() != self._context.process:
                raise ClosedError("the model was opened in another process: open it here")
            self._context.ok(masked(function, self._model, *arguments))

    def _describe(self) -> Dict[str, Any]:
        out = Text()
        self._call(lib.vwn_model_describe, C.byref(out.raw))
        return json.loads(str(out))

    def _batch(self, inputs: Mapping[str, Numbers], training: bool) -> Tuple[Batch, List[Taken]]:
        """A vwn_batch, and what it points to."""
        parts = []
        for name, value in inputs.items():
            if value is None:
                continue
            known = self.inputs.get(name)
            parts.append(taken(name, value, known is None or known.dtype == "int64"))
        raws = (RawTensor * (len(parts) + 1))(*[p.raw for p in parts])
        return Batch(raws, len(parts), training), parts

    def _compute(self, names: Iterable[str], inputs: Mapping[str, Numbers], training: bool = False) -> Dict[str, Tensor]:
        if isinstance(names, (str, bytes)):
            raise TypeError("names is a list of names")
        wanted = list(dict.fromkeys(names))
        batch, parts = self._batch(inputs, training)
        rows, n = strings(encoded(w, "a name") for w in wanted)
        out = (RawTensor * (n + 1))()
        try:
            self._call(lib.vwn_model_run, C.byref(batch), rows, n, out)
        except BaseException:
            let_go(out)
            raise
        del parts
        return dict(zip(wanted, handed(out[:n])))

    # -- what it computes --

    def tensors(self, names: Iterable[str], tokens: Numbers = None, labels: Numbers = None,
                **inputs: Numbers) -> Dict[str, Tensor]:
        """Values of the model for a batch, by name: those of `nodes`, or "%12", a node by its number in `vwn ir --stage tensor`.

        `tokens`: [B, T] of integers, any B from 1 on and T up to `context`. `labels`: [B, T], below 0 where there is none; needed
        for losses alone. `document`: [B, T], the position at which the document of a position begins. Models of images have
        other `inputs`. No dropout.

            run.tensors(["layer[2].ffn.state", "logits"], tokens)["logits"].numpy()   # [B, T, vocabulary]
        """
        return self._compute(names, {"tokens": tokens, "labels": labels, **inputs})

    def logits(self, tokens: Numbers = None, **inputs: Numbers) -> Tensor:
        """What is predicted behind each position: [B, T, vocabulary] of `tokens` [B, T]."""
        name = "logits" if "logits" in self.nodes else next(iter(self.nodes), "logits")
        return self._compute([name], {"tokens": tokens, **inputs})[name]

    def loss(self, tokens: Numbers = None, labels: Numbers = None, **inputs: Numbers) -> float:
        """The sum of the model's losses, in nats a token for a model of texts.

        `tokens`, `labels`: [B, T]. Without `labels` each token is the label of the one before it: [B, T + 1] tokens of which
        the last has no prediction."""
        if labels is None and tokens is not None and "labels" in self.inputs:
            text = taken("tokens", tokens, True)
            if len(text.shape) != 2 or text.shape[1] < 2:
                raise UsageError(f"`tokens` is [B, T + 1], and {list(text.shape)} was given")
            rows = memoryview(text._data).cast("B").cast("q", text.shape).tolist() if text._data else []
            tokens, labels = [r[:-1] for r in rows], [r[1:] for r in rows]
        return float(self._compute(["loss"], {"tokens": tokens, "labels": labels, **inputs})["loss"])

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """The weights by name, where the model computes with them: they change with every step, and cannot be written here."""
        return self._parameters

    def set_parameter(self, name: str, value: Numbers) -> None:
        """Gives a parameter other numbers, in its shape."""
        self._put("VWN_PARAMETER", name, value)

    def _put(self, kind: str, name: str, value: Numbers) -> None:
        part = taken(name, value, False)
        self._call(lib.vwn_model_put, NUMBERS[kind], C.byref(part.raw))

    # -- texts --

    def encode(self, text: str) -> List[int]:
        """The ids of a text, by the tokenizer of the model."""
        data = text.encode("utf-8") if isinstance(text, str) else None
        if data is None:
            raise TypeError("text is a string")
        raw = RawTensor()
        self._call(lib.vwn_model_encode, data, len(data), C.byref(raw))
        return handed([raw])[0].tolist()

    def decode(self, ids: Numbers) -> str:
        """The text of ids, [n]; bytes that are no UTF-8 are replaced."""
        part = taken("ids", ids, True)
        if len(part.shape) != 1:
            raise UsageError(f"`ids` is [n], and {list(part.shape)} was given")
        out = Text()
        self._call(lib.vwn_model_decode, C.cast(part.raw.data, C.POINTER(C.c_int64)), part.shape[0], C.byref(out.raw))
        return str(out)

    # -- the end --

    @property
    def closed(self) -> bool:
        return not self._close.alive

    def close(self) -> None:
        """Gives back what the model holds. Tensors that were handed out stay; every other call raises ClosedError."""
        with self._context.lock:
            self._close()

    def __enter__(self) -> "Any":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<vwn.{type(self).__name__} {self.name!r}{', closed' if self.closed else ''}>"


class Run(_Model):
    """A trained model: a run, "DIR@STEP", or a checkpoint.

    `last`: the weights of the last step, also where the run kept their average. `threads`: 0 is all. `device`: "cpu", "cuda",
    "cuda:1", "auto", "reference". `cache`: where compiled kernels are kept.

        run = vwn.Run("runs/quickstart")
        run.logits([run.encode("In the beginning")])        # [1, 16, 256]
    """

    def __init__(self, source: Any, *, last: bool = False, threads: int = 0, device: Optional[str] = None,
                 cache: Optional[str] = None) -> None:
        self.source = os.fspath(source)
        self._settings = threads, device, cache
        super().__init__(Context(threads, device, cache),
                         ModelOptions(source=encoded(source, "source"), last=bool(last)))
        self._last = bool(last)
        #: steps that it was trained for
        self.step: int = self._describe()["step"]

    def sample(self, prompt: str = "", tokens: int = 100, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0,
               min_p: float = 0.0, repetition: float = 1.0, seed: int = 0, stops: Iterable[str] = ()) -> str:
        """The text that follows a prompt, without it, as `vwn sample` draws it.

        Opens the run anew: weights given by set_parameter() are not in it."""
        for name, value in (("tokens", tokens), ("top_k", top_k), ("seed", seed)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} is an integer")
            if not 0 <= value < 1 << 62:
                raise UsageError(f"{name} is not negative, and below 2^62")
        if isinstance(stops, (str, bytes)):
            raise TypeError("stops is a list of texts")
        if self.closed:
            raise ClosedError("the model is closed")
        context = Context(*self._settings)
        try:
            prompts, n = strings([encoded(prompt, "prompt")])
            ends, n_ends = strings(encoded(s, "a stop") for s in stops)
            how = SampleOptions(source=encoded(self.source, "source"), prompts=prompts, n_prompts=n, tokens=tokens,
                                temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, repetition=repetition,
                                stops=ends, n_stops=n_ends, texts=1, seed=seed, last=self._last, json=True)
            out = Text()
            context.ok(masked(lib.vwn_sample, context.handle, C.byref(how), C.byref(out.raw)))
            return json.loads(str(out))["text"]
        finally:
            context.close()


class Trainer(_Model):
    """A model whose steps are driven from here, with any batches and any loss.

    `file`: a path, or the text of a file, which has a line break; `set`: overrides, as {"train.batch": "4 seqs"}. `run`: the folder
    of checkpoints and events, which `vwn watch`, `vwn resume` and vwn.Run read; None: nothing is kept. `resume`: goes on from
    the last checkpoint there, `overwrite`: starts anew.

        trainer = vwn.Trainer("quickstart.vwn")
        while trainer.step < 100:
            print(trainer.take(*trainer.batch()).loss)      # as `vwn train`, bit for bit

        logits = trainer.forward(tokens)["logits"]          # [B, T, vocabulary]
        trainer.backward({"logits": gradient}, tokens)      # [B, T, vocabulary]: of a loss of your own
        trainer.update()
    """

    def __init__(self, file: Any, set: Settings = None, *, run: Any = None, resume: bool = False, overwrite: bool = False,
                 threads: int = 0, device: Optional[str] = None, cache: Optional[str] = None) -> None:
        context = Context(threads, device, cache)
        try:
            where = None if run is None else encoded(run, "run")
            if resume and where is None:
                raise UsageError("what is resumed is a run: give its folder")
            again = {"resume": where} if resume else {}
            status, unit = context.check(file, set, **again)
            context.ok(status)
            options = ModelOptions(unit=unit, train=True, run=where, resume=bool(resume), overwrite=bool(overwrite))
        except BaseException:
            context.close()
            raise
        super().__init__(context, options)
        #: sequences of a step of the file, and positions of each
        self.batch_size, self.positions = self._sizes
        #: steps that are done
        self.step: int = self._describe()["step"]
        self._gradients = _Tensors(self, "VWN_GRADIENT", self._learned)

    @property
    def gradients(self) -> Mapping[str, Tensor]:
        """The gradients of the learned parameters by name, as gradient() or backward() left them: the next one writes there.
        In fp16 they are those of the loss times its scale."""
        return self._gradients

    def set_gradient(self, name: str, value: Numbers) -> None:
        """Gives the gradient of a parameter other numbers, in its shape, for the next update()."""
        self._put("VWN_GRADIENT", name, value)

    def batch(self) -> Tuple[Tensor, ...]:
        """The next batch of the file's own texts: tokens and labels, [batch_size, positions], and document where the model
        reads it. It is the same until a step is taken."""
        out, n = (RawTensor * 3)(), C.c_size_t()
        try:
            self._call(lib.vwn_model_batch, out, C.byref(n))
        except BaseException:
            let_go(out)
            raise
        tensors = handed(out[:n.value])
        return tuple(t for t in tensors if t.name in ("tokens", "labels") or t.name in self.inputs)

    def forward(self, tokens: Numbers = None, names: Iterable[str] = ("logits",), **inputs: Numbers) -> Dict[str, Tensor]:
        """As tensors(), with the dropout of the next step, which backward() has, too."""
        return self._compute(names, {"tokens": tokens, **inputs}, True)

    def gradient(self, tokens: Numbers = None, labels: Numbers = None, document: Numbers = None, **inputs: Numbers) -> float:
        """Computes the gradients of the file's own losses, as `vwn train` does to the bit; returns their sum.

        `tokens`, `labels`: [batch_size, positions]. Of nothing: batch() is taken."""
        values = {"tokens": tokens, "labels": labels, "document": document, **inputs}
        loss = C.c_double()
        if all(v is None for v in values.values()):
            self._call(lib.vwn_model_gradient, None, C.byref(loss))
        else:
            batch, parts = self._batch(values, True)
            self._call(lib.vwn_model_gradient, C.byref(batch), C.byref(loss))
            del parts
        return loss.value

    def backward(self, gradients: Mapping[str, Numbers], tokens: Numbers = None, *, add: bool = False,
                 **inputs: Numbers) -> None:
        """Computes the gradients of a loss of yours, given those with respect to values of the model, by their names.

        `gradients`: {"logits": [B, T, vocabulary]}, of float32, in the shapes that forward() gives for the same `tokens` [B, T]. The
        forward pass is computed again. `add`: to the gradients that are there, as of an earlier part of one batch."""
        if not isinstance(gradients, Mapping):
            raise TypeError("gradients is a mapping from names to numbers")
        given = [taken(encoded(name, "a name").decode(), value, False) for name, value in gradients.items()]
        batch, parts = self._batch({"tokens": tokens, **inputs}, True)
        raws = (RawTensor * (len(given) + 1))(*[g.raw for g in given])
        self._call(lib.vwn_model_backward, C.byref(batch), raws, len(given), bool(add))
        del parts

    def update(self, loss: float = float("nan")) -> Step:
        """One step of the file's optimizer by the gradients that are there. `loss`: what schedules know as train.loss and events say;
        NaN: that of gradient(), or none. DivergedError: a gradient is not finite; the weights are as before."""
        raw = RawProgress()
        self._call(lib.vwn_model_update, float(loss), C.byref(raw))
        self.step = raw.step
        return Step(raw.step, raw.steps, raw.tokens, raw.loss, raw.lr, raw.grad_norm)

    def take(self, tokens: Numbers = None, labels: Numbers = None, document: Numbers = None, **inputs: Numbers) -> Step:
        """A whole step by the file's own losses: gradient() and update()."""
        with self._context.lock:
            self.gradient(tokens, labels, document, **inputs)
            return self.update()

    def save(self) -> None:
        """Writes a checkpoint into the run. UsageError: there is no run."""
        self._call(lib.vwn_model_save)
