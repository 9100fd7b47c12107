"""The verdict on one case."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PASS = "pass"
WRONG_VALUE = "wrong value"
WRONG_DTYPE = "wrong dtype"
WRONG_SHAPE = "wrong shape"
# Refused before anything ran, with a message (exit codes 2 and 3).
REFUSED = "refused"
# An operator failed while it ran, by an error or a panic of the engine, and the message names it (exit code 4).
FAILED = "failed"
# Ended by a signal, by a panic of the tool, not at all, or without a message.
CRASH = "crash"
# Right results, but an operator or tensor was not shown.
UNTAPPED = "untapped"

OUTCOMES = [PASS, WRONG_VALUE, WRONG_DTYPE, WRONG_SHAPE, REFUSED, FAILED, CRASH, UNTAPPED]
SILENTLY_WRONG = {WRONG_VALUE, WRONG_DTYPE, WRONG_SHAPE}

# Two units in the last place of bfloat16.
BFLOAT16_RTOL = 2.0**-6


@dataclass(frozen=True)
class Verdict:
    outcome: str
    detail: str = ""


def compare(name: str, found: NDArray, wanted: NDArray, rtol: float, atol: float) -> Verdict:
    """One output, by the rules of ONNX's own runner: type, shape, then values within the tolerance."""
    is_text = wanted.dtype.kind == "U"
    if found.dtype != wanted.dtype and not (is_text and found.dtype.kind == "U"):
        return Verdict(WRONG_DTYPE, f"`{name}` is {found.dtype}, expected {wanted.dtype}")
    if found.shape != wanted.shape:
        return Verdict(WRONG_SHAPE, f"`{name}` is {list(found.shape)}, expected {list(wanted.shape)}")
    wrong = _wrong(found, wanted, rtol, atol)
    if not wrong.any():
        return Verdict(PASS)
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    detail = f"`{name}`: {wrong.sum()} of {wrong.size}, first at {list(at)}: {found[at]}, expected {wanted[at]}"
    return Verdict(WRONG_VALUE, detail)


def _wrong(found: NDArray, wanted: NDArray, rtol: float, atol: float) -> NDArray[np.bool_]:
    if wanted.dtype.kind in "Ub":
        return np.asarray(found != wanted)
    if wanted.dtype.name == "bfloat16":
        rtol = max(rtol, BFLOAT16_RTOL)
    if wanted.dtype.kind == "c":
        wide = np.complex128
    elif wanted.dtype.kind in "iu":
        wide = np.longdouble
    else:
        wide = np.float64
    with np.errstate(invalid="ignore"):
        return np.asarray(~np.isclose(found.astype(wide), wanted.astype(wide), rtol, atol, equal_nan=True))
