//! Every file of a tree is read, or counted with a reason, by every command that reads; nothing is
//! said of what could not be read; and nothing makes a reader wait.

mod cases;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use opscope_store::file_format::ms_json;
use serde_json::Value;

use crate::support::{opscope, text};
use cases::Fate::{NoRecord, Passed, Read, Unread};
use cases::{ACL, Case, Content, Fate, MINDSPORE, array, of_acl, of_mindspore, record};

fn put(dir: &Path, case: &Case) -> (PathBuf, Option<UnixListener>) {
    fs::create_dir_all(dir).unwrap();
    let stored = case.stored.unwrap_or(case.name);
    let path = dir.join(stored);
    let mut listener = None;
    match &case.content {
        Content::Bytes(bytes) => fs::write(&path, bytes).unwrap(),
        Content::LinkTo(target) => std::os::unix::fs::symlink(target, &path).unwrap(),
        Content::Pipe => {
            assert!(
                Command::new("mkfifo")
                    .arg(&path)
                    .status()
                    .unwrap()
                    .success()
            );
        }
        Content::Socket => listener = Some(UnixListener::bind(&path).unwrap()),
        Content::Directory => {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("Add.a.1.1.17"), "x").unwrap();
        }
    }
    if case.stored.is_some() {
        let table = dir.join("mapping.csv");
        let known = fs::read_to_string(&table).unwrap_or_default();
        fs::write(table, format!("{known}{stored},{}\n", case.name)).unwrap();
    }
    (path, listener)
}

/// Runs a command whose output is JSON, and says what became of the file.
fn fate(arguments: &[&Path], path: &Path, evidence: &[&str]) -> (i32, Fate) {
    let out = tempfile::tempdir().unwrap();
    let mut command = opscope();
    command.args(arguments).stdin(Stdio::null());
    if arguments[0] == Path::new("convert") {
        command.arg("-out").arg(out.path());
    }
    let (code, told, errors) = text(command.arg("--json"));
    let file_name = path.file_name().unwrap().to_str().unwrap();
    let Ok(json) = serde_json::from_str::<Value>(&told) else {
        // Nothing at all could be read: then the message says what there is.
        let noun = errors.split("; skipped: ").nth(1);
        return (code, noun.map_or(Unread, |_| Passed("told")));
    };
    let is_it = |value: &Value| value.as_str().is_some_and(|text| Path::new(text) == path);
    let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
    if let Some(one) = list("passed_over").iter().find(|one| is_it(&one["path"])) {
        let reason = one["reason"].as_str().unwrap().to_owned();
        return (code, Passed(reason.leak()));
    }
    let mentions = |value: &Value| value.to_string().contains(file_name);
    if list("errors").iter().chain(&list("failures")).any(mentions) {
        return (code, Unread);
    }
    let is_evidence = |key: &&str| match &json[*key] {
        Value::Array(list) => !list.is_empty(),
        Value::Number(n) => n.as_u64() > Some(0),
        _ => false,
    };
    if evidence.iter().any(is_evidence) {
        (code, Read)
    } else {
        (code, NoRecord)
    }
}

fn check(below: &str, cases: Vec<Case>, beside: Option<(&str, &str)>) {
    let [show, convert, overflow, dump] = ["show", "convert", "overflow", "-d"].map(Path::new);
    for case in cases {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join(below);
        let (path, _listener) = put(&dir, &case);
        // A file beside it that marks the tree as MindSpore's.
        if let Some((name, content)) = beside {
            fs::write(root.path().join(name), content).unwrap();
        }
        let root = root.path();
        let evidence = [
            "files",
            "statistics",
            "records",
            "graphs",
            "runtime_statistics",
        ];
        let (code, found) = fate(&[show, root], &path, &evidence);
        let name = format!("{} {:?}", case.name, case.stored);
        let matches = |found: Fate, expected: Fate| {
            found == expected || matches!((found, expected), (Passed("told"), Passed(_)))
        };
        assert!(
            matches(found, case.show),
            "show {name}: {found:?}, expected {:?}",
            case.show
        );
        assert_eq!(
            code == 0,
            case.show == Read || code == 0 && beside.is_some(),
            "show {name}"
        );
        let evidence = ["arrays", "records"];
        let (code, found) = fate(&[convert, dump, root], &path, &evidence);
        assert!(
            matches(found, case.convert),
            "convert {name}: {found:?}, expected {:?}",
            case.convert
        );
        assert_eq!(code == 0, case.convert == Read, "convert {name}");
        let (code, found) = fate(&[overflow, dump, root], &path, &["record_files_read"]);
        assert!(
            matches(found, case.overflow),
            "overflow {name}: {found:?}, expected {:?}",
            case.overflow
        );
        assert_eq!(code == 0, case.overflow != Unread, "overflow {name}");
    }
}

#[test]
fn every_file_of_an_acl_tree_comes_up() {
    check(ACL, of_acl(), None);
}

#[test]
fn every_file_of_a_mindspore_tree_comes_up() {
    check(MINDSPORE, of_mindspore(), Some(("acl_dump_9.json", "{}")));
}

/// All of them together: the numbers add up, and comparing finds the same files.
#[test]
fn the_numbers_of_a_tree_add_up() {
    let root = tempfile::tempdir().unwrap();
    let mut names = BTreeSet::new();
    let mut listeners = Vec::new();
    for case in of_acl() {
        let (path, listener) = put(&root.path().join(ACL), &case);
        names.insert(path);
        listeners.push(listener);
    }
    let n = |value: &Value| value.as_u64().unwrap_or_default() as usize;
    let len = |value: &Value| value.as_array().map_or(0, Vec::len);
    let (code, told, _) = text(opscope().arg("show").arg(root.path()).arg("--json"));
    let json: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(code, 4);
    let found = n(&json["files"])
        + len(&json["statistics"])
        + len(&json["passed_over"])
        + len(&json["errors"]);
    // `mapping.csv` is one more.
    assert_eq!(found, names.len() + 1);
    let mut command = opscope();
    command
        .args(["compare", "--json", "-"])
        .arg(root.path())
        .arg(root.path());
    let (code, told, _) = text(&mut command);
    let json: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(code, 4);
    let shown = json.to_string();
    for path in &names {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(shown.contains(name), "compare says nothing of {name}");
    }
}

#[test]
fn no_overflow_is_said_of_what_was_read_alone() {
    let check = |files: &[(&str, &[u8])], expected_code: i32, expected: &str| {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(root.path().join(name), content).unwrap();
        }
        let (code, told, errors) = text(opscope().args(["overflow", "-d"]).arg(root.path()));
        let first = told.lines().next().unwrap_or_default();
        assert!(first.starts_with(expected), "{told}{errors}");
        assert_eq!(code, expected_code, "{told}");
    };
    let good = ms_json::overflow(&record(0)).into_bytes();
    let bad = ms_json::overflow(&record(0x110)).into_bytes();
    let (name, other) = (
        "Opdebug.Node_OpDebug.5.1.18.output.0.json",
        "Opdebug.Node_OpDebug.6.1.18",
    );
    check(&[(name, &good)], 0, "no overflow (1 file with records)");
    check(
        &[("Add.a.1.17.txt", b"")],
        0,
        "no overflow records: no dump files found",
    );
    let unrelated = [("Add.a.5.1.17", b"" as &[u8]), ("Add.b.6.1.18", b"")];
    check(&unrelated, 0, "no overflow records in 2 files; a dump");
    check(
        &[(other, b"junk")],
        3,
        "overflows are unknown: 1 file or directory",
    );
    let partly = "no overflow in the 1 file with records that could be read; 1 file or directory";
    check(&[(name, &good), (other, b"junk")], 4, partly);
    check(&[(name, &good), ("123", b"junk")], 4, partly);
    check(&[(name, &bad), (other, b"junk")], 1, "#");
}

/// The tensors of MindSpore's array form come with the record that names their task.
#[test]
fn records_in_json_find_their_operator() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("3/20240102030405/0/net/1/0");
    fs::create_dir_all(&dir).unwrap();
    fs::write(root.path().join("acl_dump_0.json"), "{}").unwrap();
    for slot in ["input.0", "output.0"] {
        let name = format!("Mul.scale.5.0.17.{slot}.ND.float32.npy");
        fs::write(dir.join(name), array()).unwrap();
    }
    let text_of_record = ms_json::overflow(&record(0x20));
    fs::write(
        dir.join("Opdebug.Node_OpDebug.5.0.18.output.0.json"),
        text_of_record,
    )
    .unwrap();
    let out = root.path().join("out");
    let mut command = opscope();
    command
        .args(["overflow", "--json", "-d"])
        .arg(root.path())
        .arg("-out")
        .arg(&out);
    let (code, told, errors) = text(&mut command);
    assert_eq!(code, 1, "{told}{errors}");
    let json: Value = serde_json::from_str(&told).unwrap();
    let operator = &json["shown"][0]["operator"];
    assert_eq!(
        (&operator["op_type"], &operator["op_name"]),
        (&"Mul".into(), &"scale".into())
    );
    let slots: Vec<_> = operator["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["slot"])
        .collect();
    assert_eq!(slots, ["input.0", "output.0"]);
    assert_eq!(json["shown"][0]["units"][0]["status"], "0x20");
}

/// A path to anything but a regular file ends with a message at once, wherever it is named.
#[test]
fn no_reader_waits() {
    let root = tempfile::tempdir().unwrap();
    let pipe = |name: &str| {
        let path = root.path().join(name);
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        path.to_str().unwrap().to_owned()
    };
    let plain = pipe("Add.a.1.1.17");
    let (npy, npz, ir, csv) = (pipe("x.npy"), pipe("x.npz"), pipe("x.ir"), pipe("a.csv"));
    let (json, onnx, zst) = (pipe("x.json"), pipe("x.onnx"), pipe("x.npy.zst"));
    let model = crate::support::model("relu.onnx");
    let model = if model.is_file() {
        model
    } else {
        crate::support::digits("digits_cnn.onnx")
    };
    let (model, good) = (
        model.to_str().unwrap(),
        crate::support::digits("images.npy"),
    );
    let good = good.to_str().unwrap();
    for (arguments, code) in [
        (vec!["show", &plain], 3),
        (vec!["show", &npy], 3),
        (vec!["show", &zst], 3),
        (vec!["show", &ir], 3),
        (vec!["show", &csv], 3),
        (vec!["show", "/dev/zero"], 3),
        (vec!["convert", "-d", &plain, "-out", "/nonexistent"], 3),
        (vec!["overflow", "-d", &plain], 3),
        (vec!["compare", &plain, good], 3),
        (vec!["compare", good, good, "--thresholds", &json], 2),
        (vec!["compare", good, good, "--mapping", &json], 2),
        (vec!["compare", good, good, "--fusion", &json], 2),
        (vec!["compare", "--from", &json], 3),
        (vec!["config", "check", &json], 3),
        (vec!["op", &json, "--stats"], 3),
        (vec!["dump", &onnx, "--stats"], 3),
        (vec!["dump", model, "--stats", "--inputs", &npz], 3),
        (
            vec!["dump", model, "--stats", "--input", &format!("image={npy}")],
            3,
        ),
        (
            vec!["dump", model, "--stats", "--input", &format!("image={zst}")],
            3,
        ),
        (vec!["dump", model, "--config", &json], 3),
        (
            vec!["msaccucmp", "convert", "-d", &plain, "-out", "/tmp"],
            -2,
        ),
    ] {
        let mut command = opscope();
        let (found, told, errors) = text(command.args(&arguments).stdin(Stdio::null()));
        assert!(
            found != 0 && (code == -2 || found == code),
            "{arguments:?}: {found} {told}{errors}"
        );
        assert!(!told.contains("no overflow"), "{told}");
    }
}
