//! Conversions to another dtype.

use opscope_tensor::{DType, Tensor, text};

use super::{floats, ints, place, record, status, tensor, zeros};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn cast(from: Tensor, to: Tensor) -> Option<(u64, u64, usize)> {
    place(&record("Cast", &[], vec![from], vec![to]))
}

#[test]
fn to_a_narrower_float() {
    for to in [DType::F16, DType::BF16, DType::F32] {
        let from = floats(DType::F64, &[4], &[1.0, 1e300, -1e300, -2.0]);
        let out = floats(to, &[4], &[1.0, INF, -INF, -2.0]);
        assert_eq!(cast(from, out), Some((0x100, 2, 1)), "{to}");
    }
    // The largest number fits, as do numbers that round to it.
    for (value, out, expected) in [
        (65504.0, 65504.0, None),
        (65519.0, 65504.0, None),
        (65520.0, INF, Some((0x100, 1, 0))),
        (INF, INF, None),
        (NAN, NAN, None),
    ] {
        let from = floats(DType::F32, &[1], &[value]);
        assert_eq!(
            cast(from, floats(DType::F16, &[1], &[out])),
            expected,
            "{value}"
        );
    }
}

#[test]
fn integers_to_float16() {
    for dtype in [DType::I32, DType::I64, DType::U32, DType::U64, DType::U16] {
        let from = ints(dtype, &[2], &[65535, 7]);
        let out = floats(DType::F16, &[2], &[INF, 7.0]);
        assert_eq!(cast(from, out), Some((0x100, 1, 0)), "{dtype}");
    }
}

#[test]
fn an_infinity_of_old_does_not_hide_a_new_one() {
    let from = floats(DType::F32, &[5], &[INF, 1e6, NAN, 1.0, -1e6]);
    let out = floats(DType::F16, &[5], &[INF, INF, NAN, 1.0, -INF]);
    assert_eq!(cast(from, out), Some((0x100, 2, 1)));
}

#[test]
fn eight_bit_floats() {
    let from = || floats(DType::F32, &[2], &[1e6, 1.0]);
    let e5m2 = |bytes: &[u8]| tensor(DType::F8E5M2, &[2], bytes.to_vec());
    let e4m3 = |bytes: &[u8]| tensor(DType::F8E4M3FN, &[2], bytes.to_vec());
    assert_eq!(cast(from(), e5m2(&[0x7c, 0x3c])), Some((0x100, 1, 0)));
    assert_eq!(cast(from(), e4m3(&[0x7f, 0x38])), Some((0x100, 1, 0)));
    // Saturated: the largest number is not an infinity.
    assert_eq!(cast(from(), e5m2(&[0x7b, 0x3c])), None);
    assert_eq!(cast(from(), e4m3(&[0x7e, 0x38])), None);
    let scale = floats(DType::F32, &[], &[0.5]);
    let quantised = |scale| {
        record(
            "QuantizeLinear",
            &[],
            vec![from(), scale],
            vec![e4m3(&[0x7f, 0x38])],
        )
    };
    assert_eq!(status(&quantised(scale)), 0x100);
    assert_eq!(status(&quantised(floats(DType::F32, &[], &[NAN]))), 0);
}

#[test]
fn negative_floats_to_unsigned() {
    for from in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for to in [DType::U8, DType::U16, DType::U32, DType::U64] {
            for (value, is_overflow) in [
                (-1.0, true),
                (-1.5, true),
                (-100.0, true),
                (-INF, true),
                (-0.99, false),
                (-0.0, false),
                (0.0, false),
                (255.0, false),
                // The register has no bit for these.
                (1e5, false),
                (INF, false),
                (NAN, false),
            ] {
                let value = if value == 1e5 && from == DType::F16 {
                    60000.0
                } else {
                    value
                };
                let found = cast(floats(from, &[2], &[1.0, value]), zeros(to, &[2]));
                let expected = is_overflow.then_some((0x80, 1, 1));
                assert_eq!(found, expected, "{value} {from} to {to}");
            }
        }
    }
}

#[test]
fn conversions_without_a_bit() {
    for (from, to) in [
        (floats(DType::F32, &[1], &[-1e30]), zeros(DType::I32, &[1])),
        (floats(DType::F32, &[1], &[NAN]), zeros(DType::I8, &[1])),
        (floats(DType::F32, &[1], &[-1.0]), zeros(DType::Bool, &[1])),
        (ints(DType::I32, &[1], &[300]), zeros(DType::I8, &[1])),
        (ints(DType::I32, &[1], &[-1]), zeros(DType::U8, &[1])),
        (
            tensor(DType::String, &[1], text::encode(&["inf"])),
            floats(DType::F32, &[1], &[INF]),
        ),
    ] {
        assert_eq!(cast(from, to), None);
    }
    // Quantisation saturates by definition.
    let inputs = vec![
        floats(DType::F32, &[1], &[-5.0]),
        floats(DType::F32, &[], &[1.0]),
    ];
    let quantised = record("QuantizeLinear", &[], inputs, vec![zeros(DType::U8, &[1])]);
    assert_eq!(status(&quantised), 0);
}
