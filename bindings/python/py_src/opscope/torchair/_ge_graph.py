"""An FX graph as a graph of the graph engine: operators whose inputs are others' outputs.

Operators have the names of nodes, which `dump_layer` and `debug.data_dump.filter` use. Selecting
one of several results is not an operator here: its reader reads that output, `node:1`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node

from opscope._argument import text as argument_text
from opscope.torch._names import alias_base, base_name, module_path, target_name
from opscope.torchair._fx_names import Symbols, graph_modules

# Marks a dynamic dimension.
UNKNOWN = -1
OUTPUT = "NetOutput"
# Maximum length of an attribute's text.
_CHARACTERS_MAX = 4096

# Values of the graph engine's `DataType`.
_DTYPES = {
    "float32": "DT_FLOAT",
    "float16": "DT_FLOAT16",
    "int8": "DT_INT8",
    "uint8": "DT_UINT8",
    "int16": "DT_INT16",
    "uint16": "DT_UINT16",
    "int32": "DT_INT32",
    "int64": "DT_INT64",
    "uint32": "DT_UINT32",
    "uint64": "DT_UINT64",
    "bool": "DT_BOOL",
    "float64": "DT_DOUBLE",
    "complex64": "DT_COMPLEX64",
    "complex128": "DT_COMPLEX128",
    "qint8": "DT_QINT8",
    "qint32": "DT_QINT32",
    "quint8": "DT_QUINT8",
    "bfloat16": "DT_BF16",
    "complex32": "DT_COMPLEX32",
    "float8_e5m2": "DT_FLOAT8_E5M2",
    "float8_e4m3fn": "DT_FLOAT8_E4M3FN",
    "float8_e8m0fnu": "DT_FLOAT8_E8M0",
    "float4_e2m1fn_x2": "DT_FLOAT4_E2M1",
}


@dataclass(frozen=True)
class Described:
    """Type and shape of an input or output; dynamic dimensions are -1."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    device: str
    # Torch's text, with symbols for dynamic dimensions.
    text: str


@dataclass
class Op:
    """An operator."""

    name: str
    type: str
    # `producer:index` each.
    inputs: list[str] = field(default_factory=list)
    input_descs: list[Described] = field(default_factory=list)
    output_descs: list[Described] = field(default_factory=list)
    attributes: dict[str, str | int] = field(default_factory=dict)
    subgraphs: list[str] = field(default_factory=list)


@dataclass
class Graph:
    """A graph, and those within it."""

    name: str
    ops: list[Op] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    subgraphs: list[Graph] = field(default_factory=list)


def graph_of(gm: GraphModule, name: str) -> Graph:
    """The graph of a module."""
    return _Converter(gm, name).graph


class _Converter:
    def __init__(self, gm: GraphModule, name: str) -> None:
        self.graph = Graph(name)
        self.symbols = Symbols(gm.graph.nodes)
        # For each node its outputs: a pair of `producer:index` and a description, a tuple of these,
        # or None.
        self.results: dict[Node, Any] = {}
        children = dict(graph_modules(gm))
        for node in gm.graph.nodes:
            if node.op == "output":
                self._output(node)
            elif node.op == "get_attr" and node.target in children:
                self.results[node] = None
            elif self._item(node) is not None:
                self.results[node] = self._item(node)
            else:
                self._op(node, children)
        self.graph.subgraphs = [graph_of(child, f"{name}_{attribute}") for attribute, child in children.items()]

    def _item(self, node: Node) -> Any:
        if node.target is not operator.getitem or not isinstance(node.args[0], Node):
            return None
        source = self.results.get(node.args[0])
        index = node.args[1]
        return source[index] if isinstance(source, list) and isinstance(index, int) and index < len(source) else None

    def _op(self, node: Node, children: dict[str, GraphModule]) -> None:
        op = Op(node.name, {"placeholder": "Data", "get_attr": "Const"}.get(node.op) or target_name(node.target))
        if node.op == "placeholder":
            op.attributes["index"] = len(self.graph.inputs)
            self.graph.inputs.append(f"{node.name}:0")
        for source in _sources(node):
            if source.op == "get_attr" and source.target in children:
                op.subgraphs.append(f"{self.graph.name}_{source.target}")
            for name, described in _flat(self.results.get(source)):
                op.inputs.append(name)
                op.input_descs.append(described)
        self.results[node] = self._results(node.meta.get("val"), op)
        op.attributes |= self._attributes(node)
        self.graph.ops.append(op)

    def _results(self, value: Any, op: Op) -> Any:
        if isinstance(value, (tuple, list)):
            return [self._results(part, op) for part in value]
        number = len(op.output_descs)
        op.output_descs.append(self._described(value, f"y{number}"))
        return f"{op.name}:{number}", op.output_descs[-1]

    def _described(self, value: Any, name: str) -> Described:
        if not isinstance(value, torch.Tensor):
            # Symbolic integers are 64-bit; other types are unknown.
            dtype = "DT_INT64" if isinstance(value, (int, torch.SymInt)) else "DT_UNDEFINED"
            return Described(name, dtype, (), "CPU", self.symbols.value(value))
        shape = tuple(extent if isinstance(extent, int) else UNKNOWN for extent in value.shape)
        dtype = _DTYPES.get(str(value.dtype).removeprefix("torch."), "DT_UNDEFINED")
        return Described(name, dtype, shape, value.device.type.upper(), self.symbols.value(value))

    def _attributes(self, node: Node) -> dict[str, str | int]:
        target = target_name(node.target) if node.op == "call_function" else ""
        known: dict[str, Any] = {
            "_meta": self.symbols.value(node.meta.get("val")),
            "alias": alias_base(base_name(target)) if target else "",
            "nn_module": module_path(node.meta),
            "stack": (node.meta.get("stack_trace") or "").strip(),
            "seq_nr": node.meta.get("seq_nr"),
        }
        for name, argument in [*((str(i), arg) for i, arg in enumerate(node.args)), *node.kwargs.items()]:
            if argument is not None and not _nodes(argument):
                known[f"argument.{name}"] = argument_text(argument)
        return {
            name: value if isinstance(value, int) else str(value)[:_CHARACTERS_MAX]
            for name, value in known.items()
            if value not in (None, "")
        }

    def _output(self, node: Node) -> None:
        op = Op(OUTPUT, OUTPUT)
        for source in _sources(node):
            for name, described in _flat(self.results.get(source)):
                op.inputs.append(name)
                op.input_descs.append(described)
        self.graph.outputs = list(op.inputs)
        self.graph.ops.append(op)


def _sources(node: Node) -> list[Node]:
    return _nodes((node.args, node.kwargs))


def _nodes(argument: Any) -> list[Node]:
    found: list[Node] = []
    torch.fx.node.map_arg(argument, found.append)
    return found


def _flat(result: Any) -> Iterator[tuple[str, Described]]:
    if isinstance(result, list):
        for part in result:
            yield from _flat(part)
    elif result is not None:
        yield result
