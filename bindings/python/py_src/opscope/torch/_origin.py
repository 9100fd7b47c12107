"""A graph's origin: the compiled frame, its modules, and the names of its arguments there."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..mindspore._flags import Flags, snapshot

# One component of a source such as `L['self']._modules['up']._parameters['weight']`.
_PART = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\"|(\d+))\]|\.(\w+)")
_WEIGHTS = ("_parameters", "_buffers")
_INNER = ("_modules", *_WEIGHTS)
# Functions that run a module for `Module.__call__`.
_FRAMES = ("forward", "_call_impl", "_wrapped_call_impl", "__call__")
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
_NUMBERED = (re.compile(r"primals_(\d+)"), 1), (re.compile(r"arg(\d+)_1"), 0)


@dataclass
class Origin:
    """Facts about a `torch.compile` graph from outside the graph."""

    # The module whose `forward` was compiled, if any, and its name there.
    root: Any = None
    root_name: str = ""
    # Names of the arguments, in order; empty if unknown.
    arguments: list[str] = field(default_factory=list)
    # Positions of arguments that are parameters or buffers of modules.
    weights: set[int] = field(default_factory=set)
    # Whether the graphs made from it have the same arguments.
    has_plain_arguments: bool = False
    # Names of forward results, by their names as arguments of the backward graph.
    results: dict[str, str] = field(default_factory=dict)
    flags: Flags = field(default_factory=Flags)
    # The graph's own modules, by name.
    modules: dict[str, int] = field(default_factory=dict)

    def parts(self, source: str) -> list[str]:
        """A source as name components, without the compiled module."""
        found = source_parts(source)
        return found[1:] if self.root is not None and found[:1] == [self.root_name] else found

    def module_number(self, key: str) -> int | None:
        """The id of a module by its key in `nn_module_stack`."""
        name = key.split("@")[0]
        return int(name) if name.isdigit() else self.modules.get(name)


def of_graph(gm: GraphModule) -> Origin:
    """Collects torch's facts about `gm` during compilation, as far as available."""
    origin = Origin(flags=snapshot())
    origin.modules = {name.replace(".", "_"): id(module) for name, module in gm.named_modules() if name}
    origin.root_name, origin.root = _root()
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            source = _source(node)
            if any(f".{inner}[" in source for inner in _WEIGHTS):
                origin.weights.add(len(origin.arguments))
            origin.arguments.append(".".join(origin.parts(source)) or node.name)
    return origin


def source_parts(source: str) -> list[str]:
    """Name components of a source; empty if it is more than a path of names.
    
    >>> source_parts("L['m']._modules['0']._parameters['weight']"), source_parts("L['m'].tail[1]")
    (['m', '0', 'weight'], ['m', 'tail', '1'])
    >>> source_parts("___from_numpy(L['x'])")
    []
    """
    if source[:1] not in ("L", "G"):
        return []
    parts, end = [], 1
    while end < len(source):
        found = _PART.match(source, end)
        if found is None:
            return []
        parts.append(next(part for part in found.groups() if part is not None))
        end = found.end()
    return [part for part in parts if part not in _INNER]


def _root() -> tuple[str, Any]:
    """The module whose `forward` is being compiled, and its name there."""
    try:
        from torch._dynamo.symbolic_convert import InstructionTranslator

        frame = InstructionTranslator.current_tx()
        code = frame.f_code
        resumed = _RESUMED.fullmatch(code.co_name)
        name = resumed[1] if resumed else code.co_name
        if name not in _FRAMES:
            return "", None
        found = _module_of(code, frame.f_locals)
        return found or (resumed and _module_on_stack(code.co_filename, name)) or ("", None)
    except Exception:  # noqa: BLE001 - it is not torch's public interface; the name is worth no failure.
        return "", None


def _module_on_stack(file_name: str, name: str) -> tuple[str, Any] | None:
    """The module on the stack whose function torch split, by the continuation's name."""
    frame = sys._getframe()
    while frame is not None:
        if (frame.f_code.co_filename, frame.f_code.co_name) == (file_name, name):
            return _module_of(frame.f_code, frame.f_locals)
        frame = frame.f_back
    return None


def _module_of(code: CodeType, variables: Mapping[str, Any]) -> tuple[str, Any] | None:
    for name in code.co_varnames[: code.co_argcount]:
        value = variables.get(name)
        if isinstance(value, torch.nn.Module) and _own_name(value) in (name, None):
            return name, value
    return None


def _own_name(module: torch.nn.Module) -> str | None:
    """Returns a module's name for itself in its `forward`."""
    code = getattr(type(module).forward, "__code__", None)
    return code.co_varnames[0] if code is not None and code.co_argcount else None


def _source(node: Node) -> str:
    """The source of a `torch.compile` graph's argument."""
    source = getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", "")
    # A method before torch 2.10.
    return str(name() if callable(name) else name)


def argument(origin: Origin, node: Node) -> int | None:
    """The index of an AOT autograd argument among those of `torch.compile`'s graph; `None` if there
    is none."""
    position = _position(node)
    is_known = origin.has_plain_arguments and position is not None and position < len(origin.arguments)
    return position if is_known else None


def _position(node: Node) -> int | None:
    if (description := node.meta.get("desc")) is not None:
        found = getattr(description, "idx", None)
        return found if type(description).__name__ == "PlainAOTInput" and isinstance(found, int) else None
    for pattern, first in _NUMBERED:
        if found := pattern.fullmatch(node.name):
            return int(found[1]) - first
    return None


def note_arguments(origin: Origin, gm: GraphModule, phase: str) -> None:
    """Records whether a forward graph has the arguments that torch was asked to compile for."""
    if phase != "backward":
        nodes = [node for node in gm.graph.nodes if node.op == "placeholder"]
        numbers = {_position(node) for node in nodes} - {None}
        origin.has_plain_arguments = numbers == set(range(len(origin.arguments)))
