//! Only operators whose arithmetic overflowed, each with a record of how.

use std::sync::Arc;

use opscope_capture::overflow::{OperatorOverflow, OverflowDetector};
use opscope_capture::sink::MemorySink;
use opscope_capture::{
    CaptureSession, FirstOverflow, Plan, Purpose, SessionOptions, SessionSummary, Sink, SlotSides,
};
use opscope_store::file_format::dump_data::DumpFile;
use opscope_store::file_format::op_debug::{OverflowRecord, TaskInfo};
use opscope_store::record::Record;

use super::double::{execute, files, floats, lazy_sink, model, operator, with_session};

fn plan() -> Plan {
    Plan {
        purpose: Purpose::Overflow,
        // Overflow is told from both sides whatever this says.
        sides: SlotSides::Outputs,
        ..Plan::everything()
    }
}

/// Three operators in two steps; the second one overflows in the second step.
fn run(sink: Arc<dyn Sink>) -> SessionSummary {
    let operators = [
        operator(3, "Neg", "fine", &["x"], &["y"]),
        operator(4, "Add", "a/b", &["y", "y"], &["z"]),
        // It hands on what was infinite before.
        operator(5, "Mul", "later", &["z"], &["w"]),
    ];
    with_session(plan(), sink, &operators, &[], |tap| {
        for step in 0..2 {
            tap.begin_step(step);
            let x = [floats(&[f32::MAX])];
            let value = if step == 1 { f32::INFINITY } else { 0.0 };
            let z = [floats(&[value])];
            execute(tap, &operators[0], &x, &x);
            execute(tap, &operators[1], &[x[0].clone(), x[0].clone()], &z);
            execute(tap, &operators[2], &z, &z);
        }
    })
}

#[test]
fn two_files_for_each_operator_that_overflowed() {
    let dir = tempfile::tempdir().unwrap();
    let summary = run(Arc::new(lazy_sink(dir.path())));
    let files = files(dir.path());
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "20240102030405/0/net/1/1/Add.a_b.4.0.STAMP",
            "20240102030405/0/net/1/1/Opdebug.Node_OpDebug.4.0.STAMP",
        ]
    );
    let own = DumpFile::from_bytes(files[names[0]].clone()).unwrap();
    let (n_inputs, n_outputs) = (own.header().inputs.len(), own.header().outputs.len());
    assert_eq!((n_inputs, n_outputs), (2, 1));
    let debug = DumpFile::from_bytes(files[names[1]].clone()).unwrap();
    let bytes = debug.tensors().next().unwrap().bytes;
    let OverflowRecord::Blocks(record) = OverflowRecord::decode(bytes).unwrap() else {
        panic!("not the first layout");
    };
    let TaskInfo {
        model_id,
        task_id,
        stream_id,
        ..
    } = record.ai_core.task;
    assert_eq!((model_id, task_id, stream_id), (1, 4, 0));
    assert_ne!(record.ai_core.status, 0);
    let c = summary.counters;
    assert_eq!((c.n_operators_seen, c.n_operators_overflowed), (6, 1));
    assert_eq!(
        (c.n_selected, c.n_written, c.n_operators_written),
        (3, 3, 1)
    );
    assert_eq!((c.n_files, c.n_bytes_selected), (2, 12));
    let expected = FirstOverflow {
        step: 1,
        task_id: 4,
        op_type: "Add".into(),
        op_name: "a/b".into(),
        status: record.ai_core.status,
    };
    assert_eq!(summary.first_overflow, Some(expected));
}

#[test]
fn no_overflow_leaves_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let operators = [operator(0, "Add", "a", &["x"], &["y"])];
    let sink = Arc::new(lazy_sink(dir.path()));
    let summary = with_session(plan(), sink, &operators, &[], |tap| {
        execute(tap, &operators[0], &[floats(&[1.0])], &[floats(&[2.0])]);
        drop(tap.open(&operators[0]));
    });
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let c = summary.counters;
    assert_eq!((c.n_offered, c.n_selected, c.n_dropped), (4, 0, 0));
    assert!(summary.first_overflow.is_none());
}

#[test]
fn the_first_one_is_found_whatever_the_order_of_writing() {
    let operators: Vec<_> = (0..60)
        .map(|i| operator(i, "Add", &format!("op{i}"), &["x"], &["y"]))
        .collect();
    // A sink of another kind keeps the tensors.
    let sink = Arc::new(MemorySink::default());
    let summary = with_session(plan(), sink.clone(), &operators, &[], |tap| {
        for operator in &operators {
            let y = if operator.task_id < 21 { 1.0 } else { f32::NAN };
            execute(tap, operator, &[floats(&[1.0])], &[floats(&[y])]);
        }
    });
    assert_eq!(summary.counters.n_operators_overflowed, 39);
    assert_eq!(summary.first_overflow.unwrap().op_name, "op21");
    assert_eq!(sink.take().len(), 39);
}

/// Takes every `Identity` for an overflow.
struct IdentityDetector;

impl OverflowDetector for IdentityDetector {
    fn detect(&self, record: &Record) -> Option<OperatorOverflow> {
        (record.operator.op_type == "Identity").then(|| OperatorOverflow {
            status: 0x80,
            places: Vec::new(),
        })
    }
}

#[test]
fn a_session_asks_the_detector_that_it_is_given() {
    let operators =
        ["Add", "Identity"].map(|op_type| operator(0, op_type, op_type, &["x"], &["y"]));
    let sink = Arc::new(MemorySink::default());
    let (options, detector) = (SessionOptions::default(), Arc::new(IdentityDetector));
    let session =
        CaptureSession::start_with_detector(plan(), sink.clone(), options, detector).unwrap();
    for operator in &operators {
        let (mut tap, _) = session.attach(&model(), std::slice::from_ref(operator), &[]);
        tap.begin_step(0);
        execute(&tap, operator, &[floats(&[1.0])], &[floats(&[f32::NAN])]);
    }
    let first_overflow = session.finish().first_overflow.unwrap();
    assert_eq!(
        (first_overflow.op_name.as_str(), first_overflow.status),
        ("Identity", 0x80)
    );
    assert_eq!(sink.take().len(), 1);
}
