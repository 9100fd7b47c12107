//! Floating-point numbers as bit patterns.

use opscope_tensor::DType;

/// A format of sign and magnitude whose magnitudes grow with their bit patterns.
///
/// Comparing bits needs no conversion, so one rule serves every width.
#[derive(Clone, Copy, Debug)]
pub(super) struct FloatBits {
    /// Bytes of a number.
    n_bytes: usize,
    /// Bit pattern of 1.
    one: u64,
    /// The largest pattern, without sign, of a finite number.
    largest: u64,
    /// The pattern of infinity; `largest` in formats without it.
    infinity: u64,
}

impl FloatBits {
    /// The format of `dtype`'s numbers, if they are floating-point.
    pub(super) fn for_dtype(dtype: DType) -> Option<FloatBits> {
        use DType::*;
        Some(match dtype {
            F16 => ieee(2, 10),
            BF16 => ieee(2, 7),
            F32 => ieee(4, 23),
            F64 => ieee(8, 52),
            F8E5M2 => ieee(1, 2),
            // This format uses the patterns of infinity for numbers: only the last pattern is NaN.
            F8E4M3FN => FloatBits {
                n_bytes: 1,
                one: 0x38,
                largest: 0x7e,
                infinity: 0x7e,
            },
            Undefined | I8 | U8 | I16 | U16 | I32 | I64 | U32 | U64 | Bool | String | DualSubI8
            | DualSubU8 | C64 | C128 | QI8 | QI16 | QI32 | QU8 | QU16 | Resource | StringRef
            | Dual | Variant | I4 | U1 | I2 | U2 | C32 | HiF8 | F8E8M0 | F6E3M2 | F6E2M3
            | F4E2M1 | F4E1M2 | HiF4 | HiF4Scale | U4 | F8E4M3FNUZ | F8E5M2FNUZ => return None,
        })
    }

    /// Positions of the numbers in `bytes` that `is_it` picks, ascending.
    pub(super) fn positions(self, bytes: &[u8], is_it: impl Fn(u64) -> bool) -> Vec<usize> {
        match self.n_bytes {
            1 => positions(bytes, |[b]| is_it(u64::from(b))),
            2 => positions(bytes, |b| is_it(u16::from_le_bytes(b).into())),
            4 => positions(bytes, |b| is_it(u32::from_le_bytes(b).into())),
            _ => positions(bytes, |b| is_it(u64::from_le_bytes(b))),
        }
    }

    /// Whether it is neither NaN nor an infinity.
    pub(super) fn is_finite(self, number: u64) -> bool {
        self.magnitude(number) <= self.largest
    }

    /// Whether it is -1 or less, -Inf included.
    pub(super) fn is_at_most_minus_one(self, number: u64) -> bool {
        let magnitude = self.magnitude(number);
        number != magnitude && magnitude >= self.one && magnitude <= self.infinity
    }

    fn magnitude(self, number: u64) -> u64 {
        number & ((1 << (8 * self.n_bytes - 1)) - 1)
    }
}

/// A format with the layout of IEEE 754.
fn ieee(n_bytes: usize, n_mantissa_bits: u32) -> FloatBits {
    let n_exponent_bits = 8 * n_bytes as u32 - 1 - n_mantissa_bits;
    let infinity = ((1_u64 << n_exponent_bits) - 1) << n_mantissa_bits;
    FloatBits {
        n_bytes,
        one: ((1_u64 << (n_exponent_bits - 1)) - 1) << n_mantissa_bits,
        largest: infinity - 1,
        infinity,
    }
}

#[inline(always)]
fn positions<const N: usize>(bytes: &[u8], is_it: impl Fn([u8; N]) -> bool) -> Vec<usize> {
    const BLOCK: usize = 1024;
    let mut found = Vec::new();
    let blocks = bytes.as_chunks::<N>().0.chunks(BLOCK);
    for (i_block, block) in blocks.enumerate() {
        // Most blocks hold none, and a branch-free loop finds that out at the speed of memory.
        if !block.iter().fold(false, |any, &number| any | is_it(number)) {
            continue;
        }
        let picked = block
            .iter()
            .enumerate()
            .filter(|(_, number)| is_it(**number));
        found.extend(picked.map(|(i, _)| i_block * BLOCK + i));
    }
    found
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use opscope_tensor::DType;

    use super::FloatBits;

    #[test]
    fn every_16_bit_pattern_is_classed_as_the_library_classes_it() {
        let half = FloatBits::for_dtype(DType::F16).unwrap();
        let brain = FloatBits::for_dtype(DType::BF16).unwrap();
        for bits in 0..=u16::MAX {
            let (h, b) = (f16::from_bits(bits), bf16::from_bits(bits));
            assert_eq!(half.is_finite(bits.into()), h.is_finite(), "{bits:#x}");
            assert_eq!(brain.is_finite(bits.into()), b.is_finite(), "{bits:#x}");
            let is_low = |value: f32| value <= -1.0;
            let (low_half, low_brain) = (is_low(h.to_f32()), is_low(b.to_f32()));
            assert_eq!(
                half.is_at_most_minus_one(bits.into()),
                low_half,
                "{bits:#x}"
            );
            assert_eq!(
                brain.is_at_most_minus_one(bits.into()),
                low_brain,
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn eight_bits() {
        let [e5m2, e4m3] =
            [DType::F8E5M2, DType::F8E4M3FN].map(|d| FloatBits::for_dtype(d).unwrap());
        // The largest number of E5M2 is 57344, that of E4M3FN 448.
        assert!(e5m2.is_finite(0x7b) && !e5m2.is_finite(0x7c) && !e5m2.is_finite(0xff));
        assert!(e4m3.is_finite(0x7e) && !e4m3.is_finite(0x7f) && !e4m3.is_finite(0xff));
        for (bits, is_low) in [
            (0xbc, true),
            (0xbb, false),
            (0x3c, false),
            (0xfc, true),
            (0xfd, false),
        ] {
            assert_eq!(e5m2.is_at_most_minus_one(bits), is_low, "{bits:#x}");
        }
        for (bits, is_low) in [(0xb8, true), (0xb7, false), (0xfe, true), (0xff, false)] {
            assert_eq!(e4m3.is_at_most_minus_one(bits), is_low, "{bits:#x}");
        }
    }
}
