"""The engines that models run in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnxruntime
from reference import N_THREADS


@dataclass(frozen=True)
class Engine:
    """`is_reference`: it is the library that computes the values to compare with, so every bit has to be the same."""

    name: str
    is_reference: bool
    # Whether operators inside Loop and Scan have records.
    shows_loops: bool

    def __str__(self) -> str:
        return self.name

    @property
    def options(self) -> list[object]:
        """The options with which `dump` runs a model on this engine, in the way of `reference.py`."""
        library = ["--engine-lib", library_path()] if self.is_reference else []
        return ["--engine", self.name, *library, "--threads", N_THREADS]


TRACT = Engine("tract", is_reference=False, shows_loops=False)
ONNX_RUNTIME = Engine("onnxruntime", is_reference=True, shows_loops=True)
ENGINES = (TRACT, ONNX_RUNTIME)


@cache
def library_path() -> Path:
    """The library that Python's package brings, next to its module."""
    folder = Path(onnxruntime.__file__).parent / "capi"
    found = [path for pattern in ("libonnxruntime.so*", "libonnxruntime*.dylib") for path in folder.glob(pattern)]
    assert len(found) == 1, f"one library expected in {folder}, found {found}"
    return found[0]
