"""Differences between tract and the reference that are known, each with its reason.

A reason holds for some operators, and for the elements of its condition. Everything else that differs is an
error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .expected import from_standard
from .judge import wrong
from .sample import SUMMED, Sample, Tolerance


@dataclass(frozen=True)
class Found:
    """One output of a sample at one step, with the expected one."""

    sample: Sample
    step: int
    index: int
    actual: NDArray
    wanted: NDArray

    def inputs(self) -> list[NDArray]:
        return list(self.sample.arrays("", self.step).values()) + [
            value.array for value in self.sample.inputs if value and value.is_constant
        ]

    def standard(self) -> NDArray | None:
        """The same output by ONNX's own implementation, if it has the type and shape."""
        standard = from_standard(self.sample)
        array = standard and standard.steps[self.step][self.index]
        is_like = array is not None and (array.dtype, array.shape) == (self.actual.dtype, self.actual.shape)
        return array if is_like else None


# Which elements may differ.
Condition = Callable[[Found], NDArray[np.bool_]]


@dataclass(frozen=True)
class Reason:
    op_types: frozenset[str]
    text: str
    condition: Condition


def reason(op_types: str, text: str, condition: Condition) -> Reason:
    return Reason(frozenset(op_types.split()), text, condition)


def zeros(found: Found) -> NDArray[np.bool_]:
    return (found.actual == 0) & (found.wanted == 0)


def by_standard(tolerance: Tolerance | None = None) -> Condition:
    """Elements that are as ONNX's own implementation has them."""

    def condition(found: Found) -> NDArray[np.bool_]:
        standard = found.standard()
        if standard is None:
            return np.zeros(found.actual.shape, bool)
        return ~wrong(found.actual, standard, tolerance or found.sample.tolerance)

    return condition


def has_nan(found: Found) -> NDArray[np.bool_]:
    is_there = any(bool(np.isnan(array).any()) for array in found.inputs() if array.dtype.kind == "f")
    return np.full(found.actual.shape, is_there)


def has_non_finite(found: Found) -> NDArray[np.bool_]:
    is_there = any(bool((~np.isfinite(array)).any()) for array in found.inputs() if array.dtype.kind == "f")
    return np.full(found.actual.shape, is_there)


def by_slope(found: Found) -> NDArray[np.bool_]:
    """As numpy chooses between the number and its product."""
    x, slope = (found.sample.inputs[i] for i in range(2))
    arrays = [value.other() if found.step == 1 else value.array for value in (x, slope)]
    return ~wrong(found.actual, np.where(arrays[0] < 0, arrays[0] * arrays[1], arrays[0]), SUMMED)


def by_float32(found: Found) -> NDArray[np.bool_]:
    """float64 that is right to the precision of float32."""
    if found.actual.dtype != np.float64:
        return np.zeros(found.actual.shape, bool)
    with np.errstate(over="ignore"):
        narrow = [array.astype(np.float32) for array in (found.actual, found.wanted)]
    return ~wrong(*narrow, SUMMED)


def largest(found: Found) -> NDArray[np.bool_]:
    """The largest number of the type, or of float32, in the place of a larger one."""
    limits = [float(np.finfo(dtype).max) for dtype in (found.wanted.dtype, np.float32)]
    return np.isin(np.abs(found.wanted), np.array(limits)) & (np.abs(found.actual) > np.abs(found.wanted))


def with_zero_alpha(found: Found) -> NDArray[np.bool_]:
    return np.full(found.actual.shape, found.sample.attributes.get("alpha") == 0) & np.isnan(found.wanted)


def is_integer(found: Found) -> NDArray[np.bool_]:
    return np.full(found.actual.shape, found.inputs()[0].dtype.kind in "iu")


def by_one_step(found: Found) -> NDArray[np.bool_]:
    if found.actual.dtype.kind not in "iu":
        return np.zeros(found.actual.shape, bool)
    return np.abs(found.actual.astype(np.int64) - found.wanted.astype(np.int64)) <= 1


def nearly(found: Found) -> NDArray[np.bool_]:
    return np.abs(found.actual - found.wanted) < 1e-3 * np.abs(found.wanted)


def single_group(found: Found) -> NDArray[np.bool_]:
    """All of what is normalised together is the same."""
    return (found.actual == 0) & np.isnan(found.wanted)


REASONS = [
    reason("Sign Max Min ReduceMax ReduceMin ScatterElements ScatterND GlobalMaxPool MaxPool Clip",
           "of zeros with either sign, which is the larger one is left open", zeros),
    reason("Where", "ONNX Runtime gives 0 for -0", zeros),
    reason("Sign", "the sign of NaN is NaN, as with numpy; ONNX Runtime gives 0",
           lambda found: np.isnan(found.actual)),
    reason("Clip",
           "without a bound all numbers stay, as in ONNX's implementation; the bounds of others are the largest ones",
           largest),
    reason("ReduceMax ReduceMin GlobalMaxPool ReduceLogSumExp",
           "a group with NaN gives NaN, as with numpy; ONNX Runtime passes over some of them",
           lambda found: np.isnan(found.actual) & has_nan(found)),
    reason("MaxPool", "NaN is passed over, as ONNX Runtime does for float32 alone", has_nan),
    reason("ArgMax ArgMin Hardmax TopK", "where NaN stands among numbers is left open", has_nan),
    reason("ScatterElements ScatterND", "whether NaN is larger than a number is left open", has_nan),
    reason("PRelu", "ONNX's implementation multiplies the slope by zero where there is none", by_slope),
    reason("LogSoftmax", "beside an infinity or NaN all is NaN; ONNX Runtime gives others for float64",
           lambda found: np.isnan(found.actual) & has_non_finite(found)),
    reason("Swish", "ONNX Runtime's sigmoid is an approximation", by_standard()),
    reason("Gelu", "ONNX Runtime takes the factors of float64 from float32", by_float32),
    reason("DFT", "ONNX Runtime takes the length of float64 from float32", by_float32),
    reason("Shrink", "ONNX Runtime computes it in float32, and ONNX's implementation as here",
           lambda found: by_standard()(found) | is_integer(found)),
    reason("GroupNormalization LayerNormalization RMSNormalization",
           "the standard's `stash_type` is float32, and ONNX Runtime computes float64 in float64", by_float32),
    reason("MeanVarianceNormalization", "the standard adds 1e-9 to the deviation, and ONNX Runtime does not",
           single_group),
    reason("Attention", "ONNX Runtime takes the scale of float64 from float32", by_float32),
    reason("ReduceMean", "the mean of nothing is NaN, as with numpy; ONNX Runtime gives 0", by_standard()),
    reason("GroupNormalization InstanceNormalization MeanVarianceNormalization",
           "numbers that are nearly alike cancel, and either engine is left with other digits", nearly),
    reason("Gemm", "a factor of zero leaves nothing of NaN; in some types ONNX Runtime gives NaN", with_zero_alpha),
    reason("Resize", "how a mean of integers is rounded is left open", by_one_step),
]


def accepted(found: Found) -> NDArray[np.bool_]:
    """Which elements have a reason to differ."""
    conditions = [entry.condition for entry in REASONS if found.sample.op_type in entry.op_types]
    every = np.zeros(found.actual.shape, bool)
    with np.errstate(all="ignore"):
        for condition in conditions:
            every = every | condition(found)
    return every


def difference(found: Found) -> str | None:
    """Describes in one line what is wrong with one output and has no reason, or returns None."""
    actual, wanted, index = found.actual, found.wanted, found.index
    if actual.dtype != wanted.dtype:
        return f"output {index} is {actual.dtype}, expected {wanted.dtype}"
    if actual.shape != wanted.shape:
        return f"output {index} is {list(actual.shape)}, expected {list(wanted.shape)}"
    bad = wrong(actual, wanted, found.sample.tolerance)
    if bad.any():
        bad &= ~accepted(found)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    values = [array[at] for array in found.inputs() if array.shape == wanted.shape]
    of = f" for {', '.join(map(str, values))}" if values else ""
    return f"output {index}: {bad.sum()} of {bad.size}, first at {list(at)}: {actual[at]}, expected {wanted[at]}{of}"
