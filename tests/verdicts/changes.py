"""Changes of a model that its callers see, and changes that they do not."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, version_converter
from onnx.shape_inference import infer_shapes


def copied(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def with_names_swapped(model: ModelProto, first: str, second: str) -> ModelProto:
    """Every operator makes and reads the one value where it made and read the other."""
    swapped = {first: second, second: first}
    model = copied(model)
    for node in model.graph.node:
        for values in (node.input, node.output):
            values[:] = [swapped.get(name, name) for name in values]
    return model


def with_outputs(model: ModelProto, names: list[str]) -> ModelProto:
    """The outputs of these names, in this order."""
    model = copied(model)
    known = {value.name: value for value in model.graph.output}
    kept = [known[name] for name in names]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    return model


def output_names(model: ModelProto) -> list[str]:
    return [value.name for value in model.graph.output]


def appended(model: ModelProto, output: str, node: NodeProto, dtype: int | None = None) -> ModelProto:
    """An operator between a value and the output of its name; what reads the value inside is unchanged.

    The node reads `before` and makes `output`.
    """
    model = copied(model)
    for one in model.graph.node:
        for values in (one.input, one.output):
            values[:] = ["before" if name == output else name for name in values]
    node = _copied_node(node)
    node.input[:] = ["before" if name == "before" else name for name in node.input]
    node.output[:] = [output]
    model.graph.node.append(node)
    for value in model.graph.output:
        if value.name == output and dtype is not None:
            value.type.tensor_type.elem_type = dtype
    return model


def _copied_node(node: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def with_weight(model: ModelProto, name: str, value: NDArray) -> ModelProto:
    model = copied(model)
    kept = [weight for weight in model.graph.initializer if weight.name != name]
    del model.graph.initializer[:]
    model.graph.initializer.extend([*kept, numpy_helper.from_array(value, name)])
    return model


def weight(model: ModelProto, name: str) -> NDArray:
    (found,) = (one for one in model.graph.initializer if one.name == name)
    return numpy_helper.to_array(found).copy()


def maker(model: ModelProto, value: str) -> NodeProto:
    (found,) = (node for node in model.graph.node if value in node.output)
    return found


def without_maker(model: ModelProto, output: str) -> ModelProto:
    """The last operator of an output hands its first input on."""
    model = copied(model)
    node = maker(model, output)
    node.CopyFrom(helper.make_node("Identity", [node.input[0]], [output], name=node.name))
    return model


def with_values_renamed(model: ModelProto, names: dict[str, str]) -> ModelProto:
    model = copied(model)
    for node in model.graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(name, name) for name in values]
    for value in model.graph.output:
        value.name = names.get(value.name, value.name)
    return model


def with_nodes_renamed(model: ModelProto) -> ModelProto:
    model = copied(model)
    for index, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{index}"
    return model


def with_every_value_marked(model: ModelProto) -> ModelProto:
    model = infer_shapes(copied(model))
    listed = set(output_names(model))
    known = {value.name: value for value in model.graph.value_info}
    made = [name for node in model.graph.node for name in node.output if name and name not in listed]
    model.graph.output.extend(known[name] for name in made if name in known)
    return model


def optimised(model: ModelProto, level: str) -> ModelProto:
    """The graph that ONNX Runtime saves after optimising."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimised.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 4
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        saved = ModelProto()
        saved.ParseFromString(path.read_bytes())
        return saved


def converted(model: ModelProto, opset: int) -> ModelProto:
    return version_converter.convert_version(model, opset)


def with_linear_split(model: ModelProto) -> ModelProto | None:
    """Each `Gemm` as a transposition, a product and a sum; none if there is no `Gemm`."""
    model = copied(model)
    nodes: list[NodeProto] = []
    n_split = 0
    for node in model.graph.node:
        if node.op_type != "Gemm":
            nodes.append(_copied_node(node))
            continue
        n_split += 1
        x, w, b = node.input
        nodes += [
            helper.make_node("Transpose", [w], [f"{w}_turned"], name=f"{node.name}/turn", perm=[1, 0]),
            helper.make_node("MatMul", [x, f"{w}_turned"], [f"{node.name}_product"], name=f"{node.name}/mm"),
            helper.make_node("Add", [f"{node.name}_product", b], list(node.output), name=f"{node.name}/add"),
        ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model if n_split else None


def with_softmax_split(model: ModelProto) -> ModelProto | None:
    """Each `Softmax` over the last axis as its parts; none if there is no such operator."""
    model = copied(model)
    nodes: list[NodeProto] = []
    n_split = 0
    for node in model.graph.node:
        if node.op_type != "Softmax":
            nodes.append(_copied_node(node))
            continue
        n_split += 1
        name, x = node.name, node.input[0]
        nodes += [
            helper.make_node("ReduceMax", [x], [f"{name}_max"], name=f"{name}/max", axes=[-1], keepdims=1),
            helper.make_node("Sub", [x, f"{name}_max"], [f"{name}_less"], name=f"{name}/sub"),
            helper.make_node("Exp", [f"{name}_less"], [f"{name}_exp"], name=f"{name}/exp"),
            helper.make_node(
                "ReduceSum", [f"{name}_exp", "last_axis"], [f"{name}_sum"], name=f"{name}/sum", keepdims=1
            ),
            helper.make_node("Div", [f"{name}_exp", f"{name}_sum"], list(node.output), name=f"{name}/div"),
        ]
    if not n_split:
        return None
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1], np.int64), "last_axis"))
    return model


def with_identities(model: ModelProto) -> ModelProto:
    """An `Identity` in front of each output."""
    for name in output_names(model):
        node = helper.make_node("Identity", ["before"], [name], name=f"out/{name}")
        model = appended(model, name, node)
        model = with_values_renamed_inside(model, "before", f"inner_{name}")
    return model


def with_values_renamed_inside(model: ModelProto, name: str, new_name: str) -> ModelProto:
    return with_values_renamed(model, {name: new_name})


def dtype_of(model: ModelProto, output: str) -> int:
    (found,) = (value for value in model.graph.output if value.name == output)
    return found.type.tensor_type.elem_type


def shape_of(model: ModelProto, output: str) -> list[int]:
    inferred = infer_shapes(copied(model))
    (found,) = (value for value in inferred.graph.output if value.name == output)
    return [dim.dim_value for dim in found.type.tensor_type.shape.dim]


FLOAT = TensorProto.FLOAT
