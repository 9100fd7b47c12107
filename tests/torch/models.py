"""Small models of the usual kinds, each with an input and a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Cnn(nn.Module):
    """Convolutions, batch norm with its buffers, ReLU in place."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(6, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
        )  # fmt: skip
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x).mean((2, 3)))


class Mlp(nn.Module):
    """Layers with random numbers, a buffer that counts, and results that share memory."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(10, 24), nn.Linear(24, 4)
        self.drop = nn.Dropout(0.3)
        self.register_buffer("n_calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.n_calls.add_(1)
        hidden = self.drop(F.gelu(self.up(x)))
        first, second = hidden.chunk(2, -1)
        return self.down(torch.cat([second, first], -1)), first


class Transformer(nn.Module):
    """Two blocks of attention over tokens, in one of them masked."""

    def __init__(self, width: int = 16, n_heads: int = 2) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.embed = nn.Embedding(11, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.mixes = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.feeds = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(2)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for i in range(2):
            parts = self.mixes[i](self.norms[2 * i](x)).chunk(3, -1)
            q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in parts)
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=i == 1)
            x = x + attended.transpose(1, 2).flatten(2)
            x = x + self.feeds[i](self.norms[2 * i + 1](x))
        return x @ self.embed.weight.t()


@dataclass(frozen=True)
class Case:
    """A model, something to call it with, and what training makes smaller."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple]
    loss: Callable[..., Tensor]


CASES = {
    "cnn": Case(Cnn, lambda: (torch.randn(2, 3, 10, 10),), lambda y: y.square().mean()),
    "mlp": Case(Mlp, lambda: (torch.randn(5, 10),), lambda both: both[0].sum() + both[1].sin().sum()),
    "transformer": Case(
        Transformer,
        lambda: (torch.randint(0, 11, (2, 7)),),
        lambda y: F.cross_entropy(y.flatten(0, 1), torch.arange(14) % 11),
    ),
}


@dataclass
class Outcome:
    """All that a run leaves behind."""

    results: list[Tensor]
    gradients: dict[str, Tensor]
    buffers: dict[str, Tensor]


def run(case: Case, backend: object = None, *, is_training: bool, n_steps: int = 2) -> Outcome:
    """The same weights and inputs whatever runs them: in eager mode without a backend."""
    torch.manual_seed(7)
    model = case.make().train(is_training)
    call = model if backend is None else torch.compile(model, backend=backend, dynamic=False)
    results: list[Tensor] = []
    for _ in range(n_steps):
        inputs = case.inputs()
        with torch.set_grad_enabled(is_training):
            result = call(*inputs)
            results += [part.detach().clone() for part in (result if isinstance(result, tuple) else (result,))]
            if is_training:
                case.loss(result).backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return Outcome(results, gradients, {name: b.clone() for name, b in model.named_buffers()})


def bits(tensor: Tensor) -> bytes:
    """The elements in row-major order."""
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return bytes(dense.flatten().view(torch.uint8).numpy()) if dense.numel() else b""


def same(one: Outcome, other: Outcome) -> bool:
    """Whether every bit is the same."""
    if [bits(t) for t in one.results] != [bits(t) for t in other.results]:
        return False
    return all(
        ours.keys() == theirs.keys() and all(bits(ours[name]) == bits(theirs[name]) for name in ours)
        for ours, theirs in ((one.gradients, other.gradients), (one.buffers, other.buffers))
    )
