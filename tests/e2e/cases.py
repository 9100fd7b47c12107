"""The models under test, the inputs they run with, and how exactly the values must agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import ENGINES, ONNX_RUNTIME, Engine
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models"
DIGITS = ROOT / "examples" / "digits"


@dataclass(frozen=True)
class Tolerance:
    """A difference may be `relative` of the value plus `of_max` of the largest finite value in the tensor.

    Integers and bool agree exactly, but for `steps` in 8-bit tensors, where rounding may fall to either side. With
    `is_exact` every bit agrees.
    """

    relative: float = 1e-4
    of_max: float = 1e-5
    steps: int = 0
    is_exact: bool = False


EXACT = Tolerance(is_exact=True)
SINGLE = Tolerance()
HALF = Tolerance(relative=2e-3, of_max=2e-3)
QUANTISED = Tolerance(relative=0, of_max=1e-2, steps=1)


@dataclass(frozen=True)
class Case:
    """`folder` is None for a model that `generate.py` builds; `inputs` names a file next to the model.

    `tolerance` is for engines other than the one that computes the reference.
    """

    stem: str
    folder: Path | None
    inputs: str | None
    tolerance: Tolerance = SINGLE
    label: str = ""
    engines: tuple[Engine, ...] = ENGINES

    def __str__(self) -> str:
        return f"{self.stem}-{self.label}" if self.label else self.stem

    def tolerance_of(self, engine: Engine) -> Tolerance:
        return EXACT if engine.is_reference else self.tolerance

    def model_path(self, generated: Path) -> Path:
        return (self.folder or generated) / f"{self.stem}.onnx"

    def load_inputs(self, generated: Path) -> dict[str, NDArray]:
        if self.inputs is None:
            image = np.random.default_rng(0).standard_normal((1, 3, 224, 224))
            return {"data_0": image.astype(np.float32)}
        path = (self.folder or generated) / self.inputs
        if path.suffix == ".npy":
            return {"image": np.load(path)}
        with np.load(path) as arrays:
            return {key.removeprefix("in."): arrays[key] for key in arrays if not key.startswith("out.")}


def _stored(stem: str, tolerance: Tolerance = SINGLE) -> Case:
    return Case(stem, MODELS, f"{stem}.sample.npz", tolerance)


def _generated(stem: str, label: str = "sample", tolerance: Tolerance = SINGLE) -> Case:
    return Case(stem, None, f"{stem}.{label}.npz", tolerance, "" if label == "sample" else label)


def _only_onnx_runtime(stem: str) -> Case:
    return Case(stem, None, f"{stem}.sample.npz", engines=(ONNX_RUNTIME,))


DIGITS_CASE = Case("digits_cnn", DIGITS, "images.npy")

ARCHITECTURES = (
    _generated("resnet50"),
    _generated("resnet50_qdq", tolerance=QUANTISED),
    _generated("mobilenet_v3"),
    _generated("vit"),
    _generated("bert"),
    _generated("gpt2"),
    _generated("swin"),
    _only_onnx_runtime("seq2seq"),
)
CASES = (
    DIGITS_CASE,
    _stored("shapes_cnn_f32"),
    _stored("shapes_cnn_f16", HALF),
    _stored("shapes_cnn_qdq_int8", QUANTISED),
    _stored("char_lm"),
    Case("light_squeezenet", MODELS, None),
    _generated("resnet18"),
    _generated("transformer"),
    _generated("control_flow", "then"),
    _generated("control_flow", "else"),
    _generated("multi_io"),
    _generated("scan"),
    _generated("recurrent"),
    _generated("constants"),
    _generated("nan"),
    _generated("non_finite"),
    _generated("dtypes"),
    _only_onnx_runtime("loop"),
    _only_onnx_runtime("nested_loops"),
    _only_onnx_runtime("qoperator"),
    _only_onnx_runtime("bfloat16"),
    *ARCHITECTURES,
)
# Models with values that are no arrays.
TEXT = _only_onnx_runtime("text")
SEQUENCES = _only_onnx_runtime("sequences")


@dataclass(frozen=True)
class Run:
    """A case in an engine."""

    case: Case
    engine: Engine

    def __str__(self) -> str:
        return f"{self.engine}-{self.case}"


def runs(cases: Iterable[Case]) -> list[Run]:
    """Each case in each engine that can run it."""
    return [Run(case, engine) for case in cases for engine in case.engines]


def parameters(some: Iterable[Run]) -> list[Any]:
    """For a test with the parameters `engine`, which is indirect, and `case`."""
    return [pytest.param(run.engine, run.case, id=str(run)) for run in some]


RUNS = runs(CASES)
