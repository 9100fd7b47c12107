//! `opscope gears`, and the engine that is taken where the choice is open.
#![cfg(feature = "tract")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{digits, opscope, text};
use opscope_engine::single_operator::read_json;
use serde_json::{Value, json};

/// Writes a model of one operator.
fn one_operator(dir: &Path, name: &str, text: &str) -> PathBuf {
    let operator = read_json(text).unwrap().remove(0);
    let path = dir.join(name);
    fs::write(&path, operator.to_onnx().unwrap()).unwrap();
    path
}

fn gears(model: &Path, options: &str) -> (i32, String, String) {
    text(
        opscope()
            .arg("gears")
            .arg(model)
            .args(options.split_whitespace()),
    )
}

fn written(model: &Path) -> Value {
    let path = format!("{}.gears.json", model.display());
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn they_are_written_and_printed() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("digits.onnx");
    fs::copy(digits("digits_cnn.onnx"), &model).unwrap();
    let (code, told, errors) = gears(&model, "--batch 1,4");
    assert_eq!(code, 0, "{errors}");
    let table = "image [1,1,8,8] -> probs [1,10]\nimage [4,1,8,8] -> probs [4,10]\n";
    assert_eq!(told, table);
    let expected = json!({
        "version": 1,
        "kind": "batch",
        "inputs": [{"name": "image", "dims": [-1, 1, 8, 8]}],
        "outputs": [{"name": "probs", "dtype": "float32"}],
        "gears": [{"values": [1], "outputs": [[1, 10]]}, {"values": [4], "outputs": [[4, 10]]}],
    });
    assert_eq!(written(&model), expected);
    let (code, told, errors) = gears(&model, "");
    assert_eq!((code, &*told, &*errors), (0, table, ""));
    let (_, told, _) = gears(&model, "--json");
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), expected);

    let relu =
        r#"{"op": "Relu", "inputs": [{"name": "x", "type": "float", "shape": [-1, 2, -1, -1]}]}"#;
    let model = one_operator(dir.path(), "relu.onnx", relu);
    let (code, told, errors) = gears(&model, "--shape x:1,2,-1,-1 --size 4,6;8,3");
    assert_eq!(code, 0, "{errors}");
    assert_eq!(
        told,
        "x [1,2,4,6] -> y0 [1,2,4,6]\nx [1,2,8,3] -> y0 [1,2,8,3]\n"
    );
    let (code, told, errors) = gears(&model, "--dims 1,4,6;2,8,3");
    assert_eq!(code, 0, "{errors}");
    assert_eq!(
        told,
        "x [1,2,4,6] -> y0 [1,2,4,6]\nx [2,2,8,3] -> y0 [2,2,8,3]\n"
    );
    // How many elements are not zero follows from their values.
    let nonzero = r#"{"op": "NonZero", "inputs": [{"name": "x", "type": "float", "shape": [-1]}],
        "outputs": [{"type": "int64"}]}"#;
    let model = one_operator(dir.path(), "nonzero.onnx", nonzero);
    let (code, told, errors) = gears(&model, "--batch 3");
    assert_eq!((code, &*told), (0, "x [3] -> y0 [1,-1]\n"), "{errors}");
}

#[test]
fn mistakes() {
    let dir = tempfile::tempdir().unwrap();
    let relu =
        r#"{"op": "Relu", "inputs": [{"name": "x", "type": "float", "shape": [-1, 2, -1, -1]}]}"#;
    let model = one_operator(dir.path(), "relu.onnx", relu);
    let nothing = "`--batch`, `--size`, `--dims` or `--insert-op-conf` writes it";
    let wrong = [
        (
            "--batch 1,2",
            "axis 2 of input `x`, [?,2,?,?], is dynamic, and no gear sets it",
        ),
        ("--batch 1,2 --size 1,1", "cannot be used with"),
        ("--batch one", "--batch: expected numbers"),
        (
            "--shape x:-1,2,8,8 --batch 0",
            "values of gear 0 of 1 and more",
        ),
        ("--shape x:-1,2,8,8 --batch 3,3", "gears that differ"),
        (
            "--shape x:-1,3,8,8 --batch 3",
            "input `x` takes shape [?,2,?,?]",
        ),
        ("--shape y:-1 --batch 3", "the model's inputs are x"),
        ("--shape x:a --batch 3", "expected NAME:-1,3,224,224"),
        (
            "--shape x:1,2,3,4 --batch 3",
            "an input with a dimension of -1",
        ),
        ("--dims 1,2", "3 values of gear 0"),
        (
            "--shape x:-1,2,8,8 --batch 9000000000000000000",
            "input `x`",
        ),
    ];
    let wrong = wrong.map(|(options, part)| (options, 2, part));
    for (options, code, part) in [("", 3, nothing)].into_iter().chain(wrong) {
        let (found, told, errors) = gears(&model, options);
        assert_eq!((found, &*told), (code, ""), "{options}: {errors}");
        assert!(errors.contains(part), "{options}: {errors}");
    }
    let path = dir.path().join("relu.onnx.gears.json");
    assert!(!path.exists());
    fs::write(&path, "{\"version\": 1,\n \"kind\": 7}").unwrap();
    let (code, _, errors) = gears(&model, "");
    assert_eq!(code, 3);
    assert!(
        errors.contains("at byte") && errors.contains("the gears of a model"),
        "{errors}"
    );
}

/// The library of the tests replaces one that is found.
#[test]
fn an_open_choice_takes_the_engine_that_can() {
    let Some(library) = std::env::var_os("OPSCOPE_ENGINE_LIB") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let run = |model: &Path, config: &str, engine: &str| {
        let out = dir.path().join("out");
        let _ = fs::remove_dir_all(&out);
        fs::create_dir(&out).unwrap();
        let path = dir.path().join("acl.json");
        fs::write(&path, config.replace('@', out.to_str().unwrap())).unwrap();
        let mut command = opscope();
        command
            .env("ORT_DYLIB_PATH", &library)
            .arg("dump")
            .arg(model);
        command.args([
            "--seed",
            "0",
            "--shape",
            "image:1,1,8,8",
            "--engine",
            engine,
        ]);
        text(command.arg("--config").arg(path))
    };
    let watch = r#"{"dump": {"dump_path": "@", "dump_scene": "watcher",
        "dump_list": [{"layer": ["/fc/Gemm"], "watcher_nodes": ["/conv1/Conv"]}]}}"#;
    let values = r#"{"dump": {"dump_path": "@", "dump_list": [{}]}}"#;
    let model = digits("digits_cnn.onnx");
    let (code, _, errors) = run(&model, watch, "auto");
    assert_eq!(code, 0, "{errors}");
    let taken = "opscope: engine: tract 0.23.9: ONNX Runtime uses the memory of values again";
    assert!(errors.contains(taken), "{errors}");
    let (code, _, errors) = run(&model, values, "auto");
    assert_eq!(code, 0, "{errors}");
    assert!(!errors.contains("engine: tract"), "{errors}");
    // If the user names the engine, the error says what it lacks.
    let (code, _, errors) = run(&model, watch, "onnxruntime");
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("tract can"), "{errors}");

    // The library has no kernel for this type.
    let arc = r#"{"op": "Acos", "inputs": [{"name": "image", "type": "float64", "shape": [1, 1, 8, 8]}]}"#;
    let model = one_operator(dir.path(), "arc.onnx", arc);
    let (code, _, errors) = run(&model, values, "auto");
    assert_eq!(code, 0, "{errors}");
    assert!(
        errors.contains("opscope: engine: tract 0.23.9: "),
        "{errors}"
    );
    assert_eq!(run(&model, values, "onnxruntime").0, 3);
    // A damaged file is not handed on to the other engine.
    let damaged = dir.path().join("damaged.onnx");
    fs::write(&damaged, "no model").unwrap();
    let (code, _, errors) = run(&damaged, values, "auto");
    assert_eq!(code, 3);
    assert!(!errors.contains("engine: tract"), "{errors}");
}
