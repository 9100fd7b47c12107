//! How much is written: statistics of all with tensors of a few, and dry runs.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{digits, json as json_of, opscope, text};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A directory whose name has only letters that MindSpore allows in paths.
fn directory() -> TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("opscope-").tempdir().unwrap()
}

fn dump(more: &[&str]) -> Command {
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command.args(["--shape", "image:2,1,8,8", "--no-baseline", "--json"]);
    command.args(more);
    command
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => dirs.push(path),
                // What is said of the run and its model is no part of the dump.
                false if path.ends_with(".opscope/run.json") => {}
                false if path.to_string_lossy().contains("/.opscope/graphs/") => {}
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// A dry run creates nothing and reports what a run then leaves in the empty directory `dir`.
fn check_dry(dir: &Path, more: &[&str]) -> Value {
    let before = files(dir);
    let forecast = json_of(dump(more).args(["--seed", "1", "--dry-run"]));
    assert_eq!(files(dir), before, "{more:?}");
    json_of(dump(more).args(["--seed", "1"]));
    let after = files(dir);
    let new: Vec<_> = after.iter().filter(|path| !before.contains(path)).collect();
    let mut seen = HashSet::new();
    let mut n_bytes = 0;
    for path in &new {
        let metadata = fs::metadata(path).unwrap();
        // Of a file with several names, once.
        if seen.insert(metadata.ino()) {
            n_bytes += metadata.len();
        }
    }
    assert_eq!(forecast["linked"], new.len() - seen.len(), "{more:?}");
    assert_eq!(forecast["files"], new.len(), "{more:?}");
    assert_eq!(forecast["bytes"], n_bytes, "{more:?}");
    assert_eq!(forecast["room"]["fits"], true);
    assert_eq!(forecast["random_inputs"], false);
    let sum = |list: &str, member: &str| -> u64 {
        let list = forecast[list].as_array().unwrap();
        list.iter().map(|one| one[member].as_u64().unwrap()).sum()
    };
    let beside = |member: &str| forecast["beside"][member].as_u64().unwrap();
    assert_eq!(sum("by_step", "files") + beside("files"), new.len() as u64);
    assert_eq!(sum("by_step", "bytes") + beside("bytes"), n_bytes);
    // Lists that a step grows by belong to no operator.
    assert!(sum("by_type", "bytes") > 0 && sum("by_type", "bytes") <= sum("by_step", "bytes"));
    forecast
}

#[test]
fn a_dry_run_tells_what_a_run_writes() {
    let dir = directory();
    let out = dir.path().join("out");
    let out = out.to_str().unwrap();
    let forecast = check_dry(dir.path(), &["--form", "acl", "--out", out, "--steps", "2"]);
    assert_eq!(
        forecast["operators"],
        json!({ "in_model": 9, "selected": 9 })
    );
    assert_eq!(forecast["files"], 18);
    assert_eq!(forecast["by_side"]["input"]["tensors"], 30);
    assert_eq!(forecast["by_type"][0]["op_type"], "Conv");
    assert_eq!(forecast["by_step"].as_array().unwrap().len(), 2);
    check_dry(
        dir.path(),
        &["--form", "acl", "--out", out, "--content", "statistics"],
    );
    let rules = ["--tensors", "type:softmax", "--tensors", "above:4"];
    let forecast = check_dry(
        dir.path(),
        &[&["--form", "acl", "--out", out, "--steps", "3"], &rules[..]].concat(),
    );
    assert!(forecast["files"].as_u64().unwrap() > 30);

    let config = dir.path().join("acl.json");
    let dump_path = dir.path().join("acl");
    let dump = json!({
        "dump_path": dump_path, "dump_list": [{ "model_name": "digits_cnn", "layer": ["/fc/Gemm"] }],
        "dump_data": "stats", "dump_mode": "all", "dump_step": "1|3-4",
    });
    fs::write(&config, json!({ "dump": dump }).to_string()).unwrap();
    let config = config.to_str().unwrap();
    fs::create_dir(&dump_path).unwrap();
    let forecast = check_dry(dir.path(), &["--config", config, "--steps", "6"]);
    assert_eq!(forecast["files"], 3);
    assert_eq!(forecast["operators"]["selected"], 1);
    let rule = ["--tensors", "slot:/fc/Gemm/output.0", "--steps", "6"];
    let forecast = check_dry(dir.path(), &[&["--config", config], &rule[..]].concat());
    assert_eq!(forecast["files"], 6);
}

#[test]
fn a_dry_run_tells_what_every_target_of_mindspore_writes() {
    for (target, enabled) in [
        ("cpu", "e2e_dump_settings"),
        ("gpu", "e2e_dump_settings"),
        ("ascend-o0", "e2e_dump_settings"),
        ("ascend-o1", "e2e_dump_settings"),
        ("ascend-o2", "common"),
        ("ge", "common"),
    ] {
        for (saved, more) in [
            ("tensor", &[][..]),
            ("full", &["--tensors", "type:Conv"]),
            ("statistic", &["--content", "both", "--tensors", "above:4"]),
            ("tensor", &["--content", "statistics"]),
            ("tensor", &["--dedup", "content"]),
            ("tensor", &["--dedup", "off"]),
        ] {
            let dir = directory();
            // MindSpore itself saves no statistics on a CPU.
            let saved = if target == "cpu" { "tensor" } else { saved };
            let mut settings = json!({
                "op_debug_mode": 0, "dump_mode": 0, "path": dir.path().join("dump"),
                "net_name": "Digits", "iteration": "0-1", "saved_data": saved,
                "input_output": 0, "kernels": [], "support_device": [0],
            });
            if saved != "tensor" {
                settings["file_format"] = "npy".into();
            }
            let mut file = json!({ "common_dump_settings": settings });
            if enabled != "common" {
                file[enabled] = json!({ "enable": true, "trans_flag": true });
            }
            let config = dir.path().join("data_dump.json");
            fs::write(&config, file.to_string()).unwrap();
            let config = config.to_str().unwrap();
            let options = ["--config", config, "--target", target, "--steps", "3"];
            let forecast = check_dry(dir.path(), &[&options[..], more].concat());
            let steps: Vec<_> = forecast["by_step"].as_array().unwrap().iter().collect();
            assert_eq!(steps.len(), 2, "{target} {saved}");
            let n_arrays = files(dir.path())
                .iter()
                .filter(|path| path.extension().is_some_and(|e| e == "npy"))
                .count() as u64;
            let sides = &forecast["by_side"];
            let n_whole = ["input", "output"].map(|side| sides[side]["tensors"].as_u64().unwrap());
            let is_bin =
                ["ascend-o2", "ge"].contains(&target) && (more.is_empty() || more[0] == "--dedup");
            assert!(
                is_bin || n_whole.iter().sum::<u64>() == n_arrays,
                "{target} {saved}"
            );
            assert_eq!(n_arrays == 0, is_bin || more.contains(&"statistics"));
        }
    }
}

#[test]
fn a_dry_run_makes_inputs_up() {
    let dir = directory();
    let out = dir.path().join("out");
    let mut command = dump(&["--dry-run", "--form", "acl", "--out", out.to_str().unwrap()]);
    let (code, told, errors) = text(&mut command);
    assert_eq!(code, 0, "{errors}");
    assert!(
        errors.contains("no inputs given: using random ones"),
        "{errors}"
    );
    let forecast: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(forecast["random_inputs"], true);
    assert_eq!(forecast["files"], 9);
    let (code, told, _) = text(
        opscope()
            .arg("dump")
            .arg(digits("digits_cnn.onnx"))
            .args([
                "--dry-run",
                "--shape",
                "image:2,1,8,8",
                "--form",
                "acl",
                "--out",
            ])
            .arg(&out),
    );
    assert_eq!(code, 0);
    for line in [
        "in total          9 files, ",
        "operators         9 of 9 selected",
        "/conv2/Conv",
    ] {
        assert!(told.contains(line), "{told}");
    }
    // Open dimensions get the sizes that `diff` gives them.
    let (code, _, errors) = text(
        opscope()
            .arg("dump")
            .arg(digits("digits_cnn.onnx"))
            .args(["--dry-run", "--form", "acl", "--out"])
            .arg(&out),
    );
    assert_eq!(code, 0, "{errors}");
    let note = "opscope: inputs: random: `image` float32 [1,1,8,8] for [batch,1,8,8]\n";
    assert!(errors.contains(note), "{errors}");
    assert!(!out.exists());
}

#[test]
fn a_dry_run_of_single_operators_tells_of_each() {
    let dir = directory();
    let out = dir.path().join("out");
    let description = dir.path().join("two.json");
    let add = json!({
        "op": "Add",
        "input_desc": [
            { "name": "x0", "format": "ND", "type": "float32", "shape": [2, 3] },
            { "name": "x1", "format": "ND", "type": "float32", "shape": [2, 3] },
        ],
        "output_desc": [{ "name": "y", "format": "ND", "type": "float32", "shape": [2, 3] }],
    });
    fs::write(&description, json!([add, add]).to_string()).unwrap();
    let run = |more: &[&str]| {
        let mut command = opscope();
        command
            .arg("op")
            .arg(&description)
            .arg("--json")
            .args(["--form", "acl", "--out"])
            .arg(&out);
        json_of(command.args(more))
    };
    let told = run(&["--dry-run"]);
    assert!(!out.exists());
    run(&["--seed", "0"]);
    let real = files(&out);
    let told = told["operators"].as_array().unwrap();
    let sum = |member: &str| -> u64 { told.iter().map(|one| one[member].as_u64().unwrap()).sum() };
    assert_eq!((told.len(), sum("files")), (2, real.len() as u64));
    let n_bytes: u64 = real
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert_eq!(sum("bytes"), n_bytes);
}

#[test]
fn tables_of_all_and_tensors_of_a_few_are_read_back() {
    let dir = directory();
    let out = dir.path().join("out");
    let rules = ["--tensors", "name:/conv1/Conv", "--tensors", "regex:/p.*"];
    let report = json_of(
        dump(&[
            "--seed",
            "0",
            "--form",
            "acl",
            "--out",
            out.to_str().unwrap(),
        ])
        .args(rules),
    );
    assert_eq!(report["records"]["written"], 24);
    assert_eq!(report["records"]["whole"], 4 + 3 * 2);
    assert_eq!(report["files"], 9 + 4);

    let shown = json_of(opscope().arg("show").arg(&out).arg("--json"));
    assert_eq!(shown["statistics"].as_array().unwrap().len(), 9);
    let operators = shown["operators"].as_array().unwrap();
    let names: Vec<_> = operators
        .iter()
        .map(|o| o["op_name"].as_str().unwrap())
        .collect();
    let expected = [
        "/conv1/Conv",
        "/pool1/MaxPool",
        "/pool2/MaxPool",
        "/probs/Softmax",
    ];
    assert_eq!(names, expected);
    let (code, told, _) = text(opscope().arg("show").arg(&out));
    assert_eq!(code, 0);
    assert!(told.contains("statistics of 9 files\n\ntask"), "{told}");

    let arrays = dir.path().join("arrays");
    let converted = opscope()
        .args(["convert", "--json", "-d"])
        .arg(&out)
        .arg("-out")
        .arg(&arrays)
        .output();
    let converted: Value = serde_json::from_slice(&converted.unwrap().stdout).unwrap();
    assert_eq!(
        converted["failures"].as_array().map_or(0, Vec::len),
        0,
        "{converted}"
    );
    assert_eq!(files(&arrays).len(), 10);
}

#[test]
fn rows_of_all_and_arrays_of_a_few_are_read_back() {
    let dir = directory();
    let settings = json!({
        "op_debug_mode": 0, "dump_mode": 0, "path": dir.path().join("dump"), "net_name": "Digits",
        "iteration": "all", "saved_data": "tensor", "input_output": 0, "kernels": [],
        "support_device": [0],
    });
    let config = dir.path().join("data_dump.json");
    let file = json!({
        "common_dump_settings": settings, "e2e_dump_settings": { "enable": true, "trans_flag": true },
    });
    fs::write(&config, file.to_string()).unwrap();
    let rule = [
        "--tensors",
        "slot:/fc/Gemm/output.0",
        "--seed",
        "0",
        "--config",
    ];
    let report = json_of(dump(&rule).arg(&config));
    assert_eq!(report["records"]["whole"], 1);
    let shown = json_of(
        opscope()
            .arg("show")
            .arg("--json")
            .arg(dir.path().join("dump")),
    );
    assert_eq!(shown["files"], 1, "{shown}");
    let rows = shown["statistics_rows"].as_u64().unwrap();
    assert_eq!(rows, report["records"]["written"].as_u64().unwrap());
    let arrays = dir.path().join("arrays");
    let (code, _, errors) = text(
        opscope()
            .args(["convert", "-d"])
            .arg(dir.path().join("dump"))
            .arg("-out")
            .arg(&arrays),
    );
    assert_eq!(code, 0, "{errors}");
    assert_eq!(files(&arrays).len(), 1);
}

#[test]
fn mistakes_are_explained() {
    let check = |more: &[&str], expected: &str| {
        let (code, _, errors) = text(dump(&["--seed", "0"]).args(more));
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains(expected), "{errors}");
    };
    check(
        &["--form", "acl", "--out", "x", "--tensors", "big"],
        "`big` is no rule",
    );
    check(
        &[
            "--form",
            "acl",
            "--out",
            "x",
            "--content",
            "statistics",
            "--tensors",
            "non-finite",
        ],
        "--content both",
    );
    check(&["--as", "float16", "--dry-run"], "pass `--out DIR`");
    check(&["--stats", "--dry-run"], "cannot be used with");
    check(
        &["--form", "acl", "--out", "/dev/null/x", "--dry-run"],
        "/dev/null/x",
    );
    let dir = directory();
    let out = dir.path().join("out");
    let more = [
        "--seed",
        "0",
        "--tensors",
        "name:/fc/gemm",
        "--form",
        "acl",
        "--out",
    ];
    let (code, _, errors) = text(dump(&more).arg(&out));
    assert_eq!(code, 0);
    assert!(
        errors.contains("`--tensors name:/fc/gemm` matches nothing"),
        "{errors}"
    );
}
