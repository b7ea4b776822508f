"""What is the same in every package of `vwn emit torch`: operators over one C function, and modules with their parameters.

Each function of the table becomes two operators, itself and its gradient. They are opaque to PyTorch but for shapes
(register_fake), gradients (register_autograd), autocast and vmap, so that torch.compile keeps them in a graph.
"""

import ctypes
import functools
import json
import os
import struct

import torch
from torch import nn
from torch.autograd import forward_ad

from . import _table

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
# How the library reads and writes the numbers of a tensor: as kernels have them, float32 and int64, or in 16 bits.
_TYPES = {torch.float32: 0, torch.int64: 0, torch.bfloat16: 1, torch.float16: 2}


def _open():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_kernels.so")
    if not os.path.exists(path):
        folder = os.path.join(os.path.dirname(path), "csrc")
        raise ImportError(
            f"{_table.PACKAGE} has no library of kernels: pip install its folder, or sh {folder}/build.sh {path}"
        )
    library = ctypes.CDLL(path)
    library.vwn_missing.restype = ctypes.c_char_p
    library.vwn_workspace.restype = ctypes.c_int64
    library.vwn_workspace.argtypes = (ctypes.c_uint, ctypes.c_int64, ctypes.c_int64)
    library.vwn_call.restype = None
    library.vwn_call.argtypes = (
        ctypes.c_uint,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_uint64,
    )
    missing = library.vwn_missing()
    if missing:
        raise ImportError(
            f"{path} was built for processors with {missing.decode()}, which this one has not: build it here, or "
            "with VWN_MARCH=x86-64-v3 or less"
        )
    if library.vwn_functions() != 2 * len(_table.FUNCTIONS):
        raise ImportError(f"{path} was built from another file than {_table.PACKAGE}/_table.py: build it again")
    return library


_library = _open()


# ---- sizes ----


def _text(dims):
    def one(d):
        n, b, t = d
        words = ([str(n)] if n != 1 or not (b or t) else []) + ["B"] * b + ["T"] * t
        return "*".join(words)

    return "[" + ", ".join(one(d) for d in dims) + "]"


def _is_gate(name):
    """A few numbers for each position that one function hands to another: float32, whatever the state is."""
    return name.startswith("gate")


class _Function:
    """A row of the table: what it takes, and what sizes that means."""

    def __init__(self, number, row):
        self.number = number
        self.name = row["name"]
        self.what = row["name"].rsplit("_", 1)[0]
        self.of_rows = row["of_rows"]
        self.given = row["given"]
        self.wanted = row["wanted"]
        self.parameters = row["parameters"]
        self.ranges = row["ranges"]

    def expected(self, dims):
        return "[..., " + _text(dims[2:])[1:] if self.of_rows else _text(dims)

    def refuse(self, name, tensor, dims, why=""):
        raise ValueError(
            f"{_table.PACKAGE}.{self.what}: `{name}` has shape {list(tensor.shape)}, expected {self.expected(dims)}{why}"
        )

    def check(self, given, parameters, floats=_FLOATS):
        """Types and the shapes of parameters."""
        kind = None
        for (name, real, dims), x in zip(self.given, given):
            if not real and x.dtype != torch.int64:
                raise TypeError(f"{_table.PACKAGE}.{self.what}: `{name}` has dtype {x.dtype}, expected torch.int64")
            if real and x.dtype not in floats:
                raise TypeError(
                    f"{_table.PACKAGE}.{self.what}: `{name}` has dtype {x.dtype}, expected "
                    + (", ".join(str(kind).split(".")[1] for kind in floats))
                )
            if _is_gate(name):
                continue
            if real and kind and x.dtype != kind[1]:
                raise TypeError(
                    f"{_table.PACKAGE}.{self.what}: `{name}` has dtype {x.dtype}, but `{kind[0]}` has {kind[1]}"
                )
            if real:
                kind = (name, x.dtype)
        for (sizes, _), p in zip(self.parameters, parameters):
            if tuple(p.shape) != tuple(sizes):
                raise ValueError(
                    f"{_table.PACKAGE}.{self.what}: a parameter has shape {list(p.shape)}, expected {list(sizes)}"
                )
            if p.dtype not in _FLOATS + floats:
                raise TypeError(f"{_table.PACKAGE}.{self.what}: a parameter has dtype {p.dtype}, expected float32")

    def check_ranges(self, given):
        """Integers that are indices: kernels would read zeros for those beyond the end."""
        for i, below, spared in self.ranges:
            x = given[i]
            if x.numel() and (x.max() >= below or (not spared and x.min() < 0)):
                low, high = x.min().item(), x.max().item()
                raise IndexError(
                    f"{_table.PACKAGE}.{self.what}: `{self.given[i][0]}` has numbers from {low} to {high}, expected "
                    f"{'less than' if spared else '0 to'} {below if spared else below - 1}"
                )

    def sizes(self, given):
        """(B, T, leading axes). Of rows: B rows and T = 1."""
        if self.of_rows:
            lead = None
            for (name, _, dims), x in zip(self.given, given):
                rest = tuple(d[0] for d in dims[2:])
                n = x.dim() - len(rest)
                if n < 0 or tuple(x.shape[n:]) != rest:
                    self.refuse(name, x, dims)
                if lead is None:
                    lead, first = tuple(x.shape[:n]), (name, x)
                elif tuple(x.shape[:n]) != lead:
                    self.refuse(name, x, dims, f" with the leading axes of `{first[0]}`, {list(lead)}")
            rows = 1
            for n in lead:
                rows = rows * n
            return rows, 1, lead
        known = {}
        for name, _, dims in self.given:
            for axis, (n, b, t) in enumerate(dims):
                if n == 1 and b + t == 1:
                    x = given[[g[0] for g in self.given].index(name)]
                    if x.dim() != len(dims):
                        self.refuse(name, x, dims)
                    known.setdefault("B" if b else "T", x.shape[axis])
        B, T = known.get("B", 1), known.get("T", 1)
        for (name, _, dims), x in zip(self.given, given):
            if tuple(x.shape) != tuple(n * B**b * T**t for n, b, t in dims):
                self.refuse(name, x, dims, f" with B = {B}, T = {T}")
        if T > _table.CONTEXT:
            raise ValueError(f"{_table.PACKAGE}.{self.what}: {T} positions, and the model's context is {_table.CONTEXT}")
        return B, T, None

    def type(self, name, real, kind):
        return torch.int64 if not real else torch.float32 if _is_gate(name) else kind

    def shape(self, dims, B, T, lead):
        if lead is not None:
            return lead + tuple(d[0] for d in dims[2:])
        return tuple(n * B**b * T**t for n, b, t in dims)


# ---- calls ----


@functools.lru_cache(maxsize=256)
def _workspace(number, B, T):
    room = _library.vwn_workspace(number, B, T)
    if room < 0:
        raise MemoryError(f"{_table.PACKAGE}: no memory to lay out a call")
    return room


def _call(number, B, T, read, written):
    """Function `number` of the library. Both lists stay alive until it returns."""
    if B * T == 0:
        for x in written:
            x.zero_()
        return
    tensors = read + written
    types = bytes(_TYPES[x.dtype] for x in tensors)
    numbers = (ctypes.c_int64 * len(tensors))(*[x.numel() for x in tensors])
    room = _workspace(number, B, T) + sum(4 * n + 64 for n, kind in zip(numbers, types) if kind)
    workspace = torch.empty(room, dtype=torch.uint8)
    pointers = (ctypes.c_void_p * len(tensors))(*[x.data_ptr() for x in tensors])
    size = sum(x.numel() for x in written) * 4
    _library.vwn_call(number, B, T, pointers, types, numbers, workspace.data_ptr(), torch.get_num_threads(), size)


def _plain(x):
    return x.detach().contiguous()


def _single(outputs):
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _real(function, given):
    return [x for (_, real, _), x in zip(function.given, given) if real]


def _forward(function, tensors):
    given, parameters = tensors[: len(function.given)], tensors[len(function.given) :]
    function.check(given, parameters)
    B, T, lead = function.sizes(given)
    function.check_ranges(given)
    kind = _real(function, given)[0].dtype if _real(function, given) else torch.float32
    out = [
        torch.empty(function.shape(dims, B, T, lead), dtype=function.type(name, real, kind))
        for name, real, dims in function.wanted
    ]
    _call(2 * function.number, B, T, [_plain(x) for x in tensors], out)
    return _single(out)


def _fake_forward(function, tensors):
    given, parameters = tensors[: len(function.given)], tensors[len(function.given) :]
    function.check(given, parameters)
    B, T, lead = function.sizes(given)
    kind = _real(function, given)[0].dtype if _real(function, given) else torch.float32
    return _single(
        [
            given[0].new_empty(
                function.shape(dims, B, T, lead),
                dtype=function.type(name, real, kind),
            )
            for name, real, dims in function.wanted
        ]
    )


def _differentiated(function, tensors):
    """The tensors that have a gradient: what is given and real, and parameters that learn."""
    given, parameters = tensors[: len(function.given)], tensors[len(function.given) :]
    return _real(function, given) + [p for (_, learns), p in zip(function.parameters, parameters) if learns]


def _backward(function, tensors, gradients):
    given, _ = tensors[: len(function.given)], tensors[len(function.given) :]
    B, T, _lead = function.sizes(given)
    of = _differentiated(function, tensors)
    out = [torch.empty(x.shape, dtype=x.dtype) for x in of]
    _call(2 * function.number + 1, B, T, [_plain(x) for x in tensors] + [_plain(g) for g in gradients], out)
    return out


# ---- operators ----


def _batch(function, operator, is_gradient, info, in_dims, *tensors):
    """vmap: of rows with parameters that are the same for all, one call; else one for each."""
    n = len(function.given)

    def lists_of(x):
        return list(x[:n]), list(x[n]), list(x[n + 1 :])

    (given, parameters, grads), (of_given, of_parameters, of_grads) = lists_of(tensors), lists_of(in_dims)

    def part(xs, dims, i):
        return [x if d is None else x.select(d, i) for x, d in zip(xs, dims)]

    if function.of_rows and not is_gradient and all(d is None for d in of_parameters):
        moved = [x.expand(info.batch_size, *x.shape) if d is None else x.movedim(d, 0) for x, d in zip(given, of_given)]
        out = operator(*moved, parameters)
        return out, 0 if isinstance(out, torch.Tensor) else tuple([0] * len(out))
    each = [
        operator(*part(given, of_given, i), part(parameters, of_parameters, i), *part(grads, of_grads, i))
        for i in range(info.batch_size)
    ]
    if isinstance(each[0], torch.Tensor):
        return torch.stack(each), 0
    kind = type(each[0])
    return kind(torch.stack(x) for x in zip(*each)), kind([0] * len(each[0]))


# torch.library.custom_op would import the whole compiler of PyTorch, seconds of it, with the first call.
_operator_library = torch.library.Library("vwn_" + _table.PACKAGE, "DEF")


def _define(name, schema, implementation, fake):
    _operator_library.define(name + schema, tags=torch.Tag.pt2_compliant_tag)
    _operator_library.impl(name, implementation, "CPU")
    op = getattr(getattr(torch.ops, "vwn_" + _table.PACKAGE), name).default
    torch.library.register_fake(op, fake, lib=_operator_library)
    return op


def _make(function):
    """Operators take what is given, then a list of parameters: a schema has room for 64 arguments."""
    n = len(function.given)
    learned = [learns for _, learns in function.parameters]
    given = ", ".join(f"Tensor {name}" for name, _, _ in function.given)
    grads = "".join(f", Tensor grad_{name}" for name, _, _ in function.wanted)
    result = ", ".join(["Tensor"] * len(function.wanted))
    schema = f"({given}, Tensor[] parameters) -> " + (result if len(function.wanted) == 1 else f"({result})")

    def forward(*args):
        return _forward(function, [*args[:n], *args[n]])

    def fake_forward(*args):
        return _fake_forward(function, [*args[:n], *args[n]])

    def backward(*args):
        return _backward(function, [*args[:n], *args[n]], list(args[n + 1 :]))

    def fake_backward(*args):
        return [x.new_empty(x.shape) for x in _differentiated(function, [*args[:n], *args[n]])]

    def twice(*_):
        raise RuntimeError(f"{_table.PACKAGE}.{function.what} is differentiable once: its gradient has no gradient")

    op = _define(function.name, schema, forward, fake_forward)
    gradient = _define(
        function.name + "_gradient", f"({given}, Tensor[] parameters{grads}) -> Tensor[]", backward, fake_backward
    )

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:n], *inputs[n])

    def differentiate(ctx, *gradients):
        tensors = ctx.saved_tensors
        out = iter(gradient(*tensors[:n], list(tensors[n:]), *gradients))
        of_given = [next(out) if real else None for _, real, _ in function.given]
        of_parameters = [next(out) if learns else None for learns in learned]
        *given_needed, needed = ctx.needs_input_grad
        return (
            *[g if asked else None for g, asked in zip(of_given, given_needed)],
            [g if asked else None for g, asked in zip(of_parameters, needed)],
        )

    register_autograd, register_vmap = torch.library.register_autograd, torch.library.register_vmap
    register_autograd(op, differentiate, setup_context=keep, lib=_operator_library)
    register_autograd(gradient, twice, setup_context=keep, lib=_operator_library)
    torch.library.register_autocast(op, "cpu", torch.float32, lib=_operator_library)
    for which, is_gradient in ((op, False), (gradient, True)):
        register_vmap(which, functools.partial(_batch, function, which, is_gradient), lib=_operator_library)
    return op


_functions = [_Function(i, row) for i, row in enumerate(_table.FUNCTIONS)]
_operators = [_make(f) for f in _functions]
_modules = {row["path"]: row for row in _table.MODULES}


# ---- modules ----


def _draw(sizes, init):
    kind, a, b = init if init[0] != "list" else (init[0], init[1], None)
    x = torch.empty(sizes)
    with torch.no_grad():
        if kind == "fill":
            return x.fill_(a)
        if kind == "normal":
            return x.normal_(0, a)
        if kind == "trunc_normal":
            return nn.init.trunc_normal_(x, 0, a, -b * a, b * a) if a else x.zero_()
        if kind == "uniform":
            return x.uniform_(a, b)
        if kind == "list":
            return x.copy_(torch.tensor(a).reshape(sizes))
        rows, columns = ((1, 1) + tuple(sizes))[-2:]
        eye = torch.zeros(rows, columns)
        for i in range(rows):
            if i < columns:
                eye[i, i] = 1
        return x.copy_(eye.expand(sizes))


def _has_tangent(given):
    """PyTorch would take the tangent of what an operator makes for zero, without a word."""
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return False
    return any(forward_ad.unpack_dual(x).tangent is not None for x in given)


class _Module(nn.Module):
    """Parameters under the names that they have in the file, and functions of them."""

    def __init__(self, row, shared=None):
        super().__init__()
        self.path = row["path"]
        self._uses = row["functions"]
        for name, path, sizes, init, kind in row["parameters"]:
            *around, last = name.split(".")
            holder = self
            for part in around:  # not by add_module(): a part may have the name of a method
                holder = holder._modules.setdefault(part, nn.Module())
            known = None if shared is None else shared.get(path)
            x = known if known is not None else _draw(sizes, init)
            if known is None and kind != "buffer":
                x = nn.Parameter(x, requires_grad=kind == "learned")
            (holder._buffers if kind == "buffer" else holder._parameters)[last] = x
            if shared is not None:
                shared[path] = x

    def reset_parameters(self):
        """New initial values, as the file says."""
        for name, _, sizes, init, _ in _modules[self.path]["parameters"]:
            with torch.no_grad():
                self._tensor(name).copy_(_draw(sizes, init))

    def _tensor(self, name):
        *around, last = name.split(".")
        holder = self
        for part in around:
            holder = holder._modules[part]
        return holder._buffers[last] if last in holder._buffers else getattr(holder, last)

    def _in_float64(self, number, given, parameters):
        """By the formulas, which PyTorch differentiates any number of times."""
        from . import _formulas

        function = _functions[number]
        function.check(given, parameters, (torch.float64,))
        B, T, lead = function.sizes(given)
        function.check_ranges(given)
        if lead is not None:
            given = [x.reshape(B, 1, *x.shape[len(lead) :]) for x in given]
        out = _formulas.FUNCTIONS[number](B, T, *given, *[p.to(torch.float64) for p in parameters])
        return _single([x.reshape(function.shape(dims, B, T, lead)) for x, (_, _, dims) in zip(out, function.wanted)])

    def _apply_function(self, name, *given, then=None):
        """`then`: the connection behind this one, where the function has parameters of both."""
        number, names = self._uses[name]
        function = _functions[number]
        parameters = [self._tensor(p) for p in names] if then is None else self._of_both(names, then)
        for (port, _, _), x in zip(function.given, given):
            if not isinstance(x, torch.Tensor):
                raise TypeError(f"{_table.PACKAGE}.{name}: `{port}` is a tensor, got {type(x).__name__}")
            if x.device.type not in ("cpu", "meta"):
                raise ValueError(f"{_table.PACKAGE}.{name}: `{port}` is on {x.device}, and the kernels are for the CPU")
            if x.layout != torch.strided:
                raise TypeError(f"{_table.PACKAGE}.{name}: `{port}` is {x.layout}, expected a dense tensor")
        real = _real(function, given) or parameters
        if any(x.dtype == torch.float64 for x in real):
            return self._in_float64(number, given, parameters)
        if _has_tangent(given):
            raise NotImplementedError(f"{_table.PACKAGE}.{name} has no forward-mode derivative (jvp): use the backward one")
        return _operators[number](*given, parameters)

    def extra_repr(self):
        return self.path


def _row(kind, path):
    """Of the module of this kind that has the path, or the number among them."""
    known = [p for p in paths() if _modules[p]["kind"] == kind]
    if isinstance(path, int) and -len(known) <= path < len(known):
        path = known[path]
    if path not in known:
        raise ValueError(f"{_table.PACKAGE} has no {kind} `{path}`; there are {', '.join(known) or 'none'}")
    return _modules[path]


class Model(_Module):
    """The whole model. Its parameters have the names that they have in runs of vwn, and so has its state_dict()."""

    def __init__(self):
        if "" not in _modules:
            raise ValueError(f"{_table.PACKAGE} has parts of a model, {', '.join(paths())}, and not all of it")
        super().__init__(_modules[""])
        self.inputs = {name: [g[0] for g in _functions[number].given] for name, (number, _) in self._uses.items()}

    def forward(self, *given, **named):
        """The output, such as logits, of its inputs, such as tokens; with those of the loss, such as labels, the loss.

        tokens [B, T], labels [B, T] -> a scalar, the sum of the losses that are trained; labels below 0 do not count."""
        order = self.inputs.get("loss") or self.inputs["output"]
        if len(given) > len(order):
            raise TypeError(f"{_table.PACKAGE}.Model takes {', '.join(order)}, got {len(given)} tensors")
        for name, x in zip(order, given):
            if name in named:
                raise TypeError(f"{_table.PACKAGE}.Model got `{name}` twice")
            named[name] = x
        which = next((w for w in ("loss", "output") if set(self.inputs.get(w, ())) == set(named)), None)
        if which is None:
            takes = " or ".join(f"{', '.join(names)} for the {name}" for name, names in self.inputs.items())
            raise TypeError(f"{_table.PACKAGE}.Model takes {takes}, got {', '.join(named) or 'none'}")
        return self._apply_function(which, *[named[name] for name in self.inputs[which]])


class Block(_Module):
    """A module of the model, a sublayer with its norms. `path`: its path in the file, or its number among those of the package."""

    def __init__(self, path=0):
        super().__init__(_row("block", path))
        self.inputs = [g[0] for g in _functions[self._uses["block"][0]].given]

    def forward(self, *given):
        """What it makes of its inputs, in the order of `inputs`."""
        if len(given) != len(self.inputs):
            raise TypeError(f"{_table.PACKAGE}.Block takes {', '.join(self.inputs)}, got {len(given)} tensors")
        return self._apply_function("block", *given)


class Connection(_Module):
    """What joins one sublayer to the state. `path`: of the sublayer in the file, or its number among them."""

    def __init__(self, path=0, shared=None):
        super().__init__(_row("connection", path), shared)
        self._place = list(_modules).index(self.path)

    def read(self, state):
        """What the sublayer is given of the state."""
        return self._apply_function("read", state)

    def write(self, state, y):
        """The state behind the sublayer, which returned y."""
        return self._apply_function("write", state, y)

    def begin(self, state):
        """x, and what `end` needs of the state besides: read() and write() compute that twice. None: there is no such thing."""
        if "begin" not in self._uses:
            return self.read(state), None
        x, *gates = self._apply_function("begin", state)
        return x, gates

    def end(self, state, y, gates):
        """The state behind the sublayer, with what begin() gave."""
        if gates is None:
            return self.write(state, y)
        return self._apply_function("end", state, y, *gates)

    def next(self, state, y, gates, then):
        """The state behind the sublayer, and begin() of the connection `then`, in one pass over the state."""
        if gates is None or "next" not in self._uses or self._place + 1 != then._place:
            state = self.end(state, y, gates)
            return (state, *then.begin(state))
        state, x, *gates = self._apply_function("next", state, y, *gates, then=then)
        return state, x, gates

    def _of_both(self, paths, then):
        """Parameters by their whole paths."""
        known = {}
        for part in (then, self):
            known.update((path, part._tensor(name)) for name, path, *_ in _modules[part.path]["parameters"])
        return [known[path] for path in paths]

    def forward(self, state, layer, *args, **kwargs):
        """The state behind `layer`, any callable whose first argument is a tensor."""
        x, gates = self.begin(state)
        return self.end(state, layer(x, *args, **kwargs), gates)


class Open(_Module):
    """Makes the first state of an embedding."""

    def __init__(self, shared=None):
        if "open" not in _modules:
            raise ValueError(f"{_table.PACKAGE} has no connections")
        super().__init__(_modules["open"], shared)

    def forward(self, x):
        return self._apply_function("open", x)


class Close(_Module):
    """Makes what a head is given of the last state."""

    def __init__(self, shared=None):
        if "close" not in _modules:
            raise ValueError(f"{_table.PACKAGE}: there is no connection whose closed state is read")
        super().__init__(_modules["close"], shared)

    def forward(self, state):
        return self._apply_function("close", state)


class Connections(nn.Module):
    """Layers, with a connection around each: opens a state, lets every layer read and write it, closes it."""

    def __init__(self, layers):
        super().__init__()
        layers = list(layers)
        if len(layers) != len(paths()):
            raise ValueError(
                f"{_table.PACKAGE} has {len(paths())} connections ({paths()[0]} ... {paths()[-1]}), got {len(layers)} layers"
            )
        shared = {}
        self.layers = nn.ModuleList(layers)
        self.open = Open(shared)
        self.connections = nn.ModuleList([Connection(path, shared) for path in paths()])
        self.close = Close(shared)

    def forward(self, x, *args, **kwargs):
        state = self.open(x)
        x, gates = self.connections[0].begin(state)
        for i, (connection, layer) in enumerate(zip(self.connections, self.layers)):
            y = layer(x, *args, **kwargs)
            if i + 1 == len(self.layers):
                state = connection.end(state, y, gates)
            else:
                state, x, gates = connection.next(state, y, gates, self.connections[i + 1])
        return self.close(state)


# ---- weights of a run ----

_SAFETENSORS = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def tensors(module):
    """The parameters of this package in a module, by the names that they have in checkpoints of vwn."""
    found = {}
    for part in module.modules():
        if isinstance(part, _Module):
            for name, path, *_ in _modules[part.path]["parameters"]:
                known = found.setdefault(path, part._tensor(name))
                if known is not part._tensor(name) and not torch.equal(known, part._tensor(name)):
                    raise ValueError(f"{_table.PACKAGE}: two modules have another `{path}`")
    return found


def save(module, file):
    """Writes them as a .safetensors file, which `start_from` of a .vwn file reads."""
    header, data, at = {}, [], 0
    for path, x in tensors(module).items():
        x = x.detach().to("cpu", torch.float32).contiguous()
        data.append(x.numpy().tobytes())
        header[path] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + len(data[-1])]}
        at += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def load(module, file):
    """Reads them from a run of vwn, its last checkpoint, or from any .safetensors file that has all of them."""
    wanted = tensors(module)
    if os.path.isdir(file):
        folder = os.path.join(file, "ckpt")
        steps = sorted(n for n in os.listdir(folder) if n.startswith("step_") and n.endswith(".safetensors"))
        if not steps:
            raise ValueError(f"{file} has no checkpoint in ckpt/")
        file = os.path.join(folder, steps[-1])
    with open(file, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        missing = [path for path in wanted if path not in header]
        if missing:
            raise ValueError(f"{file} has no `{missing[0]}`" + (f", nor {len(missing) - 1} others" if missing[1:] else ""))
        for path, x in wanted.items():
            row = header[path]
            if row["shape"] != list(x.shape) or row["dtype"] not in _SAFETENSORS:
                raise ValueError(f"{file}: `{path}` is {row['dtype']} {row['shape']}, expected F32 {list(x.shape)}")
    with torch.no_grad(), open(file, "rb") as f:
        for part in module.modules():
            if not isinstance(part, _Module):
                continue
            for name, path, *_ in _modules[part.path]["parameters"]:
                begin, end = header[path]["data_offsets"]
                f.seek(8 + n + begin)
                x = part._tensor(name)
                if x.numel():
                    read = torch.frombuffer(bytearray(f.read(end - begin)), dtype=_SAFETENSORS[header[path]["dtype"]])
                    x.copy_(read.reshape(x.shape))


def paths():
    """The paths of the sublayers whose connections there are, or of the blocks, in the order of the file."""
    return [path for path, row in _modules.items() if row["kind"] in ("connection", "block")]


def describe():
    """The modules with their shapes, as text."""
    lines = []
    for path, row in _modules.items():
        lines.append(path or _table.MODEL)
        for name, (number, _) in row["functions"].items():
            f = _functions[number]
            given = ", ".join(f"{n} {f.expected(dims)}" for n, _, dims in f.given)
            wanted = ", ".join(f"{n} {f.expected(dims)}" for n, _, dims in f.wanted)
            lines.append(f"  {name}({given}) -> {wanted}")
        for name, _, sizes, init, kind in row["parameters"]:
            lines.append(f"  {name} {list(sizes)} {init[0]}{'' if kind == 'learned' else ', ' + kind}")
    return "\n".join(lines)
