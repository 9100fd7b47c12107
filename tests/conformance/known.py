"""Results outside the tolerance that are known, each with its reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import judge
from run import Result

PATH = Path(__file__).with_name("known.json")


def load() -> dict[str, dict[str, str]]:
    """Reasons by engine and pattern of case names."""
    return json.loads(PATH.read_text())


def problems(results: dict[str, list[Result]]) -> list[str]:
    """Wrong results without a reason, reasons without a wrong result among the cases that were run, and dumps that
    lack something.
    """
    reasons = load()
    lines = []
    for engine, all_of in results.items():
        wrong = {r.case.name: r.verdict for r in all_of if r.verdict.outcome in judge.SILENTLY_WRONG}
        patterns = reasons.get(engine, {})
        for name, verdict in wrong.items():
            if not any(fnmatchcase(name, pattern) for pattern in patterns):
                reason = "that `known.json` has no reason for"
                lines.append(f"{engine} {name}: {verdict.outcome} {reason}: {verdict.detail}")
        bad = [r for r in all_of if r.verdict.outcome in (judge.CRASH, judge.UNTAPPED)]
        lines += [f"{engine} {r.case.name}: {r.verdict.outcome}: {r.verdict.detail}" for r in bad]
        names = [result.case.name for result in all_of]
        for pattern in patterns:
            matching = [name for name in names if fnmatchcase(name, pattern)]
            if matching and not any(name in wrong for name in matching):
                lines.append(f"{engine}: `{pattern}` in `known.json` matches cases that pass")
    return lines


def table(results: dict[str, list[Result]]) -> Iterator[str]:
    """What is outside the tolerance, with its reason."""
    reasons = load()
    yield "| engine | outside the tolerance | why |"
    yield "| --- | --- | --- |"
    for engine, all_of in results.items():
        wrong = [r.case.name for r in all_of if r.verdict.outcome in judge.SILENTLY_WRONG]
        for pattern, reason in reasons.get(engine, {}).items():
            names = [name for name in wrong if fnmatchcase(name, pattern)]
            if names:
                yield f"| {engine} | {', '.join(f'`{name}`' for name in names)} | {reason} |"
