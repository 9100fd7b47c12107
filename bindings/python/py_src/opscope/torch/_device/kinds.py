"""Kinds of elements in Triton: the meaning of bits. Names of kinds are those of torch's dtypes."""

# ruff: noqa: SIM109 (Triton compiles comparisons of constants, not `in`)

import triton
import triton.language as tl

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
# Kinds from here on are always summed in `float64`.
F64 = tl.constexpr(10)
I16 = tl.constexpr(11)
U16 = tl.constexpr(12)
I32 = tl.constexpr(13)
U32 = tl.constexpr(14)
I64 = tl.constexpr(15)
U64 = tl.constexpr(16)
E8M0 = tl.constexpr(17)


@triton.jit
def _float8(bits, EXPONENT_BITS: tl.constexpr, BIAS: tl.constexpr):
    """The `float32` of eight bits, for numbers that are neither NaN nor infinite."""
    shift: tl.constexpr = 16 + EXPONENT_BITS
    magnitude = (bits & 0x7F) << shift
    sign = (bits & 0x80) << 24
    # As `float32` this has the right digits, with an exponent too small by the difference of the
    # biases.
    scale: tl.constexpr = 2.0 ** (127 - BIAS)
    return (magnitude | sign).to(tl.float32, bitcast=True) * scale


@triton.jit
def value_of(bits, KIND: tl.constexpr):
    """The `float32` of an element of at most 32 bits; does not distinguish NaN and infinities of
    float8."""
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
        # Conversions are slow on devices; these are the bits of the number plus 2^23 + 128.
        return ((bits ^ 0x80) | 0x4B000000).to(tl.float32, bitcast=True) - 8388736.0
    else:
        return (bits | 0x4B000000).to(tl.float32, bitcast=True) - 8388608.0


@triton.jit
def smallest_normal(KIND: tl.constexpr):
    """The bits of the smallest normal number; 0 for kinds without subnormal numbers."""
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
def largest_magnitude(KIND: tl.constexpr):
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
def is_saturated(bits, KIND: tl.constexpr):
    """Whether elements are at a limit of their dtype's range."""
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
        return (bits & 0x7FFFFFFF) == largest_magnitude(KIND)
    elif KIND == F16 or KIND == BF16:
        return (bits & 0x7FFF) == largest_magnitude(KIND)
    else:
        return ((bits & 0x7F) == largest_magnitude(KIND)) & (bits != 0x80)


@triton.jit
def is_subnormal(bits, KIND: tl.constexpr):
    """Whether elements are subnormal in their dtype; zero is not."""
    if KIND == F64:
        magnitude = bits & 0x7FFFFFFFFFFFFFFF
        return (magnitude != 0) & (magnitude < 0x0010000000000000)
    elif KIND == F32:
        magnitude = bits & 0x7FFFFFFF
        return (magnitude != 0) & (magnitude < smallest_normal(KIND))
    elif KIND == F16 or KIND == BF16:
        magnitude = bits & 0x7FFF
        return (magnitude != 0) & (magnitude < smallest_normal(KIND))
    elif KIND == E4M3FN or KIND == E5M2 or KIND == E4M3FNUZ or KIND == E5M2FNUZ:
        magnitude = bits & 0x7F
        return (magnitude != 0) & (magnitude < smallest_normal(KIND))
    else:
        # Never, for these kinds.
        return bits != bits


@triton.jit
def is_negative_zero(bits, KIND: tl.constexpr):
    """Whether elements are negative zeros."""
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
