"""An FX graph as operators that read and produce numbered values."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .._argument import text as argument_text
from . import _bodies, _collective_kinds, _names, _printing, _results, _storage
from ._origins import Origins

# Operators with uninitialised results.
_UNINITIALISED = ("aten.empty", "aten.new_empty")
# The results of these are ready only after `wait_tensor`.
_COLLECTIVES = ("_c10d_functional.", "c10d_functional.")
# Maximum length of an argument's text.
_ARGUMENT_CHARACTERS_MAX = 200


@dataclass
class Value:
    """A tensor produced by an operator, or an argument of the graph. Fields read by Rust have no
    default."""

    name: str
    # `held`, `run` or `operator`: how long its memory keeps its contents.
    stability: str
    is_input: bool
    # Why it cannot be observed, if so.
    reason: str | None
    # Whether torch must materialise the elements before the memory is read.
    is_lazy: bool = False
    # The node of the value; for an operator with several results, the operator's.
    node: Node | None = None
    # Torch's example before the graph runs.
    example: torch.Tensor | None = None
    # Its parameter or buffer, or the one whose gradient or new value it is; otherwise empty.
    fqn: str = ""
    # The enclosing body, by number.
    body: int | None = None
    # Whether its elements are ready only after another operator has waited for them.
    is_late: bool = False
    # The distributed tensor that it is a part of, as text; empty if unknown.
    placement: str = ""


@dataclass
class Operator:
    """A node that computes something."""

    op_type: str
    op_name: str
    inputs: list[int]
    outputs: list[int | None]
    attributes: list[tuple[str, str]]
    is_selected: bool
    # Whether its record has inputs and outputs regardless of the plan.
    has_both_sides: bool = False
    # Arguments with default values, as Python prints them.
    default_attributes: list[tuple[str, str]] = field(default_factory=list)
    # Its collective as text, and the group's global ranks.
    collective: tuple[str, list[int]] | None = None
    # The operator after which its results are recorded, by number, if another.
    shown_after: int | None = None
    # Placements of inputs and outputs, as text; may be shorter than these.
    input_placements: list[str] = field(default_factory=list)
    output_placements: list[str] = field(default_factory=list)
    # For each of its results the operator that waits for it, and the index among that one's
    # results.
    waits: list[tuple[Node, int | None]] = field(default_factory=list)
    node: Node | None = None
    # Names by which it can be selected.
    names: list[str] = field(default_factory=list)
    module: str = ""
    is_marked: bool = False
    # Whether it returns a view of an argument.
    is_view: bool = False
    # The enclosing body, by number.
    body: int | None = None


@dataclass
class Body:
    """A graph inside an operator. Fields read by Rust have no default."""

    # The containing operator, its own operators, and the enclosing body, by number.
    outer: int
    operators: list[int]
    parent: int | None
    is_loop: bool
    n_dry_runs: int
    # Why its operators cannot be observed, if so.
    reason: str | None
    gm: GraphModule | None = None
    # The node that refers to it.
    node: Node | None = None


@dataclass
class Described:
    """A graph."""

    values: list[Value] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    # Outer bodies precede inner ones.
    bodies: list[Body] = field(default_factory=list)
    # Names of operators and values so far.
    names: set[str] = field(default_factory=set)
    # The device number; 0 for the CPU.
    device: int = 0
    # For each node a value's number, None for a non-tensor, or a tuple of these.
    results: dict[Node, Any] = field(default_factory=dict)
    # Names of values in the model.
    model_names: dict[str, str] = field(default_factory=dict)

    def name(self, names: Iterable[tuple[str, Node]]) -> None:
        """Names the values of nodes, if these are single tensors."""
        for name, node in names:
            number = self.results.get(node)
            if isinstance(number, int):
                self.model_names[name] = self.values[number].name


def describe(
    gm: GraphModule,
    phase: str,
    origins: Origins | None = None,
    name: str = "",
) -> Described:
    """Numbers the graph's values and lists its operators in order; a body's operators follow their
    container."""
    described = Described()
    _Describer(gm, described, phase, _storage.Storages(gm), origins or Origins(), name)
    described.device = _device(described.values)
    return described


def _device(values: list[Value]) -> int:
    """The first one that is not the CPU."""
    devices = (value.example.device for value in values if value.example is not None)
    return next((device.index or 0 for device in devices if device.type not in ("cpu", "meta")), 0)


class _Describer:
    def __init__(
        self,
        gm: GraphModule,
        described: Described,
        phase: str,
        storages: _storage.Storages,
        origins: Origins,
        graph: str,
        body: int | None = None,
    ) -> None:
        self.gm = gm
        self.described = described
        self.phase = phase
        self.storages = storages
        self.origins = origins
        self.graph = graph
        self.body = body
        # The prefix of the names of a body's nodes.
        self.prefix = "" if body is None else described.operators[described.bodies[body].outer].op_name + "."
        # For each node a value's number, None for a non-tensor, or a tuple of these.
        self.results: dict[Node, Any] = described.results if body is None else {}
        self.names: dict[Node, str] = {}
        self.n_of_alias: dict[str, int] = {}
        self.n_scopes = 0
        for node in gm.graph.nodes:
            self.n_scopes += _printing.scope_depth(node)
            if node.op == "placeholder":
                self.results[node] = self._result(node, is_input=True)
            elif node.op == "get_attr":
                self.results[node] = self._values(node, _bodies.attribute(self.gm, str(node.target)))
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output" and body is None:
                self._name_results(node)
        self._link_waits()

    def _result(self, node: Node, is_input: bool = False) -> Any:
        example = _results.example(node)
        if example is None and is_input:
            example = _results.UNKNOWN
        return self._values(node, example, is_input=is_input)

    def _call(self, node: Node) -> None:
        if _printing.is_ours(node.target):
            return
        if node.target is operator.getitem:
            source = self.results.get(node.args[0])
            if isinstance(source, tuple) and isinstance(node.args[1], int):
                self.results[node] = source[node.args[1]]
                return
        inputs = list(self._inputs(node))
        result = self.results[node] = self._result(node)
        outputs = list(_flat(result))
        bodies = list(_bodies.held(self.gm, node))
        if not bodies and not inputs and all(output is None for output in outputs):
            return
        operators = self.described.operators
        task_id = len(operators)
        if self.phase == "forward" and self.body is None:
            self.origins.learn(node.meta, self.graph, task_id)
        operators.append(self._operator(node, inputs, outputs))
        if self.body is not None:
            self.described.bodies[self.body].operators.append(task_id)
        for source, gm in bodies:
            self._describe_body(node, task_id, source, gm)

    def _describe_body(self, node: Node, task_id: int, source: Node, gm: GraphModule) -> None:
        bodies = self.described.bodies
        outer = None if self.body is None else bodies[self.body].reason
        reason = outer or _bodies.reason_of(node)
        number = len(bodies)
        loop = (_bodies.is_loop(node), _bodies.n_dry_runs(node))
        bodies.append(Body(task_id, [], self.body, *loop, reason, gm, source))
        # It is unknown what a body does with its arguments, and its results are the container's.
        storages = _storage.Storages(gm)
        _Describer(gm, self.described, self.phase, storages, self.origins, self.graph, number)

    def _name_results(self, node: Node) -> None:
        """Marks results of the graph that are gradients or new values of buffers."""
        results, descriptions = node.args[0], node.meta.get("desc")
        if not isinstance(results, (tuple, list)) or not isinstance(descriptions, (tuple, list)):
            return
        for result, description in zip(results, descriptions):
            number = self.results.get(result) if isinstance(result, Node) else None
            if isinstance(number, int) and (name := self.origins.result(description)):
                value = self.described.values[number]
                value.fqn = value.fqn or name
        values = self.described.values
        for operator in self.described.operators:
            if operator.op_type == "aten.copy_.default" and (number := operator.outputs[0]) is not None:
                # The new value of a buffer that the graph itself writes.
                values[number].fqn = values[number].fqn or values[operator.inputs[0]].fqn
            for i, number in enumerate(operator.outputs):
                if number is not None and (name := values[number].fqn):
                    operator.attributes.append((f"output.{i}.fqn", name))

    def _link_waits(self) -> None:
        """Sets the operator after which a collective's results are ready."""
        numbers = {op.node: number for number, op in enumerate(self.described.operators)}
        for op in self.described.operators:
            if op.waits and op.body == self.body:
                op.shown_after = max(numbers[wait] for wait, _ in op.waits)

    def _inputs(self, node: Node) -> Iterator[int]:
        found: list[Node] = []
        torch.fx.node.map_arg((node.args, node.kwargs), found.append)
        for source in found:
            yield from (value for value in _flat(self.results.get(source)) if value is not None)

    def _values(self, node: Node, example: Any, suffix: str = "", is_input: bool = False) -> Any:
        if isinstance(example, torch.Tensor):
            return self._value(node, suffix, example, is_input)
        if example is _results.UNKNOWN:
            # Torch has no example, for instance for a sparse tensor. The type is known when the
            # graph runs.
            return self._value(node, suffix, None, is_input)
        if isinstance(example, (tuple, list)):
            return tuple(self._values(node, part, f"{suffix}.{i}", is_input) for i, part in enumerate(example))
        return None

    def _value(self, node: Node, suffix: str, example: torch.Tensor | None, is_input: bool = False) -> int:
        stability = _storage.OPERATOR if node.op == "get_attr" else self.storages.stability(example)
        is_in_body = self.body is not None
        if is_in_body and stability == _storage.RUN:
            # Memory visible outside the body may be written as soon as the body has run.
            stability = _storage.OPERATOR
        hidden = self.described.bodies[self.body].reason if self.body is not None else None
        self.described.values.append(
            Value(
                name=self._name(node) + suffix,
                stability=stability,
                is_input=is_input and not is_in_body,
                reason=hidden or _reason(node),
                is_late=node.op == "call_function" and bool(_waits(node)),
                placement=self.origins.placement(node.meta.get("desc")) if is_input and not is_in_body else "",
                # An unknown tensor is examined at run time.
                is_lazy=example is None or example.is_conj() or example.is_neg(),
                node=node,
                example=example,
                fqn=self.origins.parameter(node.meta.get("desc")) if is_input and not is_in_body else "",
                body=self.body,
            )
        )
        return len(self.described.values) - 1

    def _operator(self, node: Node, inputs: list[int], outputs: list[int | None]) -> Operator:
        target = _names.target_name(node.target)
        base = _names.base_name(target)
        alias = _names.alias_base(base)
        n = self.n_of_alias.get(alias, 0)
        self.n_of_alias[alias] = n + 1
        alias = self.prefix + (f"{alias}_{n}" if n else alias)
        op_name = self._name(node)
        module = _names.module_path(node.meta)
        return Operator(
            op_type=target,
            op_name=op_name,
            inputs=inputs,
            outputs=outputs,
            attributes=self._attributes(node, target, alias, module, inputs),
            is_selected=True,
            node=node,
            names=[op_name, alias, target, base],
            module=module,
            is_marked=self.n_scopes > 0 or _names.is_marked(node.meta),
            is_view=_names.is_view(node.target),
            collective=_collective(node),
            waits=_waits(node),
            input_placements=self._placements(inputs),
            body=self.body,
        )

    def _placements(self, values: list[int]) -> list[str]:
        found = [self.described.values[value].placement for value in values]
        return found if any(found) else []

    def _name(self, node: Node) -> str:
        """`cond.sin`, with the body's name if another body of the same operator uses the name."""
        if node not in self.names:
            name = self.prefix + node.name
            if self.body is not None and name in self.described.names:
                own = self.described.bodies[self.body].node
                name = f"{self.prefix}{own.target if own else self.body}.{node.name}"
            self.described.names.add(name)
            self.names[node] = name
        return self.names[node]

    def _attributes(
        self, node: Node, target: str, alias: str, module: str, inputs: list[int]
    ) -> list[tuple[str, str]]:
        original = node.meta.get("original_aten")
        own = None if self.body is None else self.described.bodies[self.body]
        partner = self.origins.forward_partner(node.meta) if self.phase == "backward" and own is None else None
        forward_graph, forward_task_id = partner or ("", "")
        known = {
            "target": target,
            "kind": _names.kind(target),
            "original_aten": "" if original is None or str(original) == target else str(original),
            "alias": alias,
            "phase": self.phase,
            "module": module,
            "source": _names.source_line(node.meta),
            "seq_nr": str(node.meta.get("seq_nr", "")),
            "forward_graph": forward_graph,
            "forward_task_id": str(forward_task_id),
            "body": "" if own is None or own.node is None else str(own.node.target),
            **{f"input.{i}.fqn": self.described.values[value].fqn for i, value in enumerate(inputs)},
        }
        attributes = [(name, text) for name, text in known.items() if text]
        for name, argument in [*((str(i), arg) for i, arg in enumerate(node.args)), *node.kwargs.items()]:
            if not _has_node(argument) and argument is not None:
                attributes.append((f"argument.{name}", argument_text(argument)[:_ARGUMENT_CHARACTERS_MAX]))
        return attributes


def _reason(node: Node) -> str | None:
    """Why a node's output cannot be observed, regardless of its value."""
    if node.op != "call_function" or _waits(node):
        return None
    return reason_of(_names.target_name(node.target))


def _collective(node: Node) -> tuple[str, list[int]] | None:
    """Kind and ranks of a collective; `None` for other operators."""
    namespace, _, name = _names.target_name(node.target).partition(".")
    if namespace != "_c10d_functional":
        return None
    names = [argument.name for argument in node.target._schema.arguments]
    return _collective_kinds.note(name.partition(".")[0], {**dict(zip(names, node.args)), **node.kwargs}.get)


def _waits(node: Node) -> list[tuple[Node, int | None]]:
    """The operators that wait for a collective's results, one each; empty if the graph does not
    wait for all."""
    if _collective_kinds.form_of(node.target) is None:
        return []
    results: list[Any] = [node]
    if isinstance(example := node.meta.get("val"), (tuple, list)):
        parts = {user.args[1]: user for user in node.users if user.target is operator.getitem}
        results = [parts.get(i) for i in range(len(example))]
    waits = [_wait(result) for result in results if result is not None]
    found = [wait for wait in waits if wait is not None]
    return found if len(found) == len(results) else []


def _wait(result: Node) -> tuple[Node, int | None] | None:
    for user in result.users:
        if not _collective_kinds.is_wait(user.target):
            continue
        awaited = user.args[0]
        # One operator may wait for several.
        return user, list(awaited).index(result) if isinstance(awaited, (tuple, list)) else None
    return None


def reason_of(target: str) -> str | None:
    """Why an operator's results cannot be observed, regardless of their values."""
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
