//! `opscope show` and `opscope convert` on what MindSpore dumped.

use std::fs;
use std::path::PathBuf;

use crate::support::{json, opscope, text};
use serde_json::Value;

fn golden(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../store/tests/golden/mindspore").join(name)
}

/// The array of a run whose name holds these parts.
fn array(case: &str, parts: &[&str]) -> PathBuf {
    let dir = golden(case).join("dump/rank_0/Net/0/0");
    let files = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        parts.iter().all(|part| name.contains(part))
    };
    files.into_iter().find(is_wanted).unwrap()
}

#[test]
fn a_dump_is_listed_with_every_tensor() {
    let path = golden("lenet_all/dump");
    let shown = json(opscope().arg("show").arg(&path).arg("--json"));
    assert_eq!(shown["dialect"], "mindspore");
    assert_eq!(
        (
            shown["operator_executions"].as_u64(),
            shown["parameters"].as_u64()
        ),
        (Some(26), Some(16))
    );
    assert_eq!(shown["graphs"][0]["kernels"], 13);
    let conv = &shown["records"][0];
    assert_eq!(conv["full_name"], "Default/conv1-Conv2d/Conv2D-op0");
    assert_eq!(
        (&conv["iteration"], &conv["graph_id"]),
        (&Value::from(0), &Value::from(0))
    );
    assert_eq!(conv["source"].as_array().unwrap().len(), 4);
    let tensors = conv["tensors"].as_array().unwrap();
    let slots: Vec<_> = tensors
        .iter()
        .map(|t| t["slot"].as_str().unwrap())
        .collect();
    assert_eq!(slots, ["input.0", "input.1", "output.0"]);
    assert_eq!(tensors[0]["original_dtype"], "Float32");
    assert_eq!(tensors[2]["stats"]["nan"], 0);
    assert_eq!(tensors[2]["first"].as_array().unwrap().len(), 8);
    let (code, told, _) = text(opscope().arg("show").arg(&path));
    assert_eq!(code, 0);
    assert!(
        told.contains("26 operator executions, 16 parameters"),
        "{told}"
    );
    let line = told
        .lines()
        .find(|line| line.contains("conv1-Conv2d/Conv2D-op0"));
    assert!(line.unwrap().contains("Float32"), "{told}");
}

#[test]
fn a_damaged_array_is_reported_and_the_rest_listed() {
    let dir = tempfile::tempdir().unwrap();
    let leaf = dir.path().join("rank_0/Net/0/3");
    fs::create_dir_all(&leaf).unwrap();
    for parts in [["Cast-op0.", ".input.0."], ["Cast-op0.", ".output.0."]] {
        let path = array("dtypes", &parts);
        let bytes = fs::read(&path).unwrap();
        let end = bytes.len() - usize::from(parts[1] == ".output.0.");
        fs::write(leaf.join(path.file_name().unwrap()), &bytes[..end]).unwrap();
    }
    let (code, told, errors) = text(opscope().arg("show").arg(dir.path()));
    assert_eq!(code, 4, "{told}");
    assert!(errors.contains("is not a valid npy file"), "{errors}");
    assert!(
        told.contains("unreadable") && told.contains("input.0"),
        "{told}"
    );
}

#[test]
fn files_are_shown() {
    let bfloat = array("dtypes", &["Parameter.bf16."]);
    let shown = json(opscope().arg("show").arg(&bfloat).arg("--json"));
    assert_eq!(shown["name"]["op_type"], "Parameter");
    assert_eq!(shown["tensors"][0]["dtype"], "bfloat16");
    let input = array("dtypes", &["Cast-op3.", ".input.0."]);
    let shown = json(opscope().arg("show").arg(&input).arg("--json"));
    assert_eq!(shown["tensors"][0]["slot"], "input.0");
    let graph = golden("constants_cpu/dump/rank_0/graphs/ms_output_trace_code_graph_0");
    for extension in ["ir", "pb"] {
        let path = graph.with_extension(extension);
        let shown = json(opscope().arg("show").arg(&path).arg("--json"));
        let concat = &shown["operators"][2];
        assert_eq!(concat["full_name"], "Default/Concat-op1");
        assert_eq!(concat["scope"], "Default");
        assert_eq!(concat["inputs"][0]["from"], "Default/Mul-op0");
        assert_eq!(concat["outputs"][0]["shape"], Value::from([3, 3]));
        assert!(concat["source"][1].as_str().unwrap().contains("gen.py:19"));
        let (code, told, _) = text(opscope().arg("show").arg(&path));
        assert!(
            code == 0 && told.contains("8 operators, 1 parameter"),
            "{told}"
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("statistic.csv");
    fs::copy(golden("library/statistic_all.csv"), &table).unwrap();
    let shown = json(opscope().arg("show").arg(&table).arg("--json"));
    assert_eq!(shown["rows"][0]["statistics"]["L2Norm Value"], "12.083");
    let n_rows = shown["rows"].as_array().unwrap().len();
    let (code, told, _) = text(opscope().arg("show").arg(&table));
    assert!(
        code == 0 && told.contains(&format!("{n_rows} rows")),
        "{told}"
    );
}

#[test]
fn arrays_are_converted_under_their_own_names() {
    let dir = tempfile::tempdir().unwrap();
    let convert = |source: PathBuf, kind: &str| {
        let mut command = opscope();
        command
            .args(["convert", "--json", "-t", kind, "-d"])
            .arg(source);
        json(command.arg("--out").arg(dir.path()))
    };
    let report = convert(golden("dtypes/dump"), "npy");
    assert_eq!(
        (
            report["converted"].as_u64(),
            report["failures"].as_array().unwrap().len()
        ),
        (Some(45), 0)
    );
    let bfloat = array("dtypes", &["Parameter.bf16."]);
    let name = bfloat.file_name().unwrap();
    let converted = dir.path().join("rank_0/Net/0/0").join(name);
    assert!(String::from_utf8_lossy(&fs::read(converted).unwrap()).contains("'<f4'"));
    convert(bfloat.clone(), "bin");
    let stem = bfloat.file_stem().unwrap().to_str().unwrap();
    assert!(dir.path().join(format!("{stem}.6.float32.ND.bin")).exists());
    // What is made from a file never takes its place.
    let copy = dir.path().join(name);
    fs::copy(&bfloat, &copy).unwrap();
    let mut command = opscope();
    command
        .args(["convert", "-d"])
        .arg(&copy)
        .arg("--out")
        .arg(dir.path());
    let (code, _, errors) = text(&mut command);
    assert!(code != 0 && errors.contains("exists already"), "{errors}");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&bfloat).unwrap());
}
