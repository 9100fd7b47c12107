"""The outputs that an operator has to give: ONNX Runtime's, or those of ONNX's own implementation in Python."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass

# Before the library is loaded: it would write below the home folder.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from .sample import Sample, model_of

START = "s_"
N_STEPS = 2
# ONNX's own implementation has these operators in the form of this opset and later ones alone.
NEWER_ONLY = {"Hardmax": 13, "Softmax": 13, "LogSoftmax": 13}
# These it gets wrong itself: shapes of pools, NaN as padding, groups, the last channels, types that are cut, positions
# that are rounded, types of results.
UNRELIABLE = {"AveragePool", "Attention", "ConvTranspose", "GlobalMaxPool", "GridSample", "LRN", "MaxPool", "Resize"}
UNRELIABLE |= {"Trilu"}


@dataclass(frozen=True)
class Expected:
    """Outputs at the two steps with different inputs, and who says so."""

    source: str
    steps: list[list[NDArray]]


def expected(sample: Sample) -> Expected | None:
    """None for a model that no engine accepts."""
    return from_library(sample) or from_standard(sample)


def from_library(sample: Sample) -> Expected | None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        model = model_of({START: sample}).SerializeToString()
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        steps = [session.run(None, sample.arrays(START, step)) for step in range(N_STEPS)]
    except Exception:  # noqa: BLE001, the library has no common class of errors
        return None
    return Expected("ONNX Runtime", [[np.asarray(array) for array in step] for step in steps])


def from_standard(sample: Sample) -> Expected | None:
    if sample.op_type in UNRELIABLE or sample.opset < NEWER_ONLY.get(sample.op_type, 0):
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            evaluator = ReferenceEvaluator(model_of({START: sample}))
            steps = [evaluator.run(None, sample.arrays(START, step)) for step in range(N_STEPS)]
    except Exception:  # noqa: BLE001, whatever an implementation in Python may raise
        return None
    return Expected("onnx.reference", [[np.asarray(array) for array in step] for step in steps])
