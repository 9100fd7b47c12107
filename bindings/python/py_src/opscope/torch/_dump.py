"""A dump on disk, from the first graph that is compiled to the end of the process."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from typing import Any

import torch

from .._native.capture import Graph, Session
from .._world import rank_name, world
from . import _forms
from ._graph import Described
from ._plan import Config, acl_json_text, mindspore_text

_log = logging.getLogger("opscope.torch")
# How many seconds the name of a dump may lie ahead of the clock, if other dumps have the names before.
_N_NAMES_MAX = 3600
_NOTHING_COMPILED = (
    "opscope.torch: no graph was captured, so nothing was dumped. Either the model was not run, or torch.compile ran "
    "it without compiling it (TORCH_LOGS=dynamo says why)."
)


class Dump:
    """A session of the core, begun when it is needed first."""

    def __init__(self, plan: Any, config: Config, *, is_enabled: bool) -> None:
        self.plan = plan
        self.config = config
        self.is_enabled = is_enabled
        # A relative path means the directory of now.
        self.path = os.path.abspath(os.fspath(plan.path))
        self.accepted_at = time.time()
        # Read once: the file may be another when the first graph is compiled.
        self.mindspore_text = mindspore_text(plan)
        self._session: Session | None = None
        self._report: dict | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()
        # `None` before the first graph.
        self.unused_rules: list[str] | None = None

    def attach(self, name: str, load: int, described: Described, *beside: Any) -> Graph:
        """Lets a graph take part. What is known beside its operators is for graph files only."""
        of_graph = (described.operators, described.values, described.bodies, described.device)
        return self._begun().attach(name, load, *of_graph, *beside)

    def note_rules(self, unused: list[str]) -> None:
        """Remembers rules that choose nothing of a graph; those that choose nothing of any are told at the end."""
        self.unused_rules = unused if self.unused_rules is None else [r for r in self.unused_rules if r in unused]

    def describe(self, name: str, text: str) -> None:
        """Writes a description of a graph beside its dump. A model does not fail for that."""
        session = self._session
        if session is None:
            return
        try:
            session.describe(name, text)
        except OSError as error:
            _log.warning("the description of %s could not be written: %s", name, error)

    def counters(self) -> dict | None:
        """The counts so far."""
        if self._report is not None:
            return self._report
        return None if self._session is None else self._session.counters()

    def _begun(self) -> Session:
        with self._lock:
            if self._report is not None:
                raise RuntimeError("the dump of this backend is finished: a model that is compiled now needs another")
            if self._session is None:
                self._session = self._new_session()
                _log.info("dumping into %s", self._session.root)
            return self._session

    def _new_session(self) -> Session:
        plan = self.plan
        how = {"queue_bytes_max": self.config.queue_bytes_max, "n_writers": self.config.n_writers}
        how["forms"] = _forms.parts
        times, plain_types = _times(self.accepted_at), [torch.Tensor, torch.nn.Parameter]
        if (text := acl_json_text(plan)) is not None:
            # The file says where to; only processes that run together have to be told apart.
            processes = world()
            below = rank_name(processes) if processes.size > 1 else ""
            return Session.of_acl_json(text, below, times, plain_types, torch.__version__, **how)
        if (text := self.mindspore_text) is not None:
            rank = plan.rank if plan.rank is not None else world().rank
            return Session.of_mindspore_json(
                text, plan.target, rank, plan.device, times[0], plain_types, torch.__version__, **how
            )
        return Session(
            os.path.join(self.path, rank_name(world())),
            times,
            plain_types,
            torch.__version__,
            data=plan.data,
            mode=plan.mode,
            steps=None if plan.steps is None else [tuple(pair) for pair in plan.steps],
            has_graph_inputs=bool(plan.layers),
            **how,
        )

    def finish(self, n_graphs: int) -> dict:
        """Writes the rest; says what came of it, and loudly if that is nothing."""
        with self._lock:
            if self._report is not None:
                return self._report
            if os.getpid() != self._pid:
                # A fork has the objects, and nothing of what writes.
                return {}
            found = None if self._session is None else self._session.finish()
            root = None if self._session is None else self._session.root
            self._report = {"n_graphs": n_graphs, "root": None, **(found or {})}
            self._report["root"] = None if root is None else str(root)
        for rule in self.unused_rules or ():
            _log.warning("[DataDump] Unused Kernel in json: %s", rule)
        if self.is_enabled:
            self._complain(self._report)
        return self._report

    @staticmethod
    def _complain(report: dict) -> None:
        text = None
        if report["n_graphs"] == 0:
            text = _NOTHING_COMPILED
        elif report.get("first_error"):
            text = f"opscope.torch: the dump is not complete: {report['first_error']}"
        elif report.get("first_fault"):
            text = f"opscope.torch: the dump is not complete: {report['first_fault']}"
        elif report.get("n_steps_active") == 0:
            n = report.get("n_steps", 0)
            text = f"opscope.torch: nothing was dumped: of {n} executions of graphs none was among the steps to dump"
            if n == 0:
                text = "opscope.torch: nothing was dumped: no graph that was executed has anything that is selected"
        if text is not None:
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        if unseen := report.get("unseen"):
            reasons = ", ".join(f"{n} for {reason}" for reason, n in unseen.items())
            _log.warning("values that could not be looked at: %s", reasons)


def warn_of_nothing() -> None:
    """For a program that wanted a dump and compiled nothing."""
    warnings.warn(_NOTHING_COMPILED, RuntimeWarning, stacklevel=2)


def _times(start: float) -> list[str]:
    return [time.strftime("%Y%m%d%H%M%S", time.localtime(start + i)) for i in range(_N_NAMES_MAX)]
