"""The table of `debug.fx_summary`: operators of the graphs with counts and types."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from dataclasses import dataclass, field

import torch
from torch.fx import GraphModule, Node

from opscope._native.capture import FileWriter
from opscope._world import world
from opscope.torch._names import target_name
from opscope.torchair import _layout
from opscope.torchair._fx_names import Symbols, annotation
from opscope.torchair.core.utils import logger

COLUMNS = ("target", "kind", "support", "calls", "inputs", "outputs")
# The byte order mark that spreadsheets expect before UTF-8.
_MARK = "\ufeff"


@dataclass
class _Row:
    kind: str
    n_calls: int = 0
    inputs: Counter[str] = field(default_factory=Counter)
    outputs: Counter[str] = field(default_factory=Counter)


class FxSummaries:
    """Tables of one backend's graphs, one file each; none without a directory."""

    def __init__(self, directory: str | None) -> None:
        self._directory = None if directory is None else os.path.abspath(directory)
        self._stamps: set[str] = set()

    def write(self, gm: GraphModule) -> None:
        """Writes a graph's table. Errors do not stop the model."""
        if self._directory is None:
            return
        path = os.path.join(self._directory, _layout.summary_file(world().rank, self._stamp()))
        try:
            FileWriter(self._directory, []).bytes(path, table(gm).encode("utf-8"))
        except OSError as error:
            logger.error("the summary of a graph could not be written: %s", error)

    def _stamp(self) -> str:
        # Graphs may come faster than the clock advances.
        stamp = _layout.timestamp_now()
        while stamp in self._stamps:
            stamp = str(int(stamp) + 1)
        self._stamps.add(stamp)
        return stamp


def table(gm: GraphModule) -> str:
    """The table as text."""
    rows: dict[str, _Row] = {}
    symbols = Symbols(gm.graph.nodes)
    for node in gm.graph.nodes:
        if node.op != "call_function":
            continue
        row = rows.setdefault(target_name(node.target), _Row(_kind(node)))
        row.n_calls += 1
        found: list[Node] = []
        torch.fx.node.map_arg((node.args, node.kwargs), found.append)
        row.inputs[", ".join(annotation(value, symbols) for value in found)] += 1
        row.outputs[annotation(node, symbols)] += 1
    text = io.StringIO()
    text.write(_MARK)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for target, row in sorted(rows.items()):
        # Every operator runs here, whatever its namespace.
        writer.writerow((target, row.kind, "supported", row.n_calls, _counted(row.inputs), _counted(row.outputs)))
    return text.getvalue()


def _kind(node: Node) -> str:
    namespace = getattr(node.target, "namespace", None)
    return str(namespace) if namespace else "builtin"


def _counted(found: Counter[str]) -> str:
    return "; ".join(f"{text or '-'} x{n}" for text, n in found.items())


