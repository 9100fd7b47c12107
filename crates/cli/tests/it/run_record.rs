//! Records that a run keeps of itself, also when it is killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{digits, json as json_of, opscope, text, wait_for};
use serde_json::{Value, json};

fn dump() -> Command {
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command.args(["--seed", "0", "--shape", "image:2,1,8,8", "--no-baseline"]);
    command
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The only directory in `dir`.
fn only_dir(dir: &Path) -> std::path::PathBuf {
    let mut entries = fs::read_dir(dir).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    path
}

#[test]
fn a_finished_run_says_what_it_did() {
    let dir = tempfile::tempdir().unwrap();
    let report = json_of(
        dump()
            .args(["--json", "--steps", "3", "--form", "acl", "--out"])
            .arg(dir.path()),
    );
    let record = read(&only_dir(dir.path()).join(".opscope/run.json"));
    assert_eq!(record["state"], "finished");
    assert_eq!(record["command"], "dump");
    assert_eq!(record["engine"]["name"], "tract");
    assert_eq!(record["n_steps"], 3);
    assert_eq!(record["plan"]["operators"], "every");
    assert_eq!(
        record["counters"]["n_written"],
        report["records"]["written"]
    );
    assert_eq!(
        record["counters"]["n_bytes_written"],
        report["bytes_written"]
    );
    let model = &record["models"][0];
    assert_eq!(model["file"], "digits_cnn.onnx");
    let n_bytes = fs::metadata(digits("digits_cnn.onnx")).unwrap().len();
    assert_eq!(model["n_bytes"], n_bytes);
    assert_eq!(model["xxh3_128"].as_str().unwrap().len(), 32);
    for name in ["started", "ended"] {
        let time = record[name].as_str().unwrap();
        assert_eq!(time.len(), 27, "{time}");
    }
    // Readers pass over it, and report it.
    let (code, told, errors) = text(opscope().arg("show").arg(dir.path()));
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(told.contains("finished 20"), "{told}");
    assert!(told.contains("3 steps, 72 tensors written"), "{told}");
    let arrays = dir.path().join("arrays");
    let converted = json_of(
        opscope()
            .args(["convert", "--json", "-d"])
            .arg(only_dir(dir.path()))
            .arg("--out")
            .arg(&arrays),
    );
    assert_eq!(converted["failures"], json!([]));
    assert!(!arrays.join(".opscope").exists());
}

#[test]
fn a_dump_that_waits_for_a_finding_makes_no_directory_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("acl.json");
    let dump_path = dir.path().join("dump");
    fs::create_dir(&dump_path).unwrap();
    let settings = json!({"dump": {"dump_path": dump_path, "dump_debug": "on"}});
    fs::write(&config, settings.to_string()).unwrap();
    let (code, _, errors) = text(dump().arg("--config").arg(&config));
    assert_eq!(code, 0, "{errors}");
    assert_eq!(fs::read_dir(&dump_path).unwrap().count(), 0);
}

fn mindspore_configuration(dir: &Path) -> std::path::PathBuf {
    let settings = json!({
        "op_debug_mode": 0, "dump_mode": 0, "path": dir.join("dump"), "net_name": "Digits",
        "iteration": "all", "saved_data": "full", "input_output": 0, "kernels": [],
        "support_device": [0],
    });
    let path = dir.join("data_dump.json");
    let file = json!({"common_dump_settings": settings, "e2e_dump_settings": {"enable": true}});
    fs::write(&path, file.to_string()).unwrap();
    path
}

#[test]
fn a_run_that_is_killed_is_told_and_cleaned_up_after() {
    for is_mindspore in [false, true] {
        let dir = tempfile::Builder::new()
            .prefix("opscope-")
            .tempdir()
            .unwrap();
        let out = dir.path().join("dump");
        let asked = |command: &mut Command| {
            if is_mindspore {
                command
                    .args(["--target", "gpu", "--config"])
                    .arg(mindspore_configuration(dir.path()))
            } else {
                command.args(["--form", "acl", "--out"]).arg(&out)
            };
        };
        let mut command = dump();
        asked(&mut command);
        let mut child = command
            .args(["--steps", "1000000"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(&mut child, "a tensor", || {
            !opscope_store::dump::list(&out).entries.is_empty()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let shown = json_of(opscope().args(["show", "--json"]).arg(&out));
        assert_eq!(shown["runs"][0]["is_cut_off"], true);
        assert_eq!(shown["runs"][0]["record"]["state"], "running");
        assert_eq!(shown["errors"], json!([]));
        let (_, told, _) = text(opscope().arg("show").arg(&out));
        assert!(told.contains("CUT OFF"), "{told}");
        expect_no_end(&out, &shown["runs"][0]["path"]);
        let mut again = dump();
        asked(&mut again);
        let report = json_of(again.arg("--json"));
        let shown = json_of(opscope().args(["show", "--json"]).arg(&out));
        assert_eq!(shown["runs"].as_array().unwrap().len(), 2);
        let [first, second] = [0, 1].map(|i| &shown["runs"][i]["record"]);
        assert_eq!(
            (&first["state"], &second["state"]),
            (&json!("running"), &json!("finished"))
        );
        assert_eq!(first["cleaned"]["n_kept"], 0);
        let removed = &second["left_overs"]["n_files"];
        let told = report["left_overs"]["removed_files"].as_u64().unwrap_or(0);
        assert_eq!(removed, told);
        assert_eq!(n_unfinished(&out), 0);
        let n_aside = usize::from(is_mindspore);
        assert_eq!(
            usize::from(out.join(".opscope/run-1.json").exists()),
            n_aside
        );
    }
}

/// A program that is gone may have ended well, and left out to say so.
fn expect_no_end(out: &Path, record: &Value) {
    let path = Path::new(record.as_str().unwrap());
    let own = fs::read_to_string(path).unwrap();
    let of_program = own.replace("\"command\": \"dump\"", "\"command\": \"AscendCL\"");
    fs::write(path, of_program).unwrap();
    let (_, told, _) = text(opscope().arg("show").arg(out));
    let is_open = told.contains("no recorded end") && !told.contains("CUT OFF");
    assert!(is_open, "{told}");
    let shown = json_of(opscope().args(["show", "--json"]).arg(out));
    assert_eq!(shown["runs"][0]["is_cut_off"], Value::Null);
    fs::write(path, own).unwrap();
}

fn n_unfinished(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let n = |entry: fs::DirEntry| {
        if entry.path().is_dir() {
            n_unfinished(&entry.path())
        } else {
            usize::from(
                entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with(".opscope-tmp-"),
            )
        }
    };
    entries.map(n).sum()
}
