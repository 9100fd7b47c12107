//! `opscope dump` where something limits it: a request, or a disk that is full.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{digits, json, opscope, text};
use serde_json::Value;

const N_STEPS: u64 = 3;
/// Operators and tensors of one step.
const N_OPERATORS: u64 = 9;
const N_TENSORS: u64 = 24;

fn arguments(command: &mut Command, out: &Path, more: &[&str]) {
    arguments_of_steps(command, "3", out, more);
}

fn arguments_of_steps(command: &mut Command, n_steps: &str, out: &Path, more: &[&str]) {
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .args(["--seed", "0", "--shape", "image:2,1,8,8"])
        .args([
            "--steps",
            n_steps,
            "--no-baseline",
            "--json",
            "--form",
            "acl",
            "--out",
        ])
        .arg(out)
        .args(more);
}

/// Names of the files below a directory without their time stamps.
fn files(dir: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with(".opscope") {
            // The record of the run is no part of the dump.
        } else if path.is_dir() {
            let step = path.file_name().unwrap().to_string_lossy().into_owned();
            let below = files(&path).into_iter();
            names.extend(below.map(|name| {
                if name.contains('/') {
                    name
                } else {
                    format!("{step}/{name}")
                }
            }));
        } else {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            names.insert(name.rsplit_once('.').unwrap().0.to_owned());
        }
    }
    names
}

#[test]
fn limits_take_the_first_operators_whatever_the_threads() {
    // A step has operators of 4, 2, 2, 4 … tensors; the first reads and produces 9344 bytes.
    for (limit, n_files, n_written) in [
        (["--max-tensors", "3"], 0, 0),
        (["--max-tensors", "7"], 2, 6),
        (["--max-records", "8"], 3, 8),
        (["--max-records", "72"], 27, 72),
        (["--max-bytes", "9343"], 0, 0),
        (["--max-bytes", "9344"], 1, 4),
        (["--max-bytes", "1GiB"], 27, 72),
    ] {
        let mut seen = BTreeSet::new();
        for (writers, threads) in [("1", "1"), ("4", "2")] {
            let dir = tempfile::tempdir().unwrap();
            let more = [
                limit[0],
                limit[1],
                "--writers",
                writers,
                "--threads",
                threads,
            ];
            let mut command = opscope();
            arguments(&mut command, dir.path(), &more);
            let report = json(&mut command);
            let records = &report["records"];
            let n_all = N_STEPS * N_TENSORS;
            assert_eq!(report["operators_seen"], N_STEPS * N_OPERATORS);
            assert_eq!(report["files"], n_files, "{limit:?}");
            assert_eq!(
                (&records["selected"], &records["written"]),
                (&n_all.into(), &n_written.into())
            );
            assert_eq!(records["dropped_by"]["limit"], n_all - n_written);
            assert_eq!(records["dropped"], n_all - n_written);
            let files = files(dir.path());
            assert_eq!(files.len(), n_files);
            seen.insert(files);
        }
        assert_eq!(seen.len(), 1, "{limit:?}");
    }
}

#[test]
fn the_table_says_what_a_limit_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .args([
            "--seed",
            "0",
            "--shape",
            "image:2,1,8,8",
            "--max-records",
            "4",
            "--form",
            "acl",
            "--out",
        ])
        .arg(dir.path());
    let (code, told, errors) = text(&mut command);
    assert_eq!((code, errors.as_str()), (0, crate::support::ENGINE_LINE));
    assert!(
        told.contains("dropped           20 tensors: beyond the limit\n"),
        "{told}"
    );
}

#[test]
fn a_size_that_is_none_is_refused() {
    for size in ["10x", "", "-5", "1.5G", "99999999999T"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("dump");
        let mut command = opscope();
        arguments(&mut command, &out, &[&format!("--max-bytes={size}")]);
        let (code, _, errors) = text(&mut command);
        assert_eq!(code, 2, "{size}");
        assert!(errors.contains("--max-bytes"), "{errors}");
        assert!(!out.exists());
    }
}

#[test]
fn a_full_disk_ends_as_it_is_told_to() {
    for (policy, n_steps, n_seen, n_written) in [
        ("stop-capture", "3", 27..=27, 8),
        ("drop", "3", 27..=27, 60),
        // It would take minutes.
        ("stop-run", "1000000", 4..=8_999_999, 8),
    ] {
        let dir = tempfile::tempdir().unwrap();
        // No file may exceed 20 KiB: that of the fourth operator, the largest, is too large.
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -f $0; exec \"$@\"", blocks()])
            .arg(env!("CARGO_BIN_EXE_opscope"));
        arguments_of_steps(
            &mut command,
            n_steps,
            dir.path(),
            &["--on-error", policy, "--writers", "1"],
        );
        let (code, told, errors) = text(&mut command);
        assert_eq!(code, 4, "{errors}");
        assert!(errors.contains("_conv2_Conv.3.0."), "{errors}");
        let report: Value = serde_json::from_str(&told).unwrap();
        let number = |value: &Value| value.as_u64().unwrap();
        let records = &report["records"];
        assert!(
            n_seen.contains(&number(&report["operators_seen"])),
            "{report}"
        );
        assert_eq!(number(&records["written"]), n_written, "{policy}");
        let lost = number(&records["dropped_by"]["stopped"]) + number(&records["failed"]);
        assert_eq!(lost, number(&records["selected"]) - n_written);
        assert_eq!(report["ended_by_failure"], policy != "drop");
        let (_, shown, _) = text(opscope().arg("show").arg(dir.path()));
        let (dropped, failed) = (&records["dropped"], &records["failed"]);
        let counts = format!(", {dropped} dropped, {failed} failed,");
        assert!(shown.contains(&counts), "{counts}: {shown}");
        assert_eq!(errors.contains("ended early"), policy != "drop", "{errors}");
        let files = files(dir.path());
        assert_eq!(files.len() as u64, number(&report["files"]));
        assert!(files.iter().all(|name| !name.contains("opscope-tmp")));
    }
}

/// 20 KiB in the unit of this system's `sh`, which is 512 or 1024 bytes.
fn blocks() -> &'static str {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "ulimit -f 2; trap '' XFSZ; head -c 1500 /dev/zero > \"$0\" 2> /dev/null; wc -c < \"$0\"";
    let mut shell = Command::new("sh");
    let (_, told, _) = text(shell.args(["-c", script]).arg(dir.path().join("probe")));
    if told.trim() == "1500" { "20" } else { "40" }
}
