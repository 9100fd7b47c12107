"""Names of the directories and files of a dump.

In graph mode, as TorchAir documents it:

    {dump_path}/worldsize{N}_global_rank{R}/{time}/{device}/{model}/{model_id}/{data_index}/

Functions here write nothing. Some ask the process or the clock: `world`, `time_now`, `timestamp_now`, and those that
put the process's id into a name.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone

from opscope._world import World, rank_name, world

__all__ = [
    "NAME_BYTES_MAX",
    "World",
    "data_directory",
    "fx_directory",
    "fx_file",
    "graph_file",
    "graph_name",
    "rank_directory",
    "rank_name",
    "sanitised",
    "summary_file",
    "tensor_file",
    "time_now",
    "timestamp_now",
    "world",
]

# Characters that TorchAir replaces by underscores in names of models and operators.
_REPLACED = str.maketrans({".": "_", "/": "_", "\\": "_", " ": "_"})
# Maximum file name length of common file systems, in bytes.
NAME_BYTES_MAX = 255


def rank_directory(dump_path: str, of: World) -> str:
    """Directory of one process."""
    return os.path.join(dump_path, rank_name(of))


def time_now() -> str:
    """Name of a dump directory configured now: local time, `YYYYMMDDHHMMSS`."""
    return time.strftime("%Y%m%d%H%M%S", time.localtime())


def timestamp_now() -> str:
    """Returns the time that distinguishes the files of operators in `debug.data_dump`: 20 digits,
    UTC."""
    return datetime.now(tz=timezone.utc).strftime("%Y%m%d%H%M%S%f")


def graph_name(number: int) -> str:
    """Name of a compiled graph; numbers begin at 1 and are unique per process."""
    return f"graph_{number}"


def sanitised(name: str) -> str:
    """A name as a single path component.

    Dots, slashes, backslashes and blanks become underscores, as in TorchAir, and so do control
    characters. An empty name becomes an underscore, and a long name is truncated.
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

    `side` is `INPUT` or `OUTPUT`; `position` is a number, two numbers separated by a dot for a list
    element, or a keyword's name. A long target is truncated so that the rest fits.
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
    """Name of a file in the modes with ACL graphs."""
    return f"{sanitised(node)}_device_{device}_{count}.pt"
