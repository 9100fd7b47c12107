"""That the suite would notice what it looks for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import forms
import judge
import known
import ml_dtypes
import numpy as np
import onnx
import pytest
import report
import run
import sample
import taps
import values
from cases import Case, Value
from judge import Verdict
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

F32, F16, BF16 = np.float32, np.float16, ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("found", "wanted", "outcome"),
    [
        (np.array([1, np.nan], F32), np.array([1.0009, np.nan], F32), judge.PASS),
        (np.array([1, 2], F32), np.array([1.002, 2], F32), judge.WRONG_VALUE),
        (np.array([np.inf], F32), np.array([3e38], F32), judge.WRONG_VALUE),
        (np.array([np.nan], F32), np.array([0], F32), judge.WRONG_VALUE),
        (np.array([1e-6], F32), np.array([0], F32), judge.WRONG_VALUE),
        (np.array([1], F32), np.array([1], F16), judge.WRONG_DTYPE),
        (np.array([1], F32), np.array([[1]], F32), judge.WRONG_SHAPE),
        (np.array([2**53 + 1]), np.array([2**53]), judge.PASS),
        (np.array([100]), np.array([101]), judge.WRONG_VALUE),
        (np.array([1], BF16), np.array([1.01], BF16), judge.PASS),
        (np.array([1], BF16), np.array([1.1], BF16), judge.WRONG_VALUE),
        (np.array([True]), np.array([False]), judge.WRONG_VALUE),
        (np.array(["a"]), np.array(["long text"]), judge.WRONG_VALUE),
        (np.array(["same"]), np.array(["same"], "<U9"), judge.PASS),
        (np.zeros(0, F32), np.zeros(0, F32), judge.PASS),
        (np.array([1 + 1j]), np.array([1 + 2j]), judge.WRONG_VALUE),
    ],
)
def test_outcomes(found: NDArray, wanted: NDArray, outcome: str) -> None:
    assert judge.compare("y", found, wanted, 1e-3, 1e-7).outcome == outcome


@pytest.mark.parametrize("elem_type", [TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.INT4])
def test_types_that_numpy_lacks_travel_as_raw_elements(elem_type: int, tmp_path: Path) -> None:
    proto = helper.make_tensor("x", elem_type, [3], [1, 2, -4])
    path = values.save_input(proto, tmp_path / "x")
    assert path.suffix == ".bin"
    entry = {"file": path.name, "dtype": values.type_name(elem_type), "shape": [3]}
    assert values.load_output(tmp_path, entry).tolist() == numpy_helper.to_array(proto).tolist() == [1, 2, -4]


def test_text_travels_with_its_length(tmp_path: Path) -> None:
    proto = helper.make_tensor("x", TensorProto.STRING, [2], [b"a", "ü".encode()])
    path = values.save_input(proto, tmp_path / "x")
    assert np.load(path).tolist() == values.expected(proto).tolist() == ["a", "ü"]


CASE = Case("test_x", "Abs", "", 13, False, 1e-3, 1e-7, [Value("x", "sequence")], [], Path("/cases/test_x"))


@pytest.mark.parametrize(
    ("code", "errors", "outcome"),
    [
        (3, "opscope: error: cannot run operator `y`\n", judge.REFUSED),
        (2, "opscope: error: input `x` was not given\n", judge.REFUSED),
        (4, "opscope: error: operator `y` failed: reason\n", judge.FAILED),
        (4, "opscope: error: operator `y` failed: the engine panicked: index\n", judge.FAILED),
        (101, "thread 'main' panicked\n", judge.CRASH),
        (-11, "", judge.CRASH),
        (3, "", judge.CRASH),
    ],
)
def test_ends_without_results(code: int, errors: str, outcome: str) -> None:
    assert run.refusal(CASE, code, errors).outcome == outcome


def _case(folder: Path, arrays: dict[str, NDArray], node: onnx.NodeProto, outputs: dict[str, NDArray]) -> Case:
    """A case of one operator, stored in `folder`."""
    protos = {name: numpy_helper.from_array(array, name) for name, array in {**arrays, **outputs}.items()}
    infos = {name: helper.make_tensor_value_info(name, p.data_type, p.dims) for name, p in protos.items()}
    graph = helper.make_graph([node], "g", [infos[name] for name in arrays], [infos[name] for name in outputs])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    for name in outputs:
        onnx.save_tensor(protos[name], folder / f"{name}.pb")

    def value(name: str, file: str) -> Value:
        return Value(name, "tensor", values.type_name(protos[name].data_type), list(protos[name].dims), file)

    inputs = [value(name, values.save_input(protos[name], folder / name).name) for name in arrays]
    given = [value(name, f"{name}.pb") for name in outputs]
    return Case("test_x", node.op_type, "", 17, False, 1e-3, 1e-7, inputs, given, folder)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, -2], [3, 4]], F32),
        np.array(7.5, np.float64),
        np.array([1, -(2**40)]),
        np.array([2**63 + 1], np.uint64),
        np.array(-3),
        np.array([True, False]),
    ],
    ids=str,
)
def test_every_form_computes_what_the_case_does(array: NDArray, tmp_path: Path) -> None:
    case = _case(tmp_path, {"x": array}, helper.make_node("Identity", ["x"], ["y"]), {"y": array})
    every = forms.of_case(case)
    assert [form.title for form in every] == [forms.OPEN, forms.COMPUTED, forms.SLICED, forms.CONSTANTS]
    model = forms.build(case, every)
    onnx.checker.check_model(model, full_check=True)
    results = ReferenceEvaluator(model).run(None, {"x": array})
    assert len(results) == len(every)
    for result in results:
        assert (result.dtype, result.tolist()) == (array.dtype, array.tolist())


def test_bodies_read_the_values_of_their_form(tmp_path: Path) -> None:
    outputs = [helper.make_tensor_value_info("b", TensorProto.FLOAT, [1])]
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "body", [], outputs)
    node = helper.make_node("If", ["is"], ["y"], then_branch=body, else_branch=body)
    arrays = {"is": np.array(True), "x": np.array([2], F32)}
    case = _case(tmp_path, arrays, node, {"y": np.array([-2], F32)})
    every = forms.of_case(case)
    assert [form.constant for form in every if form.title == forms.ONE_CONSTANT] == ["is", "x"]
    results = ReferenceEvaluator(forms.build(case, every)).run(None, arrays)
    assert [result.tolist() for result in results] == [[-2.0]] * len(every)


@pytest.mark.parametrize(("last", "outcome"), [(2.0, judge.PASS), (2.0001, judge.WRONG_VALUE)])
def test_the_last_execution_has_to_be_like_the_first(last: float, outcome: str, tmp_path: Path) -> None:
    case = _case(tmp_path, {"x": np.array([2], F32)}, helper.make_node("Abs", ["x"], ["y"]), {"y": np.array([2], F32)})
    for step, value in enumerate((2.0, 1.0, last)):
        folder = tmp_path / "outputs" / str(step)
        folder.mkdir(parents=True)
        np.save(folder / "y.npy", np.array([value], F32))
        entry = {"name": "y", "dtype": "float32", "shape": [1], "file": "y.npy"}
        (folder / "outputs.json").write_text(json.dumps({"outputs": [entry]}))
    runner = run.Runner(tmp_path, run.Engine("tract"), case, tmp_path)
    assert runner.judge(tmp_path / "outputs").outcome == outcome


def test_wrong_results_of_a_form_need_a_reason() -> None:
    wrong = {"constants": Verdict(judge.WRONG_VALUE, "why")}
    results = {"tract": [run.Result(CASE, Verdict(judge.PASS), forms=wrong)]}
    lines = known.problems(results, is_complete=False)
    assert lines == ["tract test_x@constants: wrong value that `known.json` has no reason for: why"]
    assert sample.outcome(results["tract"][0]) == "pass; constants: wrong value"


def _branches() -> onnx.ModelProto:
    """`Neg`, a constant, and an If whose branches hold one operator each."""
    outputs = [helper.make_tensor_value_info("b", TensorProto.FLOAT, [1])]
    bodies = {
        f"{name}_branch": helper.make_graph([helper.make_node(op_type, ["a"], ["b"])], name, [], outputs)
        for name, op_type in (("then", "Abs"), ("else", "Exp"))
    }
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Constant", [], ["c"], value_int=1),
        helper.make_node("If", ["is"], ["y"], **bodies),
        helper.make_node("Cast", ["x"], ["unused"], to=TensorProto.FLOAT),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
        helper.make_tensor_value_info("is", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    return helper.make_model(graph)


def test_tasks_are_numbered_in_file_order_with_bodies_after_their_node() -> None:
    numbered = taps.number(_branches().graph)
    assert [one.task_id for one in numbered] == [0, 1, 2, 5]
    assert [(name, [inner.task_id for inner in body]) for name, body in numbered[2].bodies] == [
        ("else_branch", [3]),
        ("then_branch", [4]),
    ]


def test_an_empty_dump_lacks_every_operator_that_is_needed(tmp_path: Path) -> None:
    found = taps.check(_branches(), tmp_path, "tract")
    assert found.problems == ["no record of Neg `a`", "no record of If `y`"]
    assert found.reasons == Counter({"operators that no result needs": 1})


def test_tables_count_and_stand_between_markers() -> None:
    results = {"tract": [run.Result(CASE, Verdict(judge.PASS)), run.Result(CASE, Verdict(judge.REFUSED, "why"))]}
    lines = list(report.by_operator(results))
    assert lines[-1] == "| Abs | 1 / 2 |"
    document = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    assert report.replace_between(document, ["new"]) == f"before\n{report.BEGIN}\nnew\n{report.END}\nafter\n"
