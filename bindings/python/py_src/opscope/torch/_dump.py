"""A dump on disk, from the first graph that is compiled to the end of the process."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from .. import _visible
from .._fork_lock import ForkLock
from .._native.capture import Eager, Graph, Session, Watch
from .._warning import warn as warn_outside
from .._world import rank_name, world
from . import _fork, _forms, _names, _ranks
from ._device.adapter import is_host_claimed
from ._device.queue import DeviceQueue
from ._findings import Findings
from ._graph import Described
from ._plan import Config, acl_json_text, mindspore_text, purpose

# Names that are remembered to be suggested.
_N_KNOWN_MAX = 10_000

log = _visible.logger()
_NOTHING_COMPILED = (
    "opscope.torch: no graph was captured, so nothing was dumped. Either the model was not run, or torch.compile ran "
    "it without compiling it (TORCH_LOGS=dynamo says why)."
)


class Unwritable(Exception):
    """The dump cannot be written. The program has been told once, and continues without it."""


@dataclass(frozen=True)
class Words:
    """Terms that messages use for a dump."""

    # The message if it never began.
    nothing: str = _NOTHING_COMPILED
    # The name of its steps.
    steps: str = "executions of graphs"


class Dump:
    """A session of the core, created on first use."""

    def __init__(
        self,
        plan: Any,
        config: Config,
        *,
        is_enabled: bool,
        has_graphs: bool = True,
        words: Words | None = None,
    ) -> None:
        self.plan = plan
        self.words = words or Words()
        self.config = config
        self.is_enabled = is_enabled
        # Whether it is an error if no graph was compiled or executed.
        self.has_graphs = has_graphs
        # A relative path refers to the current directory now.
        self.path = os.path.abspath(os.fspath(plan.path))
        self.accepted_at = time.time()
        # Read once, because the file may change before the first graph is compiled.
        self.mindspore_text = mindspore_text(plan)
        self.findings = Findings()
        self._session: Session | None = None
        # Descriptions of graphs, written only if anything else is.
        self._descriptions: dict[str, str] = {}
        self._report: dict | None = None
        # Names of operators, for suggestions.
        self._known: set[str] = set()
        self._lock = ForkLock()
        self._pid = os.getpid()
        # Whether this is a fork of the owning process.
        self.is_left = False
        # Why it cannot be written.
        self._refusal: OSError | None = None
        _fork.follow(self)
        # `None` before the first graph.
        self.unused_rules: list[str] | None = None

    def attach(self, name: str, load: int, described: Described, *beside: Any) -> Graph:
        """Adds a graph. Facts in addition to its operators are for graph files only."""
        if len(self._known) < _N_KNOWN_MAX:
            self._known.update(operator.op_name for operator in described.operators)
        of_graph = (described.operators, described.values, described.bodies, described.device)
        return self._begun().attach(name, load, *of_graph, *beside)

    def note_rules(self, unused: list[str]) -> None:
        """Records rules that match nothing in a graph; those that never match are reported at the
        end."""
        self.unused_rules = unused if self.unused_rules is None else [r for r in self.unused_rules if r in unused]

    def watch(self, name: str, load: int, described: Described, state: Any) -> Watch:
        """Adds a graph whose values are watched."""
        operators, values = described.operators, described.values
        return self._begun().watch(name, load, operators, values, state, self.config.watch_bytes_max)

    def begin(self) -> None:
        """Starts the dump unless already started. Raises `Unwritable` if it cannot be written."""
        self._begun()

    @property
    def purpose(self) -> str:
        """`values`, `watch`, `overflow`, or `exception_` with the detail."""
        return self._begun().purpose

    @property
    def failure_dir(self) -> str:
        """The directory of operators that raise."""
        return str(self._begun().failure_dir)

    def attach_eager(self, describe: Any, place: Any, choose: Any, is_single: bool | None) -> Eager:
        """Adds operators that run without a graph."""
        return self._begun().attach_eager(describe, place, choose, is_single)

    @property
    def session(self) -> Session | None:
        """The session, once it has begun."""
        return self._session

    def describe(self, name: str, text: str) -> None:
        """Writes a graph's description next to its dump. Errors do not stop the model."""
        session = self._session
        if session is None:
            return
        if session.purpose == "overflow":
            # Without an overflow there is no directory.
            self._descriptions[name] = text
            return
        self._describe(session, name, text)

    @staticmethod
    def _describe(session: Session, name: str, text: str) -> None:
        try:
            session.describe(name, text)
        except OSError as error:
            log.warning("the description of %s could not be written: %s", name, error)

    def leave_fork(self) -> None:
        """A fork does not dump; the parent's dump continues."""
        self._lock = ForkLock()
        self.is_left = True

    def counters(self) -> dict | None:
        """The counts so far."""
        if self.is_left:
            return None
        if self._report is not None:
            return self._report
        return None if self._session is None else self._session.counters()

    def _begun(self) -> Session:
        with self._lock:
            if self._report is not None:
                raise RuntimeError("the dump of this backend is finished: a newly compiled model needs another")
            if self._refusal is not None:
                raise Unwritable
            if self._session is None:
                try:
                    self._session = self._new_session()
                    if (of := world()).size > 1:
                        self._session.note_world(of.size, of.rank)
                except OSError as error:
                    self._refusal = error
                    warn_outside(f"opscope.torch: nothing is dumped, but the model runs: {error}", RuntimeWarning)
                    raise Unwritable from error
                log.info("dumping into %s", self._session.root)
            return self._session

    def _new_session(self) -> Session:
        plan = self.plan
        how = {
            "plain_types": [torch.Tensor, torch.nn.Parameter],
            "torch_version": torch.__version__,
            "forms": _forms.parts,
            "devices": DeviceQueue(self.config.device_bytes_max, self.config.when_behind),
            "is_host_claimed": is_host_claimed(),
            "queue_bytes_max": self.config.queue_bytes_max,
            "n_writers": self.config.n_writers,
            "when_behind": self.config.when_behind,
        }
        of = world()
        if (text := acl_json_text(plan)) is not None:
            # The file sets the path; only the processes of a distributed run must be separated.
            below = rank_name(of) if of.size > 1 else ""
            return Session.of_acl_json(text, below, _ranks.times(self.path, self.accepted_at), how)
        if (text := self.mindspore_text) is not None:
            rank = plan.rank if plan.rank is not None else of.rank
            (time, *_) = _ranks.times(self.path, self.accepted_at, self.path)
            return Session.of_mindspore_json(text, plan.target, rank, plan.device, time, how)
        asked = purpose(plan)
        # Files of overflows, failures and overwritten values are defined by the vendor's tools.
        is_native = getattr(plan, "form", "acl") == "native" and asked == "values"
        # Each process of a distributed run has a directory; a single process needs none.
        is_alone = is_native and of.size == 1
        parent = self.path if is_alone else os.path.join(self.path, rank_name(of))
        what = {
            "data": plan.data,
            "form": "native" if is_native else "acl",
            "rank": of.rank,
            "purpose": asked,
            "mode": plan.mode,
            "steps": None if plan.steps is None else [tuple(pair) for pair in plan.steps],
            "has_graph_inputs": bool(plan.layers),
        }
        return Session(parent, _ranks.times(self.path, self.accepted_at, parent), what, how)

    def finish(self, n_graphs: int, counts: dict | None = None) -> dict:
        """Writes the rest and returns the report; warns if nothing was dumped. `counts` precede the
        core's."""
        if os.getpid() != self._pid:
            # A fork has the objects, but not the writers.
            return {}
        with self._lock:
            if self._report is not None:
                return self._report
            found = None if self._session is None else self._session.finish()
            root = None if self._session is None else self._session.root
            self._report = {"n_graphs": n_graphs, "root": None, **(found or {}), **(counts or {})}
            self._report["root"] = None if root is None else str(root)
            if self._refusal is not None:
                self._report["first_error"] = str(self._refusal)
                self._report["errno"] = self._refusal.errno
            if self._session is not None:
                self._end(self._session, self._report)
        if self._session is not None and not self.is_left:
            self._tell_missing(*self._session.missing())
        for rule in self.unused_rules or ():
            log.warning("[DataDump] Unused Kernel in json: %s", rule)
        if self.is_enabled:
            self._complain(self._report)
        return self._report

    def _tell_missing(self, models: list[str], operators: list[str], there: list[str]) -> None:
        """Warns of unmatched names in a configuration file."""
        for name in models:
            warn(f"the configuration names a model `{name}`, which did not occur{_names.hint(name, there)}")
        for name in operators:
            warn(f"the configuration names an operator `{name}`, which did not occur{_names.hint(name, self._known)}")

    def _end(self, session: Session, report: dict) -> None:
        """Adds the findings, and writes them next to the dump."""
        if session.purpose == "watch":
            report.update(self.findings.report())
            report["first_fault"] = report.get("first_fault") or self.findings.first_fault
            if (text := self.findings.to_json()) is not None:
                try:
                    session.write_text("overwrites.json", text)
                except OSError as error:
                    report["first_fault"] = report["first_fault"] or str(error)
        elif session.purpose.startswith("exception"):
            report["failure_dir"] = str(session.failure_dir) if os.path.isdir(session.failure_dir) else None
        elif report.get("n_operators_overflowed"):
            for name, text in self._descriptions.items():
                self._describe(session, name, text)

    def _complain(self, report: dict) -> None:
        text = None
        if self._refusal is not None:
            # It was reported when the model ran.
            pass
        elif self.has_graphs and report["n_graphs"] == 0:
            text = self.words.nothing
        elif report.get("first_error"):
            text = f"opscope.torch: the dump is not complete: {report['first_error']}"
        elif report.get("first_fault"):
            text = f"opscope.torch: the dump is not complete: {report['first_fault']}"
        elif self.has_graphs and report.get("n_steps_active") == 0:
            n = report.get("n_steps", 0)
            text = f"opscope.torch: nothing was dumped: of {n} {self.words.steps} none was among the steps to dump"
            if n == 0:
                text = "opscope.torch: nothing was dumped: no executed graph contains anything selected"
        if text is not None:
            warnings.warn(_visible.visible(text), RuntimeWarning, stacklevel=4)
        if report.get("n_overwrites"):
            text = f"opscope.torch: watched values were overwritten:\n{report['overwrite_table']}"
            warnings.warn(_visible.visible(text, keep="\n"), RuntimeWarning, stacklevel=4)
        if unseen := report.get("unseen"):
            reasons = ", ".join(f"{n} ({reason})" for reason, n in unseen.items())
            log.warning("opscope.torch: values that are not in the dump: %s", reasons)


def warn(text: str) -> None:
    """Warns the program about its dump."""
    warnings.warn(_visible.visible(f"opscope.torch: {text}"), RuntimeWarning, stacklevel=3)


def warn_of_nothing() -> None:
    """For a program that requested a dump and compiled nothing."""
    warnings.warn(_NOTHING_COMPILED, RuntimeWarning, stacklevel=2)
