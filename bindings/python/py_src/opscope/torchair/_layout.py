"""Names of the directories and files of a dump.

In graph mode, as TorchAir documents it:

    {dump_path}/worldsize{N}_global_rank{R}/{time}/{device}/{model}/{model_id}/{data_index}/

Functions here write nothing. Some ask the process or the clock: `world`, `time_now`, `timestamp_now`, and those that
put the process's id into a name.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime, timezone
from typing import NamedTuple

from opscope.torchair._warning import warn

# What TorchAir writes as an underscore in names of models and operators.
_REPLACED = str.maketrans({".": "_", "/": "_", "\\": "_", " ": "_"})
# Longest name of a file or directory that common file systems take, in bytes.
NAME_BYTES_MAX = 255


class World(NamedTuple):
    """The processes that run together, and which one of them this is."""

    size: int = 1
    rank: int = 0


def world() -> World:
    """Of `torch.distributed` if it is initialised, otherwise of `WORLD_SIZE` and `RANK`, otherwise one process.

    torch is not imported for it: who has initialised its processes has imported it.
    """
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        size = int(distributed.get_world_size())
        return World(size, int(distributed.get_rank())) if size > 1 else World()
    return _world_of(os.environ.get("WORLD_SIZE"), os.environ.get("RANK"))


def _world_of(size_text: str | None, rank_text: str | None) -> World:
    if size_text is None or rank_text is None:
        return World()
    size, rank = _decimal(size_text), _decimal(rank_text)
    if size is None or rank is None or rank >= size:
        warn(
            f"the variables WORLD_SIZE=`{size_text}` and RANK=`{rank_text}` are no number of processes and one of "
            "them: taken for a single process"
        )
        return World()
    return World(size, rank)


def _decimal(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def rank_name(of: World) -> str:
    """Name of the directory of one process."""
    return f"worldsize{of.size}_global_rank{of.rank}"


def rank_directory(dump_path: str, of: World) -> str:
    """Directory of one process."""
    return os.path.join(dump_path, rank_name(of))


def time_now() -> str:
    """Name of the directory of a dump that is configured now: local time, `YYYYMMDDHHMMSS`."""
    return time.strftime("%Y%m%d%H%M%S", time.localtime())


def timestamp_now() -> str:
    """What sets the files of one operator apart from those of another in `debug.data_dump`: 20 digits, UTC."""
    return datetime.now(tz=timezone.utc).strftime("%Y%m%d%H%M%S%f")


def graph_name(number: int) -> str:
    """Name of a compiled graph; numbers begin at 1 and are used once in a process."""
    return f"graph_{number}"


def sanitised(name: str) -> str:
    """A name that is one part of a path.

    Dots, slashes, backslashes and blanks become underscores, as in TorchAir, and so do control characters. An empty
    name becomes an underscore, and of too long a name the beginning is kept.
    """
    replaced = "".join(c if c.isprintable() else "_" for c in name.translate(_REPLACED)) or "_"
    encoded = replaced.encode("utf-8", "replace")
    return encoded[:NAME_BYTES_MAX].decode("utf-8", "ignore")


def data_directory(
    dump_path: str,
    of: World,
    time_name: str,
    device: int,
    model: str,
    model_id: int,
    data_index: int,
) -> str:
    """Directory of one step of one graph.

    `data_index` is the step if steps were chosen, otherwise the number of steps dumped before.
    """
    parts = (time_name, str(device), sanitised(model), str(model_id), str(data_index))
    return os.path.join(rank_directory(dump_path, of), *parts)


def fx_directory(path: str, of: World, graph: str, step: int) -> str:
    """Directory of one step of one graph of `debug.data_dump`."""
    return os.path.join(rank_directory(path, of), sanitised(graph), str(step))


def fx_file(node: str, target: str, side: str, position: str, timestamp: str) -> str:
    """Name of a file of `debug.data_dump`.

    `side` is `INPUT` or `OUTPUT`; `position` is a number, two numbers with a dot between them for an element of a
    list, or the name of a keyword. A long target is cut so that the rest has room.
    """
    end = f".{side}.{position}.{timestamp}.npy"
    start = f"{node}-{target}".replace("/", "_").replace("\\", "_")
    room = NAME_BYTES_MAX - len(end.encode())
    return start.encode("utf-8", "replace")[: max(room, 1)].decode("utf-8", "ignore") + end


def graph_file(stage: str, number: int, rank: int, timestamp: str, kind: str) -> str:
    """Name of a file of `debug.graph_dump`; `stage` is `original` or `optimized`."""
    return f"dynamo_{stage}_graph_{number}_rank_{rank}_pid_{os.getpid()}_ts_{timestamp}.{kind}"


def summary_file(rank: int, timestamp: str) -> str:
    """Name of a file of `debug.fx_summary`."""
    return f"summary_rank_{rank}_pid_{os.getpid()}_ts_{timestamp}.csv"


def tensor_file(node: str, device: int, count: int) -> str:
    """Name of a file of a dump of one of the modes with ACL graphs."""
    return f"{sanitised(node)}_device_{device}_{count}.pt"
