"""`opscope.torch.diff` of two programs for one network: sound ones agree, and a fault is found at its line."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path
from typing import Any

import opscope.torch
import pytest
import torch
from test_diff_faults import named
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, N_PLACES = 8, 6


class Attention(nn.Module):
    """Sums of three embeddings, turned by a table of angles, with a window."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        torch.manual_seed(3)
        self.fault = fault
        self.word, self.place, self.kind = (nn.Embedding(9, WIDTH) for _ in range(3))
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, words: Tensor) -> Tensor:
        places = torch.arange(N_PLACES)
        kinds = torch.ones_like(words) if self.fault == "kinds" else words % 2  # kinds
        x = self.word(words) + self.place(places) + self.kind(kinds)
        angles = places[:, None].float() * 100.0 ** -torch.linspace(0, 1, WIDTH // 2)
        angles = torch.cat([angles, angles], -1)
        q, k = (self.turned(y, angles.cos(), angles.sin()) for y in (self.query(x), self.key(x)))
        scores = q @ k.mT * 0.5
        width = 3 if self.fault == "window" else 4
        seen = (places[:, None] >= places) & (places[:, None] - places < width)  # window
        if self.fault == "written":
            scores[0].mul_(0.5)  # written
        shares = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        if self.fault == "order":
            shares = shares.flip(1)  # order
        y = shares @ x
        return F.silu(y) if self.fault == "act" else F.gelu(y)  # act

    def turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        half = WIDTH // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Rewritten(Attention):
    """The same written otherwise: another order of the sum, half a table, a mask that is added, one product for both."""

    def forward(self, words: Tensor) -> Tensor:
        x = self.word(words) + self.kind(words % 2) + self.place.weight[:N_PLACES]
        angles = torch.outer(torch.arange(N_PLACES).float(), 1 / 100.0 ** torch.linspace(0, 1, WIDTH // 2))
        weight, bias = (torch.cat([getattr(self.query, p), getattr(self.key, p)]) for p in ("weight", "bias"))
        q, k = (self.turned(y, angles.cos(), angles.sin()) for y in F.linear(x, weight, bias).split(WIDTH, -1))
        mask = torch.full((N_PLACES, N_PLACES), -torch.inf)
        return F.gelu(((q * 0.5) @ k.mT + mask.triu(1) + mask.tril(-4)).softmax(-1) @ x)

    def turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Stack(nn.Module):
    """Layers in a given order."""

    def __init__(self, order: list[int]) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)) for _ in range(4))
        self.order = order

    def forward(self, x: Tensor) -> Tensor:
        for i in self.order:
            x = x + self.layers[i](x)
        return x


def words() -> Any:
    return (torch.randint(0, 9, (2, N_PLACES), generator=torch.Generator().manual_seed(1)),)


def test_two_sound_programs_agree() -> None:
    found = opscope.torch.diff(Attention(), Rewritten(), words())
    assert (found.level, found.first_divergence) == ("pass", None), found.verdict


@pytest.mark.parametrize(
    ("fault", "golden"),
    [
        *itertools.product(["window", "order", "act"], [Attention, Rewritten]),
        ("kinds", Attention),
        ("written", Attention),
    ],
)
def test_a_fault_is_found_at_its_line(fault: str, golden: type[Attention]) -> None:
    found = opscope.torch.diff(Attention(fault), golden(), words())
    assert found.level == "fail", found.verdict
    lines, start = inspect.getsourcelines(Attention)
    expected = start + next(i for i, line in enumerate(lines) if line.rstrip().endswith(f"# {fault}"))
    first = found.first_divergence
    source = first.get("source") or first["operator"]["source"]
    assert f":{expected} " in source, (found.verdict, source, named(found))
    assert fault != "act" or "the golden side computes it by aten_gelu_default" in found.verdict, found.verdict


def test_an_operator_that_the_target_lacks_has_goldens_line() -> None:
    found = opscope.torch.diff(Attention(), Attention("order"), words())
    first = found.first_divergence
    lines, start = inspect.getsourcelines(Attention)
    line = start + next(i for i, line in enumerate(lines) if line.rstrip().endswith("# order"))
    assert (first["name"]["op_type"], found.level) == ("aten_flip_default", "fail"), found.verdict
    assert f":{line} " in first["source"], first["source"]


@pytest.mark.parametrize(("order", "reads"), [([0, 1, 1, 2, 3], [2, 1]), ([0, 2, 3], [0, 1])])
def test_a_layer_that_runs_twice_or_never_is_told(order: list[int], reads: list[int]) -> None:
    """The weights say it, as names and values of its operators are those of other layers."""
    inputs = (torch.randn(3, WIDTH, generator=torch.Generator().manual_seed(1)),)
    found = opscope.torch.diff(Stack(order), Stack([0, 1, 2, 3]), inputs)
    (told,) = found.weight_reads
    assert told == {"name": "layers.1", "n_weights": 4, "target": reads[0], "golden": reads[1]}
    assert ("`layers.1` are read 2 times here" in found.verdict) == (reads[0] == 2), found.verdict


def test_what_autograd_keeps_is_no_output(tmp_path: Path) -> None:
    for name, fault in (("target", "window"), ("golden", "")):
        with opscope.torch.eager(tmp_path / name, data="tensor"):
            Attention(fault)(*words())
    opscope.torch.finish()
    verdict = opscope.compare(tmp_path / "target", tmp_path / "golden").verdict
    assert verdict.startswith("FAIL: output `gelu` differs ("), verdict
