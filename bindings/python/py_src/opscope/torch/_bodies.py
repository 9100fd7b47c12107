"""Graphs inside operators: the branches of `cond`, and the bodies of `while_loop` and `scan`.

Operators inside have taps as well. They report to the run of the enclosing graph, which is found by
thread, because torch calls a body with its operands only.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

# Operators that may run a body any number of times.
_LOOPS = {"while_loop", "while_loop_stack_output", "scan", "map", "map_impl"}
# Operators that run their bodies on functorch's batched tensors, which have no memory of their own
# to read.
_BATCHED = {"flex_attention", "flex_attention_backward", "associative_scan"}


def name_of(node: Node) -> str:
    """The name of an operator that may have bodies."""
    return str(getattr(node.target, "__name__", node.target))


def held(gm: GraphModule, node: Node) -> Iterator[tuple[Node, GraphModule]]:
    """The bodies of an operator, with the nodes that refer to them."""
    for source in node.all_input_nodes:
        if source.op == "get_attr" and isinstance(body := attribute(gm, str(source.target)), GraphModule):
            yield source, body


def attribute(module: Any, path: str) -> Any:
    """Returns the attribute of a `get_attr` node."""
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


def is_loop(node: Node) -> bool:
    """Whether the operator repeats its bodies."""
    return name_of(node) in _LOOPS


def reason_of(node: Node) -> str | None:
    """Why the contents of an operator cannot be observed."""
    name = name_of(node)
    is_hidden = name in _BATCHED or (name in _PROBES and not _is_run_on_values(name))
    return f"inside {name}" if is_hidden else None


@functools.lru_cache(maxsize=None)
def _is_run_on_values(name: str) -> bool:
    """Whether torch calls the body of `cond` or `map` with the tensors of the program.

    PyTorch 2.6 traces the body with memory that nobody has written, and runs the trace. Measured by
    an operator of one element, as a parameter.
    """
    seen = []

    def body(x: torch.Tensor) -> list[torch.Tensor]:
        seen.append(x.detach())
        return [x + 1]

    try:
        with _disable_current_modes(), torch.no_grad():
            _PROBES[name](body, torch.full((1, 1), 5.0, requires_grad=True))
            return bool(seen) and all(type(x) is torch.Tensor and x.item() == 5.0 for x in seen)
    except Exception:
        return False


def _run_cond(body: Callable[..., Any], x: torch.Tensor) -> None:
    from torch._higher_order_ops.cond import cond_op

    cond_op(torch.tensor(True), body, body, (x,))


def _run_map(body: Callable[..., Any], x: torch.Tensor) -> None:
    from torch._higher_order_ops.map import map_impl

    map_impl(body, [x], [])


# Runs an operator with a body and a tensor.
_PROBES = {"cond": _run_cond, "map_impl": _run_map}


def n_dry_runs(node: Node) -> int:
    """How many times the operator runs its body before the first iteration, to infer shapes."""
    return _n_dry_runs_of_scan() if name_of(node) == "scan" else 0


@functools.lru_cache(maxsize=None)
def _n_dry_runs_of_scan() -> int:
    """Depends on torch's version, so it is measured by a scan of one element."""
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
        # If torch's scan is written differently, everything it runs is shown.
        return 0
    return max(n_calls - 1, 0)


class _Current(threading.local):
    # Without a run nothing is shown.
    run: Any = None


_current = _Current()


class _Nobody:
    """Replaces a run for operators that do not belong to the model."""

    def tap(self, operator: int, result: Any) -> None:
        """Ignores the value."""

    def give(self, values: tuple, tensors: tuple) -> None:
        """Ignores the values."""


_nobody = _Nobody()


def exchange(run: Any) -> Any:
    """Sets the run for bodies in this thread; returns the previous one."""
    before = _current.run
    _current.run = run
    return before


def enter(body: int) -> Any:
    """Returns the object to which a body reports. Called when the body begins."""
    run = _current.run
    return run if run is not None and run.enter(body) else _nobody
