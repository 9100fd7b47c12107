"""Runs of many ranks for the tests of shared work, and the command line that works on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
pytest_plugins = ["sampling"]

GENERATOR = Path(__file__).parents[1] / "ranks" / "generate.py"
N_RANKS, N_STEPS = 4, 2
# Processes of tests stay on this machine, and send no usage reports.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Without this Ray uses another of this machine's addresses instead of loopback, where nothing listens.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: bytes
    said: str


@dataclass(frozen=True)
class Tool:
    """The command line: the binary, or the Python package's."""

    words: tuple[str, ...]

    def run(self, *arguments: object, cwd: Path | None = None) -> Done:
        words = [*self.words, *map(str, arguments)]
        done = subprocess.run(words, cwd=cwd, capture_output=True, timeout=TIMEOUT_SECONDS)
        return Done(done.returncode, done.stdout, done.stderr.decode())

    def compared(self, folder: Path, target: Path, golden: Path, *arguments: object) -> tuple[int, bytes, list[bytes]]:
        """The exit code, the words and the files of a comparison."""
        folder.mkdir()
        files = [folder / f"result.{form}" for form in ("json", "jsonl", "csv")]
        reports = [word for file in files for word in (f"--{file.suffix[1:]}", file)]
        done = self.run("compare", target, golden, *reports, *arguments)
        assert done.code in (0, 1, 4), done.said
        return done.code, done.out, [file.read_bytes() for file in files]


@pytest.fixture(scope="session")
def tool() -> Tool:
    path = os.environ.get("OPSCOPE")
    if not path:
        pytest.fail("set OPSCOPE to the built binary", pytrace=False)
    return Tool((str(Path(path).resolve()),))


@pytest.fixture(scope="session")
def package() -> Tool:
    return Tool((sys.executable, "-m", "opscope"))


def generated(folder: Path, *options: object) -> Path:
    words: Sequence[object] = (sys.executable, GENERATOR, folder, "--dp", N_RANKS // 2, "--tp", 2, "--steps", N_STEPS)
    subprocess.run([*map(str, words), *map(str, options)], check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("golden") / "golden")


def sampled(fault: str | None) -> object:
    return pytest.param(fault, id=str(fault), marks=pytest.mark.sampled(0.4))


@pytest.fixture(scope="session", params=map(sampled, [None, "nan", "drift", "fuse", "flip"]))
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is sound, and some with a fault: of values, of replicas, of operators."""
    options = ["--fault", request.param] if request.param else []
    return generated(tmp_path_factory.mktemp("target") / "target", *options)


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("faulty") / "faulty", "--fault", "nan")


@pytest.fixture
def changed(golden: Path, tmp_path: Path) -> Path:
    """A copy that a test may change, with the times of the files."""
    return Path(shutil.copytree(golden, tmp_path / "changed"))
