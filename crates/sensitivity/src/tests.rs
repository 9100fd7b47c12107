//! Studies of models built from closures, with distances that can be worked out by hand.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use opscope_engine::fake::FakeModel;
use opscope_engine::{EngineError, ModelSignature, ResultRounding, ValueInfo};
use opscope_tensor::{DType, RoundingFormat, Shape, Tensor};

use crate::choice::choose;
use crate::ranking::rank;
use crate::{OperatorState, SensitivityStudy};

fn tensor(elements: &[f32]) -> Tensor {
    let bytes = elements.iter().flat_map(|x| x.to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new([elements.len()]).unwrap(), bytes).unwrap()
}

fn elements(tensor: &Tensor) -> Vec<f32> {
    let bytes = tensor.host_bytes().unwrap().as_chunks().0.iter();
    bytes.map(|b| f32::from_le_bytes(*b)).collect()
}

fn value(name: &str) -> ValueInfo {
    ValueInfo {
        name: name.to_owned(),
        dtype: DType::F32,
        dims: None,
    }
}

/// A model with the input `x`.
fn model(outputs: &[&str]) -> FakeModel {
    FakeModel::new(ModelSignature {
        inputs: vec![value("x")],
        outputs: outputs.iter().map(|name| value(name)).collect(),
        ..ModelSignature::default()
    })
}

/// Three operators that scale the input, the third by far the most, and an operator that adds the
/// results. All factors are powers of two, so that an operator rounds as its input would be.
fn scales_and_sum() -> FakeModel {
    let scale = |factor: f32| {
        move |read: &[Tensor]| {
            let scaled: Vec<f32> = elements(&read[0]).iter().map(|x| x * factor).collect();
            Ok(vec![tensor(&scaled)])
        }
    };
    model(&["y"])
        .with("Mul", "small", &["x"], &["a"], scale(1.0 / 64.0))
        .with("Mul", "middle", &["x"], &["b"], scale(1.0))
        .with("Mul", "large", &["x"], &["c"], scale(64.0))
        .with("Sum", "sum", &["a", "b", "c"], &["y"], |read| {
            let sums = elements(&read[0])
                .into_iter()
                .zip(elements(&read[1]))
                .zip(elements(&read[2]))
                .map(|((a, b), c)| a + b + c);
            Ok(vec![tensor(&sums.collect::<Vec<_>>())])
        })
}

fn ready() -> Result<(), EngineError> {
    Ok(())
}

#[test]
fn distances_are_those_worked_out_by_hand() {
    let mut model =
        model(&["y"]).with("Identity", "only", &["x"], &["y"], |read| Ok(read.to_vec()));
    // bfloat16 rounds 1.01 to 1.0078125 and represents the other values exactly.
    let samples = vec![vec![tensor(&[1.01, 0.0])], vec![tensor(&[2.0, -3.0])]];
    let mut study = SensitivityStudy::begin(&mut model, samples, &ready).unwrap();
    assert!(study.repeated().is_zero());
    let ranking = rank(&mut study, RoundingFormat::Bfloat16, || {}).unwrap();
    let distance = &ranking[0].distance;
    let x = f64::from(1.01_f32);
    let off = x - 1.007_812_5;
    let expected = off / (x * x + 4.0 + 9.0).sqrt();
    assert!((distance.rel_l2() - expected).abs() < 1e-12);
    assert!((distance.max_abs() - off).abs() < 1e-12);
    let product = x * 1.007_812_5 + 13.0;
    let norms = ((x * x + 13.0) * (1.007_812_5_f64.powi(2) + 13.0)).sqrt();
    assert!((distance.cosine().unwrap() - product / norms).abs() < 1e-12);
    assert_eq!(
        (
            distance.outputs[0].n_elements,
            distance.outputs[0].n_changed
        ),
        (4, 1)
    );
}

#[test]
fn operators_are_ranked_and_the_worst_are_kept() {
    let x = [1.01, -2.3, 0.7, 1.9];
    let check = |limit: f64, expected: &[&str], is_within: bool| {
        let mut model = scales_and_sum();
        let mut study =
            SensitivityStudy::begin(&mut model, vec![vec![tensor(&x)]], &ready).unwrap();
        let n_ranked = Cell::new(0);
        let count = || n_ranked.set(n_ranked.get() + 1);
        let ranking = rank(&mut study, RoundingFormat::Bfloat16, count).unwrap();
        assert_eq!(n_ranked.get(), 4);
        let names: Vec<&str> = ranking
            .iter()
            .map(|r| r.operator.op_name.as_str())
            .collect();
        assert_eq!(names[2..], ["middle", "small"]);
        let choice = choose(&mut study, RoundingFormat::Bfloat16, &ranking, limit).unwrap();
        let mut kept: Vec<&str> = choice.kept.iter().map(|&i| names[i]).collect();
        kept.sort_unstable();
        assert_eq!(
            (&kept[..], choice.is_within),
            (expected, is_within),
            "{limit}"
        );
        // The distance is that of a run with this choice.
        let others = ranking.iter().enumerate();
        let others = others.filter(|(i, _)| !choice.kept.contains(i));
        let tasks = others.map(|(_, ranked)| ranked.operator.task_id);
        let rounding = ResultRounding::new(RoundingFormat::Bfloat16, tasks);
        assert_eq!(study.distance(&rounding).unwrap(), choice.distance);
        assert!(choice.distance.rel_l2() <= limit);
    };
    check(0.1, &[], true);
    check(1e-4, &["large", "sum"], true);
    check(0.0, &["large", "middle", "small", "sum"], true);
}

#[test]
fn a_model_that_changes_by_itself_is_told_and_meets_no_limit() {
    let n_runs = AtomicU32::new(0);
    let mut model = model(&["y"]).with("Random", "draw", &["x"], &["y"], move |_| {
        Ok(vec![tensor(&[
            n_runs.fetch_add(1, Ordering::Relaxed) as f32
        ])])
    });
    let mut study =
        SensitivityStudy::begin(&mut model, vec![vec![tensor(&[1.0])]], &ready).unwrap();
    // The first run is the survey; the second returned 1, the third 2.
    assert_eq!(study.repeated().rel_l2(), 1.0);
    let ranking = rank(&mut study, RoundingFormat::Float16, || {}).unwrap();
    let choice = choose(&mut study, RoundingFormat::Float16, &ranking, 0.01).unwrap();
    assert_eq!((choice.is_within, &choice.kept[..]), (false, &[0][..]));
}

#[test]
fn overflow_and_failure_come_first() {
    let mut model = model(&["y"])
        .with("Identity", "fine", &["x"], &["a"], |read| Ok(read.to_vec()))
        .with("Mul", "overflows", &["a"], &["b"], |read| {
            Ok(vec![tensor(&[elements(&read[0])[0] * 1e5])])
        })
        .with("Div", "count", &["b"], &["c"], |read| {
            Ok(vec![tensor(&[elements(&read[0])[0] / 1e5 + 2048.0])])
        })
        .with("Sub", "exact", &["c"], &["y"], |read| {
            match elements(&read[0])[0] {
                2050.0 => Err("no such place".to_owned()),
                x => Ok(vec![tensor(&[x - 2048.0])]),
            }
        });
    let samples = vec![vec![tensor(&[1.5])]];
    let mut study = SensitivityStudy::begin(&mut model, samples, &ready).unwrap();
    let ranking = rank(&mut study, RoundingFormat::Float16, || {}).unwrap();
    let found: Vec<(&str, f64, bool)> = ranking
        .iter()
        .map(|r| {
            let is_failure = r.distance.failure.is_some();
            (r.operator.op_name.as_str(), r.distance.rel_l2(), is_failure)
        })
        .collect();
    let infinite = f64::INFINITY;
    let expected = [
        ("overflows", infinite, false),
        ("count", infinite, true),
        ("fine", 0.0, false),
        ("exact", 0.0, false),
    ];
    assert_eq!(found, expected);
    assert_eq!(ranking[0].distance.outputs[0].n_non_finite, 1);
    assert_eq!(ranking[0].distance.max_abs(), infinite);
    assert_eq!(ranking[0].distance.cosine(), None);
    assert!(
        ranking[1]
            .distance
            .failure
            .as_ref()
            .unwrap()
            .contains("no such place")
    );
}

#[test]
fn integers_count_by_the_share_that_changed() {
    let mut model = model(&["y"])
        .with("Identity", "half", &["x"], &["a"], |read| Ok(read.to_vec()))
        .with("Cast", "whole", &["a"], &["y"], |read| {
            let whole = elements(&read[0]).into_iter().map(|x| x as i32);
            let bytes: Vec<u8> = whole.flat_map(i32::to_le_bytes).collect();
            Ok(vec![
                Tensor::from_vec(DType::I32, read[0].shape().clone(), bytes).unwrap(),
            ])
        });
    let samples = vec![vec![tensor(&[2049.0, 1.0, 2.0])], vec![tensor(&[7.0])]];
    let mut study = SensitivityStudy::begin(&mut model, samples, &ready).unwrap();
    let states: Vec<OperatorState> = study
        .operators()
        .iter()
        .map(|operator| operator.state)
        .collect();
    assert_eq!(
        states,
        [OperatorState::Rounded, OperatorState::WithoutFloats]
    );
    let ranking = rank(&mut study, RoundingFormat::Float16, || {}).unwrap();
    let distance = &ranking[0].distance;
    assert_eq!((ranking.len(), distance.rel_l2()), (1, 0.25));
    assert_eq!((distance.max_abs(), distance.cosine()), (0.0, None));
}

#[test]
fn a_study_ends_when_it_is_asked_to() {
    let n_asked = Cell::new(0);
    let stop = || {
        n_asked.set(n_asked.get() + 1);
        if n_asked.get() > 3 {
            return Err(EngineError::Stopped);
        }
        Ok(())
    };
    let mut model = scales_and_sum();
    let mut study = SensitivityStudy::begin(&mut model, vec![vec![tensor(&[1.0])]], &stop).unwrap();
    let stopped = rank(&mut study, RoundingFormat::Int8, || {});
    assert!(matches!(stopped, Err(EngineError::Stopped)));
}

/// Without samples or operators there is nothing to measure, and nothing fails.
#[test]
fn nothing_to_round() {
    let mut model = model(&["x"]);
    let mut study =
        SensitivityStudy::begin(&mut model, vec![vec![tensor(&[1.0])]], &ready).unwrap();
    let ranking = rank(&mut study, RoundingFormat::Int8, || {}).unwrap();
    assert!(ranking.is_empty());
    let choice = choose(&mut study, RoundingFormat::Int8, &ranking, 0.0).unwrap();
    assert_eq!((choice.kept.len(), choice.is_within), (0, true));
}

/// An operator with an infinity in float16 stays unrounded although a clamp hides it from the
/// outputs.
#[test]
fn an_operator_that_overflows_is_kept() {
    let mut model = model(&["y"])
        .with("Mul", "large", &["x"], &["a"], |read| {
            let scaled: Vec<f32> = elements(&read[0]).iter().map(|x| x * 1024.0).collect();
            Ok(vec![tensor(&scaled)])
        })
        .with("Clip", "clip", &["a"], &["y"], |read| {
            let clipped: Vec<f32> = elements(&read[0]).iter().map(|x| x.min(2.0)).collect();
            Ok(vec![tensor(&clipped)])
        });
    let samples = vec![vec![tensor(&[64.0, f32::INFINITY, f32::MAX])]];
    let mut study = SensitivityStudy::begin(&mut model, samples, &ready).unwrap();
    for (format, expected) in [
        (RoundingFormat::Float16, vec!["large"]),
        (RoundingFormat::Bfloat16, vec![]),
        (RoundingFormat::Float8E4M3, vec![]),
        (RoundingFormat::Int8, vec![]),
    ] {
        let ranking = rank(&mut study, format, || {}).unwrap();
        let choice = choose(&mut study, format, &ranking, 0.5).unwrap();
        let kept = choice.kept.iter().map(|at| &ranking[*at]);
        let names: Vec<&str> = kept
            .map(|ranked| ranked.operator.op_name.as_str())
            .collect();
        assert_eq!(names, expected, "{format}");
        assert!(choice.is_within, "{format}");
    }
}
