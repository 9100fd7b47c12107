"""Faults in exported models, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference
from onnx.shape_inference import InferenceError

FLOAT = TensorProto.FLOAT
NORMS = ("LayerNormalization", "BatchNormalization")
OWN, OUTSIDE, UNKNOWN = "own", "outside", "unknown"
# What may be a constant of a graph on one side and an attribute on the other is either's fault.
OWN_OR_OUTSIDE = frozenset({OWN, OUTSIDE})

CAUSES = {
    "weight": frozenset({OUTSIDE}),
    "NaN in a weight": frozenset({OUTSIDE}),
    "precision of a weight": frozenset({OUTSIDE}),
    "constant": OWN_OR_OUTSIDE,
    "slice": OWN_OR_OUTSIDE,
    "mask": OWN_OR_OUTSIDE,
    "quantisation": frozenset({OUTSIDE}),
    # If an operator is missing, it is unknown whether it or its reader is wrong.
    "removed": frozenset({OWN, UNKNOWN}),
}
"""The causes that may be given for a kind of fault; the operator itself for all others."""

Edit = Callable[[ModelProto, int], "list[str] | None"]


@dataclass(frozen=True)
class Fault:
    """A model with a fault, and the operators that may be named for it."""

    kind: str
    culprits: list[str]
    model: ModelProto

    @property
    def causes(self) -> frozenset[str]:
        return CAUSES.get(self.kind, frozenset({OWN}))


class Planter:
    """Plants faults into copies of one model."""

    def __init__(self, model: ModelProto, seed: str) -> None:
        self.model, self.random = model, random.Random(seed)
        self.nodes = list(model.graph.node)
        self.constants = constants_of(model)
        self.shapes: dict[str, tuple[tuple[int, ...], int]] = {}
        for value in values_of(model):
            kind = value.type.tensor_type
            self.shapes[value.name] = (tuple(dim.dim_value for dim in kind.shape.dim), kind.elem_type)

    def faults(self) -> Iterator[Fault]:
        """All kinds, a few of each."""
        of_type = lambda *types: lambda node: node.op_type in types  # noqa: E731
        of_floats = lambda *types: lambda node: node.op_type in types and self.is_float(node.output[0])  # noqa: E731
        many = lambda array: array.dtype == np.float32 and array.size > 1  # noqa: E731
        weights = lambda array: many(array) and np.isfinite(array).all() and np.abs(array).max() < 1e3  # noqa: E731
        yield from self.changed("weight", weights, nudged, 4)
        yield from self.changed("NaN in a weight", weights, with_nan, 1)
        yield from self.changed("precision of a weight", weights, to_bfloat16, 2)
        yield from self.changed("mask", self.is_mask, unmasked, 2)
        scalar = lambda array: array.dtype == np.float32 and array.size == 1  # noqa: E731
        yield from self.changed("constant", scalar, doubled, 2, not_in=("QuantizeLinear", "DequantizeLinear"))
        yield from self.changed("quantisation", scalar, doubled, 3, only_in=("QuantizeLinear", "DequantizeLinear"))
        indices = lambda array: array.dtype == np.int64  # noqa: E731
        yield from self.changed("slice", indices, moved, 2, only_in=("Gather",), input_index=1)
        for kind, is_it, edit, n in (
            ("slice", of_type("Slice"), self.move_slice, 2),
            ("attribute", of_type("LayerNormalization"), attribute("epsilon", 1.0), 2),
            ("attribute", of_type("Softmax"), attribute("axis", -2), 2),
            ("attribute", of_type("Conv"), dilate, 2),
            ("attribute", of_type("Gelu"), attribute("approximate", "tanh", unless="none"), 1),
            ("attribute", of_type("Transpose"), self.turn, 1),
            ("replaced", of_type("Relu", "Sigmoid", "Erf", "Gelu", "HardSwish", "HardSigmoid"), other_type("Tanh"), 2),
            ("replaced", of_floats("Add"), other_type("Sub"), 2),
            ("replaced", of_floats("Mul"), other_type("Add"), 2),
            ("replaced", of_type("MaxPool"), other_type("AveragePool", keeps_attributes=True), 1),
            ("removed", of_type(*NORMS, "Relu", "Softmax", "HardSwish"), self.remove, 3),
            ("wiring", of_type("Add", "MatMul", "Conv", "Gemm", "Mul", "LayerNormalization"), self.rewire, 4),
            ("order", of_floats("Sub", "Div", "MatMul", "Concat"), self.swap, 2),
            ("inserted", of_floats("Conv", "MatMul", "Add", "LayerNormalization", "Relu"), self.insert("Mul"), 2),
            ("inserted", of_floats("MatMul", "Add", "LayerNormalization"), self.insert("Log"), 1),
            ("precision of a value", of_floats("MatMul", "Add", "LayerNormalization", "Relu"), self.insert("Cast"), 2),
        ):
            yield from self.edited(kind, is_it, edit, n)

    def is_float(self, value: str) -> bool:
        return self.shapes.get(value, ((), 0))[1] == FLOAT

    @staticmethod
    def is_mask(array: np.ndarray) -> bool:
        is_additive = array.dtype == np.float32 and array.size > 1 and array.min() < -1e3 and array.max() == 0
        return is_additive or (array.dtype == np.bool_ and array.size > 1 and 0 < array.mean() < 1)

    def copy(self) -> ModelProto:
        copy = ModelProto()
        copy.CopyFrom(self.model)
        return copy

    def changed(
        self,
        kind: str,
        is_it: Callable[[np.ndarray], bool],
        change: Callable[[np.ndarray], np.ndarray],
        n: int,
        *,
        only_in: tuple[str, ...] = (),
        not_in: tuple[str, ...] = (),
        input_index: int | None = None,
    ) -> Iterator[Fault]:
        """Changes weights and constants that operators of some types read."""
        names = []
        for name, array in self.constants.items():
            readers = [node for node in self.nodes if name in node.input]
            is_read = readers and all(
                (not only_in or node.op_type in only_in)
                and node.op_type not in not_in
                and (input_index is None or list(node.input).index(name) == input_index)
                for node in readers
            )
            if is_read and array.size and is_it(array):
                names.append(name)
        for name in self.random.sample(names, min(n, len(names))):
            before = self.constants[name]
            after = change(before.copy())
            if np.array_equal(before, after):
                continue
            model = self.copy()
            replace_constant(model, name, after)
            yield Fault(kind, [node.name for node in self.nodes if name in node.input], model)

    def edited(self, kind: str, is_it: Callable[[NodeProto], bool], edit: Edit, n: int) -> Iterator[Fault]:
        positions = [position for position, node in enumerate(self.nodes) if is_it(node)]
        for position in self.random.sample(positions, min(n, len(positions))):
            model = self.copy()
            culprits = edit(model, position)
            if culprits:
                yield Fault(kind, culprits, model)

    def move_slice(self, model: ModelProto, position: int) -> list[str] | None:
        """Takes as many elements from one place on."""
        node = model.graph.node[position]
        starts, ends = (self.constants.get(name) for name in node.input[1:3])
        if starts is None or ends is None or len(starts) != 1:
            return None
        size = self.shapes.get(node.input[0], ((0,),))[0]
        axes = self.constants.get(node.input[3]) if len(node.input) > 3 else np.zeros(1, np.int64)
        extent = size[int(axes[0])]
        start, end = int(starts[0]), min(int(ends[0]), extent)
        start, end = (x + extent if x < 0 else x for x in (start, end))
        step = -1 if start > 0 else 1
        if end + step > extent or end <= start:
            return None
        for k, index in ((1, start + step), (2, end + step)):
            node.input[k] = f"moved_{k}"
            array = numpy_helper.from_array(np.array([index], np.int64), f"moved_{k}")
            model.graph.initializer.append(array)
        return [node.name]

    def turn(self, model: ModelProto, position: int) -> list[str] | None:
        """Swaps two axes of equal size."""
        node = model.graph.node[position]
        perm = list(node.attribute[0].ints)
        shape = self.shapes.get(node.output[0], ((),))[0]
        pairs = [(i, j) for i in range(len(shape)) for j in range(i) if shape[i] == shape[j] > 1]
        if not pairs:
            return None
        i, j = self.random.choice(pairs)
        perm[i], perm[j] = perm[j], perm[i]
        del node.attribute[:]
        node.attribute.append(helper.make_attribute("perm", perm))
        return [node.name]

    def swap(self, model: ModelProto, position: int) -> list[str] | None:
        """Swaps operands of equal shape."""
        node = model.graph.node[position]
        a, b = node.input[:2]
        if self.shapes.get(a) is None or self.shapes.get(a) != self.shapes.get(b) or a == b:
            return None
        node.input[0], node.input[1] = b, a
        return [node.name]

    def remove(self, model: ModelProto, position: int) -> list[str] | None:
        """Passes an operator's input to its readers; it is unknown which of these is wrong."""
        node = model.graph.node[position]
        (value, *_), (output, *_) = node.input, node.output
        if self.shapes.get(value) != self.shapes.get(output) or is_result(model, output):
            return None
        readers = [other for other in model.graph.node if output in other.input]
        for reader in readers:
            reader.input[:] = [value if name == output else name for name in reader.input]
        model.graph.node.remove(node)
        return [node.name, *(reader.name for reader in readers)]

    def rewire(self, model: ModelProto, position: int) -> list[str] | None:
        """Reads another, earlier value of the same shape."""
        node = model.graph.node[position]
        for k, value in enumerate(node.input):
            shape = self.shapes.get(value)
            if value in self.constants or shape is None or shape[1] != FLOAT or len(shape[0]) < 2:
                continue
            others = [
                output
                for other in self.nodes[:position]
                for output in other.output
                if output != value and self.shapes.get(output) == shape and other.op_type != "Reshape"
            ]
            if others:
                node.input[k] = self.random.choice(others)
                return [node.name]
        return None

    def insert(self, op_type: str) -> Edit:
        """An edit that multiplies a result, takes its logarithm, or rounds it."""

        def edit(model: ModelProto, position: int) -> list[str] | None:
            node = model.graph.node[position]
            output = node.output[0]
            if is_result(model, output):
                return None
            node.output[0] = "before"
            if op_type == "Cast":
                made = [
                    helper.make_node("Cast", ["before"], ["short"], name="rounded", to=TensorProto.BFLOAT16),
                    helper.make_node("Cast", ["short"], [output], name="widened", to=FLOAT),
                ]
            elif op_type == "Mul":
                model.graph.initializer.append(numpy_helper.from_array(np.array(1.3, np.float32), "factor"))
                made = [helper.make_node("Mul", ["before", "factor"], [output], name="inserted")]
            else:
                made = [helper.make_node(op_type, ["before"], [output], name="inserted")]
            for k, new in enumerate(made):
                model.graph.node.insert(position + 1 + k, new)
            return [new.name for new in made]

        return edit


def values_of(model: ModelProto) -> list:
    try:
        graph = shape_inference.infer_shapes(model).graph
    except InferenceError:
        graph = model.graph
    return [*graph.value_info, *graph.input, *graph.output]


def constants_of(model: ModelProto) -> dict[str, np.ndarray]:
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return found


def replace_constant(model: ModelProto, name: str, array: np.ndarray) -> None:
    changed = numpy_helper.from_array(array, name)
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(changed)
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output[0] == name:
            node.attribute[0].t.CopyFrom(changed)


def is_result(model: ModelProto, value: str) -> bool:
    return any(value == output.name for output in model.graph.output)


def nudged(array: np.ndarray) -> np.ndarray:
    array.flat[: max(1, array.size // 4)] += 0.2 * (np.abs(array).max() + 0.1)
    return array


def with_nan(array: np.ndarray) -> np.ndarray:
    array.flat[array.size // 2] = np.nan
    return array


def to_bfloat16(array: np.ndarray) -> np.ndarray:
    return (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def unmasked(array: np.ndarray) -> np.ndarray:
    """Lets half of what is masked through."""
    masked = np.flatnonzero(array != 0) if array.dtype == np.float32 else np.flatnonzero(~array)
    array.flat[masked[: len(masked) // 2 + 1]] = 0 if array.dtype == np.float32 else True
    return array


def doubled(array: np.ndarray) -> np.ndarray:
    return np.where(array == 0, np.float32(1), array * np.float32(2)).astype(array.dtype)


def moved(array: np.ndarray) -> np.ndarray:
    return np.where(array == 0, 1, array - np.sign(array)).astype(array.dtype)


def attribute(name: str, value: float | str, *, unless: str | None = None) -> Edit:
    def edit(model: ModelProto, position: int) -> list[str]:
        node = model.graph.node[position]
        before = [helper.get_attribute_value(other) for other in node.attribute if other.name == name]
        wanted = unless if unless is not None and before == [str(value).encode()] else value
        kept = [other for other in node.attribute if other.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, wanted)])
        return [node.name]

    return edit


def dilate(model: ModelProto, position: int) -> list[str] | None:
    """Dilates a kernel of three, keeping the result's shape."""
    node = model.graph.node[position]
    attributes = {other.name: helper.get_attribute_value(other) for other in node.attribute}
    if list(attributes.get("pads", [])) != [1] * 4 or list(attributes.get("strides", [1, 1])) != [1, 1]:
        return None
    attributes |= {"dilations": [2, 2], "pads": [2] * 4}
    del node.attribute[:]
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    return [node.name]


def other_type(op_type: str, *, keeps_attributes: bool = False) -> Edit:
    def edit(model: ModelProto, position: int) -> list[str]:
        node = model.graph.node[position]
        node.op_type, node.domain = op_type, ""
        kept = [other for other in node.attribute if keeps_attributes and other.name in KEPT]
        del node.attribute[:]
        node.attribute.extend(kept)
        return [node.name]

    return edit


KEPT = ("kernel_shape", "strides", "pads")
