"""A model of one operator with the values that it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

IR_VERSION = 10


@dataclass(frozen=True)
class Value:
    """An input. `is_fixed`: it says where or how many, so it is the same at all executions."""

    array: NDArray
    is_fixed: bool = False
    is_constant: bool = False

    def __str__(self) -> str:
        return f"{self.array.dtype}{list(self.array.shape)}{'=' if self.is_constant else ''}"

    def other(self) -> NDArray:
        """Other elements of the same kind."""
        if self.is_fixed or self.is_constant:
            return self.array
        return np.ascontiguousarray(self.array.ravel()[::-1]).reshape(self.array.shape)


@dataclass(frozen=True)
class Tolerance:
    """How far from the reference elements of floats may be.

    `relative` is of the element, `of_max` of the largest finite element of the result, `absolute` as it is; all three
    are for float32 and scale with the precision of the type.
    """

    relative: float = 2e-5
    of_max: float = 0.0
    absolute: float = 2e-6
    steps: int = 0


CLOSE = Tolerance()
EXACT = Tolerance(0.0, 0.0, 0.0)
# Of one operation that is rounded correctly, once.
ROUNDED = Tolerance(2.5e-7, 0.0, 0.0)
SUMMED = Tolerance(1e-4, 2e-5, 1e-6)


@dataclass(frozen=True)
class Sample:
    """`outputs` lists the outputs. `domain` is the operator's."""

    op_type: str
    opset: int
    inputs: list[Value | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[bool, ...] = (True,)
    tolerance: Tolerance = CLOSE
    domain: str = ""

    def __str__(self) -> str:
        parts = [str(value) if value else "-" for value in self.inputs]
        attributes = "".join(f" {key}={_short(value)}" for key, value in self.attributes.items())
        return f"{self.op_type}-{self.opset}({', '.join(parts)}){attributes}"

    @property
    def opsets(self) -> list[tuple[str, int]]:
        return [("", self.opset), *([(self.domain, 1)] if self.domain else [])]

    def output_names(self, start: str) -> list[str]:
        return [f"{start}y{i}" for i, is_there in enumerate(self.outputs) if is_there]

    def input_names(self, start: str) -> list[str]:
        return [f"{start}x{i}" if value else "" for i, value in enumerate(self.inputs)]

    def node(self, start: str) -> NodeProto:
        names = self.input_names(start)
        while names and not names[-1]:
            names.pop()
        outputs = [f"{start}y{i}" if is_there else "" for i, is_there in enumerate(self.outputs)]
        return helper.make_node(
            self.op_type, names, outputs, name=f"{start}n", domain=self.domain, **self.attributes
        )

    def arrays(self, start: str, step: int = 0) -> dict[str, NDArray]:
        """Returns the arrays that the model is given, by input name; at step 1 they have other elements."""
        pairs = zip(self.input_names(start), self.inputs, strict=True)
        given = {name: value for name, value in pairs if value and not value.is_constant}
        return {name: value.other() if step == 1 else value.array for name, value in given.items()}


def model_of(samples: dict[str, Sample]) -> ModelProto:
    """One model with all samples side by side, each under its start of names; they are of one opset."""
    nodes, inputs, outputs, constants = [], [], [], []
    for start, sample in samples.items():
        nodes.append(sample.node(start))
        for name, value in zip(sample.input_names(start), sample.inputs, strict=True):
            if value and value.is_constant:
                constants.append(_constant(value.array, name))
            elif value:
                inputs.append(_declared(name, value.array))
        outputs += [helper.make_empty_tensor_value_info(name) for name in sample.output_names(start)]
    graph = helper.make_graph(nodes, "samples", inputs, outputs, constants)
    opsets = dict(pair for sample in samples.values() for pair in sample.opsets)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def _declared(name: str, array: NDArray) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _constant(array: NDArray, name: str) -> TensorProto:
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def _short(value: Any) -> str:
    text = str(value).replace("\n", " ")
    return text if len(text) < 60 else f"{text[:60]}…"
