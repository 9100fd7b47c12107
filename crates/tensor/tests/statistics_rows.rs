//! Sequential statistics and digests against rows that MindSpore wrote, character by character.

use std::fs;
use std::path::Path;

use opscope_tensor::sequential::{sequential_md5, sequential_sha1, sequential_stats};
use opscope_tensor::{DType, Shape, TensorView, digest, stats};

/// A number as C's `%.6g` prints it; NaN without its sign.
fn six_digits(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let trim = |digits: &str| -> String {
        if digits.contains('.') {
            digits
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
        } else {
            digits.to_owned()
        }
    };
    if (-4..6).contains(&exponent) {
        return trim(&format!("{value:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

#[test]
fn six_digits_as_c_prints_them() {
    let cases = [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0 / 3.0, "0.333333"),
        (1_234_567.0, "1.23457e+06"),
        (999_999.5, "1e+06"),
        (123_456.0, "123456"),
        (0.0001, "0.0001"),
        (0.000_012_345_67, "1.23457e-05"),
        (3e38, "3e+38"),
        (-2.5, "-2.5"),
    ];
    for (value, text) in cases {
        assert_eq!(six_digits(value), text);
    }
}

/// The columns behind the shape, as the library computes them.
fn columns(view: TensorView<'_>) -> Vec<String> {
    let s = sequential_stats(view).unwrap();
    vec![
        six_digits(s.max),
        six_digits(s.min),
        six_digits(s.mean),
        s.n_elements.to_string(),
        s.n_negative.to_string(),
        s.n_positive.to_string(),
        s.n_nan.to_string(),
        s.n_neg_inf.to_string(),
        s.n_pos_inf.to_string(),
        s.n_zero.to_string(),
        digest::hex(&sequential_md5(view)),
        six_digits(s.l2),
        digest::hex(&sequential_sha1(view)),
    ]
}

#[test]
fn every_row_is_reproduced() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/statistics");
    let tensors = fs::read(dir.join("tensors.bin")).unwrap();
    let table = fs::read_to_string(dir.join("statistic.csv")).unwrap();
    let mut at = 0;
    let mut n_rows = 0;
    for row in table.lines().skip(1) {
        let (common, rest) = row.split_once(",\"[").unwrap();
        let (dims, values) = rest.split_once("]\",").unwrap();
        let mut common = common.rsplit(',');
        let dtype: DType = common.next().unwrap().parse().unwrap();
        let n_bytes: usize = common.next().unwrap().parse().unwrap();
        let dims: Vec<usize> = dims
            .split(',')
            .filter(|dim| !dim.is_empty())
            .map(|dim| dim.parse().unwrap())
            .collect();
        let shape = Shape::new(dims).unwrap();
        let bytes = &tensors[at..at + n_bytes];
        at += n_bytes;
        let view = TensorView::new(dtype, &shape, bytes);
        let expected: Vec<String> = values
            .split_terminator(',')
            .map(|text| {
                if text == "-nan" {
                    "nan".into()
                } else {
                    text.to_owned()
                }
            })
            .collect();
        assert_eq!(columns(view), expected, "{row}");
        n_rows += 1;
        // The other statistics know the same counts.
        let (s, t) = (sequential_stats(view).unwrap(), stats(view).unwrap());
        assert_eq!(
            (t.counts.n_nan, t.counts.n_zero),
            (s.n_nan, s.n_zero),
            "{row}"
        );
        assert_eq!(
            (t.counts.n_positive(), t.counts.n_negative),
            (s.n_positive, s.n_negative),
            "{row}"
        );
        // Zeros of both signs are in order there, and the earlier one counts here.
        let is_same = t.max_or_nan() == s.max || t.max_or_nan().is_nan() && s.max.is_nan();
        assert!(is_same, "{row}");
    }
    assert_eq!((n_rows, at), (53, tensors.len()));
}
