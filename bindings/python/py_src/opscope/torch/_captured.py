"""The dump of the modes with captured graphs: a `.pt` file for each tensor of a graph.

    {path}/worldsize{N}_global_rank{R}/{node}_device_{device}_{count}.pt

`count` is how often this process wrote a file of that name before, so it goes on where graphs have nodes of the same
name.
"""

from __future__ import annotations

import os
import re
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .._world import rank_name, world
from ._files import Files, PathCounts
from ._interpreted import Boxed, Quiet, boxed, copied

_counts = PathCounts()
# Characters that cannot be in a node's name, which is a Python name; others could form a path.
_NOT_IN_NAMES = re.compile(r"[^0-9A-Za-z_]")


class Captured:
    """One backend's dump in this form."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._files: Files | None = None
        self._directory = ""

    def compiled(self, gm: GraphModule) -> Boxed:
        """Compiles the graph so that each tensor gets a file; later changes of `gm` have no effect.
        """
        mine = copied(gm)
        return boxed(lambda: _Saver(mine, self))

    def save(self, node: Node, tensor: torch.Tensor) -> None:
        """Writes a node's output."""
        if self._files is None:
            # Only now do the processes know each other.
            self._directory = os.path.join(self.path, rank_name(world()))
            self._files = Files(self.path)
        stem = os.path.join(self._directory, f"{_NOT_IN_NAMES.sub('_', node.name)}_device_{device_number(tensor)}")
        self._files.save_pt(f"{stem}_{_counts.next(stem)}.pt", tensor)

    def report(self) -> dict[str, Any]:
        """The counts so far."""
        return {} if self._files is None else {"root": self._directory, **self._files.report()}


class _Saver(Quiet):
    def __init__(self, gm: GraphModule, captured: Captured) -> None:
        super().__init__(gm)
        self._captured = captured

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if n.op != "output" and isinstance(result, torch.Tensor):
            self._captured.save(n, result)
        return result


def device_number(tensor: torch.Tensor) -> int:
    """Device number, 0 for the CPU."""
    return tensor.device.index or 0


def save_counted(path: str, tensor: torch.Tensor) -> None:
    """Writes a tensor to a numbered file: `x.pt` becomes `x_device_0_0.pt`, then `x_device_0_1.pt`.

    For names that end in `.bin`, writes the raw bytes. Never raises.
    """
    stem, kind = os.path.splitext(os.path.abspath(path))
    stem = f"{stem}_device_{device_number(tensor)}"
    files = Files(os.path.dirname(stem))
    name = f"{stem}_{_counts.next(stem)}{kind}"
    if kind == ".bin":
        files.save_bin(name, tensor)
    else:
        files.save_pt(name, tensor)
