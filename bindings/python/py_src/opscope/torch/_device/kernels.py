"""The numbers of a tensor in Triton: one pass over the elements, and a small one that joins its parts.

A tensor is a sequence of words of four bytes, 512 in a line and 16 lines in a stripe. A program looks at whole stripes,
which ones depends on the tensor's size alone; so does the order in which parts are joined. Narrow floats and bytes are
first taken to be ordinary numbers and summed in `float32`, four lines at a time, with the rounding errors of larger sums
kept; only where the extremes or the sums show that something is not ordinary is the stripe, which is in a cache by now,
looked at again in `float64`.
"""

import triton
import triton.language as tl

# Words in a line and lines in a stripe. The hash is defined by them: the core has the same numbers.
LINE = tl.constexpr(512)
STRIPE_LINES = tl.constexpr(16)
# Lines that are summed before their sums join the larger ones.
_UNROLLED = tl.constexpr(4)

# Kinds of elements.
F32 = tl.constexpr(0)
F16 = tl.constexpr(1)
BF16 = tl.constexpr(2)
E4M3FN = tl.constexpr(3)
E5M2 = tl.constexpr(4)
E4M3FNUZ = tl.constexpr(5)
E5M2FNUZ = tl.constexpr(6)
I8 = tl.constexpr(7)
U8 = tl.constexpr(8)
BOOL = tl.constexpr(9)
# Kinds from here on are summed in `float64` from the beginning.
F64 = tl.constexpr(10)
I16 = tl.constexpr(11)
U16 = tl.constexpr(12)
I32 = tl.constexpr(13)
U32 = tl.constexpr(14)
I64 = tl.constexpr(15)
U64 = tl.constexpr(16)
E8M0 = tl.constexpr(17)

# Multipliers of the two halves of the hash within a column, and the steps of the keys of its columns.
_FACTOR_LOW = tl.constexpr(0x9E3779B1)
_FACTOR_HIGH = tl.constexpr(0x85EBCA6B)
# Those of the lines of a group.
_LINES_LOW = tl.constexpr((0xC2B2AE35, 0x27D4EB2F, 0x165667B1, 0xD3A2646D))
_LINES_HIGH = tl.constexpr((0xCC9E2D51, 0x1B873593, 0xE6546B65, 0x8F2B1A2D))
_KEY_LOW = tl.constexpr(0x9E3779B97F4A7C15)
_KEY_HIGH = tl.constexpr(0xD1342543DE82EF95)

# Words of a partial result: those of a row, with the sum of squares for `l2`, the sum of squared distances from the mean
# for `std`, and the scale of the squares behind them.
PARTIAL_WORDS = tl.constexpr(22)
_NONE = tl.constexpr(0x7FFFFFFFFFFFFFFF)
_NEVER = tl.constexpr(0x7FFFFFFF)

# One compiled kernel serves all sizes and addresses.
_VIEW_NUMBERS = ["address", "n", "n1", "n2", "n3", "s0", "s1", "s2", "s3"]
_REDUCE_SMALL_NUMBERS = ["rows", *(f"{letter}{i}" for letter in "anr" for i in range(8))]
_REDUCE_PARTS_NUMBERS = ["parts", "n_program_lines", *_VIEW_NUMBERS]
_JOIN_PARTS_NUMBERS = ["rows", "row", "parts_address", "n_parts", "n_bytes"]
_ADD_HISTOGRAM_NUMBERS = ["rows", "row", "n_program_steps", *_VIEW_NUMBERS]


@triton.jit
def _mix(h):
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB
    return h ^ (h >> 31)


@triton.jit
def _offset(i, view, N_DIMS: tl.constexpr):
    """The distance from the first element, in elements, of the `i`th one in row-major order."""
    address, n, n1, n2, n3, s0, s1, s2, s3 = view
    if N_DIMS == 1:
        return i * s3
    o = (i % n3) * s3
    i = i // n3
    if N_DIMS == 2:
        return o + i * s2
    o += (i % n2) * s2
    i = i // n2
    if N_DIMS == 3:
        return o + i * s1
    return o + (i % n1) * s1 + (i // n1) * s0


@triton.jit
def _words(view, first, N_DIMS: tl.constexpr, ITEM: tl.constexpr, IS_DENSE: tl.constexpr):
    """A line of words from the word `first` on; what is behind the last element is zero."""
    column = tl.arange(0, LINE)
    if IS_DENSE:
        words = view[0].to(tl.pointer_type(tl.uint32)) + first
        return tl.load(tl.multiple_of(tl.max_contiguous(words + column, 4), 4 * 4))
    if ITEM == 8:
        at = first + column
        element = at // 2
        words = view[0].to(tl.pointer_type(tl.uint32))
        offset = _offset(element, view, N_DIMS)
        return tl.load(words + offset * 2 + at % 2, mask=element < view[1], other=0)
    elif ITEM == 4:
        element = first + column
        words = view[0].to(tl.pointer_type(tl.uint32))
        return tl.load(words + _offset(element, view, N_DIMS), mask=element < view[1], other=0)
    else:
        word = tl.zeros((LINE,), tl.uint32)
        for part in tl.static_range(4 // ITEM):
            element = (first + column) * (4 // ITEM) + part
            offset = _offset(element, view, N_DIMS)
            if ITEM == 2:
                bits = tl.load(view[0].to(tl.pointer_type(tl.uint16)) + offset, mask=element < view[1], other=0)
            else:
                bits = tl.load(view[0].to(tl.pointer_type(tl.uint8)) + offset, mask=element < view[1], other=0)
            word |= bits.to(tl.uint32) << (8 * ITEM * part)
        return word


@triton.jit
def _float8(bits, EXPONENT_BITS: tl.constexpr, BIAS: tl.constexpr):
    """The `float32` of eight bits, by the rule for numbers that are neither NaN nor infinite."""
    shift: tl.constexpr = 16 + EXPONENT_BITS
    magnitude = (bits & 0x7F) << shift
    sign = (bits & 0x80) << 24
    # As a `float32` this has the right digits, and an exponent that is too small by the difference of the two biases.
    scale: tl.constexpr = 2.0 ** (127 - BIAS)
    return (magnitude | sign).to(tl.float32, bitcast=True) * scale


@triton.jit
def _value(bits, KIND: tl.constexpr):
    """The `float32` of an element of at most 32 bits; NaN and infinities of float8 are not told apart here."""
    if KIND == F32:
        return bits.to(tl.float32, bitcast=True)
    elif KIND == F16:
        return bits.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    elif KIND == BF16:
        return (bits << 16).to(tl.float32, bitcast=True)
    elif KIND == E4M3FN:
        return _float8(bits, 4, 7)
    elif KIND == E5M2:
        return _float8(bits, 5, 15)
    elif KIND == E4M3FNUZ:
        return _float8(bits, 4, 8)
    elif KIND == E5M2FNUZ:
        return _float8(bits, 5, 16)
    elif KIND == I8:
        # Conversions are slow on devices; these bits are those of the number plus 2^23 + 128.
        return ((bits ^ 0x80) | 0x4B000000).to(tl.float32, bitcast=True) - 8388736.0
    else:
        return (bits | 0x4B000000).to(tl.float32, bitcast=True) - 8388608.0


@triton.jit
def _smallest_normal(KIND: tl.constexpr):
    """The bits of the smallest normal number; 0 of kinds that have no smaller ones."""
    if KIND == F32:
        return 0x00800000
    elif KIND == F16:
        return 0x0400
    elif KIND == BF16:
        return 0x0080
    elif KIND == E4M3FN or KIND == E4M3FNUZ:
        return 0x08
    elif KIND == E5M2 or KIND == E5M2FNUZ:
        return 0x04
    else:
        return 0


@triton.jit
def _largest(KIND: tl.constexpr):
    """The bits of the largest finite magnitude of a float of at most 32 bits."""
    if KIND == F32:
        return 0x7F7FFFFF
    elif KIND == F16:
        return 0x7BFF
    elif KIND == BF16:
        return 0x7F7F
    elif KIND == E4M3FN:
        return 0x7E
    elif KIND == E5M2:
        return 0x7B
    else:
        return 0x7F


@triton.jit
def _two_sum(total, lost, term):
    """Adds `term`, and what this rounds away to `lost`."""
    after = total + term
    part = after - total
    return after, lost + ((total - (after - part)) + (term - part))


@triton.jit
def _lanes(counts, ITEM: tl.constexpr):
    """Adds up the counts that share a word: one for each element of the word."""
    if ITEM == 1:
        counts = (counts & 0x00FF00FF) + ((counts >> 8) & 0x00FF00FF)
    if ITEM <= 2:
        counts = (counts & 0xFFFF) + (counts >> 16)
    return counts


@triton.jit
def _survey(view, first_line, n_lines, KIND: tl.constexpr, ITEM: tl.constexpr, N_DIMS: tl.constexpr, IS_DENSE: tl.constexpr):
    """Sums, extremes, counts and hash of whole stripes, by `float32` and as if nothing were NaN or infinite."""
    PARTS: tl.constexpr = 4 // ITEM
    BITS: tl.constexpr = 8 * ITEM
    ONE: tl.constexpr = 0x01010101 if ITEM == 1 else 0x00010001 if ITEM == 2 else 1
    LOW: tl.constexpr = ONE * ((1 << (BITS - 1)) - 1)
    SMALLEST: tl.constexpr = _smallest_normal(KIND)
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
            # A lane of eight bits holds the counts of one stripe.
            not_zero, sign, third, fourth = none, none, none, none
        for group in range(0, STRIPE_LINES, _UNROLLED):
            total, magnitudes, squares = zero, zero, zero
            group_low, group_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
            for line in tl.static_range(_UNROLLED):
                first = (first_line + stripe_line + group + line) * LINE
                word = _words(view, first, N_DIMS, ITEM, IS_DENSE)
                group_low += word.to(tl.uint64) * _LINES_LOW[line]
                group_high += word.to(tl.uint64) * _LINES_HIGH[line]
                for part in tl.static_range(PARTS):
                    bits = word >> (BITS * part)
                    if PARTS > 1:
                        bits = bits & ((1 << BITS) - 1)
                    value = _value(bits, KIND)
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
                # Each element of a word has its own lane in these: the top bit of the lane says what is so.
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
            sum_high, sum_low = _two_sum(sum_high, sum_low, total)
            l1_high, l1_low = _two_sum(l1_high, l1_low, magnitudes)
            squares_high, squares_low = _two_sum(squares_high, squares_low, squares)
        if ITEM == 1:
            n_not_zero += _lanes(not_zero, ITEM)
            n_sign += _lanes(sign, ITEM)
            n_third += _lanes(third, ITEM)
            n_fourth += _lanes(fourth, ITEM)
        place = ((first_line + stripe_line) // STRIPE_LINES * LINE + column + 1).to(tl.uint64)
        hash_low += _mix(column_low + place * _KEY_LOW)
        hash_high += _mix(column_high + place * _KEY_HIGH)
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
def _hash(view, first_line, n_lines, ITEM: tl.constexpr, N_DIMS: tl.constexpr, IS_DENSE: tl.constexpr):
    """The hash of whole stripes."""
    column = tl.arange(0, LINE)
    hash_low, hash_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
    for stripe_line in range(0, n_lines, STRIPE_LINES):
        column_low, column_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
        for group in range(0, STRIPE_LINES, _UNROLLED):
            group_low, group_high = tl.zeros((LINE,), tl.uint64), tl.zeros((LINE,), tl.uint64)
            for line in tl.static_range(_UNROLLED):
                first = (first_line + stripe_line + group + line) * LINE
                word = _words(view, first, N_DIMS, ITEM, IS_DENSE).to(tl.uint64)
                group_low += word * _LINES_LOW[line]
                group_high += word * _LINES_HIGH[line]
            column_low = column_low * _FACTOR_LOW + group_low
            column_high = column_high * _FACTOR_HIGH + group_high
        place = ((first_line + stripe_line) // STRIPE_LINES * LINE + column + 1).to(tl.uint64)
        hash_low += _mix(column_low + place * _KEY_LOW)
        hash_high += _mix(column_high + place * _KEY_HIGH)
    return tl.sum(hash_low), tl.sum(hash_high)


@triton.jit
def _elements(view, element, KIND: tl.constexpr, N_DIMS: tl.constexpr, ELEMENT: tl.constexpr):
    """Elements as `float64` and as bits, and which are there at all."""
    is_there = element < view[1]
    offset = _offset(element, view, N_DIMS)
    bits = tl.load(view[0].to(tl.pointer_type(ELEMENT)) + offset, mask=is_there, other=0)
    nan = float("nan")
    if KIND == F64:
        value = bits.to(tl.float64, bitcast=True)
    elif KIND == I8:
        value = bits.to(tl.int8, bitcast=True).to(tl.float64)
    elif KIND == I16:
        value = bits.to(tl.int16, bitcast=True).to(tl.float64)
    elif KIND == I32:
        value = bits.to(tl.int32, bitcast=True).to(tl.float64)
    elif KIND == I64:
        value = bits.to(tl.int64, bitcast=True).to(tl.float64)
    elif KIND == U8 or KIND == BOOL or KIND == U16 or KIND == U32 or KIND == U64:
        value = bits.to(tl.float64)
    elif KIND == E8M0:
        value = ((bits.to(tl.int64) + (1023 - 127)) << 52).to(tl.float64, bitcast=True)
        value = tl.where(bits == 0xFF, nan, value)
    else:
        value = _value(bits.to(tl.uint32), KIND).to(tl.float64)
        if KIND == E4M3FN:
            value = tl.where((bits & 0x7F) == 0x7F, nan, value)
        elif KIND == E5M2:
            value = tl.where((bits & 0x7F) > 0x7C, nan, value)
            value = tl.where(bits == 0x7C, float("inf"), tl.where(bits == 0xFC, float("-inf"), value))
        elif KIND == E4M3FNUZ or KIND == E5M2FNUZ:
            value = tl.where(bits == 0x80, nan, value)
    return value, bits, is_there


@triton.jit
def _is_saturated(bits, KIND: tl.constexpr):
    """Whether elements are at an end of the range of their dtype."""
    if KIND == BOOL:
        return bits > 0xFF
    elif KIND == F64:
        return (bits & 0x7FFFFFFFFFFFFFFF) == 0x7FEFFFFFFFFFFFFF
    elif KIND == E8M0:
        return (bits == 0) | (bits == 0xFE)
    elif KIND == U8:
        return (bits == 0) | (bits == 0xFF)
    elif KIND == I8:
        return (bits == 0x80) | (bits == 0x7F)
    elif KIND == U16:
        return (bits == 0) | (bits == 0xFFFF)
    elif KIND == I16:
        return (bits == 0x8000) | (bits == 0x7FFF)
    elif KIND == U32:
        return (bits == 0) | (bits == 0xFFFFFFFF)
    elif KIND == I32:
        return (bits == 0x80000000) | (bits == 0x7FFFFFFF)
    elif KIND == U64:
        return (bits == 0) | (bits == 0xFFFFFFFFFFFFFFFF)
    elif KIND == I64:
        return (bits == 0x8000000000000000) | (bits == 0x7FFFFFFFFFFFFFFF)
    elif KIND == F32:
        return (bits & 0x7FFFFFFF) == _largest(KIND)
    elif KIND == F16 or KIND == BF16:
        return (bits & 0x7FFF) == _largest(KIND)
    else:
        return ((bits & 0x7F) == _largest(KIND)) & (bits != 0x80)


@triton.jit
def _is_subnormal(bits, KIND: tl.constexpr):
    """Whether elements are too small for the full precision of their dtype; zero is not."""
    if KIND == F64:
        magnitude = bits & 0x7FFFFFFFFFFFFFFF
        return (magnitude != 0) & (magnitude < 0x0010000000000000)
    elif KIND == F32:
        magnitude = bits & 0x7FFFFFFF
        return (magnitude != 0) & (magnitude < _smallest_normal(KIND))
    elif KIND == F16 or KIND == BF16:
        magnitude = bits & 0x7FFF
        return (magnitude != 0) & (magnitude < _smallest_normal(KIND))
    elif KIND == E4M3FN or KIND == E5M2 or KIND == E4M3FNUZ or KIND == E5M2FNUZ:
        magnitude = bits & 0x7F
        return (magnitude != 0) & (magnitude < _smallest_normal(KIND))
    else:
        # Never, of these.
        return bits != bits


@triton.jit
def _has_sign(bits, KIND: tl.constexpr):
    """Whether elements of value zero have a minus sign."""
    if KIND == F64:
        return bits == 0x8000000000000000
    elif KIND == F32:
        return bits == 0x80000000
    elif KIND == F16 or KIND == BF16:
        return bits == 0x8000
    elif KIND == E4M3FN or KIND == E5M2:
        return bits == 0x80
    else:
        return bits != bits


@triton.jit
def _first(step, begin):
    """The position of the first element that was counted, from the first step in which each column had one."""
    position = begin + step.to(tl.int64) * LINE + tl.arange(0, LINE)
    return tl.min(tl.where(step == _NEVER, _NONE, position))


@triton.jit
def _look(view, begin, n_steps, KIND: tl.constexpr, N_DIMS: tl.constexpr, ELEMENT: tl.constexpr):
    """Sums by `float64`, extremes, counts and places of whatever elements there are."""
    column = tl.arange(0, LINE)
    zero = tl.zeros((LINE,), tl.float64)
    total, magnitudes, squares = zero, zero, zero
    smallest, largest = zero + float("inf"), zero - float("inf")
    none = tl.zeros((LINE,), tl.int32)
    n_zero, n_neg_zero, n_negative, n_subnormal, n_saturated = none, none, none, none, none
    n_nan, n_pos_inf, n_neg_inf = none, none, none
    # Steps, of which there are fewer than 2^31: numbers of 64 bits would need twice as many registers.
    nan_step, pos_inf_step, neg_inf_step = none + _NEVER, none + _NEVER, none + _NEVER
    for step in range(n_steps.to(tl.int32)):
        element = begin + step * LINE + column
        value, bits, is_there = _elements(view, element, KIND, N_DIMS, ELEMENT)
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
        n_neg_zero += (is_zero & _has_sign(bits, KIND)).to(tl.int32)
        n_negative += (is_there & (value < 0.0)).to(tl.int32)
        n_subnormal += (is_finite & _is_subnormal(bits, KIND)).to(tl.int32)
        n_saturated += (is_there & _is_saturated(bits, KIND)).to(tl.int32)
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
    """The sum of squares of distances from `centre`, times `factor`, of finite elements."""
    column = tl.arange(0, LINE)
    total = tl.zeros((LINE,), tl.float64)
    for step in range(n_steps):
        element = begin + step * LINE + column
        value, bits, is_there = _elements(view, element, KIND, N_DIMS, ELEMENT)
        is_finite = is_there & (value == value) & (tl.abs(value) != float("inf"))
        distance = tl.where(is_finite, (value - centre) * factor, 0.0)
        total = tl.fma(distance, distance, total)
    return tl.sum(total)


@triton.jit
def _spread(view, first_line, n_lines, centre, KIND: tl.constexpr, ITEM: tl.constexpr, N_DIMS: tl.constexpr, IS_DENSE: tl.constexpr):
    """The sum of squared distances from the mean by `float32`, of finite elements whose mean is about `centre`."""
    PARTS: tl.constexpr = 4 // ITEM
    column = tl.arange(0, LINE)
    zero = tl.zeros((LINE,), tl.float32)
    sum_high, sum_low, squares_high, squares_low = zero, zero, zero, zero
    for group in range(0, n_lines, _UNROLLED):
        total, squares = zero, zero
        for line in tl.static_range(_UNROLLED):
            first = (first_line + group + line) * LINE
            word = _words(view, first, N_DIMS, ITEM, IS_DENSE)
            for part in tl.static_range(PARTS):
                bits = word >> (8 * ITEM * part)
                if PARTS > 1:
                    bits = bits & ((1 << (8 * ITEM)) - 1)
                distance = _value(bits, KIND) - centre
                if not IS_DENSE:
                    distance = tl.where((first + column) * PARTS + part < view[1], distance, 0.0)
                total += distance
                squares = tl.fma(distance, distance, squares)
        sum_high, sum_low = _two_sum(sum_high, sum_low, total)
        squares_high, squares_low = _two_sum(squares_high, squares_low, squares)
    return (
        tl.sum(sum_high.to(tl.float64) + sum_low.to(tl.float64)),
        tl.sum(squares_high.to(tl.float64) + squares_low.to(tl.float64)),
    )


@triton.jit
def _part(view, first_line, n_lines, KIND: tl.constexpr, ITEM: tl.constexpr, ELEMENT: tl.constexpr, N_DIMS: tl.constexpr, IS_DENSE: tl.constexpr):
    """All numbers of whole stripes, in the order of a partial result."""
    LINE_ELEMENTS: tl.constexpr = LINE * 4 // ITEM if ITEM <= 4 else LINE // 2
    begin = first_line * LINE_ELEMENTS
    n_steps = n_lines * LINE_ELEMENTS // LINE
    n_here = tl.maximum(tl.minimum(view[1] - begin, n_lines * LINE_ELEMENTS), 0)
    n_zero, n_neg_zero, n_negative, n_subnormal, n_saturated = n_here, n_here, n_here, n_here, n_here
    n_nan, n_pos_inf, n_neg_inf = n_here * 0, n_here * 0, n_here * 0
    first_nan, first_pos_inf, first_neg_inf = n_nan + _NONE, n_nan + _NONE, n_nan + _NONE
    if KIND < F64:
        if IS_DENSE:
            if n_here == n_lines * LINE_ELEMENTS:
                survey = _survey(view, first_line, n_lines, KIND, ITEM, N_DIMS, True)
            else:
                survey = _survey(view, first_line, n_lines, KIND, ITEM, N_DIMS, False)
        else:
            survey = _survey(view, first_line, n_lines, KIND, ITEM, N_DIMS, False)
        total, magnitudes, squares, smallest, largest, n_not_zero, n_sign, n_third, n_fourth, hash_low, hash_high = survey
        n_zero = n_here - n_not_zero
        n_padding = n_lines * LINE_ELEMENTS - n_here
        if KIND == BOOL:
            n_neg_zero, n_negative, n_subnormal, n_saturated = n_nan, n_nan, n_nan, n_nan
            is_ordinary: tl.constexpr = True
        elif KIND == I8 or KIND == U8:
            # What is behind the last element is 0, the lowest number without a sign.
            n_neg_zero, n_negative, n_subnormal = n_nan, n_sign, n_nan
            n_saturated = n_third + n_fourth - n_padding if KIND == U8 else n_third + n_fourth
            is_ordinary: tl.constexpr = True
        else:
            n_neg_zero, n_negative = n_third, n_sign - n_third
            n_subnormal, n_saturated = n_not_zero - n_fourth, n_nan
            top = tl.maximum(tl.abs(smallest), tl.abs(largest))
            top = tl.where(n_here > 0, top, 0.0)
            limit = _value(tl.full((1,), _largest(KIND), tl.uint32), KIND)
            is_ordinary = (top < tl.max(limit).to(tl.float64)) & (magnitudes < float("inf"))
            if KIND == E4M3FNUZ or KIND == E5M2FNUZ:
                # What looks like -0 is NaN there.
                is_ordinary = is_ordinary & (n_neg_zero == 0)
            if KIND == F32 or KIND == BF16:
                # Squares of smaller numbers vanish in `float32`, those of larger ones overflow.
                is_ordinary = is_ordinary & (squares < float("inf")) & ((top >= 2.0**-50) | (top == 0.0))
    else:
        hash_low, hash_high = _hash(view, first_line, n_lines, ITEM, N_DIMS, False)
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
        # As on the CPU: squares neither overflow nor vanish.
        top = tl.where(n_finite > 0, tl.maximum(tl.abs(smallest), tl.abs(largest)), 0.0)
        scale = tl.where(top >= 2.0**500, 1.0, tl.where((top <= 2.0**-500) & (top > 0.0), -1.0, 0.0)).to(tl.float64)
        factor = tl.where(top >= 2.0**500, 2.0**-600, tl.where(top <= 2.0**-500, 2.0**600, 1.0)).to(tl.float64)
        if scale != 0.0:
            squares = _squares(view, begin, n_steps, 0.0, factor, KIND, N_DIMS, ELEMENT)
    deviation = squares - total * mean
    if (smallest >= largest) | (n_finite == 0):
        deviation = tl.full((), 0.0, tl.float64)
        if n_finite > 0:
            # All are equal: parts that are joined must not differ by what sums have lost.
            mean = smallest
            total = smallest * n_finite.to(tl.float64)
    else:
        if not ((deviation >= squares * 0.125) & (scale == 0.0)):
            if is_ordinary:
                if KIND < F64:
                    centre = mean.to(tl.float32)
                    away, deviation = _spread(view, first_line, n_lines, centre, KIND, ITEM, N_DIMS, False)
                    n_summed = tl.maximum(n_finite, 1).to(tl.float64)
                    deviation -= away * (away / n_summed)
                    # Distances have lost less than elements did, and parts are joined by their means.
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


@triton.jit
def _store(to, word: tl.constexpr, value):
    if value.dtype == tl.float64:
        tl.store(to + word, value.to(tl.int64, bitcast=True))
    elif value.dtype == tl.uint64:
        tl.store(to + word, value.to(tl.int64, bitcast=True))
    else:
        tl.store(to + word, value.to(tl.int64))


@triton.jit
def _root(up, none, down):
    """The square root of a sum of squares, of which each part counts 2^1200 times as much as the one before."""
    SMALLER: tl.constexpr = 2.0**-600
    if down > 0.0:
        root = tl.sqrt(down + none * SMALLER * SMALLER) * 2.0**600
    elif (none > 0.0) | (up == 0.0):
        root = tl.sqrt(none + up * SMALLER * SMALLER)
    else:
        root = tl.sqrt(up) * SMALLER
    return root


@triton.jit
def _store_row(row, part, up, none, down, n_bytes, HAS_HISTOGRAM: tl.constexpr):
    """Stores the numbers of a whole tensor, with infinities where they belong."""
    n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg_zero = part[0], part[1], part[2], part[3], part[4], part[5]
    smallest, largest, total, magnitudes, deviation = part[9], part[10], part[11], part[12], part[15]
    inf = tl.full((), float("inf"), tl.float64)
    nan = tl.full((), float("nan"), tl.float64)
    zero = tl.full((), 0.0, tl.float64)
    n_numbers = n - n_nan
    n_finite = n_numbers - n_pos_inf - n_neg_inf
    # Comparing does not tell zeros of different signs from each other; their counts do.
    smallest = tl.where(smallest == 0.0, tl.where(n_neg_zero > 0, -zero, zero), smallest)
    largest = tl.where(largest == 0.0, tl.where(n_zero > n_neg_zero, zero, -zero), largest)
    smallest = tl.where(n_neg_inf > 0, -inf, tl.where(n_finite > 0, smallest, inf))
    largest = tl.where(n_pos_inf > 0, inf, tl.where(n_finite > 0, largest, -inf))
    total = tl.where(n_pos_inf > 0, tl.where(n_neg_inf > 0, nan, inf), tl.where(n_neg_inf > 0, -inf, total))
    has_infinity = n_pos_inf + n_neg_inf > 0
    divisor = tl.maximum(n_numbers, 1).to(tl.float64)
    mean = tl.where(n_numbers > 0, total / divisor, nan)
    std = tl.where((n_numbers > 0) & (has_infinity == 0), tl.sqrt(tl.maximum(deviation, 0.0) / divisor), nan)
    # Sums that have overflowed to both sides say nothing of the spread.
    std = tl.where(deviation == deviation, std, nan)
    for word in tl.static_range(9):
        _store(row, word, part[word])
    _store(row, 9, smallest)
    _store(row, 10, largest)
    _store(row, 11, total)
    _store(row, 12, tl.where(has_infinity, inf, magnitudes))
    _store(row, 13, tl.where(has_infinity, inf, _root(up, none, down)))
    _store(row, 14, mean)
    _store(row, 15, std)
    for word in tl.static_range(16, 19):
        _store(row, word, tl.where(part[word] == _NONE, -1, part[word]))
    _store(row, 19, _mix(part[19] + n_bytes.to(tl.uint64) * _KEY_LOW))
    _store(row, 20, _mix(part[20] + n_bytes.to(tl.uint64) * _KEY_HIGH))
    if HAS_HISTOGRAM:
        # The counts of the histogram are added later.
        tl.store(row + 21 + tl.arange(0, 128), tl.zeros((128,), tl.int64))


@triton.jit
def _n_lines(n_bytes):
    """Lines of the stripes that have so many bytes."""
    STRIPE_BYTES: tl.constexpr = LINE * 4 * STRIPE_LINES
    return (n_bytes + STRIPE_BYTES - 1) // STRIPE_BYTES * STRIPE_LINES


@triton.jit
def _whole(view, row, KIND: tl.constexpr, ITEM: tl.constexpr, ELEMENT: tl.constexpr, N_DIMS: tl.constexpr, IS_DENSE: tl.constexpr, HAS_HISTOGRAM: tl.constexpr):
    """A tensor that one program looks at alone."""
    n_bytes = view[1] * ITEM
    part = _part(view, view[1] * 0, _n_lines(n_bytes), KIND, ITEM, ELEMENT, N_DIMS, IS_DENSE)
    squares, scale = part[13], part[21]
    zero = tl.full((), 0.0, tl.float64)
    up, none = tl.where(scale < 0.0, squares, zero), tl.where(scale == 0.0, squares, zero)
    _store_row(row, part, up, none, tl.where(scale > 0.0, squares, zero), n_bytes, HAS_HISTOGRAM)


@triton.jit(do_not_specialize=_REDUCE_SMALL_NUMBERS)
def reduce_small(
    rows: tl.int64,
    a0: tl.int64, a1: tl.int64, a2: tl.int64, a3: tl.int64, a4: tl.int64, a5: tl.int64, a6: tl.int64, a7: tl.int64,
    n0: tl.int64, n1: tl.int64, n2: tl.int64, n3: tl.int64, n4: tl.int64, n5: tl.int64, n6: tl.int64, n7: tl.int64,
    r0: tl.int64, r1: tl.int64, r2: tl.int64, r3: tl.int64, r4: tl.int64, r5: tl.int64, r6: tl.int64, r7: tl.int64,
    KIND: tl.constexpr, ITEM: tl.constexpr, ELEMENT: tl.constexpr, IS_DENSE: tl.constexpr, HAS_HISTOGRAM: tl.constexpr,
):
    """Fills the rows of up to eight small tensors without gaps, a program for each.

    `rows` and `a…` are addresses in bytes, `n…` numbers of elements, `r…` distances from `rows` in words.
    """
    i = tl.program_id(0)
    address = tl.where(i == 0, a0, tl.where(i == 1, a1, tl.where(i == 2, a2, a3)))
    address = tl.where(i < 4, address, tl.where(i == 4, a4, tl.where(i == 5, a5, tl.where(i == 6, a6, a7))))
    n = tl.where(i == 0, n0, tl.where(i == 1, n1, tl.where(i == 2, n2, n3)))
    n = tl.where(i < 4, n, tl.where(i == 4, n4, tl.where(i == 5, n5, tl.where(i == 6, n6, n7))))
    row = tl.where(i == 0, r0, tl.where(i == 1, r1, tl.where(i == 2, r2, r3)))
    row = tl.where(i < 4, row, tl.where(i == 4, r4, tl.where(i == 5, r5, tl.where(i == 6, r6, r7))))
    one = tl.full((), 1, tl.int64)
    # The interpreter takes small numbers for those of 32 bits.
    view = (address.to(tl.int64), n.to(tl.int64), one, one, one, one, one, one, one)
    to = rows.to(tl.int64).to(tl.pointer_type(tl.int64)) + row
    _whole(view, to, KIND, ITEM, ELEMENT, 1, IS_DENSE, HAS_HISTOGRAM)


@triton.jit
def _view(address, n, n1, n2, n3, s0, s1, s2, s3):
    shape = (n1.to(tl.int64), n2.to(tl.int64), n3.to(tl.int64))
    strides = (s0.to(tl.int64), s1.to(tl.int64), s2.to(tl.int64), s3.to(tl.int64))
    return (address.to(tl.int64), n.to(tl.int64)) + shape + strides


@triton.jit(do_not_specialize=_REDUCE_PARTS_NUMBERS)
def reduce_parts(
    parts: tl.int64, address: tl.int64, n: tl.int64, n_program_lines: tl.int64,
    n1: tl.int64, n2: tl.int64, n3: tl.int64, s0: tl.int64, s1: tl.int64, s2: tl.int64, s3: tl.int64,
    KIND: tl.constexpr, ITEM: tl.constexpr, ELEMENT: tl.constexpr, N_DIMS: tl.constexpr, IS_DENSE: tl.constexpr,
):
    """Stores partial results of one tensor, of which each program looks at `n_program_lines` lines."""
    i = tl.program_id(0).to(tl.int64)
    view = _view(address, n, n1, n2, n3, s0, s1, s2, s3)
    first_line = i * n_program_lines
    n_lines = tl.minimum(n_program_lines, _n_lines(view[1] * ITEM) - first_line)
    part = _part(view, first_line, n_lines, KIND, ITEM, ELEMENT, N_DIMS, IS_DENSE)
    to = parts.to(tl.int64).to(tl.pointer_type(tl.int64)) + i * PARTIAL_WORDS
    for word in tl.static_range(PARTIAL_WORDS):
        _store(to, word, part[word])


@triton.jit
def _column(parts, i, n_parts, word: tl.constexpr, other: tl.constexpr):
    return tl.load(parts + i * PARTIAL_WORDS + word, mask=i < n_parts, other=other)


@triton.jit
def _reals(parts, i, n_parts, word: tl.constexpr, other: tl.constexpr):
    bits = _column(parts, i, n_parts, word, 0)
    return tl.where(i < n_parts, bits.to(tl.float64, bitcast=True), other)


@triton.jit(do_not_specialize=_JOIN_PARTS_NUMBERS)
def join_parts(rows: tl.int64, row: tl.int64, parts_address: tl.int64, n_parts: tl.int64, n_bytes: tl.int64, HAS_HISTOGRAM: tl.constexpr):
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
    nan_at, pos_inf_at, neg_inf_at = none + _NONE, none + _NONE, none + _NONE
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
        total, total_lost = _two_sum(total, total_lost, _reals(parts, i, n_parts, 11, 0.0))
        magnitudes, magnitudes_lost = _two_sum(magnitudes, magnitudes_lost, _reals(parts, i, n_parts, 12, 0.0))
        squares, scale = _reals(parts, i, n_parts, 13, 0.0), _reals(parts, i, n_parts, 21, 0.0)
        up += tl.where(scale < 0.0, squares, 0.0)
        unscaled += tl.where(scale == 0.0, squares, 0.0)
        down += tl.where(scale > 0.0, squares, 0.0)
        nan_at = tl.minimum(nan_at, _column(parts, i, n_parts, 16, _NONE))
        pos_inf_at = tl.minimum(pos_inf_at, _column(parts, i, n_parts, 17, _NONE))
        neg_inf_at = tl.minimum(neg_inf_at, _column(parts, i, n_parts, 18, _NONE))
        hash_low += _column(parts, i, n_parts, 19, 0)
        hash_high += _column(parts, i, n_parts, 20, 0)
    # Once a sum has overflowed, what it lost is not a number.
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
    _store_row(to, part, tl.sum(up), tl.sum(unscaled), tl.sum(down), n_bytes, HAS_HISTOGRAM)


@triton.jit(do_not_specialize=_ADD_HISTOGRAM_NUMBERS)
def add_histogram(
    rows: tl.int64, row: tl.int64, address: tl.int64, n: tl.int64, n_program_steps: tl.int64,
    n1: tl.int64, n2: tl.int64, n3: tl.int64, s0: tl.int64, s1: tl.int64, s2: tl.int64, s3: tl.int64,
    KIND: tl.constexpr, ELEMENT: tl.constexpr, N_DIMS: tl.constexpr,
):
    """Adds the magnitudes of one tensor, by their power of two, to the histogram of its row."""
    i = tl.program_id(0).to(tl.int64)
    view = _view(address, n, n1, n2, n3, s0, s1, s2, s3)
    column = tl.arange(0, LINE)
    counts = tl.zeros((256,), tl.int32)
    for step in range(n_program_steps):
        element = (i * n_program_steps + step) * LINE + column
        value, bits, is_there = _elements(view, element, KIND, N_DIMS, ELEMENT)
        pattern = value.to(tl.int64, bitcast=True)
        exponent = ((pattern >> 52) & 0x7FF).to(tl.int32) - 1023
        place = tl.minimum(tl.maximum(exponent + 40, 0), 63) + tl.where(value < 0.0, 64, 0)
        is_counted = is_there & (value == value) & (value != 0.0) & (tl.abs(value) != float("inf"))
        # What is in no bin goes where nobody looks.
        counts += tl.histogram(tl.where(is_counted, place, 255), 256)
    to = rows.to(tl.int64).to(tl.pointer_type(tl.int64)) + row + 21
    which = tl.arange(0, 256)
    # Integers: the order of the additions does not matter.
    tl.atomic_add(to + which, counts.to(tl.int64), mask=(which < 128) & (counts > 0), sem="relaxed")
