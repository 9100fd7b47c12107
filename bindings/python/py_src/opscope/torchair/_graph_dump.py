"""The files of `debug.graph_dump`: two descriptions of each graph, before and after its
transformation."""

from __future__ import annotations

import os

from torch.fx import GraphModule

from opscope._native.capture import FileWriter
from opscope._warning import warn
from opscope._world import world
from opscope.torchair import _fx_code, _ge_text, _layout
from opscope.torchair._ge_graph import graph_of

# Other users may read a graph, as with TorchAir.
DIR_MODE = 0o750
FILE_MODE = 0o640


class GraphDumps:
    """Descriptions of one backend's graphs; none without a type."""

    def __init__(self, kind: str | None, directory: str) -> None:
        self._kind = kind
        self._directory = os.path.abspath(directory)

    def write(self, gm: GraphModule, number: int, stage: str) -> None:
        """Writes one of the two. Errors do not stop the model."""
        if self._kind is None:
            return
        if os.path.islink(self._directory):
            warn(f"debug.graph_dump.path: `{self._directory}` is a symbolic link, which is not followed")
            return
        name = _layout.graph_file(stage, number, world().rank, _layout.timestamp_now(), self._kind)
        put(self._directory, name, described(gm, _layout.graph_name(number), self._kind))


def described(gm: GraphModule, name: str, kind: str) -> str:
    """A graph as `py`, `txt` or `pbtxt`."""
    if kind == "py":
        return _fx_code.code_of(gm, name)
    graph = graph_of(gm, name)
    return _ge_text.graph_def(graph) if kind == "txt" else _ge_text.node_text(graph)


def put(directory: str, name: str, text: str) -> None:
    """Writes a file; warns on failure."""
    try:
        writer = FileWriter(directory, [], dir_mode=DIR_MODE, file_mode=FILE_MODE)
        writer.bytes(os.path.join(directory, name), text.encode("utf-8", "replace"))
    except OSError as error:
        warn(f"a description of a graph could not be written: {error}", RuntimeWarning)
