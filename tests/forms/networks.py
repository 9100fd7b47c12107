"""Small networks of usual kinds, with random weights from a seed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, N_HEADS, N_TOKENS = 32, 4, 50


class Convolutions(nn.Module):
    """Convolutions with batch normalisation, which exporters fold."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for n_in, n_out in ((3, 8), (8, 16), (16, 16)):
            norm = nn.BatchNorm2d(n_out)
            norm.running_mean.normal_(0, 0.3)
            norm.running_var.uniform_(0.5, 2)
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias, 0, 0.3)
            layers += [nn.Conv2d(n_in, n_out, 3, padding=1), norm, nn.ReLU()]
        self.features = nn.Sequential(*layers)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(16 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(self.features(x)).flatten(1))


class Residual(nn.Module):
    """Residual sums and a SiLU."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(3 if k == 0 else 8, 8, 3, padding=1) for k in range(5))
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        first, a, b, c, d = self.convolutions
        x = functional.relu(first(x))
        x = functional.relu(x + b(functional.relu(a(x))))
        x = functional.relu(x + d(functional.silu(c(x))))
        return self.head(x.mean((2, 3)))


def heads(x: Tensor) -> Tensor:
    n_batch, n_tokens, width = x.shape
    return x.reshape(n_batch, n_tokens, N_HEADS, width // N_HEADS).transpose(1, 2)


class Block(nn.Module):
    """Attention and two layers, normalised before."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = map(heads, self.qkv(self.norm1(x)).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) / (WIDTH // N_HEADS) ** 0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """An encoder of three blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm, self.head = nn.Linear(16, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Llama(nn.Module):
    """A decoder's block with rotary embedding, RMS norms and a gated layer."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(N_TOKENS, WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, 64, bias=False) for _ in range(2))
        self.down = nn.Linear(64, WIDTH, bias=False)
        self.norm1, self.norm2 = (nn.Parameter(torch.rand(WIDTH) + 0.5) for _ in range(2))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        n_tokens, width = x.shape[1], WIDTH // N_HEADS
        y = rms_norm(x, self.norm1)
        q, k, v = heads(self.q(y)), heads(self.k(y)), heads(self.v(y))
        frequencies = 10000 ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
        angles = torch.arange(n_tokens, dtype=torch.float32)[:, None] * frequencies[None]
        cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
        q, k = q * cos + rotated(q) * sin, k * cos + rotated(k) * sin
        mask = torch.full((n_tokens, n_tokens), float("-inf")).triu(1)
        weights = (q @ k.transpose(-1, -2) / width**0.5 + mask).softmax(-1)
        x = x + self.o((weights @ v).transpose(1, 2).reshape(x.shape))
        y = rms_norm(x, self.norm2)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def rotated(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


class Recurrent(nn.Module):
    """Two layers of LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.head = nn.LSTM(8, 16, 2, batch_first=True), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x)[0][:, -1])


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "convolutions": (Convolutions, lambda: torch.randn(1, 3, 8, 8)),
    "residual": (Residual, lambda: torch.randn(2, 3, 10, 10)),
    "transformer": (Transformer, lambda: torch.randn(2, 7, 16)),
    "llama": (Llama, lambda: torch.randint(0, N_TOKENS, (2, 9))),
    "recurrent": (Recurrent, lambda: torch.randn(2, 5, 8)),
}
