//! Nothing that a file says reaches a terminal as anything but text.
#![expect(clippy::too_many_lines, reason = "tables of commands")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{digits, opscope};
use opscope_store::file_format::dump_data::{
    DumpHeader, HeaderAttribute, OriginalOp, TensorEntry, dtype_code, with_length,
};
use opscope_store::file_format::npy;
use opscope_tensor::{DType, Shape};
use tempfile::TempDir;

/// Colours, a reset, a line that was never said, a turned order, nothing at all, and more.
const HOSTILE: &str =
    "x\u{1b}[31m\u{9b}2J\u{202e}\u{200b}\u{7f}\u{2028}\t\r\u{8}\u{feff}\u{e0041}\nopscope: y";
/// The same as the name of a file.
const FILE: &str = "x\u{1b}[31m\u{9b}2J\u{202e}\u{200b}\u{7f}\u{2028}\t\r\u{feff}\nopscope: y";

/// Characters that no terminal may get, apart from the ends of lines.
fn is_hostile(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{61c}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Commands, and those of them that showed a hostile name, escaped.
#[derive(Default)]
struct Ran {
    shown: Vec<String>,
}

impl Ran {
    /// Runs a command; `is_named` says that its output has a hostile name.
    fn run<S: AsRef<OsStr>>(
        &mut self,
        what: &str,
        arguments: impl IntoIterator<Item = S>,
        is_named: bool,
    ) -> String {
        let output = opscope().args(arguments).output().unwrap();
        let mut all = String::new();
        for (stream, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            let text = String::from_utf8(bytes).unwrap();
            let found = text.chars().find(|&c| is_hostile(c));
            assert_eq!(found, None, "{what}, {stream}: {text:?}");
            // A line that begins so comes from the program alone.
            assert!(
                !text.lines().any(|line| line.starts_with("opscope: y")),
                "{what}: {text}"
            );
            all += &text;
        }
        let code = output.status.code();
        assert!(
            code.is_some_and(|code| code != 101),
            "{what}: {code:?}: {all}"
        );
        let is_escaped = all.contains("\\u{202e}") || all.contains("\\u202e");
        assert!(is_escaped || !is_named, "{what} names nothing: {all}");
        if is_escaped {
            self.shown.push(what.to_owned());
        }
        all
    }
}

fn words<'a>(words: &[&'a dyn AsRef<OsStr>]) -> Vec<&'a OsStr> {
    words.iter().map(|word| (*word).as_ref()).collect()
}

/// The digits model with names of operators and values that are made to be obeyed.
fn model(dir: &Path) -> PathBuf {
    let mut bytes = fs::read(digits("digits_cnn.onnx")).unwrap();
    for (name, hostile) in [
        ("/conv1/Conv", "\u{1b}[7m\u{202e}a\u{9b}b".to_owned()),
        ("/fc/Gemm", "\u{202e}\u{200b}\r\n".to_owned()),
        ("image", "\u{1b}c\u{202e}".to_owned()),
        ("probs", "\u{2028}\u{85}".to_owned()),
    ] {
        assert_eq!(name.len(), hostile.len(), "{name}");
        let mut at = 0;
        let is_there = |at: usize, bytes: &[u8]| bytes[at..].starts_with(name.as_bytes());
        while at < bytes.len() {
            if is_there(at, &bytes) && bytes[at - 1] == name.len() as u8 {
                bytes[at..at + name.len()].copy_from_slice(hostile.as_bytes());
            }
            at += 1;
        }
    }
    let path = dir.join(format!("{FILE}.onnx"));
    fs::write(&path, bytes).unwrap();
    path
}

/// A dump file of an operator with hostile names everywhere.
fn record(path: &Path, value: f32) {
    let header = DumpHeader {
        version: HOSTILE.to_owned(),
        dump_time: 1_700_000_000_000_000,
        op_name: HOSTILE.to_owned(),
        attrs: vec![HeaderAttribute {
            name: HOSTILE.to_owned(),
            value: HOSTILE.to_owned(),
        }],
        dfx_message: HOSTILE.to_owned(),
        outputs: vec![TensorEntry {
            data_type: dtype_code(DType::F32).unwrap(),
            format: 2,
            shape: Some(vec![2]),
            size: 8,
            original_op: Some(OriginalOp {
                name: HOSTILE.to_owned(),
                ..OriginalOp::default()
            }),
            ..TensorEntry::default()
        }],
        ..DumpHeader::default()
    };
    let mut bytes = with_length(&header);
    bytes.extend([1.0, value].iter().flat_map(|value| value.to_le_bytes()));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn array(path: &Path, value: f32) {
    let shape = Shape::new([1]).unwrap();
    let mut bytes = npy::encode_header(DType::F32, &shape).unwrap();
    bytes.extend(value.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn dumps_of_hostile_models() {
    let dir = TempDir::new().unwrap();
    let model = model(dir.path());
    let out = dir.path().join(FILE);
    let mut ran = Ran::default();
    let common = words(&[&"dump", &model, &"--seed", &"1", &"--no-baseline"]);
    let shape = OsString::from("\u{1b}c\u{202e}:2,1,8,8");
    for (what, more) in [
        ("dump without shapes", words(&[&"--out", &out])),
        ("dump", words(&[&"--shape", &shape, &"--out", &out])),
        (
            "dump --json",
            words(&[
                &"--shape",
                &shape,
                &"--out",
                &dir.path().join("j"),
                &"--json",
            ]),
        ),
        (
            "dump --stats",
            words(&[
                &"--shape",
                &shape,
                &"--out",
                &dir.path().join("s"),
                &"--stats",
            ]),
        ),
        (
            "dump --dry-run",
            words(&[&"--shape", &shape, &"--out", &out, &"--dry-run"]),
        ),
        (
            "dump --dry-run --json",
            words(&[&"--shape", &shape, &"--out", &out, &"--dry-run", &"--json"]),
        ),
        (
            "dump with a wrong input",
            words(&[&"--input", &HOSTILE, &"--out", &out]),
        ),
        (
            "dump of no operator",
            words(&[
                &"--shape",
                &shape,
                &"--out",
                &dir.path().join("o"),
                &"--tensors",
                &HOSTILE,
            ]),
        ),
    ] {
        ran.run(what, common.iter().chain(&more), false);
    }
    let spoilt = dir.path().join("no\u{202e}.onnx");
    fs::write(&spoilt, HOSTILE).unwrap();
    ran.run(
        "dump of no model",
        words(&[&"dump", &spoilt, &"--out", &out]),
        true,
    );
    ran.run("show", words(&[&"show", &out]), true);
    ran.run("show --json", words(&[&"show", &out, &"--json"]), true);
    ran.run(
        "compare",
        words(&[&"compare", &out, &dir.path().join("j")]),
        false,
    );
    ran.run("replay", words(&[&"replay", &model, &out]), true);
    ran.run(
        "replay --json",
        words(&[&"replay", &model, &out, &"--json", &"-"]),
        true,
    );
    ran.run(
        "replay of none",
        words(&[&"replay", &model, &out, &HOSTILE]),
        true,
    );
    assert!(ran.shown.contains(&"dump".to_owned()), "{:?}", ran.shown);
}

#[test]
fn files_with_hostile_names_and_content() {
    let dir = TempDir::new().unwrap();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(format!("{name}{FILE}")));
    for (root, value) in [(&a, 1.0), (&b, f32::NAN)] {
        let step = root.join("20240102030405/0/net/1/0");
        record(
            &step.join(format!("Conv.{FILE}.0.0.1700000000000000")),
            value,
        );
        record(&step.join("Relu.r.1.0.1700000000000001"), value);
        fs::write(
            step.join(format!("Relu.{FILE}.2.0.1700000000000002")),
            "damaged",
        )
        .unwrap();
        fs::write(
            step.join(format!("{FILE}.csv")),
            format!("Op Name,{HOSTILE}\n{HOSTILE},1\n"),
        )
        .unwrap();
    }
    let file = a.join(format!(
        "20240102030405/0/net/1/0/Conv.{FILE}.0.0.1700000000000000"
    ));
    let damaged = a.join(format!(
        "20240102030405/0/net/1/0/Relu.{FILE}.2.0.1700000000000002"
    ));
    let [x, y] = ["x", "y"].map(|name| dir.path().join(format!("{name}{FILE}.npy")));
    array(&x, 1.0);
    array(&y, 2.0);
    let odd = dir.path().join("odd.npy");
    let text = format!("{{'descr': '{HOSTILE}', 'fortran_order': False, 'shape': (1,), }}\n");
    let head = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..]].concat();
    fs::write(&odd, [&head[..], text.as_bytes()].concat()).unwrap();
    let ir = dir.path().join("ir\u{202e}.ir");
    fs::write(
        &ir,
        format!(
            "#IR entry: @{HOSTILE}\nsubgraph @{HOSTILE}() {{\n  %0({HOSTILE}) = {HOSTILE}()\n}}\n"
        ),
    )
    .unwrap();
    let json = dir.path().join(format!("{FILE}.json"));
    let quoted = serde_json::Value::from(HOSTILE).to_string();
    fs::write(&json, format!("{{{quoted}: 1, \"dump\": {{\"dump_path\": {quoted}, {quoted}: {quoted}, \"dump_mode\": {quoted}}}}}")).unwrap();
    let op = dir.path().join("op.json");
    fs::write(
        &op,
        format!("{{\"op\": {quoted}, \"name\": {quoted}, {quoted}: 1}}"),
    )
    .unwrap();
    let saved = dir.path().join("saved.json");
    let out = dir.path().join(format!("out{FILE}"));
    let nowhere = dir.path().join(format!("nowhere{FILE}"));
    let mut ran = Ran::default();
    for (what, arguments, is_named) in [
        ("show dir", words(&[&"show", &a]), true),
        ("show dir --json", words(&[&"show", &a, &"--json"]), true),
        ("show file", words(&[&"show", &file]), true),
        (
            "show file --json",
            words(&[&"show", &file, &"--json"]),
            true,
        ),
        ("show damaged", words(&[&"show", &damaged]), true),
        ("show array", words(&[&"show", &x]), false),
        ("show odd array", words(&[&"show", &odd]), false),
        ("show nowhere", words(&[&"show", &nowhere]), true),
        ("show graph", words(&[&"show", &ir]), true),
        (
            "show csv",
            words(&[
                &"show",
                &dir.path()
                    .join(format!("a{FILE}/20240102030405/0/net/1/0/{FILE}.csv")),
            ]),
            false,
        ),
        (
            "convert",
            words(&[&"convert", &"-d", &a, &"-out", &out]),
            true,
        ),
        (
            "convert --json",
            words(&[&"convert", &"-d", &a, &"-out", &out, &"--json"]),
            true,
        ),
        (
            "convert nowhere",
            words(&[&"convert", &"-d", &nowhere, &"-out", &out]),
            true,
        ),
        (
            "convert odd",
            words(&[&"convert", &"-d", &odd, &"-out", &out]),
            false,
        ),
        ("compare", words(&[&"compare", &a, &b]), true),
        (
            "compare --json -",
            words(&[&"compare", &a, &b, &"--json", &"-"]),
            true,
        ),
        (
            "compare --jsonl -",
            words(&[&"compare", &a, &b, &"--jsonl", &"-"]),
            true,
        ),
        (
            "compare saved",
            words(&[&"compare", &a, &b, &"--json", &saved]),
            true,
        ),
        (
            "compare --from",
            words(&[&"compare", &"--from", &saved]),
            true,
        ),
        (
            "compare --from hostile",
            words(&[&"compare", &"--from", &json]),
            false,
        ),
        ("compare nowhere", words(&[&"compare", &a, &nowhere]), true),
        (
            "compare --thresholds",
            words(&[&"compare", &a, &b, &"--thresholds", &json]),
            true,
        ),
        (
            "compare --mapping",
            words(&[&"compare", &a, &b, &"--mapping", &json]),
            true,
        ),
        ("overflow", words(&[&"overflow", &"-d", &a]), false),
        (
            "overflow nowhere",
            words(&[&"overflow", &"-d", &nowhere]),
            true,
        ),
        ("config check", words(&[&"config", &"check", &json]), true),
        (
            "config check --json",
            words(&[&"config", &"check", &json, &"--json"]),
            true,
        ),
        (
            "config explain",
            words(&[&"config", &"explain", &json]),
            true,
        ),
        (
            "config explain --json",
            words(&[&"config", &"explain", &json, &"--json"]),
            true,
        ),
        (
            "config nowhere",
            words(&[&"config", &"check", &nowhere]),
            true,
        ),
        ("op", words(&[&"op", &op, &"--config", &json]), true),
        ("op alone", words(&[&"op", &op, &"--out", &out]), true),
        (
            "msaccucmp convert",
            words(&[&"msaccucmp", &"convert", &"-d", &a, &"-out", &out]),
            true,
        ),
        (
            "msaccucmp overflow",
            words(&[&"msaccucmp", &"overflow", &"-d", &a, &"-out", &out]),
            true,
        ),
        (
            "msaccucmp compare",
            words(&[&"msaccucmp", &"compare", &"-m", &x, &"-g", &y]),
            true,
        ),
        (
            "msaccucmp file_compare",
            words(&[
                &"msaccucmp",
                &"file_compare",
                &"-m",
                &x,
                &"-g",
                &y,
                &"-out",
                &out,
            ]),
            true,
        ),
        (
            "msaccucmp convert -f",
            words(&[&"msaccucmp", &"convert", &"-d", &"/", &"-f", &HOSTILE]),
            true,
        ),
        (
            "msaccucmp no command",
            words(&[&"msaccucmp", &HOSTILE]),
            true,
        ),
        ("no command", words(&[&HOSTILE]), true),
        (
            "no option",
            words(&[&"show", &format!("--{HOSTILE}")]),
            true,
        ),
        (
            "no value",
            words(&[&"compare", &a, &b, &"--top", &HOSTILE]),
            true,
        ),
    ] {
        let told = ran.run(what, arguments, is_named);
        if what.ends_with("--json") || what.ends_with("--json -") {
            let end = told.rfind('}').unwrap();
            let document = told[..=end].find('{').map(|start| &told[start..=end]);
            let document: Result<serde_json::Value, _> = serde_json::from_str(document.unwrap());
            assert!(document.is_ok(), "{what}: {told}");
        }
    }
}

/// The drop-in goes into directories whose own names are fine: there are names of files, and of
/// operators in them.
#[test]
fn the_drop_in_reads_hostile_content() {
    let dir = TempDir::new().unwrap();
    let [a, b, out] = ["a", "b", "out"].map(|name| dir.path().join(name));
    for (root, value) in [(&a, 1.0), (&b, 2.0)] {
        record(&root.join("Conv.c.0.0.1700000000000000"), value);
        record(
            &root.join(format!("Conv.{FILE}.1.0.1700000000000000")),
            value,
        );
        fs::write(
            root.join(format!("Relu.{FILE}.2.0.1700000000000002")),
            "damaged",
        )
        .unwrap();
    }
    let rule = dir.path().join("rule.json");
    let quoted = serde_json::Value::from(HOSTILE).to_string();
    fs::write(&rule, format!("{{\"graph\": [{{\"name\": {quoted}, \"op\": [{{\"name\": {quoted}, \"type\": {quoted}}}]}}]}}")).unwrap();
    let mut ran = Ran::default();
    for (what, arguments) in [
        ("convert", words(&[&"convert", &"-d", &a, &"-out", &out])),
        (
            "convert -f",
            words(&[&"convert", &"-d", &a, &"-f", &"NCHW", &"-out", &out]),
        ),
        (
            "convert -t msnpy",
            words(&[&"convert", &"-d", &a, &"-t", &"msnpy", &"-out", &out]),
        ),
        ("overflow", words(&[&"overflow", &"-d", &a, &"-out", &out])),
        (
            "compare",
            words(&[&"compare", &"-m", &a, &"-g", &b, &"-out", &out]),
        ),
        (
            "compare -f -cf",
            words(&[
                &"compare", &"-m", &a, &"-g", &b, &"-f", &rule, &"-cf", &rule, &"-out", &out,
            ]),
        ),
        (
            "compare -op",
            words(&[
                &"compare", &"-m", &a, &"-g", &b, &"-op", &HOSTILE, &"-out", &out,
            ]),
        ),
    ] {
        let all = [words(&[&"msaccucmp"]), arguments].concat();
        ran.run(what, all, false);
    }
    assert!(!ran.shown.is_empty());
}
