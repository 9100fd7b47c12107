"""Graphs inside operators: the branches of `cond`, what `while_loop` and `scan` repeat.

Operators inside have taps as well. The run that they show their results to is that of the graph around them, which is
found by thread: torch calls a body with its operands and nothing else.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

# Operators that run a body any number of times, or may.
_LOOPS = {"while_loop", "while_loop_stack_output", "scan", "map", "map_impl"}
# Operators that run their bodies on what functorch has batched, with no memory of their own.
_BATCHED = {"flex_attention", "flex_attention_backward", "associative_scan"}


def name_of(node: Node) -> str:
    """The name of an operator that may have bodies."""
    return str(getattr(node.target, "__name__", node.target))


def held(gm: GraphModule, node: Node) -> Iterator[tuple[Node, GraphModule]]:
    """The bodies of an operator, with the nodes that stand for them."""
    for source in node.all_input_nodes:
        if source.op == "get_attr" and isinstance(body := attribute(gm, str(source.target)), GraphModule):
            yield source, body


def attribute(module: Any, path: str) -> Any:
    """Returns the attribute that a node of the kind `get_attr` stands for."""
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


def is_loop(node: Node) -> bool:
    """Whether the operator repeats its bodies."""
    return name_of(node) in _LOOPS


def reason_of(node: Node) -> str | None:
    """Why what happens inside an operator is not to be looked at."""
    name = name_of(node)
    return f"inside {name}" if name in _BATCHED else None


def n_dry_runs(node: Node) -> int:
    """How often the operator runs its body before the first iteration, to learn shapes."""
    return _n_dry_runs_of_scan() if name_of(node) == "scan" else 0


@functools.lru_cache(maxsize=None)
def _n_dry_runs_of_scan() -> int:
    """Depends on torch's version, so a scan of one element tells."""
    n_calls = 0

    def body(carry: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
        nonlocal n_calls
        n_calls += 1
        return [carry + x, carry * x]

    try:
        from torch._higher_order_ops.scan import generic_scan

        with _disable_current_modes(), torch.no_grad():
            generic_scan(body, [torch.zeros(1)], [torch.zeros(1, 1)])
    except Exception:
        # A torch whose scan is written otherwise: what it runs is shown as it comes.
        return 0
    return max(n_calls - 1, 0)


class _Current(threading.local):
    # Nothing is shown where no run is.
    run: Any = None


_current = _Current()


class _Nobody:
    """Stands for a run where operators are none of the model's."""

    def tap(self, operator: int, result: Any) -> None:
        """Drops it."""

    def give(self, values: tuple, tensors: tuple) -> None:
        """Drops them."""


_nobody = _Nobody()


def exchange(run: Any) -> Any:
    """Lets bodies find a run in this thread; gives the one before."""
    before = _current.run
    _current.run = run
    return before


def enter(body: int) -> Any:
    """Returns the object that a body shows its results to. Called when the body begins."""
    run = _current.run
    return run if run is not None and run.enter(body) else _nobody
