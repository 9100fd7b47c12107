//! The commands on logs of PyTorch's `DebugMode`; no engine is needed.

use std::path::{Path, PathBuf};

use crate::support::{json, opscope, text};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../store/tests/golden/debug_mode")
        .join(name)
}

fn compare(target: &Path, golden: &Path) -> (i32, String) {
    let (code, told, errors) = text(opscope().arg("compare").arg(target).arg(golden));
    (code, format!("{told}{errors}"))
}

#[test]
fn a_log_is_shown() {
    for form in ["json", "txt"] {
        let file = golden(&format!("norm.{form}"));
        let shown = json(opscope().arg("show").arg(&file).arg("--json"));
        let operators = shown["operators"].as_array().unwrap();
        let addmm = operators
            .iter()
            .find(|one| one["op_name"] == "addmm_1")
            .unwrap();
        assert_eq!(addmm["op_type"], "aten::addmm");
        assert_eq!(
            (&addmm["inputs"], &addmm["outputs"]),
            (&3.into(), &1.into())
        );
        let (code, told, errors) = text(opscope().arg("show").arg(&file));
        assert_eq!(code, 0, "{told}{errors}");
    }
}

#[test]
fn the_first_operator_with_another_hash_is_named() {
    // The weight itself differs where its transpose reads it.
    // Only outputs have hashes of xor, and they decide; another one of floats is a warning.
    let cases = [("norm", "t_1", 0, 1), ("xor", "t_1", 0, 0)];
    for (case, first, same_code, other_code) in cases {
        for form in ["json", "txt"] {
            let file = |suffix: &str| golden(&format!("{case}{suffix}.{form}"));
            let (code, told) = compare(&file(""), &file(""));
            assert_eq!(code, same_code, "{case}.{form}: {told}");
            let (code, told) = compare(&file("_bent"), &file(""));
            assert_eq!(code, other_code, "{case}.{form}: {told}");
            let first = format!("difference at aten::t `{first}` ");
            let head = told.lines().next().unwrap();
            assert!(head.contains(&first), "{case}.{form}: {told}");
        }
        let both = ["json", "txt"].map(|form| golden(&format!("{case}.{form}")));
        let (code, told) = compare(&both[0], &both[1]);
        assert_eq!(code, same_code, "{case}: {told}");
    }
}

#[test]
fn hashes_of_other_kinds_are_not_compared() {
    let (code, told) = compare(&golden("norm.json"), &golden("xor.json"));
    assert_ne!(code, 0, "{told}");
    assert!(told.contains("no_evidence"), "{told}");
}

#[test]
fn damaged_logs_have_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read(golden("norm.json")).unwrap();
    let path = dir.path().join("cut.json");
    std::fs::write(&path, &whole[..5_000]).unwrap();
    let (code, told, errors) = text(opscope().arg("show").arg(&path));
    assert_eq!(code, 3, "{told}{errors}");
    assert!(
        errors.contains("cut.json") && errors.contains("byte 4999"),
        "{errors}"
    );
}

#[test]
fn logs_have_nothing_to_convert() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    for form in ["json", "txt"] {
        let mut command = opscope();
        command.arg("convert").arg("-d");
        let log = golden(&format!("norm.{form}"));
        let (code, told, errors) = text(command.arg(log).arg("--out").arg(&out));
        assert_eq!(code, 3, "{told}{errors}");
        assert!(
            errors.contains("skipped: 1 table of statistics"),
            "{errors}"
        );
        assert!(!out.exists());
    }
}
