"""Models run the same with taps, and the dump has what their operators read and gave."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

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
    untapped = models.run(case, opscope.torch.backend(enabled=False, form="acl"), is_training=is_training)
    torch._dynamo.reset()
    backend = opscope.torch.backend(tmp_path, data=data, form="acl")
    tapped = models.run(case, backend, is_training=is_training)
    report = backend.finish()
    # Before 2.11 AOT autograd takes some backward operators apart, which rounds otherwise than eager mode.
    assert models.same(eager, untapped) or torch.__version__ < "2.11"
    assert models.same(untapped, tapped)
    assert report["n_written"] > 0 and report["first_error"] is None and report["first_fault"] is None
    assert report["n_selected"] == report["n_written"] + report["n_refused"] + report["n_dropped"] + report["n_failed"]
    # Before 2.11 there is such an operator, which takes part in no result.
    assert (report["n_dropped"] == 0 and report["unseen"] == {}) or torch.__version__ < "2.11"


@CASES
@TRAINING
def test_every_operator_has_its_values(tmp_path, name: str, is_training: bool) -> None:
    case = models.CASES[name]
    reference = Reference()
    models.run(case, reference, is_training=is_training)
    torch._dynamo.reset()
    backend = opscope.torch.backend(tmp_path, form="acl")
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
                n_records += 1
                data = record.data()
                if execution.is_defined:
                    assert [(t.shape, t.payload) for t in data.inputs] == execution.inputs, op_name
                    assert [(t.shape, t.payload) for t in data.outputs] == execution.outputs, op_name
    assert report["n_operators_written"] == report["n_files"] == n_records


def test_what_stands_beside_the_records(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, mode="output", steps=1, form="acl")
    models.run(models.CASES["mlp"], backend, is_training=True)
    report = backend.finish()
    own = Path(report["root"]) / ".opscope"
    run = json.loads((own / "run.json").read_text(encoding="utf-8"))
    assert (run["state"], run["engine"]) == ("finished", {"name": "torch", "version": torch.__version__})
    assert run["counters"]["n_written"] == report["n_written"] > 0

    forward, backward = dumps.graphs(report["root"])
    described = [json.loads((own / "graphs" / f"{model['name']}.json").read_text()) for model in run["models"]]
    assert [graph["phase"] for graph in described] == ["forward", "backward"]
    for graph, found in zip(described, (forward, backward), strict=True):
        by_task = {record.task_id: name for name, record in found[1].items()}
        assert by_task == {operator["task_id"]: operator["op_name"] for operator in graph["operators"]}
    product = next(operator for operator in described[0]["operators"] if operator["op_name"] == "addmm_1")
    attributes = product["attributes"]
    assert (attributes["module"], attributes["target"], attributes["alias"]) == (
        "down",
        "aten.addmm.default",
        "Addmm_1",
    )
    assert "models.py" in attributes["source"] and int(attributes["seq_nr"]) >= 0
    assert set(product["inputs"]) >= {"cat"} and product["outputs"] == ["addmm_1"]


@pytest.mark.parametrize(
    "context",
    [torch.inference_mode, torch.no_grad, lambda: torch.autocast("cpu", torch.bfloat16)],
    ids=["inference mode", "no grad", "autocast"],
)
def test_contexts(tmp_path, context: Callable[[], AbstractContextManager]) -> None:
    model = models.Transformer()
    tokens = torch.randint(0, 11, (2, 7))
    backend = opscope.torch.backend(tmp_path, form="acl")
    with context():
        expected, found = model(tokens), torch.compile(model, backend=backend)(tokens)
    report = backend.finish()
    assert expected.dtype == found.dtype and models.bits(expected) == models.bits(found)
    last = max(dumps.graphs(report["root"])[0][0].values(), key=lambda record: record.task_id)
    assert report["unseen"] == {} and last.data().outputs[-1].payload == models.bits(found)


@pytest.mark.parametrize(("mode", "has"), [("input", (True, False)), ("output", (False, True)), ("all", (True, True))])
def test_sides(tmp_path, mode: str, has: tuple[bool, bool]) -> None:
    backend = opscope.torch.backend(tmp_path, mode=mode, form="acl")
    models.run(models.CASES["mlp"], backend, is_training=False, n_steps=1)
    (graph,) = dumps.graphs(backend.finish()["root"])
    assert len(graph[0]) > 5
    for record in graph[0].values():
        data = record.data()
        assert (bool(data.inputs), bool(data.outputs)) == has, record.op_name


def test_statistics(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, data="stats", form="acl")
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
    options = {"path": str(tmp_path), "data": "stats", "form": "acl"}
    compiled = torch.compile(torch.sin, backend="opscope", options=options)
    compiled(torch.ones(3))
    (report,) = opscope.torch.finish()
    (graph,) = dumps.graphs(report["root"])
    assert set(graph[0]) == {"sin"}


def test_the_compiler_is_loaded_when_it_is_needed(tmp_path) -> None:
    """It takes seconds, and the names are known all the same."""
    program = """
        import sys, torch, opscope.torch, opscope.torchair
        assert "torch._dynamo" not in sys.modules, "importing the package loads the compiler"
        compiled = torch.compile(torch.sin, backend="opscope", options={"path": sys.argv[1], "data": "stats"})
        compiled(torch.ones(3))
        (report,) = opscope.torch.finish()
        assert report["n_operators_written"] == 1, report
        assert {"opscope", "npugraph_ex"} <= set(torch._dynamo.list_backends())
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def next_graph() -> str:
    """The name of the graph that is compiled next: graphs are numbered through the process."""
    return f"graph_{next(opscope.torch._backend._graph_numbers) + 1}"


def test_a_configuration_file(tmp_path) -> None:
    dump = {"dump_path": str(tmp_path), "dump_list": [{}], "dump_mode": "output"}
    backend = opscope.torch.backend(acl_json=json.dumps({"dump": dump | {"dump_step": "1-2"}}))
    models.run(models.CASES["mlp"], backend, is_training=False, n_steps=4)
    report = backend.finish()
    assert Path(report["root"]).parent == tmp_path
    (graph,) = dumps.graphs(report["root"])
    assert sorted(graph) == [1, 2]
    for record in graph[1].values():
        assert not record.data().inputs and record.data().outputs


def test_a_configuration_file_of_statistics_of_one_layer(tmp_path) -> None:
    chosen = [{"model_name": next_graph(), "layer": ["addmm_1"]}]
    dump = {"dump_path": str(tmp_path), "dump_list": chosen, "dump_data": "stats", "dump_stats": ["Max", "L2norm"]}
    backend = opscope.torch.backend(acl_json=json.dumps({"dump": dump}))
    models.run(models.CASES["mlp"], backend, is_training=False)
    (graph,) = dumps.graphs(backend.finish()["root"])
    operators = [{name for name in graph[step] if not name.startswith("arg")} for step in (0, 1)]
    assert operators == [{"addmm_1"}, {"addmm_1"}]
    assert any("l2" in title.lower() for title in graph[0]["addmm_1"].rows()[-1])


def test_a_configuration_file_that_asks_for_nothing(tmp_path) -> None:
    backend = opscope.torch.backend(acl_json='{"dump": {}}')
    result = models.run(models.CASES["mlp"], backend, is_training=False)
    torch._dynamo.reset()
    assert models.same(result, models.run(models.CASES["mlp"], is_training=False))
    assert backend.finish()["root"] is None


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("{", ValueError, "not valid JSON"),
        ('{"dump": {"dump_path": "/nonexistent", "dump_list": []}}', ValueError, "dump_path"),
    ],
)
def test_configuration_files_that_are_refused(text: str, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        opscope.torch.backend(acl_json=text)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "none"}, "mode `none`"),
        ({"data": "csv"}, "data `csv`"),
        ({"pth": "x"}, "no option `pth`"),
        ({"steps": "1|x"}, "`x` is neither a number nor a range"),
        ({"steps": "5-3"}, "steps 5 to 3"),
    ],
)
def test_wrong_options(options: dict, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        opscope.torch.backend(**options, form="acl")
