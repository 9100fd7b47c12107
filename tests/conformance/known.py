"""Results outside the tolerance that are known, each with its reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import judge
from judge import Verdict
from run import Result

PATH = Path(__file__).with_name("known.json")


def load() -> dict[str, dict[str, str]]:
    """Reasons by engine and pattern of case names, or of `NAME@FORM` for one form of a case alone."""
    return json.loads(PATH.read_text())


def problems(results: dict[str, list[Result]], *, is_complete: bool) -> list[str]:
    """Wrong results without a reason, dumps that lack something, and, if all cases were run, reasons without a wrong
    result.
    """
    reasons = load()
    lines = []
    for engine, all_of in results.items():
        wrong = {name: verdict for name, verdict in _verdicts(all_of) if verdict.outcome in judge.SILENTLY_WRONG}
        patterns = reasons.get(engine, {})
        for name, verdict in wrong.items():
            if not any(_matches(name, pattern) for pattern in patterns):
                reason = "that `known.json` has no reason for"
                lines.append(f"{engine} {name}: {verdict.outcome} {reason}: {verdict.detail}")
        bad = [(name, v) for name, v in _verdicts(all_of) if v.outcome in (judge.CRASH, judge.UNTAPPED)]
        lines += [f"{engine} {name}: {verdict.outcome}: {verdict.detail}" for name, verdict in bad]
        unused = [pattern for pattern in patterns if not any(_matches(name, pattern) for name in wrong)]
        if is_complete:
            lines += [f"{engine}: `{pattern}` in `known.json` matches no wrong result" for pattern in unused]
    return lines


def table(results: dict[str, list[Result]]) -> Iterator[str]:
    """Yields the lines of a table of the results outside the tolerance, with their reasons."""
    reasons = load()
    yield "| engine | outside the tolerance | why |"
    yield "| --- | --- | --- |"
    for engine, all_of in results.items():
        wrong = [name for name, verdict in _verdicts(all_of) if verdict.outcome in judge.SILENTLY_WRONG]
        for pattern, reason in reasons.get(engine, {}).items():
            names = [name for name in wrong if _matches(name, pattern)]
            if names:
                yield f"| {engine} | {', '.join(_in_words(names))} | {reason} |"


def _verdicts(results: list[Result]) -> Iterator[tuple[str, Verdict]]:
    """By the name of a case, and by `NAME@FORM`."""
    for result in results:
        yield result.case.name, result.verdict
        yield from ((f"{result.case.name}@{form}", verdict) for form, verdict in result.forms.items())


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name.split("@")[0], pattern)


def _in_words(names: list[str]) -> Iterator[str]:
    """Cases once, with the forms where the case as it is given is not among them."""
    given = {name for name in names if "@" not in name}
    yield from (f"`{name}`" for name in sorted(given))
    only_forms: dict[str, list[str]] = {}
    for name in names:
        case, _, form = name.partition("@")
        if case not in given:
            only_forms.setdefault(case, []).append(form)
    yield from (f"`{case}` ({', '.join(forms)})" for case, forms in only_forms.items())
