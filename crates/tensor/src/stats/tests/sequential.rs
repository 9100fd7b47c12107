//! Sequential statistics against a plain loop, bit for bit and with the signs of NaN.

use crate::sequential::{CHUNK, SequentialStats, sequential_stats};
use crate::{DType, Shape, TensorView};

/// Returns the statistics before the first element.
fn nothing(n_elements: u64) -> SequentialStats {
    SequentialStats {
        n_elements,
        n_nan: 0,
        n_neg_inf: 0,
        n_pos_inf: 0,
        n_zero: 0,
        n_negative: 0,
        n_positive: 0,
        max: f64::NEG_INFINITY,
        min: f64::INFINITY,
        mean: 0.0,
        l2: 0.0,
    }
}

/// The definition, in the plainest words.
fn plain(values: &[f64]) -> SequentialStats {
    fn add(a: f64, b: f64) -> f64 {
        match (a.is_nan(), b.is_nan()) {
            (true, _) => a,
            (false, true) => b,
            _ if (a + b).is_nan() => -f64::NAN,
            _ => a + b,
        }
    }
    let mut s = nothing(values.len() as u64);
    let (mut total, mut squares_total) = (0.0, 0.0);
    for chunk in values.chunks(CHUNK) {
        let (mut sum, mut squares) = (0.0, 0.0);
        let (mut max, mut min) = (f64::NEG_INFINITY, f64::INFINITY);
        for &value in chunk {
            s.n_nan += u64::from(value.is_nan());
            s.n_neg_inf += u64::from(value == f64::NEG_INFINITY);
            s.n_pos_inf += u64::from(value == f64::INFINITY);
            s.n_zero += u64::from(value == 0.0);
            s.n_negative += u64::from(value < 0.0);
            s.n_positive += u64::from(value > 0.0);
            sum = add(sum, value);
            squares = add(squares, if value.is_nan() { value } else { value * value });
            if value.is_nan() || max < value {
                max = value;
            }
            if value.is_nan() || value < min {
                min = value;
            }
        }
        let mean = sum / chunk.len() as f64;
        let again = if sum.is_nan() {
            sum
        } else {
            mean * chunk.len() as f64
        };
        total = if values.len() <= CHUNK {
            sum
        } else {
            add(total, again)
        };
        squares_total = add(squares_total, squares);
        if max.is_nan() || s.max < max {
            s.max = max;
        }
        if min.is_nan() || min < s.min {
            s.min = min;
        }
    }
    s.mean = if total.is_nan() {
        total
    } else {
        total / values.len() as f64
    };
    s.l2 = if squares_total.is_nan() {
        squares_total
    } else {
        squares_total.sqrt()
    };
    s
}

fn check(dtype: DType, bytes: &[u8], values: &[f64], case: &str) {
    let shape = Shape::new([values.len()]).unwrap();
    let view = TensorView::new(dtype, &shape, bytes);
    let found = sequential_stats(view).unwrap();
    let expected = plain(values);
    let n = values.len();
    assert_eq!(
        format!("{found:?}"),
        format!("{expected:?}"),
        "{dtype}, {case}, {n} elements"
    );
    for (a, b) in [
        (found.max, expected.max),
        (found.min, expected.min),
        (found.mean, expected.mean),
        (found.l2, expected.l2),
    ] {
        assert!(
            n == 0 || a.is_sign_negative() == b.is_sign_negative(),
            "{dtype}, {case}, {n}"
        );
    }
}

fn check_all(values: &[f64], case: &str) {
    macro_rules! as_type {
        ($dtype:expr, $convert:expr, $back:expr) => {{
            let converted: Vec<_> = values.iter().map(|&v| $convert(v)).collect();
            let bytes: Vec<u8> = converted.iter().flat_map(|v| v.to_le_bytes()).collect();
            let values: Vec<f64> = converted.iter().map(|&v| $back(v)).collect();
            check($dtype, &bytes, &values, case);
        }};
    }
    as_type!(DType::F32, |v| v as f32, f64::from);
    as_type!(DType::F64, |v: f64| v, |v: f64| v);
    as_type!(DType::F16, half::f16::from_f64, half::f16::to_f64);
    as_type!(DType::BF16, half::bf16::from_f64, half::bf16::to_f64);
    as_type!(DType::I8, |v| v as i8, f64::from);
    as_type!(DType::U8, |v| v as u8, f64::from);
    as_type!(DType::I16, |v| v as i16, f64::from);
    as_type!(DType::U16, |v| v as u16, f64::from);
    as_type!(DType::I32, |v| v as i32, f64::from);
    as_type!(DType::U32, |v| v as u32, f64::from);
    as_type!(DType::I64, |v: f64| v as i64, |v: i64| v as f64);
    as_type!(DType::U64, |v: f64| v as u64, |v: u64| v as f64);
}

#[test]
fn equals_a_plain_loop() {
    let mut x = 5_u64;
    let mut unit = || {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 11) as f64 / (1_u64 << 53) as f64
    };
    let all: Vec<f64> = (0..20 * CHUNK + 777)
        .map(|_| (unit() - 0.4) * 300.0)
        .collect();
    for n in [
        0,
        1,
        2,
        17,
        CHUNK - 1,
        CHUNK,
        CHUNK + 1,
        4 * CHUNK,
        17 * CHUNK + 3,
        all.len(),
    ] {
        check_all(&all[..n], "uniform");
    }
    let map = |f: fn(usize, f64) -> f64| -> Vec<f64> {
        all.iter().enumerate().map(|(i, &v)| f(i, v)).collect()
    };
    check_all(&map(|_, v| v.max(0.0)), "half zeros");
    check_all(&map(|_, v| -v.max(0.0)), "half negative zeros");
    check_all(
        &map(|i, v| if i % 2 == 0 { -0.0 } else { v.max(0.0) }),
        "both zeros",
    );
    check_all(
        &map(|i, _| if i % 3 == 1 { -0.0 } else { 0.0 }),
        "only zeros",
    );
    check_all(
        &map(|i, v| if i % 50_000 == 49_999 { f64::NAN } else { v }),
        "NaN",
    );
    check_all(
        &map(|i, v| if i % 50_000 == 49_999 { -f64::NAN } else { v }),
        "negative NaN",
    );
    check_all(
        &map(|i, v| if i == 1000 { f64::INFINITY } else { v }),
        "inf",
    );
    check_all(
        &map(|i, v| {
            if i % 30_000 == 0 {
                f64::NEG_INFINITY
            } else {
                v.abs()
            }
        }),
        "-inf",
    );
    check_all(
        &map(|i, v| [f64::INFINITY, f64::NEG_INFINITY, v][i % 99 % 3]),
        "both",
    );
    check_all(&map(|_, v| v * 1e305), "overflow");
    check_all(&map(|_, v| v * 1e-40), "subnormal");
    check_all(&map(|_, v| v * 1e17), "large integers");
}
