"""The dump of `debug.data_dump`: inputs and outputs of an FX graph's operators as `.npy` files.

    {path}/worldsize{N}_global_rank{R}/graph_{number}/{step}/{node}-{target}.{INPUT|OUTPUT}.{position}.{timestamp}.npy
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.nn import Module

from opscope._fork_lock import ForkLock
from opscope._world import world
from opscope.torch._files import Files
from opscope.torch._interpreted import Boxed, Quiet, boxed, copied
from opscope.torch._names import target_name
from opscope.torch._printing import is_ours
from opscope.torchair import _layout

Filter = Callable[[Any], Any]


class FxDump:
    """One backend's dump in this form."""

    def __init__(self, path: str, keeps: Filter | None) -> None:
        self.path = path
        self._keeps = keeps
        self._files: Files | None = None
        self._lock = ForkLock()

    def compiled(self, gm: GraphModule, name: str) -> Boxed:
        """The graph, run so that its operators are dumped."""
        mine = copied(gm)
        # Evaluated here, so that errors occur before the model runs.
        dumped = {node.name for node in gm.graph.nodes if is_operator(node) and self._is_kept(node)}
        steps = itertools.count()
        return boxed(lambda: _Dumper(mine, dumped, *self._opened(name, next(steps))))

    def report(self) -> dict[str, Any]:
        """The counts so far."""
        return {} if self._files is None else {"root": self.path, **self._files.report()}

    def _is_kept(self, node: Node) -> bool:
        return self._keeps is None or self._keeps(node) is not None

    def _opened(self, name: str, step: int) -> tuple[str, Files]:
        with self._lock:
            if self._files is None:
                self._files = Files(self.path)
        return _layout.fx_directory(self.path, world(), name, step), self._files


def is_operator(node: Node) -> bool:
    """Whether a node is one of PyTorch's operators, rather than an argument or a tuple element."""
    kinds = (torch._ops.OpOverload, torch._ops.HigherOrderOperator)
    return node.op == "call_function" and isinstance(node.target, kinds) and not is_ours(node.target)


class _Dumper(Quiet):
    def __init__(self, gm: GraphModule, dumped: set[str], directory: str, files: Files) -> None:
        super().__init__(gm)
        self._dumped = dumped
        self._directory = directory
        self._files = files

    def run_node(self, n: Node) -> Any:
        if n.name not in self._dumped:
            return super().run_node(n)
        stamp = _layout.timestamp_now()
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        # Saved before the call, which may write to its inputs.
        self._save(n, "INPUT", _inputs(args, kwargs), stamp)
        result = super().run_node(n)
        self._save(n, "OUTPUT", _parts(result if isinstance(result, (tuple, list)) else (result,)), stamp)
        return result

    def _save(self, node: Node, side: str, values: Iterator[tuple[str, Any]], stamp: str) -> None:
        target = target_name(node.target)
        for position, value in values:
            file = _layout.fx_file(node.name, target, side, position, stamp)
            self._files.save_npy(os.path.join(self._directory, file), value)


def _inputs(args: tuple, kwargs: dict) -> Iterator[tuple[str, Any]]:
    """Arguments with positions or names; for lists of tensors, each tensor."""
    yield from _parts(args)
    for name, value in kwargs.items():
        yield from _named(name, value)


def _parts(values: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    for i, value in enumerate(values):
        yield from _named(f"{above}{i}", value)


def _named(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Module):
        # A nested graph is not a value.
        return
    if isinstance(value, (tuple, list)) and _has_tensor(value):
        yield from _parts(value, f"{name}.")
    else:
        yield name, value


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_has_tensor(part) for part in value)
    return isinstance(value, torch.Tensor)
