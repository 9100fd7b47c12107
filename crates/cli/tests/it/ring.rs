//! `opscope dump --keep-last`: the last steps, and which steps are dumped at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{digits, json, opscope, text, wait_for};
use serde_json::{Value, json};

/// A file for each step of the digits example: one image, all of whose pixels are `values[step]`.
fn write_inputs(dir: &Path, values: &[f32]) -> PathBuf {
    let inputs = dir.join("inputs");
    fs::create_dir(&inputs).unwrap();
    for (step, value) in values.iter().enumerate() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }";
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:<117}\n").bytes());
        bytes.extend(std::iter::repeat_n(value.to_le_bytes(), 64).flatten());
        fs::write(inputs.join(format!("{step}.npy")), bytes).unwrap();
    }
    inputs
}

fn dump(dir: &Path, more: &[&str]) -> Command {
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command
        .args(["--form", "acl", "--out"])
        .arg(dir.join("dump"));
    command.args(["--no-baseline", "--json"]).args(more);
    command
}

/// The numbers of the steps that are on disk.
fn steps(dir: &Path) -> Vec<u64> {
    let list = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let times = list(&dir.join("dump"));
    let dirs = times
        .iter()
        .flat_map(|time| list(&time.join("0/digits_cnn/1")));
    let number = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let mut steps: Vec<u64> = dirs.map(number).collect();
    steps.sort_unstable();
    steps
}

#[test]
fn nan_in_an_input_keeps_the_steps_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut values = [0.5; 10];
    values[4] = f32::NAN;
    let inputs = write_inputs(dir.path(), &values);
    let mut command = dump(dir.path(), &["--keep-last", "3"]);
    let report = json(command.arg("--inputs").arg(&inputs));
    assert_eq!(steps(dir.path()), [2, 3, 4, 7, 8, 9]);
    let ring = &report["ring"];
    assert_eq!(ring["kept"], json!([[2, 4], [7, 9]]));
    assert_eq!(ring["steps_removed"], 4);
    let trigger = &ring["triggers"][0];
    let fields = ["trigger", "step", "op_name", "slot", "nan"].map(|field| trigger[field].clone());
    let expected = [
        json!("nan"),
        json!(4),
        json!("/conv1/Conv"),
        json!("input.0"),
        json!(64),
    ];
    assert_eq!(fields, expected);
    let n = |key: &str| report[key].as_u64().unwrap();
    let n_dirs = report["dump_dirs"].as_array().unwrap().len();
    assert_eq!((n_dirs, n("files")), (6, 10 * 9));
    assert_eq!(ring["files_removed"], 4 * 9);
    let dirs = report["dump_dirs"].as_array().unwrap().iter();
    let files = dirs.flat_map(|dir| fs::read_dir(dir.as_str().unwrap()).unwrap());
    let n_bytes: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    let n_removed = ring["bytes_removed"].as_u64().unwrap();
    assert_eq!(n("bytes_written") - n_removed, n_bytes);
}

#[test]
fn without_a_trigger_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = write_inputs(dir.path(), &[0.5, f32::NAN, 0.5]);
    let more = [
        "--keep-last",
        "2",
        "--keep-only-triggered",
        "--trigger",
        "overflow,signal",
    ];
    let mut command = dump(dir.path(), &more);
    let report = json(command.arg("--inputs").arg(&inputs));
    assert_eq!(report["ring"]["kept"], json!([]));
    assert_eq!(report["ring"]["steps_removed"], 3);
    // The record of the run stays.
    let time = fs::read_dir(dir.path().join("dump")).unwrap();
    let time: Vec<_> = time.map(|entry| entry.unwrap().path()).collect();
    let [time] = &time[..] else {
        panic!("{time:?}");
    };
    let left: Vec<_> = fs::read_dir(time).unwrap().collect();
    assert_eq!(left.len(), 1);
    assert!(time.join(".opscope/run.json").is_file());
}

#[test]
fn a_run_that_ends_by_an_error_keeps_its_last_steps() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = write_inputs(dir.path(), &[0.5; 5]);
    fs::write(inputs.join("4.npy"), "no array").unwrap();
    let mut command = dump(dir.path(), &["--keep-last", "2", "--keep-only-triggered"]);
    let (code, told, errors) = text(command.arg("--inputs").arg(&inputs));
    assert_eq!(code, 3, "{errors}");
    assert_eq!(steps(dir.path()), [2, 3]);
    let report: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(report["ring"]["triggers"][0]["trigger"], "exception");
}

#[test]
fn the_table_tells_what_stays() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = write_inputs(dir.path(), &[0.5, 0.5, f32::NAN, 0.5, 0.5]);
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command
        .args(["--form", "acl", "--out"])
        .arg(dir.path().join("dump"));
    command.args(["--no-baseline", "--keep-last", "1", "--inputs"]);
    let (code, told, errors) = text(command.arg(&inputs));
    assert_eq!(code, 0, "{errors}");
    for line in [
        "steps kept        2, 4\n",
        "trigger           nan at step 2: Conv `/conv1/Conv` input.0: 64 NaN, 0 +Inf, 0 -Inf\n",
        "removed           3 steps: ",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn steps_are_chosen() {
    let cases: [(&[&str], &[u64]); 4] = [
        (&["--every", "3"], &[0, 3, 6, 9]),
        (&["--iterations", "0-3,8,10-"], &[0, 1, 2, 3, 8, 10, 11]),
        (&["--iterations", "2-", "--every", "4"], &[4, 8]),
        // Of the chosen ones, the last.
        (&["--every", "3", "--keep-last", "2"], &[6, 9]),
    ];
    for (more, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let mut command = dump(dir.path(), more);
        json(command.args(["--seed", "0", "--shape", "image:1,1,8,8", "--steps", "12"]));
        assert_eq!(steps(dir.path()), expected, "{more:?}");
    }
}

#[test]
fn a_configuration_s_steps_are_chosen_from() {
    let dir = tempfile::tempdir().unwrap();
    let dump_path = dir.path().join("dump");
    fs::create_dir(&dump_path).unwrap();
    let config = dir.path().join("acl.json");
    let json_text = json!({"dump": {
        "dump_path": dump_path, "dump_step": "1-6|9", "dump_list": [{}], "dump_mode": "all",
    }});
    fs::write(&config, json_text.to_string()).unwrap();
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .arg("--config")
        .arg(&config);
    command.args(["--seed", "0", "--shape", "image:1,1,8,8", "--steps", "12"]);
    json(command.args(["--json", "--no-baseline", "--every", "3"]));
    assert_eq!(steps(dir.path()), [3, 6, 9]);
}

#[test]
fn choosing_nothing_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = dump(dir.path(), &["--iterations", "7"]);
    command.args(["--seed", "0", "--shape", "image:1,1,8,8", "--steps", "3"]);
    let (code, _, errors) = text(&mut command);
    assert_eq!(code, 0);
    assert!(
        errors.contains("the run has 3 steps, none of them chosen"),
        "{errors}"
    );
}

#[test]
fn mistakes() {
    let cases = [
        ("--out @ --keep-last 0", "invalid value '0'"),
        ("--out @ --keep-only-triggered", "--keep-last"),
        ("--out @ --trigger nan", "--keep-last"),
        (
            "--out @ --keep-last 2 --trigger smoke",
            "invalid value 'smoke'",
        ),
        ("--out @ --every 0", "invalid value '0'"),
        ("--out @ --iterations 3-1", "`3-1` ends before it begins"),
        (
            "--out @ --iterations 1;2",
            "`1;2` is not the number of a step",
        ),
        ("--stats --keep-last 2", "cannot be used with"),
        ("--as float16 --keep-last 2", "`--keep-last` needs a dump"),
    ];
    for (args, part) in cases {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("dump");
        let args = args.replace('@', out.to_str().unwrap());
        let mut command = opscope();
        command.arg("dump").arg(digits("digits_cnn.onnx"));
        let (code, told, errors) = text(command.args(args.split(' ')).args(["--seed", "0"]));
        assert_eq!(code, 2, "{args}: {errors}");
        assert!(errors.contains(part), "{args}: {errors}");
        assert!(told.is_empty() && !out.exists(), "{args}");
    }
}

/// Starts a run in the background, and waits until it has come to a step.
fn start(dir: &Path, more: &[&str], step: u64) -> Child {
    let mut command = dump(dir, more);
    command.args([
        "--seed",
        "0",
        "--shape",
        "image:1,1,8,8",
        "--steps",
        "100000000",
    ]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_step(&mut child, dir, step);
    child
}

fn wait_for_step(child: &mut Child, dir: &Path, step: u64) {
    wait_for(child, &format!("step {step}"), || {
        steps(dir).last().is_some_and(|last| *last >= step)
    });
}

fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("kill");
    kill.arg(format!("-{name}")).arg(child.id().to_string());
    assert!(kill.status().unwrap().success());
}

#[test]
fn a_signal_keeps_the_steps_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut more = vec!["--keep-last", "2", "--keep-only-triggered"];
    more.extend(["--trigger", "signal"]);
    let mut child = start(dir.path(), &more, 3);
    signal(&child, "USR2");
    let last = *steps(dir.path()).last().unwrap();
    wait_for_step(&mut child, dir.path(), last + 20);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let triggers = report["ring"]["triggers"].as_array().unwrap();
    assert_eq!(triggers.len(), 1);
    assert_eq!(triggers[0]["trigger"], "signal");
    let step = triggers[0]["step"].as_u64().unwrap();
    assert_eq!(steps(dir.path()), [step - 1, step]);
}

#[test]
fn a_killed_run_leaves_its_last_steps() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = start(
        dir.path(),
        &["--keep-last", "3", "--keep-only-triggered"],
        10,
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let left = steps(dir.path());
    // The current step may not have a file yet; one that is too old may not be gone yet.
    assert!((2..=3 + 4).contains(&left.len()), "{left:?}");
    assert!(
        left.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{left:?}"
    );
    assert!(left[0] > 0 && *left.last().unwrap() >= 10, "{left:?}");
}
