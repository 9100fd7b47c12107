"""Results and weights of operators rounded by nodes that are put into the model, which ONNX Runtime's Python package runs.

One session for each rounding: slow and plain, so that it can be trusted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

FORMATS = ("float16", "bfloat16", "float8_e4m3", "int8")
CASTS = {
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float8_e4m3": TensorProto.FLOAT8E4M3FN,
}
# The first version of the standard operators in which `Cast` knows float8.
OPSET_MIN = 19
# Operators whose float constants say how they compute.
UNTOUCHED = ("Resize", "Range", "QuantizeLinear", "DequantizeLinear", "If", "Loop", "Scan")
# Inputs that int8 leaves as they are.
BIASES = {"Conv": {2}, "ConvTranspose": {2}, "Gemm": {2}, "GRU": {3}, "LayerNormalization": {2}}


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes in the order in which they are numbered: those of bodies right after the node that has them."""
    for node in graph.node:
        yield node
        for body in bodies_of(node):
            yield from nodes_of(body)


def bodies_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def round_through(prefix: str, source: str, target: str, dtype: str) -> list[onnx.NodeProto]:
    """Nodes that give `source` as `target`, rounded to `dtype`."""
    names = iter(range(99))

    def add(op_type: str, *inputs: str, output: str = "", **attributes: object) -> str:
        output = output or f"{prefix}:{next(names)}"
        nodes.append(helper.make_node(op_type, inputs, [output], **attributes))
        return output

    nodes: list[onnx.NodeProto] = []
    if dtype in CASTS:
        add("Cast", add("Cast", source, to=CASTS[dtype]), to=TensorProto.FLOAT, output=target)
        return nodes
    limit, zero = (add("Constant", value_float=value) for value in (127.0, 0.0))
    low = add("Constant", value_float=-127.0)
    step = add("Div", add("ReduceMax", add("Abs", source), keepdims=0), limit)
    steps = add("Clip", add("Round", add("Div", source, step)), low, limit)
    add("Where", add("Greater", step, zero), add("Mul", steps, step), source, output=target)
    return nodes


def constants_of(graph: onnx.GraphProto) -> dict[str, NDArray]:
    """The float32 constants of a graph and its bodies by name; no two have the same one in these models."""
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            value = helper.get_attribute_value(node.attribute[0])
            is_tensor = isinstance(value, onnx.TensorProto)
            array = numpy_helper.to_array(value) if is_tensor else np.asarray(value)
            found[node.output[0]] = array.astype(np.float32) if node.attribute[0].name == "value_float" else array
        for body in bodies_of(node):
            found |= constants_of(body)
    return {name: array for name, array in found.items() if array.dtype == np.float32}


def scales_of(node: onnx.NodeProto, position: int, weight: NDArray) -> NDArray:
    """The int8 scales of a weight, one for each output channel, in a shape that broadcasts."""
    transposed = {attribute.name: attribute.i for attribute in node.attribute}.get("transB", 0)
    axes = {
        ("Conv", 1): (0,),
        ("ConvTranspose", 1): (1,),
        ("Gemm", 1): (0,) if transposed else (1,),
        ("MatMul", 1): (weight.ndim - 1,) if weight.ndim > 1 else (),
        ("GRU", 1): (0, 1),
        ("GRU", 2): (0, 1),
    }.get((node.op_type, position), ())
    others = tuple(axis for axis in range(weight.ndim) if axis not in axes)
    return np.abs(weight).max(axis=others, keepdims=True).astype(np.float32) / np.float32(127)


def int8_weight(node: onnx.NodeProto, position: int, weight: NDArray) -> NDArray:
    """The weight as an operator reads it that has it in int8."""
    if position in BIASES.get(node.op_type, ()) or not weight.size:
        return weight
    step = scales_of(node, position, weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        rounded = np.clip(np.round(weight / step), -127, 127) * step
    return np.where(step > 0, rounded, weight).astype(np.float32)


@dataclass
class RoundedModel:
    """A model whose operators have float32 results at `floats`: the positions by the number of the node."""

    model: onnx.ModelProto
    floats: dict[int, list[int]]

    @classmethod
    def of_model(cls, model: onnx.ModelProto, samples: Sequence[dict[str, NDArray]]) -> RoundedModel:
        """Types come from ONNX's own inference, in bodies too."""
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        # What is inferred of one name holds for all: names are not used twice in these models.
        types = dict(_types(inferred.graph))
        floats = {}
        for number, node in enumerate(nodes_of(model.graph)):
            positions = [i for i, name in enumerate(node.output) if name and types[name] == TensorProto.FLOAT]
            if positions and node.op_type != "Constant":
                floats[number] = positions
        for opset in model.opset_import:
            if not opset.domain:
                opset.version = max(opset.version, OPSET_MIN)
        model.ir_version = max(model.ir_version, 9)
        return cls(model, floats)

    def outputs(
        self, dtype: str, tasks: Collection[int], samples: Sequence[dict[str, NDArray]]
    ) -> list[list[NDArray]]:
        """The outputs for each sample while the results of `tasks` are rounded."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        constants = constants_of(model.graph)
        self._add(model.graph, dtype, set(tasks), iter(range(1 << 20)), constants)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [session.run(None, sample) for sample in samples]

    def _add(
        self,
        graph: onnx.GraphProto,
        dtype: str,
        tasks: set[int],
        numbers: Iterator[int],
        constants: dict[str, NDArray],
    ) -> None:
        nodes = list(graph.node)
        del graph.node[:]
        for node in nodes:
            number = next(numbers)
            for body in bodies_of(node):
                self._add(body, dtype, tasks, numbers, constants)
            before = []
            # Also without rounding: kernels add in another order where they may pack a constant beforehand.
            read = node.input if number in self.floats and node.op_type not in UNTOUCHED else ()
            for position, name in enumerate(read):
                if name not in constants:
                    continue
                own = node.input[position] = f"{name}:weight:{number}:{position}"
                if number in tasks and dtype != "int8":
                    before += round_through(f"{own}:rounding", name, own, dtype)
                    continue
                if number in tasks:
                    rounded = int8_weight(node, position, constants[name])
                    name = f"{own}:int8"
                    value = numpy_helper.from_array(np.ascontiguousarray(rounded), name)
                    before.append(helper.make_node("Constant", [], [name], value=value))
                before.append(helper.make_node("Identity", [name], [own]))
            behind = []
            for position in self.floats.get(number, ()) if number in tasks else ():
                name = node.output[position]
                node.output[position] = f"{name}:unrounded"
                behind += round_through(f"{name}:rounding", f"{name}:unrounded", name, dtype)
            graph.node.extend([*before, node, *behind])


def _types(graph: onnx.GraphProto) -> Iterator[tuple[str, int]]:
    for value in (*graph.input, *graph.value_info, *graph.output):
        yield value.name, value.type.tensor_type.elem_type
    for node in graph.node:
        for body in bodies_of(node):
            yield from _types(body)


def distance(found: list[list[NDArray]], golden: list[list[NDArray]]) -> float:
    """The largest relative L2 distance of an output over all samples."""
    largest = 0.0
    for position in range(len(golden[0])):
        pairs = [(a[position].astype(np.float64), b[position].astype(np.float64)) for a, b in zip(found, golden)]
        same_kind = [np.array_equal(_kinds(a), _kinds(b)) for a, b in pairs]
        if not all(same_kind):
            return float("inf")
        finite = [(a[np.isfinite(a)], b[np.isfinite(b)]) for a, b in pairs]
        apart = sum(float(((a - b) ** 2).sum()) for a, b in finite)
        size = sum(float((b**2).sum()) for _, b in finite)
        largest = max(largest, 0.0 if apart == 0 else (apart / size) ** 0.5 if size else float("inf"))
    return largest


def _kinds(array: NDArray) -> NDArray:
    """0 for finite elements, and separate numbers for NaN and the infinities."""
    return np.select([np.isnan(array), np.isposinf(array), np.isneginf(array)], [1, 2, 3], 0)
