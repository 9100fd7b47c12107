"""`opscope.mindspore.set_dump`: which operators it switches on, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import opscope.mindspore
import pytest
import torch
from mindspore_runs import backend, clean, graph_dirs, names, order
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x).tanh()


class Net(nn.Module):
    """A module in a list, one that is used twice, and operators of the root."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.again = self.blocks[0]
        self.tail = nn.Sequential(nn.Linear(4, 2), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.tail(self.again(x)).sin() * 2


FLAG_CASES = {
    "root": (lambda net: [(net, True)], r".*"),
    "nothing": (lambda net: [], r"(?!)"),
    "child": (lambda net: [(net.tail, True)], r".*/tail-Sequential/.*"),
    "of a list": (lambda net: [(net.blocks[1], True)], r".*/1-Block/.*"),
    "list": (lambda net: [(net.blocks, True)], r".*/(0-Block|1-Block|again-Block)/.*"),
    "shared": (lambda net: [(net.again, True)], r".*/(0-Block|again-Block)/.*"),
    "grandchild": (lambda net: [(net.blocks[1].fc, True)], r".*/1-Block/fc-Linear/.*"),
    "all but one": (lambda net: [(net, True), (net.tail, False)], r"(?!.*/tail-Sequential/).*"),
    "on again": (lambda net: [(net.tail, False), (net, True)], r".*"),
    "operator": (lambda net: [(torch.ops.aten.tanh, True)], r".*/Tanh-op\d"),
    "overload": (lambda net: [(torch.ops.aten.sin.default, True)], r"Default/Sin-op0"),
    "all but an operator": (lambda net: [(net, True), (torch.ops.aten.t, False)], r"(?!.*/T-op\d).*"),
}


@pytest.fixture
def unflagged() -> Iterator[None]:
    yield
    opscope.mindspore._flags._operators.clear()


@pytest.mark.parametrize("case", FLAG_CASES)
@pytest.mark.parametrize("target", ["cpu", "ascend-o0"])
def test_set_dump(folder: Path, unflagged: None, case: str, target: str) -> None:
    flags, pattern = FLAG_CASES[case]
    net = Net()
    for module, enabled in flags(net):
        opscope.mindspore.set_dump(module, enabled)
    dumping = backend(folder, target, dump_mode=2)
    torch.compile(net, backend=dumping)(torch.randn(3, 4)).sum().backward()
    if case == "nothing":
        with pytest.warns(RuntimeWarning, match="no executed graph contains anything selected"):
            dumping.finish()
    else:
        dumping.finish()
    lists = (folder / "rank_0/execution_order").glob("ms_execution*")
    full_names = [name for path in lists for name in path.read_text().splitlines()[1:]]
    expected = {clean(name) for name in full_names if re.fullmatch(pattern, name)}
    found = {name for step in folder.glob("rank_0/Net/*/0") for name in names(step)}
    assert found == expected
    if case == "child":
        assert any(name.startswith("Gradients_") for name in found)


def test_set_dump_of_a_module_in_a_function(folder: Path) -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    opscope.mindspore.set_dump(second)
    dumping = backend(folder, dump_mode=2)
    with torch.no_grad():
        torch.compile(lambda x: second(first(x)).sin(), backend=dumping)(torch.ones(2, 3))
    dumping.finish()
    (graph,) = graph_dirs(folder)
    assert names(graph / "0") == {clean(name) for name in order(folder, graph) if "second-Linear" in name} != set()


@pytest.mark.parametrize(
    ("choose", "expected"),
    [
        (lambda net: net, {"T-op0", "Addmm-op0", "Sin-op0", "Cos-op0", "Tan-op0"}),
        (lambda net: net.fc, {"T-op0", "Addmm-op0"}),
        (lambda net: net.last, {"Tan-op0"}),
    ],
)
def test_set_dump_around_a_graph_break(folder: Path, choose: Any, expected: set[str]) -> None:
    class Tan(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.tan()

    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.last = nn.Linear(2, 2), Tan()

        def forward(self, x: Tensor) -> Tensor:
            x = self.last(self.fc(x)).sin()
            torch._dynamo.graph_break()
            # Nothing here needs `self`.
            return x.cos()

    net = Broken()
    opscope.mindspore.set_dump(choose(net))
    dumping = backend(folder, dump_mode=2)
    with torch.no_grad():
        torch.compile(net, backend=dumping)(torch.ones(1, 2))
    assert dumping.finish()["n_graphs"] == 2
    found = {name for graph in graph_dirs(folder) for name in names(graph / "0")}
    assert {name.split("_")[-1] for name in found} == expected


def test_set_dump_counts_when_a_graph_is_compiled(folder: Path) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    dumping = backend(folder, dump_mode=2)
    compiled = torch.compile(net, backend=dumping, dynamic=False)
    x = torch.randn(1, 2)
    opscope.mindspore.set_dump(net[1])
    result = compiled(x)
    opscope.mindspore.set_dump(net[1], False)
    opscope.mindspore.set_dump(net[0])
    # The backward graph goes with its forward graph; another shape is another graph.
    result.sum().backward()
    compiled(torch.randn(3, 2))
    dumping.finish()
    kinds = [{name.rsplit("_", 1)[-1] for name in names(graph / "0")} for graph in graph_dirs(folder)]
    assert kinds[0] - {"Detach-op0"} == {"Relu-op0"} and kinds[2] == {"T-op0", "Addmm-op0"}
    assert any("ThresholdBackward" in name for name in kinds[1]) and not any("Mm" in name for name in kinds[1])


@pytest.mark.parametrize(
    ("target", "enabled"), [(lambda x: x, True), ("model", True), (nn.Linear, True), (nn.ReLU(), 1)]
)
def test_set_dump_refuses(target: object, enabled: object) -> None:
    with pytest.raises(ValueError, match="set_dump: `(target|enabled)` must be"):
        opscope.mindspore.set_dump(target, enabled)


def test_flags_go_with_their_module() -> None:
    flags = opscope.mindspore._flags
    net = nn.Sequential(nn.ReLU())
    opscope.mindspore.set_dump(net)
    numbers = {id(net), id(net[0])}
    assert numbers <= set(flags.snapshot().modules)
    del net
    assert not numbers & set(flags.snapshot().modules)
