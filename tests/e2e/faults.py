"""Faults that are planted into models and dumps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dump_data
import dump_writer
import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Payload = Callable[[NDArray], NDArray]


def changed(model: ModelProto) -> ModelProto:
    """A copy to plant something in."""
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def node(model: ModelProto, name: str) -> NodeProto:
    (found,) = (node for node in model.graph.node if node.name == name)
    return found


def change_weight(model: ModelProto, name: str, change: Payload) -> ModelProto:
    model = changed(model)
    (weight,) = (weight for weight in model.graph.initializer if weight.name == name)
    array = change(numpy_helper.to_array(weight).copy())
    weight.CopyFrom(numpy_helper.from_array(array, name))
    return model


def change_constant(model: ModelProto, name: str, value: float) -> ModelProto:
    """Changes the value of a `Constant` everywhere."""
    model = changed(model)
    (attribute,) = node(model, name).attribute
    array = np.full_like(numpy_helper.to_array(attribute.t), value)
    attribute.t.CopyFrom(numpy_helper.from_array(array))
    return model


def set_attribute(model: ModelProto, name: str, **attributes: object) -> ModelProto:
    model = changed(model)
    wrong = node(model, name)
    kept = [attribute for attribute in wrong.attribute if attribute.name not in attributes]
    del wrong.attribute[:]
    wrong.attribute.extend(kept)
    wrong.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    return model


def replace_type(model: ModelProto, name: str, op_type: str, **attributes: object) -> ModelProto:
    """Another operator of the same name, which an older version of a model may have had."""
    model = set_attribute(model, name, **attributes)
    node(model, name).op_type = op_type
    return model


def rename(model: ModelProto, name: str, new_name: str) -> ModelProto:
    model = changed(model)
    node(model, name).name = new_name
    return model


def insert_casts(model: ModelProto, reader: str) -> ModelProto:
    """Rounds the first input of an operator to float16 and back, by `to_half` and `from_half`."""
    model = changed(model)
    nodes = model.graph.node
    behind = node(model, reader)
    position = list(nodes).index(behind)
    to_half = helper.make_node("Cast", [behind.input[0]], ["half"], "to_half", to=TensorProto.FLOAT16)
    from_half = helper.make_node("Cast", ["half"], ["rounded"], "from_half", to=TensorProto.FLOAT)
    behind.input[0] = "rounded"
    nodes.insert(position, from_half)
    nodes.insert(position, to_half)
    return model


def turn_gemm(model: ModelProto, name: str) -> ModelProto:
    """Stores a `Gemm`'s transposed weight as it is multiplied."""
    model = set_attribute(model, name, transB=0)
    gemm = node(model, name)
    (weight,) = (weight for weight in model.graph.initializer if weight.name == gemm.input[1])
    turned = np.ascontiguousarray(numpy_helper.to_array(weight).T)
    weight.CopyFrom(numpy_helper.from_array(turned, weight.name))
    return model


def split_gemm(model: ModelProto, name: str, product: str, total: str) -> ModelProto:
    """A `Gemm` as `MatMul` and `Add`."""
    model = changed(model)
    nodes = model.graph.node
    gemm = node(model, name)
    position = list(nodes).index(gemm)
    matmul = helper.make_node("MatMul", [gemm.input[0], gemm.input[1]], ["product"], product)
    add = helper.make_node("Add", ["product", gemm.input[2]], list(gemm.output), total)
    nodes.remove(gemm)
    nodes.insert(position, add)
    nodes.insert(position, matmul)
    return model


def split_bias(model: ModelProto, name: str, product: str, total: str) -> ModelProto:
    """A `Conv` with a bias as one without and an `Add`."""
    model = changed(model)
    nodes = model.graph.node
    conv = node(model, name)
    (bias,) = (weight for weight in model.graph.initializer if weight.name == conv.input[2])
    column = numpy_helper.to_array(bias).reshape(-1, 1, 1)
    bias.CopyFrom(numpy_helper.from_array(column, bias.name))
    add = helper.make_node("Add", ["product", bias.name], list(conv.output), total)
    conv.name = product
    del conv.input[2]
    conv.output[0] = "product"
    nodes.insert(list(nodes).index(conv) + 1, add)
    return model


def dump_file(dump: Path, operator: str) -> Path:
    """The dump file of an operator, whose name is given as the model has it."""
    written = operator.replace("/", "_").replace(".", "_")
    (path,) = (path for path in dump.rglob("*") if path.is_file() and path.name.split(".")[1:2] == [written])
    return path


def rewrite(
    path: Path,
    inputs: Callable[[list[dump_writer.Tensor]], list[dump_writer.Tensor]] = list,
    outputs: Callable[[list[dump_writer.Tensor]], list[dump_writer.Tensor]] = list,
) -> None:
    """Writes a dump file again, with other inputs or outputs."""
    header = dump_data.parse(path.read_bytes())
    raw = dump_writer.dump_file(
        header.op_name,
        inputs([_to_write(tensor) for tensor in header.inputs]),
        outputs([_to_write(tensor) for tensor in header.outputs]),
        header.dump_time,
    )
    path.chmod(0o600)
    path.write_bytes(raw)


def perturb(dump: Path, operator: str, slot: str, change: Payload) -> None:
    """Changes the values of a slot in a dump."""
    side, index = slot.split(".")

    def edit(tensors: list[dump_writer.Tensor]) -> list[dump_writer.Tensor]:
        tensor = tensors[int(index)]
        dtype = dump_data.DATA_TYPES[tensor.data_type]
        array = np.frombuffer(tensor.payload, dtype).reshape(tensor.shape).copy()
        tensors[int(index)] = _with(tensor, change(array).astype(dtype).tobytes())
        return tensors

    rewrite(dump_file(dump, operator), **{f"{side}s": edit})


def _to_write(tensor: dump_data.Tensor) -> dump_writer.Tensor:
    original = tensor.original_shape or ()
    return dump_writer.Tensor(tensor.data_type, tensor.shape, tensor.payload, tensor.format, original)


def _with(tensor: dump_writer.Tensor, payload: bytes) -> dump_writer.Tensor:
    return dump_writer.Tensor(tensor.data_type, tensor.shape, payload, tensor.layout, tensor.original_shape)
