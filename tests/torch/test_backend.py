"""Models run the same with taps, and the dump has what their operators read and gave."""

from __future__ import annotations

import dumps
import models
import opscope.torch
import pytest
import torch
from reference import Reference

CASES = pytest.mark.parametrize("name", models.CASES)
TRAINING = pytest.mark.parametrize("is_training", [False, True], ids=["forward", "training"])


@CASES
@TRAINING
@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_results_are_the_same_to_the_bit(tmp_path, name: str, is_training: bool, data: str) -> None:
    case = models.CASES[name]
    eager = models.run(case, is_training=is_training)
    torch._dynamo.reset()
    untapped = models.run(case, opscope.torch.backend(enabled=False), is_training=is_training)
    torch._dynamo.reset()
    backend = opscope.torch.backend(tmp_path, data=data)
    tapped = models.run(case, backend, is_training=is_training)
    report = backend.finish()
    assert models.same(eager, untapped)
    assert models.same(untapped, tapped)
    assert report["n_written"] > 0 and report["first_error"] is None and report["first_fault"] is None
    assert report["n_selected"] == report["n_written"] + report["n_refused"] + report["n_dropped"] + report["n_failed"]
    assert report["n_dropped"] == 0 and report["unseen"] == {}


@CASES
@TRAINING
def test_every_operator_has_its_values(tmp_path, name: str, is_training: bool) -> None:
    case = models.CASES[name]
    reference = Reference()
    models.run(case, reference, is_training=is_training)
    torch._dynamo.reset()
    backend = opscope.torch.backend(tmp_path)
    models.run(case, backend, is_training=is_training)
    report = backend.finish()

    found = dumps.graphs(report["root"])
    assert len(found) == len(reference.graphs) == report["n_graphs"] == (2 if is_training else 1)
    n_records = 0
    for expected, graph in zip(reference.graphs, found, strict=True):
        assert sorted(graph) == list(range(len(expected.runs))) == [0, 1]
        for step, run in enumerate(expected.runs):
            assert set(graph[step]) == set(run)
            for op_name, execution in run.items():
                record = graph[step][op_name]
                assert record.op_type == execution.target.replace(".", "_")
                data = record.data()
                assert [(t.shape, t.payload) for t in data.inputs] == execution.inputs, op_name
                assert [(t.shape, t.payload) for t in data.outputs] == execution.outputs, op_name
                n_records += 1
    assert report["n_operators_written"] == report["n_files"] == n_records


@pytest.mark.parametrize(("mode", "has"), [("input", (True, False)), ("output", (False, True)), ("all", (True, True))])
def test_sides(tmp_path, mode: str, has: tuple[bool, bool]) -> None:
    backend = opscope.torch.backend(tmp_path, mode=mode)
    models.run(models.CASES["mlp"], backend, is_training=False, n_steps=1)
    (graph,) = dumps.graphs(backend.finish()["root"])
    assert len(graph[0]) > 5
    for record in graph[0].values():
        data = record.data()
        assert (bool(data.inputs), bool(data.outputs)) == has, record.op_name


def test_statistics(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, data="stats")
    weight = torch.randn(3, 3)
    seen = []

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x @ weight.t()).log()

    x = torch.randn(2, 3)
    seen.append(torch.compile(function, backend=backend)(x))
    report = backend.finish()
    (graph,) = dumps.graphs(report["root"])
    product, row = (graph[0][name].rows()[-1] for name in ("mm", "log"))
    expected = x @ weight.t()
    assert (row["Input/Output"], row["Shape"], row["Count"]) == ("Output", "2x3", "6")
    assert row["Nan Count"] == str(int(seen[0].isnan().sum())) != "0"
    found = [float(product[name]) for name in ("Max Value", "Min Value", "Avg Value")]
    assert found == pytest.approx([float(f(expected)) for f in (torch.max, torch.min, torch.mean)], rel=1e-5)
    assert report["first_non_finite"]["op_name"] == "log"
    assert report["first_non_finite"]["side"] == "output"


def test_the_name_in_the_registry(tmp_path) -> None:
    compiled = torch.compile(torch.sin, backend="opscope", options={"path": str(tmp_path), "data": "stats"})
    compiled(torch.ones(3))
    (report,) = opscope.torch.finish()
    (graph,) = dumps.graphs(report["root"])
    assert set(graph[0]) == {"sin"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "none"}, "mode `none`"),
        ({"data": "csv"}, "data `csv`"),
        ({"pth": "x"}, "no option `pth`"),
        ({"steps": "1|x"}, "`x` is no number"),
        ({"steps": "5-3"}, "steps 5 to 3"),
    ],
)
def test_wrong_options(options: dict, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        opscope.torch.backend(**options)
