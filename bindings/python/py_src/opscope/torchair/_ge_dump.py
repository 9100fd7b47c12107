"""Descriptions of graphs for the variables `DUMP_GE_GRAPH`, `DUMP_GRAPH_FORMAT`, `DUMP_GRAPH_LEVEL`
and `DUMP_GRAPH_PATH`.

    {DUMP_GRAPH_PATH}/pid_{pid}_deviceid_{device}/ge_proto_{index}_graph_{graph}_{stage}.txt

Two of the graph engine's stages exist here: `PreRunBegin`, the original graph, and `Build`, the
graph that runs.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping

from torch.fx import GraphModule

from opscope.torchair import _ge_text, _layout
from opscope.torchair._ge_graph import Graph, graph_of
from opscope.torchair._graph_dump import put

STAGES = ("PreRunBegin", "Build")
_DEFAULT_FORMATS = "ge_proto|onnx"
# Prefix and suffix of a file's name, and its content.
_FORMATS: dict[str, tuple[str, str, Callable[[Graph], str]]] = {
    "ge_proto": ("ge_proto", "txt", _ge_text.model_def),
    "onnx": ("ge_onnx", "pbtxt", _ge_text.onnx_text),
    "readable": ("ge_readable", "txt", _ge_text.readable),
}
# Files are numbered per process; those of one description share the number.
_indices = itertools.count()


def write(gm: GraphModule, number: int, stage: str, environment: Mapping[str, str] = os.environ) -> None:
    """Writes a graph's requested descriptions at a stage. Errors do not stop the model."""
    if not is_asked_for(stage, environment):
        return
    graph = graph_of(gm, _layout.graph_name(number))
    directory = _directory(environment)
    index = next(_indices)
    for start, end, text in formats(environment):
        put(directory, f"{start}_{index:08}_graph_{number}_{stage}.{end}", text(graph))


def is_asked_for(stage: str, environment: Mapping[str, str]) -> bool:
    """Whether the variables request a stage."""
    if environment.get("DUMP_GE_GRAPH", "").strip() not in ("1", "2", "3"):
        return False
    level = environment.get("DUMP_GRAPH_LEVEL", "").strip()
    if level in ("", "1", "2"):
        # Every level includes the stages here.
        return True
    if level in ("3", "4"):
        return stage == ("Build" if level == "3" else "PreRunBegin")
    return any(part and part in stage for part in level.split("|"))


def formats(environment: Mapping[str, str]) -> list[tuple[str, str, Callable[[Graph], str]]]:
    """Lists the files to write: prefix and suffix of each name, and a function for the text."""
    wanted = (environment.get("DUMP_GRAPH_FORMAT") or _DEFAULT_FORMATS).lower()
    return [form for name, form in _FORMATS.items() if name in wanted]


def _directory(environment: Mapping[str, str]) -> str:
    base = environment.get("DUMP_GRAPH_PATH")
    if base:
        return os.path.join(os.path.abspath(base), f"pid_{os.getpid()}_deviceid_0")
    return os.path.abspath(environment.get("ASCEND_WORK_PATH") or ".")
