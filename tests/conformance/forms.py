"""A case with its inputs in other forms: computed by operators, as constants, with open shapes.

All forms of a case make one model, in which each is a copy of the case's graph with separate outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import inputs
import numpy as np
import onnx
from cases import Case, Value
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

OPEN = "open shapes"
COMPUTED = "computed by casts"
SLICED = "cut out of a longer tensor"
CONSTANTS = "constants"
ONE_CONSTANT = "one constant"
TITLES = [OPEN, COMPUTED, SLICED, CONSTANTS, ONE_CONSTANT]

# The opset of models without standard operators.
DEFAULT_OPSET = 13
# The first opset with `Where`, and the first one where `Slice` reads where to cut.
WHERE_OPSET, SLICE_OPSET = 9, 10
# The first one where `Squeeze` reads its axes.
AXES_INPUT_OPSET = 13
# A wider type that holds every value of a type, or one that holds those that fit.
THERE_AND_BACK = {
    TensorProto.FLOAT: TensorProto.DOUBLE,
    TensorProto.FLOAT16: TensorProto.FLOAT,
    TensorProto.BFLOAT16: TensorProto.FLOAT,
    TensorProto.INT64: TensorProto.INT32,
    TensorProto.INT32: TensorProto.INT64,
    TensorProto.INT16: TensorProto.INT32,
    TensorProto.INT8: TensorProto.INT32,
    TensorProto.UINT8: TensorProto.INT32,
    TensorProto.UINT16: TensorProto.INT32,
    TensorProto.UINT32: TensorProto.INT64,
    TensorProto.UINT64: TensorProto.INT64,
    TensorProto.BOOL: TensorProto.INT32,
}
HOLDS = {TensorProto.INT64: np.int32, TensorProto.UINT64: np.int64}


@dataclass(frozen=True)
class Form:
    """One way to give a case its inputs. `constant` names the input that is one, where it is only one."""

    title: str
    constant: str = ""

    @property
    def name(self) -> str:
        return f"{self.title}: {self.constant}" if self.constant else self.title

    def is_constant(self, value: Value) -> bool:
        return self.title == CONSTANTS or value.name == self.constant

    @property
    def follows_inputs(self) -> bool:
        """Whether other inputs of the model are other inputs of the operator, all of them."""
        return self.title in (OPEN, COMPUTED, SLICED)


def of_case(case: Case) -> list[Form]:
    """All forms of a case; none if it takes what is no tensor."""
    if any(not value.file for value in case.inputs):
        return []
    forms = [Form(OPEN)]
    if not case.inputs:
        return forms
    forms += [Form(COMPUTED), Form(SLICED), Form(CONSTANTS)]
    if len(case.inputs) > 1:
        forms += [Form(ONE_CONSTANT, value.name) for value in case.inputs]
    return forms


def prefix(form: Form, forms: list[Form]) -> str:
    """The prefix of the names of a form's values."""
    return f"form{forms.index(form)}_"


def build(case: Case, forms: list[Form]) -> ModelProto:
    """A model with the outputs of all of `forms`."""
    original = onnx.load(case.model)
    model = ModelProto()
    model.CopyFrom(original)
    opsets = {opset.domain.removeprefix("ai.onnx"): opset.version for opset in model.opset_import}
    if "" not in opsets:
        model.opset_import.add(domain="", version=DEFAULT_OPSET)
    opset = opsets.get("", DEFAULT_OPSET)
    # Constants that are not inputs too came with version 4.
    model.ir_version = max(model.ir_version, 4)
    model.ClearField("graph")
    graph = model.graph
    graph.name = original.graph.name or "forms"
    for value in case.inputs:
        dims = [f"{value.name}_{axis}" for axis in range(len(value.shape))]
        code = inputs.values.TYPE_CODES[value.dtype]
        graph.input.append(helper.make_tensor_value_info(value.name, code, dims))
    for form in forms:
        _add(graph, case, original.graph, form, prefix(form, forms), opset)
    return model


def _add(graph: GraphProto, case: Case, original: GraphProto, form: Form, start: str, opset: int) -> None:
    names = {name: start + name for name in _defined(original)}
    for value in case.inputs:
        names[value.name] = value.name
        if form.is_constant(value):
            tensor = inputs.proto(case, value)
            tensor.name = names[value.name] = start + value.name
            graph.initializer.append(tensor)
        elif form.title in (COMPUTED, SLICED):
            names[value.name] = start + value.name
            nodes = _cast if form.title == COMPUTED else _cut
            graph.node.extend(nodes(case, value, start + value.name, opset))
    for tensor in original.initializer:
        graph.initializer.add().CopyFrom(tensor)
        graph.initializer[-1].name = names[tensor.name]
    for tensor in original.sparse_initializer:
        graph.sparse_initializer.add().CopyFrom(tensor)
        graph.sparse_initializer[-1].values.name = names[tensor.values.name]
    graph.node.extend(_renamed(node, names, start) for node in original.node)
    for output in original.output:
        copy = graph.output.add()
        copy.CopyFrom(output)
        copy.name = names[output.name]
        if output.name in {value.name for value in case.inputs}:
            copy.name = start + output.name
            graph.node.append(helper.make_node("Identity", [names[output.name]], [copy.name]))
        for dim in copy.type.tensor_type.shape.dim if copy.type.HasField("tensor_type") else ():
            dim.Clear()


def _defined(graph: GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from filter(None, node.output)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)


def _renamed(node: NodeProto, names: dict[str, str], start: str) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = start + node.name if node.name else ""
    del copy.input[:], copy.output[:]
    copy.input.extend(names.get(name, name) for name in node.input)
    copy.output.extend(names.get(name, name) for name in node.output)
    for attribute in copy.attribute:
        if attribute.type == AttributeProto.GRAPH:
            _rename_outer(attribute.g, names)
        for body in attribute.graphs:
            _rename_outer(body, names)
    return copy


def _rename_outer(body: GraphProto, names: dict[str, str]) -> None:
    """Rename what a body reads of the graph around it."""
    own = {*_defined(body), *(value.name for value in body.input)}
    outer = {name: other for name, other in names.items() if name not in own}
    for node in body.node:
        for i, name in enumerate(node.input):
            node.input[i] = outer.get(name, name)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _rename_outer(attribute.g, outer)
    for output in body.output:
        output.name = outer.get(output.name, output.name)


def _cast(case: Case, value: Value, name: str, opset: int) -> list[NodeProto]:
    """Casts to another type and back, or a choice between a value and itself."""
    code = inputs.values.TYPE_CODES[value.dtype]
    wide = THERE_AND_BACK.get(code)
    if wide is None or not _fits(case, value, code):
        return _choice(value, name) if opset >= WHERE_OPSET else _cut(case, value, name, opset)
    return [
        helper.make_node("Cast", [value.name], [f"{name}_wide"], to=wide),
        helper.make_node("Cast", [f"{name}_wide"], [name], to=code),
    ]


def _fits(case: Case, value: Value, code: int) -> bool:
    if code not in HOLDS:
        return True
    array, info = np.load(case.folder / value.file), np.iinfo(HOLDS[code])
    return bool(((array >= info.min) & (array <= info.max)).all())


def _choice(value: Value, name: str) -> list[NodeProto]:
    zero = helper.make_tensor(f"{name}_zero", TensorProto.INT64, [1], [0])
    return [
        helper.make_node("Shape", [value.name], [f"{name}_shape"]),
        helper.make_node("ReduceSum", [f"{name}_shape"], [f"{name}_sum"], keepdims=0),
        helper.make_node("Constant", [], [f"{name}_zero"], value=zero),
        helper.make_node("Equal", [f"{name}_sum", f"{name}_zero"], [f"{name}_is_zero"]),
        helper.make_node("Where", [f"{name}_is_zero", value.name, value.name], [f"{name}_chosen"]),
        helper.make_node("Reshape", [f"{name}_chosen", f"{name}_shape"], [name]),
    ]


def _cut(case: Case, value: Value, name: str, opset: int) -> list[NodeProto]:
    """The value twice, one behind the other, and of that the first."""
    source, result, nodes = value.name, name, []
    n_first = value.shape[0] if value.shape else 1
    if not value.shape:
        one = helper.make_tensor(f"{name}_one", TensorProto.INT64, [1], [1])
        nodes.append(helper.make_node("Constant", [], [f"{name}_one"], value=one))
        nodes.append(helper.make_node("Reshape", [source, f"{name}_one"], [f"{name}_list"]))
        source, result = f"{name}_list", f"{name}_first"
    nodes.append(helper.make_node("Concat", [source, source], [f"{name}_twice"], axis=0))
    if opset < SLICE_OPSET:
        nodes.append(helper.make_node("Slice", [f"{name}_twice"], [result], axes=[0], starts=[0], ends=[n_first]))
    else:
        numbers = {"zero": 0, "first": 1}
        for label, number in numbers.items():
            tensor = helper.make_tensor(f"{name}_{label}_i", TensorProto.INT64, [1], [number])
            nodes.append(helper.make_node("Constant", [], [f"{name}_{label}_i"], value=tensor))
        zero, first = f"{name}_zero_i", f"{name}_first_i"
        nodes.append(helper.make_node("Shape", [source], [f"{name}_shape"]))
        nodes.append(helper.make_node("Slice", [f"{name}_shape", zero, first], [f"{name}_end"]))
        nodes.append(helper.make_node("Slice", [f"{name}_twice", zero, f"{name}_end"], [result]))
    if not value.shape:
        has_input = opset >= AXES_INPUT_OPSET
        inputs_, attributes = ([result, f"{name}_zero_i"], {}) if has_input else ([result], {"axes": [0]})
        nodes.append(helper.make_node("Squeeze", inputs_, [name], **attributes))
    return nodes
