"""vwn in Python: check, train and look into models that are described in .vwn files.

    import vwn

    vwn.check("model.vwn")                            # what is wrong with it: a list of Diagnostic
    for event in vwn.train("model.vwn"):              # a run in runs/NAME
        print(event.kind, event.step, event.loss)
    run = vwn.Run("runs/quickstart")
    run.logits(tokens)                                # [B, T, vocabulary], of tokens [B, T]
    run.tensors(["layer[2].ffn.state"], tokens)       # any value by its name
    trainer = vwn.Trainer("model.vwn")                # steps with batches and losses of your own

Nothing but the standard library is needed. Arrays of numpy and tensors of PyTorch go in, and `Tensor.numpy()` and
`Tensor.torch()` come out, where these are installed. B is sequences, T is positions of each.
"""
from ._file import check, cost, params
from ._library import BugError, CheckError, ClosedError, Diagnostic, DivergedError, Error, InputError, InterruptedRun, \
    MachineError, UsageError, lib as _lib
from ._model import Input, Run, Step, Trainer
from ._tensor import Tensor
from ._train import Event, train

__version__: str = _lib.vwn_version().decode()

__all__ = ["BugError", "CheckError", "ClosedError", "Diagnostic", "DivergedError", "Error", "Event", "Input", "InputError",
           "InterruptedRun", "MachineError", "Run", "Step", "Tensor", "Trainer", "UsageError", "check", "cost", "params", "train"]
