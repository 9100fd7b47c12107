//! `opscope dump --compress`, and compressed arrays as a model's inputs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{digits, dump_of_digits, json as json_of, opscope, text};
use serde_json::json;
use tempfile::TempDir;

/// A directory whose name has only letters that MindSpore allows in paths.
fn directory() -> TempDir {
    tempfile::Builder::new()
        .prefix("opscope-")
        .tempdir()
        .unwrap()
}

fn configuration(dir: &Path, saved: &str, format: &str, is_by_kernels: bool) -> PathBuf {
    let mut file = json!({ "common_dump_settings": {
        "op_debug_mode": 0,
        "dump_mode": 0,
        "path": dir.join("dump"),
        "net_name": "Digits",
        "iteration": "all",
        "saved_data": saved,
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        "file_format": format,
    }});
    if is_by_kernels {
        file["e2e_dump_settings"] = json!({"enable": true});
    }
    let path = dir.join("data_dump.json");
    fs::write(&path, file.to_string()).unwrap();
    path
}

/// A model's input, compressed.
fn images(dir: &Path) -> PathBuf {
    let plain = fs::read(digits("images.npy")).unwrap();
    let path = dir.join("image.npy.zst");
    let mut file = fs::File::create(&path).unwrap();
    let level = opscope_store::file_format::zstd::CompressionLevel::default();
    opscope_store::file_format::zstd::write(&mut file, &[&plain], level).unwrap();
    path
}

#[test]
fn every_array_is_compressed_and_listed() {
    let dir = directory();
    let config = configuration(dir.path(), "tensor", "npy", true);
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command.args(["--compress", "zstd:7", "--json", "--config"]);
    command.arg(&config).arg("--inputs");
    let inputs = dir.path().join("inputs");
    fs::create_dir(&inputs).unwrap();
    fs::rename(images(dir.path()), inputs.join("image.npy.zst")).unwrap();
    let report = json_of(command.arg(&inputs));
    assert_eq!(report["records"]["written"], 31);
    let tree = dir.path().join("dump");
    let shown = json_of(opscope().arg("show").arg(&tree).arg("--json"));
    assert_eq!(shown["files"], 31);
    assert_eq!(shown["errors"], json!([]));
    for record in shown["records"].as_array().unwrap() {
        for tensor in record["tensors"].as_array().unwrap() {
            assert!(tensor["path"].as_str().unwrap().ends_with(".npy.zst"));
            assert!(tensor["stats"].is_object(), "{tensor}");
        }
    }
}

#[test]
fn inputs_are_the_same_compressed_or_not() {
    let dir = directory();
    let stats = |path: &Path| {
        let mut command = opscope();
        command.arg("dump").arg(digits("digits_cnn.onnx"));
        command.args(["--stats", "--no-baseline", "--input"]);
        let (code, told, errors) = text(command.arg(format!("image={}", path.display())));
        assert_eq!(code, 0, "{errors}");
        let lines = told.lines().filter(|line| !line.contains("time"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(stats(&digits("images.npy")), stats(&images(dir.path())));
}

#[test]
fn an_input_that_is_there_twice_is_refused() {
    let dir = directory();
    images(dir.path());
    fs::copy(digits("images.npy"), dir.path().join("image.npy")).unwrap();
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .arg("--stats");
    let (code, _, errors) = text(command.arg("--inputs").arg(dir.path()));
    assert_eq!(code, 2);
    assert!(errors.contains("`image` is given twice"), "{errors}");
}

#[test]
fn where_there_are_no_arrays_compression_is_refused() {
    let dir = directory();
    let out = dir.path().join("dump");
    let check = |arguments: &[&str], part: &str| {
        let mut command = dump_of_digits();
        let (code, _, errors) = text(command.args(["--compress", "zstd"]).args(arguments));
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("needs a file for each array"), "{errors}");
        assert!(errors.contains(part), "{errors}");
        assert!(!out.exists());
    };
    check(
        &["--form", "acl", "--out", out.to_str().unwrap()],
        "all tensors of an operator",
    );
    check(&["--stats"], "write no files");
    let acl = dir.path().join("acl.json");
    let text = json!({"dump": {
        "dump_path": dir.path(), "dump_mode": "all", "dump_list": [{"model_name": "digits_cnn"}],
    }});
    fs::write(&acl, text.to_string()).unwrap();
    check(
        &["--config", acl.to_str().unwrap()],
        "all tensors of an operator",
    );
    let config = configuration(dir.path(), "statistic", "npy", true);
    let config = [
        "--config",
        config.to_str().unwrap(),
        "--target",
        "ascend-o1",
    ];
    check(&config, "statistics only");
    let config = configuration(dir.path(), "tensor", "bin", false);
    let config = [
        "--config",
        config.to_str().unwrap(),
        "--target",
        "ascend-o2",
    ];
    check(&config, "`file_format` to `npy`");
}
