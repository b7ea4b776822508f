"""Training as `vwn train` does it, its events one by one.

In:  a file.     Out: a run, and its events while it goes on.
The one idea: the library trains on a thread of its own, on which no signal is handled; whoever stops listening stops the run.
"""
from __future__ import annotations

import atexit
import ctypes as C
import json
import queue
import threading
from typing import Any, Dict, Iterator, NamedTuple, Optional, Set, Tuple

from ._library import Context, OnEvent, RawEvent, Settings, TrainOptions, UsageError, encoded, lib, masked

_KINDS = ("start", "compile", "step", "eval", "checkpoint", "note", "end", "warning", "growth", "output", "block", "tensor")


class Event(NamedTuple):
    """What happens in a run, as a line of its events.jsonl says it."""
    kind: str  #: "start", "compile", "step", "eval", "checkpoint", "note", "warning", "growth", "end", ...
    step: int  #: steps that are done
    steps: int  #: of the whole run
    tokens: int
    loss: float  #: of the last step; NaN: there was none
    eval_loss: float  #: of the last evaluation; NaN: there was none
    lr: float
    grad_norm: float
    tokens_per_second: float
    seconds: float
    eta_seconds: float
    text: str  #: a sentence, or ""
    fields: Dict[str, Any]  #: the line of events.jsonl


def _event(raw: RawEvent) -> Event:
    return Event(_KINDS[raw.kind] if 0 <= raw.kind < len(_KINDS) else str(raw.kind), raw.step, raw.steps, raw.tokens,
                 raw.loss, raw.eval_loss, raw.lr, raw.grad_norm, raw.tokens_per_second, raw.seconds, raw.eta_seconds,
                 (raw.text or b"").decode("utf-8", "replace"), json.loads(raw.json) if raw.json else {})


def train(file: Any, set: Settings = None, *, run: Any = None, resume: bool = False, overwrite: bool = False,
          dry_run: bool = False, until: int = 0, threads: int = 0, device: Optional[str] = None,
          cache: Optional[str] = None) -> Iterator[Event]:
    """Trains a model and yields the events of the run.

    `file`: a path, or the text of a file, which has a line break; `set`: overrides, as {"train.seed": 2}. `run`: the folder; None is
    runs/NAME. `resume`: goes on from the last checkpoint; `overwrite`: starts anew. `until`: stops behind so many steps.

    The file is checked before this returns: InputError, UsageError and TypeError come at once. What happens later is raised
    where the next event is asked for. Leaving the loop, closing the generator, or KeyboardInterrupt in it ends the run as Ctrl-C ends
    `vwn train`: the step is finished and a checkpoint written before this returns.

        for event in vwn.train("quickstart.vwn", {"train.length": "100 steps"}):
            if event.kind == "step":
                print(event.step, event.loss)
    """
    if not isinstance(until, int) or isinstance(until, bool):
        raise TypeError("until is an integer")
    if not 0 <= until < 1 << 62:
        raise UsageError("until is a number of steps")
    context = Context(threads, device, cache)
    try:
        where = None if run is None else encoded(run, "run")
        again = {"resume": where or b""} if resume else {}
        status, unit = context.check(file, set, **again)
        context.ok(status)
        options = TrainOptions(run=where, resume=bool(resume), overwrite=bool(overwrite), dry_run=bool(dry_run),
                               until_steps=until)
    except BaseException:
        context.close()
        raise
    return _events(context, unit, options)


def _events(context: Context, unit: Any, options: TrainOptions) -> Iterator[Event]:
    events: "queue.SimpleQueue[Any]" = queue.SimpleQueue()

    def listen(_user: Any, event: int) -> None:
        try:
            events.put(_event(RawEvent.from_address(event)))
        except Exception as wrong:  # it cannot go through the library
            events.put(wrong)
            lib.vwn_interrupt(context.handle)

    listener = OnEvent(listen)
    options.event = listener

    def work() -> None:
        try:
            events.put(masked(lib.vwn_train, unit, C.byref(options)))
        except BaseException as wrong:
            events.put(wrong)

    thread = threading.Thread(target=work, name="vwn train", daemon=True)
    running = (context, thread)
    thread.start()
    _running.add(running)
    ended = False
    try:
        while not ended:
            item = events.get()
            ended = isinstance(item, (int, BaseException))
            if not ended:
                yield item
            elif isinstance(item, BaseException):
                raise item
            elif item:
                raise context.error(item)
    finally:
        _stop(running)
        context.close()


_running: Set[Tuple[Context, threading.Thread]] = set()


def _stop(running: Tuple[Context, threading.Thread]) -> None:
    context, thread = running
    if thread.is_alive():
        lib.vwn_interrupt(context.handle)
    thread.join()
    _running.discard(running)


@atexit.register
def _stop_all() -> None:
    """An interpreter that ends stops its runs first: a thread that is left in the library would come back to nothing."""
    for running in list(_running):
        _stop(running)
