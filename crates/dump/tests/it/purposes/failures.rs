//! Only operators that fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use opscope_capture::{
    FailureDetail, OperatorFailure, Plan, Purpose, SessionSummary, Sink, SinkError, WrittenFiles,
};
use opscope_dump::{AclSink, FileChunk};
use opscope_store::file_format::dump_data::{DumpFile, DumpHeader};
use opscope_store::record::{Operator, Record};
use opscope_tensor::{DType, Layout};

use super::double::{TIME, execute, files, floats, lazy_sink, operator, timeless, with_session};

fn plan(detail: FailureDetail) -> Plan {
    Plan {
        purpose: Purpose::Failures(detail),
        ..Plan::everything()
    }
}

/// One operator goes well, then one with a present and an absent input fails with one output there.
fn run(detail: FailureDetail, sink: Arc<dyn Sink>, at_failure: impl FnOnce()) -> SessionSummary {
    let mut failing = (*operator(7, "Conv", "a/b", &["x", "", "w"], &["y", "z"])).clone();
    failing.attributes = vec![("group".into(), "2".into())];
    let operators = [
        operator(6, "Add", "fine", &["x"], &["y"]),
        Arc::new(failing),
    ];
    with_session(plan(detail), sink, &operators, &[], |tap| {
        tap.begin_step(5);
        execute(tap, &operators[0], &[floats(&[1.0])], &[floats(&[2.0])]);
        let mut probe = tap.open(&operators[1]).unwrap();
        assert!(probe.wants_inputs() && !probe.wants_outputs());
        probe.input(0, floats(&[1.0, 2.0]).with_layout(Layout::Nchw));
        probe.input(2, floats(&[3.0]));
        probe.output(1, floats(&[4.0]));
        probe.fail("out of `memory`");
        at_failure();
    })
}

fn dump(detail: FailureDetail) -> BTreeMap<String, Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let sink = Arc::new(lazy_sink(dir.path()));
    let mut n_files = 0;
    // The file is there when the engine goes on, not only when the session ends.
    let summary = run(detail, sink, || n_files = files(dir.path()).len());
    let files = files(dir.path());
    assert_eq!(n_files, files.len());
    let c = summary.counters;
    assert_eq!((c.n_operators_seen, c.n_operators_written), (2, 1));
    assert_eq!((c.n_selected, c.n_written, c.n_dropped), (3, 3, 0));
    assert_eq!(c.n_files, files.len() as u64);
    files
}

fn header(bytes: &[u8]) -> DumpHeader {
    let file = DumpFile::from_bytes(bytes.to_vec()).unwrap();
    let payload: Vec<&[u8]> = file.tensors().map(|tensor| tensor.bytes).collect();
    let expected = [floats(&[1.0, 2.0]), floats(&[3.0]), floats(&[4.0])];
    assert_eq!(
        payload,
        expected
            .each_ref()
            .map(|tensor| tensor.host_bytes().unwrap())
    );
    let header = file.header().clone();
    // Readers that know these files cannot open those with attributes.
    assert!(header.attrs.is_empty());
    let inputs = header.inputs.iter().map(|e| (e.input_type, e.arg_index));
    assert_eq!(inputs.collect::<Vec<_>>(), [(2, 0), (2, 2)]);
    assert_eq!(header.outputs[0].arg_index, 4);
    assert_eq!(header.inputs[0].dtype(), Some(DType::F32));
    assert_eq!(header.inputs[0].layout(), Some(Layout::Nchw));
    header
}

#[test]
fn brief_says_no_name() {
    let files = dump(FailureDetail::Brief);
    let (name, bytes) = files.iter().next().unwrap();
    assert_eq!(name, "extra-info/data-dump/0/exception_info.0.7.LOCALTIME");
    assert_eq!(files.len(), 1);
    let header = header(bytes);
    assert_eq!(header.op_name, "");
    assert_eq!(header.dfx_message, "Conv `a/b` failed: out of `memory`\n");
}

#[test]
fn normal_says_name_tensors_and_attributes() {
    let files = dump(FailureDetail::Normal);
    let (name, bytes) = files.iter().next().unwrap();
    assert_eq!(name, "extra-info/data-dump/0/Conv.a_b.7.LOCALTIME");
    assert_eq!(files.len(), 1);
    let header = header(bytes);
    assert_eq!(header.op_name, "a/b");
    assert_eq!(
        header.dfx_message,
        "Conv `a/b` failed: out of `memory`\n\
         input.0: float32 [2] NCHW, 8 bytes\n\
         input.2: float32 [1] ND, 4 bytes\n\
         output.1: float32 [1] ND, 4 bytes\n\
         attribute group: 2\n"
    );
}

#[test]
fn full_has_a_text_beside_it() {
    let files = dump(FailureDetail::Full);
    assert_eq!(files.len(), 2);
    header(&files["extra-info/data-dump/0/Conv.a_b.7.LOCALTIME"]);
    let text = &files["extra-info/data-dump/0/Conv.a_b.7.LOCALTIME.txt"];
    let text = str::from_utf8(text).unwrap();
    for line in [
        "Conv `a/b` failed: out of `memory`\n",
        "model: net (graph graph)\n",
        "step: 5\n",
        "task: 7\n",
        "position in step: 1\n",
        "operators before: 1\n",
        "backtrace:\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    if cfg!(target_os = "linux") {
        assert!(text.contains("VmRSS: "), "{text}");
    }
    assert!(text.contains("failures"), "{text}");
}

#[test]
fn success_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let operators = [operator(0, "Add", "a", &["x"], &["y"])];
    let sink = Arc::new(lazy_sink(dir.path()));
    let summary = with_session(plan(FailureDetail::Full), sink, &operators, &[], |tap| {
        execute(
            tap,
            &operators[0],
            &[floats(&[f32::NAN])],
            &[floats(&[1.0])],
        );
        // Ended from outside: that is no failure.
        drop(tap.open(&operators[0]));
    });
    let c = summary.counters;
    assert_eq!(
        (c.n_offered, c.n_selected, c.n_written, c.n_dropped),
        (4, 0, 0, 0)
    );
    assert!(summary.first_non_finite.is_none());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_function_gets_the_longer_name() {
    let paths = Arc::new(Mutex::new(Vec::new()));
    let function = Arc::new({
        let paths = paths.clone();
        move |chunk: &FileChunk<'_>| {
            paths.lock().unwrap().push(chunk.path.to_owned());
            Ok(())
        }
    });
    let sink = AclSink::to_function(Path::new("/d"), TIME, function).unwrap();
    run(FailureDetail::Brief, Arc::new(sink), || ());
    let paths = paths.lock().unwrap();
    assert_eq!(
        timeless(paths[0].to_str().unwrap()),
        "/d/extra-info/data-dump/0/exception_info.0.7.0.0.LOCALTIME"
    );
}

#[test]
fn long_names_are_hashed_without_their_directory() {
    let stored = |dir: &Path| {
        let operators = [operator(0, "Add", &"n".repeat(300), &[], &["y"])];
        let sink = Arc::new(lazy_sink(dir));
        let record = Record {
            model: super::double::model(),
            operator: operators[0].clone(),
            step: 0,
            timestamp_us: 1_700_000_000_123_456,
            inputs: vec![],
            outputs: vec![(0, floats(&[1.0]))],
        };
        let failure = OperatorFailure {
            detail: FailureDetail::Normal,
            notes: String::new(),
            reason: "no".into(),
            trace: None,
        };
        // The second one finds the name of that millisecond taken.
        for _ in 0..2 {
            sink.write_failure(&record, &failure).unwrap();
        }
        let names: Vec<String> = files(dir).into_keys().collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(names[2], "extra-info/data-dump/0/mapping.csv");
        names
    };
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(stored(one.path()), stored(other.path()));
}

/// Panics at every failure.
struct BadSink;

impl Sink for BadSink {
    fn write(&self, _: &Record) -> Result<WrittenFiles, SinkError> {
        Ok(WrittenFiles::default())
    }

    fn write_failure(&self, _: &Record, _: &OperatorFailure) -> Result<WrittenFiles, SinkError> {
        panic!("broken")
    }
}

#[test]
fn a_sink_that_panics_does_not_take_the_engine_with_it() {
    let summary = run(FailureDetail::Brief, Arc::new(BadSink), || ());
    assert_eq!(
        (summary.counters.n_selected, summary.counters.n_failed),
        (3, 3)
    );
    assert!(summary.first_error.is_some());
}

#[test]
fn an_operator_without_tensors_is_told_too() {
    let dir = tempfile::tempdir().unwrap();
    let operators = [Arc::new(Operator {
        task_id: 2,
        op_type: "Send".into(),
        op_name: "s".into(),
        ..Operator::default()
    })];
    let sink = Arc::new(lazy_sink(dir.path()));
    with_session(plan(FailureDetail::Brief), sink, &operators, &[], |tap| {
        tap.open(&operators[0]).unwrap().fail("lost");
    });
    let files = files(dir.path());
    let file = DumpFile::from_bytes(files.into_values().next().unwrap()).unwrap();
    assert_eq!(file.header().dfx_message, "Send `s` failed: lost\n");
}

#[test]
fn notes_stand_at_the_end_of_the_text_in_every_detail() {
    for detail in [FailureDetail::Brief, FailureDetail::Normal] {
        let dir = tempfile::tempdir().unwrap();
        let operators = [operator(0, "Conv", "a", &["x"], &["y"])];
        let sink = Arc::new(lazy_sink(dir.path()));
        with_session(plan(detail), sink, &operators, &[], |tap| {
            tap.begin_step(0);
            tap.count_seen(3);
            let probe = tap.open(&operators[0]).unwrap();
            probe.fail_with_notes("broken", "source: net.py:7\ncalls:\n  main\n");
        });
        let files = files(dir.path());
        let (_, bytes) = files.first_key_value().unwrap();
        let file = DumpFile::from_bytes(bytes.clone()).unwrap();
        let message = &file.header().dfx_message;
        assert!(
            message.starts_with("Conv `a` failed: broken\n"),
            "{message}"
        );
        assert!(
            message.ends_with("source: net.py:7\ncalls:\n  main\n"),
            "{message}"
        );
    }
}
