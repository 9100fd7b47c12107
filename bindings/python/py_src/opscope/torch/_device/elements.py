"""Loading elements in Triton, in any layout.

A view is the address of the first element, the number of elements, the sizes of the last three axes
and the strides, in elements, of the last four. A tensor's bytes, dense and in row-major order, form
words of four bytes; 512 words are a line and 16 lines a stripe.
"""

# ruff: noqa: SIM109 (Triton compiles comparisons of constants, not `in`)

import triton
import triton.language as tl

from .kinds import BOOL, E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E8M0, F64, I8, I16, I32, I64, U8, U16, U32, U64, value_of

# These constants define the hash; the core has the same ones.
LINE = tl.constexpr(512)
STRIPE_LINES = tl.constexpr(16)


@triton.jit
def offset_of(i, view, N_DIMS: tl.constexpr):
    """The offset, in elements, of the `i`th element in row-major order."""
    _, _, n1, n2, n3, s0, s1, s2, s3 = view
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
def words_from(view, first, N_DIMS: tl.constexpr, ITEM: tl.constexpr, IS_DENSE: tl.constexpr):
    """A line of words from the word `first` on; zero beyond the last element."""
    column = tl.arange(0, LINE)
    if IS_DENSE:
        words = view[0].to(tl.pointer_type(tl.uint32)) + first
        return tl.load(tl.multiple_of(tl.max_contiguous(words + column, 4), 4 * 4))
    if ITEM == 8:
        at = first + column
        element = at // 2
        words = view[0].to(tl.pointer_type(tl.uint32))
        offset = offset_of(element, view, N_DIMS)
        return tl.load(words + offset * 2 + at % 2, mask=element < view[1], other=0)
    elif ITEM == 4:
        element = first + column
        words = view[0].to(tl.pointer_type(tl.uint32))
        return tl.load(words + offset_of(element, view, N_DIMS), mask=element < view[1], other=0)
    else:
        word = tl.zeros((LINE,), tl.uint32)
        for part in tl.static_range(4 // ITEM):
            element = (first + column) * (4 // ITEM) + part
            offset = offset_of(element, view, N_DIMS)
            if ITEM == 2:
                bits = tl.load(view[0].to(tl.pointer_type(tl.uint16)) + offset, mask=element < view[1], other=0)
            else:
                bits = tl.load(view[0].to(tl.pointer_type(tl.uint8)) + offset, mask=element < view[1], other=0)
            word |= bits.to(tl.uint32) << (8 * ITEM * part)
        return word


@triton.jit
def elements_at(view, element, KIND: tl.constexpr, N_DIMS: tl.constexpr, ELEMENT: tl.constexpr):
    """Elements as `float64` and as bits, and whether they exist."""
    is_there = element < view[1]
    offset = offset_of(element, view, N_DIMS)
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
        value = value_of(bits.to(tl.uint32), KIND).to(tl.float64)
        if KIND == E4M3FN:
            value = tl.where((bits & 0x7F) == 0x7F, nan, value)
        elif KIND == E5M2:
            value = tl.where((bits & 0x7F) > 0x7C, nan, value)
            value = tl.where(bits == 0x7C, float("inf"), tl.where(bits == 0xFC, float("-inf"), value))
        elif KIND == E4M3FNUZ or KIND == E5M2FNUZ:
            value = tl.where(bits == 0x80, nan, value)
    return value, bits, is_there
