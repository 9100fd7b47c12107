//! Measures the cost of comparing two tensors, against reading the same bytes, and numpy if there
//! is one.
//!
//! `cargo bench -p opscope-tensor --bench difference`. One thread. The best of several rounds
//! counts, in which reading and comparing take turns. Answers are checked against doubles that are
//! summed one after the other. `NUMPY_PYTHON` names a Python that has numpy.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use half::f16;
use opscope_tensor::difference::{DifferenceOptions, TensorDifference, difference};
use opscope_tensor::{DType, Shape, TensorView};

/// Bytes of one side.
const SIZES: [usize; 2] = [4 << 20, 64 << 20];
/// Bytes that are compared in each round, of which there are some.
const N_ROUND_BYTES: usize = 128 << 20;
const N_ROUNDS: usize = 7;

fn main() {
    println!("both sides of float tensors, one thread: GB/s and share of reading");
    println!(
        "{:20} {:>7} {:>14} {:>14} {:>14} {:>14}",
        "", "read", "all metrics", "with KL", "identical", "1 % differ"
    );
    for dtype in [DType::F32, DType::F16] {
        for n_bytes in SIZES {
            compare(dtype, n_bytes);
        }
    }
    numpy();
}

/// Numbers between -1 and 1, a share of the pairs a little apart.
fn sides(dtype: DType, n: usize, share: f32) -> [Vec<u8>; 2] {
    let mut x = 1_u64;
    let mut next = move || {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 40) as f32 / 8_388_608.0 - 1.0
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    // Differences come in runs, as where an operator went wrong for part of its output.
    let n_apart = (n as f32 * share) as usize;
    for i in 0..n {
        let (value, step) = (next(), next() * 1e-3);
        let apart = if i < n_apart { value + step } else { value };
        match dtype {
            DType::F16 => {
                a.extend(f16::from_f32(apart).to_le_bytes());
                b.extend(f16::from_f32(value).to_le_bytes());
            }
            _ => {
                a.extend(apart.to_le_bytes());
                b.extend(value.to_le_bytes());
            }
        }
    }
    [a, b]
}

fn compare(dtype: DType, n_bytes: usize) {
    let n = n_bytes / dtype.bytes().unwrap();
    let shape = Shape::new([n]).unwrap();
    let [a, b] = sides(dtype, n, 1.0);
    let [few, _] = sides(dtype, n, 0.01);
    let same = b.clone();
    let run = |a: &[u8], has_kl| {
        let [a, b] =
            [black_box(a), black_box(&b)].map(|bytes| TensorView::new(dtype, &shape, bytes));
        difference(a, b, DifferenceOptions { has_kl }).unwrap()
    };
    check(&run(&a, true), dtype, &a, &b);
    check(&run(&few, false), dtype, &few, &b);
    assert!(run(&same, true).is_identical);
    let mut best = [f64::INFINITY; 5];
    for _ in 0..N_ROUNDS {
        let works: [&dyn Fn() -> f64; 5] = [
            &|| (read(black_box(&a)) ^ read(black_box(&b))) as f64,
            &|| run(&a, false).max_abs,
            &|| run(&a, true).max_abs,
            &|| run(&same, false).max_abs,
            &|| run(&few, false).max_abs,
        ];
        for (best, work) in best.iter_mut().zip(works) {
            for _ in 0..(N_ROUND_BYTES / n_bytes / 2).max(1) {
                let start = Instant::now();
                black_box(work());
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
    }
    let rate = |time: f64| 2.0 * n_bytes as f64 / time / 1e9;
    let share = |time: f64| format!("{:.1} ({:.0} %)", rate(time), 100.0 * best[0] / time);
    println!(
        "{:20} {:>7.1} {:>14} {:>14} {:>14} {:>14}",
        format!("{dtype} {} MiB", n_bytes >> 20),
        rate(best[0]),
        share(best[1]),
        share(best[2]),
        share(best[3]),
        share(best[4]),
    );
}

/// As fast as memory delivers bytes.
fn read(bytes: &[u8]) -> u64 {
    let mut lanes = [0; 32];
    for words in bytes.as_chunks::<256>().0 {
        for (lane, word) in lanes.iter_mut().zip(words.as_chunks().0) {
            *lane ^= u64::from_le_bytes(*word);
        }
    }
    lanes.iter().fold(0, |all, lane| all ^ lane)
}

/// The definitions, in doubles.
fn check(found: &TensorDifference, dtype: DType, a: &[u8], b: &[u8]) {
    let values = |bytes: &[u8]| -> Vec<f64> {
        match dtype {
            DType::F16 => {
                let halves = bytes.as_chunks().0.iter();
                halves
                    .map(|&half| f16::from_le_bytes(half).to_f64())
                    .collect()
            }
            _ => {
                let floats = bytes.as_chunks().0.iter();
                floats
                    .map(|&float| f32::from_le_bytes(float).into())
                    .collect()
            }
        }
    };
    let (a, b) = (values(a), values(b));
    let pairs = || a.iter().zip(&b).map(|(&a, &b)| (a, b));
    let n = a.len() as f64;
    let (mut max, mut sum, mut squares, mut max_rel) = (0f64, 0f64, 0f64, 0f64);
    let (mut dot, mut a_squares, mut b_squares, mut n_equal) = (0f64, 0f64, 0f64, 0);
    for (a, b) in pairs() {
        let distance = (a - b).abs();
        max = max.max(distance);
        sum += distance;
        squares += distance * distance;
        if b != 0.0 {
            max_rel = max_rel.max(distance / b.abs());
        }
        dot += a * b;
        a_squares += a * a;
        b_squares += b * b;
        n_equal += u64::from(a == b);
    }
    let near = |found: f64, expected: f64| {
        let bound = 1e-9 * expected.abs();
        assert!(
            (found - expected).abs() <= bound,
            "{found:e}, expected {expected:e}"
        );
    };
    assert_eq!((found.max_abs, found.max_rel), (max, max_rel));
    assert_eq!(found.n_equal, n_equal);
    near(found.mean_abs, sum / n);
    near(found.rmse, (squares / n).sqrt());
    near(found.rel_l2, (squares / b_squares).sqrt());
    near(found.cosine.unwrap(), dot / (a_squares * b_squares).sqrt());
    if let Some(kl) = found.kl {
        let expected = divergence(&a, &b);
        assert!(
            (kl - expected).abs() < 1e-10,
            "{kl:e}, expected {expected:e}"
        );
    }
}

/// The Kullback-Leibler divergence of both, brought between 0 and 1.
fn divergence(a: &[f64], b: &[f64]) -> f64 {
    let shares = |values: &[f64]| -> Vec<f64> {
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let norm = |value: &f64| ((value - min) / (max - min)).max(f64::from(f32::EPSILON));
        let sum: f64 = values.iter().map(norm).sum();
        values.iter().map(|value| norm(value) / sum).collect()
    };
    let (p, q) = (shares(a), shares(b));
    p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum()
}

/// Four of the metrics as one writes them in numpy.
fn numpy() {
    let Ok(python) = std::env::var("NUMPY_PYTHON") else {
        println!("numpy is left out: `NUMPY_PYTHON` names no Python");
        return;
    };
    println!("numpy: largest absolute and relative difference, RMSE and cosine");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/difference.py");
    let status = Command::new(python).arg(script).status();
    assert!(status.unwrap().success(), "numpy's part has failed");
}
