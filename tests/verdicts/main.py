#!/usr/bin/env python3
"""Runs sets of cases through the binary, and compares what it says with what it said before.

usage: main.py --binary OPSCOPE [--engine-lib FILE] [--set NAME] [--only GLOB] [--update] [-v]

Each set is a module with `cases()`. `expected.json` has the outcome of each case: a change of the code that changes one
shows as better or worse. Ends with 1 if an outcome differs from the stored one and `--update` is not given.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from case import Case, Outcome, Said
from forms import Runner

# Modules with cases.
SETS = ("contract", "unusual", "inside")
EXPECTED = Path(__file__).with_name("expected.json")
# Every eleventh case is run with the other tests.
SAMPLE_EACH = 11


def all_cases(sets: Iterable[str] = SETS) -> Iterator[Case]:
    for name in sets:
        yield from importlib.import_module(name).cases()


def sample() -> list[Case]:
    """A tenth of all cases, of every kind."""
    return list(all_cases())[::SAMPLE_EACH]


def expected() -> dict[str, str]:
    return json.loads(EXPECTED.read_text())


def run_all(cases: list[Case], runner: Runner) -> list[tuple[Case, Said, Outcome]]:
    def run(case: Case) -> tuple[Case, Said, Outcome]:
        said = runner.run(case)
        return case, said, Outcome.judge(case.truth, said)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(run, cases))


def table(results: list[tuple[Case, Said, Outcome]]) -> str:
    """A row for each set, kind and soundness."""
    rows: dict[tuple[str, str], list[tuple[Case, Outcome]]] = collections.defaultdict(list)
    for case, _, outcome in results:
        rows[case.set_name, case.kind.rstrip(" 0123456789")].append((case, outcome))
        rows[case.set_name, "all sound" if case.truth.is_sound else "all faults"].append((case, outcome))
    titles = ("set", "kind", "pairs", "right", "named", "explained", "accused", "PASS", "INCOMPLETE", "exit codes")
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    for (set_name, kind), found in rows.items():
        is_sound = found[0][0].truth.is_sound
        exits = collections.Counter(outcome.exit for _, outcome in found)
        cells = (
            set_name,
            kind,
            len(found),
            sum(outcome.is_right(case.truth) for case, outcome in found),
            "-" if is_sound else sum(outcome.named for _, outcome in found),
            "-" if is_sound else sum(outcome.explained for _, outcome in found),
            sum(outcome.accused for _, outcome in found),
            sum(outcome.exit == 0 for _, outcome in found),
            sum(outcome.word == "INCOMPLETE" for _, outcome in found),
            ", ".join(f"{code}: {n}" for code, n in sorted(exits.items())),
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def changed(results: list[tuple[Case, Said, Outcome]], stored: dict[str, str]) -> list[str]:
    """Cases whose outcome is not the stored one, in words."""
    lines = []
    for case, said, outcome in results:
        before = stored.get(case.name)
        if before == outcome.to_text():
            continue
        if before is None:
            word = "new"
        else:
            marks = [_score(case, known) for known in (Outcome.from_text(before), outcome)]
            word = "better" if marks[1] > marks[0] else "worse" if marks[1] < marks[0] else "other"
        lines.append(f"{word}: {case.name}: {before} -> {outcome.to_text()}: {said.headline[:200]}")
    return lines


def _score(case: Case, outcome: Outcome) -> tuple[bool, bool, bool]:
    return outcome.is_right(case.truth), not outcome.accused, outcome.explained


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--engine-lib")
    parser.add_argument("--set", action="append", choices=SETS)
    parser.add_argument("--only", default="*")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    cases = [case for case in all_cases(options.set or SETS) if fnmatch.fnmatch(case.name, options.only)]
    with tempfile.TemporaryDirectory() as work:
        results = run_all(cases, Runner(options.binary.resolve(), options.engine_lib, Path(work)))
    print(table(results))
    for case, said, outcome in results:
        if options.verbose or not outcome.is_right(case.truth):
            print(
                f"{'right' if outcome.is_right(case.truth) else 'WRONG'} {case.name}: {said.exit} {said.headline[:300]}"
            )
    stored = expected() if EXPECTED.exists() else {}
    lines = changed(results, stored)
    print("\n".join(lines))
    if options.update:
        known = {case.name for case in all_cases()}
        kept = {name: text for name, text in stored.items() if name in known}
        kept |= {case.name: outcome.to_text() for case, _, outcome in results}
        EXPECTED.write_text(json.dumps(dict(sorted(kept.items())), indent=0, ensure_ascii=False) + "\n")
        return 0
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
