//! The commands on dumps of SGLang; no engine is needed.

use std::path::{Path, PathBuf};

use crate::support::{json, opscope, text};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../store/tests/golden/sglang")
        .join(name)
}

#[test]
fn a_dump_is_shown() {
    let shown = json(opscope().arg("show").arg(golden("tagged")).arg("--json"));
    let operators = shown["operators"].as_array().unwrap().iter();
    let names: Vec<_> = operators
        .map(|one| one["op_name"].as_str().unwrap())
        .collect();
    let layer = "attention___phase=decode___layer_id=1";
    assert!(names.contains(&layer), "{names:?}");
    let passed_over = shown["passed_over"].as_array().unwrap();
    assert!(passed_over.iter().all(|one| one["reason"] == "plain_value"));
    assert_eq!(passed_over.len(), 3);
    // The number of a file is that of the values before it.
    let files = std::fs::read_dir(golden("tagged/dump_20240102_030405_006007")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let is_hidden = |path: &PathBuf| path.to_str().unwrap().contains("name=hidden___");
    let file = files.find(is_hidden).unwrap();
    let shown = json(opscope().arg("show").arg(file).arg("--json"));
    assert_eq!(shown["attrs"]["meta.dims"], "t h[tp] # packed tokens");
}

#[test]
fn a_changed_module_is_found_and_no_other() {
    let sound = golden("modules");
    let compare =
        |target: &Path, golden: &Path| text(opscope().arg("compare").arg(target).arg(golden));
    let (code, told, errors) = compare(&sound, &sound);
    assert_eq!(code, 0, "{told}{errors}");
    let bent = golden("modules_bent");
    for (target, golden) in [(&sound, &bent), (&bent, &sound)] {
        let (code, told, errors) = compare(target, golden);
        assert_eq!(code, 1, "{told}{errors}");
        let first = "FAIL: cause at `model.layers.1.mlp` output.0: ";
        assert!(told.starts_with(first), "{told}");
        let accused = told.lines().filter(|line| line.starts_with('>'));
        assert!(
            accused
                .clone()
                .all(|line| line.contains(" model.layers.1.mlp ")),
            "{told}"
        );
        assert!(accused.count() > 0, "{told}");
    }
}

#[test]
fn a_dump_is_converted_without_a_loss() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["modules", "plain", "passes"] {
        let out = dir.path().join(name);
        let mut command = opscope();
        command
            .args(["convert", "--form", "native", "-d"])
            .arg(golden(name));
        let (code, told, errors) = text(command.arg("--out").arg(&out));
        assert_eq!(code, 0, "{told}{errors}");
        let (code, told, errors) = text(opscope().arg("compare").arg(golden(name)).arg(&out));
        assert_eq!(code, 0, "{name}: {told}{errors}");
        assert!(told.contains("(100.0%), golden"), "{name}: {told}");
    }
}
