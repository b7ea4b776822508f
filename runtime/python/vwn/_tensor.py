"""Tensors: what the library has computed, seen in place; and what others have, for the library.

In:  memory of the library, arrays of anybody.     Out: `Tensor`; `taken()`.
The one idea: memory counts its holders in the library, and whatever looks at it here is one of them, so no view ever dangles.
"""
from __future__ import annotations

import array
import ctypes as C
import weakref
from typing import Any, List, Optional, Sequence, Tuple

from ._library import RANK_MOST, RawTensor, encoded, lib

_CTYPE = {"float32": C.c_float, "float64": C.c_double, "int64": C.c_int64}
_LETTER = {"float32": "f", "float64": "d", "int64": "q"}
_api = C.pythonapi
_api.PyCapsule_New.restype = C.py_object
_api.PyCapsule_New.argtypes = [C.c_void_p, C.c_char_p, C.c_void_p]
_api.PyCapsule_GetPointer.restype = C.c_void_p
_api.PyCapsule_GetPointer.argtypes = [C.py_object, C.c_char_p]


class _DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device", C.c_int32), ("device_id", C.c_int32), ("rank", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("offset", C.c_uint64)]


class _DLManaged(C.Structure):
    pass


_Deleter = C.CFUNCTYPE(None, C.POINTER(_DLManaged))
_DLManaged._fields_ = [("tensor", _DLTensor), ("context", C.c_void_p), ("deleter", _Deleter)]


class Tensor:
    """Numbers of a model, row-major, seen where the library has them: nothing is copied, and nothing can be written.

    A result is never written again: later calls and steps use other memory as long as anybody looks at this. A parameter or a
    gradient is the model's own: its numbers change with every step. Both stay when the model is closed.

    ``numpy.asarray(t)``, ``torch.from_dlpack(t)``, ``memoryview(t)`` (of Python 3.12; ``t.memory`` always), ``t[0, 1]``,
    ``t.tolist()``, and of one number ``float(t)`` read it.
    """

    __slots__ = ("name", "dtype", "shape", "_raw", "_memory", "__weakref__")

    def __init__(self, raw: RawTensor) -> None:
        """Takes over the hold on the memory that `raw` comes with."""
        #: what it is called in the model
        self.name: str = raw.name.decode("utf-8", "replace")
        #: "float32" or "int64"; "float64" on the device "reference"
        self.dtype: str = raw.type.decode()
        self.shape: Tuple[int, ...] = tuple(raw.extent[:raw.rank])
        self._raw = raw
        self._memory: Optional[memoryview] = None
        weakref.finalize(self, lib.vwn_memory_release, raw.memory).atexit = False

    @property
    def size(self) -> int:
        """How many numbers it has."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def memory(self) -> memoryview:
        """A view of all numbers, of this shape, that cannot be written; it keeps the memory."""
        if self._memory is None:
            class Numbers(_CTYPE[self.dtype] * self.size):  # type: ignore[misc]
                pass  # an array of ctypes with room for an attribute

            numbers = Numbers.from_address(self._raw.data)
            held = RawTensor(memory=lib.vwn_memory_keep(self._raw.memory))
            weakref.finalize(numbers, lib.vwn_memory_release, held.memory).atexit = False
            view = memoryview(numbers).cast("B").cast(_LETTER[self.dtype], self.shape) if self.size else memoryview(b"")
            self._memory = view.toreadonly()
        return self._memory

    def __buffer__(self, flags: int) -> memoryview:
        return self.memory

    @property
    def __array_interface__(self) -> dict:
        kind = "i" if self.dtype == "int64" else "f"
        return {"shape": self.shape, "typestr": f"<{kind}{C.sizeof(_CTYPE[self.dtype])}",
                "data": (self._raw.data, True), "version": 3}

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        """A capsule of DLPack on the CPU."""
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError("the numbers lie on the CPU")
        if copy:
            raise BufferError("the numbers are shared and not copied")
        managed = lib.vwn_tensor_dlpack(C.byref(self._raw))
        if not managed:
            raise MemoryError
        return _api.PyCapsule_New(managed, b"dltensor", C.cast(lib.vwn_dlpack_unused, C.c_void_p))

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)

    def numpy(self) -> Any:
        """The same as an array of numpy, which keeps the memory."""
        import numpy
        return numpy.asarray(self)

    def torch(self) -> Any:
        """The same as a tensor of PyTorch, which keeps the memory. PyTorch would let you write to it: do not."""
        import torch
        return torch.from_dlpack(self)

    def tolist(self) -> Any:
        """Lists of lists of numbers; of no axis the number."""
        return self.memory.tolist()

    def __getitem__(self, at: Any) -> Any:
        """A number of all indices, or a list below fewer of them."""
        at = at if isinstance(at, tuple) else (at,)
        if len(at) == len(self.shape) and all(isinstance(i, int) for i in at):
            return self.memory[at]
        value = self.tolist()
        for i in at:
            value = value[i]
        return value

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("it is one number")
        return self.shape[0]

    def __float__(self) -> float:
        if self.size != 1:
            raise TypeError(f"{self.name} has {self.size} numbers")
        return float(_CTYPE[self.dtype].from_address(self._raw.data).value)

    def __repr__(self) -> str:
        return f"vwn.Tensor({self.name!r}, {self.dtype}, {list(self.shape)})"


def handed(raws: Sequence[RawTensor]) -> List[Tensor]:
    """What the library has filled in."""
    return [Tensor(RawTensor.from_buffer_copy(raw)) for raw in raws]


def let_go(raws: Sequence[RawTensor]) -> None:
    """Of what nobody will look at."""
    for raw in raws:
        lib.vwn_memory_release(raw.memory)


# ---- what others have ----

class Taken:
    """Numbers for the library, during a call: `raw` is their vwn_tensor."""

    def __init__(self, name: str, dtype: str, shape: Sequence[int], data: Any) -> None:
        if len(shape) > RANK_MOST:
            raise ValueError(f"{name} has {len(shape)} axes, and {RANK_MOST} is the most")
        self.raw = RawTensor(name=encoded(name, "a name"), type=dtype.encode(), rank=len(shape))
        self.raw.extent[:len(shape)] = list(shape)
        self.shape = tuple(shape)
        self._data = data
        self.raw.data = data.buffer_info()[0] if isinstance(data, array.array) else C.addressof(data)


def _flatten(name: str, value: Any) -> Tuple[List[Any], List[int]]:
    """Numbers of lists in lists, and the shape."""
    shape: List[int] = []
    level = [value]
    while level and isinstance(level[0], (list, tuple, range)):
        if len(shape) == RANK_MOST:
            raise ValueError(f"{name} has more than {RANK_MOST} axes")
        n = len(level[0])
        if any(not isinstance(x, (list, tuple, range)) or len(x) != n for x in level):
            raise ValueError(f"the lists of {name} are not of one length")
        shape.append(n)
        level = [y for x in level for y in x]
    return level, shape


def _from_dlpack(name: str, value: Any) -> Any:
    """(letter, shape, bytes) of what exchanges tensors by DLPack alone, as PyTorch's do."""
    if getattr(value, "requires_grad", False) is True:
        value = value.detach()
    try:
        if int(value.__dlpack_device__()[0]) != 1:
            raise TypeError("it lies on a device: bring it to the CPU first")
        capsule = value.__dlpack__()
    except Exception as wrong:  # each library has its own
        raise TypeError(f"{name} cannot be read: {wrong}") from wrong
    managed = C.cast(_api.PyCapsule_GetPointer(capsule, b"dltensor"), C.POINTER(_DLManaged))
    t = managed.contents.tensor
    letters = {(0, 8): "b", (0, 16): "h", (0, 32): "i", (0, 64): "q", (1, 8): "B", (1, 16): "H", (1, 32): "I",
               (1, 64): "Q", (2, 32): "f", (2, 64): "d"}
    letter = letters.get((t.code, t.bits)) if t.lanes == 1 else None
    if not letter:
        raise TypeError(f"{name} is of a type that is none of int64, float32 and float64")
    shape = list(t.shape[:t.rank])
    size = C.sizeof({"b": C.c_int8, "h": C.c_int16, "i": C.c_int32, "q": C.c_int64, "B": C.c_uint8, "H": C.c_uint16,
                     "I": C.c_uint32, "Q": C.c_uint64, "f": C.c_float, "d": C.c_double}[letter])
    n, plain = 1, []
    for extent in reversed(shape):
        plain.insert(0, n)
        n *= extent
    start = (t.data or 0) + t.offset
    if not t.strides or n == 0 or all(s == p or e == 1 for s, p, e in zip(t.strides[:t.rank], plain, shape)):
        data = C.string_at(start, n * size) if n else b""
    else:
        strides = list(t.strides[:t.rank])
        places = [0]
        for extent, stride in zip(shape, strides):
            places = [p + i * stride for p in places for i in range(extent)]
        data = b"".join(C.string_at(start + p * size, size) for p in places)
    return letter, shape, data  # the capsule goes, and its tensor with it


def _of_lists(name: str, value: Any, integers: bool) -> Taken:
    numbers, shape = _flatten(name, value)
    for x in numbers:
        if isinstance(x, (bool, str)) or not hasattr(x, "__index__" if integers else "__float__"):
            raise TypeError(f"{name} is of {'integers' if integers else 'real numbers'}, and has {type(x).__name__}")
    try:
        if integers:
            return Taken(name, "int64", shape, array.array("q", [x.__index__() for x in numbers]))
        return Taken(name, "float32", shape, array.array("f", [float(x) for x in numbers]))
    except OverflowError:
        raise ValueError(f"{name} has a number beyond 64 bits") from None


def _from_buffer(name: str, view: memoryview) -> Any:
    letter = view.format.lstrip("@=<")
    if view.shape is None or len(letter) != 1 or letter not in "bBhHiIlLqQfd":
        raise TypeError(f"{name} is of the type {view.format!r}, which is none of int64, float32 and float64")
    return letter, list(view.shape), view.tobytes()


def taken(name: str, value: Any, integers: bool) -> Taken:
    """Numbers of `value`, copied: integers as int64, real numbers as float32, or float64 where they are that.

    `value`: an array of numpy, a tensor of PyTorch, a Tensor, anything with a buffer or DLPack, or lists of numbers.
    Raises TypeError for another type of numbers, ValueError for lists of several lengths."""
    if isinstance(value, (list, tuple, range, int, float)):
        return _of_lists(name, value, integers)
    try:
        view = value.memory if isinstance(value, Tensor) else memoryview(value)
    except (TypeError, ValueError, BufferError):
        if not hasattr(value, "__dlpack__") or isinstance(value, type):
            raise TypeError(f"{name} is numbers, and {type(value).__name__} was given") from None
        letter, shape, data = _from_dlpack(name, value)
    else:
        letter, shape, data = _from_buffer(name, view)
    if integers != (letter not in "fd"):
        raise TypeError(f"{name} is of {'integers' if integers else 'real numbers'}")
    numbers = array.array(letter)
    numbers.frombytes(data)
    if integers and letter != "q":
        try:
            numbers = array.array("q", numbers)
        except OverflowError:
            raise ValueError(f"{name} has a number beyond 64 bits") from None
    return Taken(name, {"f": "float32", "d": "float64"}.get(letter, "int64"), shape, numbers)
