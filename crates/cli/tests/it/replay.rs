//! `opscope replay`: an operator's own error apart from what it inherited.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{digits, model, opscope, text};
use serde_json::Value;
use tempfile::TempDir;

/// A dump of the digits model on random inputs.
fn dump(dir: &TempDir, name: &str, seed: &str, more: &[&str]) -> PathBuf {
    let out = dir.path().join(name);
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command.args(["--seed", seed, "--shape", "image:2,1,8,8", "--no-baseline"]);
    match more {
        [] => command.args(["--form", "acl", "--out"]).arg(&out),
        more => command.args(more),
    };
    let (code, _, errors) = text(&mut command);
    assert_eq!(code, 0, "{errors}");
    out
}

/// The file of the first operator of a type.
fn file_of(dump: &Path, op_type: &str) -> PathBuf {
    let mut found = Vec::new();
    find(dump, &format!("{op_type}."), &mut found);
    found.sort();
    found.remove(0)
}

fn find(dir: &Path, start: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != ".opscope" {
            find(&path, start, found);
        } else if name.starts_with(start) {
            found.push(path);
        }
    }
}

/// Makes the last element of the last tensor of a file, an output, something else.
fn spoil(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let n = bytes.len();
    bytes[n - 4..].copy_from_slice(&1e6_f32.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

/// The name of the operator that a file is of, in the form of file names.
fn name_in(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    name.split('.').nth(1).unwrap().to_owned()
}

fn replay(dump: &Path, more: &[&str]) -> (i32, String, String) {
    text(opscope().arg("replay").arg(dump).args(more))
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn what_was_dumped_is_what_is_computed_again() {
    let dir = tempfile::tempdir().unwrap();
    let out = dump(&dir, "d", "0", &[]);
    let json = dir.path().join("own.json");
    for more in [
        &["--all"][..],
        &["*", "--model", path(&digits("digits_cnn.onnx"))],
    ] {
        let mut all = more.to_vec();
        all.extend(["--json", path(&json), "--force"]);
        let (code, told, errors) = replay(&out, &all);
        assert_eq!(code, 0, "{more:?} {told} {errors}");
        let found: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
        let operators = found["operators"].as_array().unwrap();
        assert!(operators.len() > 5, "{found}");
        assert!(found["refused"].as_array().unwrap().is_empty());
        for one in operators {
            assert_eq!(one["errors"]["own"], 0.0, "{one}");
            assert_eq!(one["blame"], "nobody");
        }
    }
}

#[test]
fn a_planted_output_is_the_operators_own_fault() {
    let dir = tempfile::tempdir().unwrap();
    let out = dump(&dir, "d", "0", &[]);
    let golden = dump(&dir, "g", "0", &[]);
    let file = file_of(&out, "Conv");
    spoil(&file);
    let name = name_in(&file);
    for more in [&[][..], &["--golden", path(&golden)]] {
        let mut all = vec![name.as_str()];
        all.extend(more);
        let (code, told, errors) = replay(&out, &all);
        assert_eq!(code, 1, "{told} {errors}");
        assert!(
            told.starts_with("fail: wrong result for the inputs it got"),
            "{told}"
        );
    }
    // The table has it first.
    let (code, told, _) = replay(&out, &["--all"]);
    assert_eq!(code, 1);
    assert!(
        told.lines().nth(1).unwrap().contains("the operator itself"),
        "{told}"
    );
    let file_name = file.file_name().unwrap().to_str().unwrap();
    assert_eq!(replay(&out, &[file_name]).0, 1);
}

#[test]
fn other_inputs_are_inherited() {
    let dir = tempfile::tempdir().unwrap();
    let out = dump(&dir, "d", "1", &[]);
    let golden = dump(&dir, "g", "0", &[]);
    let file = file_of(&out, "Conv");
    let name = name_in(&file);
    let both = [name.as_str(), "--golden", path(&golden)];
    let (code, told, errors) = replay(&out, &both);
    assert_eq!(code, 1, "{told} {errors}");
    assert!(
        told.starts_with("fail: correct for the inputs it got"),
        "{told}"
    );
    spoil(&file);
    let (code, told, _) = replay(&out, &both);
    assert_eq!(code, 1);
    assert!(told.starts_with("fail: both"), "{told}");
}

#[test]
fn what_was_not_dumped_comes_from_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("acl.json");
    let out = dir.path().join("d");
    fs::create_dir(&out).unwrap();
    let of_mode = |mode: &str| {
        let dump = format!(r#"{{"dump": {{"dump_path": {out:?}, "dump_list": [{{}}], {mode}}}}}"#);
        fs::write(&config, dump).unwrap();
    };
    of_mode(r#""dump_mode": "output""#);
    dump(&dir, "d", "0", &["--config", path(&config)]);
    let relu = name_in(&file_of(&out, "Relu"));
    let (code, told, errors) = replay(&out, &[&relu]);
    assert_eq!(code, 0, "{told} {errors}");
    assert!(told.contains("note: input.0 is output.0 of"), "{told}");
    // No operator produces the input of the model.
    let conv = name_in(&file_of(&out, "Conv"));
    let (code, _, errors) = replay(&out, &[&conv]);
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("input.0 (`image`) is unknown"), "{errors}");
    // Some can be run again.
    assert_eq!(
        replay(
            &out,
            &["--all", "--model", path(&digits("digits_cnn.onnx"))]
        )
        .0,
        4
    );

    fs::remove_dir_all(&out).unwrap();
    fs::create_dir(&out).unwrap();
    of_mode(r#""dump_data": "stats""#);
    dump(&dir, "d", "0", &["--config", path(&config)]);
    let (code, _, errors) = replay(&out, &[&relu]);
    assert_eq!(code, 3);
    assert!(
        errors.contains("only statistics of its outputs"),
        "{errors}"
    );
}

#[test]
fn outputs_are_written_as_arrays() {
    let dir = tempfile::tempdir().unwrap();
    let out = dump(&dir, "d", "0", &[]);
    let name = name_in(&file_of(&out, "Conv"));
    let again = dir.path().join("again");
    let all = [name.as_str(), "--out", path(&again)];
    assert_eq!(replay(&out, &all).0, 0);
    let file = file_of(&again, "Conv");
    let dumped = fs::read(file_of(&out, "Conv")).unwrap();
    let array = fs::read(&file).unwrap();
    // The output is last in the dump's file, and the header of an array takes a multiple of 64
    // bytes.
    let elements = &array[128..];
    assert!(array.starts_with(b"\x93NUMPY"));
    assert_eq!(&dumped[dumped.len() - elements.len()..], elements);
    let (code, _, errors) = replay(&out, &all);
    assert_eq!(code, 2);
    assert!(errors.contains("already exists"), "{errors}");
}

#[test]
fn other_models_agree_with_themselves() {
    let dir = tempfile::tempdir().unwrap();
    for (stem, sample) in [
        ("char_lm", "char_lm.sample.npz"),
        ("shapes_cnn_f16", "shapes_cnn_f16.sample.npz"),
        ("shapes_cnn_qdq_int8", "shapes_cnn_qdq_int8.sample.npz"),
    ] {
        let out = dir.path().join(stem);
        let file = model(&format!("{stem}.onnx"));
        let mut command = opscope();
        command
            .arg("dump")
            .arg(&file)
            .arg("--inputs")
            .arg(model(sample));
        command
            .args(["--no-baseline", "--form", "acl", "--out"])
            .arg(&out);
        let (code, _, errors) = text(&mut command);
        assert_eq!(code, 0, "{errors}");
        let (code, told, errors) = replay(&out, &["--all", "--model", path(&file)]);
        assert_eq!(code, 0, "{stem}: {told} {errors}");
        for line in told.lines().skip(1) {
            assert!(line.contains("pass"), "{stem}: {line}");
        }
    }
}

#[test]
fn mistakes() {
    let dir = tempfile::tempdir().unwrap();
    let out = dump(&dir, "d", "0", &[]);
    let check = |more: &[&str], code: i32, part: &str| {
        let (found, told, errors) = replay(&out, more);
        assert_eq!(found, code, "{more:?}: {told} {errors}");
        assert!(errors.contains(part), "{more:?}: {errors}");
    };
    check(&["nothing"], 2, "the dump has no operator `nothing`");
    check(&["--all", "--step", "9"], 3, "no operators in step 9");
    check(&[], 2, "or pass `--all`");
    let other = model("char_lm.onnx");
    let conv = name_in(&file_of(&out, "Conv"));
    check(&[&format!("{conv}x")], 2, "similar names: /conv1/Conv");
    check(
        &[&conv, "--model", path(&other)],
        2,
        "the model has no operator",
    );
    let absent = dir.path().join("absent.onnx");
    check(&[&conv, "--model", path(&absent)], 3, "absent.onnx");
    let limits = dir.path().join("limits.json");
    fs::write(&limits, r#"{"dtypes": {"float33": {}}}"#).unwrap();
    check(&[&conv, "--thresholds", path(&limits)], 2, "float33");

    let damaged = file_of(&out, "Relu");
    let bytes = fs::read(&damaged).unwrap();
    fs::write(&damaged, &bytes[..bytes.len() - 3]).unwrap();
    check(&[&name_in(&damaged)], 3, "is not a valid DumpData file");

    let described = find_graph(&out);
    let whole = fs::read_to_string(&described).unwrap();
    // A graph without operator sets is none of ONNX.
    let opsets = whole.find("\"opsets\"").unwrap();
    let torch = format!("{}\"no_opsets\"{}", &whole[..opsets], &whole[opsets + 8..]);
    fs::write(&described, torch).unwrap();
    check(&[&conv], 2, "operators of PyTorch cannot be re-run");
    fs::remove_file(&described).unwrap();
    check(&[&conv], 2, "pass the model by `--model FILE`");
}

/// The description of the graph.
fn find_graph(dump: &Path) -> PathBuf {
    let time = fs::read_dir(dump).unwrap().next().unwrap().unwrap().path();
    time.join(".opscope/graphs/digits_cnn.json")
}
