"""Fixtures of the end-to-end tests: the binary, the generated models, and one finished dump for each case."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb_cli
import dump_tree
import pytest
import reference
from binary import Binary, input_options
from cases import MODELS, RUNS, Case, Run, Tolerance
from engines import ENGINES, Engine
from numpy.typing import NDArray
from reference import Operator

pytest_plugins = ["sampling"]

RESNET_SIZE = 64

# `opscope sql` finds DuckDB's program there.
os.environ["PATH"] = os.pathsep.join([str(Path(duckdb_cli.__file__).parent), os.environ["PATH"]])


@dataclass(frozen=True)
class Dumped:
    """One model after `dump` and `convert`, with ONNX Runtime's results for it."""

    case: Case
    engine: Engine
    operators: list[Operator]
    report: dict[str, Any]
    out_dir: Path
    step_dir: Path
    converted: dict[str, NDArray]
    started_us: int
    finished_us: int

    @property
    def tolerance(self) -> Tolerance:
        return self.case.tolerance_of(self.engine)

    @property
    def files(self) -> list[dump_tree.DumpFile]:
        return dump_tree.read_step(self.step_dir)

    @property
    def pairs(self) -> list[tuple[Operator, dump_tree.DumpFile]]:
        return dump_tree.pair(self.operators, self.files)


@pytest.fixture(scope="session", params=ENGINES, ids=str)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Tests that use it, or `opscope`, run once with each."""
    return request.param


@pytest.fixture(scope="session")
def opscope(engine: Engine) -> Binary:
    return binary(engine)


@pytest.fixture
def folder() -> Iterator[Path]:
    # MindSpore allows letters, digits, `-`, `_` and `/` in paths.
    with tempfile.TemporaryDirectory(prefix="opscope-") as name:
        yield Path(name)


@pytest.fixture(scope="session")
def tool() -> Binary:
    """For what runs no model."""
    return binary()


def binary(engine: Engine | None = None) -> Binary:
    try:
        return Binary.from_environment(engine)
    except LookupError as error:
        reason = str(error)
    pytest.fail(reason, pytrace=False)


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    command = [sys.executable, MODELS / "generate.py", folder, "--resnet-size", str(RESNET_SIZE)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="session")
def operators_of(generated: Path) -> Callable[[Case, bool], list[Operator]]:
    """The reference values of a case, with or without those inside loops, computed once."""

    @cache
    def lookup(case: Case, shows_loops: bool = False) -> list[Operator]:
        return reference.run(case.model_path(generated), case.load_inputs(generated), shows_loops)

    return lookup


def sampled(run: Run) -> object:
    return pytest.param(run, id=str(run), marks=pytest.mark.sampled(0.35))


@pytest.fixture(scope="module", params=map(sampled, RUNS))
def dumped(
    request: pytest.FixtureRequest,
    generated: Path,
    operators_of: Callable[[Case, bool], list[Operator]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Dumped]:
    run: Run = request.param
    case, engine, opscope = run.case, run.engine, binary(run.engine)
    folder = tmp_path_factory.mktemp(str(case))
    out_dir, npy_dir = folder / "dump", folder / "npy"
    inputs = input_options(case.load_inputs(generated), folder / "inputs")
    started_us = time.time_ns() // 1000
    report = opscope.dump(case.model_path(generated), "--form", "acl", "--out", out_dir, *inputs)
    finished_us = time.time_ns() // 1000
    steps = dump_tree.step_dirs(out_dir, case.stem)
    assert list(steps) == [0]
    opscope.convert(steps[0], npy_dir)
    converted = dump_tree.read_converted(npy_dir)
    operators = operators_of(case, engine.shows_loops)
    yield Dumped(case, engine, operators, report, out_dir, steps[0], converted, started_us, finished_us)
    shutil.rmtree(folder)
