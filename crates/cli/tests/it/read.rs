//! `opscope show` and `opscope convert`.

use std::fs;
use std::path::PathBuf;

use crate::support::{digits, json, opscope, text};

/// A dump of the digits example, and the directory of its only step.
fn dump() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .args(["--form", "acl", "--out"])
        .arg(dir.path().join("dump"));
    command
        .arg("--input")
        .arg(format!("image={}", digits("images.npy").display()))
        .arg("--json");
    let report = json(&mut command);
    let step_dir = PathBuf::from(report["dump_dirs"][0].as_str().unwrap());
    (dir, step_dir)
}

#[test]
fn a_directory_is_listed_in_execution_order() {
    let (dir, _) = dump();
    let listed = json(opscope().arg("show").arg(dir.path()).arg("--json"));
    let operators = listed["operators"].as_array().unwrap();
    let names: Vec<_> = operators
        .iter()
        .map(|op| op["op_name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..3], ["/conv1/Conv", "/conv1/Relu", "/pool1/MaxPool"]);
    assert_eq!((names.len(), operators[0]["inputs"].as_u64()), (9, Some(3)));
    let (code, told, _) = text(opscope().arg("show").arg(dir.path()));
    assert!(code == 0 && told.contains("9 operators, 9 files"), "{told}");
}

#[test]
fn a_file_is_shown_with_its_numbers() {
    let (_dir, step_dir) = dump();
    let is_softmax = |path: &PathBuf| path.to_string_lossy().contains("Softmax");
    let path = fs::read_dir(step_dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(is_softmax)
        .unwrap();
    let shown = json(opscope().arg("show").arg(&path).arg("--json"));
    assert_eq!(shown["op_name"], "/probs/Softmax");
    let output = &shown["tensors"][1];
    assert_eq!(
        (output["dtype"].as_str(), output["shape"].clone()),
        (Some("float32"), [16, 10].into())
    );
    assert!((output["stats"]["mean"].as_f64().unwrap() - 0.1).abs() < 1e-6);
    assert_eq!(output["first"].as_array().unwrap().len(), 8);
}

#[test]
fn converting_keeps_going_after_a_bad_file() {
    let (dir, step_dir) = dump();
    fs::write(step_dir.join("Add.bad.99.0.1700000000000000"), "short").unwrap();
    let out = dir.path().join("npy");
    let mut command = opscope();
    // The vendor's spelling of the option.
    command
        .arg("convert")
        .arg("-d")
        .arg(&step_dir)
        .arg("-out")
        .arg(&out);
    let (code, told, errors) = text(&mut command);
    assert_eq!(code, 4);
    assert!(
        told.contains("9 of 10 files converted to 24 arrays"),
        "{told}"
    );
    assert!(
        errors.contains("Add.bad") && errors.contains("byte 0"),
        "{errors}"
    );
    assert_eq!(fs::read_dir(&out).unwrap().count(), 24);
}

#[test]
fn what_is_no_dump_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent");
    for path in [dir.path(), &absent, &digits("digits_cnn.onnx")] {
        let (code, _, errors) = text(opscope().arg("show").arg(path));
        assert!(
            code == 3 && !errors.is_empty(),
            "{}: {code} {errors}",
            path.display()
        );
        let out = dir.path().join("out");
        let (code, _, errors) = text(
            opscope()
                .arg("convert")
                .arg("-d")
                .arg(path)
                .arg("-out")
                .arg(out),
        );
        assert!(
            code == 3 && !errors.is_empty(),
            "{}: {code} {errors}",
            path.display()
        );
    }
}

#[test]
fn help_shows_examples() {
    for command in ["dump", "convert", "show", "overflow"] {
        let (code, told, _) = text(opscope().args([command, "--help"]));
        assert!(code == 0 && told.contains("Examples:"), "{told}");
    }
}
