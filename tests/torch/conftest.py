"""Lets these tests use the parser of the end-to-end tests, and starts each with a fresh compiler."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

# Models of ONNX run in the embedded engine, whatever this environment has.
os.environ["OPSCOPE_ENGINE"] = "tract"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
pytest_plugins = ["sampling"]


@pytest.fixture(autouse=True)
def own_directory(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Some of TorchAir's options leave files in the working directory."""
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))


@pytest.fixture
def folder() -> Iterator[Path]:
    # MindSpore allows letters, digits, `-`, `_` and `/` in paths.
    with tempfile.TemporaryDirectory(prefix="opscope-") as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    import opscope.torch

    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opscope.torch.finish()
    opscope.torch.set_step(None)
    torch._dynamo.reset()
