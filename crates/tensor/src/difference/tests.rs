//! The code that runs against the specification, within the bounds that the module promises.

mod adversarial;
mod known;
pub(super) mod specification;

use super::sweep::DifferenceSweep;
use super::ulp::Ulps;
use super::*;
use crate::Shape;

/// A tensor along one axis.
#[derive(Clone, Debug)]
struct Case {
    dtype: DType,
    shape: Shape,
    bytes: Vec<u8>,
}

impl Case {
    fn new(dtype: DType, n: usize, bytes: Vec<u8>) -> Case {
        let shape = Shape::new([n]).unwrap();
        Case {
            dtype,
            shape,
            bytes,
        }
    }

    /// Values rounded to a float dtype, or cut off to an integer one.
    fn from_values(dtype: DType, values: &[f64]) -> Case {
        use half::{bf16, f16};
        macro_rules! write {
            ($convert:expr) => {
                values
                    .iter()
                    .flat_map(|&v| $convert(v).to_le_bytes())
                    .collect()
            };
        }
        let bytes = match dtype {
            DType::F64 => write!(|v: f64| v),
            DType::F32 => write!(|v: f64| v as f32),
            DType::F16 => write!(|v: f64| f16::from_f32(v as f32)),
            DType::BF16 => write!(|v: f64| bf16::from_f32(v as f32)),
            DType::I64 => write!(|v: f64| v as i64),
            DType::I32 => write!(|v: f64| v as i32),
            DType::I8 => write!(|v: f64| v as i8),
            DType::U8 => write!(|v: f64| v as u8),
            _ => panic!("no values of {dtype}"),
        };
        Case::new(dtype, values.len(), bytes)
    }

    fn view(&self) -> TensorView<'_> {
        TensorView::new(self.dtype, &self.shape, &self.bytes)
    }
}

const OPTIONS: DifferenceOptions = DifferenceOptions { has_kl: true };

/// Compares both with the specification, on every machine that the CPU has.
fn check(target: &Case, golden: &Case) -> TensorDifference {
    check_named("", target, golden)
}

/// The same of a kind of tensors that has a name.
fn check_named(name: &str, target: &Case, golden: &Case) -> TensorDifference {
    let (a, b) = (target.view(), golden.view());
    let found = difference(a, b, OPTIONS).unwrap();
    let expected = specification::difference(a, b, OPTIONS).unwrap();
    let complaints = complaints(&found, &expected);
    assert!(
        complaints.is_empty(),
        "{name}: {} elements, {} and {}: {complaints:#?}",
        found.n,
        a.dtype,
        b.dtype
    );
    let sources = [a, b].map(|view| BlockSource::new(view).unwrap());
    let sweep = DifferenceSweep {
        sources,
        found: SweepResult::new(coarser(a.dtype, b.dtype).map(Ulps::new)),
    };
    let machines = cpu::run_everywhere(&sweep);
    // As text, in which NaN equals NaN.
    let texts: Vec<String> = machines
        .iter()
        .map(|found| format!("{:?}", found.difference()))
        .collect();
    assert!(
        texts.windows(2).all(|pair| pair[0] == pair[1]),
        "{texts:#?}"
    );
    if found.n_finite > 0 {
        let ranges = machines[0].pairs.ranges;
        let kl = cpu::run_everywhere(&DivergenceTask {
            sources,
            ranges,
            are_all_finite: found.n_finite == found.n,
        });
        assert!(kl.windows(2).all(|pair| pair[0] == pair[1]), "{kl:?}");
    }
    found
}

/// Lists the numbers that lie beyond the documented bounds.
fn complaints(found: &TensorDifference, expected: &TensorDifference) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut check = |name: &str, found: f64, expected: f64, bound: f64| {
        let is_same = found == expected || (found.is_nan() && expected.is_nan());
        // Out of the range of normal doubles only so many digits are left.
        let is_near = (found - expected).abs() <= bound + 1e-322;
        if !is_same && !is_near {
            complaints.push(format!("{name} {found:e}, expected {expected:e}"));
        }
    };
    let shares = |d: &TensorDifference| [d.share_1_1000, d.share_5_1000, d.max_abs, d.max_rel];
    for (i, (found, expected)) in shares(found).into_iter().zip(shares(expected)).enumerate() {
        check(
            ["1/1000", "5/1000", "max_abs", "max_rel"][i],
            found,
            expected,
            0.0,
        );
    }
    for (name, get) in [
        ("mean_abs", (|d| d.mean_abs) as fn(&TensorDifference) -> f64),
        ("rmse", |d| d.rmse),
        ("mean_rel", |d| d.mean_rel),
        ("accumulated_rel", |d| d.accumulated_rel),
        ("rel_l2", |d| d.rel_l2),
        ("target l2", |d| d.target.l2_norm),
        ("golden l2", |d| d.golden.l2_norm),
    ] {
        check(name, get(found), get(expected), 1e-13 * get(expected).abs());
    }
    for (name, get) in [
        (
            "cosine",
            (|d| d.cosine.unwrap_or(2.0)) as fn(&TensorDifference) -> f64,
        ),
        ("snr", |d| d.snr_db),
        ("psnr", |d| d.psnr_db),
        ("kl", |d| d.kl.unwrap_or(-1.0)),
    ] {
        let expected = get(expected);
        let relative = 1e-13 * expected.abs();
        let bound = match name {
            "cosine" => 1e-13,
            "kl" => 1e-13 + relative,
            _ => 1e-12 + relative,
        };
        check(name, get(found), expected, bound);
    }
    for side in [
        |d: &TensorDifference| d.target,
        |d: &TensorDifference| d.golden,
    ] {
        let (found, expected) = (side(found), side(expected));
        check("min", found.min, expected.min, 0.0);
        check("max", found.max, expected.max, 0.0);
        let largest = expected.min.abs().max(expected.max.abs());
        check("mean", found.mean, expected.mean, 1e-13 * largest);
        let bound = 1e-12 * expected.std + 1e-13 * largest;
        check("std", found.std, expected.std, bound);
    }
    let (found, expected) = (counts(found), counts(expected));
    if found != expected {
        complaints.push(format!("counts {found}, expected {expected}"));
    }
    complaints
}

/// Formats the fields that involve no rounding as text.
fn counts(d: &TensorDifference) -> String {
    let side = |s: &SideSummary| [s.n_nan, s.n_positive_inf, s.n_negative_inf, s.n_zero];
    let found = (
        (d.n, d.n_finite, d.n_equal, d.n_sign_flips),
        (d.n_nan_mismatches, d.n_inf_mismatches, d.first_bad),
        (d.is_identical, d.max_ulp, d.p99_ulp, d.worst),
        (d.cosine.is_some(), d.kl.is_some(), d.histogram),
        [side(&d.target), side(&d.golden)],
    );
    format!("{found:?}")
}

/// A sequence of bits that looks random.
fn bits(seed: u64) -> impl FnMut() -> u64 {
    let mut x = seed.wrapping_mul(2).wrapping_add(1);
    move || {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        x ^ (x >> 29)
    }
}
