//! Counting NaN and infinities alone, at the speed of memory.

use crate::{DType, TensorView};

/// How many elements are not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonFinite {
    /// Elements that are NaN.
    pub n_nan: u64,
    /// Elements that are `+inf`.
    pub n_pos_inf: u64,
    /// Elements that are `-inf`.
    pub n_neg_inf: u64,
}

impl NonFinite {
    /// Whether any element is NaN or infinite.
    pub fn any(self) -> bool {
        self != NonFinite::default()
    }
}

/// Counts the NaN and infinite elements of `tensor`.
///
/// Types that cannot hold any, and types narrower than a byte, give zeros. A complex element counts
/// once for each of its two parts.
pub fn non_finite(tensor: TensorView<'_>) -> NonFinite {
    let bytes = tensor.bytes;
    match tensor.dtype {
        DType::F32 | DType::C64 => count::<4>(bytes, |b| u32::from_le_bytes(b).into(), 31, 23),
        DType::F64 | DType::C128 => count::<8>(bytes, u64::from_le_bytes, 63, 52),
        DType::F16 | DType::C32 => count::<2>(bytes, |b| u16::from_le_bytes(b).into(), 15, 10),
        DType::BF16 => count::<2>(bytes, |b| u16::from_le_bytes(b).into(), 15, 7),
        DType::F8E5M2 => count::<1>(bytes, |[b]| b.into(), 7, 2),
        DType::F8E4M3FN => nan_codes(bytes, |b| b & 0x7f == 0x7f),
        DType::F8E8M0 => nan_codes(bytes, |b| b == 0xff),
        DType::HiF8 => NonFinite {
            n_pos_inf: n_codes(bytes, |b| b == 0x6f),
            n_neg_inf: n_codes(bytes, |b| b == 0xef),
            ..nan_codes(bytes, |b| b == 0x80)
        },
        _ => NonFinite::default(),
    }
}

/// Bytes that [`has_non_finite`] looks at before it decides; a multiple of every element's width.
const SCAN_BYTES: usize = 1 << 16;

fn nan_codes(bytes: &[u8], is_nan: impl Fn(u8) -> bool) -> NonFinite {
    NonFinite {
        n_nan: n_codes(bytes, is_nan),
        ..NonFinite::default()
    }
}

fn n_codes(bytes: &[u8], is_it: impl Fn(u8) -> bool) -> u64 {
    bytes.iter().map(|&byte| u64::from(is_it(byte))).sum()
}

/// Whether any element of `tensor` is NaN or infinite, by the same rules as [`non_finite`]. Stops at
/// the first block of elements that holds one.
pub fn has_non_finite(tensor: TensorView<'_>) -> bool {
    tensor
        .bytes
        .chunks(SCAN_BYTES)
        .any(|bytes| non_finite(TensorView { bytes, ..tensor }).any())
}

/// Counts by bit pattern: exponent all ones, and a mantissa that is zero for an infinity.
#[inline(always)]
fn count<const WIDTH: usize>(
    bytes: &[u8],
    decode: impl Fn([u8; WIDTH]) -> u64,
    sign_bit: u32,
    n_mantissa_bits: u32,
) -> NonFinite {
    let exponent = ((1_u64 << sign_bit) - 1) >> n_mantissa_bits << n_mantissa_bits;
    let magnitude = (1_u64 << sign_bit) - 1;
    let elements = bytes.as_chunks::<WIDTH>().0;
    let mut total = NonFinite::default();
    // Most tensors hold none: look for any first, a block at a time, and count only where there is.
    for block in elements.chunks(1024) {
        if !block
            .iter()
            .fold(false, |any, &b| any | (decode(b) & exponent == exponent))
        {
            continue;
        }
        for &element in block {
            let bits = decode(element);
            let magnitude = bits & magnitude;
            total.n_nan += u64::from(magnitude > exponent);
            let is_inf = magnitude == exponent;
            total.n_pos_inf += u64::from(is_inf && bits >> sign_bit == 0);
            total.n_neg_inf += u64::from(is_inf && bits >> sign_bit == 1);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Shape};

    fn of(dtype: DType, bytes: &[u8]) -> NonFinite {
        let width = dtype.bytes().unwrap();
        let shape = Shape::new([bytes.len() / width]).unwrap();
        non_finite(TensorView {
            dtype,
            shape: &shape,
            layout: Layout::Nd,
            bytes,
        })
    }

    #[test]
    fn every_float16_pattern_is_classed_as_the_library_classes_it() {
        for bits in 0..=u16::MAX {
            let value = half::f16::from_bits(bits);
            let found = of(DType::F16, &bits.to_le_bytes());
            assert_eq!(found.n_nan, u64::from(value.is_nan()), "{bits:#x}");
            assert_eq!(
                found.n_pos_inf,
                u64::from(value == half::f16::INFINITY),
                "{bits:#x}"
            );
            assert_eq!(
                found.n_neg_inf,
                u64::from(value == half::f16::NEG_INFINITY),
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn wider_types_and_positions() {
        for n in [0, 1, 1023, 1024, 1025, 3000] {
            let mut values = vec![1.5_f32; n];
            if let Some(last) = values.last_mut() {
                *last = f32::NAN;
            }
            if n > 1 {
                values[0] = f32::NEG_INFINITY;
            }
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let found = of(DType::F32, &bytes);
            assert_eq!(
                (found.n_nan, found.n_neg_inf),
                (u64::from(n > 0), u64::from(n > 1)),
                "{n}"
            );
        }
        let found = of(
            DType::F64,
            &[f64::INFINITY.to_le_bytes(), f64::MAX.to_le_bytes()].concat(),
        );
        assert_eq!((found.n_pos_inf, found.n_nan), (1, 0));
        let found = of(DType::BF16, &[0xc0, 0x7f, 0x80, 0xff]);
        assert_eq!((found.n_nan, found.n_neg_inf), (1, 1));
        assert!(!of(DType::I32, &[0xff; 8]).any());
    }

    /// The decoder's values are the reference.
    #[test]
    fn every_8_bit_pattern_is_classed_as_it_is_decoded() {
        use crate::convert::dtype::decode;

        let one = Shape::new([1]).unwrap();
        for dtype in [DType::F8E5M2, DType::F8E4M3FN, DType::F8E8M0, DType::HiF8] {
            for byte in 0..=u8::MAX {
                let code = [byte];
                let decoded = decode(dtype, &one, &code).unwrap();
                let expected = of(decoded.dtype, &decoded.bytes);
                assert_eq!(of(dtype, &code), expected, "{dtype} {byte:#x}");
            }
        }
    }

    #[test]
    fn one_in_the_last_place_is_seen() {
        let mut bytes = vec![0; 3 * SCAN_BYTES + 8];
        let shape = Shape::new([bytes.len() / 8]).unwrap();
        let has = |bytes: &[u8]| {
            has_non_finite(TensorView {
                dtype: DType::F64,
                shape: &shape,
                layout: Layout::Nd,
                bytes,
            })
        };
        assert!(!has(&bytes));
        let end = bytes.len() - 8;
        bytes[end..].copy_from_slice(&f64::NEG_INFINITY.to_le_bytes());
        assert!(has(&bytes));
    }
}
