//! The commands on dumps of msProbe; no engine is needed.

use std::path::{Path, PathBuf};

use crate::support::{json, opscope, text};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../store/tests/golden/msprobe")
        .join(name)
}

#[test]
fn a_dump_is_shown() {
    let shown = json(opscope().arg("show").arg(golden("tensor_l0")).arg("--json"));
    assert!(
        shown.to_string().contains("Module.layer1.Linear.forward.0"),
        "{shown}"
    );
}

#[test]
fn a_changed_layer_is_found() {
    let sound = golden("statistics_mix");
    let compare = |other: &Path| text(opscope().arg("compare").arg(&sound).arg(other));
    let (code, told, errors) = compare(&sound);
    assert_eq!(code, 0, "{told}{errors}");
    let (code, told, errors) = compare(&golden("statistics_mix_bent"));
    assert_eq!(code, 1, "{told}{errors}");
    // The function inside of the layer comes first, with the weight that was changed.
    let first = "difference at linear `Functional.linear.1.forward` input.1";
    assert!(told.contains(first), "{told}");
    // Names are cut to the width of a terminal, but not in JSON.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("differences.json");
    let mut command = opscope();
    command
        .arg("compare")
        .arg(&sound)
        .arg(golden("statistics_mix_bent"));
    text(command.arg("--json").arg(&file));
    let differences = std::fs::read_to_string(file).unwrap();
    assert!(
        differences.contains("Module.blocks.0.Linear.forward.0"),
        "{differences}"
    );
}
