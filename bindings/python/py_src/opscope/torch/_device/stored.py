"""Final rows of whole tensors in Triton, computed once from all parts."""

import triton
import triton.language as tl

from .parts import NOWHERE
from .stripes import KEY_HIGH, KEY_LOW, mix


@triton.jit
def store(to, word: tl.constexpr, value):
    """Stores a scalar: bits of floats and of the hash, values of others."""
    if (value.dtype == tl.float64) or (value.dtype == tl.uint64):
        tl.store(to + word, value.to(tl.int64, bitcast=True))
    else:
        tl.store(to + word, value.to(tl.int64))


@triton.jit
def _root(up, none, down):
    """The square root of a sum of squares in three parts, each scaled by 2^1200 relative to the
    previous."""
    SMALLER: tl.constexpr = 2.0**-600
    if down > 0.0:
        root = tl.sqrt(down + none * SMALLER * SMALLER) * 2.0**600
    elif (none > 0.0) | (up == 0.0):
        root = tl.sqrt(none + up * SMALLER * SMALLER)
    else:
        root = tl.sqrt(up) * SMALLER
    return root


@triton.jit
def store_row(row, part, up, none, down, n_bytes, HAS_HISTOGRAM: tl.constexpr):
    """Stores the statistics of a whole tensor, with infinities added."""
    n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg_zero = part[0], part[1], part[2], part[3], part[4], part[5]
    smallest, largest, total, magnitudes, deviation = part[9], part[10], part[11], part[12], part[15]
    inf = tl.full((), float("inf"), tl.float64)
    nan = tl.full((), float("nan"), tl.float64)
    zero = tl.full((), 0.0, tl.float64)
    # From bits, because some versions of Triton compile a literal -0.0 to zero.
    minus_zero = tl.full((), -0x8000000000000000, tl.int64).to(tl.float64, bitcast=True)
    n_numbers = n - n_nan
    n_finite = n_numbers - n_pos_inf - n_neg_inf
    # Comparison does not distinguish signed zeros; their counts do.
    smallest = tl.where(smallest == 0.0, tl.where(n_neg_zero > 0, minus_zero, zero), smallest)
    largest = tl.where(largest == 0.0, tl.where(n_zero > n_neg_zero, zero, minus_zero), largest)
    smallest = tl.where(n_neg_inf > 0, -inf, tl.where(n_finite > 0, smallest, inf))
    largest = tl.where(n_pos_inf > 0, inf, tl.where(n_finite > 0, largest, -inf))
    total = tl.where(n_pos_inf > 0, tl.where(n_neg_inf > 0, nan, inf), tl.where(n_neg_inf > 0, -inf, total))
    has_infinity = n_pos_inf + n_neg_inf > 0
    divisor = tl.maximum(n_numbers, 1).to(tl.float64)
    mean = tl.where(n_numbers > 0, total / divisor, nan)
    std = tl.where((n_numbers > 0) & (has_infinity == 0), tl.sqrt(tl.maximum(deviation, 0.0) / divisor), nan)
    # If sums overflowed in both directions, the deviation is unknown.
    std = tl.where(deviation == deviation, std, nan)
    for word in tl.static_range(9):
        store(row, word, part[word])
    store(row, 9, smallest)
    store(row, 10, largest)
    store(row, 11, total)
    store(row, 12, tl.where(has_infinity, inf, magnitudes))
    store(row, 13, tl.where(has_infinity, inf, _root(up, none, down)))
    store(row, 14, mean)
    store(row, 15, std)
    for word in tl.static_range(16, 19):
        store(row, word, tl.where(part[word] == NOWHERE, -1, part[word]))
    store(row, 19, mix(part[19] + n_bytes.to(tl.uint64) * KEY_LOW))
    store(row, 20, mix(part[20] + n_bytes.to(tl.uint64) * KEY_HIGH))
    if HAS_HISTOGRAM:
        # The histogram is added later.
        tl.store(row + 21 + tl.arange(0, 128), tl.zeros((128,), tl.int64))
