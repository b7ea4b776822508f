"""Operators of the functions in _formulas.py that PyTorch has in another form, or not at all. All is float64 and differentiable."""

import torch

_ROUNDED = {16: torch.bfloat16, 17: torch.float16, 8: torch.float8_e4m3fn, 9: torch.float8_e5m2}


def real(x):
    return torch.tensor(x, dtype=torch.float64)


def mask(x):
    return x.to(torch.float64)


def iota(shape, axis):
    """The index along an axis."""
    view = [1] * len(shape)
    view[axis] = shape[axis]
    return torch.arange(shape[axis]).view(view).expand(shape)


def round_to(x, code):
    kind = _ROUNDED[code]
    y = x.clamp(-448, 448) if kind == torch.float8_e4m3fn else x
    return x + (y.to(kind).to(torch.float64) - x).detach()


def pad(x, axis, before, size):
    """Zeros around an axis, which has `size` then."""
    around = [0, 0] * (x.dim() - 1 - axis) + [before, size - before - x.shape[axis]]
    return torch.nn.functional.pad(x, around)


def shift(x, axis, by, fill):
    """out[p] = x[p - by], or fill where there is none."""
    at = torch.arange(x.shape[axis]) - by
    inside = (at >= 0) & (at < x.shape[axis])
    view = [1] * x.dim()
    view[axis] = x.shape[axis]
    moved = x.index_select(axis, at.clamp(0, max(0, x.shape[axis] - 1)))
    return torch.where(inside.view(view), moved, torch.tensor(fill, dtype=x.dtype))


def cumsum(x, axis, reverse):
    return torch.cumsum(x.flip(axis), axis).flip(axis) if reverse else torch.cumsum(x, axis)


def matmul(a, b, transposed):
    return (a.mT if transposed & 1 else a) @ (b.mT if transposed & 2 else b)


def gather(table, index):
    """Rows of a table; zeros for an index outside of it."""
    inside = (index >= 0) & (index < table.shape[0])
    rows = table[torch.where(inside, index, torch.zeros_like(index))]
    return torch.where(inside.view(*index.shape, *[1] * (table.dim() - 1)), rows, rows.new_zeros(()))


def pick(x, index):
    """x [.., n], index [.., k] -> [.., k]; zero for an index outside."""
    inside = (index >= 0) & (index < x.shape[-1])
    return torch.where(inside, x.gather(-1, torch.where(inside, index, torch.zeros_like(index))), x.new_zeros(()))


def top_k(x, k):
    """Indices of the k largest, of equal ones the lowest first."""
    return torch.sort(x, dim=-1, descending=True, stable=True).indices[..., :k]


def expert_matmul(x, w, index, transposed):
    """x [.., I] or [.., k, I], w [E, I, O], index [.., k] -> [.., k, O]; zeros for an index that is no expert."""
    if x.dim() == index.dim():
        x = x.unsqueeze(-2).expand(*index.shape, x.shape[-1])
    w = w.mT if transposed & 1 else w
    out = x.new_zeros(*index.shape, w.shape[2])
    for e in range(w.shape[0]):
        out = out + torch.where((index == e).unsqueeze(-1), x @ w[e], x.new_zeros(()))
    return out


def sdpa(inputs, flags, window, scale, softcap):
    """q [B, T, H, d], k and v [B, S, K, ..], perhaps the first key that a query sees [B, T]."""
    q, k, v = (x.transpose(1, 2) for x in inputs[:3])
    heads, T, S = q.shape[1] // k.shape[1], q.shape[2], k.shape[2]
    k, v = (x.repeat_interleave(heads, 1) for x in (k, v))
    score = scale * (q @ k.mT)
    if softcap > 0:
        score = softcap * torch.tanh(score / softcap)
    t, u = torch.arange(T).unsqueeze(-1), torch.arange(S)
    seen = torch.ones(T, S, dtype=torch.bool)
    if flags & 1:
        seen = seen & (u <= t)
    if window:
        seen = seen & ((t - u).abs() < window)
    if len(inputs) > 3:
        seen = seen & (u >= inputs[3].view(-1, 1, T, 1))
    score = score.masked_fill(~seen, float("-inf"))
    return (torch.softmax(score, -1) @ v).transpose(1, 2)
