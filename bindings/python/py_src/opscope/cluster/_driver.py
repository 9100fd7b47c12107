"""The process that starts tasks on a cluster and waits for them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from .. import _child
from .._compare import StrPath
from .._errors import USAGE, UsageError
from .._visible import visible
from . import ClusterError
from ._progress import Progress
from ._tasks import Job, Ledger, Outcome, holds, run_unit

# How many times Ray restarts a task whose worker or node died.
_N_RETRIES = 8
# Seconds to wait for a connection to a cluster, and then for its answer.
_CONNECT_SECONDS = 10.0
# What a client of gRPC, which Ray's nodes talk, begins with: the preface of HTTP/2 and empty settings.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
# How an error says that a node lacks this package.
_NO_PACKAGE = "No module named 'opscope"
# Seconds between two looks at what was begun again.
_LOOK_SECONDS = 0.5
_DIR_MODE, _FILE_MODE = 0o700, 0o600
_DONE = 0
PARTIAL = 4


class Driver:
    """Runs the unfinished units of a command on a cluster."""

    def __init__(
        self,
        command: Sequence[str],
        parts: str | None,
        address: str | None,
        memory_bytes: int = 1 << 30,
        read_limit: float | None = None,
    ) -> None:
        self._command = [*command, *(["--read-limit", str(read_limit)] if read_limit is not None else [])]
        self._parts = parts
        self._address = address
        self._memory_bytes = memory_bytes
        # Where tasks write.
        self._place = parts if parts is not None else self._command[self._command.index("--out") + 1]

    def run(self) -> None:
        """Returns when all units are done.

        Raises:
            ClusterError: Units failed.
        """
        ray = _imported()
        units = self._units()
        missing = [unit for unit in units if unit["state"] != "done"]
        progress = Progress(len(units), sum(unit["bytes"] for unit in units))
        for unit in units:
            if unit["state"] == "done":
                progress.take(unit["bytes"], is_old=True)
        if not missing:
            return
        with self._marked() as marker, _connected(ray, self._address):
            job = Job(self._command, os.getcwd(), self._parts, marker)
            _Tasks(ray, self, job, progress).run(missing)
            # Before closing the connection, which takes seconds.
            progress.end()

    def paths(self) -> list[str]:
        """The dumps that tasks read."""
        from ._command import _positional

        return _positional(self._command[1:])

    @property
    def memory_bytes(self) -> int:
        """Memory of a task."""
        return self._memory_bytes

    def keep(self, outcome: Outcome) -> None:
        """Writes a part that a task could not write itself."""
        if outcome.content is None or self._parts is None:
            return
        descriptor, path = tempfile.mkstemp(prefix=".opscope-tmp-", dir=self._parts)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _FILE_MODE)
            file.write(outcome.content)
        os.replace(path, os.path.join(self._parts, outcome.printed["part"]))

    def _units(self) -> list[dict[str, Any]]:
        words = [*self._command, "--list-units", *([] if self._parts is None else ["--parts", self._parts])]
        found = subprocess.run(_child.command(words), capture_output=True, text=True, check=False)
        if found.returncode != 0:
            error = UsageError if found.returncode == USAGE else ClusterError
            refusal = error(found.stderr.strip().removeprefix("opscope: "), code="usage")
            refusal.exit_code = found.returncode
            raise refusal
        return [json.loads(line) for line in found.stdout.splitlines()]

    def _marker_of(self, path: str) -> str:
        """The name under which tasks look for the marker."""
        return path

    @contextmanager
    def _marked(self) -> Iterator[str]:
        os.makedirs(self._place, mode=_DIR_MODE, exist_ok=True)
        descriptor, path = tempfile.mkstemp(prefix=".opscope-tmp-shared-", dir=self._place)
        os.close(descriptor)
        try:
            yield self._marker_of(os.path.abspath(path))
        finally:
            os.unlink(path)


class _Tasks:
    """The tasks of a call."""

    def __init__(self, ray: Any, driver: Driver, job: Job, progress: Progress) -> None:
        self._ray, self._driver, self._job, self._progress = ray, driver, job, progress
        here = ray.get_runtime_context().get_node_id()
        # The ledger lives as long as the driver does.
        options = {"num_cpus": 0, "scheduling_strategy": _on(here, soft=False)}
        self._ledger = ray.remote(Ledger).options(**options).remote()
        self._begun: dict[str, str] = {}
        self._n_begun = 0

    def run(self, units: list[dict[str, Any]]) -> None:
        task = self._ray.remote(num_cpus=1, memory=self._driver.memory_bytes, max_retries=_N_RETRIES)(run_unit)
        # The largest first, so that all end at about the same time.
        units = sorted(units, key=lambda unit: -unit["bytes"])
        nodes = self._nodes()
        pending: dict[Any, dict[str, Any]] = {}
        for nth, unit in enumerate(units):
            strategy = "SPREAD" if nodes is None else _on(nodes[nth % len(nodes)], soft=True)
            started = task.options(scheduling_strategy=strategy).remote(self._job, unit["unit"], self._ledger)
            pending[started] = unit
        failed: list[str] = []
        try:
            while pending:
                done, _ = self._ray.wait(list(pending), timeout=_LOOK_SECONDS)
                for reference in done:
                    self._take(reference, pending.pop(reference), failed)
                self._tell_lost()
                self._progress.show()
        except BaseException:
            for reference in pending:
                self._ray.cancel(reference, force=True)
            raise
        if failed:
            error = ClusterError(f"{len(failed)} units failed: {'; '.join(failed)}", code="tasks")
            error.exit_code = PARTIAL
            raise error

    def _take(self, reference: Any, unit: dict[str, Any], failed: list[str]) -> None:
        try:
            outcome: Outcome = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            failed.append(f"{unit['unit']}: {str(error).strip().splitlines()[-1]}")
            return
        said = outcome.said.removeprefix("opscope: ")
        if outcome.code != _DONE:
            failed.append(f"{unit['unit']}: {said or f'exit code {outcome.code}'}")
            return
        if said:
            # An existing part was damaged.
            self._progress.tell(said)
        self._driver.keep(outcome)
        self._progress.take(unit["bytes"])

    def _tell_lost(self) -> None:
        """Reports restarted units."""
        begun = self._ray.get(self._ledger.since.remote(self._n_begun))
        self._n_begun += len(begun)
        if begun:
            self._progress.begin()
        for unit, where in begun:
            if (before := self._begun.get(unit)) is not None:
                self._progress.tell(f"{unit}: lost with {before}; repeated on {where}")
            self._begun[unit] = where

    def _has_room(self, node: dict[str, Any]) -> bool:
        resources = node["Resources"]
        return resources.get("CPU", 0) >= 1 and resources.get("memory", 0) >= self._driver.memory_bytes

    def _nodes(self) -> list[str] | None:
        """The nodes that can run a task and have the dumps; `None` if all of them do."""
        alive = [node["NodeID"] for node in self._ray.nodes() if node["Alive"] and self._has_room(node)]
        if not alive:
            # Ray would wait for such a node forever.
            needed = f"one CPU and {self._driver.memory_bytes >> 20} MiB"
            raise ClusterError(f"no node of the cluster has {needed} for a task", code="cluster")
        look = self._ray.remote(num_cpus=0, max_retries=0)(holds)
        paths = self._driver.paths()
        looks = [look.options(scheduling_strategy=_on(node, soft=False)).remote(paths, self._job.folder) for node in alive]
        having, without_package = [], []
        for node, answer in zip(alive, looks):
            try:
                if self._ray.get(answer):
                    having.append(node)
            except self._ray.exceptions.RayError as error:
                # A node that is gone has nothing.
                if _NO_PACKAGE in str(error):
                    without_package.append(node[:8])
        if without_package:
            nodes = ", ".join(f"`{node}`" for node in without_package)
            message = f"the package `opscope` is not installed on node {nodes}: `pip install opscope` there"
            if not having:
                raise ClusterError(message, code="cluster")
            self._progress.tell(f"{message}; the others do the work")
        if not having:
            raise ClusterError(f"no node of the cluster has {', '.join(f'`{path}`' for path in paths)}", code="not_found")
        return None if len(having) == len(alive) else having


def parts_of(target: str, parts: StrPath | None) -> str:
    """The directory of parts: the given one, or one in the target."""
    if parts is not None:
        return os.fspath(parts)
    if not os.path.isdir(target):
        raise UsageError(f"`--parts` is required: `{target}` is not a directory", code="usage")
    return os.path.join(target, ".opscope", "parts")


def tables_of(dumps: Sequence[str], out: StrPath | None) -> str:
    """The directory of tables: the given one, or one in the dump."""
    if out is not None:
        return os.fspath(out)
    if len(dumps) != 1 or not os.path.isdir(dumps[0]):
        raise UsageError("`--out` is required for the common tables of several dumps", code="usage")
    return os.path.join(dumps[0], ".opscope", "index")


def finish_index(command: Sequence[str]) -> None:
    """Builds the common tables of an index."""
    done = subprocess.run(_child.command([*command, "--merge"]), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        error = ClusterError(done.stderr.strip(), code="tasks")
        error.exit_code = done.returncode
        raise error


def _check_reachable(address: str | None) -> None:
    """Raises if nothing listens at an address; Ray itself would retry for minutes."""
    host, _, port = (address or "").rpartition(":")
    if "/" in host or not (host and port.isdecimal()):
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") == "1":
                return
            connection.sendall(_GREETING)
            is_answered = bool(connection.recv(1))
    except (TimeoutError, socket.timeout):
        message = f"the cluster at `{address}` does not answer"
        raise ClusterError(f"{message}: expected the address of a head node's GCS, port 6379 by default", code="cluster") from None
    except (OSError, OverflowError) as error:
        raise ClusterError(f"cannot reach the cluster at `{address}`: {error}", code="cluster") from None
    if not is_answered:
        raise ClusterError(f"`{address}` ends the connection: it is no head node of a Ray cluster", code="cluster")


def _on(node: str, *, soft: bool) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=soft)


def _imported() -> Any:
    # Before any part of Ray runs, and for all that it starts.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError as error:
        message = f"Ray is not installed ({visible(str(error))}): `pip install 'opscope[ray]'`"
        raise UsageError(message, code="usage") from None
    return ray


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """A connection to a cluster, unless the caller has one."""
    if ray.is_initialized():
        yield
        return
    _check_reachable(address)
    # Ray reports lost nodes itself, even on standard output, which belongs to the result.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        try:
            ray.init(address=address, include_dashboard=None if address else False, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ClusterError(f"cannot reach the cluster: {visible(str(error))}", code="cluster") from None
        try:
            yield
        finally:
            ray.shutdown()
