"""Graphs with calls in them that show what operators give."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch.fx import GraphModule

from ._graph import Described

try:
    from torch.fx.graph import _BoxedCodeGen
except ImportError:  # Before torch 2.9.
    _BoxedCodeGen = None

# A function that is called with a list of arguments, which it empties.
Boxed = Callable[[list], Any]


def resolved(result: Any) -> Any:
    """The same tensors, with elements in memory that are what they stand for."""
    if isinstance(result, (tuple, list)):
        return [resolved(part) for part in result]
    if isinstance(result, torch.Tensor):
        return result.resolve_conj().resolve_neg()
    return result


def plain(gm: GraphModule) -> Boxed:
    """The graph as it is."""
    return boxed(gm, copy.deepcopy(gm.graph))


def tapped(gm: GraphModule, described: Described, tapped: list[int], wanted: list[int]) -> Boxed:
    """The graph with a call after each operator in `tapped`, and one that shows `wanted` values that no operator
    gives. Its first argument is the run that the calls go to.
    """
    graph = copy.deepcopy(gm.graph)
    # A copy has the same nodes in the same order.
    ours = dict(zip(gm.graph.nodes, graph.nodes))
    first = next(iter(graph.nodes))
    with graph.inserting_before(first):
        run = graph.placeholder("opscope_run")
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    given = []
    for number in wanted:
        value = described.values[number]
        if value.node is None or value.node.op == "call_function":
            continue
        if value.node.op == "placeholder" and value.name == value.node.name:
            given.append(number)
        else:
            _give(graph, run, [number], described, ours, after=ours[value.node])
    if given:
        _give(graph, run, given, described, ours, after=arguments[-1])
    for number in tapped:
        operator = described.operators[number]
        node = ours[operator.node]
        outputs = [output for output in operator.outputs if output is not None]
        is_lazy = any(described.values[output].is_lazy for output in outputs)
        with graph.inserting_after(node):
            result = graph.call_function(resolved, (node,)) if is_lazy else node
        with graph.inserting_after(result):
            graph.call_method("tap", (run, number, result))
    return boxed(gm, graph)


def _give(graph: Any, run: Any, numbers: list[int], described: Described, ours: dict, *, after: Any) -> None:
    tensors: list[Any] = []
    for number in numbers:
        value = described.values[number]
        node = ours[value.node]
        if value.is_lazy:
            with graph.inserting_after(after):
                after = node = graph.call_function(resolved, (node,))
        tensors.append(node)
    with graph.inserting_after(after):
        graph.call_method("give", (run, tuple(numbers), tuple(tensors)))


def boxed(gm: GraphModule, graph: Any) -> Boxed:
    """The code of a graph of `gm`, called with a list of arguments, which it empties."""
    if _BoxedCodeGen is not None:
        graph.set_codegen(_BoxedCodeGen())
        return GraphModule(gm, graph).forward
    forward = GraphModule(gm, graph).forward

    def call(arguments: list) -> Any:
        taken = tuple(arguments)
        arguments.clear()
        return forward(*taken)

    call.graph_code = forward.__code__  # type: ignore[attr-defined]
    return call


def code_of(call: Boxed) -> CodeType:
    """The code that stands in tracebacks for a graph."""
    return getattr(call, "graph_code", None) or call.__code__
