"""The library behind the package: where it is, its structures and functions, and its errors as exceptions.

In:  libvwn.so.     Out: `lib`, whose functions are those of vwn.h; `Context`, which calls them.
The one idea: a structure here is one of vwn.h, field by field; tests/python compares all of them with the header.
"""
from __future__ import annotations

import ctypes as C
import json
import os
import signal
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

Settings = Union[Mapping[str, Any], Iterable[str], None]

# ---- where it is ----


def _find() -> str:
    here = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("VWN_LIBRARY")
    up = os.path.join(here, "..", "..", "..")
    places = [named] if named else [
        os.path.join(here, "libvwn.so"),  # a wheel has it
        os.path.join(up, "build", "libvwn.so"),  # the sources
        os.path.join(up, "..", "lib", "libvwn.so"),  # PREFIX/share/vwn/python/vwn
    ]
    for place in places:
        if place and os.path.isfile(place):
            return os.path.abspath(place)
    raise ImportError("libvwn.so is not there (" + ", ".join(os.path.normpath(p) for p in places if p) +
                      "): build vwn, or name it in VWN_LIBRARY")


# ---- the structures of vwn.h ----

RANK_MOST = 8
Put = C.CFUNCTYPE(None, C.c_void_p, C.POINTER(C.c_char), C.c_size_t)
OnEvent = C.CFUNCTYPE(None, C.c_void_p, C.c_void_p)


class Writer(C.Structure):
    _fields_ = [("put", Put), ("user", C.c_void_p)]


class Options(C.Structure):
    _fields_ = [("resize", C.c_void_p), ("user", C.c_void_p), ("memory_limit", C.c_size_t), ("threads", C.c_int),
                ("cache_dir", C.c_char_p), ("compiler", C.c_char_p), ("compile_seconds", C.c_int),
                ("reference", C.c_bool), ("device", C.c_char_p), ("chosen", C.c_void_p), ("chosen_user", C.c_void_p),
                ("compiling", C.c_void_p), ("compiling_user", C.c_void_p), ("workbench", C.c_void_p)]


class FileOptions(C.Structure):
    _fields_ = [("path", C.c_char_p), ("text", C.c_char_p), ("text_length", C.c_size_t),
                ("set", C.POINTER(C.c_char_p)), ("n_set", C.c_size_t), ("folder", C.c_char_p),
                ("model_only", C.c_bool), ("no_sweeps", C.c_bool), ("resume", C.c_char_p),
                ("deny", C.POINTER(C.c_char_p)), ("n_deny", C.c_size_t)]


class ReportOptions(C.Structure):
    _fields_ = [("json", C.c_bool), ("batch_seqs", C.c_int64), ("ranks", C.c_int64), ("bandwidth", C.c_double),
                ("latency", C.c_double), ("positions", C.c_int64), ("pass", C.c_char_p), ("gpu", C.c_bool),
                ("program", C.c_char_p)]


class TrainOptions(C.Structure):
    _fields_ = [("run", C.c_char_p), ("resume", C.c_bool), ("restarted", C.c_bool), ("overwrite", C.c_bool), ("dry_run", C.c_bool),
                ("until_steps", C.c_int64), ("event", OnEvent), ("user", C.c_void_p)]


class RawEvent(C.Structure):
    _fields_ = [("kind", C.c_int), ("step", C.c_int64), ("steps", C.c_int64), ("tokens", C.c_int64),
                ("loss", C.c_double), ("eval_loss", C.c_double), ("lr", C.c_double), ("grad_norm", C.c_double),
                ("tokens_per_second", C.c_double), ("seconds", C.c_double), ("eta_seconds", C.c_double),
                ("text", C.c_char_p), ("json", C.c_char_p)]


class SampleOptions(C.Structure):
    _fields_ = [("source", C.c_char_p), ("prompts", C.POINTER(C.c_char_p)), ("n_prompts", C.c_size_t),
                ("tokens", C.c_int64), ("temperature", C.c_double), ("top_k", C.c_int64), ("top_p", C.c_double),
                ("min_p", C.c_double), ("repetition", C.c_double), ("stops", C.POINTER(C.c_char_p)),
                ("n_stops", C.c_size_t), ("texts", C.c_size_t), ("seed", C.c_uint64), ("last", C.c_bool),
                ("json", C.c_bool), ("recompute", C.c_bool)]


class RawTensor(C.Structure):
    _fields_ = [("name", C.c_char_p), ("type", C.c_char_p), ("rank", C.c_int), ("extent", C.c_int64 * RANK_MOST),
                ("data", C.c_void_p), ("memory", C.c_void_p)]


class ModelOptions(C.Structure):
    _fields_ = [("source", C.c_char_p), ("last", C.c_bool), ("unit", C.c_void_p), ("train", C.c_bool),
                ("run", C.c_char_p), ("resume", C.c_bool), ("overwrite", C.c_bool)]


class Batch(C.Structure):
    _fields_ = [("input", C.POINTER(RawTensor)), ("n_inputs", C.c_size_t), ("training", C.c_bool)]


class RawProgress(C.Structure):
    _fields_ = [("step", C.c_int64), ("steps", C.c_int64), ("tokens", C.c_int64), ("loss", C.c_double),
                ("lr", C.c_double), ("grad_norm", C.c_double)]


# Those of vwn.h, by their names there.
STRUCTURES = {"vwn_writer": Writer, "vwn_options": Options, "vwn_file_options": FileOptions,
              "vwn_report_options": ReportOptions, "vwn_train_options": TrainOptions, "vwn_event": RawEvent,
              "vwn_sample_options": SampleOptions, "vwn_tensor": RawTensor, "vwn_model_options": ModelOptions,
              "vwn_batch": Batch, "vwn_progress": RawProgress}
# Its enumerators, by their names there.
NUMBERS = {"VWN_OK": 0, "VWN_INPUT": 1, "VWN_USAGE": 2, "VWN_CHECK": 3, "VWN_DIVERGED": 4, "VWN_ENVIRONMENT": 5,
           "VWN_CHANGES": 6, "VWN_BUG": 70, "VWN_INTERRUPTED": 130, "VWN_REPORT_CHECK": 0, "VWN_REPORT_PARAMS": 1,
           "VWN_REPORT_PARAMS_BY_LAYER": 2, "VWN_REPORT_PARAMS_BY_NODE": 3, "VWN_REPORT_PARAMS_BY_GROUP": 4,
           "VWN_REPORT_PARAMS_BY_TENSOR": 5, "VWN_REPORT_COST": 7, "VWN_PARAMETER": 0, "VWN_GRADIENT": 1,
           "VWN_RANK_MOST": RANK_MOST}

path = _find()
try:
    lib = C.CDLL(path)
except OSError as wrong:
    raise ImportError(f"{path} cannot be opened: {wrong}") from None


def _declare() -> None:
    context = unit = model = memory = C.c_void_p
    text, out, tensors = C.c_char_p, C.POINTER(Writer), C.POINTER(RawTensor)
    table: Dict[str, Tuple[Any, List[Any]]] = {
        "vwn_version": (text, []),
        "vwn_build_id": (text, []),
        "vwn_open": (context, [C.POINTER(Options)]),
        "vwn_close": (None, [context]),
        "vwn_message": (text, [context]),
        "vwn_warning": (text, [context]),
        "vwn_check": (C.c_int, [context, C.POINTER(FileOptions), C.POINTER(unit)]),
        "vwn_diagnostics": (C.c_size_t, [context, out, C.c_bool, C.c_bool, C.POINTER(C.c_size_t)]),
        "vwn_write_report": (C.c_int, [unit, C.c_int, C.POINTER(ReportOptions), out]),
        "vwn_train": (C.c_int, [unit, C.POINTER(TrainOptions)]),
        "vwn_interrupt": (None, [context]),
        "vwn_sample": (C.c_int, [context, C.POINTER(SampleOptions), out]),
        "vwn_memory_keep": (memory, [memory]),
        "vwn_memory_release": (None, [memory]),
        "vwn_tensor_dlpack": (C.c_void_p, [tensors]),
        "vwn_dlpack_unused": (None, [C.c_void_p]),
        "vwn_model_open": (C.c_int, [context, C.POINTER(ModelOptions), C.POINTER(model)]),
        "vwn_model_close": (None, [model]),
        "vwn_model_describe": (C.c_int, [model, out]),
        "vwn_model_run": (C.c_int, [model, C.POINTER(Batch), C.POINTER(text), C.c_size_t, tensors]),
        "vwn_model_encode": (C.c_int, [model, text, C.c_size_t, tensors]),
        "vwn_model_decode": (C.c_int, [model, C.POINTER(C.c_int64), C.c_size_t, out]),
        "vwn_model_tensor": (C.c_int, [model, C.c_int, text, tensors]),
        "vwn_model_put": (C.c_int, [model, C.c_int, tensors]),
        "vwn_model_gradient": (C.c_int, [model, C.POINTER(Batch), C.POINTER(C.c_double)]),
        "vwn_model_backward": (C.c_int, [model, C.POINTER(Batch), tensors, C.c_size_t, C.c_bool]),
        "vwn_model_update": (C.c_int, [model, C.c_double, C.POINTER(RawProgress)]),
        "vwn_model_batch": (C.c_int, [model, tensors, C.POINTER(C.c_size_t)]),
        "vwn_model_save": (C.c_int, [model]),
    }
    for name, (result, arguments) in table.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}: it is of another version of vwn than this package") from None
        function.restype, function.argtypes = result, arguments


_declare()

# ---- diagnostics and errors ----


class Diagnostic(NamedTuple):
    """What vwn says about a place in a file."""
    level: str  #: "error" or "warning"
    code: str  #: "E0101"; `vwn explain E0101` says more
    message: str
    file: str  #: "" where it is of no place
    line: int  #: from 1; 0 where it is of no place
    column: int  #: from 1, in characters
    label: str  #: what stands below the place
    notes: Tuple[str, ...]
    help: Tuple[str, ...]  #: what would mend it
    lint: Optional[str]  #: the lint that a warning is of

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.file else ""
        lines = [f"{place}{self.level}{f'[{self.code}]' if self.code else ''}: {self.message}"]
        return "\n".join(lines + [f"  note: {n}" for n in self.notes] + [f"  help: {h}" for h in self.help])


def _diagnostic(row: Dict[str, Any]) -> Diagnostic:
    spans = row.get("spans") or []
    main = next((s for s in spans if s.get("primary")), spans[0] if spans else {})
    return Diagnostic(row["level"], row.get("code") or "", row["message"], main.get("file", ""), main.get("line", 0),
                      main.get("column", 0), main.get("label") or "", tuple(row.get("notes", ())),
                      tuple(h["text"] for h in row.get("help", ())), row.get("lint"))


class Error(Exception):
    """What vwn cannot do. `str()` has its whole message."""

    def __init__(self, message: str, diagnostics: Tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics  #: of the file, where it is at fault


class InputError(Error, ValueError):
    """A file, a checkpoint or a text has errors."""


class UsageError(Error, ValueError):
    """A call that is wrong: a name, a shape, an id out of range, a run that is not there."""


class CheckError(InputError):
    """A `check` of the file is false."""


class DivergedError(Error, ArithmeticError):
    """NaN, infinity or a spike of the loss stopped training. The weights are as before that step."""


class MachineError(Error, RuntimeError):
    """Memory, a compiler, a device, files or the disk."""


class BugError(Error, RuntimeError):
    """A broken invariant of vwn."""


class ClosedError(UsageError):
    """The model was closed, or belongs to another process."""


class InterruptedRun(Error):
    """Stopped from outside, with a checkpoint."""


_OF_STATUS = {1: InputError, 2: UsageError, 3: CheckError, 4: DivergedError, 5: MachineError, 70: BugError,
              130: InterruptedRun}

# ---- calls ----

# All but those that tell of a fault of the call itself.
_SIGNALS = signal.valid_signals() - {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}


def masked(function: Callable[..., Any], *arguments: Any) -> Any:
    """A call that computes, in which no handler of a signal runs: products keep numbers where it would write. One that comes
    meanwhile is heard behind it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        return function(*arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Text:
    """A vwn_writer that keeps what is written."""

    def __init__(self) -> None:
        self.parts: List[bytes] = []
        self._put = Put(self._take)
        self.raw = Writer(self._put, None)

    def _take(self, _user: Any, text: Any, length: int) -> None:
        self.parts.append(C.string_at(text, length))

    def bytes(self) -> bytes:
        return b"".join(self.parts)

    def __str__(self) -> str:
        return self.bytes().decode("utf-8", "replace")


def encoded(text: Any, what: str) -> bytes:
    """UTF-8 of a string or a path; it can have no character 0."""
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if isinstance(text, bytes):
        data = text
    elif isinstance(text, str):
        data = text.encode("utf-8", "surrogateescape")
    else:
        raise TypeError(f"{what} is a string, and {type(text).__name__} was given")
    if b"\0" in data:
        raise ValueError(f"{what} has a character 0")
    return data


def strings(items: Iterable[bytes]) -> Tuple[Any, int]:
    """char *[] and how many."""
    all_items = list(items)
    return (C.c_char_p * (len(all_items) + 1))(*all_items), len(all_items)


def settings(values: Settings) -> List[bytes]:
    """"PATH=EXPR" of a mapping, whose values are written as vwn writes them, or of such strings."""
    if values is None:
        return []
    if isinstance(values, (str, bytes)):
        raise TypeError("set is a mapping or a list of \"PATH=EXPR\", and one string was given")
    rows: List[bytes] = []
    for item in values:
        if isinstance(values, Mapping):
            value = values[item]
            text = str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else repr(value)
            if not isinstance(value, (bool, int, float, str)):
                raise TypeError(f"the setting {item!r} is a number, a string of vwn's text, or a boolean")
            item = f"{item}={text}"
        rows.append(encoded(item, "a setting"))
    return rows


class Context:
    """A vwn_context, one call at a time: calls of several threads wait for each other."""

    def __init__(self, threads: int = 0, device: Optional[str] = None, cache: Optional[str] = None) -> None:
        if not isinstance(threads, int) or isinstance(threads, bool):
            raise TypeError("threads is an integer")
        if not 0 <= threads <= 1024:
            raise UsageError("threads is from 0, as many as there are, to 1024")
        options = Options(threads=threads, device=None if device is None else encoded(device, "device"),
                          cache_dir=None if cache is None else encoded(cache, "cache"))
        self.handle = lib.vwn_open(C.byref(options))
        if not self.handle:
            raise MachineError("there is no memory for a context")
        self.lock = threading.RLock()
        self.process = os.getpid()
        self._kept: List[Any] = []
        self._finalizer = weakref.finalize(self, _close, lib.vwn_close, self.handle, self.process)
        self._finalizer.atexit = False  # whoever uses it says when it ends

    def close(self) -> None:
        self._finalizer()

    def keep(self, what: Any) -> None:
        """As long as this: what the library reads later."""
        self._kept.append(what)

    def diagnostics(self) -> Tuple[Diagnostic, ...]:
        out = Text()
        lib.vwn_diagnostics(self.handle, C.byref(out.raw), True, False, None)
        return tuple(_diagnostic(json.loads(line)) for line in str(out).splitlines() if line)

    def error(self, status: int) -> Error:
        """Of a status that is not VWN_OK."""
        message = (lib.vwn_message(self.handle) or b"").decode("utf-8", "replace")
        said = self.diagnostics()
        wrong = [str(d) for d in said if d.level == "error"] if status in (1, 3) or not message else []
        return _OF_STATUS.get(status, Error)("\n".join([message] * bool(message) + wrong) or f"status {status}", said)

    def ok(self, status: int) -> None:
        if status:
            raise self.error(status)

    def check(self, file: Any, set: Settings = None, **more: Any) -> Tuple[int, Any]:
        """vwn_check of a path, or of a text, which has a line: the status and the vwn_unit."""
        rows, n = strings(settings(set))
        where = encoded(file, "file")
        options = FileOptions(path=where, set=rows, n_set=n, **more)
        if isinstance(file, (str, bytes)) and b"\n" in where:
            options.path, options.text, options.text_length = b"-", where, len(where)
        unit = C.c_void_p()
        self._kept += [rows, options]  # the unit reads them later
        return masked(lib.vwn_check, self.handle, C.byref(options), C.byref(unit)), unit


def _close(close: Callable[[Any], None], handle: Any, process: int) -> None:
    """Not in a child, which has the memory, and none of the threads."""
    if os.getpid() == process:
        close(handle)
