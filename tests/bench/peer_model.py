"""peer_model.py - gpt.vwn and vwn23.vwn written by hand in PyTorch, and a step of training them.

In:  torch; the model's name and sizes; how attention is computed: "eager" (written out) or "sdpa" (PyTorch's own).
Out: the model; for each of its weights the names of those of vwn that it is made of, so that both can be shown to
     compute the same; an optimizer; a step.

The one idea: no straw man, and one for all. The model is written for speed (one product for q, k and v, one for gate
and up, one for all dynamic coefficients), nothing is read back in a step, and what is measured on a CPU (peer.py) is
what a GPU is measured with (tests/gpu/peer.py).
"""
import math

HEADS, VOCAB, EPS = 8, 256, 1e-6
M, N = 2, 3


def build(torch, kind, layers, width=256, context=256, hidden=704, attention="eager"):
    """The model, and for each of its weights the names of vwn's that it is made of."""
    nn, F = torch.nn, torch.nn.functional
    D, T, HEAD = width, context, width // HEADS

    class Norm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.g = nn.Parameter(torch.ones(width))

        def forward(self, x):
            x = x.float()
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * self.g

    def linear(inputs, outputs):
        return nn.Linear(inputs, outputs, bias=False)

    frequency = 10000.0 ** (-torch.arange(0, HEAD, 2, dtype=torch.float64) / HEAD)
    angle = torch.arange(T, dtype=torch.float64)[:, None] * frequency
    tables = {"cos": torch.cat([angle.cos()] * 2, -1).float(),
              "sin": torch.cat([-angle.sin(), angle.sin()], -1).float(),
              "mask": torch.full((T, T), -math.inf).triu(1)}

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = linear(D, 3 * D), linear(D, D)
            for name, table in tables.items():
                self.register_buffer(name, table, persistent=False)

        def rotate(self, x):
            return (x * self.cos + x.roll(HEAD // 2, -1) * self.sin).to(x.dtype)

        def eager(self, q, k, v):
            q, k, v = (z.reshape(-1, T, HEAD) for z in (q, k, v))
            p = torch.baddbmm(self.mask, q, k.transpose(1, 2), alpha=HEAD ** -0.5).softmax(-1)
            return torch.bmm(p, v).view(-1, HEADS, T, HEAD)

        def forward(self, x):
            batch = x.shape[0]
            q, k, v = self.qkv(x).view(batch, T, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
            q, k = self.rotate(q), self.rotate(k)
            y = self.eager(q, k, v) if attention == "eager" else F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(batch, T, D))

        names = {"qkv.weight": ("q_proj.W", "k_proj.W", "v_proj.W"), "out.weight": ("o_proj.W",)}

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.down = linear(D, 2 * hidden), linear(hidden, D)

        def forward(self, x):
            gate, up = self.wide(x).split(hidden, -1)
            return self.down(F.silu(gate) * up)

        names = {"wide.weight": ("gate.W", "up.W"), "down.weight": ("down.W",)}

    class Residual(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.norm, self.inner = Norm(D), inner

        def forward(self, x):
            return x + self.inner(self.norm(x))

        names = {"norm.g": ("pre_norm.g",)}

    class Connection(nn.Module):
        """Reads m segments out of n, carries n over, writes m back: static matrices plus dynamic ones."""

        def __init__(self, inner):
            super().__init__()
            width = D // M
            self.norm, self.inner, self.state_norm = Norm(D), inner, Norm(width)
            self.A = nn.Parameter(torch.cat([torch.eye(N, M), torch.eye(N)], 1))
            self.B = nn.Parameter(torch.eye(M).repeat(1, 2)[:, :N].contiguous())
            self.S_A, self.S_B = nn.Parameter(torch.ones(N, M + N)), nn.Parameter(torch.ones(M, N))
            self.dynamic = linear(width, M + N + M)
            nn.init.zeros_(self.dynamic.weight)
            self.tau = math.sqrt(width)

        def forward(self, state):  # (B, T, n, width)
            u = torch.tanh(self.dynamic(self.state_norm(state)) / self.tau)
            a = self.A + self.S_A * u[..., :M + N]
            b = self.B + self.S_B * u[..., M + N:].transpose(-1, -2)
            mixed = a.transpose(-1, -2) @ state
            x = mixed[..., :M, :].reshape(*state.shape[:2], D)
            y = self.inner(self.norm(x)).view(*state.shape[:2], M, D // M)
            return mixed[..., M:, :] + b.transpose(-1, -2) @ y

        names = {"norm.g": ("pre_norm.g",), "state_norm.g": ("connection.norm.g",),
                 "A": ("connection.A_in", "connection.A_carry"), "B": ("connection.B",),
                 "S_A": ("connection.S_ai", "connection.S_ac"), "S_B": ("connection.S_b",),
                 "dynamic.weight": ("connection.W_ai", "connection.W_ac", "connection.W_b")}

    wide = kind == "vwn23"
    sublayer = Connection if wide else Residual

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            width = D * N // M if wide else D
            self.embed = nn.Embedding(VOCAB, width)
            self.sublayers = nn.ModuleList(
                sublayer(inner()) for _ in range(layers) for inner in (Attention, FeedForward))
            if wide:
                self.reduce = linear(width, D)
            self.norm, self.head = Norm(D), linear(D, VOCAB)
            for p in self.parameters():
                if p.dim() == 2 and min(p.shape) > M + N + M:
                    nn.init.normal_(p, std=0.02)

        def forward(self, tokens):
            x = self.embed(tokens)
            if wide:
                x = x.view(*tokens.shape, N, D // M)
            for sub in self.sublayers:
                x = sub(x)
            if wide:
                x = self.reduce(x.reshape(*tokens.shape, -1))
            return self.head(self.norm(x))

    names = {"embed.weight": ("embed.tokens.W",), "norm.g": ("head.lm.norm.g",),
             "head.weight": ("head.lm.W",),
             "reduce.weight": ("head.lm.connection.close.reduce.W",)}
    for i in range(2 * layers):
        path = f"layer[{i // 2 + 1}].{'ffn' if i % 2 else 'attention'}."
        inner = FeedForward if i % 2 else Attention
        for key, parts in sublayer.names.items():
            names[f"sublayers.{i}.{key}"] = tuple(path + p for p in parts)
        for key, parts in inner.names.items():
            names[f"sublayers.{i}.inner.{key}"] = tuple(path + p for p in parts)
    return Model(), names


def optimizer_of(torch, model, **how):
    """AdamW as in gpt.vwn; how: foreach or fused."""
    return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, **how)


def step(torch, model, forward, optimizer, rows, precision):
    """One step on rows of tokens, each with its target behind it. forward: the model, or it compiled."""
    with torch.autocast(rows.device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
        logits = forward(rows[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB).float(), rows[:, 1:].reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss
