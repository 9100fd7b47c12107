"""A graph in MindSpore's terms: full names with scopes, and parameters by the program's names."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from ..mindspore._flags import Flags
from . import _names
from ._graph import Described, Operator, Value
from ._origin import Origin, argument

# The attribute that requests an operator's dump under `dump_mode` 2.
MARK = "dump"
_SCOPES = {"backward": "Gradients/Default"}
_SCOPE = "Default"
_NO_KIND = re.compile(r"\W")
_NO_NAME = re.compile(r"[\s/\\\x00-\x1f]")


def rename(described: Described, phase: str, origin: Origin) -> Described:
    """The same graph with operator names such as `Default/up-Linear/Addmm-op0`, and arguments named
    as in the program."""
    operators = _operators(described, phase, origin)
    produced = {}
    for op in operators:
        for slot, number in enumerate(op.outputs):
            if number is not None:
                produced.setdefault(number, f"{op.op_name}.{slot}")
    taken: set[str] = set()
    values = []
    for number, value in enumerate(described.values):
        name = produced.get(number) or _value_name(value, origin)
        # A value that is neither an input nor a result is a weight.
        is_input = value.is_input and not _is_weight(value, origin)
        values.append(replace(value, name=_unique(name, taken), is_input=is_input))
    if phase == "forward":
        pairs = zip(described.values, values)
        origin.results = {node: renamed.name for own, renamed in pairs for node in _nodes(own)}
    return replace(described, values=values, operators=operators)


def _nodes(value: Value) -> Iterator[str]:
    """Names of the nodes whose value is an operator's."""
    if value.node is None or value.node.op != "call_function":
        return
    if value.name == value.node.name:
        yield value.name
    for user in value.node.users:
        if user.target is operator.getitem and value.name == f"{value.node.name}.{user.args[1]}":
            yield user.name


def _operators(described: Described, phase: str, origin: Origin) -> list[Operator]:
    n_of: dict[str, int] = {}
    operators = []
    for op in described.operators:
        kind = _kind(op)
        path = "/".join([_SCOPES.get(phase, _SCOPE), *_scope(op, origin), kind])
        n = n_of.get(path, 0)
        n_of[path] = n + 1
        attributes = list(op.attributes)
        if (is_marked := _flag(op, origin)) is not None:
            attributes.append((MARK, "true" if is_marked else "false"))
        attributes.append(("node", op.op_name))
        named = {"op_type": kind, "op_name": f"{path}-op{n}", "attributes": attributes}
        operators.append(replace(op, **named, default_attributes=_defaults(op)))
    return operators


def _defaults(op: Operator) -> list[tuple[str, str]]:
    """Schema arguments that the graph omits, named like the given ones."""
    schema = getattr(op.node.target, "_schema", None) if op.node is not None else None
    if schema is None:
        return []
    given = len(op.node.args)
    found = []
    for position, argument in enumerate(schema.arguments):
        is_given = position < given or argument.name in op.node.kwargs
        if is_given or not argument.has_default_value():
            continue
        name = argument.name if argument.kwarg_only else str(position)
        found.append((f"argument.{name}", repr(argument.default_value)))
    return found


def _kind(op: Operator) -> str:
    base = _names.base_name(op.op_type)
    return _names.alias_base(_NO_KIND.sub("_", base)) or "Operator"


def _stack(op: Operator) -> dict[str, tuple[str, Any]]:
    meta = op.node.meta if op.node is not None else {}
    return meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack") or {}


def _scope(op: Operator, origin: Origin) -> list[str]:
    """For each enclosing module, its name in its parent and its class."""
    scope: list[str] = []
    above: list[str] = []
    for path, kind in _stack(op).values():
        parts = origin.parts(path)
        own = parts[len(above) :] if parts[: len(above)] == above else parts
        above = parts
        if own:
            name = getattr(kind, "__name__", str(kind).rsplit(".", 1)[-1])
            own = [*own[:-1], f"{own[-1]}-{name}"]
            scope += [_NO_NAME.sub("_", part) for part in own]
    return scope


def _flag(op: Operator, origin: Origin) -> bool | None:
    """The flag that `set_dump` set for an operator: its own, or that of the innermost flagged
    module."""
    flags = origin.flags
    target = _names.target_name(op.node.target) if op.node is not None else op.op_type
    for name in (target, target.rsplit(".", 1)[0]):
        if name in flags.operators:
            return flags.operators[name]
    for key in reversed(list(_stack(op))):
        number = origin.module_number(key)
        if number in flags.modules:
            return flags.modules[number]
    return flags.modules.get(id(origin.root)) if origin.root is not None else None


def _argument(value: Value, origin: Origin) -> int | None:
    # Inputs of a body have the body's own names.
    is_argument = value.node is not None and value.node.op == "placeholder" and value.body is None
    return argument(origin, value.node) if is_argument else None


def _value_name(value: Value, origin: Origin) -> str:
    position = _argument(value, origin)
    if position is None:
        is_saved = value.node is not None and value.node.op == "placeholder"
        return origin.results.get(value.name, value.name) if is_saved else value.name
    return origin.arguments[position] + value.name.removeprefix(value.node.name)


def _is_weight(value: Value, origin: Origin) -> bool:
    return _argument(value, origin) in origin.weights


def _unique(name: str, taken: set[str]) -> str:
    """The name, or the first free one that begins with it."""
    found, n = name, 1
    while found in taken:
        found, n = f"{name}_{n}", n + 1
    taken.add(found)
    return found


def constants(described: Described) -> list[int]:
    """Constant values of the graph."""
    values = enumerate(described.values)
    return [number for number, value in values if value.node is not None and value.node.op == "get_attr"]


class Marks:
    """Modules and operators marked by `set_dump`, and whether any graph contains them."""

    def __init__(self) -> None:
        self._modules: set[int] = set()
        self._operators: set[str] = set()
        self._flags: Flags | None = None

    def see(self, described: Described, origin: Origin) -> None:
        """Records the contents of a graph whose operators are selected by marks."""
        self._flags = origin.flags
        self._modules.add(id(origin.root))
        for op in described.operators:
            target = _names.target_name(op.node.target) if op.node is not None else op.op_type
            self._operators |= {target, target.rsplit(".", 1)[0]}
            self._modules |= {number for key in _stack(op) if (number := origin.module_number(key)) is not None}

    def complaints(self) -> Iterator[str]:
        """Marked names that no graph contains, each with similar names."""
        if self._flags is None:
            return
        operators = [name for name, is_on in self._flags.operators.items() if is_on]
        if not operators and not self._flags.roots:
            yield "`dump_mode` 2 dumps what `set_dump` marks, but nothing is marked"
        for name in operators:
            if name not in self._operators:
                near = difflib.get_close_matches(name, sorted(self._operators), 3)
                hint = f"; similar names: {', '.join(near)}" if near else ""
                yield f"set_dump: no graph has the operator {name}{hint}"
        for kind, inside in self._flags.roots:
            if not inside & self._modules:
                yield f"set_dump: no graph has anything of the module of the type {kind}"


def carried(described: Described) -> list[int]:
    """Values that an operator passes to its body."""
    values = enumerate(described.values)
    is_given = [(number, value.body is not None and value.node is not None) for number, value in values]
    return [number for number, found in is_given if found and described.values[number].node.op == "placeholder"]


def types(described: Described) -> list[tuple[int, str, list[int]]]:
    """Dtypes and shapes of values as known before the graph runs; -1 for a dynamic dimension."""
    found = []
    for number, value in enumerate(described.values):
        example = _example(value)
        if isinstance(example, torch.Tensor):
            dims = [extent if isinstance(extent, int) else -1 for extent in example.shape]
            found.append((number, str(example.dtype), dims))
    return found


def _example(value: Value) -> Any:
    """The value's example, of which a node may have several."""
    if value.node is None:
        return None
    example = value.node.meta.get("val")
    for index in value.name.removeprefix(value.node.name).split(".")[1:]:
        example = example[int(index)] if isinstance(example, (tuple, list)) else None
    return example
