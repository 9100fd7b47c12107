"""Tensors of all kinds, against the bytes that torch has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dumps
import models
import opscope.torch
import pytest
import torch
from reference import Reference
from torch import Tensor


def _parts(result: Any) -> tuple:
    return tuple(result) if isinstance(result, tuple) else (result,)


def check(tmp_path: Any, function: Callable[..., Any], *inputs: Tensor, data: str = "tensor", **kwargs: Any) -> dict:
    """Expects the values of torch's own interpreter in the dump; returns the report."""
    reference = Reference()
    expected = torch.compile(function, backend=reference, **kwargs)(*(x.clone() for x in inputs))
    torch._dynamo.reset()
    backend = opscope.torch.backend(tmp_path, data=data, form="acl")
    found = torch.compile(function, backend=backend, **kwargs)(*(x.clone() for x in inputs))
    report = backend.finish()
    for one, other in zip(_parts(expected), _parts(found), strict=True):
        assert models.bits(one) == models.bits(other)
    for graph, written in zip(reference.graphs, dumps.graphs(report["root"]), strict=True):
        for name, execution in graph.runs[0].items():
            if not any(seen[1] for seen in execution.inputs + execution.outputs):
                assert name not in written[0], "a record without any element has a file"
                continue
            if data == "tensor":
                content = written[0][name].data()
                assert [(t.shape, t.payload) for t in content.inputs] == execution.inputs, name
                assert [(t.shape, t.payload) for t in content.outputs] == execution.outputs, name
    assert report["first_fault"] is None and report["first_error"] is None
    return report


DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int8,
    torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
    torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu,
]  # fmt: skip


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(tmp_path, dtype: torch.dtype) -> None:
    x = torch.arange(1, 7).to(torch.float32).reshape(2, 3).to(dtype)
    report = check(tmp_path, lambda x: torch.flatten(x.view(3, 2)).clone(), x)
    assert report["unseen"] == {} and report["n_written"] >= 3


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz], ids=str)
def test_dtypes_without_a_counterpart_are_counted(tmp_path, dtype: torch.dtype) -> None:
    backend = opscope.torch.backend(tmp_path, form="acl")
    torch.compile(lambda x: x.to(torch.float32) + 1, backend=backend)(torch.ones(3).to(dtype))
    report = backend.finish()
    assert report["unseen"] == {f"dtype {str(dtype).removeprefix('torch.')}": 1}
    assert report["dropped"]["not_shown"] == 1


STRIDED = {
    "transposed": lambda x: x.t() + 1,
    "permuted": lambda x: x.reshape(2, 3, 2).permute(2, 0, 1) * 2,
    "sliced": lambda x: x[1:, ::2].sin(),
    "expanded": lambda x: x[:1].expand(5, 6) - 1,
    "channels last": lambda x: x.reshape(1, 2, 3, 2).to(memory_format=torch.channels_last).relu(),
    "diagonal": lambda x: x.diagonal().cos(),
    "scalar": lambda x: x.sum() + x[0, 0],
    "empty": lambda x: torch.cat([x[:0], x]) + 1,
    "only empty": lambda x: x[:0] * 2,
    "list": lambda x: torch.cat([part + i for i, part in enumerate(x.split(1))]),
    "several results": lambda x: x.max(dim=1),
    "in place": lambda x: x.clone().mul_(2).add_(x),
    "of a view in place": lambda x: x.clone().view(-1).add_(1).view(2, 6),
}


@pytest.mark.sampled(0.3, each="data")
@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_layouts(tmp_path, name: str, data: str) -> None:
    report = check(tmp_path, STRIDED[name], torch.randn(2, 6), data=data)
    assert report["unseen"] == {}


COMPLEX = {
    "conj": lambda x: x.conj() + 0,
    "conj of a list": lambda x: torch.cat(list(x.conj().unbind(0))),
    "imag of conj": lambda x: x.conj().imag * 1,
    "matmul with conj": lambda x: x @ x.mH,
}


@pytest.mark.sampled(0.5, each="data")
@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_views_that_stand_for_other_elements(tmp_path, name: str, data: str) -> None:
    report = check(tmp_path, COMPLEX[name], torch.randn(3, 4, dtype=torch.complex64), data=data)
    assert report["unseen"] == {}


def test_an_input_that_the_graph_writes_to(tmp_path) -> None:
    """A record has the value that its operator read, whatever was written there since."""

    def function(x: Tensor, y: Tensor) -> Tensor:
        first = x + y
        x.mul_(3)
        y.copy_(first)
        return first * x

    check(tmp_path, function, torch.randn(40_000), torch.randn(40_000))


def test_results_that_the_caller_overwrites(tmp_path) -> None:
    """The caller writes to what it was given at once, while writers are still busy with it."""
    x = torch.randn(1 << 18)
    backend = opscope.torch.backend(tmp_path, n_writers=1, form="acl")

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        doubled = x * 2
        return doubled, doubled[10:]

    compiled = torch.compile(function, backend=backend)
    expected = []
    for _ in range(5):
        x += 1
        expected.append((models.bits(x), models.bits(x * 2)))
        result, _ = compiled(x)
        result.fill_(-1)
    (graph,) = dumps.graphs(backend.finish()["root"])
    for step, (read, given) in enumerate(expected):
        content = graph[step]["mul"].data()
        assert [t.payload for t in content.inputs] == [read]
        assert [t.payload for t in content.outputs] == [given]


@pytest.mark.parametrize("n", [100, 1 << 20], ids=["small", "large"])
def test_statistics_of_results_that_the_caller_overwrites(tmp_path, n: int) -> None:
    """Numbers are taken before the caller has the result, whichever size it is."""
    backend = opscope.torch.backend(tmp_path, data="stats", n_writers=1, form="acl")

    def function(x: Tensor, y: Tensor) -> Tensor:
        y.add_(x)
        return x * 2

    compiled = torch.compile(function, backend=backend)
    for step in range(8):
        x, y = torch.full((n,), float(step)), torch.full((n,), 100.0)
        compiled(x, y).fill_(-1)
        x.fill_(-1)
        y.fill_(-1)
    (graph,) = dumps.graphs(backend.finish()["root"])
    found = [[row["Max Value"] for row in graph[step]["mul"].rows()] for step in range(8)]
    assert found == [[str(step), str(2 * step)] for step in range(8)]
    sums = [[row["Max Value"] for row in graph[step]["add"].rows()] for step in range(8)]
    assert sums == [["100", str(step), str(100 + step)] for step in range(8)]


def test_what_has_no_defined_content_is_left_out(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, form="acl")
    torch.compile(lambda x: x.new_empty(3).fill_(1) + x, backend=backend)(torch.ones(3))
    report = backend.finish()
    assert report["unseen"].get("uninitialised", 0) >= 1
    (graph,) = dumps.graphs(report["root"])
    outputs = {name: bool(record.data().outputs) for name, record in graph[0].items()}
    assert outputs == {"new_empty": False, "fill": True, "add": True}


def test_sizes_that_change(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, form="acl")
    compiled = torch.compile(lambda x: (x * 2).sum(0) + x.shape[0], backend=backend, dynamic=True)
    for n in (3, 5, 8):
        compiled(torch.randn(n, 4))
    graphs = dumps.graphs(backend.finish()["root"])
    shapes = [graph[step]["mul"].data().inputs[0].shape for graph in graphs for step in sorted(graph)]
    assert shapes == [(3, 4), (5, 4), (8, 4)]


def test_sparse_tensors_in_parts(tmp_path) -> None:
    """Torch compiles no graph with sparse arguments, so the graph is made by hand."""
    from torch.fx.experimental.proxy_tensor import make_fx

    sparse = torch.eye(3).to_sparse()
    graph_module = make_fx(lambda a, b: torch.sparse.mm(a, b) + 1)(sparse, torch.ones(3, 2))
    backend = opscope.torch.backend(tmp_path, form="acl")
    run = backend.compile_aten(graph_module)
    assert torch.equal(torch.as_tensor(run([sparse, torch.ones(3, 2)])), torch.full((3, 2), 2.0))
    report = backend.finish()
    assert report["unseen"] == {}
    (graph,) = dumps.graphs(report["root"])
    (product,) = (record for record in graph[0].values() if "mm" in record.op_type)
    inputs = [(t.shape, t.payload) for t in product.data().inputs]
    expected = (torch.zeros(3, 2), sparse._indices(), sparse._values(), torch.ones(3, 2))
    assert inputs == [(tuple(part.shape), models.bits(part)) for part in expected]
