"""How long the memory of a graph's values keeps its content.

AOT autograd makes graphs functional: what an operator gives is not written to while anybody holds it, unless

* it shares memory with what the caller knows: arguments and results of the graph, which the caller may write to
  once the graph has run;
* or an operator in the graph writes to that memory all the same, as the last ones do that update buffers.

Values that share memory have examples that share memory, which is how this is found out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.multiprocessing.reductions import StorageWeakRef

HELD = "held"
RUN = "run"
OPERATOR = "operator"

_SAVED = "SavedForBackwardsAOTOutput"


class Exposure:
    """Memory that the caller of a forward graph knows, for the backward graph that is compiled later."""

    def __init__(self) -> None:
        self.storages: set[int] | None = None
        # What the arguments of the forward graph are called in the program.
        self.sources: list[str] = []
        # Numbers of storages are addresses: nothing else gets them while these are there.
        self._kept: list[Any] = []

    def learn(self, storages: set[int], examples: list[Any]) -> None:
        """Remembers what the forward graph's caller knows."""
        self.storages = set(storages)
        self._kept = examples


class Storages:
    """Which values of one graph share memory with what."""

    def __init__(self, gm: GraphModule, phase: str, exposure: Exposure) -> None:
        self.written: set[int] = set()
        self.exposed: set[int] = set()
        examples: list[Any] = []
        for node in gm.graph.nodes:
            example = node.meta.get("val")
            if node.op == "placeholder":
                self.exposed |= set(self._known_to_caller(example, phase, exposure, node.name))
                examples.append(example)
            elif node.op == "get_attr":
                self.exposed |= set(_numbers(example))
            elif node.op == "call_function":
                for argument in _written_arguments(node):
                    self.written |= set(_numbers(argument.meta.get("val")))
            elif node.op == "output":
                for result in _exposed_results(node):
                    self.exposed |= set(_numbers(result.meta.get("val")))
                    examples.append(result.meta.get("val"))
        if phase == "forward":
            exposure.learn(self.exposed, examples)

    @staticmethod
    def _known_to_caller(example: Any, phase: str, exposure: Exposure, name: str) -> Iterator[int]:
        """Of an argument; what a forward graph has saved only its backward graph knows."""
        is_saved = phase == "backward" and exposure.storages is not None and not name.startswith("tangents")
        for number in _numbers(example):
            if not is_saved or number in (exposure.storages or ()):
                yield number

    def stability(self, example: torch.Tensor | None) -> str:
        """`held`, `run` or `operator`; the last one if nothing is known."""
        numbers = list(_numbers(example))
        if not numbers or any(number in self.written for number in numbers):
            return OPERATOR
        return RUN if any(number in self.exposed for number in numbers) else HELD


def _numbers(example: Any) -> Iterator[int]:
    """The storages of an example, by number."""
    if isinstance(example, (tuple, list)):
        for part in example:
            yield from _numbers(part)
    elif isinstance(example, torch.Tensor) and example.layout is torch.strided:
        try:
            yield StorageWeakRef(example.untyped_storage()).cdata
        except (NotImplementedError, RuntimeError):
            return


def _written_arguments(node: Node) -> list[Node]:
    """Arguments that an operator writes to."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        # A function with a graph or a kernel inside says it in its name.
        if "mutation" in str(getattr(node.target, "__name__", node.target)):
            return list(node.all_input_nodes)
        return []
    written: list[Node] = []
    for i, argument in enumerate(schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
        torch.fx.node.map_arg(given, written.append)
    return written


def _exposed_results(node: Node) -> Iterator[Node]:
    """Results of a graph that its caller hands on: not those that are saved for the backward graph."""
    results = node.args[0]
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    descriptions = node.meta.get("desc")
    if not isinstance(descriptions, (tuple, list)) or len(descriptions) != len(results):
        descriptions = [None] * len(results)
    for result, description in zip(results, descriptions):
        if isinstance(result, Node) and type(description).__name__ != _SAVED:
            yield result
