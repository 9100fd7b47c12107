"""A pytest plugin that runs a sample of generated cases, drawn for each commit, or all with `--exhaustive`.

`@pytest.mark.sampled(0.1)` marks the cases of a test function, or of every function of a module, as a family of
generated ones, of which a tenth runs by default. With `each="dtype"` at least one case of each value of that parameter
runs. A case is in the sample by a hash of its file, its parameters and the seed: every process draws the same, and so
do functions of a file with the same cases, which share what takes long to make.

The seed is `OPSCOPE_TEST_SEED`, else the commit, or the version outside of git.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
SEED, EXHAUSTIVE = "OPSCOPE_TEST_SEED", "OPSCOPE_EXHAUSTIVE"
MARKER = 'sampled(share, each=""): a family of generated cases, of which a share runs without `--exhaustive`'


@cache
def seed() -> str:
    return os.environ.get(SEED) or commit(ROOT) or version(ROOT)


def commit(root: Path) -> str:
    """The commit that is checked out; empty outside of git."""
    # A directory above may be another project's repository.
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def version(root: Path) -> str:
    text = (root / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    assert found, "Cargo.toml states no version"
    return found[1]


def is_exhaustive() -> bool:
    return os.environ.get(EXHAUSTIVE, "0") not in ("", "0")


def sample(cases: Iterable[T], share: float, name: Callable[[T], str] = str) -> list[T]:
    """A share of the cases, at least one, in their order; all of them in an exhaustive run."""
    cases = list(cases)
    if is_exhaustive() or not cases:
        return cases
    names = [name(case) for case in cases]
    chosen = drawn(names, share)
    return [case for case, text in zip(cases, names, strict=True) if text in chosen]


def drawn(names: list[str], share: float, groups: list[int] | None = None) -> set[str]:
    """A share of the names, rounded up, with at least one of each group."""
    assert 0 < share <= 1, f"a share of {share}"
    group_of = dict(zip(names, groups or [0] * len(names), strict=True))
    ranked = sorted(group_of, key=lambda name: hashlib.blake2b(f"{seed()}\n{name}".encode()).digest())
    first_of_group = {group_of[name]: name for name in reversed(ranked)}
    chosen = set(first_of_group.values())
    # 0.1 * 30 is a little more than 3.
    n_chosen = math.ceil(round(share * len(ranked), 6))
    others = [name for name in ranked if name not in chosen]
    return chosen | set(others[: max(0, n_chosen - len(chosen))])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="run all generated cases, not a sample of them")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if config.getoption("--exhaustive"):
        os.environ[EXHAUSTIVE] = "1"
    # Processes that tests start draw the same.
    os.environ[SEED] = seed()


# Behind `-k`: of the cases that are asked for, at least one runs.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if is_exhaustive():
        return
    chosen = {id(item) for family in families(items) for item in sample_of(family)}
    skipped = [item for item in items if is_sampled(item) and id(item) not in chosen]
    config.hook.pytest_deselected(items=skipped)
    items[:] = [item for item in items if not is_sampled(item) or id(item) in chosen]


def is_sampled(item: pytest.Item) -> bool:
    return item.get_closest_marker("sampled") is not None


def families(items: list[pytest.Item]) -> Iterator[list[pytest.Item]]:
    """The cases of each sampled function."""
    by_function: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if is_sampled(item):
            by_function[item.nodeid.split("[", 1)[0]].append(item)
    yield from by_function.values()


def sample_of(family: list[pytest.Item]) -> list[pytest.Item]:
    marker = family[0].get_closest_marker("sampled")
    assert marker
    share, each = marker.args[0], marker.kwargs.get("each", "")
    groups = [case_group(item, each) if each else 0 for item in family]
    chosen = drawn([name_of(item) for item in family], share, groups)
    return [item for item in family if name_of(item) in chosen]


def case_group(item: pytest.Item, parameter: str) -> int:
    """An identity of a parameter's values: cases share the objects."""
    return id(item.callspec.params[parameter])  # type: ignore[attr-defined]


def name_of(item: pytest.Item) -> str:
    """The file and the parameters, whatever directory pytest was started in."""
    path = item.path.relative_to(ROOT) if item.path.is_relative_to(ROOT) else Path(item.path.name)
    return f"{path.as_posix()}[{item.name.partition('[')[2]}"


def line() -> str:
    if is_exhaustive():
        return "sample: all cases"
    return f"sample: seed {seed()} (repeat with {SEED}={seed()}, run all with --exhaustive)"


def pytest_report_header() -> str:
    return line()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # `-q` leaves the header out.
    if terminalreporter.verbosity < 0:
        terminalreporter.write_line(line())
