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
/// Types that cannot hold any, and types whose numbers this crate does not decode, give zeros. A
/// complex element counts once for each of its two parts.
pub fn non_finite(tensor: TensorView<'_>) -> NonFinite {
    let bytes = tensor.bytes;
    match tensor.dtype {
        DType::F32 | DType::C64 => count::<4>(bytes, |b| u32::from_le_bytes(b).into(), 31, 23),
        DType::F64 | DType::C128 => count::<8>(bytes, u64::from_le_bytes, 63, 52),
        DType::F16 | DType::C32 => count::<2>(bytes, |b| u16::from_le_bytes(b).into(), 15, 10),
        DType::BF16 => count::<2>(bytes, |b| u16::from_le_bytes(b).into(), 15, 7),
        _ => NonFinite::default(),
    }
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
}
