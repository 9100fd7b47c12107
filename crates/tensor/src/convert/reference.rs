//! For the drop-in only: the reference converter's numbers for 8-bit floats.
//!
//! msaccucmp decodes three formats wrongly, and files that it wrote hold those numbers. A drop-in
//! must be able to give the same ones; everything else uses
//! [`dtype::decode`](super::dtype::decode). The differences:
//!
//! | dtype | code | reference | by definition |
//! | --- | --- | --- | --- |
//! | `float8_e4m3fn` | `0x7f`, `0xff` | ±480 | NaN |
//! | `float8_e5m2` | `0xfc` | `+inf` | `-inf` |
//! | `hifloat8` | `0xef` | `+inf` | `-inf` |
//! | `hifloat8` | `0x08`–`0x1f`, `0x88`–`0x9f` | one or two bits of the prefix read as exponent and mantissa | magnitudes in [0.5, 1) and [1, 4) |
//!
//! The result is `float64`, as the reference writes it.

use std::sync::LazyLock;

use crate::DType;

/// Decodes as msaccucmp does, to little-endian `float64`.
///
/// `None` for every dtype but `float8_e4m3fn`, `float8_e5m2` and `hifloat8`: the reference decodes
/// the others right or not at all.
pub fn decode(dtype: DType, bytes: &[u8]) -> Option<Vec<u8>> {
    let table = match dtype {
        DType::F8E4M3FN => &E4M3FN,
        DType::F8E5M2 => &E5M2,
        DType::HiF8 => &HIF8,
        _ => return None,
    };
    let mut out = vec![0; bytes.len() * 8];
    for (to, &from) in out.as_chunks_mut::<8>().0.iter_mut().zip(bytes) {
        *to = table[usize::from(from)];
    }
    Some(out)
}

static E4M3FN: LazyLock<[[u8; 8]; 256]> = LazyLock::new(|| table(e4m3fn));
static E5M2: LazyLock<[[u8; 8]; 256]> = LazyLock::new(|| table(e5m2));
static HIF8: LazyLock<[[u8; 8]; 256]> = LazyLock::new(|| table(hifloat8));

fn table(value: fn(u8) -> f64) -> [[u8; 8]; 256] {
    std::array::from_fn(|code| value(code as u8).to_le_bytes())
}

fn e4m3fn(code: u8) -> f64 {
    ieee_like(code, 4, 3)
}

fn e5m2(code: u8) -> f64 {
    match (code >> 2 & 0x1f, code & 3) {
        (0x1f, 0) => f64::INFINITY,
        (0x1f, _) => f64::NAN,
        _ => ieee_like(code, 5, 2),
    }
}

/// Every exponent width leaves `5 - width` bits of mantissa, whatever the prefix has used up.
fn hifloat8(code: u8) -> f64 {
    let low = code & 0x7f;
    let n_exponent_bits: u32 = match low {
        _ if code == 0x80 => return f64::NAN,
        0x6f => return f64::INFINITY,
        0 => return 0.0,
        0x01..0x08 => return signed(code, 2_f64.powi(i32::from(low) - 23)),
        0x08..0x10 => 0,
        0x10..0x20 => 1,
        0x20..0x40 => 2,
        0x40..0x60 => 3,
        _ => 4,
    };
    let n_mantissa_bits = 5 - n_exponent_bits;
    let mantissa = low & ((1 << n_mantissa_bits) - 1);
    let field = (low >> n_mantissa_bits) & ((1 << n_exponent_bits) - 1);
    // In two shifts, because there may be no exponent bits, and then there is no sign bit either.
    let sign_bit = 1 << n_exponent_bits >> 1;
    let magnitude = i32::from(field | sign_bit);
    let exponent = if field & sign_bit == 0 {
        magnitude
    } else {
        -magnitude
    };
    let fraction = f64::from(mantissa) / f64::from(1_u32 << n_mantissa_bits);
    signed(code, (1.0 + fraction) * 2_f64.powi(exponent))
}

fn ieee_like(code: u8, n_exponent_bits: u32, n_mantissa_bits: u32) -> f64 {
    let bias = (1 << (n_exponent_bits - 1)) - 1;
    let mantissa = code & ((1 << n_mantissa_bits) - 1);
    let fraction = f64::from(mantissa) / f64::from(1_u32 << n_mantissa_bits);
    let exponent = i32::from((code & 0x7f) >> n_mantissa_bits);
    let magnitude = if exponent == 0 {
        fraction * 2_f64.powi(1 - bias)
    } else {
        (1.0 + fraction) * 2_f64.powi(exponent - bias)
    };
    signed(code, magnitude)
}

fn signed(code: u8, magnitude: f64) -> f64 {
    if code & 0x80 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dtype: DType, golden: &[u8]) {
        let codes: Vec<u8> = (0..=255).collect();
        let decoded = decode(dtype, &codes).unwrap();
        assert_eq!(decoded.len(), golden.len());
        let pairs = decoded
            .as_chunks::<8>()
            .0
            .iter()
            .zip(golden.as_chunks::<8>().0);
        for (code, (&found, &expected)) in pairs.enumerate() {
            let (found, expected) = (f64::from_le_bytes(found), f64::from_le_bytes(expected));
            let is_equal = found.to_bits() == expected.to_bits();
            assert!(
                is_equal || found.is_nan() && expected.is_nan(),
                "{dtype} {code:#x}: found {found}, the reference gives {expected}"
            );
        }
    }

    #[test]
    fn every_code_is_what_the_reference_wrote() {
        check(
            DType::F8E4M3FN,
            include_bytes!("../../tests/data/lowprec/e4m3.float64.bin"),
        );
        check(
            DType::F8E5M2,
            include_bytes!("../../tests/data/lowprec/e5m2.float64.bin"),
        );
        check(
            DType::HiF8,
            include_bytes!("../../tests/data/lowprec/hif8.float64.bin"),
        );
    }

    #[test]
    fn other_dtypes_have_no_reference_table() {
        assert_eq!(decode(DType::F32, &[0; 4]), None);
        assert_eq!(decode(DType::HiF8, &[]), Some(Vec::new()));
    }
}
