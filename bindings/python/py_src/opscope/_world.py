"""The processes of a distributed run, whose dumps have separate directories.

Importing this module does not import torch.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from opscope._warning import warn


class World(NamedTuple):
    """The number of processes, and this one's rank."""

    size: int = 1
    rank: int = 0


def is_initialised() -> bool:
    """Whether processes are connected by `torch.distributed`."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    return distributed is not None and distributed.is_available() and distributed.is_initialized()


def world() -> World:
    """From `torch.distributed` if initialised, otherwise from `WORLD_SIZE` and `RANK`, otherwise
    one process.

    Does not import torch: a program that initialised it has imported it.
    """
    if is_initialised():
        distributed = sys.modules["torch"].distributed
        size = int(distributed.get_world_size())
        return World(size, int(distributed.get_rank())) if size > 1 else World()
    return _world_of(os.environ.get("WORLD_SIZE"), os.environ.get("RANK"))


def _world_of(size_text: str | None, rank_text: str | None) -> World:
    if size_text is None or rank_text is None:
        return World()
    size, rank = _decimal(size_text), _decimal(rank_text)
    if size is None or rank is None or rank >= size:
        warn(
            f"the variables WORLD_SIZE=`{size_text}` and RANK=`{rank_text}` are not a number of processes and a rank "
            "among them: assuming a single process"
        )
        return World()
    return World(size, rank)


def _decimal(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def rank_name(of: World) -> str:
    """The directory name of one process."""
    return f"worldsize{of.size}_global_rank{of.rank}"
