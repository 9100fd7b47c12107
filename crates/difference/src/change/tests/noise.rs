//! Nothing is claimed where there is nothing to claim.

use super::*;

const SHAPES: [&[usize]; 7] = [
    &[6],
    &[64],
    &[4, 4],
    &[12, 20],
    &[4, 6, 8],
    &[8, 4, 3, 3],
    &[2, 4, 3, 6, 5],
];

#[test]
fn noise_is_no_operation() {
    for seed in 0..200 {
        for shape in SHAPES {
            for dtype in [DType::F32, DType::F16, DType::BF16] {
                let golden = weights(seed, shape, dtype);
                let other = weights(seed + 1000, shape, dtype);
                let mut random = Random::new(seed + 2000);
                let mut noisy = |noise: f64| -> Vec<f64> {
                    let noisy = golden.iter().map(|x| x * (1.0 + noise * random.normal()));
                    noisy.map(|x| stored(dtype, x)).collect()
                };
                let mut targets = vec![other, noisy(1e-7), noisy(1e-2), noisy(0.5)];
                let mut walk = golden.clone();
                for _ in 0..8 {
                    for x in &mut walk {
                        *x = stored(dtype, *x + 3e-3 * random.normal());
                    }
                }
                targets.push(walk);
                for (k, target) in targets.iter().enumerate() {
                    let found = found(target, &golden, shape, dtype);
                    assert_eq!(found, None, "seed {seed}, {shape:?} {dtype}, pair {k}");
                }
            }
        }
    }
}

#[test]
fn degenerate_tensors_get_no_claim() {
    let check = |target: &[f64], golden: &[f64], shape: &[usize]| {
        let found = found(target, golden, shape, DType::F32);
        assert_eq!(found, None, "{target:?} {golden:?}");
    };
    check(&[], &[], &[0]);
    check(&[], &[], &[3, 0, 2]);
    check(&[1.5], &[3.0], &[]);
    check(&[1.5], &[3.0], &[1]);
    check(&[f64::NAN], &[f64::NAN], &[1]);
    check(&[f64::NAN; 4], &[f64::NAN; 4], &[2, 2]);
    // Exchanged, mirrored and rolled are one.
    check(&[1.0, 3.0, 2.0, 5.0], &[1.0, 3.0, 2.0, 5.0], &[4]);
    // A factor and an offset fit.
    check(&[2.0, 2.0, 3.0], &[1.0, 1.0, 4.0], &[3]);
    // The transposed lower triangle is it mirrored along both axes.
    let lower: Vec<f64> = (0..25)
        .map(|i| f64::from(u8::from(i % 5 <= i / 5)))
        .collect();
    let upper: Vec<f64> = (0..25)
        .map(|i| f64::from(u8::from(i % 5 >= i / 5)))
        .collect();
    check(&upper, &lower, &[5, 5]);
}

#[test]
fn numbers_that_are_none_cause_no_panic() {
    let values = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        1e308,
        -1e308,
        5e-324,
    ];
    let mut random = Random::new(3);
    let mut drawn = || values[(random.uniform() * 8.0) as usize];
    for shape in [&[1][..], &[2, 2], &[3, 4], &[1, 5, 1], &[2, 3, 2, 2]] {
        for _ in 0..200 {
            let n = shape.iter().product();
            let target: Vec<f64> = (0..n).map(|_| drawn()).collect();
            let golden: Vec<f64> = (0..n).map(|_| drawn()).collect();
            for dtype in [DType::F64, DType::F32, DType::I32] {
                found(&target, &golden, shape, dtype);
            }
        }
    }
}

/// Two sides that were computed with other rounding errors.
#[test]
fn operations_are_recognised_within_the_tolerance() {
    let shape = [16, 24];
    let golden = weights(5, &shape, DType::F32);
    let mut random = Random::new(6);
    let mut check = |target: Vec<f64>, expected: TensorChange| {
        let noisy: Vec<f64> = target.iter().map(|x| x + 2e-5 * random.uniform()).collect();
        let found = found(&noisy, &golden, &shape, DType::F32);
        assert_eq!(found, Some(expected));
    };
    let axes = vec![(1, 5)];
    let rolled = moved(&golden, &shape, |index| index[1] = (index[1] + 19) % 24);
    check(rolled, TensorChange::Rolled { axes });
    let blocks = moved(&golden, &shape, |index| {
        index[0] = [1, 3, 0, 2][index[0] / 4] * 4 + index[0] % 4;
    });
    let order = vec![1, 3, 0, 2];
    check(
        blocks,
        TensorChange::Blocks {
            axis: 0,
            size: 4,
            order,
        },
    );
}
