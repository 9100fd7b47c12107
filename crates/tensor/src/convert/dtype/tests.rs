//! The definitions once more, written independently of the tables: fields are taken from the text
//! of the code in base two, values come from `f64::powi`.

use std::borrow::Cow;

use half::f16;
use proptest::prelude::*;

use super::*;

fn decode_flat(dtype: DType, n_elements: usize, bytes: &[u8]) -> Vec<u8> {
    let decoded = decode(dtype, &Shape::new([n_elements]).unwrap(), bytes).unwrap();
    assert_eq!(Some(decoded.dtype), numpy_dtype(dtype));
    decoded.bytes.into_owned()
}

fn f16_values(bytes: &[u8]) -> Vec<f64> {
    bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&b| f16::from_le_bytes(b).to_f64())
        .collect()
}

fn f32_values(bytes: &[u8]) -> Vec<f64> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&b| f64::from(f32::from_le_bytes(b)))
        .collect()
}

#[track_caller]
fn assert_same(what: &str, found: f64, expected: f64) {
    let is_same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
    assert!(is_same, "{what}: found {found}, expected {expected}");
}

fn field(text: &str) -> i32 {
    if text.is_empty() {
        0
    } else {
        i32::from_str_radix(text, 2).unwrap()
    }
}

/// The value of a code such as `1 0101 110`, sign, exponent, mantissa.
fn ieee_like(code: &str, n_exponent_bits: usize, bias: i32) -> f64 {
    let (sign, rest) = code.split_at(1);
    let (exponent, mantissa) = rest.split_at(n_exponent_bits);
    let fraction = f64::from(field(mantissa)) / 2_f64.powi(mantissa.len() as i32);
    let magnitude = match field(exponent) {
        0 => fraction * 2_f64.powi(1 - bias),
        exponent => (1.0 + fraction) * 2_f64.powi(exponent - bias),
    };
    if sign == "1" { -magnitude } else { magnitude }
}

fn hifloat8(code: &str) -> f64 {
    if code == "10000000" {
        return f64::NAN;
    }
    let (sign, rest) = code.split_at(1);
    let widths = [("11", 4), ("10", 3), ("01", 2), ("001", 1), ("0001", 0)];
    let magnitude = match widths.iter().find(|(prefix, _)| rest.starts_with(prefix)) {
        Some((prefix, n_exponent_bits)) => {
            let (exponent, mantissa) = rest[prefix.len()..].split_at(*n_exponent_bits);
            let exponent = match exponent.split_at_checked(1) {
                None => 0,
                Some((sign, low)) => {
                    let magnitude = field(&format!("1{low}"));
                    if sign == "1" { -magnitude } else { magnitude }
                }
            };
            (1.0 + f64::from(field(mantissa)) / 2_f64.powi(mantissa.len() as i32))
                * 2_f64.powi(exponent)
        }
        None if rest == "0000000" => 0.0,
        None => 2_f64.powi(field(rest) - 23),
    };
    let magnitude = if rest == "1101111" {
        f64::INFINITY
    } else {
        magnitude
    };
    if sign == "1" { -magnitude } else { magnitude }
}

#[test]
fn every_code_of_eight_bits() {
    let codes: Vec<u8> = (0..=255).collect();
    let text = |code: usize| format!("{code:08b}");
    type Rule = fn(&str) -> f64;
    let formats: [(DType, Rule); 5] = [
        (DType::F8E4M3FNUZ, |code| match code {
            "10000000" => f64::NAN,
            _ => ieee_like(code, 4, 8),
        }),
        (DType::F8E5M2FNUZ, |code| match code {
            "10000000" => f64::NAN,
            _ => ieee_like(code, 5, 16),
        }),
        (DType::HiF8, hifloat8),
        (DType::F8E4M3FN, |code| match &code[1..] {
            "1111111" => f64::NAN,
            _ => ieee_like(code, 4, 7),
        }),
        (DType::F8E5M2, |code| match (&code[1..6], &code[6..]) {
            ("11111", "00") if &code[..1] == "1" => f64::NEG_INFINITY,
            ("11111", "00") => f64::INFINITY,
            ("11111", _) => f64::NAN,
            _ => ieee_like(code, 5, 15),
        }),
    ];
    for (dtype, rule) in formats {
        for (code, found) in f16_values(&decode_flat(dtype, 256, &codes))
            .into_iter()
            .enumerate()
        {
            assert_same(&format!("{dtype} {code:#x}"), found, rule(&text(code)));
        }
    }
    for (code, found) in f32_values(&decode_flat(DType::F8E8M0, 256, &codes))
        .into_iter()
        .enumerate()
    {
        let expected = if code == 255 {
            f64::NAN
        } else {
            2_f64.powi(code as i32 - 127)
        };
        assert_same(&format!("e8m0 {code:#x}"), found, expected);
    }
}

/// The values of ml_dtypes 0.6.
#[test]
fn formats_without_negative_zero() {
    let codes: Vec<u8> = (0..=255).collect();
    let tables: [(DType, &[u8; 512]); 2] = [
        (
            DType::F8E4M3FNUZ,
            include_bytes!("../../../tests/data/lowprec/e4m3fnuz.float16.bin"),
        ),
        (
            DType::F8E5M2FNUZ,
            include_bytes!("../../../tests/data/lowprec/e5m2fnuz.float16.bin"),
        ),
    ];
    for (dtype, golden) in tables {
        let found = f16_values(&decode_flat(dtype, 256, &codes));
        for (code, (found, expected)) in found.into_iter().zip(f16_values(golden)).enumerate() {
            assert_same(&format!("{dtype} {code:#x}"), found, expected);
            assert_eq!(found.is_nan(), code == 0x80);
        }
    }
}

#[test]
fn every_code_of_six_and_four_bits() {
    let formats = [
        (DType::F6E3M2, 6, 3, 3, 28.0),
        (DType::F6E2M3, 6, 2, 1, 7.5),
        (DType::F4E2M1, 4, 2, 1, 6.0),
        (DType::F4E1M2, 4, 1, 1, 1.75),
        (DType::HiF4, 4, 1, 1, 1.75),
    ];
    for (dtype, n_bits, n_exponent_bits, bias, max) in formats {
        let n_codes = 1_usize << n_bits;
        let bytes = pack(n_bits, &(0..n_codes as u8).collect::<Vec<_>>());
        let found = f16_values(&decode_flat(dtype, n_codes, &bytes));
        for (code, &found) in found.iter().enumerate() {
            let text = format!("{code:0n_bits$b}");
            assert_same(
                &format!("{dtype} {text}"),
                found,
                ieee_like(&text, n_exponent_bits, bias),
            );
        }
        assert_eq!(found.iter().copied().fold(0.0, f64::max), max, "{dtype}");
    }
}

/// Packs codes into a stream of bits, least significant first.
fn pack(n_bits: usize, codes: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; (codes.len() * n_bits).div_ceil(8)];
    for (i, code) in codes.iter().enumerate() {
        for bit in 0..n_bits {
            let at = i * n_bits + bit;
            bytes[at / 8] |= (code >> bit & 1) << (at % 8);
        }
    }
    bytes
}

#[test]
fn packed_integers() {
    let cases: &[(DType, usize, &[u8], &[u8])] = &[
        (DType::I4, 4, &[0x21, 0xf8], &[1, 2, 0xf8, 0xff]),
        (DType::I4, 3, &[0x21, 0xf8], &[1, 2, 0xf8]),
        (DType::U4, 3, &[0x21, 0xf8], &[1, 2, 8]),
        (DType::U4, 4, &[0x21, 0xf8], &[1, 2, 8, 15]),
        (
            DType::I2,
            5,
            &[0b11_10_01_00, 0b11],
            &[0, 1, 0xfe, 0xff, 0xff],
        ),
        (DType::U2, 4, &[0b11_10_01_00], &[0, 1, 2, 3]),
        (
            DType::U1,
            10,
            &[0b1010_0001, 0b0111_1111],
            &[1, 0, 1, 0, 0, 0, 0, 1, 0, 1],
        ),
        (DType::U1, 0, &[], &[]),
    ];
    for (dtype, n_elements, bytes, expected) in cases {
        assert_eq!(
            decode_flat(*dtype, *n_elements, bytes),
            *expected,
            "{dtype}"
        );
    }
}

#[test]
fn wider_dtypes() {
    let golden = include_bytes!("../../../tests/data/lowprec/bf16.float32.bin");
    let bf16 = include_bytes!("../../../tests/data/lowprec/bf16.bin");
    assert_eq!(decode_flat(DType::BF16, 256, bf16), golden);

    let half = |value: f64| f16::from_f64(value).to_le_bytes();
    let complex = [half(1.5), half(-2.0), half(f64::INFINITY), half(-0.0)].concat();
    let found = f32_values(&decode_flat(DType::C32, 2, &complex));
    for (found, expected) in found.into_iter().zip([1.5, -2.0, f64::INFINITY, -0.0]) {
        assert_same("complex32", found, expected);
    }
}

#[test]
fn nothing_is_copied_where_nothing_changes() {
    let bytes = [1; 32];
    for &dtype in DType::ALL {
        let Some(target) = numpy_dtype(dtype) else {
            continue;
        };
        let Some(width) = dtype.bytes() else { continue };
        let decoded = decode(dtype, &Shape::new([32 / width]).unwrap(), &bytes).unwrap();
        let is_borrowed = matches!(decoded.bytes, Cow::Borrowed(_));
        assert_eq!(is_borrowed, target.bytes() == Some(width), "{dtype}");
    }
    let opaque = decode(DType::Undefined, &Shape::new([5]).unwrap(), &bytes).unwrap();
    assert_eq!((opaque.dtype, opaque.shape.dims()), (DType::U8, &[32][..]));
}

#[test]
fn errors_say_what_was_expected() {
    let shape = Shape::new([3]).unwrap();
    let cases = [
        (
            DType::I4,
            1,
            "int4 tensor of shape [3] takes 2 bytes, found 1",
        ),
        (
            DType::I4,
            3,
            "int4 tensor of shape [3] takes 2 bytes, found 3",
        ),
        (
            DType::F6E3M2,
            2,
            "float6_e3m2 tensor of shape [3] takes 3 bytes, found 2",
        ),
        (
            DType::F32,
            0,
            "float32 tensor of shape [3] takes 12 bytes, found 0",
        ),
        (
            DType::String,
            4,
            "elements of type `string` have no numeric value",
        ),
    ];
    for (dtype, n_bytes, message) in cases {
        assert_eq!(
            decode(dtype, &shape, &vec![0; n_bytes])
                .unwrap_err()
                .to_string(),
            message
        );
    }
}

proptest! {
    /// Any dtype, any count, any bytes: a result of the promised size or an error, never a panic.
    #[test]
    fn sizes_always_fit(index in 0..DType::ALL.len(), n in 0_usize..70, n_bytes in 0_usize..300) {
        let dtype = DType::ALL[index];
        let shape = Shape::new([n]).unwrap();
        match decode(dtype, &shape, &vec![0xa5; n_bytes]) {
            Ok(decoded) => {
                prop_assert_eq!(decoded.shape.n_bytes(decoded.dtype), Ok(decoded.bytes.len()));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn six_bit_codes_are_found_at_every_position(codes in prop::collection::vec(0_u8..64, 0..40)) {
        let found = decode_flat(DType::F6E3M2, codes.len(), &pack(6, &codes));
        for (found, code) in f16_values(&found).into_iter().zip(&codes) {
            assert_same("float6_e3m2", found, ieee_like(&format!("{code:06b}"), 3, 3));
        }
    }
}
