"""Draws that differ, limits that excuse nothing, and one side that runs several times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import opscope.torch
import pytest
import torch
from opscope.torch import _ranks
from torch import Tensor, nn


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 4))


class Varying(nn.Module):
    """The third call computes something else in its first operator."""

    n_calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.n_calls += 1
        return torch.relu(x * (1.001 if self.n_calls == 3 else 1.0)).sum()


INPUT = torch.linspace(-1, 1, 24).reshape(3, 8)


def test_both_sides_draw_what_their_seeds_say() -> None:
    model = network()
    state = torch.get_rng_state()
    assert opscope.torch.diff(model, model, INPUT, seed=5).level == "pass"
    assert opscope.torch.diff(model, model, INPUT, seed=(5, 5), exact=True).level == "pass"
    assert opscope.torch.diff(model, model, INPUT, seed=(1, 2)).level == "fail"
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("seed", [-1, 2**32, (1,), (1, 2, 3), 1.5, "1"])
def test_seeds_that_make_no_sense(seed: object) -> None:
    with pytest.raises((TypeError, ValueError), match="seed"):
        opscope.torch.diff(network(), network(), INPUT, seed=seed)  # type: ignore[arg-type]


def test_nothing_may_differ_where_that_is_asked_for() -> None:
    golden, target = network().eval(), network().eval()
    with torch.no_grad():
        target[0].weight[0, 0] += 1e-7
    assert opscope.torch.diff(target, golden, INPUT).level == "pass"
    found = opscope.torch.diff(target, golden, INPUT, exact=True)
    assert found.level == "fail" and "0.weight" in found.verdict
    with pytest.raises(ValueError, match="exact"):
        opscope.torch.diff(target, golden, INPUT, exact=True, thresholds="int8")


def test_operators_that_vary_are_named() -> None:
    found = opscope.torch.repeat(Varying(), INPUT, 4)
    assert found.verdict.startswith("FAIL: aten_mul_Tensor `mul`") and "in 1 of 3 runs" in found.verdict
    assert [(one.op_name, one.n_runs_same_inputs, one.n_runs_other_inputs) for one in found.operators] == [
        ("mul", 1, 0),
        ("relu", 0, 1),
        ("sum", 0, 1),
    ]
    assert [one.op_name for one in found.own] == ["mul"]
    assert opscope.torch.repeat(network(), INPUT, 3).verdict.startswith("PASS")
    with pytest.raises(ValueError, match="n_runs"):
        opscope.torch.repeat(network(), INPUT, 1)


@pytest.mark.parametrize(("side", "code"), [("make", 0), ("vary", 1)])
def test_the_command_repeats(tmp_path: Path, side: str, code: int) -> None:
    program = """
import torch
class Varying(torch.nn.Module):
    n = 0
    def forward(self, x):
        self.n += 1
        return x + self.n
def make(): return torch.nn.Linear(4, 4), torch.ones(2, 4)
def vary(): return Varying(), torch.ones(2)
"""
    (tmp_path / "sides.py").write_text(program)
    words = [sys.executable, "-m", "opscope", "diff", f"sides:{side}", "--repeat", "3", "--json", "found.json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["n_runs"], len(found["operators"])) == (3, code)
    refused = subprocess.run([*words[:5], "--repeat", "one"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (refused.returncode, "--repeat" in refused.stderr) == (2, True)


def test_names_end_behind_the_first_that_is_free(tmp_path: Path) -> None:
    everything = _ranks.times(str(tmp_path), 1_700_000_000.0)
    for name in everything[:3]:
        (tmp_path / name).mkdir()
    few = _ranks.times(str(tmp_path), 1_700_000_000.0, str(tmp_path))
    assert few == everything[: len(few)] and 4 < len(few) < 100
