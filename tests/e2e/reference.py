"""What ONNX Runtime computes for every input and output of every operator, with graph optimisation off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import numpy_helper


@dataclass(frozen=True)
class Operator:
    """One executed node. Absent optional inputs and outputs have no entry; an unnamed node takes its output's name."""

    op_type: str
    name: str
    inputs: list[NDArray]
    outputs: list[NDArray]

    @property
    def slots(self) -> list[tuple[str, int, NDArray]]:
        """(`input` or `output`, index, value), inputs first."""
        sides = (("input", self.inputs), ("output", self.outputs))
        return [(side, idx, value) for side, values in sides for idx, value in enumerate(values)]


def run(model_path: Path, inputs: Mapping[str, NDArray]) -> list[Operator]:
    """The executed operators in file order, those of the branch that an If takes right after it.

    Constant nodes are not executed, so they are left out.
    """
    model = onnx.load(model_path)
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    values |= inputs
    values |= _all_node_outputs(model, inputs)
    nodes = list(model.graph.node)
    if any(node.op_type == "If" for node in nodes):
        nodes = [inner for node in nodes for inner in (node, *_taken_branch(node, values).node)]
        values |= _all_node_outputs(_with_branches_inlined(onnx.load(model_path), values), inputs)
    nodes = [node for node in nodes if node.op_type != "Constant"]
    return [
        Operator(
            node.op_type,
            node.name or _present(node.output)[0],
            [values[name] for name in _present(node.input)],
            [values[name] for name in _present(node.output)],
        )
        for node in nodes
    ]


def first_non_finite(operators: list[Operator]) -> Operator | None:
    return next((operator for operator in operators if any(_is_bad(value) for _, _, value in operator.slots)), None)


def _all_node_outputs(model: onnx.ModelProto, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    names = [name for node in model.graph.node for name in _present(node.output)]
    shown = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in shown)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(names, map(np.asarray, session.run(names, dict(inputs))), strict=True))


def _taken_branch(node: onnx.NodeProto, values: Mapping[str, NDArray]) -> onnx.GraphProto:
    """The branch of an If that its condition chooses; an empty graph for other nodes."""
    if node.op_type != "If":
        return onnx.GraphProto()
    name = "then_branch" if values[node.input[0]] else "else_branch"
    return next(attribute.g for attribute in node.attribute if attribute.name == name)


def _with_branches_inlined(model: onnx.ModelProto, values: Mapping[str, NDArray]) -> onnx.ModelProto:
    """Each If replaced by the nodes of the branch it takes, so that their values can be asked for."""
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.op_type != "If":
            nodes.append(node)
            continue
        branch = _taken_branch(node, values)
        nodes += branch.node
        for inner, outer in zip(branch.output, node.output, strict=True):
            nodes.append(onnx.helper.make_node("Identity", [inner.name], [outer]))
    inlined = onnx.ModelProto()
    inlined.CopyFrom(model)
    del inlined.graph.node[:]
    inlined.graph.node.extend(nodes)
    return inlined


def _present(names: list[str]) -> list[str]:
    return [name for name in names if name]


def _is_bad(value: NDArray) -> bool:
    return value.dtype.kind == "f" and not bool(np.isfinite(value).all())
