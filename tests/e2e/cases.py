"""The models under test, the inputs they run with, and how exactly the values must agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models"
DIGITS = ROOT / "examples" / "digits"


@dataclass(frozen=True)
class Tolerance:
    """A difference may be `relative` of the value plus `of_max` of the largest finite value in the tensor.

    Integers and bool agree exactly, but for `steps` in 8-bit tensors, where rounding may fall to either side.
    """

    relative: float = 1e-4
    of_max: float = 1e-5
    steps: int = 0


SINGLE = Tolerance()
HALF = Tolerance(relative=2e-3, of_max=2e-3)
QUANTISED = Tolerance(relative=0, of_max=1e-2, steps=1)


@dataclass(frozen=True)
class Case:
    """`folder` is None for a model that `generate.py` builds; `inputs` names a file beside the model."""

    stem: str
    folder: Path | None
    inputs: str | None
    tolerance: Tolerance = SINGLE
    label: str = ""

    def __str__(self) -> str:
        return f"{self.stem}-{self.label}" if self.label else self.stem

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


def _generated(stem: str, label: str = "sample") -> Case:
    return Case(stem, None, f"{stem}.{label}.npz", label="" if label == "sample" else label)


DIGITS_CASE = Case("digits_cnn", DIGITS, "images.npy")

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
    _generated("nan"),
    _generated("non_finite"),
    _generated("dtypes"),
)
