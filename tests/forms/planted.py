"""Faults in exported models, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

FLOAT = TensorProto.FLOAT
Edit = Callable[[ModelProto, int], "list[str] | None"]


@dataclass(frozen=True)
class Fault:
    """A model with a fault, and the operators that may be named for it."""

    kind: str
    culprits: list[str]
    model: ModelProto


class Planter:
    """Plants faults into copies of one model."""

    def __init__(self, model: ModelProto, seed: int) -> None:
        self.model, self.random = model, random.Random(seed)
        self.nodes = list(model.graph.node)
        self.weights = {weight.name for weight in model.graph.initializer}
        inferred = shape_inference.infer_shapes(model).graph
        self.shapes: dict[str, tuple[tuple[int, ...], int]] = {}
        for value in (*inferred.value_info, *inferred.input, *inferred.output):
            kind = value.type.tensor_type
            self.shapes[value.name] = (tuple(dim.dim_value for dim in kind.shape.dim), kind.elem_type)

    def faults(self) -> Iterator[Fault]:
        """All kinds, a few of each."""
        yield from self.changed_weights(4)
        of_type = lambda *types: lambda node: node.op_type in types  # noqa: E731
        of_floats = lambda *types: lambda node: node.op_type in types and self.is_float(node.output[0])  # noqa: E731
        for kind, is_it, edit, n in (
            ("epsilon", of_type("LayerNormalization"), attribute("epsilon", 1.0), 2),
            ("axis", of_type("Softmax"), attribute("axis", -2), 2),
            ("replaced", of_type("Relu", "Sigmoid", "Erf", "Gelu"), other_type("Tanh"), 2),
            ("replaced", of_floats("Add"), other_type("Sub"), 2),
            ("replaced", of_floats("Mul"), other_type("Add"), 2),
            ("removed", of_type("Relu", "Softmax", "LayerNormalization", "BatchNormalization"), self.remove, 3),
            ("wiring", of_type("Add", "MatMul", "Conv", "Gemm", "Mul", "LayerNormalization"), self.rewire, 4),
            ("inserted", of_floats("Conv", "MatMul", "Add", "LayerNormalization", "Relu"), self.insert, 2),
        ):
            yield from self.edited(kind, is_it, edit, n)

    def is_float(self, value: str) -> bool:
        return self.shapes.get(value, ((), 0))[1] == FLOAT

    def copy(self) -> ModelProto:
        copy = ModelProto()
        copy.CopyFrom(self.model)
        return copy

    def changed_weights(self, n: int) -> Iterator[Fault]:
        weights = [w for w in self.model.graph.initializer if w.data_type == FLOAT and np.prod(w.dims) >= 2]
        for weight in self.random.sample(weights, min(n, len(weights))):
            model = self.copy()
            (wrong,) = (other for other in model.graph.initializer if other.name == weight.name)
            array = numpy_helper.to_array(wrong).copy()
            array.flat[: max(1, array.size // 4)] += 0.2 * (np.abs(array).max() + 0.1)
            wrong.CopyFrom(numpy_helper.from_array(array, weight.name))
            yield Fault("weight", [node.name for node in self.nodes if weight.name in node.input], model)

    def edited(self, kind: str, is_it: Callable[[NodeProto], bool], edit: Edit, n: int) -> Iterator[Fault]:
        positions = [position for position, node in enumerate(self.nodes) if is_it(node)]
        for position in self.random.sample(positions, min(n, len(positions))):
            model = self.copy()
            culprits = edit(model, position)
            if culprits:
                yield Fault(kind, culprits, model)

    def remove(self, model: ModelProto, position: int) -> list[str] | None:
        """Hands the input of an operator to its readers; nobody can say which of these is wrong."""
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
        """Reads another value of the same extents, made before."""
        node = model.graph.node[position]
        for k, value in enumerate(node.input):
            shape = self.shapes.get(value)
            if value in self.weights or shape is None or shape[1] != FLOAT or len(shape[0]) < 2:
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

    def insert(self, model: ModelProto, position: int) -> list[str] | None:
        """Multiplies a result."""
        node = model.graph.node[position]
        output = node.output[0]
        if is_result(model, output):
            return None
        model.graph.initializer.append(numpy_helper.from_array(np.array(1.3, np.float32), "factor"))
        node.output[0] = "before"
        product = helper.make_node("Mul", ["before", "factor"], [output], name="inserted")
        model.graph.node.insert(position + 1, product)
        return ["inserted"]


def is_result(model: ModelProto, value: str) -> bool:
    return any(value == output.name for output in model.graph.output)


def attribute(name: str, value: float) -> Edit:
    def edit(model: ModelProto, position: int) -> list[str]:
        node = model.graph.node[position]
        kept = [other for other in node.attribute if other.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])
        return [node.name]

    return edit


def other_type(op_type: str) -> Edit:
    def edit(model: ModelProto, position: int) -> list[str]:
        node = model.graph.node[position]
        node.op_type = op_type
        del node.attribute[:]
        return [node.name]

    return edit
