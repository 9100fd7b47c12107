//! Cases whose numbers are known from their definition.

use super::*;

fn floats(values: &[f64]) -> Case {
    Case::from_values(DType::F32, values)
}

#[test]
fn three_elements() {
    let found = check(&floats(&[1.0, 2.0, -4.0]), &floats(&[1.0, 4.0, 5.0]));
    assert_eq!((found.n, found.n_finite, found.n_equal), (3, 3, 1));
    assert_eq!((found.max_abs, found.n_sign_flips), (9.0, 1));
    let worst = WorstElement {
        index: 2,
        target: -4.0,
        golden: 5.0,
    };
    assert_eq!(found.worst, Some(worst));
    assert!((found.mean_abs - 11.0 / 3.0).abs() < 1e-15);
    assert!((found.rmse - (85.0f64 / 3.0).sqrt()).abs() < 1e-14);
    assert!((found.rel_l2 - (85.0f64 / 42.0).sqrt()).abs() < 1e-15);
    let cosine = -11.0 / (21.0f64 * 42.0).sqrt();
    assert!((found.cosine.unwrap() - cosine).abs() < 1e-15);
    assert_eq!((found.max_rel, found.accumulated_rel), (1.8, 2.3));
    assert!((found.mean_rel - 2.3 / 3.0).abs() < 1e-15);
    assert!((found.snr_db - 10.0 * (42.0f64 / 85.0).log10()).abs() < 1e-12);
    assert!((found.psnr_db - 10.0 * (75.0f64 / 85.0).log10()).abs() < 1e-12);
    assert_eq!(
        (found.share_1_1000, found.share_5_1000),
        (1.0 / 3.0, 1.0 / 3.0)
    );
    let std = (found.golden.mean, found.golden.std);
    assert_eq!(std.0, 10.0 / 3.0);
    assert!((std.1 - (42.0f64 / 3.0 - 100.0 / 9.0).sqrt()).abs() < 1e-14);
}

#[test]
fn nothing() {
    let found = check(&floats(&[]), &floats(&[]));
    let zeros = [
        found.max_abs,
        found.mean_abs,
        found.rmse,
        found.max_rel,
        found.mean_rel,
        found.accumulated_rel,
        found.rel_l2,
        found.target.l2_norm,
    ];
    assert_eq!(zeros, [0.0; 8]);
    assert_eq!((found.cosine, found.kl, found.worst), (None, None, None));
    assert_eq!((found.max_ulp, found.p99_ulp), (Some(0), Some(0)));
    assert_eq!((found.share_1_1000, found.share_5_1000), (1.0, 1.0));
    assert_eq!(
        (found.snr_db, found.psnr_db),
        (f64::INFINITY, f64::INFINITY)
    );
    assert!(found.is_identical && found.golden.mean.is_nan() && found.golden.min.is_nan());
}

#[test]
fn sides_of_zeros() {
    let (zeros, ones) = (floats(&[0.0; 20]), floats(&[1.0; 20]));
    let both = check(&zeros, &floats(&[-0.0; 20]));
    assert_eq!(
        (both.cosine, both.n_equal, both.max_ulp),
        (Some(1.0), 20, Some(0))
    );
    assert!(!both.is_identical);
    let target = check(&zeros, &ones);
    assert_eq!(
        (target.cosine, target.rel_l2, target.max_rel),
        (None, 1.0, 1.0)
    );
    let golden = check(&ones, &zeros);
    assert_eq!((golden.cosine, golden.rel_l2), (None, f64::INFINITY));
    // Nothing is measured by zeros.
    assert_eq!((golden.max_rel, golden.mean_rel), (0.0, 0.0));
    assert_eq!(
        (golden.share_5_1000, golden.histogram[N_BINS - 1]),
        (0.0, 20)
    );
    assert_eq!(
        (golden.snr_db, golden.psnr_db),
        (f64::NEG_INFINITY, f64::NEG_INFINITY)
    );
}

#[test]
fn elements_that_are_not_finite() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let target = floats(&[1.0, nan, nan, inf, inf, -inf, nan, 2.0]);
    let golden = floats(&[1.0, nan, 1.0, inf, -inf, 1.0, inf, nan]);
    let found = check(&target, &golden);
    assert_eq!((found.n_finite, found.n_equal), (1, 3));
    assert_eq!((found.n_nan_mismatches, found.n_inf_mismatches), (3, 2));
    assert_eq!((found.first_bad, found.n_sign_flips), (Some(2), 2));
    assert_eq!((found.target.n_nan, found.target.max), (3, 2.0));
    assert_eq!(found.golden.n_positive_inf, 2);
}

#[test]
fn distances_in_steps() {
    let next = |value: f32, n: u32| f64::from(f32::from_bits(value.to_bits() + n));
    let golden = vec![1.0; 1000];
    let mut target = golden.clone();
    target[..10].fill(next(1.0, 1000));
    let found = check(&floats(&target), &floats(&golden));
    assert_eq!((found.max_ulp, found.p99_ulp), (Some(1000), Some(0)));
    target[10] = next(1.0, 600);
    let found = check(&floats(&target), &floats(&golden));
    // Rounded up to the end of a sixteenth of 512.
    assert_eq!((found.max_ulp, found.p99_ulp), (Some(1000), Some(607)));
    let found = check(&floats(&[1e-45]), &floats(&[-1e-45]));
    assert_eq!(found.max_ulp, Some(2));
    let found = check(
        &Case::from_values(DType::F16, &[1.0]),
        &floats(&[1.0 + 1.0 / 1024.0]),
    );
    assert_eq!(found.max_ulp, Some(1));
    let found = check(&Case::from_values(DType::I32, &[1.0]), &floats(&[2.0]));
    assert_eq!(found.max_ulp, None);
}

#[test]
fn divergence_of_two_distributions() {
    let smallest = f64::from(f32::EPSILON);
    let found = check(&floats(&[0.0, 0.5, 1.0]), &floats(&[0.0, 1.0, 1.0]));
    let (p, q) = (1.5 + smallest, 2.0 + smallest);
    let expected = [
        (smallest / p, smallest / q),
        (0.5 / p, 1.0 / q),
        (1.0 / p, 1.0 / q),
    ]
    .into_iter()
    .map(|(p, q): (f64, f64)| p * (p / q).ln())
    .sum::<f64>();
    assert!((found.kl.unwrap() - expected).abs() < 1e-14);
    assert_eq!(check(&floats(&[3.0; 9]), &floats(&[0.0; 9])).kl, Some(0.0));
}

#[test]
fn a_small_angle_beside_large_numbers() {
    let n = 3 * 2048 + 1;
    let golden: Vec<f64> = (0..n).map(|i| 1e30 * (1.0 + (i % 7) as f64)).collect();
    let target: Vec<f64> = golden.iter().map(|v| v * 1e8).collect();
    let found = check(&floats(&target), &floats(&golden));
    assert!((found.cosine.unwrap() - 1.0).abs() < 1e-13);
}

#[test]
fn sizes_and_dtypes_that_do_not_compare() {
    let (two, three) = (floats(&[1.0; 2]), floats(&[1.0; 3]));
    let error = difference(two.view(), three.view(), OPTIONS).unwrap_err();
    assert_eq!(error.to_string(), "2 elements cannot be compared with 3");
    let text = Case::new(DType::String, 1, vec![65]);
    let error = difference(text.view(), two.view(), OPTIONS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "elements of type `string` have no numeric value"
    );
    let short = Case::new(DType::F32, 2, vec![0; 7]);
    let error = difference(short.view(), two.view(), OPTIONS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "float32 tensor of shape [2] takes 8 bytes, found 7"
    );
    let bytes = Case::new(DType::Undefined, 7, vec![3; 5]);
    let found = check(&bytes, &bytes);
    assert_eq!((found.n, found.target.max), (5, 3.0));
}
