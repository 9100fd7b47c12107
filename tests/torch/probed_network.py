"""A network that msProbe, `opscope.torch` and, exported, `opscope dump` record, sound and with faults.

Weights are made by arithmetic, so that every version of torch has the same. The golden dumps of msProbe hold the numbers
of this file's lines: `tests/peers/msprobe_network.py` rewrites them after an edit.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, HEADS = 8, 2
FAULTS = ("weight", "epsilon", "scale", "mask", "sign")


class Block(nn.Module):
    """An attention block that computes in its own `forward` what other modules would hide."""

    def __init__(self, fault: str | None) -> None:
        super().__init__()
        self.fault = fault
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        n, length, _ = x.shape
        y = self.before(x)
        heads = (part(y).view(n, length, HEADS, -1).transpose(1, 2) for part in (self.query, self.key, self.value))
        query, key, value = heads
        factor = math.sqrt(HEADS / WIDTH) * (1.2 if self.fault == "scale" else 1)
        scores = torch.matmul(query, key.transpose(-2, -1)) * factor
        hidden = torch.ones(length, length, dtype=torch.bool).triu(2 if self.fault == "mask" else 1)
        shares = torch.softmax(scores.masked_fill(hidden, -1e4), -1)
        x = x + self.out(torch.matmul(shares, value).transpose(1, 2).reshape(x.shape))
        y = self.down(F.gelu(self.up(self.after(x))))
        return x - y if self.fault == "sign" else x + y


class ProbedNetwork(nn.Module):
    def __init__(self, fault: str | None = None) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, WIDTH, 3, padding=1), nn.BatchNorm2d(WIDTH), nn.ReLU(), nn.MaxPool2d(2))
        self.blocks = nn.ModuleList([Block(None), Block(fault)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 5)
        named = [*self.named_parameters(), ("mean", self.stem[1].running_mean)]
        for i, (name, one) in enumerate(named):
            is_scale = one.dim() == 1 and name.endswith("weight")
            n_read = one[0].numel() if one.dim() > 1 else 8
            with torch.no_grad():
                one.copy_(numbers(one.shape, i) * math.sqrt(3 / n_read) + is_scale)
        if fault == "weight":
            self.blocks[1].up.weight.data[3, 2] += 0.5
        if fault == "epsilon":
            self.blocks[1].after.eps = 0.1

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return F.softmax(self.head(self.norm(x)), -1)


def numbers(shape: tuple[int, ...], seed: int) -> Tensor:
    """Numbers between -1 and 1 in no order that an operator could see, the same everywhere."""
    at = torch.arange(math.prod(shape)) + 1000 * (seed + 1)
    return ((at * at % 65521 * 40503 + at * 1237) % 65521 / 65521 * 2 - 1).reshape(shape)


def image() -> Tensor:
    return numbers((2, 1, 6, 6), 99) * 2
