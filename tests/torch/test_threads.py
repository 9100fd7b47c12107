"""Graphs that several threads execute at once, and the order in which graphs were executed."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import dumps
import models
import opscope.torch
import pytest
import torch
from torch import Tensor


def executions(report: dict) -> list[dict]:
    content = json.loads((Path(report["root"]) / ".opscope/executions.json").read_text())
    assert content["version"] == 1 and content["n_left_out"] == 0
    return content["executions"]


_meeting: threading.Barrier | None = None


@torch.library.custom_op("opscope_test::meet", mutates_args=())
def meet(x: Tensor) -> Tensor:
    """Returns when as many threads are in here as are expected."""
    if _meeting is not None:
        _meeting.wait(600)
    return x.clone()


@meet.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_two_threads_in_the_same_graph_are_both_dumped(tmp_path, data: str) -> None:
    """Each is in the middle of the graph when the other one is."""
    global _meeting
    backend = opscope.torch.backend(tmp_path, data=data, form="acl")
    compiled = torch.compile(lambda x: meet(x.sin()).cos(), backend=backend)
    first = torch.zeros(5)
    with torch.no_grad():
        compiled(first)
    inputs = [torch.full((5,), 1.0), torch.full((5,), 2.0)]
    results: list[Tensor | None] = [None, None]

    def work(number: int) -> None:
        with torch.no_grad():
            results[number] = compiled(inputs[number])

    _meeting = threading.Barrier(2)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        _meeting = None
    report = backend.finish()
    assert [torch.equal(result, x.sin().cos()) for result, x in zip(results, inputs)] == [True, True]
    assert report["n_steps"] == report["n_steps_active"] == 3 and report["n_dropped"] == 0
    (graph,) = dumps.graphs(report["root"])
    assert set(graph) == {0, 1, 2} and all(set(step) == {"sin", "meet", "cos"} for step in graph.values())
    if data == "tensor":
        chains = {
            tuple(step[name].data().outputs[0].payload for name in ("sin", "cos")) for step in graph.values()
        }
        assert chains == {(models.bits(x.sin()), models.bits(x.sin().cos())) for x in (first, *inputs)}
    listed = executions(report)
    assert [one["index"] for one in listed] == [0, 1, 2] and {one["step"] for one in listed} == {0, 1, 2}
    assert len({one["thread"] for one in listed}) == 3 and {one["state"] for one in listed} == {"finished"}


def test_forward_and_backward_in_threads(tmp_path) -> None:
    """Backward passes run in the autograd engine's threads or the caller's; gradients are what they are without."""
    backend = opscope.torch.backend(tmp_path, form="acl")
    torch.manual_seed(3)
    model = models.Cnn().eval()
    compiled = torch.compile(model, backend=backend)
    inputs = [torch.randn(2, 3, 10, 10) for _ in range(3)]
    compiled(inputs[0].clone().requires_grad_()).square().sum().backward()
    found: dict[int, bytes] = {}

    def gradient(call: object, x: Tensor) -> bytes:
        x = x.clone().requires_grad_()
        (result,) = torch.autograd.grad(call(x).square().sum(), x)
        return models.bits(result)

    def work(number: int) -> None:
        for _ in range(4):
            found[number] = gradient(compiled, inputs[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = backend.finish()
    assert found == {number: gradient(model, x) for number, x in enumerate(inputs)}
    assert report["n_steps_active"] == 2 * (1 + 3 * 4) and report["n_dropped"] == 0
    for graph in dumps.graphs(report["root"]):
        assert set(graph) == set(range(13)) and len({frozenset(step) for step in graph.values()}) == 1


def test_the_order_of_execution(tmp_path) -> None:
    """Graphs are numbered as they are compiled; the list says how they ran."""

    def function(x: Tensor, is_long: bool) -> Tensor:
        x = x.sin()
        torch._dynamo.graph_break()
        return x.cos() if is_long else x.tan()

    backend = opscope.torch.backend(tmp_path, steps="0|1", form="acl")
    compiled = torch.compile(function, backend=backend)
    for is_long in (True, False, False, True):
        compiled(torch.ones(2), is_long)
    report = backend.finish()
    kinds = {}
    for path in (Path(report["root"]) / ".opscope/graphs").iterdir():
        graph = json.loads(path.read_text())
        kinds[graph["name"]] = graph["operators"][0]["attributes"]["kind"]
    ran = [(one["index"], kinds[one["graph"]], one["step"]) for one in executions(report)]
    # The third and the fourth execution of the first graph are not among the steps, and count.
    assert ran == [(0, "sin", 0), (1, "cos", 0), (2, "sin", 1), (3, "tan", 0), (5, "tan", 1), (7, "cos", 1)]


def test_an_execution_that_fails(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, form="acl")
    run = torch.compile(lambda x, i: x.sin()[i].cos(), backend=backend)
    run(torch.ones(3), torch.tensor([1]))
    with pytest.raises(IndexError):
        run(torch.ones(3), torch.tensor([7]))
    report = backend.finish()
    assert [one["state"] for one in executions(report)] == ["finished", "failed"]
