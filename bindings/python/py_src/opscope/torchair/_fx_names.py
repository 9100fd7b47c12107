"""Text forms of FX graph nodes: types of values, code, source lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import GraphModule, Node

_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in (.*)$')


class Symbols:
    """Names of dynamic dimensions: `s0`, `s1` and so on, in order of appearance."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._names: dict[Any, Any] = {}
        for node in nodes:
            for extent in _extents(node.meta.get("val")):
                self.text(extent)

    def text(self, extent: Any) -> str:
        """A dimension, perhaps as an expression."""
        expression = getattr(getattr(extent, "node", None), "expr", None)
        if expression is None:
            return str(extent)
        for symbol in sorted(expression.free_symbols, key=str):
            if symbol not in self._names:
                self._names[symbol] = type(symbol)(f"s{len(self._names)}", **symbol.assumptions0)
        return str(expression.xreplace(self._names))

    def value(self, value: Any) -> str:
        """`torch.float32[s0, 4]cpu` for a tensor, and similar for other values."""
        if isinstance(value, torch.Tensor):
            shape = ", ".join(self.text(extent) for extent in value.shape)
            return f"{value.dtype}[{shape}]{value.device}"
        if isinstance(value, (tuple, list)):
            return f"({', '.join(self.value(part) for part in value)})"
        return f"Sym({self.text(value)})" if isinstance(value, torch.SymInt) else type(value).__name__


def annotation(node: Node, symbols: Symbols) -> str:
    """Describes a node's result: type, shape and device."""
    return symbols.value(node.meta.get("val"))


def _extents(value: Any) -> Iterable[Any]:
    if isinstance(value, torch.Tensor):
        yield from value.shape
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _extents(part)
    elif isinstance(value, torch.SymInt):
        yield value


def source_comment(node: Node) -> str | None:
    """`# File "…", line n, in f  code` for a node's source line."""
    lines = (node.meta.get("stack_trace") or "").splitlines()
    for i in range(len(lines) - 1, -1, -1):
        if found := _FRAME.match(lines[i]):
            code = lines[i + 1].strip() if i + 1 < len(lines) else ""
            return f'# File "{found[1]}", line {found[2]}, in {found[3]}  {code}'.rstrip()
    return None


def graph_modules(gm: GraphModule) -> Iterable[tuple[str, GraphModule]]:
    """Graphs within a graph, by attribute name."""
    for node in gm.graph.nodes:
        child = getattr(gm, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(child, GraphModule):
            yield str(node.target), child
