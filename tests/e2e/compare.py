"""Whether a dumped tensor agrees with the reference."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from cases import Tolerance
from dump_data import DATA_TYPES
from numpy.typing import NDArray

# By their numbers in a dump file; numpy alone has no bfloat16.
DTYPES = {**DATA_TYPES, 27: ml_dtypes.bfloat16}


def difference(actual: NDArray, expected: NDArray, tolerance: Tolerance) -> str | None:
    """Describes in one line what is wrong with `actual`, or returns None."""
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    wrong = _differs_in_bits(actual, expected) if tolerance.is_exact else _wrong(actual, expected, tolerance)
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    found, wanted = actual[first], expected[first]
    return f"{wrong.sum()} of {wrong.size} values differ, first at {first}: {found}, expected {wanted}"


def as_converted(array: NDArray) -> NDArray:
    """The array that `convert` makes of it: numpy has no bfloat16, every value of which float32 has too."""
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array


def _differs_in_bits(actual: NDArray, expected: NDArray) -> NDArray[np.bool_]:
    def raw(array: NDArray) -> NDArray:
        return np.frombuffer(array.tobytes(), np.uint8).reshape(*array.shape, array.itemsize)

    return (raw(actual) != raw(expected)).any(axis=-1)


def _wrong(actual: NDArray, expected: NDArray, tolerance: Tolerance) -> NDArray[np.bool_]:
    if actual.dtype.kind != "f":
        if tolerance.steps and actual.dtype.itemsize == 1 and actual.dtype.kind in "iu":
            return np.abs(actual.astype(np.int16) - expected.astype(np.int16)) > tolerance.steps
        return actual != expected
    # longdouble, so that the largest float64 values may be subtracted.
    a, e = actual.astype(np.longdouble), expected.astype(np.longdouble)
    finite = np.isfinite(e)
    same_special = (a == e) | (np.isnan(a) & np.isnan(e))
    largest = np.abs(e[finite]).max(initial=0)
    allowed = tolerance.relative * np.abs(np.where(finite, e, 0)) + tolerance.of_max * largest
    with np.errstate(invalid="ignore"):
        close = np.abs(a - e) <= allowed
    return ~np.where(finite, close, same_special)
