//! Checks the results for adversarial data. Expected texts are the reference's with numpy 2.4.

use super::*;

const ABOUT: TensorFacts<'_> = TensorFacts {
    my_file: "/my",
    golden_file: "/golden",
    is_scalar: false,
};

#[test]
fn special_values() {
    let mut n_cases = 0;
    for line in include_str!("cases.txt").lines().skip(1) {
        let mut parts = line.split('|').map(str::trim);
        let mut next = || parts.next().unwrap();
        let (a, b) = (elements(next()), elements(next()));
        let expected: Vec<&str> = next().split(' ').collect();
        let pair = ComparedElements::Floats(&a, &b);
        let found = Metric::ALL.map(|metric| match metric.run(pair, &ABOUT) {
            Ok((text, _)) => text,
            Err(_) => "error".to_owned(),
        });
        assert_eq!(found.as_slice(), expected, "{line}");
        n_cases += 1;
    }
    assert_eq!(n_cases, 21);
}

/// Blank-separated elements; `n*x` is x n times.
fn elements(text: &str) -> Vec<f32> {
    let words = text
        .split_whitespace()
        .map(|word| match word.split_once('*') {
            Some((n, x)) => (n.parse().unwrap(), x.parse().unwrap()),
            None => (1, word.parse().unwrap()),
        });
    words
        .flat_map(|(n, x): (usize, f32)| std::iter::repeat_n(x, n))
        .collect()
}

#[test]
fn reasons() {
    let reason = |a: &[f32], b: &[f32]| {
        let outcome = Metric::CosineSimilarity.run(ComparedElements::Floats(a, b), &ABOUT);
        outcome.unwrap().1
    };
    let zero =
        |file| format!("Cannot compare by Cosine Similarity. All the data is zero in {file}.");
    assert_eq!(reason(&[0.0], &[0.0]), "");
    assert_eq!(reason(&[0.0], &[1.0]), zero("/my"));
    assert_eq!(reason(&[1.0], &[0.0]), zero("/golden"));
    let scalar = TensorFacts {
        is_scalar: true,
        ..ABOUT
    };
    let (text, reason) = Metric::CosineSimilarity
        .run(ComparedElements::Floats(&[2.0], &[-3.0]), &scalar)
        .unwrap();
    assert_eq!((&*text, &*reason), ("1.000000", "This tensor is scalar."));
}

#[test]
fn booleans() {
    let run =
        |metric: Metric, a: &[u8], b: &[u8]| metric.run(ComparedElements::Bools(a, b), &ABOUT);
    let text = |metric, a: &[u8], b: &[u8]| run(metric, a, b).map(|(text, _)| text);
    let cosine = Metric::CosineSimilarity;
    assert_eq!(text(cosine, &[1, 0, 1], &[1, 1, 1]).unwrap(), "0.816497");
    assert_eq!(text(cosine, &[0, 0], &[0, 0]).unwrap(), "1.0");
    assert_eq!(text(cosine, &[1, 0], &[0, 0]).unwrap(), "NaN");
    assert_eq!(text(cosine, &[], &[]).unwrap(), "1.0");
    let distance = Metric::RelativeEuclideanDistance;
    assert_eq!(text(distance, &[1, 0], &[0, 0]).unwrap(), "0.000000");
    assert!(text(distance, &[1, 0], &[0, 1]).is_err());
}

#[test]
fn sums_are_numpys() {
    // Sums of i * 0.1 as float32, computed by numpy.
    for (n, expected) in NUMPY_SUMS {
        let sum = pairwise(n, |i| i as f32 * 0.1);
        assert_eq!(sum.to_bits(), expected, "{n}");
    }
}

/// Number of elements and bits of their sum.
const NUMPY_SUMS: [(usize, u32); 11] = [
    (0, 0x00000000),
    (1, 0x00000000),
    (7, 0x40066666),
    (8, 0x40333332),
    (9, 0x40666665),
    (127, 0x44480666),
    (128, 0x444b3334),
    (129, 0x444e6666),
    (1000, 0x47431e00),
    (4099, 0x494d0cd2),
    (100003, 0x4dee6e35),
];
