//! `aclDataType` and `aclFormat`: their numbers and sizes, and the interface's half precision.

use opscope_store::file_format::ascend_codes::graph_engine_code;
use opscope_tensor::DType;

/// `ACL_DT_UNDEFINED` and `ACL_FORMAT_UNDEFINED`.
pub(crate) const UNDEFINED: i32 = -1;
/// `ACL_FORMAT_NCHW`.
pub(crate) const FORMAT_NCHW: i32 = 0;
/// `ACL_FORMAT_NHWC`.
pub(crate) const FORMAT_NHWC: i32 = 1;
/// `ACL_FORMAT_ND`.
pub(crate) const FORMAT_ND: i32 = 2;

/// The `aclDataType` of `dtype`; -1 if it has none.
pub(crate) fn number(dtype: DType) -> i32 {
    graph_engine_code(dtype).unwrap_or(UNDEFINED)
}

/// `aclDataTypeSize`: bytes of one element. Text and the undefined type have 0, types narrower than
/// a byte 1, and unknown numbers 8.
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

/// Bits of a half's mantissa, and the difference between the exponent biases of half and single
/// precision.
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
    // A subnormal half has no leading one, which a mere shift would add.
    if magnitude >> HALF_MANTISSA_BITS == 0 {
        return half::f16::from_bits(value).to_f32();
    }
    let shift = SINGLE_MANTISSA_BITS - HALF_MANTISSA_BITS;
    f32::from_bits(sign | ((magnitude << shift) + (BIAS_DIFFERENCE << SINGLE_MANTISSA_BITS)))
}

/// `aclFloatToFloat16`: rounds to nearest, ties to even. Too large numbers, infinities and NaN
/// become the largest half with the same sign.
pub fn float_to_float16(value: f32) -> u16 {
    let half = half::f16::from_f32(value);
    if half.is_finite() {
        return half.to_bits();
    }
    (half.to_bits() & 0x8000) | HALF_MAX
}

#[cfg(test)]
mod tests {
    use opscope_store::file_format::ascend_codes::dtype_from_graph_engine;

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
        // If both define a size, it must agree with the dtype's.
        let known = (0..18).filter_map(|n| Some((n, dtype_from_graph_engine(n)?)));
        for (number, dtype) in known {
            if let (Some(bytes), false) = (dtype.bytes(), matches!(number, 14 | 15)) {
                assert_eq!(data_type_size(number), bytes, "{dtype}");
            }
        }
    }

    #[test]
    fn numbers_read_back() {
        for &known in DType::ALL {
            let n = number(known);
            let expected = (n != UNDEFINED).then_some(known);
            assert_eq!(dtype_from_graph_engine(n), expected);
        }
        assert_eq!(
            (
                number(DType::Undefined),
                dtype_from_graph_engine(-1),
                dtype_from_graph_engine(5)
            ),
            (-1, None, None)
        );
    }
}
