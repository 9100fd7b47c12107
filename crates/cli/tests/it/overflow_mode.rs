//! Overflow: what a run with `dump_debug` leaves, and what `--as` foretells.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{digits, dump_of_digits, model, opscope, text};
use serde_json::Value;

/// Runs the model that overflows in six ways, and returns the only step's directory.
fn dump_overflows(dir: &Path) -> std::path::PathBuf {
    let config = dir.join("acl.json");
    let dump_path = dir.join("dump");
    fs::create_dir(&dump_path).unwrap();
    let json = format!(r#"{{"dump": {{"dump_path": {dump_path:?}, "dump_debug": "on"}}}}"#);
    fs::write(&config, json).unwrap();
    let mut command = opscope();
    command.arg("dump").arg(model("overflow_six.onnx"));
    command.arg("--config").arg(&config);
    command
        .arg("--inputs")
        .arg(model("overflow_six.sample.npz"));
    let (code, _, errors) = text(&mut command);
    assert!(code <= 1, "{errors}");
    let time = fs::read_dir(&dump_path).unwrap().next().unwrap().unwrap();
    time.path().join("0/overflow_six/1/0")
}

#[test]
fn two_files_for_each_operator_that_overflows() {
    let dir = tempfile::tempdir().unwrap();
    let step = dump_overflows(dir.path());
    let mut tasks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in fs::read_dir(&step).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let fields: Vec<&str> = name.split('.').collect();
        let [op_type, op_name, task, "0", time] = fields[..] else {
            panic!("{name}");
        };
        assert_eq!(time.len(), 16, "{name}");
        let kind = match (op_type, op_name) {
            ("Opdebug", "Node_OpDebug") => {
                assert_eq!(entry.metadata().unwrap().len(), 2121);
                "record".to_owned()
            }
            _ => op_name.to_owned(),
        };
        tasks.entry(task.to_owned()).or_default().push(kind);
    }
    let names: Vec<Vec<String>> = tasks
        .into_values()
        .map(|mut kinds| {
            kinds.sort();
            kinds
        })
        .collect();
    let expected = [
        "_negate_Neg",
        "_count_Add",
        "_grow_Exp",
        "_to_byte_Cast",
        "_to_half_Cast",
        "_project_MatMul",
    ];
    assert_eq!(
        names,
        expected.map(|name| [name.to_owned(), "record".to_owned()])
    );
}

#[test]
fn every_record_is_joined_with_its_operator() {
    let dir = tempfile::tempdir().unwrap();
    let step = dump_overflows(dir.path());
    let mut command = opscope();
    command
        .arg("overflow")
        .arg("-d")
        .arg(&step)
        .args(["-n", "99", "--json"]);
    let (code, told, errors) = text(&mut command);
    assert_eq!(code, 1, "{errors}");
    let report: Value = serde_json::from_str(&told).unwrap();
    let mut found: Vec<(&str, u64)> = Vec::new();
    for shown in report["shown"].as_array().unwrap() {
        let core = &shown["record"]["AI Core"];
        assert_eq!(
            (&core["model_id"], &core["stream_id"]),
            (&1.into(), &0.into())
        );
        let name = shown["operator"]["op_name"].as_str().unwrap();
        found.push((name, core["status"].as_u64().unwrap()));
    }
    found.sort_unstable();
    let expected = [
        ("/count/Add", 0x10),
        ("/grow/Exp", 0x20),
        ("/negate/Neg", 0x08),
        ("/project/MatMul", 0x400),
        ("/to_byte/Cast", 0x80),
        ("/to_half/Cast", 0x100),
    ];
    assert_eq!(found, expected);
}

#[test]
fn nothing_is_written_without_an_overflow() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let config = path.join("acl.json");
    let dump_path = path.join("dump");
    fs::create_dir(&dump_path).unwrap();
    let json = format!(r#"{{"dump": {{"dump_path": {dump_path:?}, "dump_debug": "on"}}}}"#);
    fs::write(&config, json).unwrap();
    let mut command = dump_of_digits();
    command.args(["--config"]);
    let (code, _, errors) = text(command.arg(&config));
    assert_eq!(code, 0, "{errors}");
    let mut dirs = vec![dump_path];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            assert!(path.is_dir(), "{}", path.display());
            dirs.push(path);
        }
    }
}

fn ranges(more: &[&str]) -> (i32, String) {
    let mut command = opscope();
    command.arg("dump").arg(model("overflow_six.onnx"));
    command
        .arg("--inputs")
        .arg(model("overflow_six.sample.npz"));
    let (code, told, errors) = text(command.args(more));
    let is_json = more.contains(&"--json");
    assert_eq!(
        errors,
        if is_json {
            ""
        } else {
            crate::support::ENGINE_LINE
        }
    );
    (code, told)
}

#[test]
fn what_would_overflow_in_another_dtype() {
    let (code, told) = ranges(&["--as", "float16", "--json"]);
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&told).unwrap();
    let half = &report["ranges"][0];
    // The input, the results of Exp, Mul and MatMul, and two constants.
    assert_eq!(
        (&half["as"], &half["tensors"]),
        (&"float16".into(), &6.into())
    );
    assert_eq!(half["tensors_overflow"], 2);
    let first = &half["first_overflow"];
    assert_eq!(
        (&first["op_name"], &first["slot"]),
        (&"/scale/Mul".into(), &"output.0".into())
    );
    assert_eq!(
        (&first["overflow"], &first["elements"]),
        (&1.into(), &4.into())
    );
    let largest = serde_json::json!({"value": 100_000.0, "index": [0, 2]});
    assert_eq!(first["largest"], largest);
}

#[test]
fn a_dtype_that_is_wide_enough() {
    let (code, told) = ranges(&["--as", "bfloat16"]);
    assert_eq!(code, 0, "{told}");
    assert!(
        told.contains("as bfloat16       nothing overflows in 6 tensors"),
        "{told}"
    );
    let (code, told) = ranges(&["--as", "bfloat16", "--as", "float8_e4m3", "--stats"]);
    assert_eq!(code, 1, "{told}");
    // The float16 result of the cast is wider than this dtype, too.
    let line = "as float8_e4m3fn  4 of 7 tensors overflow, the first is Mul `/scale/Mul` input.1, step 0: 1 of 1 element";
    assert!(told.contains(line), "{told}");
}

#[test]
fn small_losses_are_one_line() {
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command.arg("--input");
    command.arg(format!("image={}", digits("images.npy").display()));
    let (code, printed, errors) = text(command.args(["--as", "float16"]));
    assert_eq!(code, 0, "{errors}");
    let line = "as float16        nothing overflows in 16 tensors; 2 lose small values: 5 elements to \
                zero, 82 to subnormal (`--json` lists them)\n";
    assert!(printed.contains(line), "{printed}");
    assert!(printed.starts_with("model"), "no table: {printed}");
    let (code, printed) = ranges(&["--as", "float8_e5m2"]);
    assert_eq!(code, 1);
    let table = printed.lines().take_while(|line| !line.is_empty());
    for row in table.skip(1) {
        let n_overflow = row.split_whitespace().nth_back(4).unwrap();
        assert_ne!(n_overflow, "0", "{row}");
    }
}
