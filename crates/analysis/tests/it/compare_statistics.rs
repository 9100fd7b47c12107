//! Dumps of which one side, or both, has statistics or digests only.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_analysis::compare::result::{
    Cause, Comparison, NonFiniteRole, SkipReason, SkipSide, VerdictLevel,
};
use opscope_analysis::compare::side::ComparedDump;
use opscope_store::file_format::dump_data::prelude;
use opscope_store::file_format::statistic_csv::{
    self, StatisticCategory, StatisticCell, StatisticSubject,
};
use opscope_store::file_format::stats_csv::{self, StatsColumn, StatsColumns};
use opscope_store::record::{self, ModelId, Operator, Record};
use opscope_tensor::digest::hex;
use opscope_tensor::sequential::{sequential_md5, sequential_sha1, sequential_stats};
use opscope_tensor::{DType, Layout, Shape, Tensor};

use crate::compare_attribution::compare_dumps;

/// An operator with one input and one output.
type Op = (&'static str, Vec<f32>, Vec<f32>);

/// How a side is dumped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Tensors,
    /// AscendCL's table.
    Table,
    /// MindSpore's table of numbers.
    MindSpore,
    /// MindSpore's table of these columns.
    Digests(&'static [StatisticCategory]),
}

fn tensor(values: &[f32]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let shape = Shape::new([values.len()]).unwrap();
    Tensor::new(DType::F32, shape, Arc::new(bytes)).unwrap()
}

fn write(root: &Path, ops: &[Op], form: Form) -> PathBuf {
    let dir = root.join(format!("{form:?}").split('(').next().unwrap());
    match form {
        Form::Tensors | Form::Table => write_files(&dir, ops, form),
        Form::MindSpore => {
            use StatisticCategory::{Average, Count, L2Norm, Max, Min, NanCount, PositiveInfCount};
            let columns = [Max, Min, Average, Count, NanCount, PositiveInfCount, L2Norm];
            write_rows(&dir, ops, &columns);
        }
        Form::Digests(columns) => write_rows(&dir, ops, columns),
    }
    dir
}

fn write_files(dir: &Path, ops: &[Op], form: Form) {
    fs::create_dir_all(dir).unwrap();
    for (i, (name, input, output)) in ops.iter().enumerate() {
        let record = Record {
            model: Arc::new(ModelId::default()),
            operator: Arc::new(Operator {
                op_type: "Tanh".to_owned(),
                op_name: (*name).to_owned(),
                ..Operator::default()
            }),
            step: 0,
            timestamp_us: 1_700_000_000_000_000 + i as u64,
            inputs: vec![(0, tensor(input))],
            outputs: vec![(0, tensor(output))],
        };
        let path = dir.join(format!("Tanh.{name}.{i}.1.{}", record.timestamp_us));
        if form == Form::Table {
            let text = stats_csv::encode(&record, &StatsColumns::Plain);
            fs::write(format!("{}.csv", path.display()), text).unwrap();
            continue;
        }
        let mut bytes = prelude(&record);
        let slots = record.slots();
        slots.for_each(|(_, _, tensor)| bytes.extend_from_slice(tensor.host_view().unwrap().bytes));
        fs::write(path, bytes).unwrap();
    }
}

fn write_rows(dir: &Path, ops: &[Op], columns: &[StatisticCategory]) {
    let dir = dir.join("rank_0/net/0/0");
    fs::create_dir_all(&dir).unwrap();
    let mut text = statistic_csv::header(columns);
    for (i, (name, input, output)) in ops.iter().enumerate() {
        for (side, values) in [
            (record::SlotSide::Input, input),
            (record::SlotSide::Output, output),
        ] {
            let tensor = tensor(values);
            let subject = StatisticSubject {
                op_type: "Tanh".to_owned(),
                op_name: (*name).to_owned(),
                timestamp: 1_700_000_000_000_000 + i as u64,
                side,
                ..StatisticSubject::of_tensor(DType::F32, tensor.shape(), tensor.n_bytes() as u64)
            };
            let stats = sequential_stats(tensor.host_view().unwrap()).unwrap();
            let cell = |category: &StatisticCategory| match category {
                StatisticCategory::Max => StatisticCell::Real(stats.max),
                StatisticCategory::Min => StatisticCell::Real(stats.min),
                StatisticCategory::Average => StatisticCell::Real(stats.mean),
                StatisticCategory::Count => StatisticCell::Count(stats.n_elements),
                StatisticCategory::NanCount => StatisticCell::Count(stats.n_nan),
                StatisticCategory::PositiveInfCount => StatisticCell::Count(stats.n_pos_inf),
                StatisticCategory::L2Norm => StatisticCell::Real(stats.l2),
                StatisticCategory::Md5 => {
                    StatisticCell::Text(hex(&sequential_md5(tensor.host_view().unwrap())))
                }
                StatisticCategory::Sha1 => {
                    StatisticCell::Text(hex(&sequential_sha1(tensor.host_view().unwrap())))
                }
                _ => StatisticCell::Null,
            };
            let cells: Vec<StatisticCell> = columns.iter().map(cell).collect();
            text += &statistic_csv::row(&subject, &cells);
        }
    }
    fs::write(dir.join("statistic.csv"), text).unwrap();
}

fn compare(target: &Path, golden: &Path) -> Comparison {
    let open = |path| ComparedDump::open(path, 1).unwrap();
    let (mut target, mut golden) = (open(target), open(golden));
    // The trees have their own places; what is compared here is their tables.
    for side in [&mut target, &mut golden] {
        side.runs
            .iter_mut()
            .for_each(|run| run.place = Default::default());
    }
    compare_dumps(&target, &golden)
}

fn chain() -> Vec<Op> {
    let values = |seed: u32| -> Vec<f32> {
        let each = (0..500u32).map(move |i| (i.wrapping_mul(seed) % 1013) as f32 / 97.0 - 3.3);
        each.collect()
    };
    let [a, b, c, d] = [7919, 104_729, 1_299_709, 15_485_863].map(values);
    vec![
        ("one", a, b.clone()),
        ("two", b, c.clone()),
        ("three", c, d),
    ]
}

const FORMS: [Form; 3] = [Form::Tensors, Form::Table, Form::MindSpore];

#[test]
fn equal_tensors_agree_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let ops = chain();
    for target in FORMS {
        for golden in FORMS {
            let found = compare(
                &write(&dir.path().join("t"), &ops, target),
                &write(&dir.path().join("g"), &ops, golden),
            );
            assert_eq!(
                found.summary.level,
                VerdictLevel::Pass,
                "{target:?} {golden:?}"
            );
            assert_eq!(found.summary.slots, [6, 0, 0, 0], "{target:?} {golden:?}");
            let is_tensor = [target, golden] == [Form::Tensors; 2];
            let expected = if is_tensor { "tensor" } else { "statistics" };
            let slot = &found.operators[0].slots[0];
            assert_eq!(slot.evidence.name(), expected);
            for name in ["max", "min", "mean"] {
                let found = slot.metrics.named(&format!("statistic_{name}_rel"));
                assert_eq!(
                    found,
                    (!is_tensor).then_some(0.0),
                    "{target:?} {golden:?} {name}"
                );
            }
        }
    }
}

#[test]
fn faults_show_in_statistics_and_have_a_culprit() {
    let dir = tempfile::tempdir().unwrap();
    let golden = chain();
    let mut wrong = chain();
    // The second operator's output, which is the third one's input.
    wrong[1].2[3] = 40.0;
    wrong[2].1[3] = 40.0;
    wrong[2].2.iter_mut().for_each(|x| *x *= 1.5);
    let mut bad = chain();
    bad[1].2[3] = f32::NAN;
    bad[2].1[3] = f32::NAN;
    bad[2].2[7] = f32::NAN;
    for form in [Form::Table, Form::MindSpore] {
        for other in FORMS {
            let golden = write(&dir.path().join("g"), &golden, other);
            let found = compare(&write(&dir.path().join("t"), &wrong, form), &golden);
            let first = found.summary.first_failure.as_ref().unwrap();
            assert_eq!(
                (first.operator, first.slot.to_string().as_str()),
                (1, "output.0"),
                "{form:?} {other:?}"
            );
            assert_eq!(first.cause, Cause::Own, "{form:?} {other:?}");
            assert_eq!(found.operators[2].cause, Some(Cause::Inherited));
            let found = compare(&write(&dir.path().join("t"), &bad, form), &golden);
            assert_eq!(found.operators[1].non_finite, Some(NonFiniteRole::Producer));
            let from = NonFiniteRole::Propagator { from: Some(1) };
            assert_eq!(
                found.operators[2].non_finite,
                Some(from),
                "{form:?} {other:?}"
            );
            assert_eq!(found.summary.non_finite_chain, [1, 2]);
            assert_eq!(found.operators[1].level, VerdictLevel::Fail);
        }
    }
}

#[test]
fn digests_say_whether_and_not_how_far() {
    let dir = tempfile::tempdir().unwrap();
    let golden = chain();
    let mut wrong = chain();
    wrong[1].2[3] += 1e-6;
    wrong[2].1[3] += 1e-6;
    wrong[2].2[3] += 1e-6;
    let md5 = Form::Digests(&[StatisticCategory::Md5]);
    let both = Form::Digests(&[StatisticCategory::Sha1, StatisticCategory::Md5]);
    let sha1 = Form::Digests(&[StatisticCategory::Sha1]);
    for (target, other) in [
        (md5, md5),
        (md5, both),
        (sha1, Form::Tensors),
        (Form::Tensors, md5),
    ] {
        let golden = write(&dir.path().join("g"), &golden, other);
        let same = compare(&write(&dir.path().join("t"), &chain(), target), &golden);
        assert_eq!(same.summary.slots, [6, 0, 0, 0], "{target:?} {other:?}");
        assert_eq!(same.operators[0].slots[0].evidence.name(), "digest");
        let found = compare(&write(&dir.path().join("t"), &wrong, target), &golden);
        let levels = found.operators.iter().map(|operator| operator.level);
        assert_eq!(
            levels.collect::<Vec<_>>(),
            [VerdictLevel::Pass, VerdictLevel::Warn, VerdictLevel::Warn]
        );
        let first = found.summary.first_divergence.as_ref().unwrap();
        assert_eq!((first.operator, first.cause), (1, Cause::Own));
        assert_eq!(found.operators[2].cause, Some(Cause::Inherited));
    }
    let found = compare(
        &write(&dir.path().join("t"), &golden, md5),
        &write(&dir.path().join("g"), &golden, sha1),
    );
    assert_eq!(found.summary.slots, [0, 0, 0, 6]);
    assert!(
        found
            .skips
            .iter()
            .all(|skip| skip.reason == SkipReason::NoEvidence)
    );
}

#[test]
fn other_extents_are_no_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let golden = chain();
    let mut target = chain();
    target[0].2.truncate(499);
    let found = compare(
        &write(&dir.path().join("t"), &target, Form::Table),
        &write(&dir.path().join("g"), &golden, Form::Table),
    );
    let slot = &found.operators[0].slots[1];
    assert_eq!(
        (slot.evidence.name(), slot.level),
        ("shape", VerdictLevel::Fail)
    );
}

/// An image in a layout, as a table of statistics.
fn write_image(dir: &Path, layout: Layout, dims: [usize; 4], values: &[f32]) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let image = Tensor::new(DType::F32, Shape::new(dims).unwrap(), Arc::new(bytes)).unwrap();
    let record = Record {
        model: Arc::new(ModelId::default()),
        operator: Arc::new(Operator {
            op_type: "Conv".to_owned(),
            op_name: "conv".to_owned(),
            ..Operator::default()
        }),
        step: 0,
        timestamp_us: 1_700_000_000_000_000,
        inputs: Vec::new(),
        outputs: vec![(0, image.with_layout(layout))],
    };
    let text = stats_csv::encode(
        &record,
        &StatsColumns::Chosen(vec![
            StatsColumn::Max,
            StatsColumn::Average,
            StatsColumn::L2Norm,
        ]),
    );
    fs::write(dir.join("Conv.conv.0.1.1700000000000000.csv"), text).unwrap();
    dir.to_owned()
}

#[test]
fn statistics_of_other_layouts_are_compared() {
    let values: Vec<f32> = (0..60).map(|i| i as f32 - 7.5).collect();
    let wrong: Vec<f32> = values.iter().map(|x| x * 2.0).collect();
    let golden = values.clone();
    for (dims, values, expected) in [
        ([1, 3, 5, 4], &values, ("statistics", VerdictLevel::Pass)),
        ([1, 3, 5, 4], &wrong, ("statistics", VerdictLevel::Fail)),
        // As many elements, and another image.
        ([1, 5, 3, 4], &values, ("shape", VerdictLevel::Fail)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let found = compare(
            &write_image(&dir.path().join("t"), Layout::Nchw, dims, values),
            &write_image(&dir.path().join("g"), Layout::Nhwc, [1, 5, 4, 3], &golden),
        );
        let slot = &found.operators[0].slots[0];
        assert_eq!((slot.evidence.name(), slot.level), expected, "{dims:?}");
    }
}

#[test]
fn a_damaged_row_is_no_fault_of_the_other_rows() {
    let dir = tempfile::tempdir().unwrap();
    let golden = write(&dir.path().join("g"), &chain(), Form::MindSpore);
    let target = write(&dir.path().join("t"), &chain(), Form::MindSpore);
    let table = target.join("rank_0/net/0/0/statistic.csv");
    let text = fs::read_to_string(&table).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let (last, all) = (lines[6], lines.len());
    assert_eq!(all, 7, "{text}");
    lines[6] = &last[..last.len() / 2];
    fs::write(&table, lines.join("\n")).unwrap();
    let found = compare(&target, &golden);
    assert_eq!(found.summary.slots, [5, 0, 0, 0]);
    let reasons: Vec<_> = found
        .skips
        .iter()
        .map(|skip| (skip.side, skip.reason))
        .collect();
    assert!(reasons.contains(&(SkipSide::Target, SkipReason::Damaged)));
    assert!(reasons.contains(&(SkipSide::Golden, SkipReason::MissingSlot)));
    assert_eq!(reasons.len(), 2, "{reasons:?}");
}
