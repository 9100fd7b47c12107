"""Whether an engine's values are those that are expected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .sample import Tolerance

# How much coarser or finer than float32 a type is.
PRECISION = {"float16": 2.0**13, "float32": 1.0, "float64": 2.0**-20}


def wrong(found: NDArray, wanted: NDArray, tolerance: Tolerance) -> NDArray[np.bool_]:
    """Which elements differ."""
    if wanted.dtype.kind != "f":
        if tolerance.steps:
            return np.abs(found.astype(np.int64) - wanted.astype(np.int64)) > tolerance.steps
        return np.asarray(found != wanted)
    a, e = found.astype(np.longdouble), wanted.astype(np.longdouble)
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    finite = np.isfinite(e)
    scale = PRECISION[wanted.dtype.name]
    largest = np.abs(e[finite]).max(initial=0)
    tiny = np.finfo(wanted.dtype).smallest_subnormal
    allowed = scale * (tolerance.relative * np.abs(np.where(finite, e, 0)) + tolerance.of_max * largest)
    allowed = allowed + scale * tolerance.absolute + (2 * tiny if tolerance.relative else 0)
    with np.errstate(invalid="ignore"):
        close = np.abs(a - e) <= allowed
    return ~np.where(finite & np.isfinite(a), close, same) | _has_other_sign(found, wanted, tolerance)


def _has_other_sign(found: NDArray, wanted: NDArray, tolerance: Tolerance) -> NDArray[np.bool_]:
    """Zeros of the other sign, where nothing is rounded."""
    if tolerance.relative or tolerance.absolute:
        return np.zeros(found.shape, bool)
    return (found == 0) & (wanted == 0) & (np.signbit(found) != np.signbit(wanted))
