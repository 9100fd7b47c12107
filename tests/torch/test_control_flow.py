"""Operators with graphs inside: branches, loops, parts that are called several times; and what torch transforms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dumps
import models
import opscope.torch
import pytest
import torch
from opscope.torch import _bodies
from torch import Tensor

pytestmark = pytest.mark.filterwarnings("ignore")


def run(tmp_path: Path, function: Callable, *inputs: Any, **options: Any) -> tuple[dict, list, Any]:
    """The report, the graphs' records, and the function's result, which equals that without a dump."""
    expected = torch.compile(function, backend="aot_eager")(*inputs)
    torch._dynamo.reset()
    backend = opscope.torch.backend(tmp_path, **options, form="acl")
    found = torch.compile(function, backend=backend)(*inputs)
    for one, other in zip(parts(expected), parts(found), strict=True):
        assert models.bits(one) == models.bits(other)
    report = backend.finish()
    assert report["first_fault"] is None and report["first_error"] is None
    return report, dumps.graphs(report["root"]), found


def parts(result: Any) -> tuple:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def given(records: dict, name: str) -> list[bytes]:
    return [tensor.payload for tensor in records[name].data().outputs]


def read(records: dict, name: str) -> list[bytes]:
    return [tensor.payload for tensor in records[name].data().inputs]


def described(report: dict) -> list[dict]:
    paths = (Path(report["root"]) / ".opscope/graphs").iterdir()
    return sorted((json.loads(path.read_text()) for path in paths), key=lambda g: int(g["name"].split("_")[1]))


def branches(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos(), (x,)) + 1


@pytest.mark.parametrize("sign", [1, -1])
def test_cond(tmp_path, sign: int) -> None:
    x = sign * torch.arange(1.0, 4.0)
    report, (graph,), _ = run(tmp_path, branches, x)
    taken = {"cond_sin": x.sin(), "cond_mul": x.sin() * 2} if sign == 1 else {"cond_cos": x.cos()}
    assert set(graph[0]) == {"sum_1", "gt", "cond", "add", *taken}
    for name, value in taken.items():
        assert given(graph[0], name) == [models.bits(value)]
    assert given(graph[0], "cond") == [models.bits(list(taken.values())[-1])]
    assert report["unseen"] == {} and report["n_dropped"] == 0


def test_numbers_and_names_of_what_is_inside(tmp_path) -> None:
    """A body's operators come right after the one that holds it, as in dumps of ONNX models."""
    report, _, _ = run(tmp_path, branches, torch.ones(3))
    (graph,) = described(report)
    names = [one["op_name"] for one in graph["operators"]]
    assert names == ["sum_1", "gt", "cond", "cond.sin", "cond.mul", "cond.cos", "add"]
    assert [one["task_id"] for one in graph["operators"]] == list(range(7))
    bodies = [one["attributes"].get("body") for one in graph["operators"]]
    assert bodies[:3] == [None] * 3 and bodies[3] == bodies[4] != bodies[5]
    values = [name for one in graph["operators"] for name in one["outputs"]]
    assert len(values) == len(set(values))


def test_the_same_name_in_both_branches(tmp_path) -> None:
    def function(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.sin() - 1, (x,))

    report, (graph,), _ = run(tmp_path, function, -torch.ones(2))
    names = [one["op_name"] for one in described(report)[0]["operators"]]
    assert len(names) == len(set(names)) and "cond.sin" in names
    assert {"cond_false_graph_0_sin", "cond_sub"} < set(graph[0]) and "cond_sin" not in graph[0]


def test_cond_inside_cond(tmp_path) -> None:
    def inner(x: Tensor) -> Tensor:
        return torch.cond(x.max() > 2, lambda x: x.tan(), lambda x: x.exp(), (x,))

    def function(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, inner, lambda x: x.cos(), (x,))

    x = torch.tensor([0.5, 1.0])
    _, (graph,), _ = run(tmp_path, function, x)
    names = set(graph[0])
    assert "cond_cond_exp" in names or "cond_cond_0_exp" in names, names
    assert not any("tan" in name or "cos" in name for name in names)


class Branching(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.line(x).relu(), lambda x: x.cos(), (x,))


def test_cond_forward_and_backward(tmp_path) -> None:
    torch.manual_seed(0)
    model = Branching()
    x = torch.randn(2, 3).abs()
    model(x).sum().backward()
    expected = {name: models.bits(p.grad) for name, p in model.named_parameters()}
    model.zero_grad()
    backend = opscope.torch.backend(tmp_path, form="acl")
    torch.compile(model, backend=backend)(x).sum().backward()
    report = backend.finish()
    assert {name: models.bits(p.grad) for name, p in model.named_parameters()} == expected
    forward, backward = dumps.graphs(report["root"])
    assert {"cond_addmm", "cond_relu", "cond"} <= set(forward[0]) and "cond_cos" not in forward[0]
    inside = {record.op_type for name, record in backward[0].items() if name.startswith("cond_1_")}
    assert "aten_threshold_backward_default" in inside and "aten_mm_default" in inside
    weight = models.bits(model.line.weight.grad)
    assert any(weight in given(backward[0], name) for name in backward[0] if name.startswith("cond_1_"))
    assert report["unseen"] == {} and report["n_dropped"] == 0


def test_while_loop(tmp_path) -> None:
    from torch._higher_order_ops.while_loop import while_loop

    def function(x: Tensor) -> Tensor:
        n = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.sin() * 2), (n, x))[1] + 1

    x = torch.tensor([0.3, 0.7])
    report, (graph,), _ = run(tmp_path, function, x)
    for i in range(3):
        assert read(graph[0], f"while_loop_sin_{i}") == [models.bits(x)]
        x = x.sin() * 2
        assert given(graph[0], f"while_loop_mul_{i}") == [models.bits(x)]
        assert given(graph[0], f"while_loop_lt_{i}") == [b"\x01"]
    assert given(graph[0], "while_loop_lt_3") == [b"\x00"]
    assert "while_loop_sin_3" not in graph[0] and report["unseen"] == {} and report["n_dropped"] == 0
    # The number of the iteration is not in the description: one operator there, many records.
    names = [one["op_name"] for one in described(report)[0]["operators"]]
    assert "while_loop.sin" in names and "while_loop.sin.0" not in names


def test_loops_in_statistics_and_on_one_side(tmp_path) -> None:
    from torch._higher_order_ops.while_loop import while_loop

    def function(x: Tensor) -> Tensor:
        n = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x * 2), (n, x))[1]

    _, (graph,), _ = run(tmp_path / "stats", function, torch.full((4,), 1.5), data="stats")
    assert [float(graph[0][f"while_loop_mul_{i}"].rows()[1]["Max Value"]) for i in range(2)] == [3.0, 6.0]
    torch._dynamo.reset()
    _, (graph,), _ = run(tmp_path / "inputs", function, torch.full((4,), 1.5), mode="input")
    content = graph[0]["while_loop_mul_1"].data()
    assert [t.payload for t in content.inputs] == [models.bits(torch.full((4,), 3.0))] and content.outputs == []


def test_a_loop_in_a_loop(tmp_path) -> None:
    """Iterations are counted from 0 for each run of the inner loop."""
    from torch._higher_order_ops.while_loop import while_loop

    def inner(x: Tensor) -> Tensor:
        n = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda j, x: j < 2, lambda j, x: (j + 1, x.sin()), (n, x))[1]

    def function(x: Tensor) -> Tensor:
        n = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, inner(x)), (n, x))[1]

    x = torch.tensor([0.9])
    _, (graph,), _ = run(tmp_path, function, x)
    names = sorted(name for name in graph[0] if "_sin_" in name)
    assert [name.split("_sin_")[1] for name in names] == ["0_0", "0_1", "1_0", "1_1"]
    for name in names:
        x = x.sin()
        assert given(graph[0], name) == [models.bits(x)]


def test_scan(tmp_path) -> None:
    from torch._higher_order_ops.scan import scan

    def function(x: Tensor, xs: Tensor) -> tuple:
        return scan(lambda carry, x: (carry.sin() + x, carry * x), x, xs)

    carry, xs = torch.tensor([0.5, 2.0]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    report, (graph,), _ = run(tmp_path, function, carry, xs)
    for i, x in enumerate(xs):
        assert read(graph[0], f"scan_mul_{i}") == [models.bits(carry), models.bits(x)]
        carry = carry.sin() + x
        assert given(graph[0], f"scan_add_{i}") == [models.bits(carry)]
    assert "scan_add_3" not in graph[0] and report["unseen"] == {}


def test_runs_of_scan_that_are_not_the_models(monkeypatch, tmp_path) -> None:
    """Some versions of torch run the body once more, in front, to learn shapes."""
    from torch._higher_order_ops.scan import scan

    n_in_front = _bodies._n_dry_runs_of_scan()
    monkeypatch.setattr(_bodies, "_n_dry_runs_of_scan", lambda: n_in_front + 1)
    inputs = (torch.ones(1), torch.ones(3, 1))
    _, (graph,), _ = run(tmp_path, lambda x, xs: scan(lambda c, x: (c + x, c * x), x, xs), *inputs)
    assert {name for name in graph[0] if "_add_" in name} == {"scan_add_0", "scan_add_1"}


@pytest.mark.parametrize("name", ["cond", "map_impl"])
def test_an_operator_that_runs_a_trace_of_its_body(name: str, tmp_path, monkeypatch) -> None:
    """Old versions of torch call the body only with memory that nobody has written: no value is made of it."""
    from torch._higher_order_ops.map import map as torch_map

    monkeypatch.setattr(_bodies, "_is_run_on_values", lambda _: False)

    def function(xs: Tensor) -> Tensor:
        if name == "cond":
            return torch.cond(xs.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (xs,))
        return torch_map(lambda x: x.sin() + 1, xs)

    report, (graph,), _ = run(tmp_path, function, torch.ones(3, 2))
    assert not any("sin" in name for name in graph[0]) and any("map" in name or "cond" in name for name in graph[0])
    assert report["unseen"][f"inside {name}"] > 0


def test_bodies_are_run_on_values_here() -> None:
    """In the version of torch that the tests install."""
    assert all(map(_bodies._is_run_on_values, _bodies._PROBES))


@pytest.mark.skipif(not _bodies._is_run_on_values("map_impl"), reason="this torch runs a trace of the body")
def test_map(tmp_path) -> None:
    from torch._higher_order_ops.map import map as torch_map

    xs = torch.arange(6.0).reshape(3, 2)
    report, (graph,), _ = run(tmp_path, lambda xs, y: torch_map(lambda x, y: x.sin() + y, xs, y), xs, torch.ones(2))
    names = sorted(name for name in graph[0] if "_sin_" in name)
    assert [given(graph[0], name) for name in names] == [[models.bits(x.sin())] for x in xs]
    assert report["unseen"] == {}


@pytest.mark.skipif(not _bodies._is_run_on_values("map_impl"), reason="this torch runs a trace of the body")
def test_map_backward(tmp_path) -> None:
    from torch._higher_order_ops.map import map as torch_map

    backend = opscope.torch.backend(tmp_path, form="acl")
    xs = torch.arange(4.0).reshape(2, 2).requires_grad_()
    torch.compile(lambda xs: torch_map(lambda x: x.sin(), xs), backend=backend)(xs).sum().backward()
    report = backend.finish()
    assert torch.allclose(xs.grad, xs.detach().cos())
    _, backward = dumps.graphs(report["root"])
    inside = {name for name in backward[0] if "cos_" in name}
    assert len(inside) == 2 and report["unseen"] == {} and report["first_fault"] is None


@pytest.mark.skipif(not hasattr(torch.compiler, "nested_compile_region"), reason="this torch has no such regions")
def test_a_part_that_is_called_twice(tmp_path) -> None:
    @torch.compiler.nested_compile_region
    def part(x: Tensor) -> Tensor:
        return x.sin() * 2

    x = torch.tensor([0.25, 1.0])
    report, (graph,), _ = run(tmp_path, lambda x: part(part(x)) + 1, x)
    in_order = sorted(graph[0], key=lambda name: graph[0][name].task_id)
    sines = [given(graph[0], name) for name in in_order if name.endswith("_sin")]
    assert sines == [[models.bits(x.sin())], [models.bits((x.sin() * 2).sin())]] and report["unseen"] == {}


@pytest.mark.skipif(not hasattr(torch.compiler, "nested_compile_region"), reason="this torch has no such regions")
def test_a_part_that_is_called_twice_backward(tmp_path) -> None:
    @torch.compiler.nested_compile_region
    def part(x: Tensor) -> Tensor:
        return x.sin() * 2

    x = torch.tensor([0.25, 1.0], requires_grad=True)
    part(part(x)).sum().backward()
    expected, x.grad = models.bits(x.grad), None
    backend = opscope.torch.backend(tmp_path, form="acl")
    torch.compile(lambda x: part(part(x)), backend=backend)(x).sum().backward()
    report = backend.finish()
    assert models.bits(x.grad) == expected and report["first_fault"] is None and report["unseen"] == {}
    _, backward = dumps.graphs(report["root"])
    assert sum(record.op_type == "aten_cos_default" for record in backward[0].values()) == 2


def test_checkpoint(tmp_path) -> None:
    """Checks that operators computed once more in the backward pass are dumped there as well."""
    from torch.utils.checkpoint import checkpoint

    def function(x: Tensor) -> Tensor:
        return checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)

    x = torch.tensor([0.5], requires_grad=True)
    backend = opscope.torch.backend(tmp_path, form="acl")
    torch.compile(function, backend=backend)(x).sum().backward()
    forward, backward = dumps.graphs(backend.finish()["root"])
    sine = models.bits(x.detach().sin())
    assert given(forward[0], "sin") == [sine]
    assert [given(backward[0], name) for name, r in backward[0].items() if r.op_type == "aten_sin_default"] == [[sine]]


@torch.library.custom_op("opscope_test::double_into", mutates_args=("to",))
def double_into(x: Tensor, to: Tensor) -> Tensor:
    """Writes to an argument and also returns something."""
    to.copy_(x * 2)
    return x + 1


@double_into.register_fake
def _(x: Tensor, to: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_an_operator_of_ones_own_that_writes_to_an_argument(tmp_path) -> None:
    def function(x: Tensor) -> Tensor:
        to = torch.zeros_like(x)
        return double_into(x, to) * to

    x = torch.tensor([1.0, 3.0])
    report, (graph,), _ = run(tmp_path, function, x)
    (name,) = (name for name in graph[0] if name.startswith("auto_functionalized"))
    assert given(graph[0], name) == [models.bits(x + 1), models.bits(x * 2)]
    assert read(graph[0], "mul") == [models.bits(x + 1), models.bits(x * 2)] and report["unseen"] == {}


def test_layers_inside(tmp_path) -> None:
    def operators(layers: str) -> set[str]:
        torch._dynamo.reset()
        _, (graph,), _ = run(tmp_path / layers, branches, torch.ones(3), layers=layers)
        # The graph's arguments that an operator reads are dumped next to it.
        return {name for name in graph[0] if not name.startswith("arg")}

    assert operators("cond.sin") == {"cond_sin"}
    assert operators("cond.") == {"cond_sin", "cond_mul", "cond"}
    outer = operators("cond")
    assert "cond" in outer and "cond_sin" not in outer


def test_flex_attention_is_counted_inside(tmp_path) -> None:
    from torch.nn.attention.flex_attention import flex_attention

    def score(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return score + (q - k)

    x = torch.randn(1, 2, 16, 16)
    report, (graph,), _ = run(tmp_path, lambda x: flex_attention(x, x, x, score_mod=score) + 1, x)
    assert report["unseen"].get("inside flex_attention", 0) >= 2 and set(report["unseen"]) == {"inside flex_attention"}
    assert report["n_dropped"] == report["dropped"]["not_shown"] > 0
    (name,) = (name for name in graph[0] if name.startswith("flex_attention"))
    assert len(given(graph[0], name)) >= 2 and not any(name.startswith("flex_attention_") for name in graph[0])


def test_transforms_inside_a_compiled_function(tmp_path) -> None:
    def function(x: Tensor) -> tuple:
        gradient = torch.func.grad(lambda x: (x.sin() * x).sum())(x)
        return gradient, torch.vmap(lambda row: row.cumsum(0) * row.max())(x), torch.func.jvp(torch.sin, (x,), (x,))[1]

    report, (graph,), _ = run(tmp_path, function, torch.randn(3, 4))
    kinds = {record.op_type for record in graph[0].values()}
    assert {"aten_sin_default", "aten_cos_default", "aten_cumsum_default"} <= kinds and report["unseen"] == {}


def test_compiled_autograd(tmp_path) -> None:
    torch.manual_seed(0)
    model, x = models.Cnn().eval(), torch.randn(2, 3, 10, 10)
    model(x).square().mean().backward()
    expected = {name: models.bits(p.grad) for name, p in model.named_parameters()}
    model.zero_grad()
    backend = opscope.torch.backend(tmp_path, form="acl")
    compiled = torch.compile(model, backend=backend)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend=backend)):
        compiled(x).square().mean().backward()
    report = backend.finish()
    assert {name: models.bits(p.grad) for name, p in model.named_parameters()} == expected
    assert report["first_fault"] is None and report["n_graphs"] >= 2
    kinds = {record.op_type for graph in dumps.graphs(report["root"]) for record in graph[0].values()}
    assert "aten_convolution_backward_default" in kinds


def test_an_exported_program(tmp_path) -> None:
    torch.manual_seed(0)
    model, x = models.Mlp().eval(), torch.randn(2, 10)
    with torch.no_grad():
        exported = torch.export.export(model, (x,)).module()
        report, graphs, _ = run(tmp_path, exported, x)
    assert any(record.op_type == "aten_gelu_default" for record in graphs[0][0].values()) and report["unseen"] == {}


def test_an_exported_branch(tmp_path) -> None:
    model = Branching()
    with torch.no_grad():
        exported = torch.export.export(model, (torch.ones(2, 3),)).module()
        _, graphs, _ = run(tmp_path, exported, torch.ones(2, 3))
    assert any(name.endswith("_relu") for name in graphs[0][0])


def test_fake_tensors(tmp_path) -> None:
    """A program that only wants shapes is not disturbed."""
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    backend = opscope.torch.backend(tmp_path, form="acl")
    call = backend.compile_aten(make_fx(lambda x: x.sin().cos())(torch.ones(3)))
    with FakeTensorMode() as mode:
        (result,) = parts(call([mode.from_tensor(torch.ones(3))]))
    assert result.shape == (3,)
    report = backend.finish()
    assert report["unseen"] == {"type FakeTensor": 3} and report["n_files"] == 0 and report["first_fault"] is None
