//! Watched values, and who overwrites them.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{ModelSelection, OperatorSelection, Plan, Purpose, SlotSides};
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::dump_data::DumpFile;
use opscope_store::record::{Operator, Record};
use opscope_tensor::{DType, Layout, Shape, Tensor};

use super::double::{execute, files, floats, lazy_sink, operator, with_session};

/// Elements of a live buffer, which are too many to be read instead of mapped.
const N: usize = 1 << 15;

/// A tensor in memory that changes when its file does, as a buffer does that an operator
/// overwrites.
fn live(path: &Path) -> (Tensor, File) {
    std::fs::write(path, vec![0; 4 * N]).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mapped = Arc::new(FileBytes::map_part(&file, 0..4 * N).unwrap());
    let tensor = Tensor::new(DType::F32, Shape::new([N]).unwrap(), mapped).unwrap();
    (tensor.with_layout(Layout::Nchw), file)
}

fn set(file: &File, element: usize, value: f32) {
    file.write_all_at(&value.to_le_bytes(), 4 * element as u64)
        .unwrap();
}

fn plan(layer: Option<&[&str]>, watched: &[&str]) -> Plan {
    let rule = layer.map_or_else(OperatorSelection::every, |names| {
        OperatorSelection::named(names.iter().copied())
    });
    Plan {
        purpose: Purpose::Watch,
        models: ModelSelection::Every(OperatorSelection {
            watched: watched.iter().map(|name| (*name).to_owned()).collect(),
            ..rule
        }),
        // Watching is about outputs whatever this says.
        sides: SlotSides::Inputs,
        ..Plan::everything()
    }
}

fn operators() -> [Arc<Operator>; 5] {
    [
        operator(0, "Conv", "before", &["x"], &["a"]),
        operator(1, "Relu", "w/1", &["a"], &["b"]),
        operator(2, "Add", "l/2", &["b"], &["c"]),
        operator(3, "HcomAllReduce", "h", &["c"], &["d"]),
        operator(4, "Mul", "l/4", &["d"], &["e"]),
    ]
}

fn element(record: &Record, i: usize) -> f32 {
    let bytes = record.outputs[0].1.host_bytes().unwrap();
    f32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap())
}

#[test]
fn an_overwritten_buffer_is_seen_after_the_operator_that_did_it() {
    let dir = tempfile::tempdir().unwrap();
    let (tensor, file) = live(&dir.path().join("buffer"));
    let operators = operators();
    let sink = Arc::new(MemorySink::default());
    let other = floats(&[1.0]);
    let summary = with_session(plan(None, &["w/1"]), sink.clone(), &operators, &[], |tap| {
        tap.begin_step(3);
        execute(tap, &operators[0], &[], &[floats(&[9.0])]);
        set(&file, 7, 1.5);
        execute(tap, &operators[1], &[], std::slice::from_ref(&tensor));
        // The operator after it writes where it should not, the one after that does not.
        set(&file, 7, -2.0);
        set(&file, 8, 4.0);
        set(&file, 5000, 1.0);
        execute(tap, &operators[2], &[], std::slice::from_ref(&other));
        execute(tap, &operators[4], &[], &[other]);
        // What is written to the buffer later does not reach what was recorded.
        set(&file, 7, 77.0);
    });
    let records = sink.take();
    let names: Vec<_> = records
        .iter()
        .map(|r| {
            (
                r.operator.task_id,
                r.operator.op_type.as_str(),
                r.operator.op_name.as_str(),
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            (1, "Relu", "w/1"),
            (2, "Relu", "l/2_To_w/1"),
            (4, "Relu", "l/4_To_w/1")
        ]
    );
    let seventh: Vec<f32> = records.iter().map(|record| element(record, 7)).collect();
    assert_eq!(seventh, [1.5, -2.0, -2.0]);
    assert!(records.iter().all(|r| r.inputs.is_empty() && r.step == 3));
    assert_eq!(records[1].outputs[0].1.layout(), Layout::Nchw);
    let [overwrite] = &summary.overwrites[..] else {
        panic!("{:?}", summary.overwrites);
    };
    assert_eq!((overwrite.step, overwrite.output), (3, 0));
    assert_eq!(overwrite.seen_after.op_name, "l/2");
    assert_eq!(overwrite.watched.op_name, "w/1");
    assert_eq!(overwrite.ranges, [28..36, 20000..20004]);
    assert_eq!((overwrite.n_ranges, overwrite.n_bytes), (2, 12));
    assert_eq!(overwrite.first_element, 7);
    assert_eq!(
        (overwrite.before.as_str(), overwrite.after.as_str()),
        ("1.5", "-2")
    );
    assert_eq!(summary.n_overwrites, 1);
    let c = summary.counters;
    assert_eq!(
        (c.n_selected, c.n_written, c.n_operators_written),
        (3, 3, 1)
    );
}

#[test]
fn files_follow_the_names_of_both_operators() {
    let dir = tempfile::tempdir().unwrap();
    let operators = operators();
    let sink = Arc::new(lazy_sink(dir.path()));
    let plan = plan(Some(&["w/1", "l/2", "h", "l/4"]), &["w/1", "l/4"]);
    with_session(plan, sink, &operators, &[], |tap| {
        for operator in &operators {
            let i = operator.task_id as f32;
            execute(tap, operator, &[floats(&[0.0])], &[floats(&[i, i])]);
        }
    });
    let files = files(dir.path());
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    // A name in both lists, and a collective operator, have no file of the second kind.
    assert_eq!(
        names,
        [
            "20240102030405/0/net/1/0/Mul.l_4.4.0.STAMP",
            "20240102030405/0/net/1/0/Relu.l_2_To_w_1.2.0.STAMP",
            "20240102030405/0/net/1/0/Relu.w_1.1.0.STAMP",
        ]
    );
    let file = DumpFile::from_bytes(files[names[1]].clone()).unwrap();
    assert_eq!(file.header().op_name, "l/2_To_w/1");
    assert!(file.header().inputs.is_empty());
    assert_eq!(
        file.tensors().next().unwrap().bytes,
        floats(&[1.0, 1.0]).host_bytes().unwrap()
    );
}

#[test]
fn every_watched_operator_that_ran_is_looked_at_and_forgotten_with_its_step() {
    let dir = tempfile::tempdir().unwrap();
    let (tensor, file) = live(&dir.path().join("buffer"));
    let operators = operators();
    let sink = Arc::new(MemorySink::default());
    let plan = plan(Some(&["l/4"]), &["before", "w/1"]);
    let summary = with_session(plan, sink.clone(), &operators, &[], |tap| {
        execute(tap, &operators[0], &[], std::slice::from_ref(&tensor));
        execute(tap, &operators[4], &[], &[floats(&[0.0])]);
        // Done by an operator that is watched itself, and seen after it.
        set(&file, 0, 1.0);
        execute(tap, &operators[1], &[], &[floats(&[5.0])]);
        execute(tap, &operators[4], &[], &[floats(&[0.0])]);
        tap.begin_step(1);
        // The buffer is another value's now.
        set(&file, 0, 2.0);
        execute(tap, &operators[4], &[], &[floats(&[0.0])]);
        execute(tap, &operators[0], &[], std::slice::from_ref(&tensor));
        // An operator that runs twice in a step writes its own output again.
        set(&file, 0, 3.0);
        execute(tap, &operators[0], &[], std::slice::from_ref(&tensor));
    });
    let records = sink.take();
    let names: Vec<_> = records
        .iter()
        .map(|r| format!("{}:{}", r.step, r.operator.op_name))
        .collect();
    assert_eq!(
        names,
        [
            "0:before",
            "0:w/1",
            "0:l/4_To_before",
            "0:l/4_To_before",
            "0:l/4_To_w/1",
            "1:before",
            "1:before",
        ]
    );
    let seen: Vec<_> = summary.overwrites.iter().collect();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].seen_after.op_name, "w/1");
    assert_eq!(seen[0].watched.op_name, "before");
}

#[test]
fn a_record_beside_the_operators_is_written_and_counted() {
    let operators = operators();
    let sink = Arc::new(MemorySink::default());
    let looked = operator(9, "Relu", "l_To_w", &[], &["w"]);
    let summary = with_session(plan(None, &[]), sink.clone(), &operators, &[], |tap| {
        tap.begin_step(2);
        tap.write_beside(looked.clone(), vec![(0, floats(&[5.0]))]);
    });
    let [record] = &sink.take()[..] else {
        panic!("one record is expected");
    };
    assert_eq!((record.step, record.operator.task_id), (2, 9));
    assert_eq!(element(record, 0), 5.0);
    let counters = summary.counters;
    assert_eq!((counters.n_selected, counters.n_written), (1, 1));
}
