"""A GPT in the manner of nanoGPT, trained on the bytes of a text: python after.py TEXT [STEPS]"""

import sys
import time

import torch
import torch.nn.functional as F
import wide
from torch import nn

D, HEADS, LAYERS, CONTEXT, BATCH = 192, 6, 3, 128, 8


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.qkv = nn.Linear(D, 3 * D)
        self.out = nn.Linear(D, D)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (y.view(B, T, HEADS, -1).transpose(1, 2) for y in self.qkv(self.norm(x)).split(D, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, D))


class MLP(nn.Sequential):
    def __init__(self):
        super().__init__(nn.LayerNorm(D), nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, D * 3 // 2)
        self.position = nn.Embedding(CONTEXT, D * 3 // 2)
        self.layers = wide.Connections([make() for _ in range(LAYERS) for make in (Attention, MLP)])
        self.head = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 256))

    def forward(self, tokens):
        x = self.embed(tokens) + self.position.weight[: tokens.shape[1]]
        return self.head(self.layers(x))


def main():
    torch.manual_seed(1)
    text = torch.frombuffer(bytearray(open(sys.argv[1], "rb").read()), dtype=torch.uint8).long()
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    began = time.time()
    for step in range(1, steps + 1):
        at = torch.randint(len(text) - CONTEXT, (BATCH,))
        x = torch.stack([text[i : i + CONTEXT + 1] for i in at])
        loss = F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == 1:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - began) / step * 1e3:.0f} ms a step", flush=True)


main()
