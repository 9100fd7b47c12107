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
from .._world import world
from . import _ranks
from ._graph import Described
from ._plan import Config, acl_json_text

_log = logging.getLogger("opscope.torch")
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
        self._session: Session | None = None
        self._report: dict | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def attach(self, name: str, load: int, described: Described) -> Graph:
        """Lets a graph take part."""
        return self._begun().attach(name, load, described.operators, described.values)

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
        of, times = world(), _ranks.times(self.path, self.accepted_at)
        plain_types = [torch.Tensor, torch.nn.Parameter]
        if (text := acl_json_text(plan)) is not None:
            # The file says where to; only processes that run together have to be told apart.
            below = of.directory if of.size > 1 else ""
            return Session.of_acl_json(text, below, times, plain_types, torch.__version__, **how)
        return Session(
            os.path.join(self.path, of.directory),
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
        if text is not None:
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        if unseen := report.get("unseen"):
            reasons = ", ".join(f"{n} for {reason}" for reason, n in unseen.items())
            _log.warning("values that could not be looked at: %s", reasons)


def warn_of_nothing() -> None:
    """For a program that wanted a dump and compiled nothing."""
    warnings.warn(_NOTHING_COMPILED, RuntimeWarning, stacklevel=2)
