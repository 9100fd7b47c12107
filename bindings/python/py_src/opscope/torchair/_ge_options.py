"""The file of dump options that TorchAir writes for the graph engine, for tools that read it.

    ./ge_dump_data_json/dump_options_worldsize{N}_rank{R}_pid{P}.json

It has the form of AscendCL's `acl.json`. Graphs are added at their first dumped execution. A second
backend of the process has a separate file, with `_2` after the process id.
"""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

from opscope._fork_lock import ForkLock
from opscope._native.capture import FileWriter
from opscope._plan import DumpPlan
from opscope._world import rank_name, world
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.core.utils import logger

DIRECTORY = "ge_dump_data_json"
_numbers = itertools.count(1)


class DumpOptions:
    """One backend's file; none in modes without a graph engine."""

    def __init__(self, plan: DumpPlan, config: CompilerConfig) -> None:
        self._plan = plan
        self._is_written = plan.enabled and plan.acl_json is None and plan.stage is None
        self._step = config.dump_config.dump_step.value
        # The current directory now, because it may change before the first graph runs.
        self._directory = os.path.join(os.getcwd(), DIRECTORY)
        self._number: int | None = None
        self._graphs: list[dict[str, Any]] = []
        self._lock = ForkLock()

    def add(self, graph: str, marked: list[str]) -> None:
        """Rewrites the file with one more graph. Errors do not stop the model."""
        if not self._is_written:
            return
        with self._lock:
            if self._number is None:
                self._number = next(_numbers)
            layers = list(dict.fromkeys((*self._plan.layers, *marked)))
            self._graphs.append({"model_name": graph, **({"layer": layers} if layers else {})})
            text = json.dumps({"dump": self._content()}, indent=4, ensure_ascii=False)
        try:
            FileWriter(self._directory, []).bytes(self._path(), text.encode("utf-8"))
        except OSError as error:
            logger.warning("the file of dump options could not be written: %s", error)

    def _content(self) -> dict[str, Any]:
        plan = self._plan
        return {
            "dump_path": os.path.join(plan.path, rank_name(world())),
            "dump_mode": plan.mode,
            "dump_data": plan.data,
            **({"dump_step": self._step} if self._step else {}),
            "quant_dumpable": "1" if plan.quant_dumpable else "0",
            "dump_list": self._graphs,
        }

    def _path(self) -> str:
        of = world()
        end = "" if self._number == 1 else f"_{self._number}"
        name = f"dump_options_worldsize{of.size}_rank{of.rank}_pid{os.getpid()}{end}.json"
        return os.path.join(self._directory, name)
