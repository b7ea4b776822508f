"""A connection as PyTorch uses operators: registration, compilers, autocast, transforms, copies, memory, and what is refused."""

import copy
import io
import os
import pickle
import sys
import tempfile

import torch
from oracle import ghc, text
from package import check, distance, emitted, finish, randomised, refuses, short
from torch import nn
from torch.utils.checkpoint import checkpoint

D, M, N = 48, 2, 3
block, shape, read, write, E = ghc(D, M, N)
package = emitted("behaviour", text(block, D, E), "--node", "*")
ops = torch.ops.vwn_behaviour
torch.manual_seed(0)
c = randomised(package.Connection("layer[1].linear"))


def state(*lead, **how):
    return torch.randn(*lead, *shape, **how)


def result(*lead, **how):
    return torch.randn(*lead, D, **how)


def arguments(name, *given):
    return [*given, [c._tensor(p).detach().clone().requires_grad_() for p in c._uses[name][1]]]


# ---- registration: all four tests of opcheck, of the operator and of its gradient ----
names = [f"{f.name}" for f in package._op._functions]
check("the package has seven functions", len(names) == 7, names)
for name, given in (("read", [state(2, 5, requires_grad=True)]), ("write", [state(2, 5, requires_grad=True), result(2, 5, requires_grad=True)])):
    op = package._op._operators[c._uses[name][0]]
    found = torch.library.opcheck(op, tuple(arguments(name, *given)))
    check(f"opcheck of {name}", len(found) == 4 and set(found.values()) == {"SUCCESS"}, found)
    # a view of a larger tensor, of which contiguous() makes a temporary
    odd = [x.detach().transpose(0, 1).requires_grad_() for x in given]
    found = torch.library.opcheck(op, tuple(arguments(name, *odd)))
    check(f"opcheck of {name}, not contiguous", set(found.values()) == {"SUCCESS"}, found)

# ---- gradcheck in float64, of the implementation that the kernels are compared with, and of the package's formulas ----
p64 = {n: v.detach().double().requires_grad_() for n, v in short(c).items()}
H64 = state(1, 2, dtype=torch.float64, requires_grad=True)
y64 = result(1, 2, dtype=torch.float64, requires_grad=True)
check("gradcheck of read", torch.autograd.gradcheck(lambda H, *p: read(H, dict(zip(p64, p))), (H64, *p64.values())))
check("gradcheck of write", torch.autograd.gradcheck(lambda H, y, *p: write(H, y, dict(zip(p64, p))), (H64, y64, *p64.values())))
for name, given in (("read", [H64]), ("write", [H64, y64])):
    f = getattr(c, name)
    check(f"gradcheck of {name} in float64", torch.autograd.gradcheck(f, given))
    check(f"gradgradcheck of {name} in float64", torch.autograd.gradgradcheck(f, given))
    check(f"{name} in float64 is the implementation", distance(f(*given), dict(read=read, write=write)[name](*given, p64)) < 1e-14)
    check(f"{name} in float64 is near", distance(f(*[x.float() for x in given]), f(*given)) < 1e-6)


# ---- a net around it ----
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(D, D)
        self.c = copy.deepcopy(c)

    def forward(self, H):
        return self.c(H, self.inner)


net = Net()


def gradients(f, *x):
    x = [v.detach().clone().requires_grad_() for v in x]
    net.zero_grad()
    out = f(*x)
    out.float().square().sum().backward()
    return [out.detach()] + [v.grad for v in x] + [p.grad.clone() for p in net.parameters()]


def same(what, a, b, close=0.0):
    for i, (x, y) in enumerate(zip(a, b)):
        d = distance(x, y)
        check(f"{what}: tensor {i}", d <= close, f"({d:.1e})")


H = state(2, 6)
plain = gradients(net, H)

if sys.argv[1:] != ["quick"]:
    compiled = torch.compile(net, fullgraph=True, backend="inductor")
    same("torch.compile, the whole graph", gradients(compiled, H), plain, 1e-6)
    dynamic = torch.compile(net, fullgraph=True, dynamic=True)
    for rows in ((2, 6), (3, 5), (7,)):
        Hr = state(*rows)
        same(f"torch.compile, any sizes {rows}", gradients(dynamic, Hr), gradients(net, Hr), 1e-6)

exported = torch.export.export(net, (H,))
check("export keeps the operators", "vwn_behaviour.end" in str(exported.graph), exported.graph)
same("export computes the same", [exported.module()(H)], [net(H)])
from torch.fx.experimental.proxy_tensor import make_fx

check("make_fx sees one call", str(make_fx(lambda v: c.read(v))(H).graph).count("vwn_behaviour.read") == 1)

# ---- precision ----
with torch.autocast("cpu", dtype=torch.bfloat16):
    out = net(H)
check("autocast computes the connection in float32", out.dtype == torch.float32)
check("autocast is near", distance(out, plain[0]) < 2e-2)
for half in (torch.bfloat16, torch.float16):
    Hh, yh = H.to(half).requires_grad_(), result(2, 6).to(half)
    out = c.write(Hh, yh)
    check(f"{half} in, {half} out", out.dtype == half)
    right = write(Hh.detach().double(), yh.double(), {n: v.double() for n, v in short(c).items()})
    check(f"{half} is rounded once", distance(out, right.to(half)) < 1e-3)
    single = c.write(Hh.detach().float(), yh.float())
    check(f"{half}: the bits of float32, rounded", torch.equal(out, single.to(half)))
    out.sum().backward()
    check(f"{half} has a gradient of its type", Hh.grad.dtype == half and torch.isfinite(Hh.grad).all())

# ---- transforms ----
Hb, yb = state(4, 3), result(4, 3)
same("vmap over rows", [torch.vmap(c.write)(Hb, yb)], [c.write(Hb, yb)])
same("vmap over another axis", [torch.vmap(c.read, in_dims=1, out_dims=1)(Hb)], [c.read(Hb)])
params = {n: p.detach() for n, p in c.named_parameters()}
stacked = {n: torch.stack([p, 2 * p, 0.5 * p]) for n, p in params.items()}


def call(p, H):
    op = package._op._operators[c._uses["read"][0]]
    return op(H, [p[n] for n in c._uses["read"][1]])


each = torch.stack([call({n: p[i] for n, p in stacked.items()}, Hb) for i in range(3)])
same("vmap over parameters", [torch.vmap(call, in_dims=(0, None))(stacked, Hb)], [each])
try:
    g = torch.func.grad(lambda v: c.read(v).sum())(H)
    v = H.clone().requires_grad_()
    c.read(v).sum().backward()
    same("torch.func.grad", [g], [v.grad])
    print("torch.func.grad: permitted")
except (RuntimeError, NotImplementedError) as e:
    print(f"torch.func.grad: refused by PyTorch {torch.__version__}: {str(e).splitlines()[0][:120]}")
refuses("torch.func.jvp", NotImplementedError, ["jvp"], lambda: torch.func.jvp(c.read, (H,), (H,)))


def twice():
    v = H.clone().requires_grad_()
    (g,) = torch.autograd.grad(c.read(v).square().sum(), v, create_graph=True)
    g.sum().backward()


refuses("a second derivative", RuntimeError, ["differentiable once"], twice)

# ---- copies ----
again = copy.deepcopy(c)
same("deepcopy", [again.write(H, result(2, 6, generator=torch.Generator().manual_seed(1)))],
     [c.write(H, result(2, 6, generator=torch.Generator().manual_seed(1)))])
check("deepcopy has its own parameters", all(a.data_ptr() != b.data_ptr() for a, b in zip(again.parameters(), c.parameters())))
back = pickle.loads(pickle.dumps(c))
same("pickle", [back.read(H)], [c.read(H)])
file = io.BytesIO()
torch.save(c.state_dict(), file)
file.seek(0)
fresh = package.Connection("layer[1].linear")
fresh.load_state_dict(torch.load(file))
same("state_dict", [fresh.read(H)], [c.read(H)])
check("names of the file", "connection.A_in" in c.state_dict() and "connection.norm.g" in c.state_dict(), list(c.state_dict()))
torch.manual_seed(3)
one = package.Connection(0)
one.reset_parameters()
check("initial values of the file", torch.equal(one.connection.A_carry, torch.eye(N)) and not one.connection.W_b.any()
      and torch.equal(one.connection.S_b, torch.ones(M, N)))

# ---- memory and graphs ----
strided = state(6, 2).transpose(0, 1)
same("not contiguous", gradients(net, strided), gradients(net, strided.contiguous()))
wide = torch.randn(2, 6, N, 2 * shape[1])[..., ::2]
same("every other element", [c.read(wide)], [c.read(wide.contiguous())])
shifted = torch.randn(2 * 6 * N * shape[1] + 1)[1:].view(2, 6, *shape)
same("not at a multiple of 64 bytes", gradients(net, shifted), gradients(net, shifted.clone()))
same("expanded", [c.read(state(1, 1).expand(2, 6, *shape) * 0 + 1)], [c.read(torch.ones(2, 6, *shape))])
negative = torch.view_as_complex(torch.randn(2, 6, *shape, 2)).conj().imag
same("negated without being written", [c.read(negative)], [c.read(negative.clone())])

empty = state(0, 6, requires_grad=True)
out = c.write(empty, result(0, 6))
check("zero rows", tuple(out.shape) == (0, 6, *shape))
c.zero_grad()
out.sum().backward()
check("zero rows have gradients of zero", all(p.grad is None or not p.grad.any() for p in c.parameters()) and c.connection.B.grad is not None)

frozen = copy.deepcopy(c).requires_grad_(False)
v = H.clone().requires_grad_()
frozen.write(v, result(2, 6)).sum().backward()
check("parameters that do not learn", v.grad is not None and all(p.grad is None for p in frozen.parameters()))
c.zero_grad()
c.write(H, result(2, 6)).sum().backward()
check("inputs that do not", all(c._tensor(n).grad is not None for n in c._uses["write"][1]))
with torch.no_grad():
    check("no_grad", not c.read(H).requires_grad)
with torch.inference_mode():
    same("inference_mode", [c.read(H)], [c.read(H)])

same("used twice", gradients(lambda v: net(v) + net(v), H)[1:], [2 * 2 * g for g in plain[1:]], 1e-6)
v = H.clone().requires_grad_()
loss = net(v).square().sum()
loss.backward(retain_graph=True)
first = v.grad.clone()
loss.backward()
same("retain_graph", [v.grad], [2 * first])
for reentrant in (False, True):
    same(f"checkpoint, reentrant {reentrant}", gradients(lambda v: checkpoint(net, v, use_reentrant=reentrant), H), plain)
same("a gradient that is not contiguous", gradients(lambda v: net(v).transpose(0, 1), H)[1:], plain[1:])
y = result(2, 6).requires_grad_()
c.write(H, y).sum().backward()
check("expanded gradient", torch.isfinite(y.grad).all())

for threads in (1, 2, 3):
    torch.set_num_threads(threads)
    same(f"{threads} threads", gradients(net, state(9, 67, generator=torch.Generator().manual_seed(5))),
         gradients(net, state(9, 67, generator=torch.Generator().manual_seed(5))))
torch.set_num_threads(2)
from concurrent.futures import ThreadPoolExecutor

big = state(64, 33)
right = c.read(big)
with ThreadPoolExecutor(4) as pool:
    found = list(pool.map(lambda _: c.read(big), range(32)))
check("32 calls from 4 threads", all(torch.equal(x, right) for x in found))
expected = right.detach().numpy().tobytes()
with torch.no_grad():
    pid = os.fork()
    if not pid: # where loops of PyTorch itself wait for threads that are no more
        os._exit(0 if c.read(big).numpy().tobytes() == expected else 1)
check("in a child after fork", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0)

# ---- what is refused ----
refuses("another width", ValueError, ["`state`", "[2, 6, 3, 25]", "[..., 3, 24]"], lambda: c.read(torch.randn(2, 6, 3, 25)))
refuses("no streams", ValueError, ["`state`", "[3]"], lambda: c.read(torch.randn(3)))
refuses("other positions", ValueError, ["`y`", "[2, 5, 48]", "[2, 6]"], lambda: c.write(H, result(2, 5)))
refuses("a state in float64 alone", TypeError, ["`y`", "float32", "float64"], lambda: c.write(H.double(), result(2, 6)))
refuses("integers", TypeError, ["`state`", "int64"], lambda: c.read(torch.zeros(2, 6, *shape, dtype=torch.int64)))
refuses("complex", TypeError, ["`state`", "complex64"], lambda: c.read(torch.zeros(2, 6, *shape, dtype=torch.complex64)))
refuses("two types", TypeError, ["`y`", "bfloat16", "float32"], lambda: c.write(H, result(2, 6).bfloat16()))
refuses("sparse", TypeError, ["`state`", "sparse"], lambda: c.read(H.to_sparse()))
refuses("no tensor", TypeError, ["`state`", "list"], lambda: c.read([1, 2]))
refuses("None", TypeError, ["`y`", "NoneType"], lambda: c.write(H, None))
refuses("a parameter of another shape", ValueError, ["[4, 2]", "[3, 2]"],
        lambda: package._op._operators[0](H, [torch.zeros(4, 2), *arguments("read")[0][1:]]))
refuses("no such connection", ValueError, ["layer[9].linear", "layer[1].linear"], lambda: package.Connection("layer[9].linear"))
refuses("a list of another length", ValueError, ["2 connections", "3 layers"], lambda: package.Connections([nn.Identity()] * 3))
meta = copy.deepcopy(c).to("meta").read(torch.empty(2, 6, *shape, device="meta"))
check("meta tensors have shapes", meta.device.type == "meta" and tuple(meta.shape) == (2, 6, D))
from torch._subclasses.fake_tensor import FakeTensorMode

with FakeTensorMode(allow_non_fake_inputs=True) as mode:
    check("fake tensors", tuple(c.read(torch.empty(2, 6, *shape)).shape) == (2, 6, D))

# ---- layers ----
layers = [nn.Linear(D, D) for _ in package.paths()]
whole = package.Connections(layers)
x = torch.randn(2, 6, E, requires_grad=True)
out = whole(x)
s = whole.open(x)
for k, f in zip(whole.connections, layers):
    s = k.write(s, f(k.read(s)))
same("a list of layers", [out], [whole.close(s)], 1e-6)
randomised(whole)
one_pass, apart = [
    [out, *torch.autograd.grad(out.square().sum(), [x, *whole.parameters()])]
    for out in (whole(x), whole.close(whole.connections[1](whole.connections[0](whole.open(x), layers[0]), layers[1])))
]
same("a write and the next read as one kernel", one_pass, apart, 1e-5)
check("it is used", "next" in whole.connections[0]._uses and "next" not in whole.connections[1]._uses)
out = whole(x)
out.sum().backward()
check("all parameters have gradients", all(p.grad is not None for p in whole.parameters()))
finish()
