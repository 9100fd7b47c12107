"""The cases that every test run takes, and what became of each form when the file was written."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from cases import Case
from run import Result

PATH = Path(__file__).with_name("sample.json")
N_CASES = 200
# Operators with a state, and one that calculates otherwise with values that are computed: all of their cases.
WHOLE = {"GRU", "LSTM", "Loop", "Mod", "RNN", "Scan"}


def choose(cases: list[Case]) -> list[Case]:
    """About `N_CASES`: those of `WHOLE`, each type of element and each operator once, then by digest of the name.

    The digest spreads the choice evenly and does not change when cases are added elsewhere.
    """
    ranked = sorted(cases, key=lambda case: hashlib.sha256(case.name.encode()).hexdigest())
    chosen = {case.name: case for case in ranked if case.op_type in WHOLE and not case.is_expanded}
    seen: set[tuple[str, str]] = set()
    for case in ranked:
        new = {("type", dtype) for dtype in case.dtypes} | {("opset", str(case.opset))}
        if not case.is_expanded:
            new.add(("operator", case.op_type))
        if len(chosen) < N_CASES and new - seen:
            seen |= new
            chosen[case.name] = case
    for case in ranked:
        if len(chosen) >= N_CASES:
            break
        chosen.setdefault(case.name, case)
    return [chosen[name] for name in sorted(chosen)]


def save(results: dict[str, list[Result]], chosen: list[Case]) -> None:
    """Merge the outcomes of the engines that ran with those of the others."""
    stored = load() if PATH.exists() else {}
    table: dict[str, dict[str, str]] = {case.name: dict(stored.get(case.name, {})) for case in chosen}
    for engine, all_of in results.items():
        for result in all_of:
            if result.case.name in table:
                table[result.case.name][engine] = outcome(result)
    PATH.write_text(json.dumps(table, indent=0, sort_keys=True) + "\n")


def outcome(result: Result) -> str:
    """The outcome of a case, and of those of its forms that ended otherwise."""
    own = result.verdict.outcome
    others = [f"{form}: {v.outcome}" for form, v in result.forms.items() if v.outcome != own]
    return "; ".join([own, *others])


def load() -> dict[str, dict[str, str]]:
    return json.loads(PATH.read_text())


def changes(results: dict[str, list[Result]]) -> list[str]:
    """Lists the outcomes that differ from the stored ones, for better or worse."""
    stored = load()
    lines = []
    for engine, all_of in results.items():
        for result in all_of:
            before = stored.get(result.case.name, {}).get(engine)
            if before != outcome(result):
                verdicts = (result.verdict, *result.forms.values())
                detail = "".join(f"; {text}" for text in dict.fromkeys(v.detail for v in verdicts if v.detail))
                lines.append(f"{engine} {result.case.name}: {outcome(result)}, stored is {before}{detail}")
    return lines
