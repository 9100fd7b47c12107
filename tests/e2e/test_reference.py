"""The half of the end-to-end tests that needs no binary: the models run, and every slot has a value to compare with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import reference
from cases import CASES, DIGITS, DIGITS_CASE, EXACT, MODELS, SINGLE, Case, Tolerance
from compare import DTYPES, difference
from numpy.typing import NDArray
from onnx import numpy_helper
from reference import Operator

Lookup = Callable[..., list[Operator]]
Arrays = dict[str, NDArray]


@pytest.mark.sampled(0.35)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_slot_has_a_value(case: Case, generated: Path, operators_of: Lookup) -> None:
    operators = operators_of(case)
    graph = onnx.load(case.model_path(generated)).graph
    top_level = [operator for operator in operators if not operator.name.startswith(("/then/", "/else/"))]
    assert len(top_level) == sum(node.op_type != "Constant" for node in graph.node)
    for operator in operators:
        assert operator.name and operator.outputs and operator.slots
        for _, _, value in operator.slots:
            assert value.dtype in DTYPES.values()
            assert value.size > 0


@pytest.mark.parametrize("case", [case for case in CASES if case.folder == MODELS and case.inputs], ids=str)
def test_agrees_with_the_stored_sample(case: Case, operators_of: Lookup) -> None:
    with np.load(MODELS / case.inputs) as arrays:
        (expected,) = (arrays[key] for key in arrays if key.startswith("out."))
    assert difference(operators_of(case)[-1].outputs[0], expected, case.tolerance) is None


def test_reads_the_digits(operators_of: Lookup) -> None:
    """All but the second, a 5 that it takes for a 4; the example's README says so."""
    (probs,) = operators_of(DIGITS_CASE)[-1].outputs
    right = probs.argmax(axis=1) == np.load(DIGITS / "labels.npy")
    assert np.flatnonzero(~right).tolist() == [1]


def test_branches_differ(operators_of: Lookup) -> None:
    then, other = (operators_of(case) for case in CASES if case.stem == "control_flow")
    names = [operator.name for operator in then]
    assert names == ["/before/Relu", "/If", "/then/Mul", "/then/Sigmoid", "/after/Add"]
    assert not np.allclose(then[1].outputs[0], other[1].outputs[0])


def in_loop(x: NDArray, _weights: Arrays) -> dict[str, NDArray]:
    """Outputs of operators in each iteration, without an evaluator of ONNX."""
    carried, values = np.maximum(x, 0), {}
    for turn in range(3):
        carried = values[f"/body/Add.{turn}"] = carried + carried
    return values


def in_scan(start: NDArray, rows: NDArray, weights: Arrays) -> dict[str, NDArray]:
    rows = rows * weights["weight"]
    return {f"/body/Add.{turn}": start + rows[: turn + 1].sum(axis=0) for turn in range(len(rows))}


def in_nested_loops(x: NDArray, _weights: Arrays) -> dict[str, NDArray]:
    scale, carried, values = 1 / (1 + np.exp(-x)), x, {}
    for i in range(3):
        scaled = values[f"/outer/Mul.{i}"] = carried * scale
        if i % 2:
            chosen = values[f"/outer/odd/Tanh.{i}"] = np.tanh(scaled)
        else:
            chosen = values[f"/outer/even/Relu.{i}"] = np.maximum(scaled + scale, 0)
        values[f"/outer/If.{i}"] = carried = chosen
        for j in range(2):
            product = values[f"/outer/inner/Mul.{i}.{j}"] = carried * scale
            carried = values[f"/outer/inner/Add.{i}.{j}"] = product + chosen
        values[f"/outer/Loop.{i}"] = carried
    return values


@pytest.mark.parametrize(
    ("stem", "evaluate"), [("loop", in_loop), ("scan", in_scan), ("nested_loops", in_nested_loops)]
)
def test_iterations(stem: str, evaluate: Callable[..., Arrays], generated: Path, operators_of: Lookup) -> None:
    (case,) = (case for case in CASES if case.stem == stem)
    weights = onnx.load(case.model_path(generated)).graph.initializer
    expected = evaluate(*case.load_inputs(generated).values(), {w.name: numpy_helper.to_array(w) for w in weights})
    outputs = {operator.name: operator.outputs[0] for operator in operators_of(case, True)}
    for name, value in expected.items():
        np.testing.assert_allclose(outputs[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    types = {name.rstrip(".0123456789") for name in expected}
    assert {name for name in outputs if name.rstrip(".0123456789") in types} == set(expected)


@pytest.mark.sampled(0.35)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_first_non_finite_values(case: Case, operators_of: Lookup) -> None:
    first = reference.first_non_finite(operators_of(case))
    known = {"nan": "/log/Log", "non_finite": "/Relu", "bfloat16": "/Cast", "constants": "/Add/float32/0/right"}
    assert (first and first.name) == known.get(case.stem)


@pytest.mark.parametrize(
    ("actual", "expected", "tolerance", "message"),
    [
        (np.float32([1]), np.float32(1), SINGLE, "shape"),
        (np.float32([1, 100.0011]), np.float32([1, 100]), SINGLE, None),
        (np.float32([1, 100.02]), np.float32([1, 100]), SINGLE, "1 of 2"),
        (np.float32([0.0009, 100]), np.float32([0, 100]), SINGLE, None),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), SINGLE, None),
        (np.float32([1, -np.inf]), np.float32([np.nan, np.inf]), SINGLE, "2 of 2"),
        (np.float32([np.nan, np.inf]), np.float32([1, 1]), SINGLE, "2 of 2"),
        (np.float64([1.7e308, -1.7e308]), np.float64([1.7e308, 1.7e308]), SINGLE, "1 of 2"),
        (np.float32([1]), np.float64([1]), SINGLE, "dtype float32"),
        (np.float32([1]), np.float32([[1]]), SINGLE, "shape"),
        (np.int64([3]), np.int64([4]), Tolerance(steps=1), "1 of 1"),
        (np.uint8([255]), np.uint8([254]), Tolerance(steps=1), None),
        (np.uint8([255]), np.uint8([253]), Tolerance(steps=1), "1 of 1"),
        (np.uint8([255]), np.uint8([254]), SINGLE, "1 of 1"),
        (np.array([True]), np.array([False]), Tolerance(steps=1), "1 of 1"),
        (np.float32([1, np.nan]), np.float32([1, np.nan]), EXACT, None),
        (np.float32(1), np.float32(1 + 2**-23), EXACT, "1 of 1"),
        (np.float32([0, 1]), np.float32([-0.0, 1]), EXACT, "1 of 2"),
        (np.float32([]), np.float32([]), EXACT, None),
    ],
)
def test_difference(actual: NDArray, expected: NDArray, tolerance: Tolerance, message: str | None) -> None:
    found = difference(actual, expected, tolerance)
    assert found is None if message is None else message in (found or "")
