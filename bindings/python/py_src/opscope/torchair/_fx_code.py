"""An FX graph as a readable program, with types of values and source lines as comments."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import _get_qualified_name

from opscope._argument import text as argument_text
from opscope.torch._names import target_name
from opscope.torchair._fx_names import Symbols, annotation, graph_modules, source_comment

_HEAD = """import operator
from math import inf, nan

import torch
from torch import device
"""
_WRITTEN_AS_THEY_ARE = (
    *(bool, int, float, complex, str, type(None)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
_CALLED = {operator.getitem: "operator.getitem"}


def code_of(gm: GraphModule, name: str) -> str:
    """The program: a class for the graph and for each graph within it, innermost first."""
    return _HEAD + "".join(f"\n\n{text}" for text in _classes(gm, name))


def _classes(gm: GraphModule, name: str) -> Iterator[str]:
    for attribute, child in graph_modules(gm):
        yield from _classes(child, f"{name}_{attribute}")
    yield "\n".join((f"class {name}(torch.nn.Module):", *_lines(gm))) + "\n"


def _lines(gm: GraphModule) -> Iterator[str]:
    nodes = list(gm.graph.nodes)
    symbols = Symbols(nodes)
    arguments = [node.name for node in nodes if node.op == "placeholder"]
    yield f"    def forward({', '.join(('self', *arguments))}):"
    seen: str | None = None
    for node in nodes:
        source = source_comment(node)
        if source is not None and source != seen and node.op == "call_function":
            seen = source
            yield f"        {source}"
        if node.op == "placeholder":
            yield f"        ## FX Code: {node.name}: {annotation(node, symbols)} = placeholder"
        elif node.op == "get_attr":
            yield f"        {node.name} = self.{node.target}"
        elif node.op == "output":
            yield f"        return {_argument(node.args[0])}"
        else:
            yield f"        ## FX Code: {node.name}: {annotation(node, symbols)} = {_call(node, symbols)}"
            yield f"        {node.name} = {_code(node)}"


def _call(node: Node, symbols: Symbols) -> str:
    given = [_annotated(argument, symbols) for argument in node.args]
    given += [f"{name}={_annotated(argument, symbols)}" for name, argument in node.kwargs.items()]
    return f"{target_name(node.target)}({', '.join(given)})"


def _annotated(argument: Any, symbols: Symbols) -> str:
    if isinstance(argument, Node):
        return f"{argument.name}: {annotation(argument, symbols)}"
    if isinstance(argument, (tuple, list)):
        return f"[{', '.join(_annotated(part, symbols) for part in argument)}]"
    return argument_text(argument)


def _code(node: Node) -> str:
    given = [_argument(argument) for argument in node.args]
    given += [f"{name}={_argument(argument)}" for name, argument in node.kwargs.items()]
    if node.op == "call_function":
        called = _CALLED.get(node.target) or _get_qualified_name(node.target)
    else:
        called = f"self.{node.target}"
    return f"{called}({', '.join(given)})"


def _argument(argument: Any) -> str:
    if isinstance(argument, Node):
        return argument.name
    if isinstance(argument, tuple):
        return f"({''.join(_argument(part) + ', ' for part in argument).rstrip()})"
    if isinstance(argument, list):
        return f"[{', '.join(_argument(part) for part in argument)}]"
    if isinstance(argument, slice):
        return f"slice({_argument(argument.start)}, {_argument(argument.stop)}, {_argument(argument.step)})"
    return repr(argument) if isinstance(argument, _WRITTEN_AS_THEY_ARE) else repr(argument_text(argument))
