//! Compressed arrays in `convert` and `show`; no engine is needed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{json, opscope, text};

fn golden(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("..").join(path)
}

/// Paths of all files below a directory, relative to it.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let path = path.strip_prefix(dir).unwrap();
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn convert(dump: &Path, out: &Path, options: &[&str]) -> (i32, String) {
    let mut command = opscope();
    command
        .arg("convert")
        .arg("-d")
        .arg(dump)
        .arg("-out")
        .arg(out);
    let (code, told, errors) = text(command.args(options));
    (code, told + &errors)
}

#[test]
fn a_dump_survives_compression_byte_for_byte() {
    let dump = golden("store/tests/golden/mindspore/lenet_all/dump");
    let dir = tempfile::tempdir().unwrap();
    let [plain, packed, again] = ["plain", "packed", "again"].map(|name| dir.path().join(name));
    assert_eq!(convert(&dump, &plain, &[]).0, 0);
    assert_eq!(convert(&dump, &packed, &["--compress", "zstd:3"]).0, 0);
    let names = files(&plain);
    assert!(names.len() > 40);
    let with_suffix = |name: &String| {
        if name.ends_with(".npy") {
            format!("{name}.zst")
        } else {
            name.clone()
        }
    };
    let expected: Vec<String> = names.iter().map(with_suffix).collect();
    assert_eq!(files(&packed), expected);
    // What was converted is a dump of MindSpore's by its names.
    assert_eq!(convert(&packed, &again, &[]).0, 0);
    assert_eq!(files(&again), names);
    for name in names {
        assert!(
            fs::read(plain.join(&name)).unwrap() == fs::read(again.join(&name)).unwrap(),
            "{name}"
        );
    }
    let shown = |dir: &Path| json(opscope().arg("show").arg(dir).arg("--json"));
    let (plain, packed) = (shown(&plain), shown(&packed));
    assert_eq!(plain["parameters"], packed["parameters"]);
    let tensors = |shown: &serde_json::Value| {
        let records = shown["records"].as_array().unwrap().clone();
        let tensors = records
            .into_iter()
            .flat_map(|r| r["tensors"].as_array().unwrap().clone());
        tensors.map(|t| t["stats"].clone()).collect::<Vec<_>>()
    };
    assert!(!tensors(&plain).is_empty());
    assert_eq!(tensors(&plain), tensors(&packed));
}

#[test]
fn a_compressed_array_is_shown_and_a_damaged_one_refused() {
    let dump =
        golden("msaccucmp/tests/golden/convert_nano/in/d/Conv2D.nano_a.3.7.1700000000000000");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    for kind in ["npy", "msnpy"] {
        let (code, told) = convert(&dump, &out, &["-t", kind, "-o", "0", "--compress", "zstd"]);
        assert_eq!(code, 0, "{told}");
    }
    let stem = "Conv2D.nano_a.3.7.1700000000000000.output.0";
    assert_eq!(
        files(&out),
        [format!("{stem}.ND.npy.zst"), format!("{stem}.npy.zst")]
    );
    let path = out.join(format!("{stem}.npy.zst"));
    let bytes = fs::read(&path).unwrap();
    let shown = json(opscope().arg("show").arg(&path).arg("--json"));
    assert_eq!(shown["bytes"], bytes.len());
    let n_payload = shown["tensors"][0]["bytes"].as_u64().unwrap();
    assert_eq!(shown["decompressed_bytes"], 128 + n_payload);
    fs::write(&path, &bytes[..bytes.len() - 2]).unwrap();
    let (code, _, errors) = text(opscope().arg("show").arg(&path));
    assert_eq!(code, 3);
    assert!(
        errors.contains("is not a valid npy.zst file") && errors.contains("end of a zstd frame"),
        "{errors}"
    );
}

#[test]
fn other_kinds_of_files_are_not_compressed() {
    let dump = golden("store/tests/golden/mindspore/lenet_all/dump");
    let out = tempfile::tempdir().unwrap();
    for kind in ["bin", "txt", "pt", "safetensors"] {
        let (code, told) = convert(&dump, out.path(), &["-t", kind, "--compress", "zstd"]);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains("`-t npy`"), "{told}");
    }
    assert_eq!(files(out.path()), Vec::<String>::new());
}
