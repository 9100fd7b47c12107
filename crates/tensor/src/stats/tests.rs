mod accuracy;
mod against_specification;
mod sequential;
mod specification;

use super::*;
use crate::Shape;

fn of_f32(values: &[f32]) -> Stats {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = Shape::new([values.len()]).unwrap();
    stats(TensorView::new(DType::F32, &shape, &bytes)).unwrap()
}

#[test]
fn plain_values() {
    let s = of_f32(&[1.0, -2.0, 3.0]);
    assert_eq!((s.min, s.max, s.counts.n_elements), (-2.0, 3.0, 3));
    assert!((s.mean - 2.0 / 3.0).abs() < 1e-15);
    assert!((s.l2 - 14f64.sqrt()).abs() < 1e-15);
    assert!(!s.has_non_finite());
}

#[test]
fn nan_takes_no_part() {
    let s = of_f32(&[f32::NAN, 4.0, f32::NAN, 2.0]);
    assert_eq!((s.counts.n_nan, s.min, s.max, s.mean), (2, 2.0, 4.0, 3.0));
}

#[test]
fn infinities_are_counted_by_sign() {
    let s = of_f32(&[f32::INFINITY, 1.0, f32::NEG_INFINITY, f32::INFINITY]);
    assert_eq!((s.counts.n_pos_inf, s.counts.n_neg_inf), (2, 1));
    assert_eq!(
        (s.min, s.max, s.l2),
        (f64::NEG_INFINITY, f64::INFINITY, f64::INFINITY)
    );
    assert!(s.mean.is_nan());
    assert_eq!(of_f32(&[f32::INFINITY, 1.0]).mean, f64::INFINITY);
}

#[test]
fn empty_and_all_nan() {
    for values in [&[][..], &[f32::NAN; 9][..]] {
        let s = of_f32(values);
        assert_eq!(
            (s.min, s.max, s.l2),
            (f64::INFINITY, f64::NEG_INFINITY, 0.0)
        );
        assert!(s.mean.is_nan());
        assert_eq!(s.counts.n_nan, values.len() as u64);
    }
}

#[test]
fn other_dtypes() {
    let shape = Shape::new([2]).unwrap();
    let cases: [(DType, Vec<u8>, f64, f64); 5] = [
        (DType::I8, vec![0x80, 0x7f], -128.0, 127.0),
        (DType::U16, vec![0, 0, 0xff, 0xff], 0.0, 65535.0),
        (DType::F16, vec![0xff, 0x7b, 0, 0x80], -0.0, 65504.0),
        (DType::BF16, vec![0x80, 0x3f, 0, 0xc0], -2.0, 1.0),
        (DType::Bool, vec![1, 0], 0.0, 1.0),
    ];
    for (dtype, bytes, min, max) in cases {
        let layout = crate::Layout::Nd;
        let s = stats(TensorView {
            dtype,
            shape: &shape,
            layout,
            bytes: &bytes,
        })
        .unwrap();
        assert_eq!((s.min, s.max), (min, max), "{dtype}");
    }
    let view = TensorView::new(DType::C64, &shape, &[0; 16]);
    assert_eq!(stats(view), Err(StatsError::Dtype(DType::C64)));
}
