"""The Triton kernels that compute the statistics of tensors: one pass over the elements, and a
small one that joins parts.

A program processes whole stripes. Their assignment and the order of joining depend on the tensor's
size alone, so the same tensor produces the same bits in each run.
"""

import triton
import triton.language as tl

from .elements import LINE, STRIPE_LINES, elements_at
from .parts import NOWHERE, PARTIAL_WORDS, numbers_of_stripes
from .stored import store, store_row
from .stripes import two_sum

# One compiled kernel serves all sizes and addresses.
_VIEW_NUMBERS = ["address", "n", "n1", "n2", "n3", "s0", "s1", "s2", "s3"]
_REDUCE_SMALL_NUMBERS = ["rows", *(f"{letter}{i}" for letter in "anr" for i in range(8))]
_REDUCE_PARTS_NUMBERS = ["parts", "n_program_lines", *_VIEW_NUMBERS]
_JOIN_PARTS_NUMBERS = ["rows", "row", "parts_address", "n_parts", "n_bytes"]
_ADD_HISTOGRAM_NUMBERS = ["rows", "row", "n_program_steps", *_VIEW_NUMBERS]


@triton.jit
def _n_lines(n_bytes):
    """Number of lines in the stripes of so many bytes."""
    STRIPE_BYTES: tl.constexpr = LINE * 4 * STRIPE_LINES
    return (n_bytes + STRIPE_BYTES - 1) // STRIPE_BYTES * STRIPE_LINES


@triton.jit
def _whole(
    view,
    row,
    KIND: tl.constexpr,
    ITEM: tl.constexpr,
    ELEMENT: tl.constexpr,
    N_DIMS: tl.constexpr,
    IS_DENSE: tl.constexpr,
    HAS_HISTOGRAM: tl.constexpr,
):
    """Processes a tensor in a single program."""
    n_bytes = view[1] * ITEM
    part = numbers_of_stripes(view, view[1] * 0, _n_lines(n_bytes), KIND, ITEM, ELEMENT, N_DIMS, IS_DENSE)
    squares, scale = part[13], part[21]
    zero = tl.full((), 0.0, tl.float64)
    up, none = tl.where(scale < 0.0, squares, zero), tl.where(scale == 0.0, squares, zero)
    store_row(row, part, up, none, tl.where(scale > 0.0, squares, zero), n_bytes, HAS_HISTOGRAM)


@triton.jit(do_not_specialize=_REDUCE_SMALL_NUMBERS)
def reduce_small(
    rows: tl.int64,
    a0: tl.int64,
    a1: tl.int64,
    a2: tl.int64,
    a3: tl.int64,
    a4: tl.int64,
    a5: tl.int64,
    a6: tl.int64,
    a7: tl.int64,
    n0: tl.int64,
    n1: tl.int64,
    n2: tl.int64,
    n3: tl.int64,
    n4: tl.int64,
    n5: tl.int64,
    n6: tl.int64,
    n7: tl.int64,
    r0: tl.int64,
    r1: tl.int64,
    r2: tl.int64,
    r3: tl.int64,
    r4: tl.int64,
    r5: tl.int64,
    r6: tl.int64,
    r7: tl.int64,
    KIND: tl.constexpr,
    ITEM: tl.constexpr,
    ELEMENT: tl.constexpr,
    IS_DENSE: tl.constexpr,
    HAS_HISTOGRAM: tl.constexpr,
):
    """Fills the rows of up to eight small contiguous tensors, one program for each.

    `rows` and `a…` are addresses in bytes, `n…` numbers of elements, `r…` distances from `rows` in
    words.
    """
    i = tl.program_id(0)
    address = tl.where(i == 0, a0, tl.where(i == 1, a1, tl.where(i == 2, a2, a3)))
    address = tl.where(i < 4, address, tl.where(i == 4, a4, tl.where(i == 5, a5, tl.where(i == 6, a6, a7))))
    n = tl.where(i == 0, n0, tl.where(i == 1, n1, tl.where(i == 2, n2, n3)))
    n = tl.where(i < 4, n, tl.where(i == 4, n4, tl.where(i == 5, n5, tl.where(i == 6, n6, n7))))
    row = tl.where(i == 0, r0, tl.where(i == 1, r1, tl.where(i == 2, r2, r3)))
    row = tl.where(i < 4, row, tl.where(i == 4, r4, tl.where(i == 5, r5, tl.where(i == 6, r6, r7))))
    one = tl.full((), 1, tl.int64)
    # The interpreter treats small numbers as 32-bit.
    view = (address.to(tl.int64), n.to(tl.int64), one, one, one, one, one, one, one)
    to = rows.to(tl.int64).to(tl.pointer_type(tl.int64)) + row
    _whole(view, to, KIND, ITEM, ELEMENT, 1, IS_DENSE, HAS_HISTOGRAM)


@triton.jit
def _view(address, n, n1, n2, n3, s0, s1, s2, s3):
    shape = (n1.to(tl.int64), n2.to(tl.int64), n3.to(tl.int64))
    strides = (s0.to(tl.int64), s1.to(tl.int64), s2.to(tl.int64), s3.to(tl.int64))
    # Triton does not support unpacking a tuple.
    return (address.to(tl.int64), n.to(tl.int64)) + shape + strides  # noqa: RUF005


@triton.jit(do_not_specialize=_REDUCE_PARTS_NUMBERS)
def reduce_parts(
    parts: tl.int64,
    address: tl.int64,
    n: tl.int64,
    n_program_lines: tl.int64,
    n1: tl.int64,
    n2: tl.int64,
    n3: tl.int64,
    s0: tl.int64,
    s1: tl.int64,
    s2: tl.int64,
    s3: tl.int64,
    KIND: tl.constexpr,
    ITEM: tl.constexpr,
    ELEMENT: tl.constexpr,
    N_DIMS: tl.constexpr,
    IS_DENSE: tl.constexpr,
):
    """Stores partial results of one tensor; each program processes `n_program_lines` lines."""
    i = tl.program_id(0).to(tl.int64)
    view = _view(address, n, n1, n2, n3, s0, s1, s2, s3)
    first_line = i * n_program_lines
    n_lines = tl.minimum(n_program_lines, _n_lines(view[1] * ITEM) - first_line)
    part = numbers_of_stripes(view, first_line, n_lines, KIND, ITEM, ELEMENT, N_DIMS, IS_DENSE)
    to = parts.to(tl.int64).to(tl.pointer_type(tl.int64)) + i * PARTIAL_WORDS
    for word in tl.static_range(PARTIAL_WORDS):
        store(to, word, part[word])


@triton.jit
def _column(parts, i, n_parts, word: tl.constexpr, other: tl.constexpr):
    return tl.load(parts + i * PARTIAL_WORDS + word, mask=i < n_parts, other=other)


@triton.jit
def _reals(parts, i, n_parts, word: tl.constexpr, other: tl.constexpr):
    bits = _column(parts, i, n_parts, word, 0)
    return tl.where(i < n_parts, bits.to(tl.float64, bitcast=True), other)


@triton.jit(do_not_specialize=_JOIN_PARTS_NUMBERS)
def join_parts(
    rows: tl.int64,
    row: tl.int64,
    parts_address: tl.int64,
    n_parts: tl.int64,
    n_bytes: tl.int64,
    HAS_HISTOGRAM: tl.constexpr,
):
    """Fills a row from partial results, in one program."""
    WIDTH: tl.constexpr = 256
    parts = parts_address.to(tl.int64).to(tl.pointer_type(tl.int64))
    column = tl.arange(0, WIDTH)
    none = tl.zeros((WIDTH,), tl.int64)
    zero = tl.zeros((WIDTH,), tl.float64)
    c0, c1, c2, c3, c4, c5, c6, c7, c8 = none, none, none, none, none, none, none, none, none
    smallest, largest = zero + float("inf"), zero - float("inf")
    total, total_lost, magnitudes, magnitudes_lost = zero, zero, zero, zero
    up, unscaled, down = zero, zero, zero
    nan_at, pos_inf_at, neg_inf_at = none + NOWHERE, none + NOWHERE, none + NOWHERE
    hash_low, hash_high = none, none
    for first in range(0, n_parts, WIDTH):
        i = first + column
        c0 += _column(parts, i, n_parts, 0, 0)
        c1 += _column(parts, i, n_parts, 1, 0)
        c2 += _column(parts, i, n_parts, 2, 0)
        c3 += _column(parts, i, n_parts, 3, 0)
        c4 += _column(parts, i, n_parts, 4, 0)
        c5 += _column(parts, i, n_parts, 5, 0)
        c6 += _column(parts, i, n_parts, 6, 0)
        c7 += _column(parts, i, n_parts, 7, 0)
        c8 += _column(parts, i, n_parts, 8, 0)
        smallest = tl.minimum(smallest, _reals(parts, i, n_parts, 9, float("inf")))
        largest = tl.maximum(largest, _reals(parts, i, n_parts, 10, float("-inf")))
        total, total_lost = two_sum(total, total_lost, _reals(parts, i, n_parts, 11, 0.0))
        magnitudes, magnitudes_lost = two_sum(magnitudes, magnitudes_lost, _reals(parts, i, n_parts, 12, 0.0))
        squares, scale = _reals(parts, i, n_parts, 13, 0.0), _reals(parts, i, n_parts, 21, 0.0)
        up += tl.where(scale < 0.0, squares, 0.0)
        unscaled += tl.where(scale == 0.0, squares, 0.0)
        down += tl.where(scale > 0.0, squares, 0.0)
        nan_at = tl.minimum(nan_at, _column(parts, i, n_parts, 16, NOWHERE))
        pos_inf_at = tl.minimum(pos_inf_at, _column(parts, i, n_parts, 17, NOWHERE))
        neg_inf_at = tl.minimum(neg_inf_at, _column(parts, i, n_parts, 18, NOWHERE))
        hash_low += _column(parts, i, n_parts, 19, 0)
        hash_high += _column(parts, i, n_parts, 20, 0)
    # After an overflow the rounding error of a sum is not a number.
    total = tl.where(tl.abs(total) < float("inf"), total + total_lost, total)
    magnitudes = tl.where(magnitudes < float("inf"), magnitudes + magnitudes_lost, magnitudes)
    n, n_nan, n_pos_inf, n_neg_inf = tl.sum(c0), tl.sum(c1), tl.sum(c2), tl.sum(c3)
    sum_of_all = tl.sum(total)
    mean = sum_of_all / tl.maximum(n - n_nan - n_pos_inf - n_neg_inf, 1).to(tl.float64)
    deviation = zero
    for first in range(0, n_parts, WIDTH):
        i = first + column
        n_other = _column(parts, i, n_parts, 1, 0) + _column(parts, i, n_parts, 2, 0) + _column(parts, i, n_parts, 3, 0)
        n_finite = (_column(parts, i, n_parts, 0, 0) - n_other).to(tl.float64)
        distance = _reals(parts, i, n_parts, 14, 0.0) - mean
        between = tl.where(n_finite > 0.0, distance * distance * n_finite, 0.0)
        deviation += _reals(parts, i, n_parts, 15, 0.0) + between
    part = (
        n,
        n_nan,
        n_pos_inf,
        n_neg_inf,
        tl.sum(c4),
        tl.sum(c5),
        tl.sum(c6),
        tl.sum(c7),
        tl.sum(c8),
        tl.min(smallest),
        tl.max(largest),
        sum_of_all,
        tl.sum(magnitudes),
        sum_of_all,
        mean,
        tl.sum(deviation),
        tl.min(nan_at),
        tl.min(pos_inf_at),
        tl.min(neg_inf_at),
        tl.sum(hash_low).to(tl.uint64, bitcast=True),
        tl.sum(hash_high).to(tl.uint64, bitcast=True),
    )
    to = rows.to(tl.int64).to(tl.pointer_type(tl.int64)) + row
    store_row(to, part, tl.sum(up), tl.sum(unscaled), tl.sum(down), n_bytes, HAS_HISTOGRAM)


@triton.jit(do_not_specialize=_ADD_HISTOGRAM_NUMBERS)
def add_histogram(
    rows: tl.int64,
    row: tl.int64,
    address: tl.int64,
    n: tl.int64,
    n_program_steps: tl.int64,
    n1: tl.int64,
    n2: tl.int64,
    n3: tl.int64,
    s0: tl.int64,
    s1: tl.int64,
    s2: tl.int64,
    s3: tl.int64,
    KIND: tl.constexpr,
    ELEMENT: tl.constexpr,
    N_DIMS: tl.constexpr,
):
    """Adds the magnitudes of one tensor, by their power of two, to the histogram of its row."""
    i = tl.program_id(0).to(tl.int64)
    view = _view(address, n, n1, n2, n3, s0, s1, s2, s3)
    column = tl.arange(0, LINE)
    counts = tl.zeros((256,), tl.int32)
    for step in range(n_program_steps):
        element = (i * n_program_steps + step) * LINE + column
        value, _, is_there = elements_at(view, element, KIND, N_DIMS, ELEMENT)
        pattern = value.to(tl.int64, bitcast=True)
        exponent = ((pattern >> 52) & 0x7FF).to(tl.int32) - 1023
        place = tl.minimum(tl.maximum(exponent + 40, 0), 63) + tl.where(value < 0.0, 64, 0)
        is_counted = is_there & (value == value) & (value != 0.0) & (tl.abs(value) != float("inf"))
        # Uncounted elements go to an unused bin.
        counts += tl.histogram(tl.where(is_counted, place, 255), 256)
    to = rows.to(tl.int64).to(tl.pointer_type(tl.int64)) + row + 21
    which = tl.arange(0, 256)
    # Integer additions are independent of the order.
    tl.atomic_add(to + which, counts.to(tl.int64), mask=(which < 128) & (counts > 0), sem="relaxed")
