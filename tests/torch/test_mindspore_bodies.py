"""Loops, marks and arguments of PyTorch's graphs in MindSpore's trees."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import opscope.mindspore
import opscope.torch
import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.while_loop import while_loop

N_TRIPS = 3


@pytest.fixture(autouse=True)
def unmarked() -> Iterator[None]:
    """Forgets what other tests have marked, of which modules may still be there."""
    flags = opscope.mindspore._flags
    for known in (flags._modules, flags._operators, flags._roots):
        known.clear()
    yield
    flags._operators.clear()


class Looping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        def go_on(i: Tensor, x: Tensor) -> Tensor:
            return i < N_TRIPS

        def body(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1, x * self.weight

        return while_loop(go_on, body, (torch.tensor(0), x))[1].sin()


def configuration(folder: Path, **settings: object) -> str:
    common = {
        "op_debug_mode": 0, "dump_mode": 0, "path": str(folder), "net_name": "Net", "iteration": "all",
        "input_output": 0, "kernels": [], "support_device": [0], **settings,
    }  # fmt: skip
    return json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "save_kernel_args": True}})


def run(folder: Path, model: nn.Module, target: str | None = None, **settings: object) -> None:
    dumping = opscope.mindspore.backend(configuration(folder, **settings), target=target)
    with torch.no_grad():
        torch.compile(model, backend=dumping)(torch.arange(3.0))
    dumping.finish()


def test_bodies_repeat_one_name_and_have_no_parameters(folder: Path) -> None:
    run(folder, Looping(), "cpu")
    names = [path.name for path in (folder / "rank_0/Net").rglob("*.npy") if path.parent.name == "0"]
    outputs = Counter(name.split(".")[1] for name in names if ".output.0." in name)
    assert outputs["Default_Mul-op0"] == outputs["Default_Add-op0"] == N_TRIPS
    assert {name for name, n in outputs.items() if n == 1} >= {"Default_Sin-op0", "weight", "x"}
    assert not any(re.search(r"arg\d+_1", name) for name in names)
    (text,) = folder.rglob("*.ir")
    weights = re.findall(r"%para\d+_(\S+): .*IsWeight: true", text.read_text())
    assert weights == ["weight"]


def test_kernels_find_bodies(folder: Path) -> None:
    run(folder, Looping(), "cpu", dump_mode=1, kernels=["Default/Mul-op0"])
    names = {path.name.split(".")[1] for path in (folder / "rank_0/Net").rglob("*.npy")}
    assert names == {"Default_Mul-op0"}


def test_arguments_have_defaults(folder: Path) -> None:
    run(folder, nn.Linear(3, 2), "ascend-o0")
    found = [json.loads(path.read_text()) for path in (folder / "rank_0/Net").rglob("Add*.json")]
    assert found
    for arguments in found:
        assert arguments["argument.alpha"] == arguments.get("argument.beta", "1") == "1"


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ([], "`dump_mode` 2 dumps what `set_dump` marks, but nothing is marked"),
        ([torch.ops.aten.addmv], "set_dump: no graph has the operator aten.addmv; similar names: aten.addmm"),
        ([nn.Conv2d(1, 1, 1)], "set_dump: no graph has anything of the module of the type Conv2d"),
    ],
    ids=["nothing", "operator", "module"],
)
def test_marks_of_nothing_are_told(
    folder: Path, caplog: pytest.LogCaptureFixture, marked: list, expected: str
) -> None:
    for target in marked:
        opscope.mindspore.set_dump(target)
    with caplog.at_level(logging.WARNING, "opscope.torch"), pytest.warns(RuntimeWarning, match="nothing was dumped"):
        run(folder, nn.Linear(3, 2), "cpu", dump_mode=2)
    told = [record.getMessage() for record in caplog.records]
    (complaint,) = (text for text in told if text.startswith(("set_dump", "`dump_mode`")))
    assert complaint.startswith(expected)


def test_the_variable_stands_for_the_graph_engine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, target, has_ranks in [("1", None, False), ("1", "cpu", True), ("0", None, True)]:
        monkeypatch.setenv(opscope.mindspore._backend.GE_VARIABLE, value)
        place = folder / f"{value}{target}"
        run(place, nn.Linear(3, 2), target, op_debug_mode=0)
        assert (place / "rank_0").exists() == has_ranks
