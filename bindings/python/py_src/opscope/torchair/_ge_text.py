"""Text forms of a `_ge_graph` graph, for readers of the graph engine's files."""

from __future__ import annotations

from typing import Union

from opscope.torchair._ge_graph import Described, Graph, Op
from opscope.torchair._protobuf_text import Message, Word, text_of

# ONNX type numbers of the graph engine's dtypes.
_ONNX_TYPES = {
    "DT_FLOAT": 1,
    "DT_UINT8": 2,
    "DT_INT8": 3,
    "DT_UINT16": 4,
    "DT_INT16": 5,
    "DT_INT32": 6,
    "DT_INT64": 7,
    "DT_BOOL": 9,
    "DT_FLOAT16": 10,
    "DT_DOUBLE": 11,
    "DT_UINT32": 12,
    "DT_UINT64": 13,
    "DT_COMPLEX64": 14,
    "DT_COMPLEX128": 15,
    "DT_BF16": 16,
    "DT_FLOAT8_E4M3FN": 17,
    "DT_FLOAT8_E5M2": 19,
}
_ONNX_IR_VERSION = 10
_ONNX_OPSET = 21
_ONNX_DOMAIN = "torch"


def graph_def(graph: Graph) -> str:
    """A `GraphDef` of the graph engine."""
    return text_of(_graph_message(graph))


def model_def(graph: Graph) -> str:
    """A `ModelDef` of the graph engine: the graph and those within it."""
    message: Message = [("name", graph.name), ("version", 1)]
    message += [("graph", _graph_message(member)) for member in _with_subgraphs(graph)]
    return text_of(message)


def node_text(graph: Graph) -> str:
    """Nodes as TensorFlow writes them, which TensorBoard and Netron open."""
    message: Message = []
    for member in _with_subgraphs(graph):
        # Nested graphs may reuse a name, but names in the file must be unique.
        prefix = "" if member is graph else f"{member.name}/"
        message += [("node", _node_message(op, prefix)) for op in member.ops]
    return text_of(message)


def onnx_text(graph: Graph) -> str:
    """An ONNX model whose operators are PyTorch's."""
    named = {op.name: op for op in graph.ops}
    inputs = [op for op in graph.ops if op.type == "Data"]
    body: Message = [("node", _onnx_node(op)) for op in graph.ops if op.type not in ("Data", "NetOutput")]
    body.append(("name", graph.name))
    body += [("input", _onnx_value(f"{op.name}:0", op.output_descs[0])) for op in inputs if op.output_descs]
    for output in dict.fromkeys(graph.outputs):
        name, _, index = output.rpartition(":")
        body.append(("output", _onnx_value(output, named[name].output_descs[int(index)])))
    return text_of(
        [
            ("ir_version", _ONNX_IR_VERSION),
            ("producer_name", "opscope"),
            ("graph", body),
            ("opset_import", [("domain", _ONNX_DOMAIN), ("version", 1)]),
            ("opset_import", [("domain", ""), ("version", _ONNX_OPSET)]),
        ]
    )


def readable(graph: Graph) -> str:
    """One line for each operator."""
    return "\n".join(_readable(member) for member in _with_subgraphs(graph))


def _with_subgraphs(graph: Graph) -> list[Graph]:
    return [graph, *(member for child in graph.subgraphs for member in _with_subgraphs(child))]


def _graph_message(graph: Graph) -> Message:
    message: Message = [("name", graph.name)]
    message += [("input", name) for name in graph.inputs]
    message += [("output", name) for name in graph.outputs]
    return message + [("op", _op_message(op, i)) for i, op in enumerate(graph.ops)]


def _op_message(op: Op, number: int) -> Message:
    message: Message = [("name", op.name), ("type", op.type)]
    message += [("input", name) for name in op.inputs]
    message += [("attr", _attribute(name, value)) for name, value in op.attributes.items()]
    message.append(("id", number))
    message += [("src_name", name.rpartition(":")[0]) for name in op.inputs]
    message += [("src_index", int(name.rpartition(":")[2])) for name in op.inputs]
    message += [("input_desc", _descriptor(described, f"x{i}")) for i, described in enumerate(op.input_descs)]
    message += [("output_desc", _descriptor(described, described.name)) for described in op.output_descs]
    return message + [("subgraph_name", name) for name in op.subgraphs]


def _attribute(name: str, value: Union[str, int]) -> Message:
    return [("key", name), ("value", [("s" if isinstance(value, str) else "i", value)])]


def _descriptor(described: Described, name: str) -> Message:
    shape: Message = [("dim", extent) for extent in described.shape]
    return [
        ("name", name),
        ("dtype", Word(described.dtype)),
        ("shape", shape),
        ("layout", "ND"),
        ("attr", _attribute("_meta", described.text)),
        ("device_type", described.device),
    ]


def _node_message(op: Op, prefix: str) -> Message:
    message: Message = [("name", prefix + op.name), ("op", op.type)]
    message += [("input", prefix + name) for name in op.inputs]
    described = [(f"[i]x{i}", desc) for i, desc in enumerate(op.input_descs)]
    described += [(f"[o]{desc.name}", desc) for desc in op.output_descs]
    attributes: dict[str, Union[str, int]] = {**op.attributes, **{name: desc.text for name, desc in described}}
    return message + [("attr", _attribute(name, value)) for name, value in attributes.items()]


def _onnx_node(op: Op) -> Message:
    message: Message = [("input", name) for name in op.inputs]
    message += [("output", f"{op.name}:{i}") for i in range(len(op.output_descs))]
    message += [("name", op.name), ("op_type", op.type)]
    for name, value in op.attributes.items():
        kind, number = ("s", "STRING") if isinstance(value, str) else ("i", "INT")
        message.append(("attribute", [("name", name), (kind, value), ("type", Word(number))]))
    return [*message, ("domain", _ONNX_DOMAIN)]


def _onnx_value(name: str, described: Described) -> Message:
    shape: Message = []
    for extent in described.shape:
        shape.append(("dim", [("dim_value", extent)] if extent >= 0 else [("dim_param", "unknown")]))
    tensor: Message = [("elem_type", _ONNX_TYPES.get(described.dtype, 0)), ("shape", shape)]
    return [("name", name), ("type", [("tensor_type", tensor)])]


def _readable(graph: Graph) -> str:
    n_users: dict[str, int] = {}
    for op in graph.ops:
        for name in op.inputs:
            n_users[name] = n_users.get(name, 0) + 1
    lines = [f'graph("{graph.name}"):']
    for op in graph.ops:
        if op.type == "NetOutput":
            continue
        inputs = ", ".join(f"x{i}={_value(name, graph)}" for i, name in enumerate(op.inputs))
        attributes = ", ".join(f"{name}: {str(value).splitlines()[0]}" for name, value in op.attributes.items())
        n = sum(n_users.get(f"{op.name}:{i}", 0) for i in range(len(op.output_descs)))
        call = f"Node[type={op.type}] (inputs = ({inputs}), attrs = {{{attributes}}})"
        lines.append(f"    %{op.name} : [#users={n}] = {call}")
        for i in range(len(op.output_descs) if len(op.output_descs) > 1 else 0):
            n = n_users.get(f"{op.name}:{i}", 0)
            lines.append(f"    %{op.name}.{i} : [#users={n}] = get_element[node=%{op.name}]({i})")
    results = ", ".join(f"output_{i}={_value(name, graph)}" for i, name in enumerate(graph.outputs))
    return "\n".join((*lines, f"    return ({results})")) + "\n"


def _value(name: str, graph: Graph) -> str:
    producer, _, index = name.rpartition(":")
    n = next((len(op.output_descs) for op in graph.ops if op.name == producer), 1)
    return f"%{producer}" if n == 1 else f"%{producer}.{index}"
