"""Situations that people report, of which the verdict once accused an innocent or gave a wrong reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opscope.torch
import pytest
import torch
from binary import Binary
from comparing import PASSED
from test_other_ways import FAILED, WIDTH, compare, dumped, tool  # noqa: F401
from torch import Tensor, nn
from torch.nn import functional as F


class Folded(nn.Module):
    """A normalisation behind a convolution, or in its weight."""

    def __init__(self, *, is_folded: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm, self.out = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)
        nn.init.uniform_(self.norm.running_var, 0.2, 2)
        nn.init.normal_(self.norm.weight, 1, 0.3)
        self.is_folded = is_folded
        if is_folded:
            factor = self.norm.weight.data / (self.norm.running_var + self.norm.eps).sqrt()
            self.conv.weight.data *= factor[:, None, None, None]
            self.conv.bias.data *= factor

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return self.out((x if self.is_folded else self.norm(x)).relu().mean((2, 3)))


class Scaled(nn.Module):
    """A norm whose weight was not loaded, next to the same in other words."""

    def __init__(self, *, is_loaded: bool, is_first: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)
        self.weight = nn.Parameter(torch.rand(WIDTH))
        self.is_first = is_first
        if not is_loaded:
            nn.init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        # One product more, so that the numbers of names tell nothing.
        x = x * 0.5 * 2 if self.is_first else x
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.out(x * self.weight)


class Routed(nn.Module):
    """Shares of the two best of six experts."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate, self.out, self.kind = nn.Linear(WIDTH, 6), nn.Linear(6, 4), kind

    def forward(self, x: Tensor) -> Tensor:
        logits = self.gate(x)
        if self.kind == "chosen":
            best, at = logits.topk(2, -1)
            best = best.softmax(-1)
        else:
            best, at = logits.softmax(-1).topk(2, -1)
            best = best / best.sum(-1, keepdim=True) if self.kind == "all" else best
        return self.out(torch.zeros_like(logits).scatter(-1, at, best))


class Masked(nn.Module):
    """Attention to what is no padding."""

    def __init__(self, *, is_masked: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.is_masked = nn.Linear(WIDTH, 3 * WIDTH), is_masked

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part[:, None] for part in self.qkv(x).chunk(3, -1))
        hidden = torch.zeros(x.shape[1]).masked_fill(torch.arange(x.shape[1]) > 2, -math.inf)
        mask = hidden.expand(x.shape[1], -1) if self.is_masked else None
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def pair(folder: Path, target: nn.Module, golden: nn.Module, shape: tuple[int, ...], data: str) -> list[Path]:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    models = {"t": target.eval(), "g": golden.eval()}
    return [dumped(folder / name, model, x, data) for name, model in models.items()]


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_a_folded_normalisation_accuses_no_weight(tmp_path: Path, tool: Binary, data: str) -> None:
    paths = pair(tmp_path, Folded(is_folded=True), Folded(is_folded=False), (2, 3, 8, 8), data)
    code, report, _ = compare(tool, *paths)
    assert code == PASSED, report


Case = tuple[nn.Module, nn.Module, tuple[int, ...], str, str]
FAULTS: dict[str, Callable[[], Case]] = {
    # It has no effect in the target, which seems to lack the operator.
    "ones": lambda: (
        Scaled(is_loaded=False, is_first=False),
        nn.Sequential(Scaled(is_loaded=True, is_first=True)),
        (5, WIDTH),
        "tensor",
        "the weight `weight` differs: all elements are 1",
    ),
    # The softmax of other values is that of no other input of the model.
    "shares": lambda: (Routed("plain"), Routed("chosen"), (9, WIDTH), "tensor", "`_softmax` input.0: not all"),
    "mask": lambda: (
        Masked(is_masked=False),
        Masked(is_masked=True),
        (2, 6, WIDTH),
        "tensor",
        "golden's also reads an input.3, which this one does not",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_reason_is_right(tmp_path: Path, tool: Binary, name: str) -> None:
    target, golden, shape, data, words = FAULTS[name]()
    code, report, _ = compare(tool, *pair(tmp_path, target, golden, shape, data))
    assert code == FAILED and words in report, report


class Branch(nn.Module):
    """Two layers, of which one may be detached."""

    def __init__(self, *, is_detached: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)
        self.bias = nn.Parameter(torch.rand(WIDTH))
        self.is_detached = is_detached

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x).tanh()
        y = y.detach() if self.is_detached else y
        return self.second(y + x * self.bias)


def trained(folder: Path, model: nn.Module, step: Callable[[nn.Module], Any]) -> Path:
    dump = opscope.torch.eager(folder)
    for seed in range(2):
        x = torch.randn((6, WIDTH), generator=torch.Generator().manual_seed(seed))
        with dump:
            model.zero_grad()
            model(x).square().mean().backward()
            step(model)
    return Path(dump.finish()["root"])


def by_groups(model: nn.Module) -> None:
    """Matrices first, then the others."""
    parameters = sorted(model.parameters(), key=lambda one: -one.dim())
    torch.optim.SGD(parameters, lr=0.1, weight_decay=0.1, foreach=False).step()


@torch.no_grad()
def by_hand(model: nn.Module) -> None:
    for parameter in model.parameters():
        step = parameter.grad.add(parameter, alpha=0.1)
        parameter.add_(step, alpha=-0.1)


def test_updates_of_a_program_are_matched_by_parameter(tmp_path: Path, tool: Binary) -> None:
    code, report, _ = compare(
        tool, trained(tmp_path / "t", Branch(), by_hand), trained(tmp_path / "g", Branch(), by_groups)
    )
    assert code == PASSED, report


def test_a_detached_branch_is_named(tmp_path: Path, tool: Binary) -> None:
    target = trained(tmp_path / "t", Branch(is_detached=True), by_groups)
    code, report, _ = compare(tool, target, trained(tmp_path / "g", Branch(), by_groups))
    assert code == FAILED and "aten_detach_default `detach_1`" in report, report
