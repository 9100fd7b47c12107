//! The values of floating-point formats of eight bits and less.
//!
//! Plain arithmetic on the fields of one code, fit for constant evaluation: the tables are built
//! from it when the crate is compiled.

use half::f16;

/// A format of at most eight bits whose values all fit binary16.
#[derive(Clone, Copy)]
pub(super) enum MiniFloat {
    E5M2,
    E4M3FN,
    E4M3FNUZ,
    E5M2FNUZ,
    HiF8,
    E3M2,
    E2M3,
    E2M1,
    E1M2,
}

impl MiniFloat {
    /// The binary16 of the same value, little-endian. Bits of `code` above the format's width must
    /// be zero.
    pub(super) const fn f16_bytes(self, code: u8) -> [u8; 2] {
        let bits = match self {
            // The same exponent field, so the code is the upper half of the result, NaN included.
            MiniFloat::E5M2 => (code as u16) << 8,
            // Without infinities, all other codes of the highest exponent are numbers.
            MiniFloat::E4M3FN if code & 0x7f == 0x7f => nan(code >> 7),
            MiniFloat::E4M3FN => bits(ieee_like(code, 4, 3, 7)),
            // Where a negative zero would be.
            MiniFloat::E4M3FNUZ | MiniFloat::E5M2FNUZ | MiniFloat::HiF8 if code == 0x80 => nan(0),
            MiniFloat::E4M3FNUZ => bits(ieee_like(code, 4, 3, 8)),
            MiniFloat::E5M2FNUZ => bits(ieee_like(code, 5, 2, 16)),
            MiniFloat::HiF8 => bits(hifloat8(code)),
            MiniFloat::E3M2 => bits(ieee_like(code, 3, 2, 3)),
            MiniFloat::E2M3 => bits(ieee_like(code, 2, 3, 1)),
            MiniFloat::E2M1 => bits(ieee_like(code, 2, 1, 1)),
            MiniFloat::E1M2 => bits(ieee_like(code, 1, 2, 1)),
        };
        bits.to_le_bytes()
    }
}

/// The binary32 of an e8m0 scale: 2^(code - 127), all ones is NaN.
pub(super) const fn e8m0_bytes(code: u8) -> [u8; 4] {
    let bits = match code {
        0xff => 0x7fc0_0000,
        // 2^-127 is below the normal range.
        0 => 0x0040_0000,
        _ => (code as u32) << 23,
    };
    bits.to_le_bytes()
}

const fn nan(sign: u8) -> u16 {
    ((sign as u16) << 15) | 0x7e00
}

const fn bits(value: f64) -> u16 {
    f16::from_f64_const(value).to_bits()
}

/// Sign, exponent and mantissa, with subnormal numbers and without special values.
const fn ieee_like(code: u8, n_exponent_bits: u32, n_mantissa_bits: u32, bias: i32) -> f64 {
    let mantissa_mask = (1 << n_mantissa_bits) - 1;
    let mantissa = (code & mantissa_mask) as f64 / (1_u32 << n_mantissa_bits) as f64;
    let exponent = ((code >> n_mantissa_bits) & ((1 << n_exponent_bits) - 1)) as i32;
    let magnitude = if exponent == 0 {
        mantissa * power_of_two(1 - bias)
    } else {
        (1.0 + mantissa) * power_of_two(exponent - bias)
    };
    signed(code >> (n_exponent_bits + n_mantissa_bits), magnitude)
}

/// Sign, a prefix that encodes the width of the exponent, exponent, mantissa.
///
/// The exponent is a sign and a magnitude whose leading one is not stored, so that every width
/// covers the exponents which the narrower ones leave out.
const fn hifloat8(code: u8) -> f64 {
    let low = code & 0x7f;
    let (n_exponent_bits, n_mantissa_bits) = match low {
        0x6f => return signed(code >> 7, f64::INFINITY),
        // The sign cannot be set: 0x80, where -0 would be, is NaN and does not get here.
        0 => return 0.0,
        // The denormal numbers: powers of two from 2^-22 on.
        0x01..0x08 => return signed(code >> 7, power_of_two(low as i32 - 23)),
        // An exponent of zero, which has no bits.
        0x08..0x10 => return signed(code >> 7, 1.0 + (low & 7) as f64 / 8.0),
        0x10..0x20 => (1, 3),
        0x20..0x40 => (2, 3),
        0x40..0x60 => (3, 2),
        _ => (4, 1),
    };
    let mantissa = (low & ((1 << n_mantissa_bits) - 1)) as f64 / (1_u32 << n_mantissa_bits) as f64;
    let exponent = (low >> n_mantissa_bits) & ((1 << n_exponent_bits) - 1);
    let sign_bit = 1 << (n_exponent_bits - 1);
    // The sign bit is as large as the implicit leading one, so setting it always yields the
    // magnitude.
    let magnitude = (exponent | sign_bit) as i32;
    let exponent = if exponent & sign_bit == 0 {
        magnitude
    } else {
        -magnitude
    };
    signed(code >> 7, (1.0 + mantissa) * power_of_two(exponent))
}

const fn signed(sign: u8, magnitude: f64) -> f64 {
    if sign == 0 { magnitude } else { -magnitude }
}

/// 2^`exponent` for exponents in the normal range of `f64`.
const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}
