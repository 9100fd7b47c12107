//! `opscope dump`: what lands on disk, and how each mistake is answered.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{digits, json, model, opscope, text, wait_for};

fn dump_digits(out: &Path, more: &[&str]) -> serde_json::Value {
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .args(["--seed", "0", "--json"]);
    command
        .args(["--shape", "image:2,1,8,8", "--form", "acl", "--out"])
        .arg(out)
        .args(more);
    json(&mut command)
}

#[test]
fn a_dump_is_private_and_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/dump");
    let report = dump_digits(&out, &["--steps", "3"]);
    assert_eq!(report["operators_seen"], 27);
    assert_eq!(report["records"]["written"], 72);
    assert_eq!(report["dump_dirs"].as_array().unwrap().len(), 3);
    let mut n_bytes = 0;
    let mut dirs = vec![out.clone()];
    while let Some(dir) = dirs.pop() {
        assert_eq!(
            fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
            0o700
        );
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            if entry.path().is_dir() {
                dirs.push(entry.path());
                continue;
            }
            assert_eq!(
                entry.metadata().unwrap().permissions().mode() & 0o777,
                0o600
            );
            // What is said of the run and its model is no part of the dump.
            let is_beside =
                entry.path().ends_with(".opscope/run.json") || dir.ends_with(".opscope/graphs");
            if !is_beside {
                n_bytes += entry.metadata().unwrap().len();
            }
        }
    }
    assert_eq!(report["bytes_written"], n_bytes);
}

#[test]
fn outputs_are_written_for_every_step_with_a_list() {
    let dir = tempfile::tempdir().unwrap();
    let (out, outputs) = (dir.path().join("dump"), dir.path().join("outputs"));
    let option = ["--save-outputs", outputs.to_str().unwrap()];
    let more = ["--steps", "2", "--every", "2", "--no-baseline"];
    let report = dump_digits(&out, &[&more[..], &option[..]].concat());
    assert_eq!(report["steps_dumped"], 1);
    for step in ["0", "1"] {
        let list = fs::read_to_string(outputs.join(step).join("outputs.json")).unwrap();
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let [only] = &list["outputs"].as_array().unwrap()[..] else {
            panic!("{list}");
        };
        assert_eq!(
            (&only["dtype"], &only["shape"]),
            (&"float32".into(), &serde_json::json!([2, 10]))
        );
        let path = outputs.join(step).join(only["file"].as_str().unwrap());
        let array = opscope_store::file_format::npy::read_file(&path).unwrap();
        assert_eq!(array.shape().dims(), [2, 10]);
        let sum: f32 = array
            .host_bytes()
            .unwrap()
            .as_chunks()
            .0
            .iter()
            .map(|&v| f32::from_le_bytes(v))
            .sum();
        assert!((sum - 2.0).abs() < 1e-5, "two rows of probabilities: {sum}");
    }
    // Nothing is overwritten.
    let mut again = opscope();
    again
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .args(["--stats", "--seed", "0"]);
    let (code, _, errors) = text(again.args(["--shape", "image:1,1,8,8"]).args(option));
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("needs a new or empty directory"),
        "{errors}"
    );
}

#[test]
fn permissions_can_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("dump");
    dump_digits(&out, &["--dir-mode", "750", "--file-mode", "640"]);
    assert_eq!(
        fs::metadata(&out).unwrap().permissions().mode() & 0o777,
        0o750
    );
}

#[test]
fn two_dumps_in_one_second_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let first = dump_digits(dir.path(), &["--no-baseline"]);
    let second = dump_digits(dir.path(), &["--no-baseline"]);
    assert_ne!(first["dump_dirs"], second["dump_dirs"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn statistics_need_no_disk() {
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .args(["--stats", "--json", "--seed", "3"]);
    command.args(["--shape", "image:1,1,8,8"]);
    let report = json(&mut command);
    let rows = report["stats"].as_array().unwrap();
    assert_eq!(rows.len(), 24);
    let softmax = rows.last().unwrap();
    assert_eq!(
        (softmax["op_type"].as_str(), softmax["slot"].as_str()),
        (Some("Softmax"), Some("output.0"))
    );
    let mean = softmax["stats"]["mean"].as_f64().unwrap();
    assert!(
        (mean - 0.1).abs() < 1e-6,
        "probabilities of ten classes have the mean 0.1, not {mean}"
    );
}

#[test]
fn a_configuration_that_asks_for_nothing_dumps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("acl.json");
    let dump_path = dir.path().join("dump");
    fs::create_dir(&dump_path).unwrap();
    fs::write(
        &config,
        format!(r#"{{"dump": {{"dump_path": {dump_path:?}}}}}"#),
    )
    .unwrap();
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .arg("--config")
        .arg(&config);
    command.args(["--seed", "0", "--shape", "image:1,1,8,8"]);
    let (code, _, errors) = text(&mut command);
    assert_eq!(code, 0);
    assert!(errors.contains("warning: nothing is dumped"), "{errors}");
    assert_eq!(fs::read_dir(&dump_path).unwrap().count(), 0);
}

#[test]
fn names_that_match_nothing_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("acl.json");
    let path = dir.path();
    let cases = [
        (
            r#"{"model_name": "other"}"#,
            "selects other models only; this one is `digits_cnn`",
        ),
        (
            r#"{"layer": ["conv1/conv"]}"#,
            "no operator `conv1/conv`; there is `/conv1/Conv`",
        ),
    ];
    for (entry, part) in cases {
        let text_of = format!(r#"{{"dump": {{"dump_path": {path:?}, "dump_list": [{entry}]}}}}"#);
        fs::write(&config, text_of).unwrap();
        let mut command = opscope();
        command
            .arg("dump")
            .arg(digits("digits_cnn.onnx"))
            .arg("--config")
            .arg(&config);
        command.args(["--seed", "0", "--shape", "image:1,1,8,8"]);
        let (code, _, errors) = text(&mut command);
        assert!(code == 0 && errors.contains(part), "{errors}");
    }
}

/// An operator that fails ends the run; what came before it is kept and counted.
#[test]
fn a_run_that_fails_keeps_what_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let ids = dir.path().join("ids.bin");
    let out = dir.path().join("dump");
    fs::write(&ids, 1000_i64.to_le_bytes().repeat(4)).unwrap();
    let mut command = opscope();
    command
        .arg("dump")
        .arg(model("char_lm.onnx"))
        .args(["--form", "acl", "--out"])
        .arg(&out);
    command
        .arg("--input")
        .arg(format!("ids={}", ids.display()))
        .args(["--shape", "ids:1,4"]);
    let (code, told, errors) = text(&mut command);
    assert_eq!(code, 4, "{errors}");
    assert!(
        errors.contains("operator `node_embedding` of type `Gather` failed"),
        "{errors}"
    );
    assert!(!errors.contains("stack backtrace"), "{errors}");
    assert!(told.contains("7 written, 3 dropped"), "{told}");
}

/// Ctrl-C stops before the next operator; what was dumped until then is whole.
#[test]
fn an_interrupted_run_says_so_and_keeps_what_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("dump");
    let mut command = opscope();
    command
        .arg("dump")
        .arg(model("char_lm.onnx"))
        .args(["--seed", "0", "--shape", "ids:1,4"]);
    command
        .args([
            "--steps",
            "1000000",
            "--no-baseline",
            "--json",
            "--form",
            "acl",
            "--out",
        ])
        .arg(&out);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The handler is installed once the first step's directory is there.
    let step = |entry: fs::ReadDir| {
        entry
            .flatten()
            .any(|e| e.path().join("0/char_lm/1/1").is_dir())
    };
    wait_for(&mut child, "the first step", || {
        fs::read_dir(&out).is_ok_and(step)
    });
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["records"]["selected"], report["records"]["written"]);
    assert!(report["steps"].as_u64().unwrap() < 1_000_000);
}
