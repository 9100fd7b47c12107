"""A network that was written anew in another form: a fault in it is named, and none if there is none."""

from __future__ import annotations

import copy
from typing import Any

import opscope
import opscope.torch
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

N_HEADS, N_WIDTH = 2, 8
N_MODEL = N_HEADS * N_WIDTH


def positions(n: int) -> tuple[Tensor, Tensor]:
    angles = torch.outer(torch.arange(n).float(), 50 ** (-torch.arange(0, N_WIDTH, 2) / N_WIDTH))
    return angles.cos(), angles.sin()


class Block(nn.Module):
    """Three projections, heads before positions, a mask that is added."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.out = nn.LayerNorm(N_MODEL), nn.Linear(N_MODEL, N_MODEL)
        self.query, self.key, self.value = (nn.Linear(N_MODEL, N_MODEL) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        batch, n, _ = x.shape
        parts = (layer(self.norm(x)) for layer in (self.query, self.key, self.value))
        q, k, v = (part.view(batch, n, N_HEADS, N_WIDTH).transpose(1, 2) for part in parts)
        cos, sin = (torch.cat([table, table], -1) for table in positions(n))

        def turned(z: Tensor) -> Tensor:
            a, b = z.chunk(2, -1)
            return z * cos + torch.cat([-b, a], -1) * sin

        scores = turned(q) @ turned(k).transpose(-1, -2) / N_WIDTH**0.5
        scores = 3 * torch.tanh(scores / 3) + torch.full((n, n), -torch.inf).triu(1)
        return x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))


class Port(nn.Module):
    """One projection, positions before heads, a mask that is filled in."""

    def __init__(self, block: Block, fault: str) -> None:
        super().__init__()
        self.fault, self.norm, self.out = fault, copy.deepcopy(block.norm), copy.deepcopy(block.out)
        self.qkv = nn.Linear(N_MODEL, 3 * N_MODEL)
        layers = (block.query, block.key, block.value)
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat([layer.weight for layer in layers]))
            self.qkv.bias.copy_(torch.cat([layer.bias for layer in layers]))

    def forward(self, x: Tensor) -> Tensor:
        batch, n, _ = x.shape
        qkv = self.qkv(self.norm(x))
        if self.fault == "layout":
            q, k, v = qkv.view(batch, n, N_HEADS, 3, N_WIDTH).unbind(3)
        else:
            q, k, v = qkv.view(batch, n, 3, N_HEADS, N_WIDTH).unbind(2)
        cos, sin = (table[:, None] for table in positions(n))
        if self.fault == "sign":
            sin = sin * -1

        def turned(z: Tensor) -> Tensor:
            a, b = z.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).transpose(1, 2)

        scores = torch.einsum("bhqd,bhkd->bhqk", turned(q), turned(k)) * N_WIDTH**-0.5
        scores = torch.tanh(scores / 3) * 3
        i = torch.arange(n)
        weights = scores.masked_fill(i[None] > i[:, None], -torch.inf).softmax(-1)
        y = torch.einsum("bhqk,bhkd->bqhd", weights, v.transpose(1, 2)).reshape(x.shape)
        return self.out(y) + x


class Network(nn.Module):
    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.embed, self.blocks, self.head = nn.Embedding(20, N_MODEL), nn.ModuleList(blocks), nn.Linear(N_MODEL, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def compared(fault: str) -> opscope.Comparison:
    torch.manual_seed(3)
    blocks = [Block(), Block()]
    golden = Network(list(blocks)).eval()
    with torch.no_grad():
        for parameter in golden.parameters():
            parameter.normal_(0, 0.4)
    ports = [Port(block, fault if at == 1 else "") for at, block in enumerate(blocks)]
    target = Network(ports).eval()
    target.embed, target.head = golden.embed, golden.head
    return opscope.torch.diff(target, golden, torch.arange(14).reshape(2, 7))


def named(found: opscope.Comparison) -> dict[str, Any]:
    first = found.first_divergence
    assert first is not None and found.level == "fail", found.verdict
    return first.get("name") or first["operator"]["target"][-1]


def test_another_form_agrees() -> None:
    found = compared("")
    assert (found.level, found.first_divergence) == ("pass", None), found.verdict


# What differs is in another layout than golden's, so that several operators may show it.
CULPRITS = {"layout": {"view", "unbind"}, "sign": {"mul"}}


@pytest.mark.parametrize("fault", CULPRITS)
def test_a_fault_in_another_form_is_named(fault: str) -> None:
    found = compared(fault)
    name = named(found)
    kind = name["op_type"].removeprefix("aten_").split("_")[0]
    assert kind in CULPRITS[fault], (name, found.verdict)
