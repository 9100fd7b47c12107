"""One pass over whole stripes in Triton, at memory speed.

Narrow floats and bytes are assumed finite and summed in `float32`, four lines at a time; rounding
errors of larger sums are tracked. Extremes and sums show whether the assumption failed.
"""

# ruff: noqa: SIM109 (Triton compiles comparisons of constants, not `in`)

import triton
import triton.language as tl

from .elements import LINE, STRIPE_LINES, words_from
from .kinds import BOOL, I8, U8, smallest_normal, value_of

# Lines summed before their sums are added to the totals.
GROUP_LINES = tl.constexpr(4)

# Multipliers of the two halves of the hash within a column, and the increments of its columns'
# keys.
_FACTOR_LOW = tl.constexpr(0x9E3779B1)
_FACTOR_HIGH = tl.constexpr(0x85EBCA6B)
# Multipliers of the lines of a group.
_LINES_LOW = tl.constexpr((0xC2B2AE35, 0x27D4EB2F, 0x165667B1, 0xD3A2646D))
_LINES_HIGH = tl.constexpr((0xCC9E2D51, 0x1B873593, 0xE6546B65, 0x8F2B1A2D))
KEY_LOW = tl.constexpr(0x9E3779B97F4A7C15)
KEY_HIGH = tl.constexpr(0xD1342543DE82EF95)


@triton.jit
def mix(h):
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB
    return h ^ (h >> 31)


@triton.jit
def two_sum(total, lost, term):
    """Adds `term`, and the rounding error to `lost`."""
    after = total + term
    part = after - total
    return after, lost + ((total - (after - part)) + (term - part))


@triton.jit
def _lanes(counts, ITEM: tl.constexpr):
    """Adds the packed counts of a word, one per element."""
    if ITEM == 1:
        counts = (counts & 0x00FF00FF) + ((counts >> 8) & 0x00FF00FF)
    if ITEM <= 2:
        counts = (counts & 0xFFFF) + (counts >> 16)
    return counts


@triton.jit
def survey_stripes(
    view, first_line, n_lines, KIND: tl.constexpr, ITEM: tl.constexpr, N_DIMS: tl.constexpr, IS_DENSE: tl.constexpr
):
    """Sums, extremes, counts and hash of whole stripes in `float32`, assuming finite elements."""
    PARTS: tl.constexpr = 4 // ITEM
    BITS: tl.constexpr = 8 * ITEM
    ONE: tl.constexpr = 0x01010101 if ITEM == 1 else 0x00010001 if ITEM == 2 else 1
    LOW: tl.constexpr = ONE * ((1 << (BITS - 1)) - 1)
    SMALLEST: tl.constexpr = smallest_normal(KIND)
    IS_INTEGER: tl.constexpr = KIND == I8 or KIND == U8 or KIND == BOOL
    column = tl.arange(0, LINE)
    zero = tl.zeros((LINE,), tl.float32)
    sum_high, sum_low, l1_high, l1_low, squares_high, squares_low = zero, zero, zero, zero, zero, zero
    smallest, largest = zero + float("inf"), zero - float("inf")
    none = tl.zeros((LINE,), tl.uint32)
    n_not_zero, n_sign, n_third, n_fourth = none, none, none, none
    not_zero, sign, third, fourth = none, none, none, none
    hash_low, hash_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
    for stripe_line in range(0, n_lines, STRIPE_LINES):
        column_low, column_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
        if ITEM == 1:
            # An 8-bit lane holds the counts of one stripe.
            not_zero, sign, third, fourth = none, none, none, none
        for group in range(0, STRIPE_LINES, GROUP_LINES):
            total, magnitudes, squares = zero, zero, zero
            group_low, group_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
            for line in tl.static_range(GROUP_LINES):
                first = (first_line + stripe_line + group + line) * LINE
                word = words_from(view, first, N_DIMS, ITEM, IS_DENSE)
                group_low += word.to(tl.uint64) * _LINES_LOW[line]
                group_high += word.to(tl.uint64) * _LINES_HIGH[line]
                for part in tl.static_range(PARTS):
                    bits = word >> (BITS * part)
                    if PARTS > 1:
                        bits = bits & ((1 << BITS) - 1)
                    value = value_of(bits, KIND)
                    total += value
                    magnitudes += tl.abs(value)
                    squares = tl.fma(value, value, squares)
                    if IS_DENSE:
                        smallest = tl.minimum(smallest, value)
                        largest = tl.maximum(largest, value)
                    else:
                        is_there = (first + column) * PARTS + part < view[1]
                        smallest = tl.minimum(smallest, tl.where(is_there, value, float("inf")))
                        largest = tl.maximum(largest, tl.where(is_there, value, float("-inf")))
                # Each element of a word has its own lane here, with the result in the lane's top
                # bit.
                signs = (word >> (BITS - 1)) & ONE
                if IS_INTEGER:
                    not_zero += ((((word & LOW) + LOW) | word) >> (BITS - 1)) & ONE
                    if KIND != BOOL:
                        from_lowest = word ^ 0x80808080 if KIND == I8 else word
                        from_highest = ~from_lowest
                        third += (((((from_lowest & LOW) + LOW) | from_lowest) >> (BITS - 1)) & ONE) ^ ONE
                        fourth += (((((from_highest & LOW) + LOW) | from_highest) >> (BITS - 1)) & ONE) ^ ONE
                    if KIND == I8:
                        sign += signs
                else:
                    magnitude = word & LOW
                    are_not_zero = ((magnitude + LOW) >> (BITS - 1)) & ONE
                    not_zero += are_not_zero
                    sign += signs
                    third += signs & (are_not_zero ^ ONE)
                    fourth += ((magnitude + (ONE << (BITS - 1)) - ONE * SMALLEST) >> (BITS - 1)) & ONE
            column_low = column_low * _FACTOR_LOW + group_low
            column_high = column_high * _FACTOR_HIGH + group_high
            sum_high, sum_low = two_sum(sum_high, sum_low, total)
            l1_high, l1_low = two_sum(l1_high, l1_low, magnitudes)
            squares_high, squares_low = two_sum(squares_high, squares_low, squares)
        if ITEM == 1:
            n_not_zero += _lanes(not_zero, ITEM)
            n_sign += _lanes(sign, ITEM)
            n_third += _lanes(third, ITEM)
            n_fourth += _lanes(fourth, ITEM)
        place = ((first_line + stripe_line) // STRIPE_LINES * LINE + column + 1).to(tl.uint64)
        hash_low += mix(column_low + place * KEY_LOW)
        hash_high += mix(column_high + place * KEY_HIGH)
    if ITEM != 1:
        n_not_zero, n_sign = _lanes(not_zero, ITEM), _lanes(sign, ITEM)
        n_third, n_fourth = _lanes(third, ITEM), _lanes(fourth, ITEM)
    return (
        tl.sum(sum_high.to(tl.float64) + sum_low.to(tl.float64)),
        tl.sum(l1_high.to(tl.float64) + l1_low.to(tl.float64)),
        tl.sum(squares_high.to(tl.float64) + squares_low.to(tl.float64)),
        tl.min(smallest).to(tl.float64),
        tl.max(largest).to(tl.float64),
        tl.sum(n_not_zero.to(tl.int64)),
        tl.sum(n_sign.to(tl.int64)),
        tl.sum(n_third.to(tl.int64)),
        tl.sum(n_fourth.to(tl.int64)),
        tl.sum(hash_low),
        tl.sum(hash_high),
    )


@triton.jit
def hash_stripes(view, first_line, n_lines, ITEM: tl.constexpr, N_DIMS: tl.constexpr, IS_DENSE: tl.constexpr):
    """The hash of whole stripes."""
    column = tl.arange(0, LINE)
    hash_low, hash_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
    for stripe_line in range(0, n_lines, STRIPE_LINES):
        column_low, column_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
        for group in range(0, STRIPE_LINES, GROUP_LINES):
            group_low, group_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
            for line in tl.static_range(GROUP_LINES):
                first = (first_line + stripe_line + group + line) * LINE
                word = words_from(view, first, N_DIMS, ITEM, IS_DENSE).to(tl.uint64)
                group_low += word * _LINES_LOW[line]
                group_high += word * _LINES_HIGH[line]
            column_low = column_low * _FACTOR_LOW + group_low
            column_high = column_high * _FACTOR_HIGH + group_high
        place = ((first_line + stripe_line) // STRIPE_LINES * LINE + column + 1).to(tl.uint64)
        hash_low += mix(column_low + place * KEY_LOW)
        hash_high += mix(column_high + place * KEY_HIGH)
    return tl.sum(hash_low), tl.sum(hash_high)


@triton.jit
def spread_of_stripes(
    view,
    first_line,
    n_lines,
    centre,
    KIND: tl.constexpr,
    ITEM: tl.constexpr,
    N_DIMS: tl.constexpr,
    IS_DENSE: tl.constexpr,
):
    """The sum of squared deviations in `float32`, for finite elements with a mean near `centre`."""
    PARTS: tl.constexpr = 4 // ITEM
    column = tl.arange(0, LINE)
    zero = tl.zeros((LINE,), tl.float32)
    sum_high, sum_low, squares_high, squares_low = zero, zero, zero, zero
    for group in range(0, n_lines, GROUP_LINES):
        total, squares = zero, zero
        for line in tl.static_range(GROUP_LINES):
            first = (first_line + group + line) * LINE
            word = words_from(view, first, N_DIMS, ITEM, IS_DENSE)
            for part in tl.static_range(PARTS):
                bits = word >> (8 * ITEM * part)
                if PARTS > 1:
                    bits = bits & ((1 << (8 * ITEM)) - 1)
                distance = value_of(bits, KIND) - centre
                if not IS_DENSE:
                    distance = tl.where((first + column) * PARTS + part < view[1], distance, 0.0)
                total += distance
                squares = tl.fma(distance, distance, squares)
        sum_high, sum_low = two_sum(sum_high, sum_low, total)
        squares_high, squares_low = two_sum(squares_high, squares_low, squares)
    return (
        tl.sum(sum_high.to(tl.float64) + sum_low.to(tl.float64)),
        tl.sum(squares_high.to(tl.float64) + squares_low.to(tl.float64)),
    )
