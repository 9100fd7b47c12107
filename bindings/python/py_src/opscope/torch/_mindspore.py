"""A graph in MindSpore's words: full names with scopes, parameters by the names that the program gives them."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from . import _names
from ._graph import Described, Operator, Value
from ._origin import Origin, argument

# The attribute by which an operator asks to be dumped under `dump_mode` 2.
MARK = "dump"
_SCOPES = {"backward": "Gradients/Default"}
_SCOPE = "Default"
_NO_KIND = re.compile(r"\W")
_NO_NAME = re.compile(r"[\s/\\\x00-\x1f]")


def rename(described: Described, phase: str, origin: Origin) -> Described:
    """The same graph: operators are called `Default/up-Linear/Addmm-op0`, arguments as in the program."""
    operators = _operators(described, phase, origin)
    produced = {}
    for one in operators:
        for slot, number in enumerate(one.outputs):
            if number is not None:
                produced.setdefault(number, f"{one.op_name}.{slot}")
    taken: set[str] = set()
    values = []
    for number, value in enumerate(described.values):
        name = produced.get(number) or _value_name(value, origin)
        # What is no input and no result is a weight.
        is_input = value.is_input and not _is_weight(value, origin)
        values.append(replace(value, name=_unique(name, taken), is_input=is_input))
    if phase == "forward":
        pairs = zip(described.values, values)
        origin.results = {node: renamed.name for own, renamed in pairs for node in _nodes(own)}
    return replace(described, values=values, operators=operators)


def _nodes(value: Value) -> Iterator[str]:
    """Names of the nodes that are the value of an operator."""
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
    for one in described.operators:
        kind = _kind(one)
        path = "/".join([_SCOPES.get(phase, _SCOPE), *_scope(one, origin), kind])
        n = n_of.get(path, 0)
        n_of[path] = n + 1
        attributes = list(one.attributes)
        if (is_marked := _flag(one, origin)) is not None:
            attributes.append((MARK, "true" if is_marked else "false"))
        attributes.append(("node", one.op_name))
        operators.append(replace(one, op_type=kind, op_name=f"{path}-op{n}", attributes=attributes))
    return operators


def _kind(one: Operator) -> str:
    base = _names.base_name(one.op_type)
    return _names.alias_base(_NO_KIND.sub("_", base)) or "Operator"


def _stack(one: Operator) -> dict[str, tuple[str, Any]]:
    meta = one.node.meta if one.node is not None else {}
    return meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack") or {}


def _scope(one: Operator, origin: Origin) -> list[str]:
    """For each module on the way its name in the one before and its class."""
    scope: list[str] = []
    above: list[str] = []
    for path, kind in _stack(one).values():
        parts = origin.parts(path)
        own = parts[len(above) :] if parts[: len(above)] == above else parts
        above = parts
        if own:
            name = getattr(kind, "__name__", str(kind).rsplit(".", 1)[-1])
            own = [*own[:-1], f"{own[-1]}-{name}"]
            scope += [_NO_NAME.sub("_", part) for part in own]
    return scope


def _flag(one: Operator, origin: Origin) -> bool | None:
    """What `set_dump` says of an operator: of itself, else of the innermost module that it says anything of."""
    flags = origin.flags
    target = _names.target_name(one.node.target) if one.node is not None else one.op_type
    for name in (target, target.rsplit(".", 1)[0]):
        if name in flags.operators:
            return flags.operators[name]
    for key in reversed(list(_stack(one))):
        number = origin.module_number(key)
        if number in flags.modules:
            return flags.modules[number]
    return flags.modules.get(id(origin.root)) if origin.root is not None else None


def _argument(value: Value, origin: Origin) -> int | None:
    is_argument = value.node is not None and value.node.op == "placeholder"
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
    """The name, or the first that begins like it and is free."""
    found, n = name, 1
    while found in taken:
        found, n = f"{name}_{n}", n + 1
    taken.add(found)
    return found


def constants(described: Described) -> list[int]:
    """Values that are written into the graph."""
    values = enumerate(described.values)
    return [number for number, value in values if value.node is not None and value.node.op == "get_attr"]


def types(described: Described) -> list[tuple[int, str, list[int]]]:
    """Dtype and extents of values as torch knows them before the graph runs; -1 for an extent that varies."""
    found = []
    for number, value in enumerate(described.values):
        example = _example(value)
        if isinstance(example, torch.Tensor):
            dims = [extent if isinstance(extent, int) else -1 for extent in example.shape]
            found.append((number, str(example.dtype), dims))
    return found


def _example(value: Value) -> Any:
    """The example of the value, of which a node may have several."""
    if value.node is None:
        return None
    example = value.node.meta.get("val")
    for index in value.name.removeprefix(value.node.name).split(".")[1:]:
        example = example[int(index)] if isinstance(example, (tuple, list)) else None
    return example
