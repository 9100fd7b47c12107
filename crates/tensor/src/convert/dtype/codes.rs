//! The value of each pattern of the dtypes that have at most 256.

use half::f16;

use super::table;
use crate::DType;

/// The meaning of the bit patterns of a narrow dtype.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeValues {
    /// Width of an element.
    pub(crate) n_bits: usize,
    /// Whether the first element of a byte is in its most significant bits.
    pub(crate) is_msb_first: bool,
    /// The value of a code; bits above the width are zero.
    pub(crate) value: fn(u8) -> f64,
    /// The smallest magnitude that is not subnormal; zero for integers.
    pub(crate) smallest_normal: f64,
    /// The lowest finite value.
    lowest: f64,
    /// The highest finite value.
    highest: f64,
}

impl CodeValues {
    /// Whether all values are integers, few and small.
    pub(crate) fn is_integer(&self) -> bool {
        // `float8_e8m0` has no subnormal numbers either, but it has eight bits.
        self.smallest_normal == 0.0 && self.n_bits < 8
    }

    /// The bits of a code.
    pub(crate) fn mask(&self) -> u8 {
        u8::MAX >> (8 - self.n_bits)
    }

    /// Whether a value is at an end of the range.
    pub(crate) fn is_saturated(&self, value: f64) -> bool {
        value == self.lowest || value == self.highest
    }
}

fn float(n_bits: usize, value: fn(u8) -> f64, smallest_normal: f64, highest: f64) -> CodeValues {
    CodeValues {
        n_bits,
        is_msb_first: false,
        value,
        smallest_normal,
        lowest: -highest,
        highest,
    }
}

fn integer(n_bits: usize, value: fn(u8) -> f64, lowest: f64, highest: f64) -> CodeValues {
    CodeValues {
        lowest,
        ..float(n_bits, value, 0.0, highest)
    }
}

/// The values of a dtype of at most eight bits that is neither a whole-byte integer nor opaque.
pub(crate) fn code_values(dtype: DType) -> Option<CodeValues> {
    use DType::*;
    Some(match dtype {
        F8E5M2 => float(8, |c| half(table::E5M2[usize::from(c)]), two(-14), 57_344.0),
        F8E4M3FN => float(8, |c| half(table::E4M3FN[usize::from(c)]), two(-6), 448.0),
        F8E4M3FNUZ => float(8, |c| half(table::E4M3FNUZ[usize::from(c)]), two(-7), 240.0),
        F8E5M2FNUZ => float(
            8,
            |c| half(table::E5M2FNUZ[usize::from(c)]),
            two(-15),
            57_344.0,
        ),
        HiF8 => float(8, |c| half(table::HIF8[usize::from(c)]), two(-15), 32_768.0),
        // Powers of two only: none is subnormal, and both ends are positive.
        F8E8M0 => CodeValues {
            lowest: two(-127),
            ..float(
                8,
                |c| f32::from_le_bytes(table::E8M0[usize::from(c)]).into(),
                0.0,
                two(127),
            )
        },
        F6E3M2 => float(
            6,
            |c| half(table::E3M2[usize::from(c & 0x3f)]),
            two(-2),
            28.0,
        ),
        F6E2M3 => float(6, |c| half(table::E2M3[usize::from(c & 0x3f)]), 1.0, 7.5),
        F4E2M1 => float(4, |c| pair(table::E2M1[usize::from(c)]), 1.0, 6.0),
        F4E1M2 | HiF4 => float(4, |c| pair(table::E1M2[usize::from(c)]), 1.0, 1.75),
        I4 => integer(4, |c| signed(table::I4[usize::from(c)]), -8.0, 7.0),
        U4 => integer(4, |c| table::U4[usize::from(c)][0].into(), 0.0, 15.0),
        I2 => integer(2, |c| signed(table::I2[usize::from(c)]), -2.0, 1.0),
        U2 => integer(2, |c| table::U2[usize::from(c)][0].into(), 0.0, 3.0),
        // One bit is a flag rather than a number that has run into its limits.
        U1 => CodeValues {
            is_msb_first: true,
            ..integer(
                1,
                |c| table::U1[usize::from(c)][7].into(),
                f64::NAN,
                f64::NAN,
            )
        },
        Undefined | F32 | F16 | I8 | U8 | I16 | U16 | I32 | I64 | U32 | U64 | Bool | F64
        | String | DualSubI8 | DualSubU8 | C64 | C128 | QI8 | QI16 | QI32 | QU8 | QU16
        | Resource | StringRef | Dual | Variant | BF16 | C32 | HiF4Scale => return None,
    })
}

fn half(bytes: [u8; 2]) -> f64 {
    f16::from_le_bytes(bytes).to_f64()
}

/// The first of two elements.
fn pair([a, b, ..]: [u8; 4]) -> f64 {
    half([a, b])
}

/// The first of several elements.
fn signed<const N: usize>(elements: [u8; N]) -> f64 {
    elements[0].cast_signed().into()
}

/// 2^`exponent` for exponents in the normal range.
const fn two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;
    use crate::convert::dtype::decode;

    /// Every code decodes to its value, and the ends of the range are those of the values.
    #[test]
    fn values_agree_with_decoding() {
        for &dtype in DType::ALL {
            let Some(values) = code_values(dtype) else {
                continue;
            };
            assert_eq!(dtype.bits(), Some(values.n_bits as u32));
            let mut highest = f64::NEG_INFINITY;
            for code in 0..(1_u32 << values.n_bits) {
                let code = code as u8;
                let byte = if values.is_msb_first { code << 7 } else { code };
                let shape = Shape::new([1]).unwrap();
                let bytes = [byte];
                let decoded = decode(dtype, &shape, &bytes).unwrap();
                let expected = match (decoded.dtype, &*decoded.bytes) {
                    (DType::I8, [a]) => f64::from(*a as i8),
                    (DType::U8, [a]) => f64::from(*a),
                    (DType::F16, [a, b]) => half([*a, *b]),
                    (DType::F32, [a, b, c, d]) => f32::from_le_bytes([*a, *b, *c, *d]).into(),
                    other => panic!("{dtype}: {other:?}"),
                };
                let value = (values.value)(code);
                let is_same = value.to_bits() == expected.to_bits();
                assert!(
                    is_same || value.is_nan() && expected.is_nan(),
                    "{dtype} {code:#x}"
                );
                if value.is_finite() {
                    highest = highest.max(value);
                }
            }
            if dtype != DType::U1 {
                assert!(values.is_saturated(highest), "{dtype}: {highest}");
            }
        }
    }
}
