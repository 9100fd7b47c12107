//! A dump on disk where files cannot grow any more.
//!
//! A limit on the size of files replaces a full disk: it needs no rights and fails in the same
//! call.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use opscope_capture::{CaptureSession, FailurePolicy, Plan, SessionOptions};
use opscope_dump::AclSink;
use opscope_store::atomic_file::PermissionModes;
use opscope_store::record::{ModelId, Operator};
use opscope_tensor::{DType, Shape, Tensor};

/// The directory of a test that runs again with a limit.
pub(crate) const DIR_VARIABLE: &str = "OPSCOPE_TEST_LIMITED_DIR";

#[test]
fn files_that_cannot_grow_are_failures_and_leave_nothing_behind() {
    if let Some(dir) = env::var_os(DIR_VARIABLE) {
        return with_limited_files(Path::new(&dir));
    }
    let test = "full_disk::files_that_cannot_grow_are_failures_and_leave_nothing_behind";
    run_limited(test, 16);
}

/// Runs a test again, in a process whose files cannot grow beyond `n_blocks` of 512 or 1024 bytes.
pub(crate) fn run_limited(test: &str, n_blocks: u32) {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("ulimit -f {n_blocks} && trap '' XFSZ && exec \"$0\" --exact {test}");
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(env::current_exe().unwrap())
        .env(DIR_VARIABLE, dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

fn with_limited_files(dir: &Path) {
    let operators: Vec<Arc<Operator>> = (0..6).map(addition).collect();
    for (name, on_failure, n_written) in [
        ("drop", FailurePolicy::Drop, 5),
        ("stop", FailurePolicy::StopCapture, 3),
    ] {
        let dir = dir.join(name);
        let sink = Arc::new(AclSink::lazy(
            &dir,
            "20240102030405",
            PermissionModes::default(),
        ));
        let options = SessionOptions {
            on_failure,
            n_writers: 1,
            ..SessionOptions::default()
        };
        let session = CaptureSession::start(Plan::everything(), sink, options).unwrap();
        let model = ModelId::first_load("net", "");
        let (tap, _) = session.attach(&Arc::new(model), &operators, &["x".to_owned()]);
        for operator in &operators {
            let n = if operator.task_id == 3 { 100_000 } else { 10 };
            let Some(mut probe) = tap.open(operator) else {
                continue;
            };
            probe.input(0, bytes(n));
            probe.input(1, bytes(n));
            probe.output(0, bytes(n));
            probe.submit();
        }
        drop(tap);
        let summary = session.finish();
        let error = summary.first_error.unwrap().to_string();
        assert!(error.contains("op3"), "{error}");
        let c = summary.counters;
        assert_eq!((c.n_files, c.n_failed), (n_written, 3));
        assert_eq!(c.dropped.n_stopped, (5 - n_written) * 3);
        let files = files_below(&dir);
        assert_eq!(files.len() as u64, n_written, "{files:?}");
        assert!(
            files.iter().all(|file| file.starts_with("Add.op")),
            "{files:?}"
        );
    }
}

/// An addition of `x` and `w`.
fn addition(task_id: u32) -> Arc<Operator> {
    Arc::new(Operator {
        task_id,
        op_type: "Add".into(),
        op_name: format!("op{task_id}"),
        inputs: vec!["x".into(), "w".into()],
        outputs: vec![format!("y{task_id}")],
        ..Operator::default()
    })
}

fn bytes(n: usize) -> Tensor {
    Tensor::from_vec(DType::U8, Shape::new([n]).unwrap(), vec![7; n]).unwrap()
}

fn files_below(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(files_below(&entry.path()));
        } else {
            names.push(entry.file_name().into_string().unwrap());
        }
    }
    names
}
