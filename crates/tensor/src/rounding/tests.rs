//! Values that numpy 2.4 and ml_dtypes 0.6 give for a cast and back, as bits.
//!
//! For `float8_e4m3` elements were brought within ±448 before, as ml_dtypes makes NaN of those
//! beyond; for `int8` it is `clip(rint(x / step), -127, 127) * step`.

use super::*;

const SINGLES: &[u32] = &[
    0x00000000, 0x80000000, 0x3f800000, 0x3dcccccd, 0xbe99999a, 0x3eaaaaab, 0x477fe000, 0x477fefe6,
    0x477ff000, 0xc788b800, 0x322bcc77, 0x3380d959, 0x33000000, 0x33000001, 0x00000001, 0x7f7fc99e,
    0x7f7f8000, 0x7f800000, 0xff800000, 0x7fc00000, 0x43e00000, 0x43e7f333, 0x43e80000, 0x43f00000,
    0xce6e6b28, 0x3b000000, 0x3a800000, 0x3ac00000, 0x3c700000, 0x41880000, 0x41980000, 0x3f880000,
    0x3f980000, 0xc02df84d, 0x3f808000, 0x3f818000, 0x3f804000,
];
const SINGLES_AS_FLOAT16: &[u32] = &[
    0x00000000, 0x80000000, 0x3f800000, 0x3dccc000, 0xbe99a000, 0x3eaaa000, 0x477fe000, 0x477fe000,
    0x7f800000, 0xff800000, 0x00000000, 0x33800000, 0x00000000, 0x33800000, 0x00000000, 0x7f800000,
    0x7f800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x43e00000, 0x43e80000, 0x43e80000, 0x43f00000,
    0xff800000, 0x3b000000, 0x3a800000, 0x3ac00000, 0x3c700000, 0x41880000, 0x41980000, 0x3f880000,
    0x3f980000, 0xc02e0000, 0x3f808000, 0x3f818000, 0x3f804000,
];
const SINGLES_AS_BFLOAT16: &[u32] = &[
    0x00000000, 0x80000000, 0x3f800000, 0x3dcd0000, 0xbe9a0000, 0x3eab0000, 0x47800000, 0x47800000,
    0x47800000, 0xc7890000, 0x322c0000, 0x33810000, 0x33000000, 0x33000000, 0x00000000, 0x7f800000,
    0x7f800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x43e00000, 0x43e80000, 0x43e80000, 0x43f00000,
    0xce6e0000, 0x3b000000, 0x3a800000, 0x3ac00000, 0x3c700000, 0x41880000, 0x41980000, 0x3f880000,
    0x3f980000, 0xc02e0000, 0x3f800000, 0x3f820000, 0x3f800000,
];
const SINGLES_AS_FLOAT8: &[u32] = &[
    0x00000000, 0x80000000, 0x3f800000, 0x3dd00000, 0xbea00000, 0x3eb00000, 0x43e00000, 0x43e00000,
    0x43e00000, 0xc3e00000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x43e00000,
    0x43e00000, 0x43e00000, 0xc3e00000, 0x7fc00000, 0x43e00000, 0x43e00000, 0x43e00000, 0x43e00000,
    0xc3e00000, 0x3b000000, 0x00000000, 0x3b000000, 0x3c800000, 0x41800000, 0x41a00000, 0x3f800000,
    0x3fa00000, 0xc0300000, 0x3f800000, 0x3f800000, 0x3f800000,
];
const STEPPED: &[u32] = &[
    0x00000000, 0x80000000, 0x3f800000, 0x3dcccccd, 0xbe99999a, 0x3eaaaaab, 0xc02df84d, 0x40000000,
    0x3c2f56fb, 0x3d03813c, 0x7fc00000, 0x7f800000, 0xff800000, 0x000116c2,
];
const STEPPED_AS_INT8: &[u32] = &[
    0x00000000, 0x80000000, 0x3f80c3e0, 0x3ddb2cba, 0xbe996c1c, 0x3eaf56fb, 0xc02df84d, 0x3ffeca65,
    0x00000000, 0x3d2f56fb, 0x7fc00000, 0x402df84d, 0xc02df84d, 0x00000000,
];
/// Each is followed by neighbours on both sides of a tie where there is one.
const DOUBLES: &[u64] = &[
    0x3fb999999999999a,
    0x3ff0020000000000,
    0x3ff0020000001000,
    0x3ff001fffffff000,
    0x3ff0100000000000,
    0x3ff0100000000004,
    0x40effdffffeb074a,
    0x40effe0000000000,
    0x7e37e43c8800759c,
    0x81a56e1fc2f8f359,
    0x3e60000000000000,
    0x3e60000000000004,
    0x3ff1000000000000,
    0x3ff1000000000004,
    0x0000000000000001,
    0x47efefffffffff61,
    0x47eff00000000000,
];
const DOUBLES_AS_FLOAT16: &[u64] = &[
    0x3fb9980000000000,
    0x3ff0000000000000,
    0x3ff0040000000000,
    0x3ff0000000000000,
    0x3ff0100000000000,
    0x3ff0100000000000,
    0x40effc0000000000,
    0x7ff0000000000000,
    0x7ff0000000000000,
    0x8000000000000000,
    0x0000000000000000,
    0x3e70000000000000,
    0x3ff1000000000000,
    0x3ff1000000000000,
    0x0000000000000000,
    0x7ff0000000000000,
    0x7ff0000000000000,
];
/// ml_dtypes goes by way of float32 and loses what decides the sixth and the last but one.
const DOUBLES_AS_BFLOAT16: &[u64] = &[
    0x3fb9a00000000000,
    0x3ff0000000000000,
    0x3ff0000000000000,
    0x3ff0000000000000,
    0x3ff0000000000000,
    0x3ff0200000000000,
    0x40f0000000000000,
    0x40f0000000000000,
    0x7ff0000000000000,
    0x8000000000000000,
    0x3e60000000000000,
    0x3e60000000000000,
    0x3ff1000000000000,
    0x3ff1000000000000,
    0x0000000000000000,
    0x47efe00000000000,
    0x7ff0000000000000,
];
/// Likewise the fourteenth.
const DOUBLES_AS_FLOAT8: &[u64] = &[
    0x3fba000000000000,
    0x3ff0000000000000,
    0x3ff0000000000000,
    0x3ff0000000000000,
    0x3ff0000000000000,
    0x3ff0000000000000,
    0x407c000000000000,
    0x407c000000000000,
    0x407c000000000000,
    0x8000000000000000,
    0x0000000000000000,
    0x0000000000000000,
    0x3ff0000000000000,
    0x3ff2000000000000,
    0x0000000000000000,
    0x407c000000000000,
    0x407c000000000000,
];
const HALVES: &[u16] = &[0x2e66, 0x7bff, 0x3555, 0xc166, 0x0002, 0x5f00, 0x5fd0];
const BRAINS: &[u16] = &[0x3dcd, 0x7e96, 0x3eab, 0x33d7, 0x4396];

/// How elements become bytes, and back.
type ElementBytes<T, const N: usize> = (fn(T) -> [u8; N], fn([u8; N]) -> T);

fn check<T: Copy + fmt::Debug + PartialEq, const N: usize>(
    format: RoundingFormat,
    dtype: DType,
    (given, expected): (&[T], &[T]),
    (to, from): ElementBytes<T, N>,
) {
    let mut bytes: Vec<u8> = given.iter().flat_map(|element| to(*element)).collect();
    assert!(format.round(dtype, &mut bytes));
    let found: Vec<T> = bytes.as_chunks::<N>().0.iter().map(|b| from(*b)).collect();
    assert_eq!(found, expected, "{format} {dtype}");
}

#[test]
fn singles() {
    use RoundingFormat::*;
    for (format, given, expected) in [
        (Float16, SINGLES, SINGLES_AS_FLOAT16),
        (Bfloat16, SINGLES, SINGLES_AS_BFLOAT16),
        (Float8E4M3, SINGLES, SINGLES_AS_FLOAT8),
        (Int8, STEPPED, STEPPED_AS_INT8),
    ] {
        let bytes = (u32::to_le_bytes as fn(u32) -> _, u32::from_le_bytes as _);
        check(format, DType::F32, (given, expected), bytes);
    }
}

#[test]
fn doubles_are_rounded_once() {
    use RoundingFormat::*;
    let as_int8: &[u64] = &[
        0x0000000000000000,
        0x0000000000000000,
        0x0000000000000000,
        0x0000000000000000,
        0x0000000000000000,
        0x0000000000000000,
        0x40effe0000000000,
        0x40effe0000000000,
    ];
    for (format, given, expected) in [
        (Float16, DOUBLES, DOUBLES_AS_FLOAT16),
        (Bfloat16, DOUBLES, DOUBLES_AS_BFLOAT16),
        (Float8E4M3, DOUBLES, DOUBLES_AS_FLOAT8),
        (Int8, &DOUBLES[..8], as_int8),
    ] {
        let bytes = (u64::to_le_bytes as fn(u64) -> _, u64::from_le_bytes as _);
        check(format, DType::F64, (given, expected), bytes);
    }
}

#[test]
fn short_floats() {
    use RoundingFormat::*;
    let bytes = (u16::to_le_bytes as fn(u16) -> _, u16::from_le_bytes as _);
    for (format, expected) in [
        (Float16, HALVES),
        (
            Bfloat16,
            &[0x2e68, 0x7c00, 0x3558, 0xc168, 0x0002, 0x5f00, 0x5fd0],
        ),
        (
            Float8E4M3,
            &[0x2e80, 0x5f00, 0x3580, 0xc180, 0x0000, 0x5f00, 0x5f00],
        ),
        (
            Int8,
            &[0x0000, 0x7bff, 0x0000, 0x8000, 0x0000, 0x6008, 0x6008],
        ),
    ] {
        check(format, DType::F16, (HALVES, expected), bytes);
    }
    let as_float16: &[u16] = &[0x3dcd, 0x7f80, 0x3eab, 0x3400, 0x4396];
    for (format, expected) in [
        (Float16, as_float16),
        (Bfloat16, BRAINS),
        (Float8E4M3, &[0x3dd0, 0x43e0, 0x3eb0, 0x0000, 0x4390]),
        (Int8, &[0x0000, 0x7e96, 0x0000, 0x0000, 0x0000]),
    ] {
        check(format, DType::BF16, (BRAINS, expected), bytes);
    }
}

/// Every value of a format stays as it is, and rounding twice is rounding once.
#[test]
fn values_of_a_format_stay() {
    for code in 0..=u16::MAX {
        for (format, value) in [
            (RoundingFormat::Float16, f16::from_bits(code).to_f32()),
            (RoundingFormat::Bfloat16, bf16::from_bits(code).to_f32()),
        ] {
            if value.is_nan() {
                continue;
            }
            let mut bytes = value.to_le_bytes();
            format.round(DType::F32, &mut bytes);
            assert_eq!(bytes, value.to_le_bytes(), "{format} {value}");
        }
    }
    let codes = crate::convert::dtype::code_values(DType::F8E4M3FN).unwrap();
    for value in (0..=u8::MAX).map(codes.value).filter(|x| !x.is_nan()) {
        assert_eq!(e4m3(value).to_bits(), value.to_bits());
    }
}

/// The nearest of all values of float8, found by trying each.
#[test]
fn float8_is_the_nearest_value() {
    let codes = crate::convert::dtype::code_values(DType::F8E4M3FN).unwrap();
    let values: Vec<(u8, f64)> = (0..=u8::MAX)
        .map(|code| (code, (codes.value)(code)))
        .filter(|(_, value)| !value.is_nan())
        .collect();
    for i in 0..20_000_u32 {
        let x = f64::from(f32::from_bits(i.wrapping_mul(214_748) | 1));
        if x.is_nan() || x.abs() > E4M3_MAX {
            continue;
        }
        let distance = |(code, value): &(u8, f64)| ((value - x).abs(), code & 1);
        let nearest = values
            .iter()
            .filter(|(_, value)| value.is_sign_negative() == x.is_sign_negative())
            .min_by(|a, b| distance(a).partial_cmp(&distance(b)).unwrap());
        assert_eq!(e4m3(x), nearest.unwrap().1, "{x}");
    }
}

#[test]
fn nothing_to_step_by() {
    let check = |elements: &[f32]| {
        let given: Vec<u8> = elements.iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut bytes = given.clone();
        assert!(RoundingFormat::Int8.round(DType::F32, &mut bytes));
        assert_eq!(bytes, given);
    };
    check(&[]);
    check(&[0.0, -0.0, f32::NAN, f32::INFINITY]);
    // A quotient below the smallest number.
    check(&[1e-45]);
    let mut integers = 7_i32.to_le_bytes();
    assert!(!RoundingFormat::Int8.round(DType::I32, &mut integers));
    assert_eq!(integers, 7_i32.to_le_bytes());
}

/// Each channel has its own largest magnitude, which becomes 127 steps.
#[test]
fn channels_have_steps_of_their_own() {
    let check = |shape: &[usize], axes: Range<usize>, expected: [f32; 8]| {
        let elements = [127.0_f32, 0.7, 12.7, 0.07, -254.0, 3.0, 1.27, 0.004];
        let mut bytes: Vec<u8> = elements.iter().flat_map(|x| x.to_le_bytes()).collect();
        let channels = Channels::along(shape, axes);
        assert!(RoundingFormat::Int8.round_channels(DType::F32, channels, &mut bytes));
        for (found, expected) in bytes.as_chunks().0.iter().zip(expected) {
            let found = f32::from_le_bytes(*found);
            assert!(
                (found - expected).abs() <= 1e-6 * expected.abs(),
                "{shape:?} {found} {expected}"
            );
        }
    };
    // Steps 2 of all, 1 and 2 of halves, 2 and 3/127 of odd and even columns.
    check(&[8], 0..0, [128.0, 0.0, 12.0, 0.0, -254.0, 4.0, 2.0, 0.0]);
    check(
        &[2, 4],
        0..1,
        [127.0, 1.0, 13.0, 0.0, -254.0, 4.0, 2.0, 0.0],
    );
    let odd = 3.0 / 127.0;
    let columns = [128.0, 30.0 * odd, 12.0, 3.0 * odd, -254.0, 3.0, 2.0, 0.0];
    check(&[4, 2], 1..2, columns);
    // Both leading axes together: pairs.
    let pairs = [127.0, 1.0, 12.7, 0.1, -254.0, 4.0, 1.27, 0.0];
    check(&[2, 2, 2], 0..2, pairs);
    // Axes that the shape lacks.
    check(&[8], 3..4, [128.0, 0.0, 12.0, 0.0, -254.0, 4.0, 2.0, 0.0]);
    let mut empty = [];
    assert!(RoundingFormat::Int8.round_channels(
        DType::F64,
        Channels::along(&[0, 3], 0..1),
        &mut empty
    ));
}
