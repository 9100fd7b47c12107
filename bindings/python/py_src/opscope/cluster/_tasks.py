"""Code that runs on the nodes of a cluster."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from typing import Any, NamedTuple


class Job(NamedTuple):
    """Common settings of all tasks of a call."""

    # The command, without options about the result.
    command: list[str]
    # The driver's working directory, as paths may be relative.
    folder: str
    # The directory of parts; `None` for an index, whose parts have their own places.
    parts: str | None
    # A file that the driver created in the tasks' output directory; tasks see it if the directory
    # is shared.
    marker: str


class Outcome(NamedTuple):
    """The result of a unit."""

    # The command's exit code.
    code: int
    # Its standard error.
    said: str
    # Its standard output, parsed as JSON.
    printed: dict[str, Any]
    # The part, if the driver must write it.
    content: bytes | None


class Ledger:
    """An actor that records which unit started where, because Ray restarts lost tasks silently."""

    def __init__(self) -> None:
        self._begun: list[tuple[str, str]] = []

    def begin(self, unit: str, where: str) -> None:
        self._begun.append((unit, where))

    def since(self, n: int) -> list[tuple[str, str]]:
        """The starts after the first `n`."""
        return self._begun[n:]


def holds(paths: list[str], folder: str) -> bool:
    """Whether this node has all paths."""
    # A URL is equally far from every node.
    return all("://" in path or os.path.exists(os.path.join(folder, path)) for path in paths)


def run_unit(job: Job, unit: str, ledger: Any) -> Outcome:
    """Measures the part of a unit."""
    import ray

    context = ray.get_runtime_context()
    # Waits for the actor before doing anything else, in case this process dies.
    ray.get(ledger.begin.remote(unit, _where(context)))
    os.chdir(job.folder)
    if os.path.exists(job.marker):
        return _run(job, unit, job.parts)
    if job.parts is None:
        place = os.path.dirname(job.marker)
        return Outcome(2, f"`{place}` is not visible on {_where(context)}: tables need a shared directory", {}, None)
    place = tempfile.mkdtemp(prefix="opscope-")
    try:
        outcome = _run(job, unit, place)
        if outcome.code != 0:
            return outcome
        with open(os.path.join(place, outcome.printed["part"]), "rb") as part:
            return outcome._replace(content=part.read())
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _run(job: Job, unit: str, parts: str | None) -> Outcome:
    from opscope._native import command_line

    words = ["opscope", *job.command, "--unit", unit, "--jobs", "1"]
    words += [] if parts is None else ["--parts", parts]
    words += ["--json"] if parts is None else []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        code = _captured(lambda: command_line.run(words), out.fileno(), said.fileno())
        texts = []
        for file in (out, said):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    try:
        printed = json.loads(texts[0])
    except ValueError:
        printed = {}
    return Outcome(int(code), texts[1].strip(), printed, None)


def _captured(work: Any, out: int, said: int) -> Any:
    """Calls `work` with standard output and error redirected, including those of native code."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    try:
        os.dup2(out, 1)
        os.dup2(said, 2)
        return work()
    finally:
        for number, own in zip((1, 2), kept):
            os.dup2(own, number)
            os.close(own)


def _where(context: Any) -> str:
    return f"node {context.get_node_id()[:8]}, process {os.getpid()}"
