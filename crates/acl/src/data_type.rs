//! `aclDataType` and `aclFormat`: their numbers, sizes, and the interface's own half precision.

use opscope_tensor::DType;

/// `ACL_DT_UNDEFINED` and `ACL_FORMAT_UNDEFINED`.
pub(crate) const UNDEFINED: i32 = -1;
/// `ACL_FORMAT_NCHW`.
pub(crate) const FORMAT_NCHW: i32 = 0;
/// `ACL_FORMAT_ND`.
pub(crate) const FORMAT_ND: i32 = 2;

/// The numbers of `aclDataType`.
const NUMBERS: &[(i32, DType)] = &[
    (0, DType::F32),
    (1, DType::F16),
    (2, DType::I8),
    (3, DType::I32),
    (4, DType::U8),
    (6, DType::I16),
    (7, DType::U16),
    (8, DType::U32),
    (9, DType::I64),
    (10, DType::U64),
    (11, DType::F64),
    (12, DType::Bool),
    (13, DType::String),
    (14, DType::DualSubI8),
    (15, DType::DualSubU8),
    (16, DType::C64),
    (17, DType::C128),
    (18, DType::QI8),
    (19, DType::QI16),
    (20, DType::QI32),
    (21, DType::QU8),
    (22, DType::QU16),
    (23, DType::Resource),
    (24, DType::StringRef),
    (25, DType::Dual),
    (26, DType::Variant),
    (27, DType::BF16),
    (29, DType::I4),
    (30, DType::U1),
    (31, DType::I2),
    (32, DType::U2),
    (33, DType::C32),
    (34, DType::HiF8),
    (35, DType::F8E5M2),
    (36, DType::F8E4M3FN),
    (37, DType::F8E8M0),
    (38, DType::F6E3M2),
    (39, DType::F6E2M3),
    (40, DType::F4E2M1),
    (41, DType::F4E1M2),
    (42, DType::HiF4),
    (43, DType::HiF4Scale),
];

/// The number of `dtype` in `aclDataType`; -1 if it has none.
pub(crate) fn number(dtype: DType) -> i32 {
    NUMBERS
        .iter()
        .find(|(_, known)| *known == dtype)
        .map_or(UNDEFINED, |(number, _)| *number)
}

/// The dtype behind a number of `aclDataType`.
pub(crate) fn dtype(number: i32) -> Option<DType> {
    NUMBERS
        .iter()
        .find(|(known, _)| *known == number)
        .map(|(_, dtype)| *dtype)
}

/// `aclDataTypeSize`: bytes of one element. Text and the undefined type have none, types narrower
/// than a byte count one, and numbers that it does not know count eight.
pub fn data_type_size(number: i32) -> usize {
    match number {
        UNDEFINED | 13 => 0,
        2 | 4 | 12 | 29 | 30 | 34..=41 => 1,
        1 | 6 | 7 | 27 => 2,
        0 | 3 | 8 | 33 => 4,
        17 => 16,
        _ => 8,
    }
}

/// Bits of a half's mantissa, and the distance between the exponents of half and single precision.
const HALF_MANTISSA_BITS: u32 = 10;
const SINGLE_MANTISSA_BITS: u32 = 23;
const BIAS_DIFFERENCE: u32 = 127 - 15;
/// The largest finite half, 65504.
const HALF_MAX: u16 = 0x7bff;

/// `aclFloat16ToFloat`. The interface's halves have no infinities and no NaN: the largest exponent
/// is an ordinary one, so `0x7c00` is 65536 and `0x7e00` is 98304.
pub fn float16_to_float(value: u16) -> f32 {
    let sign = u32::from(value & 0x8000) << 16;
    let magnitude = u32::from(value & 0x7fff);
    if magnitude >> HALF_MANTISSA_BITS == 0 {
        return half::f16::from_bits(value).to_f32();
    }
    let shift = SINGLE_MANTISSA_BITS - HALF_MANTISSA_BITS;
    f32::from_bits(sign | ((magnitude << shift) + (BIAS_DIFFERENCE << SINGLE_MANTISSA_BITS)))
}

/// `aclFloatToFloat16`: to the nearest half, ties to even. What is too large, infinite or NaN
/// becomes the largest half of its sign.
pub fn float_to_float16(value: f32) -> u16 {
    let half = half::f16::from_f32(value);
    if half.is_finite() {
        return half.to_bits();
    }
    (half.to_bits() & 0x8000) | HALF_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_have_no_specials() {
        let cases: &[(u16, f32)] = &[
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65504.0),
            (0x7c00, 65536.0),
            (0xfc00, -65536.0),
            (0x7e00, 98304.0),
        ];
        for (half, single) in cases {
            assert_eq!(float16_to_float(*half), *single, "{half:#x}");
        }
        let cases: &[(f32, u16)] = &[
            (1.0, 0x3c00),
            (-0.0, 0x8000),
            (65504.0, 0x7bff),
            (65536.0, 0x7bff),
            (-1e9, 0xfbff),
            (f32::INFINITY, 0x7bff),
            (f32::NEG_INFINITY, 0xfbff),
            (f32::NAN, 0x7bff),
            (1e-10, 0x0000),
        ];
        for (single, half) in cases {
            assert_eq!(float_to_float16(*single), *half, "{single}");
        }
    }

    #[test]
    fn sizes_are_those_of_the_interface() {
        let cases = [
            (-1, 0),
            (13, 0),
            (0, 4),
            (1, 2),
            (9, 8),
            (12, 1),
            (16, 8),
            (17, 16),
        ];
        for (number, size) in cases
            .into_iter()
            .chain([(27, 2), (29, 1), (33, 4), (999, 8)])
        {
            assert_eq!(data_type_size(number), size, "{number}");
        }
        // Where both are defined the size agrees with the dtype's own.
        for (number, dtype) in NUMBERS.iter().filter(|(number, _)| *number < 18) {
            if let (Some(bytes), false) = (dtype.bytes(), matches!(number, 14 | 15)) {
                assert_eq!(data_type_size(*number), bytes, "{dtype}");
            }
        }
    }

    #[test]
    fn numbers_read_back() {
        for &(n, known) in NUMBERS {
            assert_eq!((number(known), dtype(n)), (n, Some(known)));
        }
        assert_eq!(
            (number(DType::Undefined), dtype(-1), dtype(5)),
            (-1, None, None)
        );
    }
}
