//! `opscope config`: its report on a configuration, and its exit code.

use std::fs;
use std::path::Path;

use crate::support::{opscope, text};
use serde_json::{Value, json};

/// Exit code, standard output and standard error of `config ARGS…` in `dir`.
fn config(dir: &Path, args: &str) -> (i32, String, String) {
    let mut command = opscope();
    command.current_dir(dir).arg("config");
    for name in ["ASCEND_DUMP_PATH", "ASCEND_WORK_PATH"] {
        command.env_remove(name);
    }
    text(command.env("HOME", dir).args(args.split_whitespace()))
}

/// A file that MindSpore takes on Ascend only.
const MINDSPORE: &[u8] =
    br#"{"common_dump_settings": {"dump_mode": 2, "path": "/d", "net_name": "Net",
    "iteration": "1|4-6", "input_output": 2, "kernels": [], "support_device": [0]},
    "e2e_dump_settings": {}}"#;

/// A directory with a file for each kind of verdict.
fn files() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8]); 9] = [
        (
            "fine.json",
            b"{\"dump\": {\"dump_path\": \".\", \"dump_list\": [{}]}}",
        ),
        ("nothing.json", b"{}"),
        (
            "wrong.json",
            b"{\"dump\": {\n  \"dump_path\": \".\",\n  \"dump_mode\": \"out\", \"dump_lst\": []}}",
        ),
        ("broken.json", b"{\"dump\": {}"),
        ("bytes.json", b"{\"\xff\": 1}"),
        ("deep.json", b"{\"a\": [[[[[[[[[[[]]]]]]]]]]]}"),
        ("mindspore.json", MINDSPORE),
        (
            "home.json",
            b"{\"dump\": {\"dump_path\": \"$HOME\", \"dump_list\": [{}]}}",
        ),
        (
            "failures.json",
            b"{\"dump\": {\"dump_scene\": \"aic_err_norm_dump\", \"dump_step\": \"1\"}}",
        ),
    ];
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

#[test]
fn verdicts() {
    let dir = files();
    let cases = [
        (
            "fine.json",
            0,
            "fine.json: accepted (acl: operator), 0 warnings\n",
        ),
        (
            "nothing.json",
            0,
            "nothing.json:1:1: warning: nothing is dumped: there is no `dump` object\n\
             nothing.json: accepted (acl: nothing to dump), 1 warning\n",
        ),
        (
            "wrong.json",
            2,
            "wrong.json:3:16: error EP0002 at `/dump/dump_mode`: found `out`, expected \
             all/input/output\n\
             wrong.json:3:23: warning at `/dump/dump_lst`: unknown key, it has no effect (did you \
             mean `dump_list`?)\n\
             wrong.json: refused, 1 error, 1 warning\n",
        ),
        ("broken.json", 2, "error EP0004: not valid JSON"),
        (
            "bytes.json",
            2,
            "bytes.json:1:3: error EP0004: not valid JSON: it is not UTF-8",
        ),
        (
            "deep.json",
            2,
            "deep.json:1:17: error: `[` is nested deeper than 10",
        ),
        ("home.json", 2, "write the directory out"),
        (
            "failures.json",
            0,
            "accepted (acl: exception_norm), 1 warning",
        ),
        (
            "absent.json",
            3,
            "absent.json: error: cannot read the configuration",
        ),
        (".", 3, "is not a regular file"),
        ("fine.json wrong.json", 2, "fine.json: accepted"),
        ("absent.json wrong.json fine.json", 3, "fine.json: accepted"),
    ];
    check(dir.path(), &cases);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 9);
}

#[test]
fn verdicts_of_targets() {
    let cases = [
        (
            "mindspore.json",
            2,
            "mindspore.json:1:40: error at `/common_dump_settings/dump_mode`: found `2`",
        ),
        (
            "--target ascend-o1 mindspore.json",
            0,
            "mindspore.json: accepted (mindspore: operator), 0 warnings\n",
        ),
        (
            "--target ge mindspore.json",
            0,
            "mindspore.json: accepted (mindspore: operator), 0 warnings\n",
        ),
        (
            "--target gpu broken.json",
            2,
            "broken.json:1:11: error: not valid JSON",
        ),
    ];
    check(files().path(), &cases);
}

/// Checks files: the arguments, the code, and a part of the output.
fn check(dir: &Path, cases: &[(&str, i32, &str)]) {
    for (args, code, part) in cases {
        let (found, told, errors) = config(dir, &format!("check {args}"));
        assert!(told.contains(part), "{args}: {told}");
        assert_eq!((found, errors.as_str()), (*code, ""), "{args}");
    }
}

#[test]
fn json_for_machines() {
    let dir = files();
    let parse = |args: &str| -> Value {
        let (_, told, _) = config(dir.path(), args);
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{args}: {error}: {told}"))
    };
    let wrong = parse("check --json wrong.json");
    assert_eq!(
        wrong["issues"][0],
        json!({
            "severity": "error",
            "code": "EP0002",
            "pointer": "/dump/dump_mode",
            "item": "dump_mode",
            "line": 3,
            "column": 16,
            "found": "out",
            "expected": "all/input/output",
            "message": "found `out`, expected all/input/output",
            "hint": null,
            "vendor_text": null,
        })
    );
    for (name, accepted, dialect, mode) in [
        ("fine.json", true, Some("acl"), Some("operator")),
        ("nothing.json", true, Some("acl"), None),
        ("wrong.json", false, Some("acl"), None),
        ("failures.json", true, Some("acl"), Some("exception_norm")),
        ("absent.json", false, None, None),
    ] {
        for verb in ["check", "explain"] {
            let told = parse(&format!("{verb} --json {name}"));
            let expected = json!([name, accepted, dialect, mode]);
            let found = json!([
                told["file"],
                told["accepted"],
                told["dialect"],
                told["mode"]
            ]);
            assert_eq!(found, expected, "{verb}");
        }
    }
    let refused = parse("check --json mindspore.json");
    assert_eq!(refused["dialect"], "mindspore");
    let text = refused["issues"][0]["vendor_text"].as_str().unwrap();
    assert!(text.starts_with("Set dump is only supported"), "{text}");
    let taken = parse("check --json --target ascend-o0 mindspore.json");
    assert_eq!(
        (&taken["mode"], &taken["settings"]["dump_mode"]),
        (&json!("operator"), &json!(2))
    );
    let several = parse("check --json fine.json wrong.json");
    assert_eq!(several.as_array().unwrap().len(), 2);
}

#[test]
fn explanations() {
    let dir = files();
    for (name, code, parts) in [
        (
            "fine.json",
            0,
            &[
                "Operators' outputs are dumped.",
                "every model",
                "/{time}/{device_id}/",
            ][..],
        ),
        ("nothing.json", 0, &["Nothing is dumped.", "Notes:"]),
        (
            "failures.json",
            0,
            &[
                "Operators that fail",
                "extra-info/data-dump",
                "`/dump/dump_step`: it has no effect",
            ],
        ),
        ("home.json", 0, &["does not expand"]),
        (
            "mindspore.json",
            0,
            &[
                "those that the model marks",
                "1, 4 to 6 (they count from 0)",
                "/d/rank_{rank}/Net/{graph_id}/{iteration}",
                "MindSpore refuses `2` on a CPU",
            ],
        ),
        (
            "--target ascend-o2 mindspore.json",
            0,
            &["CANN's format", "/d/{step}/{time}/{device_id}/"],
        ),
        ("wrong.json", 2, &["error EP0002", "refused"]),
        ("absent.json", 3, &["cannot read"]),
    ] {
        let (found, told, errors) = config(dir.path(), &format!("explain {name}"));
        for part in parts {
            assert!(told.contains(part), "{name}: {told}");
        }
        assert_eq!((found, errors.as_str()), (code, ""), "{name}");
    }
    let (_, told, _) = config(dir.path(), "explain --json fine.json");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        told["rows"][0],
        json!({"subject": "models", "text": "every model"})
    );
}
