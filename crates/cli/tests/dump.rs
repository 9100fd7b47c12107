//! `opscope dump`: what lands on disk, and how each mistake is answered.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use support::{digits, json, model, opscope, text};

fn dump_digits(out: &Path, more: &[&str]) -> serde_json::Value {
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .args(["--seed", "0", "--json"]);
    command
        .args(["--shape", "image:2,1,8,8", "--out"])
        .arg(out)
        .args(more);
    json(&mut command)
}

#[test]
fn a_dump_is_private_and_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/dump");
    let report = dump_digits(&out, &["--steps", "3"]);
    assert_eq!(report["operators_seen"], 27);
    assert_eq!(report["records"]["written"], 72);
    assert_eq!(report["dump_dirs"].as_array().unwrap().len(), 3);
    let mut n_bytes = 0;
    let mut dirs = vec![out.clone()];
    while let Some(dir) = dirs.pop() {
        assert_eq!(
            fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
            0o700
        );
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            if entry.path().is_dir() {
                dirs.push(entry.path());
                continue;
            }
            assert_eq!(
                entry.metadata().unwrap().permissions().mode() & 0o777,
                0o600
            );
            n_bytes += entry.metadata().unwrap().len();
        }
    }
    assert_eq!(report["bytes_written"], n_bytes);
}

#[test]
fn permissions_can_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("dump");
    dump_digits(&out, &["--dir-mode", "750", "--file-mode", "640"]);
    assert_eq!(
        fs::metadata(&out).unwrap().permissions().mode() & 0o777,
        0o750
    );
}

#[test]
fn two_dumps_in_one_second_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let first = dump_digits(dir.path(), &["--no-baseline"]);
    let second = dump_digits(dir.path(), &["--no-baseline"]);
    assert_ne!(first["dump_dirs"], second["dump_dirs"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn statistics_need_no_disk() {
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .args(["--stats", "--json", "--seed", "3"]);
    command.args(["--shape", "image:1,1,8,8"]);
    let report = json(&mut command);
    let rows = report["stats"].as_array().unwrap();
    assert_eq!(rows.len(), 24);
    let softmax = rows.last().unwrap();
    assert_eq!(
        (softmax["op_type"].as_str(), softmax["slot"].as_str()),
        (Some("Softmax"), Some("output.0"))
    );
    let mean = softmax["stats"]["mean"].as_f64().unwrap();
    assert!(
        (mean - 0.1).abs() < 1e-6,
        "probabilities of ten classes have the mean 0.1, not {mean}"
    );
}

#[test]
fn a_configuration_that_asks_for_nothing_dumps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("acl.json");
    let dump_path = dir.path().join("dump");
    fs::create_dir(&dump_path).unwrap();
    fs::write(
        &config,
        format!(r#"{{"dump": {{"dump_path": {dump_path:?}}}}}"#),
    )
    .unwrap();
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .arg("--config")
        .arg(&config);
    command.args(["--seed", "0", "--shape", "image:1,1,8,8"]);
    let (code, _, errors) = text(&mut command);
    assert_eq!(code, 0);
    assert!(errors.contains("warning: nothing is dumped"), "{errors}");
    assert_eq!(fs::read_dir(&dump_path).unwrap().count(), 0);
}

#[test]
fn names_that_match_nothing_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("acl.json");
    let path = dir.path();
    let cases = [
        (
            r#"{"model_name": "other"}"#,
            "selects other models only; this one is `digits_cnn`",
        ),
        (
            r#"{"layer": ["conv1/conv"]}"#,
            "no operator `conv1/conv`; there is `/conv1/Conv`",
        ),
    ];
    for (entry, part) in cases {
        let text_of = format!(r#"{{"dump": {{"dump_path": {path:?}, "dump_list": [{entry}]}}}}"#);
        fs::write(&config, text_of).unwrap();
        let mut command = opscope();
        command
            .arg("dump")
            .arg(digits("digits_cnn.onnx"))
            .arg("--config")
            .arg(&config);
        command.args(["--seed", "0", "--shape", "image:1,1,8,8"]);
        let (code, _, errors) = text(&mut command);
        assert!(code == 0 && errors.contains(part), "{errors}");
    }
}

/// An operator that fails ends the run; what came before it is kept and counted.
#[test]
fn a_run_that_fails_keeps_what_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let ids = dir.path().join("ids.bin");
    let out = dir.path().join("dump");
    fs::write(&ids, 1000_i64.to_le_bytes().repeat(4)).unwrap();
    let mut command = opscope();
    command
        .arg("dump")
        .arg(model("char_lm.onnx"))
        .arg("--out")
        .arg(&out);
    command
        .arg("--input")
        .arg(format!("ids={}", ids.display()))
        .args(["--shape", "ids:1,4"]);
    let (code, told, errors) = text(&mut command);
    assert_eq!(code, 4, "{errors}");
    assert!(
        errors.contains("operator `node_embedding` of type `Gather` failed"),
        "{errors}"
    );
    assert!(!errors.contains("stack backtrace"), "{errors}");
    assert!(told.contains("7 written, 3 dropped"), "{told}");
}

#[test]
fn every_mistake_gets_one_clear_error_and_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let digits_model = digits("digits_cnn.onnx").display().to_string();
    let whole = fs::read(&digits_model).unwrap();
    fs::write(at("truncated.onnx"), &whole[..whole.len() / 2]).unwrap();
    fs::write(at("text.onnx"), "this is no model").unwrap();
    fs::write(at("empty.onnx"), "").unwrap();
    fs::write(at("short.bin"), [0; 10]).unwrap();
    fs::write(at("broken.npy"), b"\x93NUMPY\x01\x00\x05\x00{}").unwrap();
    fs::write(at("broken.npz"), b"PK").unwrap();
    fs::write(at("broken.json"), "{\n \"dump\": {,}\n}").unwrap();
    fs::write(
        at("scene.json"),
        r#"{"dump": {"dump_path": ".", "dump_scene": "watcher"}}"#,
    )
    .unwrap();
    let labels = format!("image={}", digits("labels.npy").display());
    let images = format!("image={}", digits("images.npy").display());
    let out = at("out");
    let config_of = |name: &str| {
        vec![
            "--config".to_owned(),
            at(name),
            "--input".into(),
            images.clone(),
        ]
    };
    let owned = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    let cases: Vec<(String, Vec<String>, i32, &str)> = vec![
        (
            at("absent.onnx"),
            owned(&["--out", &out]),
            3,
            "cannot read the model",
        ),
        (
            at("truncated.onnx"),
            owned(&["--out", &out]),
            3,
            "it ends too early",
        ),
        (
            at("text.onnx"),
            owned(&["--out", &out]),
            3,
            "not a usable ONNX model",
        ),
        (at("empty.onnx"), owned(&["--out", &out]), 3, "it is empty"),
        (
            dir.path().display().to_string(),
            owned(&["--out", &out]),
            3,
            "not a regular file",
        ),
        (digits_model.clone(), vec![], 2, "nothing to do"),
        (
            digits_model.clone(),
            owned(&["--out", &out]),
            2,
            "input `image` (float32 [batch,1,8,8]) was not given",
        ),
        (
            digits_model.clone(),
            owned(&["--out", &out, "--seed", "1"]),
            2,
            "--shape image:1,1,8,8",
        ),
        (
            digits_model.clone(),
            owned(&["--out", &out, "--input", &labels]),
            2,
            "takes float32, found int64",
        ),
        (
            digits_model.clone(),
            owned(&["--out", &out, "--seed", "1", "--shape", "image:3"]),
            2,
            "takes shape [batch,1,8,8], found [3]",
        ),
        (
            digits_model.clone(),
            owned(&["--out", &out, "--seed", "1", "--shape", "x:3"]),
            2,
            "no input `x`",
        ),
        (
            digits_model.clone(),
            owned(&["--out", &out, "--input", &images.replace("image=", "x=")]),
            2,
            "no input `x`; its inputs are `image`",
        ),
        (
            digits_model.clone(),
            owned(&[
                "--out",
                &out,
                "--input",
                &format!("image={}", at("absent.npy")),
            ]),
            3,
            "cannot open",
        ),
        (
            digits_model.clone(),
            owned(&[
                "--out",
                &out,
                "--input",
                &format!("image={}", at("broken.npy")),
            ]),
            3,
            "byte 10",
        ),
        (
            digits_model.clone(),
            owned(&["--out", &out, "--inputs", &at("broken.npz")]),
            3,
            "not a valid npz file",
        ),
        (
            digits_model.clone(),
            owned(&[
                "--out",
                &out,
                "--input",
                &format!("image={}", at("short.bin")),
                "--shape",
                "image:1,1,8,8",
            ]),
            2,
            "takes 256 bytes, found 10",
        ),
        (
            digits_model.clone(),
            owned(&["--out", "/proc/opscope", "--input", &images]),
            2,
            "cannot create the directory `/proc/opscope`",
        ),
        (
            digits_model.clone(),
            owned(&["--out", &at("text.onnx"), "--input", &images]),
            2,
            "cannot create the directory",
        ),
        (
            digits_model.clone(),
            config_of("absent.json"),
            2,
            "cannot read the configuration",
        ),
        (
            digits_model.clone(),
            config_of("broken.json"),
            2,
            "broken.json:2:11: error EP0004: not valid JSON",
        ),
        (
            digits_model.clone(),
            config_of("scene.json"),
            2,
            "`/dump/dump_scene`: is not supported yet",
        ),
        (
            model("loop.onnx").display().to_string(),
            owned(&["--out", &out, "--seed", "0"]),
            3,
            "cannot run operator `/Loop` of type `Loop`",
        ),
    ];
    for (path, args, code, part) in cases {
        let mut command = opscope();
        command.arg("dump").arg(&path).args(&args);
        let (found, told, errors) = text(&mut command);
        assert!(errors.contains(part), "{path} {args:?}: {errors}");
        assert_eq!(found, code, "{path} {args:?}: {errors}");
        assert!(told.is_empty(), "{told}");
    }
    assert!(
        !Path::new(&out).exists(),
        "a refused run leaves nothing behind"
    );
}
