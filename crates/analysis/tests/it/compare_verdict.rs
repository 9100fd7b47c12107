//! Verdicts on tensors that are wrong in ways that one number alone does not show.

use half::{bf16, f16};
use opscope_analysis::compare::attribution::attribute;
use opscope_analysis::compare::result::{
    Comparison, Evidence, Metrics, OperatorName, OperatorResult, SlotResult, TensorSummary,
    VerdictLevel,
};
use opscope_analysis::compare::verdict::{Thresholds, YardstickUse, judge};
use opscope_tensor::difference::{DifferenceOptions, difference};
use opscope_tensor::{DType, Shape, TensorView};

const N: usize = 60_000;

/// About normally distributed, and the same everywhere.
fn values(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let normal = |_| (0..6).map(|_| uniform()).sum::<f64>() * 1.4 - 4.2;
    (0..n).map(normal).collect()
}

fn bytes(values: &[f64], dtype: DType) -> Vec<u8> {
    let each = values.iter();
    match dtype {
        DType::F16 => each.flat_map(|&x| f16::from_f64(x).to_le_bytes()).collect(),
        DType::BF16 => each
            .flat_map(|&x| bf16::from_f64(x).to_le_bytes())
            .collect(),
        DType::F32 => each.flat_map(|&x| (x as f32).to_le_bytes()).collect(),
        DType::I8 => each.map(|&x| x as i8 as u8).collect(),
        DType::I64 => each.flat_map(|&x| (x as i64).to_le_bytes()).collect(),
        _ => each.flat_map(|&x| x.to_le_bytes()).collect(),
    }
}

fn metrics(target: &[f64], golden: &[f64], dtypes: [DType; 2]) -> Metrics {
    let shape = Shape::new([target.len()]).unwrap();
    let [a, b] = [bytes(target, dtypes[0]), bytes(golden, dtypes[1])];
    let view = |dtype, bytes| TensorView::new(dtype, &shape, bytes);
    let found = difference(
        view(dtypes[0], &a),
        view(dtypes[1], &b),
        DifferenceOptions::default(),
    );
    Metrics::from_difference(&found.unwrap())
}

fn slot(metrics: Metrics, dtypes: [DType; 2]) -> SlotResult {
    let info = |dtype: DType| TensorSummary {
        dtype: dtype.name().into(),
        ..TensorSummary::default()
    };
    SlotResult {
        evidence: Evidence::Tensor,
        target: info(dtypes[0]).into(),
        golden: info(dtypes[1]).into(),
        metrics,
        ..SlotResult::default()
    }
}

fn judged(slot: SlotResult, op_type: &str, thresholds: &Thresholds) -> OperatorResult {
    let name = OperatorName {
        op_type: op_type.into(),
        op_name: "x".into(),
        ..OperatorName::default()
    };
    let mut comparison = Comparison {
        operators: vec![OperatorResult {
            target: [name].into(),
            slots: vec![slot],
            ..OperatorResult::default()
        }],
        ..Comparison::default()
    };
    judge(&mut comparison, thresholds);
    attribute(&mut comparison, 1);
    comparison.operators.remove(0)
}

fn level(target: &[f64], golden: &[f64], dtypes: [DType; 2]) -> VerdictLevel {
    let slot = slot(metrics(target, golden, dtypes), dtypes);
    judged(slot, "Add", &Thresholds::default()).level
}

const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

#[test]
fn rounding_alone_passes() {
    let golden = values(N, 1);
    for dtype in FLOATS {
        for other in [dtype, DType::F64] {
            assert_eq!(
                level(&golden, &golden, [dtype, other]),
                VerdictLevel::Pass,
                "{dtype} {other}"
            );
        }
        // A few roundings more, each to its own side.
        let noise = values(N, 2);
        let unit = match dtype {
            DType::F64 => f64::EPSILON,
            DType::F32 => f64::from(f32::EPSILON),
            DType::F16 => f16::EPSILON.to_f64(),
            _ => bf16::EPSILON.to_f64(),
        };
        let near: Vec<f64> = golden
            .iter()
            .zip(&noise)
            .map(|(x, e)| x * (1.0 + e * unit))
            .collect();
        assert_eq!(
            level(&near, &golden, [dtype, DType::F64]),
            VerdictLevel::Pass,
            "{dtype}"
        );
    }
    // What no dtype keeps in full is no difference.
    let tiny = vec![1e-40; 100];
    assert_eq!(
        level(&[0.0; 100], &tiny, [DType::F32, DType::F32]),
        VerdictLevel::Pass
    );
    assert_eq!(
        level(&[], &[], [DType::F32, DType::F32]),
        VerdictLevel::Pass
    );
}

#[test]
fn wrong_values_behind_a_good_cosine_do_not_pass() {
    let golden = values(N, 1);
    let largest = golden.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let changed = |change: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
        golden
            .iter()
            .enumerate()
            .map(|(i, &x)| change(i, x))
            .collect()
    };
    let cases: [(&str, Vec<f64>); 6] = [
        (
            "one element",
            changed(&|i, x| if i == 33_333 { x + largest } else { x }),
        ),
        ("an offset", changed(&|_, x| x + 0.02)),
        ("a gain", changed(&|_, x| x * 1.02)),
        (
            "signs of small values",
            changed(&|_, x| if x.abs() < 0.1 { -x } else { x }),
        ),
        (
            "one NaN",
            changed(&|i, x| if i == 5 { f64::NAN } else { x }),
        ),
        (
            "one infinity",
            changed(&|i, x| if i == 5 { f64::INFINITY } else { x }),
        ),
    ];
    for (name, target) in &cases {
        for dtype in FLOATS {
            let found = metrics(target, &golden, [dtype, dtype]);
            let cosine = found.named("cosine").unwrap();
            assert!(cosine > 0.999, "{name} {dtype} {cosine}");
            let level = judged(slot(found, [dtype, dtype]), "Add", &Thresholds::default()).level;
            assert!(
                [VerdictLevel::Warn, VerdictLevel::Fail].contains(&level),
                "{name} {dtype}"
            );
        }
    }
    for (name, target) in [&cases[0], &cases[4], &cases[5]] {
        for dtype in FLOATS {
            assert_eq!(
                level(target, &golden, [dtype, dtype]),
                VerdictLevel::Fail,
                "{name} {dtype}"
            );
        }
    }
    // Small offsets and gains show where the dtype has the digits.
    for factor in [1.000_05, 0.999_95] {
        let target = changed(&|_, x| x * factor);
        assert_eq!(level(&target, &golden, [DType::F32; 2]), VerdictLevel::Warn);
        assert_eq!(
            level(&target, &golden, [DType::BF16, DType::F32]),
            VerdictLevel::Pass
        );
    }
}

#[test]
fn one_element_of_a_million_fails() {
    let golden = values(1_000_000, 1);
    let mut target = golden.clone();
    target[777_777] += golden.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let found = metrics(&target, &golden, [DType::F32; 2]);
    assert!(found.named("cosine") > Some(0.999_99));
    let found = slot(found, [DType::F32; 2]);
    assert_eq!(
        judged(found, "Add", &Thresholds::default()).level,
        VerdictLevel::Fail
    );
}

#[test]
fn integers() {
    let golden: Vec<f64> = (0..1000).map(|i| f64::from(i % 100)).collect();
    let mut target = golden.clone();
    target[3] += 1.0;
    assert_eq!(level(&golden, &golden, [DType::I64; 2]), VerdictLevel::Pass);
    assert_eq!(level(&target, &golden, [DType::I64; 2]), VerdictLevel::Fail);
    assert_eq!(level(&target, &golden, [DType::I8; 2]), VerdictLevel::Warn);
    target[3] += 1.0;
    assert_eq!(level(&target, &golden, [DType::I8; 2]), VerdictLevel::Fail);
    // Where one side has floats, limits of floats hold.
    assert_eq!(
        level(&target, &golden, [DType::I8, DType::F32]),
        VerdictLevel::Fail
    );
    assert_eq!(
        level(&golden, &golden, [DType::I8, DType::F32]),
        VerdictLevel::Pass
    );
}

#[test]
fn outputs_without_a_value_are_not_judged() {
    let (a, b) = (values(100, 1), values(100, 2));
    let dtypes = [DType::F32; 2];
    let found = || slot(metrics(&a, &b, dtypes), dtypes);
    let dropped = judged(found(), "Dropout", &Thresholds::default());
    assert_eq!(
        (dropped.level, dropped.slots[0].level),
        (VerdictLevel::Skip, VerdictLevel::Skip)
    );
    assert_eq!(dropped.slots[0].rules[0].metric.name(), "not_judged");
    let none = Thresholds {
        not_judged: Vec::new(),
        ..Thresholds::default()
    };
    assert_eq!(judged(found(), "Dropout", &none).level, VerdictLevel::Fail);
    let same = slot(metrics(&a, &a, dtypes), dtypes);
    assert_eq!(
        judged(same, "Dropout", &Thresholds::default()).level,
        VerdictLevel::Pass
    );
}

#[test]
fn the_reference_is_a_yardstick() {
    let golden = values(10_000, 1);
    let noise = values(10_000, 2);
    let apart =
        |by: f64| -> Vec<f64> { golden.iter().zip(&noise).map(|(x, e)| x + e * by).collect() };
    let dtypes = [DType::F32; 2];
    let with = |target: f64, reference: f64, thresholds: &Thresholds| {
        let mut slot = slot(metrics(&apart(target), &golden, dtypes), dtypes);
        let natural = metrics(&apart(reference), &golden, dtypes);
        slot.change_rare(|rare| rare.yardstick = Some(natural.into()));
        judged(slot, "Add", thresholds).level
    };
    let widened = Thresholds::default();
    // The reference is as far away: that is the nature of the network.
    assert_eq!(with(0.05, 0.04, &widened), VerdictLevel::Pass);
    assert_eq!(with(0.05, 0.01, &widened), VerdictLevel::Fail);
    // A reference that is better narrows nothing,
    assert_eq!(with(1e-5, 1e-7, &widened), VerdictLevel::Pass);
    // unless that is asked for.
    let replaced = Thresholds {
        yardstick: YardstickUse::Replace,
        ..Thresholds::default()
    };
    assert_eq!(with(1e-5, 1e-6, &replaced), VerdictLevel::Fail);
    assert_eq!(with(1e-5, 0.8e-5, &replaced), VerdictLevel::Pass);
}
