"""How long the memory of a graph's values keeps its content.

AOT autograd makes graphs functional: what an operator gives is not written to while anybody holds it, unless

* it shares memory with what the caller knows: arguments and results of the graph, which the caller may write to
  once the graph has run;
* or an operator in the graph writes to that memory all the same, as the last ones do that update buffers;
* or somebody else can get at the tensor and take its memory away (`untyped_storage().resize_(0)`, `set_`,
  `tensor.data = …`): the program, for what it gives, what it is given, and what is saved for the backward graph, which
  hooks of autograd and `grad_fn.saved_tensors` hand out; and operators that are not torch's own, which may keep a tensor
  that they were called with.

Only what none of these is true of is `held`: written later from where it lies. Everything else is copied at once.

Values that share memory have examples that share memory, which is how this is found out.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.multiprocessing.reductions import StorageWeakRef

from . import _names

# Namespaces whose operators retain none of their arguments.
_KEEPING_NOTHING = ("aten.", "prims.", "prim.", "inductor_prims.")

HELD = "held"
RUN = "run"
OPERATOR = "operator"


class Exposure:
    """Values that a forward graph shares with its backward graph."""

    def __init__(self) -> None:
        # The program's names of the forward graph's arguments.
        self.sources: list[str] = []


class Storages:
    """Memory shared by a graph's values."""

    def __init__(self, gm: GraphModule) -> None:
        self.written: set[int] = set()
        self.exposed: set[int] = set()
        for node in gm.graph.nodes:
            example = node.meta.get("val")
            if node.op in ("placeholder", "get_attr"):
                self.exposed |= set(_numbers(example))
            elif node.op == "output":
                for result in node.all_input_nodes:
                    self.exposed |= set(_numbers(result.meta.get("val")))
            elif node.op == "call_function":
                for argument in _written_arguments(node):
                    self.written |= set(_numbers(argument.meta.get("val")))
                if not _is_letting_go(node.target):
                    for known in (node, *node.all_input_nodes):
                        self.exposed |= set(_numbers(known.meta.get("val")))

    def stability(self, example: torch.Tensor | None) -> str:
        """`held`, `run` or `operator`; the last one if unknown."""
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


def _is_letting_go(target: Any) -> bool:
    """Whether an operator retains none of its arguments."""
    return target is operator.getitem or _names.target_name(target).startswith(_KEEPING_NOTHING)
