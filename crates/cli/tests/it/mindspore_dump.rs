//! `opscope dump` with a configuration of MindSpore: the tree of every target, read back.

#[path = "../../../store/tests/it/support/tree.rs"]
#[allow(dead_code, reason = "only one of its comparisons is used")]
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{digits, dump_of_digits, json as json_of, opscope, text};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Operators of the model, and what they read and write.
const N_OPERATORS: u64 = 9;
const N_TENSORS: u64 = 24;
/// Weights and the input.
const N_PARAMETERS: u64 = 7;

/// A directory whose name has only letters that MindSpore allows in paths.
fn directory() -> TempDir {
    tempfile::Builder::new()
        .prefix("opscope-")
        .tempdir()
        .unwrap()
}

/// Writes a configuration; `common` and `e2e` are merged over what every one needs.
fn configuration(dir: &Path, common: &Value, e2e: Option<Value>) -> PathBuf {
    let mut settings = json!({
        "op_debug_mode": 0,
        "dump_mode": 0,
        "path": dir.join("dump"),
        "net_name": "Digits",
        "iteration": "all",
        "saved_data": "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
    });
    for (name, value) in common.as_object().unwrap() {
        settings[name] = value.clone();
    }
    let mut file = json!({ "common_dump_settings": settings });
    if let Some(e2e) = e2e {
        file["e2e_dump_settings"] = e2e;
    }
    let path = dir.join("data_dump.json");
    fs::write(&path, file.to_string()).unwrap();
    path
}

fn dump(config: &Path, more: &[&str]) -> Value {
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command.args([
        "--seed",
        "0",
        "--shape",
        "image:2,1,8,8",
        "--json",
        "--config",
    ]);
    json_of(command.arg(config).args(more))
}

fn shown(dir: &Path) -> Value {
    json_of(opscope().arg("show").arg(dir).arg("--json"))
}

/// Names of the files in a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_tree_of_the_cpu_is_that_of_a_real_run() {
    let dir = directory();
    let config = configuration(dir.path(), &json!({}), Some(json!({"enable": true})));
    let report = dump(&config, &["--steps", "2"]);
    assert_eq!(report["records"]["written"], 2 * (N_TENSORS + N_PARAMETERS));
    let tree = dir.path().join("dump");
    assert_eq!(report["tree_dir"], json!(tree.join("rank_0")));
    let golden = "../store/tests/golden/mindspore/lenet_all/dump";
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(golden);
    assert_eq!(
        tree::grammar_differences(&tree, &golden),
        Vec::<String>::new()
    );
    let shown = shown(&tree);
    assert_eq!(shown["dialect"], "mindspore");
    assert_eq!(shown["operator_executions"], 2 * N_OPERATORS);
    assert_eq!(shown["parameters"], 2 * N_PARAMETERS);
    assert_eq!(shown["graphs"][0]["kernels"], N_OPERATORS);
    assert_eq!(shown["records"][0]["full_name"], "/conv1/Conv");
    let copy = tree.join("rank_0/.dump_metadata/data_dump.json");
    assert_eq!(fs::read(copy).unwrap(), fs::read(config).unwrap());
}

#[test]
fn trees_with_ranks_differ_in_what_they_add() {
    for (target, has_parameters) in [("gpu", true), ("ascend-o0", false), ("ascend-o1", false)] {
        let dir = directory();
        let common = json!({"saved_data": "full", "iteration": "1|3-4", "initial_iteration": 3});
        let e2e = json!({"enable": true, "save_kernel_args": true});
        let config = configuration(dir.path(), &common, Some(e2e));
        dump(&config, &["--steps", "3", "--target", target]);
        let tree = dir.path().join("dump/rank_0");
        assert_eq!(names(&tree.join("Digits/0")), ["3", "4"], "{target}");
        let step = names(&tree.join("Digits/0/3"));
        let count = |part: &str| step.iter().filter(|name| name.contains(part)).count() as u64;
        let n_parameters = if has_parameters { N_PARAMETERS } else { 0 };
        assert_eq!(count("Parameter."), n_parameters, "{target}");
        assert_eq!(count(".float32.npy"), N_TENSORS + n_parameters, "{target}");
        assert_eq!(
            tree.join(".dump_metadata").exists(),
            has_parameters,
            "{target}"
        );
        let n_arguments = if has_parameters { 0 } else { N_OPERATORS };
        assert_eq!(count(".json"), n_arguments, "{target}");
        let csv = fs::read_to_string(tree.join("Digits/0/3/statistic.csv")).unwrap();
        let n_rows = csv.lines().count() as u64 - 1;
        assert_eq!(n_rows, N_TENSORS + n_parameters, "{target}");
        assert!(csv.contains("\nConv,/conv1/Conv,0,0,"), "{csv}");
        let shown = shown(&tree);
        assert_eq!(shown["operator_executions"], 2 * N_OPERATORS, "{target}");
    }
}

#[test]
fn trees_of_whole_graphs() {
    for (target, format, n_files) in [
        ("ascend-o2", "npy", N_TENSORS),
        ("ascend-o2", "bin", N_OPERATORS),
        ("ge", "bin", N_OPERATORS),
    ] {
        let dir = directory();
        let common = json!({"file_format": format, "iteration": "1"});
        let config = configuration(dir.path(), &common, None);
        let report = dump(&config, &["--steps", "2", "--target", target]);
        let tree = dir.path().join("dump");
        let step = PathBuf::from(report["dump_dirs"][0].as_str().unwrap());
        assert!(step.ends_with("0/digits_cnn/1/1"), "{}", step.display());
        assert_eq!(names(&step).len() as u64, n_files, "{target} {format}");
        let has_step = tree.join("1").exists();
        assert_eq!(has_step, target == "ascend-o2");
        assert_eq!(tree.join("acl_dump_0.json").exists(), has_step);
        if format == "npy" {
            let shown = shown(&tree);
            assert_eq!(shown["operator_executions"], N_OPERATORS);
        }
    }
}

#[test]
fn kernels_choose_and_what_chooses_nothing_is_told() {
    let dir = directory();
    let kernels = json!(["relu", "/fc/Gemm", "name-regex(/conv[12]/Conv)", "lstm"]);
    let common = json!({"dump_mode": 1, "kernels": kernels, "input_output": 2});
    let config = configuration(dir.path(), &common, Some(json!({})));
    let mut command = dump_of_digits();
    command.args(["--config"]);
    let (code, told, errors) = text(command.arg(&config));
    assert_eq!(code, 0, "{errors}");
    assert!(
        errors.contains("[DataDump] Unused Kernel in json: lstm"),
        "{errors}"
    );
    assert!(!errors.contains("json: relu"), "{errors}");
    let tree = dir.path().join("dump/rank_0");
    assert!(told.contains(&tree.display().to_string()), "{told}");
    let types: Vec<String> = names(&tree.join("Digits/0/0"))
        .iter()
        .map(|name| name.split('.').next().unwrap().to_owned())
        .collect();
    assert_eq!(types, ["Conv", "Conv", "Gemm", "Relu", "Relu"]);
}

#[test]
fn marks_choose_under_dump_mode_2() {
    let dir = directory();
    let config = configuration(
        dir.path(),
        &json!({"dump_mode": 2}),
        Some(json!({"enable": true})),
    );
    let more = [
        "--target",
        "ascend-o1",
        "--set-dump",
        "/conv2",
        "--set-dump",
        "/fc/Gemm",
    ];
    let report = dump(&config, &more);
    assert_eq!(report["operators_dumped"], 3);
}

/// Warnings about marks under this `dump_mode`.
fn told_of_marks(mode: u32, marks: &[&str]) -> String {
    let dir = directory();
    let common = json!({"dump_mode": mode});
    let config = configuration(dir.path(), &common, Some(json!({"enable": true})));
    let mut command = dump_of_digits();
    command.args(["--target", "ascend-o1"]);
    for mark in marks {
        command.args(["--set-dump", mark]);
    }
    let (code, _, errors) = text(command.arg("--config").arg(&config));
    assert_eq!(code, 0, "{errors}");
    errors
}

#[test]
fn marks_of_nothing_are_told() {
    let told = told_of_marks(2, &["/conv2", "/conv2/Cnv", "nothing"]);
    assert!(
        told.contains("no operator `/conv2/Cnv`; there is `/conv2/Conv`, `/conv1/Conv`"),
        "{told}"
    );
    assert!(told.contains("no operator `nothing`\n"), "{told}");
    assert!(!told.contains("no operator `/conv2`"), "{told}");
    assert!(told_of_marks(2, &[]).contains("none is marked: name them by `--set-dump`"));
    assert!(told_of_marks(0, &["/conv2"]).contains("`--set-dump` has no effect"));
    assert!(!told_of_marks(2, &["/conv2"]).contains("warning: the model"));
}

#[test]
fn the_variable_of_the_graph_engine_stands_for_its_target() {
    let with = |value: &str, more: &[&str]| {
        let dir = directory();
        let config = configuration(dir.path(), &json!({}), None);
        let mut command = opscope();
        command.env("ENABLE_MS_GE_DUMP", value);
        command.arg("dump").arg(digits("digits_cnn.onnx"));
        command.args(["--seed", "0", "--shape", "image:1,1,8,8", "--config"]);
        let (code, _, errors) = text(command.arg(&config).args(more));
        assert_eq!(code, 0, "{errors}");
        let mut explain = opscope();
        explain.env("ENABLE_MS_GE_DUMP", value);
        let (_, explained, _) = text(explain.args(["config", "explain"]).arg(&config));
        let tree = dir.path().join("dump");
        let has_ranks = tree.join("rank_0").exists();
        assert_ne!(has_ranks, names(&tree).iter().any(|name| name.len() == 14));
        (has_ranks, explained.contains("graph engine's own dump"))
    };
    assert_eq!(with("1", &[]), (false, true));
    assert_eq!(with("0", &[]), (true, false));
    assert_eq!(with("true", &[]), (true, false));
    assert_eq!(with("1", &["--target", "cpu"]), (true, true));
}

#[test]
fn long_names_are_mapped_everywhere() {
    let dir = directory();
    let net_name = "n".repeat(300);
    let common = json!({"net_name": net_name});
    let config = configuration(dir.path(), &common, Some(json!({})));
    dump(&config, &[]);
    dump(&config, &[]);
    let tree = dir.path().join("dump/rank_0");
    let mapping = fs::read_to_string(tree.join("mapping.csv")).unwrap();
    let (short, long) = mapping.trim_end().split_once(',').unwrap();
    // Runs add nothing that is there.
    assert_eq!(long, net_name);
    assert!(tree.join(short).join("0/0").is_dir());
    let shown = shown(&dir.path().join("dump"));
    let records = shown["records"].as_array().unwrap();
    assert!(!records.is_empty() && records.iter().all(|record| record["net_name"] == long));
}

#[test]
fn the_variable_names_a_configuration_too() {
    let dir = directory();
    let config = configuration(dir.path(), &json!({}), Some(json!({})));
    let run = |config: &Path, more: &[&str]| {
        let mut command = opscope();
        command.env("MINDSPORE_DUMP_CONFIG", config);
        command.arg("dump").arg(digits("digits_cnn.onnx"));
        command.args(["--seed", "0", "--shape", "image:1,1,8,8"]);
        text(command.args(more))
    };
    let (code, _, errors) = run(&config, &["--stats"]);
    assert_eq!(code, 0, "{errors}");
    assert!(
        !dir.path().join("dump").exists(),
        "what the command line says goes first"
    );
    let (code, _, errors) = run(&config, &[]);
    assert_eq!(code, 0, "{errors}");
    assert!(dir.path().join("dump/rank_0/Digits/0/0").is_dir());
    let (code, _, errors) = run(&dir.path().join("gone.json"), &[]);
    assert_eq!(code, 2);
    assert!(errors.contains("Get dump config file failed") || errors.contains("no such file"));
}

#[test]
fn tensors_are_written_once_unless_that_is_switched_off() {
    let steps = ["--steps", "2", "--dedup"];
    let found = ["off", "identity", "content"].map(|how| {
        let dir = directory();
        let config = configuration(dir.path(), &json!({}), None);
        let first = dump(&config, &[&steps[..], &[how]].concat());
        let second = dump(&config, &[&steps[..], &[how]].concat());
        [first, second]
    });
    let [off, identity, content] = &found;
    for outcome in found.iter().flatten() {
        assert_eq!(outcome["records"]["written"], off[0]["records"]["written"]);
    }
    let number = |outcome: &Value, name: &str| outcome[name].as_u64().unwrap();
    let n_arrays = number(&off[0]["records"], "written");
    assert_eq!(off[0]["files_linked"], 0);
    assert_eq!(off[0]["bytes_asked"], off[0]["bytes_written"]);
    assert_eq!(identity[0]["bytes_asked"], off[0]["bytes_asked"]);
    // An output is the next operator's input, and weights are those of the step before.
    assert!(number(&identity[0], "files_linked") > n_arrays / 2);
    assert!(number(&identity[0], "bytes_written") < number(&off[0], "bytes_written") / 2);
    assert_eq!(identity[1]["files_linked"], identity[0]["files_linked"]);
    assert!(number(&content[0], "files_linked") >= number(&identity[0], "files_linked"));
    assert_eq!(content[1]["files_linked"], n_arrays);
}

#[test]
fn content_is_without_effect_where_files_hold_operators() {
    let dir = directory();
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command.args(["--seed", "0", "--shape", "image:2,1,8,8"]);
    let output = command
        .args(["--dedup", "content", "--form", "acl", "--out"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(
        warnings.contains("`--dedup content` has no effect"),
        "{warnings}"
    );
}
