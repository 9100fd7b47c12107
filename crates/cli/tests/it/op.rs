//! `opscope op`: operators that run on their own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{opscope, text};
use opscope_store::file_format::dump_data::DumpFile;

const SOFTMAX: &str = r#"{"op": "SoftmaxV2", "name": "a/b.c",
    "input_desc": [{"format": "ND", "type": "float16", "shape": [2, 3]}],
    "attr": [{"name": "axes", "type": "list_int", "value": [-1]}]}"#;

/// The files of the dump below `dir`; what the run says of itself is none of them.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| {
        if path.ends_with(".opscope") {
            Vec::new()
        } else if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    };
    let mut found: Vec<PathBuf> = entries.flat_map(below).collect();
    found.sort();
    found
}

/// Runs `opscope op` on a description with a configuration, and returns the files that appeared.
fn run(description: &str, dump: &str, code: i32) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    let (operator, config) = (dir.path().join("op.json"), dir.path().join("acl.json"));
    fs::write(&operator, description).unwrap();
    fs::write(
        &config,
        format!(r#"{{"dump": {{"dump_path": {out:?}, {dump}}}}}"#),
    )
    .unwrap();
    let mut command = opscope();
    command
        .arg("op")
        .arg(&operator)
        .arg("--config")
        .arg(&config);
    command.args(["--seed", "1", "--no-baseline"]);
    let (found, _, errors) = text(&mut command);
    assert_eq!(found, code, "{errors}");
    let relative = |path: PathBuf| path.strip_prefix(&out).unwrap().display().to_string();
    files(&out).into_iter().map(relative).collect()
}

#[test]
fn files_lie_right_below_the_device() {
    let found = run(SOFTMAX, r#""dump_op_switch": "on", "dump_list": []"#, 0);
    let [file] = &found[..] else {
        panic!("{found:?}")
    };
    let parts: Vec<&str> = file.split('/').collect();
    let [time, "0", name] = parts[..] else {
        panic!("{file}")
    };
    assert_eq!(time.len(), 14);
    assert!(name.starts_with("Softmax.a_b_c.65535.65535."), "{name}");
}

#[test]
fn several_operators_share_a_dump() {
    let list = format!("[{SOFTMAX}, {SOFTMAX}]");
    let both = r#""dump_op_switch": "on", "dump_mode": "all", "dump_data": "stats""#;
    let found = run(&list, both, 0);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|file| file.ends_with(".csv")), "{found:?}");
}

#[test]
fn the_switch_decides() {
    assert!(run(SOFTMAX, r#""dump_op_switch": "off", "dump_list": [{}]"#, 0).is_empty());
}

#[test]
fn an_operator_that_fails_leaves_its_inputs() {
    // Rows are picked by number, and there is no row 7.
    let gather = r#"{"op": "Gather", "input_desc": [{"type": "float", "shape": [2, 3]},
        {"type": "int64", "const_value": [7]}]}"#;
    let found = run(gather, r#""dump_scene": "aic_err_norm_dump""#, 4);
    let [file] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(
        file.starts_with("extra-info/data-dump/0/Gather.Gather_0.65535."),
        "{file}"
    );
}

#[test]
fn mistakes() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        ("{", 3, "not valid JSON"),
        ("{}", 2, "`op`, the operator's type, is missing"),
        (r#"{"op": "Nothing", "input_desc": []}"#, 3, "Nothing"),
        (
            r#"{"op": "Relu", "input_desc": [{"type": "float"}]}"#,
            2,
            "x0",
        ),
    ];
    for (description, code, part) in cases {
        let path = dir.path().join("op.json");
        fs::write(&path, description).unwrap();
        let mut command = opscope();
        command
            .arg("op")
            .arg(&path)
            .args(["--seed", "1", "--stats"]);
        let (found, _, errors) = text(&mut command);
        assert_eq!(found, code, "{description}: {errors}");
        assert!(errors.contains(part), "{description}: {errors}");
    }
}

#[test]
fn dumps_have_the_format_of_the_description() {
    // The image is its own result: a kernel of one element takes each channel to its place.
    let conv = r#"[{"op": "Conv2D",
        "input_desc": [{"format": "NHWC", "shape": [1, 2, 3, 2], "type": "float"},
            {"format": "HWCN", "shape": [1, 1, 2, 2], "type": "float", "is_const": true, "const_value": [1, 0, 0, 1]}],
        "output_desc": [{"format": "NHWC", "shape": [1, 2, 3, 2], "type": "float"}],
        "attr": [{"name": "strides", "type": "list_int", "value": [1, 1, 1, 1]},
            {"name": "data_format", "type": "string", "value": "NHWC"}]},
        {"op": "Relu", "input_desc": [{"format": "NHWC", "shape": [1, 2, 3, 2], "type": "float"}]}, {"op": "Relu",
        "input_desc": [{"format": "NCHW", "shape": [1, 2, 3, 2], "type": "float"}]}]"#;
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("op.json"), dir.path().join("out"));
    fs::write(&path, conv).unwrap();
    let mut command = opscope();
    command
        .arg("op")
        .arg(&path)
        .args(["--seed", "1", "--form", "acl", "--out"]);
    let (code, _, errors) = text(command.arg(&out));
    assert_eq!(code, 0, "{errors}");
    let mut shown = Vec::new();
    for path in files(&out) {
        let file = DumpFile::open(&path).unwrap();
        let name = file.header().op_name.clone();
        let tensors: Vec<_> = file
            .tensors()
            .map(|tensor| {
                let entry = tensor.entry;
                let dims = entry.shape.clone().unwrap_or_default();
                (entry.layout().unwrap().name(), dims, tensor.bytes.to_vec())
            })
            .collect();
        assert!(
            path.to_string_lossy()
                .contains(&format!(".{name}.65535.65535."))
        );
        shown.push((name, tensors));
    }
    shown.sort_by(|a, b| a.0.cmp(&b.0));
    let [(conv, image), (first, one), (second, other)] = &shown[..] else {
        panic!("{} files", shown.len());
    };
    assert_eq!([conv, first, second], ["Conv2D_0", "Relu_0", "Relu_1"]);
    let layouts: Vec<(&str, &[u64])> = image
        .iter()
        .map(|(name, dims, _)| (*name, &dims[..]))
        .collect();
    let image_dims = &[1, 2, 3, 2][..];
    assert_eq!(
        layouts,
        [
            ("NHWC", image_dims),
            ("HWCN", &[1, 1, 2, 2]),
            ("NHWC", image_dims)
        ]
    );
    assert_eq!(
        image[0].2, image[2].2,
        "the result has the elements of the image, in its order"
    );
    // Without a described format the layout of an elementwise result is not known.
    assert_eq!((one[0].0, one[1].0, other[0].0), ("NHWC", "ND", "NCHW"));
}
