"""Statistics of whole stripes in Triton: from the fast pass if valid, otherwise from a careful one.

The careful pass finds the stripes in the cache. It sums in `float64`, distinguishes NaN and
infinities, and records the first of each.
"""

# ruff: noqa: SIM109 (Triton compiles comparisons of constants, not `in`)

import triton
import triton.language as tl

from .elements import LINE, elements_at
from .kinds import (
    BF16,
    BOOL,
    E4M3FNUZ,
    E5M2FNUZ,
    F32,
    F64,
    I8,
    U8,
    is_negative_zero,
    is_saturated,
    is_subnormal,
    largest_magnitude,
    value_of,
)
from .stripes import hash_stripes, spread_of_stripes, survey_stripes

# Words of a partial result: those of a row, with the sum of squares for `l2`, the sum of squared
# deviations for `std`, and the scale of the squares after them.
PARTIAL_WORDS = tl.constexpr(22)
NOWHERE = tl.constexpr(0x7FFFFFFFFFFFFFFF)
_NEVER = tl.constexpr(0x7FFFFFFF)


@triton.jit
def _first(step, begin):
    """The position of the first counted element, from the first step in which each column had one.
    """
    position = begin + step.to(tl.int64) * LINE + tl.arange(0, LINE)
    return tl.min(tl.where(step == _NEVER, NOWHERE, position))


@triton.jit
def _look(view, begin, n_steps, KIND: tl.constexpr, N_DIMS: tl.constexpr, ELEMENT: tl.constexpr):
    """Sums in `float64`, extremes, counts and positions for arbitrary elements."""
    column = tl.arange(0, LINE)
    zero = tl.zeros((LINE,), tl.float64)
    total, magnitudes, squares = zero, zero, zero
    smallest, largest = zero + float("inf"), zero - float("inf")
    none = tl.zeros((LINE,), tl.int32)
    n_zero, n_neg_zero, n_negative, n_subnormal, n_saturated = none, none, none, none, none
    n_nan, n_pos_inf, n_neg_inf = none, none, none
    # Counts steps, which are fewer than 2^31: 64-bit numbers would need twice as many registers.
    nan_step, pos_inf_step, neg_inf_step = none + _NEVER, none + _NEVER, none + _NEVER
    for step in range(n_steps.to(tl.int32)):
        element = begin + step * LINE + column
        value, bits, is_there = elements_at(view, element, KIND, N_DIMS, ELEMENT)
        is_nan = is_there & (value != value)
        is_pos_inf = is_there & (value == float("inf"))
        is_neg_inf = is_there & (value == float("-inf"))
        is_finite = is_there & (value == value) & (tl.abs(value) != float("inf"))
        finite = tl.where(is_finite, value, 0.0)
        total += finite
        magnitudes += tl.abs(finite)
        squares = tl.fma(finite, finite, squares)
        smallest = tl.minimum(smallest, tl.where(is_finite, value, float("inf")))
        largest = tl.maximum(largest, tl.where(is_finite, value, float("-inf")))
        is_zero = is_finite & (value == 0.0)
        n_zero += is_zero.to(tl.int32)
        n_neg_zero += (is_zero & is_negative_zero(bits, KIND)).to(tl.int32)
        n_negative += (is_there & (value < 0.0)).to(tl.int32)
        n_subnormal += (is_finite & is_subnormal(bits, KIND)).to(tl.int32)
        n_saturated += (is_there & is_saturated(bits, KIND)).to(tl.int32)
        n_nan += is_nan.to(tl.int32)
        n_pos_inf += is_pos_inf.to(tl.int32)
        n_neg_inf += is_neg_inf.to(tl.int32)
        nan_step = tl.minimum(nan_step, tl.where(is_nan, step, _NEVER))
        pos_inf_step = tl.minimum(pos_inf_step, tl.where(is_pos_inf, step, _NEVER))
        neg_inf_step = tl.minimum(neg_inf_step, tl.where(is_neg_inf, step, _NEVER))
    return (
        tl.sum(total),
        tl.sum(magnitudes),
        tl.sum(squares),
        tl.min(smallest),
        tl.max(largest),
        tl.sum(n_zero.to(tl.int64)),
        tl.sum(n_neg_zero.to(tl.int64)),
        tl.sum(n_negative.to(tl.int64)),
        tl.sum(n_subnormal.to(tl.int64)),
        tl.sum(n_saturated.to(tl.int64)),
        tl.sum(n_nan.to(tl.int64)),
        tl.sum(n_pos_inf.to(tl.int64)),
        tl.sum(n_neg_inf.to(tl.int64)),
        _first(nan_step, begin),
        _first(pos_inf_step, begin),
        _first(neg_inf_step, begin),
    )


@triton.jit
def _squares(view, begin, n_steps, centre, factor, KIND: tl.constexpr, N_DIMS: tl.constexpr, ELEMENT: tl.constexpr):
    """The sum of squared deviations from `centre`, times `factor`, of finite elements."""
    column = tl.arange(0, LINE)
    total = tl.zeros((LINE,), tl.float64)
    for step in range(n_steps):
        element = begin + step * LINE + column
        value, _, is_there = elements_at(view, element, KIND, N_DIMS, ELEMENT)
        is_finite = is_there & (value == value) & (tl.abs(value) != float("inf"))
        distance = tl.where(is_finite, (value - centre) * factor, 0.0)
        total = tl.fma(distance, distance, total)
    return tl.sum(total)


@triton.jit
def numbers_of_stripes(
    view,
    first_line,
    n_lines,
    KIND: tl.constexpr,
    ITEM: tl.constexpr,
    ELEMENT: tl.constexpr,
    N_DIMS: tl.constexpr,
    IS_DENSE: tl.constexpr,
):
    """All statistics of whole stripes, in the order of a partial result."""
    LINE_ELEMENTS: tl.constexpr = LINE * 4 // ITEM if ITEM <= 4 else LINE // 2
    begin = first_line * LINE_ELEMENTS
    n_steps = n_lines * LINE_ELEMENTS // LINE
    n_here = tl.maximum(tl.minimum(view[1] - begin, n_lines * LINE_ELEMENTS), 0)
    n_zero, n_neg_zero, n_negative, n_subnormal, n_saturated = n_here, n_here, n_here, n_here, n_here
    n_nan, n_pos_inf, n_neg_inf = n_here * 0, n_here * 0, n_here * 0
    first_nan, first_pos_inf, first_neg_inf = n_nan + NOWHERE, n_nan + NOWHERE, n_nan + NOWHERE
    if KIND < F64:
        if IS_DENSE:
            if n_here == n_lines * LINE_ELEMENTS:
                survey = survey_stripes(view, first_line, n_lines, KIND, ITEM, N_DIMS, True)
            else:
                survey = survey_stripes(view, first_line, n_lines, KIND, ITEM, N_DIMS, False)
        else:
            survey = survey_stripes(view, first_line, n_lines, KIND, ITEM, N_DIMS, False)
        total, magnitudes, squares, smallest, largest, n_not_zero, n_sign, n_third, n_fourth, hash_low, hash_high = (
            survey
        )
        n_zero = n_here - n_not_zero
        n_padding = n_lines * LINE_ELEMENTS - n_here
        if KIND == BOOL:
            n_neg_zero, n_negative, n_subnormal, n_saturated = n_nan, n_nan, n_nan, n_nan
            is_ordinary: tl.constexpr = True
        elif KIND == I8 or KIND == U8:
            # Beyond the last element there is 0, the lowest unsigned number.
            n_neg_zero, n_negative, n_subnormal = n_nan, n_sign, n_nan
            n_saturated = n_third + n_fourth - n_padding if KIND == U8 else n_third + n_fourth
            is_ordinary: tl.constexpr = True
        else:
            n_neg_zero, n_negative = n_third, n_sign - n_third
            n_subnormal, n_saturated = n_not_zero - n_fourth, n_nan
            top = tl.maximum(tl.abs(smallest), tl.abs(largest))
            top = tl.where(n_here > 0, top, 0.0)
            limit = value_of(tl.full((1,), largest_magnitude(KIND), tl.uint32), KIND)
            is_ordinary = (top < tl.max(limit).to(tl.float64)) & (magnitudes < float("inf"))
            if KIND == E4M3FNUZ or KIND == E5M2FNUZ:
                # The bits of -0 are NaN in these dtypes.
                is_ordinary = is_ordinary & (n_neg_zero == 0)
            if KIND == F32 or KIND == BF16:
                # Squares of smaller numbers vanish in `float32`; those of larger ones overflow.
                is_ordinary = is_ordinary & (squares < float("inf")) & ((top >= 2.0**-50) | (top == 0.0))
    else:
        hash_low, hash_high = hash_stripes(view, first_line, n_lines, ITEM, N_DIMS, False)
        zero = tl.full((), 0.0, tl.float64)
        total, magnitudes, squares, smallest, largest = zero, zero, zero, zero, zero
        is_ordinary: tl.constexpr = False
    if not is_ordinary:
        seen = _look(view, begin, n_steps, KIND, N_DIMS, ELEMENT)
        total, magnitudes, squares, smallest, largest = seen[0], seen[1], seen[2], seen[3], seen[4]
        n_zero, n_neg_zero, n_negative, n_subnormal, n_saturated = seen[5], seen[6], seen[7], seen[8], seen[9]
        n_nan, n_pos_inf, n_neg_inf = seen[10], seen[11], seen[12]
        first_nan, first_pos_inf, first_neg_inf = seen[13], seen[14], seen[15]
    n_finite = n_here - n_nan - n_pos_inf - n_neg_inf
    mean = total / tl.maximum(n_finite, 1).to(tl.float64)
    scale = tl.full((), 0.0, tl.float64)
    if KIND == F64:
        # As on the CPU, squares neither overflow nor vanish.
        top = tl.where(n_finite > 0, tl.maximum(tl.abs(smallest), tl.abs(largest)), 0.0)
        scale = tl.where(top >= 2.0**500, 1.0, tl.where((top <= 2.0**-500) & (top > 0.0), -1.0, 0.0)).to(tl.float64)
        factor = tl.where(top >= 2.0**500, 2.0**-600, tl.where(top <= 2.0**-500, 2.0**600, 1.0)).to(tl.float64)
        if scale != 0.0:
            squares = _squares(view, begin, n_steps, 0.0, factor, KIND, N_DIMS, ELEMENT)
    deviation = squares - total * mean
    if (smallest >= largest) | (n_finite == 0):
        deviation = tl.full((), 0.0, tl.float64)
        if n_finite > 0:
            # All elements are equal: joined parts must not differ by the rounding errors of sums.
            mean = smallest
            total = smallest * n_finite.to(tl.float64)
    else:
        if not ((deviation >= squares * 0.125) & (scale == 0.0)):
            if is_ordinary:
                if KIND < F64:
                    centre = mean.to(tl.float32)
                    away, deviation = spread_of_stripes(view, first_line, n_lines, centre, KIND, ITEM, N_DIMS, False)
                    n_summed = tl.maximum(n_finite, 1).to(tl.float64)
                    deviation -= away * (away / n_summed)
                    # Deviations have lost less precision than elements, and parts are joined by
                    # their means.
                    mean = centre.to(tl.float64) + away / n_summed
                    total = centre.to(tl.float64) * n_summed + away
            else:
                deviation = _squares(view, begin, n_steps, mean, 1.0, KIND, N_DIMS, ELEMENT)
    return (
        n_here,
        n_nan,
        n_pos_inf,
        n_neg_inf,
        n_zero,
        n_neg_zero,
        n_negative,
        n_subnormal,
        n_saturated,
        smallest,
        largest,
        total,
        magnitudes,
        squares,
        mean,
        deviation,
        first_nan,
        first_pos_inf,
        first_neg_inf,
        hash_low,
        hash_high,
        scale,
    )
