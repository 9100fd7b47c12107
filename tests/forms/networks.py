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
            layers += [nn.Conv2d(n_in, n_out, 3, padding=1), varied_norm(n_out), nn.ReLU()]
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


class Mobile(nn.Module):
    """Inverted residual blocks: depthwise convolutions, squeeze and excitation, hard activations."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), varied_norm(8), nn.Hardswish())
        self.blocks = nn.Sequential(InvertedResidual(), InvertedResidual())
        self.head = nn.Sequential(nn.Linear(8, 12), nn.Hardswish(), nn.Linear(12, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class InvertedResidual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(8, 16, 1, bias=False), varied_norm(16), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), varied_norm(16))
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 4, 1), nn.ReLU(), nn.Conv2d(4, 16, 1), nn.Hardsigmoid()
        )
        self.project = nn.Sequential(nn.Conv2d(16, 8, 1, bias=False), varied_norm(8))

    def forward(self, x: Tensor) -> Tensor:
        y = self.depth(self.expand(x))
        return x + self.project(functional.hardswish(y * self.squeeze(y)))


def varied_norm(n_channels: int) -> nn.BatchNorm2d:
    """Statistics as after training: a fresh normalisation does next to nothing."""
    norm = nn.BatchNorm2d(n_channels)
    norm.running_mean.normal_(0, 0.3)
    norm.running_var.uniform_(0.5, 2)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    nn.init.normal_(norm.bias, 0, 0.3)
    return norm


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


class Bert(nn.Module):
    """An encoder over tokens, normalised after, with a mask that is computed from padding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(N_TOKENS, WIDTH), nn.Embedding(16, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer() for _ in range(2))
        self.pooler, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1])[None]
        x = self.norm(self.tokens(tokens) + self.positions(positions))
        mask = (1.0 - (tokens != 0)[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(torch.tanh(self.pooler(x[:, 0])))


class BertLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        weights = (q @ k.transpose(-1, -2) / (WIDTH // N_HEADS) ** 0.5 + mask).softmax(-1)
        x = self.norm1(x + self.output((weights @ v).transpose(1, 2).reshape(x.shape)))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Gpt2(nn.Module):
    """A decoder with learned positions, a stored causal mask, tanh's GELU and tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(N_TOKENS, WIDTH), nn.Embedding(16, WIDTH)
        self.blocks = nn.ModuleList(CausalBlock() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


class CausalBlock(nn.Module):
    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.register_buffer("mask", torch.ones(16, 16, dtype=torch.bool).tril())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        q, k, v = map(heads, self.qkv(self.norm1(x)).split(WIDTH, -1))
        scores = q @ k.transpose(-1, -2) / (WIDTH // N_HEADS) ** 0.5
        weights = scores.masked_fill(~self.mask[:n, :n], float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Vision(nn.Module):
    """A transformer over patches, with a token for the class."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, 4)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, WIDTH)), nn.Parameter(torch.randn(1, 10, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


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
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        q, k = q * cos + rotated(q) * sin, k * cos + rotated(k) * sin
        mask = torch.full((n_tokens, n_tokens), float("-inf"), dtype=x.dtype).triu(1)
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
    "mobile": (Mobile, lambda: torch.randn(1, 3, 16, 16)),
    "transformer": (Transformer, lambda: torch.randn(2, 7, 16)),
    "bert": (Bert, lambda: torch.cat([torch.randint(1, N_TOKENS, (2, 7)), torch.zeros(2, 2, dtype=torch.long)], 1)),
    "gpt2": (Gpt2, lambda: torch.randint(0, N_TOKENS, (2, 9))),
    "vision": (Vision, lambda: torch.randn(2, 3, 12, 12)),
    "llama": (Llama, lambda: torch.randint(0, N_TOKENS, (2, 9))),
    "recurrent": (Recurrent, lambda: torch.randn(2, 5, 8)),
}
