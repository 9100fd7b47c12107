"""The inputs and outputs of every operator by ONNX Runtime's Python package, with graph optimisation off.

A graph runs with all its values made outputs. The graphs inside If, Loop and Scan run as separate models, once for
each iteration, with the values that they read from around them as inputs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

N_THREADS = 1


@dataclass(frozen=True)
class Operator:
    """One executed node. Absent optional inputs and outputs have no entry; an unnamed node takes its output's name.

    A value without an array, such as a sequence or text, is None. `writes` are the outputs' names, `numbers` the
    positions of inputs and outputs in the node, absent ones counted.
    """

    op_type: str
    name: str
    inputs: list[NDArray | None]
    outputs: list[NDArray | None]
    writes: list[str]
    numbers: dict[str, list[int]]

    @property
    def slots(self) -> list[tuple[str, int, NDArray]]:
        """(`input` or `output`, index, value) of each array, inputs first."""
        sides = (("input", self.inputs), ("output", self.outputs))
        every = ((side, idx, value) for side, values in sides for idx, value in enumerate(values))
        return [(side, idx, value) for side, idx, value in every if value is not None]


@dataclass(frozen=True)
class Scope:
    """The values that a graph sees by name, and those among them that never change."""

    values: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, TensorProto] = field(default_factory=dict)


def run(model_path: Path, inputs: Mapping[str, NDArray], shows_loops: bool = False) -> list[Operator]:
    """The executed operators in file order, those of the branch that an If takes right after it.

    With `shows_loops` also those of what Loop and Scan run: after these, once for each iteration, whose number from 0
    ends the name. Constant nodes are not executed, so they are left out.
    """
    model = onnx.load(model_path)
    return list(_Reference(model, shows_loops).operators(model, Scope(), dict(inputs)))


def outputs(model_path: Path, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """The model's outputs without observing intermediate values."""
    model = onnx.load(model_path)
    names = [output.name for output in model.graph.output]
    return _evaluate(model, names, inputs)


def first_non_finite(operators: list[Operator]) -> Operator | None:
    return next((operator for operator in operators if any(_is_bad(value) for _, _, value in operator.slots)), None)


def may_be_first_non_finite(operators: list[Operator]) -> list[str]:
    """Operators with NaN or infinities that come from no operator before them: one is the first that runs."""
    bad = [operator for operator in operators if any(_is_bad(value) for _, _, value in operator.slots)]
    produced = {id(value) for operator in bad for side, _, value in operator.slots if side == "output"}
    return [
        operator.name
        for operator in bad
        if not any(_is_bad(value) and id(value) in produced for side, _, value in operator.slots if side == "input")
    ]


class _Reference:
    def __init__(self, model: onnx.ModelProto, shows_loops: bool) -> None:
        self.opsets = list(model.opset_import)
        self.ir_version = model.ir_version
        self.shows_loops = shows_loops

    def operators(
        self, model: onnx.ModelProto, scope: Scope, inputs: dict[str, Any], suffix: str = ""
    ) -> Iterator[Operator]:
        """Those of a graph. Afterwards `inputs` holds all its values."""
        graph = model.graph
        names = [name for node in graph.node for name in _present(node.output)]
        inputs |= _evaluate(model, names, inputs)
        constants = scope.constants | {tensor.name: tensor for tensor in graph.initializer}
        inner = Scope(scope.values | _arrays(graph.initializer) | inputs, constants)
        for node in graph.node:
            if node.op_type == "Constant":
                continue
            yield Operator(
                node.op_type,
                f"{node.name or _present(node.output)[0]}{suffix}",
                [_array(inner.values[name]) for name in _present(node.input)],
                [_array(inner.values[name]) for name in _present(node.output)],
                _present(node.output),
                {"input": _numbers(node.input), "output": _numbers(node.output)},
            )
            yield from self.inside(node, inner, suffix)

    def inside(self, node: onnx.NodeProto, scope: Scope, suffix: str) -> Iterator[Operator]:
        """The operators of the graphs that a node runs."""
        bodies = {attribute.name: attribute.g for attribute in node.attribute if attribute.HasField("g")}
        if node.op_type == "If":
            body = bodies["then_branch" if scope.values[node.input[0]] else "else_branch"]
            yield from self.operators(self.model(body, scope, {}), scope, self.captured(body, scope), suffix)
        elif bodies and self.shows_loops:
            turns = {"Loop": self.loop, "Scan": self.scan}[node.op_type]
            yield from turns(node, bodies["body"], scope, suffix)

    def loop(self, node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope, suffix: str) -> Iterator[Operator]:
        limit, going, *carried = (scope.values[name] if name else None for name in node.input)
        n_carried, turn, collected = len(carried), 0, []
        while (limit is None or turn < limit) and (going is None or going):
            state = [np.array(turn, np.int64), np.array(True if going is None else going), *carried]
            results = yield from self.turn(body, scope, state, f"{suffix}.{turn}")
            going, carried, turn = results[0], results[1 : 1 + n_carried], turn + 1
            collected.append(results[1 + n_carried :])
        _check_outputs(node, scope, [*carried, *map(np.stack, zip(*collected, strict=True))])

    def scan(self, node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope, suffix: str) -> Iterator[Operator]:
        (n_scanned,) = (attribute.i for attribute in node.attribute if attribute.name == "num_scan_inputs")
        assert len(node.attribute) == 2, "only the default axes and directions are known"
        n_carried, collected = len(node.input) - n_scanned, []
        carried = [scope.values[name] for name in node.input[:n_carried]]
        rows = zip(*(scope.values[name] for name in node.input[n_carried:]), strict=True)
        for turn, row in enumerate(rows):
            results = yield from self.turn(body, scope, [*carried, *map(np.asarray, row)], f"{suffix}.{turn}")
            carried = results[:n_carried]
            collected.append(results[n_carried:])
        _check_outputs(node, scope, [*carried, *map(np.stack, zip(*collected, strict=True))])

    def turn(self, body: onnx.GraphProto, scope: Scope, state: list[Any], suffix: str):
        """One iteration's operators; returns the body's outputs."""
        own = {value.name: array for value, array in zip(body.input, state, strict=True)}
        values = own | self.captured(body, scope)
        yield from self.operators(self.model(body, scope, own), scope, values, suffix)
        values = scope.values | _arrays(body.initializer) | values
        return [values[output.name] for output in body.output]

    def captured(self, body: onnx.GraphProto, scope: Scope) -> dict[str, Any]:
        """Returns the values that a graph reads from around it and that are not constant."""
        return {name: scope.values[name] for name in _free_names(body) if name not in scope.constants}

    def model(self, body: onnx.GraphProto, scope: Scope, own: Mapping[str, Any]) -> onnx.ModelProto:
        """A graph as a model. Weights from around it stay weights, which kernels may treat in another way."""
        graph = onnx.GraphProto()
        graph.CopyFrom(body)
        arrays = dict(own) | self.captured(body, scope)
        declared = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in arrays.items()
        ]
        del graph.input[:]
        graph.input.extend(declared)
        graph.initializer.extend(scope.constants[name] for name in _free_names(body) if name in scope.constants)
        return helper.make_model(graph, opset_imports=self.opsets, ir_version=self.ir_version)


def _free_names(graph: onnx.GraphProto) -> list[str]:
    """Values that a graph, or one inside it, reads and does not make, each once."""
    known = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    free: dict[str, None] = {}
    for node in graph.node:
        inner = [name for attribute in node.attribute if attribute.HasField("g") for name in _free_names(attribute.g)]
        free |= dict.fromkeys(name for name in [*_present(node.input), *inner] if name not in known)
        known |= set(node.output)
    free |= dict.fromkeys(output.name for output in graph.output if output.name not in known)
    return list(free)


def _check_outputs(node: onnx.NodeProto, scope: Scope, results: list[Any]) -> None:
    """Checks that the iterations together give the outputs that the operator gave in its own model."""
    for name, result in zip(node.output, results, strict=True):
        assert not name or np.array_equal(scope.values[name], result, equal_nan=True), f"{node.name}: {name}"


def _evaluate(model: onnx.ModelProto, names: list[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The values of these names; of a sequence a list, of text an array of objects."""
    shown = {output.name for output in model.graph.output}
    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    asked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in shown)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = N_THREADS
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(asked.SerializeToString(), options, providers=["CPUExecutionProvider"])
    given = {name: onnxruntime.OrtValue.ortvalue_from_numpy(np.asarray(array)) for name, array in inputs.items()}
    return dict(zip(names, map(_value, session.run_with_ort_values(names, given)), strict=True))


def _value(value: onnxruntime.OrtValue) -> Any:
    if value.is_tensor() and value.element_type() == TensorProto.BFLOAT16:
        # numpy has no such type, and so the package refuses it.
        raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
        return np.frombuffer(raw, ml_dtypes.bfloat16).reshape(value.shape())
    return value.numpy() if value.is_tensor() else value


def _array(value: Any) -> NDArray | None:
    return value if isinstance(value, np.ndarray) and value.dtype.kind not in "OSU" else None


def _arrays(tensors: Iterable[TensorProto]) -> dict[str, NDArray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}


def _present(names: Iterable[str]) -> list[str]:
    return [name for name in names if name]


def _numbers(names: Iterable[str]) -> list[int]:
    return [number for number, name in enumerate(names) if name]


def _is_bad(value: NDArray) -> bool:
    is_float = value.dtype.kind == "f" or value.dtype == ml_dtypes.bfloat16
    return is_float and not bool(np.isfinite(value.astype(np.float64)).all())
