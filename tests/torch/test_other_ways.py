"""Programs that compute the same in another way, with and without a fault: what differs by design is not the cause."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opscope.torch
import pytest
import torch
from binary import TIMEOUT_SECONDS, Binary
from comparing import PASSED
from torch import Tensor, nn

FAILED = 1
WIDTH = 16


@pytest.fixture(scope="module")
def tool() -> Binary:
    return Binary.from_environment()


class Adapted(nn.Module):
    """A low-rank adapter next to a linear layer, or merged into its weight."""

    def __init__(self, scale: float, *, is_merged: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.base, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)
        self.down, self.up = (nn.Parameter(torch.randn(shape)) for shape in ((4, WIDTH), (WIDTH, 4)))
        self.scale, self.is_merged = scale, is_merged
        if is_merged:
            self.base.weight.data += scale * self.up.data @ self.down.data

    def forward(self, x: Tensor) -> Tensor:
        y = self.base(x)
        if not self.is_merged:
            y = y + (x @ self.down.T @ self.up.T) * self.scale
        return self.out(y.relu())


class Attention(nn.Module):
    """Causal attention with a cache, for a whole prompt or in parts."""

    def __init__(self, n_each: int, *, shifts_mask: bool = True, scores: str | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 4)
        self.n_each, self.shifts_mask, self.scores = n_each, shifts_mask, scores

    def forward(self, x: Tensor) -> Tensor:
        results, keys, values = [], [], []
        for part in x.split(self.n_each, 1):
            q, k, v = self.qkv(part).chunk(3, -1)
            keys.append(k)
            values.append(v)
            k, v = torch.cat(keys, 1), torch.cat(values, 1)
            n_before = k.shape[1] - q.shape[1] if self.shifts_mask else 0
            hidden = ~torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(n_before)
            weights = q @ k.mT if self.scores is None else torch.einsum(self.scores, q, k)
            weights = weights / math.sqrt(WIDTH) + torch.zeros(hidden.shape).masked_fill(hidden, -math.inf)
            results.append(self.out(weights.softmax(-1) @ v))
        return torch.cat(results, 1)


class Experts(nn.Module):
    """Two of four experts for each token: one expert after another, or all at once."""

    def __init__(self, *, is_dense: bool, is_normalised: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate, self.weight = nn.Linear(WIDTH, 4), nn.Parameter(torch.randn(4, WIDTH, WIDTH))
        self.is_dense, self.is_normalised = is_dense, is_normalised

    def forward(self, x: Tensor) -> Tensor:
        shares = self.gate(x).softmax(-1)
        weight, expert = shares.topk(2, -1)
        if self.is_normalised:
            weight = weight / weight.sum(-1, keepdim=True)
        if self.is_dense:
            full = torch.zeros_like(shares).scatter(1, expert, weight)
            return torch.einsum("enf,ne->nf", torch.einsum("nd,edf->enf", x, self.weight).relu(), full)
        y = torch.zeros_like(x)
        for i in range(4):
            token, k = (expert == i).nonzero(as_tuple=True)
            y = y.index_add(0, token, (x[token] @ self.weight[i]).relu() * weight[token, k][:, None])
        return y


class Cached(nn.Module):
    """Attention over a cache that each token is written to in place, or over the whole prompt at once."""

    def __init__(self, *, is_whole: bool = False, late: int = 9) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 4)
        self.is_whole, self.late = is_whole, late

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if self.is_whole:
            q, k, v = self.qkv(x).chunk(3, -1)
            hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
            return self.out((q @ k.mT).masked_fill(hidden, -math.inf).softmax(-1) @ v)
        keys, values, results = torch.zeros(len(x), n + 1, WIDTH), torch.zeros(len(x), n + 1, WIDTH), []
        for i in range(n):
            q, k, v = self.qkv(x[:, i : i + 1]).chunk(3, -1)
            at = i + (i == self.late)
            keys[:, at : at + 1] = k
            values[:, at : at + 1] = v
            results.append(self.out((q @ keys[:, : i + 1].mT).softmax(-1) @ values[:, : i + 1]))
        return torch.cat(results, 1)


class Narrow(nn.Module):
    """A layer in a short dtype, or not."""

    def __init__(self, *, is_narrow: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.is_narrow = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), is_narrow

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.is_narrow):
            y = self.second(x)
        return y.float() * 0.01 + x


def compare(tool: Binary, target: Path, golden: Path) -> tuple[int, str, dict[str, Any]]:
    """Exit code, report and result."""
    out = target.with_suffix(".json")
    command = [tool.path, "compare", target, golden, "--json", out, "--force"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    return run.returncode, " ".join(run.stdout.split()), json.loads(out.read_text())


def dumped(folder: Path, model: nn.Module, x: Tensor, data: str) -> Path:
    dump = opscope.torch.eager(folder, data=data)
    with dump, torch.no_grad():
        model(x)
    return Path(dump.finish()["root"])


ADAPTER = (lambda: Adapted(2.0, is_merged=False), lambda: Adapted(2.0, is_merged=True), (5, WIDTH))
PARTS = (lambda: Attention(4), lambda: Attention(8), (2, 8, WIDTH))
EXPERTS = (lambda: Experts(is_dense=False), lambda: Experts(is_dense=True), (6, WIDTH))
Pair = tuple[Callable[[], nn.Module], Callable[[], nn.Module], tuple[int, ...]]


@pytest.mark.parametrize("pair", [ADAPTER, PARTS], ids=["adapter", "parts"])
@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_equal_outputs_excuse_another_way(tmp_path: Path, tool: Binary, pair: Pair, data: str) -> None:
    target, golden, shape = pair
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    paths = [dumped(tmp_path / name, make(), x, data) for name, make in (("t", target), ("g", golden))]
    code, report, _ = compare(tool, *paths)
    assert code == PASSED, report


CACHE = (lambda: Cached(), lambda: Cached(is_whole=True), (2, 6, WIDTH))


@pytest.mark.parametrize("pair", [EXPERTS, CACHE, (CACHE[1], CACHE[0], CACHE[2])], ids=["experts", "cache", "whole"])
def test_equal_results_suffice_where_little_else_was_compared(tmp_path: Path, tool: Binary, pair: Pair) -> None:
    test_equal_outputs_excuse_another_way(tmp_path, tool, pair, "tensor")


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_a_write_to_another_place_is_named(tmp_path: Path, tool: Binary, data: str) -> None:
    x = torch.randn(CACHE[2], generator=torch.Generator().manual_seed(1))
    models = {"t": Cached(late=3), "g": Cached()}
    paths = [dumped(tmp_path / name, model, x, data) for name, model in models.items()]
    code, report, result = compare(tool, *paths)
    assert code == FAILED
    # The reader of the cache is innocent, and the cache is no weight.
    assert "start (argument.2) is 4 here, 3 on the golden side" in report, report
    assert "the weight" not in report
    assert result["summary"]["certainty"] == ("measured" if data == "tensor" else "likely")


def test_a_short_dtype_is_told_with_its_line(tmp_path: Path, tool: Binary) -> None:
    x = torch.randn((2, WIDTH), generator=torch.Generator().manual_seed(1))
    paths = [dumped(tmp_path / str(is_narrow), Narrow(is_narrow=is_narrow), x, "tensor") for is_narrow in (True, False)]
    code, report, _ = compare(tool, *paths)
    assert code == PASSED and report.startswith("WARN"), report
    assert "it computes in bfloat16 here" in report and "in module second" in report, report


FAULTS = {
    "adapter": (lambda: Adapted(1.0, is_merged=False), *ADAPTER[1:], "the weight `base.weight` differs"),
    "parts": (lambda: Attention(4, shifts_mask=False), *PARTS[1:], ""),
    "experts": (lambda: Experts(is_dense=False, is_normalised=False), *EXPERTS[1:], "`eq`"),
    "scores": (lambda: Attention(8, scores="bqd,bkd->bkq"), *PARTS[1:], "`permute"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_differs_by_design_is_not_called_the_cause(tmp_path: Path, tool: Binary, name: str) -> None:
    target, golden, shape, first = FAULTS[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    found = opscope.torch.diff(target(), golden(), (x,), save=tmp_path / "dumps")
    code, report, result = compare(tool, tmp_path / "dumps/target", tmp_path / "dumps/golden")
    assert code == FAILED and found.verdict.startswith("FAIL")
    assert "First difference at" in report and first in report, report
    assert result["summary"]["certainty"] == "first_difference"
    assert result["summary"]["first_failure"]["cause"] == "unknown"
    if name == "adapter":
        assert "or one of these: `mm`, `mm_1`, `mul`" in report
