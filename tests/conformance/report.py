"""The tables of a run, in markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import forms
import judge
from run import Result

BEGIN, END = "<!-- conformance:begin -->", "<!-- conformance:end -->"
GIVEN = "as given"
OPSETS = [(1, 18), (19, 22), (23, 26), (27, 99)]


def summary(results: dict[str, list[Result]]) -> Iterator[str]:
    """How the cases end, by engine."""
    yield from _table(
        ["cases end with", *results],
        [[outcome, *(_count(all_of, outcome) for all_of in results.values())] for outcome in judge.OUTCOMES]
        + [["all", *(len(all_of) for all_of in results.values())]],
    )


def by_form_of_inputs(results: dict[str, list[Result]]) -> Iterator[str]:
    """How the cases end in each form, by engine."""
    ends = {"pass": {judge.PASS}, "wrong": judge.SILENTLY_WRONG, "refused or failed": {judge.REFUSED, judge.FAILED}}
    rows = []
    for title in (GIVEN, *forms.TITLES):
        row: list[object] = [title]
        for all_of in results.values():
            outcomes = [outcome for result in all_of for outcome in _outcomes(result, title)]
            row += [sum(1 for outcome in outcomes if outcome in end) for end in ends.values()]
        rows.append(row)
    head = [f"{engine}: {end}" for engine in results for end in ends]
    yield from _table(["inputs", *head], rows)


def _outcomes(result: Result, title: str) -> list[str]:
    """Those of a case in a form; there are several where each of its inputs is the one constant in turn."""
    if title == GIVEN:
        return [result.verdict.outcome]
    named = [(name.split(":")[0], verdict) for name, verdict in result.forms.items()]
    return [verdict.outcome for name, verdict in named if name == title]


def by(results: dict[str, list[Result]], title: str, keys_of: Callable[[Result], Iterable[str]]) -> Iterator[str]:
    """Passes of all cases with a key."""
    keys = sorted({key for all_of in results.values() for result in all_of for key in keys_of(result)})
    rows = []
    for key in keys:
        shares = [_share([result for result in all_of if key in keys_of(result)]) for all_of in results.values()]
        rows.append([key, *shares])
    yield from _table([title, *results], rows)


def by_operator(results: dict[str, list[Result]]) -> Iterator[str]:
    """Operators that an engine does not pass completely, by the first operator of a case."""
    plain = {engine: [r for r in all_of if not r.case.is_expanded] for engine, all_of in results.items()}
    names = sorted({result.case.op_type for all_of in plain.values() for result in all_of})
    rows, n_full = [], 0
    for name in names:
        shares = [_share([r for r in all_of if r.case.op_type == name]) for all_of in plain.values()]
        if all("/" not in share for share in shares):
            n_full += 1
            continue
        rows.append([name, *shares])
    yield f"{n_full} of {len(names)} operators pass completely in every engine that is listed. The others:"
    yield ""
    yield from _table(["operator", *results], rows)


def opset_range(result: Result) -> str:
    opset = result.case.opset
    if opset == 0:
        return "none, only another domain's"
    low, high = next(bounds for bounds in OPSETS if bounds[0] <= opset <= bounds[1])
    return f"{low:02}–{high}" if high < 99 else f"{low} and above"


def form(result: Result) -> str:
    return "expanded into a function's operators" if result.case.is_expanded else "as an operator"


def dtypes(result: Result) -> list[str]:
    return sorted(result.case.dtypes)


def missing(results: dict[str, list[Result]]) -> Iterator[str]:
    """Operators and tensors without a record, by reason."""
    counts: dict[str, Counter[str]] = {}
    for engine, all_of in results.items():
        counts[engine] = sum((result.reasons for result in all_of), Counter())
    reasons = sorted({reason for count in counts.values() for reason in count})
    rows: list[list[object]] = [[reason, *(counts[engine][reason] for engine in results)] for reason in reasons]
    rows.append(["records", *(sum(r.n_operators for r in all_of) for all_of in results.values())])
    rows.append(["tensors in them", *(sum(r.n_tensors for r in all_of) for all_of in results.values())])
    yield from _table(["of the cases that run", *results], rows)


def replace_between(text: str, lines: Iterable[str]) -> str:
    """The document with other lines between its markers."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return "\n".join([before + BEGIN, *lines, END + after])


def _count(results: list[Result], outcome: str) -> int:
    return sum(1 for result in results if result.verdict.outcome == outcome)


def _share(results: list[Result]) -> str:
    """`5` if all of 5 pass, else `3 / 5`."""
    n_passed = _count(results, judge.PASS)
    return str(n_passed) if n_passed == len(results) else f"{n_passed} / {len(results)}"


def _table(head: list[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "| " + " | ".join("---" for _ in head) + " |"
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
