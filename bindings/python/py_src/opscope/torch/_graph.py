"""An FX graph as operators that read and give numbered values."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node

from . import _names, _results, _storage

# Operators whose results are whatever was in memory.
_UNINITIALISED = ("aten.empty", "aten.new_empty")
# Results of these are there only after `wait_tensor`.
_COLLECTIVES = ("_c10d_functional.", "c10d_functional.")
# Longest text of an argument that is kept.
_ARGUMENT_CHARACTERS_MAX = 200


@dataclass
class Value:
    """A tensor that an operator gives, or that the graph is given. What Rust reads has no default."""

    name: str
    # `held`, `run` or `operator`: how long its memory keeps its content.
    stability: str
    is_input: bool
    # Why it is not to be looked at, if so.
    reason: str | None
    # Whether torch has to compute the elements that the tensor stands for, before anybody looks at memory.
    is_lazy: bool = False
    # The node that is the value; of an operator with several results the operator.
    node: Node | None = None


@dataclass
class Operator:
    """A node that computes something."""

    op_type: str
    op_name: str
    inputs: list[int]
    outputs: list[int | None]
    attributes: list[tuple[str, str]]
    is_selected: bool
    node: Node | None = None
    # What it can be asked for by.
    names: list[str] = field(default_factory=list)
    module: str = ""
    is_marked: bool = False


@dataclass
class Described:
    """A graph."""

    values: list[Value] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    # Of each node a value's number, None for what is no tensor, or a tuple of these.
    results: dict[Node, Any] = field(default_factory=dict)
    # Values that are something of the model, by its name there.
    names: dict[str, str] = field(default_factory=dict)

    def name(self, names: Iterable[tuple[str, Node]]) -> None:
        """Names the values of nodes, as far as these are single tensors."""
        for name, node in names:
            number = self.results.get(node)
            if isinstance(number, int):
                self.names[name] = self.values[number].name


def describe(gm: GraphModule, phase: str, exposure: _storage.Exposure) -> Described:
    """Numbers the graph's values and lists its operators, in order."""
    return _Describer(gm, phase, exposure).described


def to_json(described: Described, name: str, phase: str) -> str:
    """A description of the graph for readers of its dump: operators by task, values by name."""

    def called(value: int | None) -> str | None:
        return None if value is None else described.values[value].name

    operators = [
        {
            "task_id": task_id,
            "op_type": one.op_type,
            "op_name": one.op_name,
            "inputs": [called(value) for value in one.inputs],
            "outputs": [called(value) for value in one.outputs],
            "is_selected": one.is_selected,
            "attributes": dict(one.attributes),
        }
        for task_id, one in enumerate(described.operators)
    ]
    arguments = [value.name for value in described.values if value.is_input]
    graph = {
        "version": 1,
        "name": name,
        "phase": phase,
        "arguments": arguments,
        "names": described.names,
        "operators": operators,
    }
    return json.dumps(graph, indent=1, ensure_ascii=False) + "\n"


class _Describer:
    def __init__(self, gm: GraphModule, phase: str, exposure: _storage.Exposure) -> None:
        self.gm = gm
        self.phase = phase
        self.storages = _storage.Storages(gm, phase, exposure)
        self.described = Described()
        self.results = self.described.results
        self.n_of_alias: dict[str, int] = {}
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                self.results[node] = self._result(node, is_input=True)
            elif node.op == "get_attr":
                self.results[node] = self._values(node, self._attribute(node))
            elif node.op == "call_function":
                self._call(node)

    def _result(self, node: Node, is_input: bool = False) -> Any:
        example = _results.example(node)
        if example is None and is_input:
            example = _results.UNKNOWN
        return self._values(node, example, is_input=is_input)

    def _attribute(self, node: Node) -> Any:
        found: Any = self.gm
        for name in str(node.target).split("."):
            found = getattr(found, name, None)
        return found

    def _call(self, node: Node) -> None:
        if node.target is operator.getitem:
            source = self.results.get(node.args[0])
            if isinstance(source, tuple) and isinstance(node.args[1], int):
                self.results[node] = source[node.args[1]]
                return
        inputs = list(self._inputs(node))
        result = self.results[node] = self._result(node)
        outputs = list(_flat(result))
        if inputs or any(output is not None for output in outputs):
            self.described.operators.append(self._operator(node, inputs, outputs))

    def _inputs(self, node: Node) -> Iterator[int]:
        found: list[Node] = []
        torch.fx.node.map_arg((node.args, node.kwargs), found.append)
        for source in found:
            yield from (value for value in _flat(self.results.get(source)) if value is not None)

    def _values(self, node: Node, example: Any, suffix: str = "", is_input: bool = False) -> Any:
        if isinstance(example, torch.Tensor):
            return self._value(node, suffix, example, is_input)
        if example is _results.UNKNOWN:
            # Torch has no example, of a sparse tensor for instance. It shows when the graph runs.
            return self._value(node, suffix, None, is_input)
        if isinstance(example, (tuple, list)):
            return tuple(self._values(node, part, f"{suffix}.{i}", is_input) for i, part in enumerate(example))
        return None

    def _value(self, node: Node, suffix: str, example: torch.Tensor | None, is_input: bool = False) -> int:
        self.described.values.append(
            Value(
                name=node.name + suffix,
                stability=_storage.OPERATOR if node.op == "get_attr" else self.storages.stability(example),
                is_input=is_input,
                reason=_reason(node),
                is_lazy=example is not None and (example.is_conj() or example.is_neg()),
                node=node,
            )
        )
        return len(self.described.values) - 1

    def _operator(self, node: Node, inputs: list[int], outputs: list[int | None]) -> Operator:
        target = _names.target_name(node.target)
        base = _names.base_name(target)
        alias = _names.alias_base(base)
        n = self.n_of_alias.get(alias, 0)
        self.n_of_alias[alias] = n + 1
        alias = f"{alias}_{n}" if n else alias
        module = _names.module_path(node.meta)
        return Operator(
            op_type=target,
            op_name=node.name,
            inputs=inputs,
            outputs=outputs,
            attributes=self._attributes(node, target, alias, module),
            is_selected=True,
            node=node,
            names=[node.name, alias, target, base],
            module=module,
            is_marked=_names.is_marked(node.meta),
        )

    def _attributes(self, node: Node, target: str, alias: str, module: str) -> list[tuple[str, str]]:
        known = {
            "target": target,
            "alias": alias,
            "phase": self.phase,
            "module": module,
            "source": _names.source_line(node.meta),
            "seq_nr": str(node.meta.get("seq_nr", "")),
        }
        attributes = [(name, text) for name, text in known.items() if text]
        for name, argument in [*((str(i), arg) for i, arg in enumerate(node.args)), *node.kwargs.items()]:
            if not _has_node(argument) and argument is not None:
                attributes.append((f"argument.{name}", str(argument)[:_ARGUMENT_CHARACTERS_MAX]))
        return attributes


def _reason(node: Node) -> str | None:
    """Why what a node gives is not to be looked at, whatever it turns out to be."""
    target = _names.target_name(node.target) if node.op == "call_function" else ""
    if target.startswith(_UNINITIALISED):
        return "uninitialised"
    if target.startswith(_COLLECTIVES) and ".wait_tensor" not in target:
        return "collective not finished"
    return None


def _flat(result: Any) -> Iterator[int | None]:
    if isinstance(result, tuple):
        for part in result:
            yield from _flat(part)
    else:
        yield result


def _has_node(argument: Any) -> bool:
    found: list[Node] = []
    torch.fx.node.map_arg(argument, found.append)
    return bool(found)
