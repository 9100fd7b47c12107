//! The commands on directories of named arrays; no engine is needed.

use std::fs;
use std::path::Path;

use crate::support::{json, opscope, text};
use opscope_store::file_format::npy;
use opscope_store::file_format::safetensors::{NamedTensor, encode};
use opscope_tensor::{DType, Shape};

fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// A chain of two layers in a file for each step; one value of the second layer is another.
fn dump(dir: &Path, last: f32) {
    for step in ["step_0", "step_1"] {
        let dir = dir.join(step);
        fs::create_dir_all(&dir).unwrap();
        let shape = Shape::new([3]).unwrap();
        let values = [
            ("conv1/input.0", floats(&[1.0, 2.0, 3.0])),
            ("conv1/output.0", floats(&[2.0, 4.0, 6.0])),
            ("layer1.0.relu", floats(&[2.0, 4.0, last])),
        ];
        let tensors: Vec<_> = values
            .iter()
            .map(|(name, bytes)| NamedTensor {
                name: (*name).to_owned(),
                dtype: DType::F32,
                shape: shape.clone(),
                bytes,
            })
            .collect();
        let (header, data) = encode(&[], &tensors).unwrap();
        let file = [&header[..], &data.concat()].concat();
        fs::write(dir.join("acts.safetensors"), file).unwrap();
        let mut array = npy::encode_header(DType::F32, &shape).unwrap();
        array.extend(floats(&[0.5, 0.25, 0.25]));
        fs::write(dir.join("logits.output.0.npy"), array).unwrap();
    }
}

#[test]
fn operators_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    dump(dir.path(), 6.0);
    let shown = json(opscope().arg("show").arg(dir.path()).arg("--json"));
    assert_eq!(
        (&shown["files"], &shown["errors"]),
        (&4.into(), &serde_json::json!([]))
    );
    let operators = shown["operators"].as_array().unwrap();
    let counts: Vec<_> = operators
        .iter()
        .map(|one| {
            (
                one["op_name"].as_str().unwrap(),
                &one["inputs"],
                &one["outputs"],
            )
        })
        .collect();
    let (zero, two) = (&serde_json::json!(0), &serde_json::json!(2));
    assert_eq!(
        counts,
        [
            ("conv1", two, two),
            ("layer1.0.relu", zero, two),
            ("logits", zero, two)
        ]
    );
    let file = dir.path().join("step_0/acts.safetensors");
    let shown = json(opscope().arg("show").arg(&file).arg("--json"));
    assert_eq!(
        (&shown["format"], &shown["tensors"][2]["slot"]),
        (&"safetensors".into(), &"layer1.0.relu".into())
    );
    assert_eq!(shown["tensors"][2]["stats"]["max"], 6.0);
}

#[test]
fn two_dumps_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let [target, golden] = ["target", "golden"].map(|name| dir.path().join(name));
    dump(&target, 7.5);
    dump(&golden, 6.0);
    let compare = |a: &Path, b: &Path| text(opscope().arg("compare").arg(a).arg(b));
    let (code, told, errors) = compare(&golden, &golden);
    assert_eq!(code, 0, "{told}{errors}");
    let (code, told, errors) = compare(&target, &golden);
    assert_eq!(code, 1, "{told}{errors}");
    assert!(told.contains("layer1.0.relu"), "{told}");
}

#[test]
fn every_tensor_is_converted() {
    let dir = tempfile::tempdir().unwrap();
    let dump_dir = dir.path().join("dump");
    dump(&dump_dir, 6.0);
    let out = dir.path().join("out");
    let mut command = opscope();
    command
        .args(["convert", "-t", "txt", "--json", "-d"])
        .arg(&dump_dir);
    let report = json(command.arg("--out").arg(&out));
    assert_eq!(
        (&report["arrays"], &report["passed_over"]),
        (&8.into(), &serde_json::json!([]))
    );
    let mut names: Vec<_> = fs::read_dir(out.join("step_1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "acts.safetensors.conv1_input.0.txt",
            "acts.safetensors.conv1_output.0.txt",
            "acts.safetensors.layer1.0.relu.txt",
            "logits.output.0.npy.output.0.txt",
        ]
    );
}
