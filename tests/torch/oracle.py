"""Connections in plain PyTorch, written from the papers' formulas, in any dtype; they know nothing of vwn.

A row: the name, the block in a file, the state's shape, and two functions: what a sublayer reads, and the state behind it. p has the
parameters by their last names.
"""

import math

import torch


def rms(x, eps=1e-6):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()


def layer_norm(x, eps=1e-5):
    x = x - x.mean(-1, keepdim=True)
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()


# ---- generalized hyper-connections (Virtual Width Networks) ----


def ghc_gates(H, p, D, m, n):
    z = rms(H) * p["norm.g"]
    tau = math.sqrt(D / m)
    b = p["B"] + p["S_b"] * torch.tanh(z @ p["W_b"] / tau).mT
    ai = p["A_in"] + p["S_ai"] * torch.tanh(z @ p["W_ai"] / tau)
    ac = p["A_carry"] + p["S_ac"] * torch.tanh(z @ p["W_ac"] / tau)
    return b, ai, ac


def ghc(D, m, n):
    def read(H, p):
        return (ghc_gates(H, p, D, m, n)[1].mT @ H).flatten(-2)

    def write(H, y, p):
        b, _, ac = ghc_gates(H, p, D, m, n)
        return b.mT @ y.unflatten(-1, (m, D // m)) + ac.mT @ H

    return f"ghc(m = {m}, n = {n}, dynamic = true, reduce = linear(out = D))", (n, D // m), read, write, D * n // m


# ---- hyper-connections ----


def hyper(D, n):
    def gates(H, p):
        z = layer_norm(H)
        b = p["B"] + p["s_b"] * torch.tanh(z @ p["W_b"]).mT
        am = p["A_m"] + p["s_a"] * torch.tanh(z @ p["W_m"])
        ar = p["A_r"] + p["s_a"] * torch.tanh(z @ p["W_r"])
        return b, am, ar

    def read(H, p):
        return (gates(H, p)[1].mT @ H).squeeze(-2)

    def write(H, y, p):
        b, _, ar = gates(H, p)
        return b.mT @ y.unsqueeze(-2) + ar.mT @ H

    return f"hyper(n = {n}, dynamic = true)", (n, D), read, write, D


# ---- manifold-constrained hyper-connections ----


def mhc(D, n, iterations=20):
    def gates(H, p):
        u = rms(H.flatten(-2)) @ p["W"]
        r, w, c = u.split([n, n, n * n], -1)
        r = torch.sigmoid(p["read"] + p["s_r"] * r.unsqueeze(-1))
        w = 2 * torch.sigmoid(p["write"] + p["s_w"] * w.unsqueeze(-2))
        P = torch.exp(p["carry"] + p["s_c"] * c.unflatten(-1, (n, n)))
        for _ in range(iterations):
            P = P / P.sum(-1, keepdim=True)
            P = P / P.sum(-2, keepdim=True)
        return r, w, P

    def read(H, p):
        return (gates(H, p)[0].mT @ H).squeeze(-2)

    def write(H, y, p):
        _, w, P = gates(H, p)
        return w.mT @ y.unsqueeze(-2) + P.mT @ H

    return f"mhc(n = {n}, iterations = {iterations})", (n, D), read, write, D


# ---- frac-connections ----


def frac(D, m):
    def gates(H, p):
        z = rms(H) * p["norm.g"]
        b = p["b_s"] + p["s_b"] * torch.tanh(z @ p["W_b"])
        Y = p["Y_s"] + p["s_a"] * torch.tanh(z @ p["W_y"])
        A = p["A_s"] + p["s_a"] * torch.tanh(z @ p["W_a"])
        return b, Y, A

    def read(H, p):
        return (gates(H, p)[1].mT @ H).flatten(-2)

    def write(H, y, p):
        b, _, A = gates(H, p)
        return b * y.unflatten(-1, (m, D // m)) + A.mT @ H

    return f"frac(m = {m}, dynamic = true)", (m, D // m), read, write, D


# ---- AltUp; the second sublayer computes stream 2 ----


def altup(D, n):
    active = 1

    def read(H, p):
        return H[..., active, :]

    def write(H, y, p):
        predicted = p["P"] @ H
        y = H[..., active, :] + y
        return predicted + p["g"] * (y - predicted[..., active, :]).unsqueeze(-2)

    return f"altup(n = {n})", (n, D), read, write, D


# ---- a user's own ----

MOMENTUM = """
block momentum(decay: float) {
  block open()(e: [.., D]) -> [.., 2, D] {
    x = reshape(e, [.., 1, D])
    return concat(x, 0 * x, axis = -2)
  }
  block step(k: int)(H: [.., 2, D], f: block) -> [.., 2, D] {
    param gain : [] = ones { group = static }
    let parts = split(H, 2, axis = -2)
    x = parts[1]
    v = decay * parts[2] + gain * reshape(f(reshape(x, [.., D])), [.., 1, D])
    return concat(x + v, v, axis = -2)
  }
  block close()(H: [.., 2, D]) -> [.., D] { return reshape(first(H, 1, axis = -2), [.., D]) }
}
"""


def momentum(D):
    def read(H, p):
        return H[..., 0, :]

    def write(H, y, p):
        v = 0.5 * H[..., 1, :] + p["gain"] * y
        return torch.stack([H[..., 0, :] + v, v], -2)

    return "momentum(decay = 0.5)", (2, D), read, write, D


def residual(D):
    return "residual(branch_scale = 0.5)", (D,), lambda H, p: H, lambda H, y, p: H + 0.5 * y, D


def post_norm(D):
    def write(H, y, p):
        return rms(H + y) * p["norm.g"]

    return "post_norm(norm = rms_norm(eps = 1e-6))", (D,), lambda H, p: H, write, D


def cases():
    return {
        "ghc_2_3": ghc(48, 2, 3),
        "ghc_4_8": ghc(64, 4, 8),
        "ghc_8_64": ghc(64, 8, 64),
        "hyper_4": hyper(40, 4),
        "mhc_4": mhc(24, 4),
        "mhc_wide": mhc(528, 4),
        "frac_4": frac(64, 4),
        "altup_3": altup(40, 3),
        "momentum": momentum(24),
        "residual": residual(24),
        "post_norm": post_norm(24),
    }


def text(connection, D, E):
    """A file with two sublayers of this connection."""
    return f"""edition = 1
import "std/transformer"
import "std/connections"
{MOMENTUM if connection.startswith("momentum") else ""}
let D = {D}
model net {{
  context    = 64
  width      = D
  mask       = causal
  init       = normal(std = 0.02)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = {connection}
  embed tokens {{ vocab = 256, width = {E} }}
  for layer in 1..2 {{
    linear {{ out = D }}
  }}
  head lm {{ norm = rms_norm(eps = 1e-6) }}
}}
"""
