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


def problems(results: dict[str, list[Result]], *, is_complete: bool) -> list[str]:
    """Wrong results without a reason, dumps that lack something, and, if all cases were run, reasons without a wrong
    result.
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
        unused = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in wrong)]
        if is_complete:
            lines += [f"{engine}: `{pattern}` in `known.json` matches no wrong result" for pattern in unused]
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
