//! Which engine runs a model, what is said of it, and what is wrong with another one.
#![cfg(feature = "tract")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{digits, model, opscope, text};
use serde_json::{Value, json};

/// A directory with an environment of Python whose library of ONNX Runtime is none, and one with
/// nothing in it.
struct Places(tempfile::TempDir);

impl Places {
    fn new() -> Places {
        let dir = tempfile::tempdir().unwrap();
        let capi = dir
            .path()
            .join("venv/lib/python3.11/site-packages/onnxruntime/capi");
        fs::create_dir_all(&capi).unwrap();
        fs::write(capi.join("libonnxruntime.so.1.99.0"), "no library").unwrap();
        fs::create_dir(dir.path().join("empty")).unwrap();
        Places(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `dump` of the digits model into `out`, with these variables and options, in which `@` is
    /// this directory.
    fn dump(&self, variables: &[(&str, &str)], options: &str) -> Command {
        let root = self.0.path().display().to_string();
        let mut command = opscope();
        // No other environment is active.
        for name in [
            "ORT_DYLIB_PATH",
            "CONDA_PREFIX",
            "VIRTUAL_ENV",
            "OPSCOPE_ENGINE",
        ] {
            command.env_remove(name);
        }
        for (name, value) in variables {
            command.env(name, value.replace('@', &root));
        }
        command.arg("dump").arg(digits("digits_cnn.onnx"));
        command.args(["--seed", "0", "--shape", "image:1,1,8,8", "--no-baseline"]);
        command
            .args(["--form", "acl", "--out"])
            .arg(self.path("out"));
        let options = options.split_whitespace();
        command.args(options.map(|option| option.replace('@', &root)));
        command
    }

    /// The record of the only run.
    fn record(&self) -> Value {
        let mut times = fs::read_dir(self.path("out")).unwrap();
        let time = times.next().unwrap().unwrap().path();
        assert!(times.next().is_none());
        let bytes = fs::read(time.join(".opscope/run.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

const TRACT: &str = "tract 0.23.9, as asked for";

#[test]
fn the_engine_is_told() {
    for (variables, options) in [
        (&[("OPSCOPE_ENGINE", "tract")][..], ""),
        (&[("OPSCOPE_ENGINE", "onnxruntime")][..], "--engine tract"),
        (
            &[
                ("VIRTUAL_ENV", "@/venv"),
                ("OPSCOPE_ENGINE_LIB", "@/absent"),
            ][..],
            "--engine tract",
        ),
    ] {
        let places = Places::new();
        let (code, told, errors) = text(&mut places.dump(variables, options));
        assert_eq!(code, 0, "{errors}");
        assert_eq!(errors, format!("opscope: engine: {TRACT}\n"));
        assert!(told.contains("(tract, 1 step)"), "{told}");
        let (_, told, _) = text(opscope().arg("show").arg(places.path("out")));
        assert!(
            told.contains("run by tract 0.23.9, the original graph\n"),
            "{told}"
        );
    }
}

#[test]
fn reports_have_the_engine() {
    let places = Places::new();
    for more in ["--dry-run", ""] {
        let options = format!("--engine tract --json {more}");
        let mut command = places.dump(&[], &options);
        let (code, told, errors) = text(&mut command);
        assert_eq!((code, errors.as_str()), (0, ""));
        let report: Value = serde_json::from_str(&told).unwrap();
        let expected = [
            ("engine", json!("tract")),
            ("engine_version", json!("0.23.9")),
            ("engine_library", Value::Null),
            ("engine_reason", json!(TRACT)),
            ("engine_graph", json!("original")),
            ("engine_providers", json!([])),
        ];
        for (key, value) in expected {
            assert_eq!(report[key], value, "{key} {more}");
        }
    }
    let record = places.record();
    assert_eq!(
        record["engine"],
        json!({"name": "tract", "version": "0.23.9"})
    );
    assert_eq!(record["engine_graph"], "original");
    assert_eq!(record["engine_library"], Value::Null);
    assert_eq!(record["engine_providers"], json!([]));
}

#[cfg(all(target_os = "linux", feature = "onnxruntime"))]
#[test]
fn a_library_that_cannot_be_used_is_told() {
    let found = "venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.99.0";
    for variables in [
        &[("VIRTUAL_ENV", "@/venv")][..],
        &[("VIRTUAL_ENV", "@/venv"), ("OPSCOPE_ENGINE", "auto")][..],
        &[("ORT_DYLIB_PATH", "@/venv")][..],
    ] {
        let places = Places::new();
        let (code, told, errors) = text(&mut places.dump(variables, ""));
        assert_eq!(code, 0, "{errors}");
        let warning = format!(
            "opscope: warning: the library `{}`, ",
            places.path(found).display()
        );
        assert!(errors.starts_with(&warning), "{errors}");
        let line =
            "opscope: engine: tract 0.23.9: the ONNX Runtime that was found cannot be used\n";
        assert!(errors.ends_with(line), "{errors}");
        assert!(told.contains("(tract, 1 step)"), "{told}");
        // A request for it never falls back to another.
        let (code, told, errors) = text(&mut places.dump(variables, "--engine onnxruntime"));
        assert_eq!((code, told.as_str()), (2, ""));
        assert!(
            errors.starts_with(&warning.replace("warning: ", "")),
            "{errors}"
        );
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn mistakes() {
    let places = Places::new();
    let check = |variables: &[(&str, &str)], options: &str, part: &str| {
        let (code, told, errors) = text(&mut places.dump(variables, options));
        assert_eq!(
            (code, told.as_str()),
            (2, ""),
            "{variables:?} {options}: {errors}"
        );
        assert!(errors.contains(part), "{variables:?} {options}: {errors}");
        let is_left = places.path("out").exists();
        assert!(!is_left, "{options} left something behind");
    };
    let words = "expected auto, tract or onnxruntime";
    check(
        &[("OPSCOPE_ENGINE", "ort")],
        "",
        &format!("OPSCOPE_ENGINE is `ort`: {words}"),
    );
    check(
        &[],
        "--engine ort",
        "[possible values: auto, tract, onnxruntime]",
    );
    check(&[], "--graph fast", "[possible values: original, executed]");
    check(
        &[],
        "--engine tract --engine-lib @/venv",
        "--engine selects tract",
    );
    for option in ["--graph executed", "--provider cuda"] {
        let part = format!("{option} needs ONNX Runtime, but the engine is tract: {TRACT}");
        check(&[], &format!("--engine tract {option}"), &part);
    }
    if !cfg!(feature = "onnxruntime") {
        let part = "this build has no ONNX Runtime: build it with `--features onnxruntime`";
        check(&[], "--engine onnxruntime", part);
        return;
    }
    let tract = ("OPSCOPE_ENGINE", "tract");
    check(&[tract], "--engine-lib @/absent", "--engine-lib names `");
    check(&[tract], "--engine-lib @/empty", "/empty`: there is no `");
    let library = ("OPSCOPE_ENGINE_LIB", "@/empty");
    for engine in ["auto", "onnxruntime"] {
        let options = format!("--engine {engine}");
        check(&[library], &options, "OPSCOPE_ENGINE_LIB names `");
        check(
            &[library],
            &format!("{options} --engine-lib @/absent"),
            "--engine-lib names `",
        );
    }
    check(&[library], "", "OPSCOPE_ENGINE_LIB names `");
    let both = [("ORT_DYLIB_PATH", "@/empty"), ("VIRTUAL_ENV", "@/venv")];
    check(&both, "--engine onnxruntime", "ORT_DYLIB_PATH names `");
    if cfg!(target_os = "linux") {
        check(
            &[],
            "--engine-lib @/venv",
            "named by --engine-lib, cannot be used: ",
        );
        let part = "--graph executed needs ONNX Runtime, but the engine is tract: the library `";
        check(&[("VIRTUAL_ENV", "@/venv")], "--graph executed", part);
    }
}

#[test]
fn other_commands_take_the_engine() {
    let places = Places::new();
    let description = places.path("add.json");
    let tensor = json!({"format": "ND", "shape": [2], "type": "float"});
    let operator = json!([{"op": "Add", "input_desc": [tensor, tensor], "output_desc": [tensor]}]);
    fs::write(&description, operator.to_string()).unwrap();
    let op = |engine: &str| {
        let mut command = opscope();
        command.arg("op").arg(&description);
        text(command.args(["--seed", "0", "--stats", "--engine", engine]))
    };
    let (code, _, errors) = op("tract");
    assert_eq!((code, errors), (0, format!("opscope: engine: {TRACT}\n")));
    assert_eq!(op("none").0, 2);
    let (code, _, errors) = text(&mut places.dump(&[], "--engine tract"));
    assert_eq!(code, 0, "{errors}");
    let replay = |options: &[&str]| {
        let mut command = opscope();
        command.arg("replay").arg(places.path("out")).arg("--all");
        command.arg("--model").arg(digits("digits_cnn.onnx"));
        command.arg("--json").arg(places.path("replay.json"));
        text(command.args(options))
    };
    let (code, _, errors) = replay(&["--engine", "tract"]);
    assert_eq!((code, errors), (0, format!("opscope: engine: {TRACT}\n")));
    let bytes = fs::read(places.path("replay.json")).unwrap();
    let found: Value = serde_json::from_slice(&bytes).unwrap();
    let expected = json!({"name": "tract", "version": "0.23.9", "library": null, "reason": TRACT});
    assert_eq!(found["engine"], expected);
    let (code, told, errors) = replay(&["--engine-lib", "absent"]);
    assert_eq!((code, told.as_str()), (2, ""), "{errors}");
}

#[test]
fn what_tract_lacks_names_the_other_engine() {
    let mut command = opscope();
    command.arg("dump").arg(model("loop.onnx"));
    let (code, _, errors) = text(command.args(["--seed", "0", "--stats"]));
    assert_eq!(code, 3);
    assert!(
        errors.contains("ONNX Runtime can\n  hint: `pip install onnxruntime`"),
        "{errors}"
    );
}

/// Two models may run in two engines, so the line of an engine names its side.
#[test]
fn engines_of_two_models_are_named_with_their_sides() {
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("dump");
    let run = |words: &[&str]| {
        let mut command = opscope();
        command.args(words).current_dir(&dir);
        text(&mut command)
    };
    let digits = |name: &str| digits(name).display().to_string();
    let [model, other] = ["digits_cnn.onnx", "digits_cnn_transposed.onnx"].map(digits);
    let out = dump.to_str().unwrap();
    let (code, told, errors) = run(&["dump", &model, "--seed", "1", "--out", out]);
    assert_eq!(code, 0, "{errors}");
    // A step of microseconds is shorter than the work for a single file.
    assert!(
        told.contains(" with the dump, ") && !told.contains('×'),
        "{told}"
    );
    let cases = [
        (vec!["diff", &model, &other], "engine of both sides"),
        (
            vec!["diff", &model, out, "--seed", "1"],
            "engine of the target",
        ),
        (vec!["diff", out, &model, "--seed", "1"], "engine of golden"),
    ];
    for (words, label) in cases {
        let (_, _, errors) = run(&words);
        let lines = errors.lines().filter(|line| line.contains("tract 0.23.9"));
        let expected = format!("opscope: {label}: {TRACT}");
        assert_eq!(lines.collect::<Vec<_>>(), [expected], "{errors}");
    }
}
