//! Statistics of every operator, tensors of some; and how much a dump would take.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{Plan, SessionSummary, Sink, Tap, TensorRules, WholeTensors};
use opscope_config::dialect::acl::AclContent;
use opscope_dump::{AclSink, FileAmount, Volume, VolumeSink};
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::stats_csv::StatsColumns;
use opscope_store::record::Operator;

use super::double::{TIME, execute, files, floats, lazy_sink, operator, with_session};

const AT: &str = "20240102030405/0/net/1/0";

fn operators() -> [Arc<Operator>; 3] {
    [
        operator(0, "Conv", "conv", &["x", "w"], &["h"]),
        operator(1, "Relu", "relu", &["h"], &["r"]),
        operator(2, "Add", "add", &["r", "w"], &["y"]),
    ]
}

fn rules(texts: &[&str]) -> TensorRules {
    TensorRules::new(texts.iter().map(|text| text.parse().unwrap()).collect())
}

/// Two steps; what `add` makes has NaN in the second.
fn run(sink: Arc<dyn Sink>) -> SessionSummary {
    let operators = operators();
    with_session(Plan::everything(), sink, &operators, &["x"], |tap| {
        for step in 0..2 {
            tap.begin_step(step);
            run_step(tap, &operators, [1.0, f32::NAN][step as usize]);
            tap.end_step();
        }
    })
}

fn run_step(tap: &Tap, operators: &[Arc<Operator>], sum: f32) {
    let (x, w) = (floats(&[1.0, 2.0]), floats(&[-300.0]));
    let (h, r) = (floats(&[-300.0, -600.0]), floats(&[0.0, 0.0]));
    execute(
        tap,
        &operators[0],
        &[x, w.clone()],
        std::slice::from_ref(&h),
    );
    execute(tap, &operators[1], &[h], std::slice::from_ref(&r));
    execute(tap, &operators[2], &[r, w], &[floats(&[sum, -300.0])]);
}

/// Which files of tensors are there next to the tables of all operators, and how many tensors that
/// is.
fn check(texts: &[&str], expected: &[&str], n_whole: u64) {
    let dir = tempfile::tempdir().unwrap();
    let sink = lazy_sink(dir.path())
        .with_content(AclContent::Both(StatsColumns::Plain))
        .with_tensors_where(rules(texts));
    let counters = run(Arc::new(sink)).counters;
    let files = files(dir.path());
    let (tables, tensors): (Vec<_>, Vec<_>) = files.keys().partition(|name| name.ends_with(".csv"));
    let start = format!("{}/", AT.strip_suffix("/0").unwrap());
    let tensors: Vec<&str> = tensors
        .iter()
        .map(|name| name.strip_prefix(&start).unwrap())
        .map(|name| name.strip_suffix(".STAMP").unwrap())
        .collect();
    assert_eq!(tensors, expected, "{texts:?}");
    assert_eq!(tables.len(), 6);
    assert_eq!((counters.n_written, counters.n_whole), (16, n_whole));
    assert_eq!(counters.n_files, files.len() as u64);
    let n_bytes: usize = files.values().map(Vec::len).sum();
    assert_eq!(counters.n_bytes_written, n_bytes as u64);
}

#[test]
fn tables_of_all_and_tensors_of_some() {
    let all = [
        "0/Add.add.2.0",
        "0/Conv.conv.0.0",
        "0/Relu.relu.1.0",
        "1/Add.add.2.0",
        "1/Conv.conv.0.0",
        "1/Relu.relu.1.0",
    ];
    check(&[], &all, 16);
    check(&["name:conv"], &["0/Conv.conv.0.0", "1/Conv.conv.0.0"], 6);
    check(&["non-finite"], &["1/Add.add.2.0"], 3);
    check(&["above:1e9"], &["1/Add.add.2.0"], 3);
    // The operator's file has all of its tensors, whichever is chosen.
    let of_relu = ["0/Relu.relu.1.0", "1/Relu.relu.1.0"];
    check(&["slot:relu/input.0"], &of_relu, 4);
    check(&["slot:relu/input.1"], &[], 0);
    let some = ["0/Relu.relu.1.0", "1/Add.add.2.0", "1/Relu.relu.1.0"];
    check(&["non-finite", "type:relu"], &some, 7);
}

#[test]
fn a_table_and_its_tensors_share_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let sink = lazy_sink(dir.path()).with_content(AclContent::Both(StatsColumns::Plain));
    run(Arc::new(sink));
    let names: Vec<String> = std::fs::read_dir(dir.path().join(AT))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let tables: Vec<_> = names
        .iter()
        .filter_map(|n| n.strip_suffix(".csv"))
        .collect();
    assert_eq!(tables.len(), 3);
    for table in tables {
        assert!(names.iter().any(|name| name == table), "{table}");
    }
}

/// Runs with a creator that pretends, then with one that writes; returns what was counted.
fn pretend(dump_path: &Path, content: &AclContent, texts: &[&str]) -> Volume {
    let make = |creator: &Arc<Creator>| {
        let times = std::iter::once(TIME.to_owned());
        let sink = AclSink::create_by(creator.clone(), dump_path, times).unwrap();
        let sink = sink.with_content(content.clone());
        Arc::new(VolumeSink::new(Arc::new(
            sink.with_tensors_where(rules(texts)),
        )))
    };
    let creator = Arc::new(Creator::pretending(PermissionModes::default()));
    let sink = make(&creator);
    let pretended = run(sink.clone());
    assert!(!dump_path.exists());
    let sink_that_writes = make(&Arc::new(Creator::default()));
    let summary = run(sink_that_writes.clone());
    assert_eq!(pretended.counters, summary.counters);

    let total = creator.pretended(1).unwrap();
    let files = files(dump_path);
    let n_bytes: usize = files.values().map(Vec::len).sum();
    assert_eq!(total.n_files, files.len() as u64);
    assert_eq!(total.n_bytes, n_bytes as u64);
    assert_eq!(total.n_dirs, 7, "two steps, four above them and the place");
    let volume = sink.take();
    assert_eq!(volume, sink_that_writes.take());
    assert_eq!(sink.take(), Volume::default());
    volume
}

#[test]
fn what_is_pretended_is_what_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let tables = AclContent::Statistics(StatsColumns::Plain);
    let volume = pretend(&dir.path().join("tables"), &tables, &[]);
    assert_eq!((volume.n_operators, volume.n_operators_selected), (3, 3));
    assert!(
        volume
            .operators
            .iter()
            .all(|o| o.amount.whole == WholeTensors::default())
    );

    let both = AclContent::Both(StatsColumns::Plain);
    let volume = pretend(
        &dir.path().join("both"),
        &both,
        &["non-finite", "name:conv"],
    );
    let names: Vec<&str> = volume
        .operators
        .iter()
        .map(|o| &*o.operator.op_name)
        .collect();
    assert_eq!(names, ["add", "conv", "relu"]);
    let add = volume.operators[0].amount;
    assert_eq!((add.n_records, add.n_files), (2, 3));
    let whole = WholeTensors {
        n_inputs: 2,
        n_input_bytes: 12,
        n_outputs: 1,
        n_output_bytes: 8,
    };
    assert_eq!(add.whole, whole);
    let mut sum = FileAmount::default();
    volume.operators.iter().for_each(|o| sum += o.amount);
    let mut of_steps = FileAmount::default();
    volume.steps.values().for_each(|amount| of_steps += *amount);
    assert_eq!(sum, of_steps);
    assert_eq!(volume.steps[&1].n_files, volume.steps[&0].n_files + 1);

    let volume = pretend(&dir.path().join("tensors"), &AclContent::Tensors, &[]);
    assert_eq!(volume.steps[&0].whole.n_inputs, 5);
}

/// Long names go by digits, and a list says whose they are: that is counted too.
#[test]
fn lists_of_long_names_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let operators = [operator(0, "Add", &"n".repeat(300), &[], &["s"])];
    let run = |creator: &Arc<Creator>| {
        let sink = AclSink::lazy_by(creator.clone(), dir.path(), TIME);
        with_session(Plan::everything(), Arc::new(sink), &operators, &[], |tap| {
            execute(tap, &operators[0], &[], &[floats(&[3.0])]);
            execute(tap, &operators[0], &[], &[floats(&[3.0])]);
        });
    };
    let creator = Arc::new(Creator::pretending(PermissionModes::default()));
    run(&creator);
    run(&Arc::new(Creator::default()));
    let files = files(dir.path());
    let n_bytes: usize = files.values().map(Vec::len).sum();
    let total = creator.pretended(1).unwrap();
    assert_eq!((total.n_files, files.len()), (3, 3));
    // The digits are a hash of path and time, and have no fixed number.
    assert!(total.n_bytes.abs_diff(n_bytes as u64) < 10);
}
