"""The sample of generated cases: the same for a seed, another for another, and some of every family."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import sampling

FAMILIES = """
import pytest

@pytest.mark.sampled(0.1)
@pytest.mark.parametrize("number", range(40))
def test_numbers(number): pass

@pytest.mark.sampled(0.1, each="kind")
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("kind", ["a", "b", "c"])
def test_kinds(kind, number): pass

@pytest.mark.sampled(0.1)
@pytest.mark.parametrize("number", range(2))
def test_few(number): pass

@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("number", range(40))
def test_numbers_as_well(number): pass

@pytest.mark.parametrize("number", range(3))
def test_written_by_hand(number): pass
"""
SIZES = {"test_numbers": 40, "test_kinds": 15, "test_few": 2, "test_numbers_as_well": 40, "test_written_by_hand": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    (folder / "test_families.py").write_text(FAMILIES)
    return folder


def pytest_output(folder: Path, seed: str, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "sampling", "-q", *options]
    environment = os.environ | {"PYTHONPATH": str(Path(sampling.__file__).parent), sampling.SEED: seed}
    environment.pop(sampling.EXHAUSTIVE, None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def collected(folder: Path, seed: str, *options: str) -> list[str]:
    lines = pytest_output(folder, seed, "--collect-only", *options).splitlines()
    return [line.partition("::")[2] for line in lines if "::" in line]


def sizes(cases: list[str]) -> dict[str, int]:
    return dict(Counter(case.partition("[")[0] for case in cases))


def test_a_seed_gives_one_sample(folder: Path) -> None:
    cases = collected(folder, "one")
    assert collected(folder, "one") == cases
    assert collected(folder, "two") != cases
    expected = {"test_numbers": 4, "test_kinds": 3, "test_few": 1, "test_numbers_as_well": 8, "test_written_by_hand": 3}
    assert sizes(cases) == expected
    assert {case.partition("[")[2][0] for case in cases if case.startswith("test_kinds")} == {"a", "b", "c"}
    # What cases of one function make, those of the other can use.
    numbers, more = (
        {case.partition("[")[2] for case in cases if case.startswith(f"{name}[")}
        for name in ("test_numbers", "test_numbers_as_well")
    )
    assert numbers < more


def test_processes_that_share_the_work_draw_the_same(folder: Path) -> None:
    output = pytest_output(folder, "one", "-n", "2", "--dist", "loadfile")
    assert "19 passed" in output and f"{sampling.SEED}=one" in output


def test_an_exhaustive_run_has_all_cases(folder: Path) -> None:
    assert sizes(collected(folder, "one", "--exhaustive")) == SIZES


def test_cases_that_are_asked_for_run(folder: Path) -> None:
    for number in (10, 20, 30):
        assert len(collected(folder, "one", "-k", f"test_numbers and {number} and not well")) == 1


def test_seeds_come_to_all_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [str(number) for number in range(40)]
    n_runs: Counter[str] = Counter()
    for number in range(200):
        monkeypatch.setattr(sampling, "seed", lambda number=number: f"seed {number}")
        chosen = sampling.drawn(names, 0.1)
        assert len(chosen) == 4
        n_runs.update(chosen)
    assert set(n_runs) == set(names)
    # 20 each, if no case has an advantage; five standard deviations.
    assert max(n_runs.values()) < 42


def test_lists_are_sampled_as_cases_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "is_exhaustive", lambda: False)
    numbers = list(range(30))
    chosen = sampling.sample(numbers, 0.1)
    assert len(chosen) == 3 and chosen == sorted(chosen)
    assert sampling.sample([], 0.1) == []
    monkeypatch.setattr(sampling, "is_exhaustive", lambda: True)
    assert sampling.sample(numbers, 0.1) == numbers


def test_outside_of_git_the_seed_is_the_version(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "1.2.3"\nrust-version = "1.95"\n')
    assert sampling.commit(tmp_path) == ""
    assert sampling.version(tmp_path) == "1.2.3"


def test_the_seed_of_a_checkout_is_its_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "-m", "first")
    first = sampling.commit(tmp_path)
    assert first == git("rev-parse", "HEAD")
    git("commit", "--quiet", "--allow-empty", "-m", "second")
    assert sampling.commit(tmp_path) != first
