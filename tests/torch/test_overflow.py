"""Operators that overflow, as the overflow scene of an acl.json has them."""

from __future__ import annotations

import json
from pathlib import Path

import models
import opscope.torch
import pytest
import torch
from torch import Tensor


def dump(tmp_path: Path, work: object, *args: Tensor) -> tuple[dict, list[str]]:
    text = json.dumps({"dump": {"dump_path": str(tmp_path), "dump_debug": "on"}})
    backend = opscope.torch.backend(acl_json=text)
    with torch.no_grad():
        torch.compile(work, backend=backend)(*args)  # type: ignore[call-overload]
    report = backend.finish()
    names = [path.name.rsplit(".", 3)[0] for path in tmp_path.glob("*/0/graph_*/*/*/*")]
    return report, sorted(names)


@pytest.mark.parametrize(
    ("work", "args", "operator"),
    [
        (lambda x: (x * 1e38).exp() + 1, (torch.ones(3),), "aten_exp_default.exp"),
        (lambda x: (x + 1).half().float() - 1, (torch.full((2,), 1e6),), "aten__to_copy_default._to_copy"),
        (lambda x, y: (x @ y).neg(), (torch.full((2, 2), 1e30), torch.full((2, 2), 1e30)), "aten_mm_default.mm"),
        (lambda x: x.cos() / 0, (torch.ones(1),), "aten_div_Tensor.div"),
    ],
)
def test_the_first_operator_that_overflows_leaves_its_files(
    tmp_path: Path, work: object, args: tuple[Tensor, ...], operator: str
) -> None:
    report, names = dump(tmp_path, work, *args)
    assert names == sorted(["Opdebug.Node_OpDebug", operator])
    assert report["n_operators_overflowed"] == 1 and report["first_error"] is None
    assert list(tmp_path.rglob(".opscope/graphs/graph_*.json"))


@pytest.mark.parametrize(
    ("work", "args"),
    [
        (lambda x: x.masked_fill(x > 0, float("-inf")).softmax(-1), (torch.randn(4, 4).abs() - 0.5,)),
        (lambda x: torch.full_like(x, float("nan")), (torch.ones(3),)),
        (lambda x: x + 1, (torch.tensor([float("inf")]),)),
    ],
)
def test_values_that_are_meant_to_be_infinite_are_no_overflow(
    tmp_path: Path, work: object, args: tuple[Tensor, ...]
) -> None:
    report, names = dump(tmp_path, work, *args)
    assert (names, report["n_operators_overflowed"], report["n_files"]) == ([], 0, 0)
    assert not [path for path in tmp_path.rglob("*") if path.is_dir()]


@pytest.mark.parametrize("name", models.CASES)
def test_models_overflow_nowhere(tmp_path: Path, name: str) -> None:
    case = models.CASES[name]
    text = json.dumps({"dump": {"dump_path": str(tmp_path), "dump_debug": "on"}})
    backend = opscope.torch.backend(acl_json=text)
    models.run(case, backend, is_training=True)
    report = backend.finish()
    assert report["n_operators_overflowed"] == 0 and report["n_operators_seen"] > 10
