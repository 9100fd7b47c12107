//! Dump files of the runtime: their contents, and broken ones that are refused.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use opscope_store::file_format::dump_data::{DumpFile, TensorEntry};
use opscope_store::file_format::npy;
use opscope_store::file_format::op_debug::{FILE_NAME_PREFIX, OverflowRecord};
use opscope_tensor::{DType, Tensor};
use serde_json::{Value, json};

#[test]
fn headers_and_payloads_are_as_recorded() {
    for (path, expected) in dumps() {
        let file = DumpFile::open(&path).unwrap();
        let header = file.header();
        let recorded = &expected["header"];
        assert_eq!(file.n_header_bytes(), expected["header_length"], "{path:?}");
        assert_eq!(header.version, recorded["version"], "{path:?}");
        assert_eq!(
            header.dump_time.to_string(),
            recorded["dump_time"],
            "{path:?}"
        );
        assert_eq!(header.op_name, recorded["op_name"], "{path:?}");
        assert_eq!(header.dfx_message, recorded["dfx_message"], "{path:?}");
        assert_entries(&header.inputs, &recorded["input"]);
        assert_entries(&header.outputs, &recorded["output"]);
        let pieces: Vec<Value> = file
            .pieces()
            .iter()
            .map(|piece| {
                let size = piece.range.len();
                let hex = if size < 2048 {
                    json!(hex(file.bytes_of(piece)))
                } else {
                    Value::Null
                };
                json!({
                    "kind": piece.kind.name(),
                    "index": piece.index,
                    "offset": piece.range.start,
                    "size": size,
                    "hex": hex,
                })
            })
            .collect();
        let mut expected_pieces = expected["payload"].clone();
        for piece in expected_pieces.as_array_mut().unwrap() {
            piece.as_object_mut().unwrap().remove("sha256");
        }
        assert_eq!(Value::from(pieces), expected_pieces, "{path:?}");
    }
}

#[test]
fn the_drop_in_writes_what_was_recorded() {
    for (path, expected) in dumps() {
        let out = tempfile::tempdir().unwrap();
        assert_eq!(convert(&path, out.path()), 0, "{path:?}");
        let outputs = expected["msaccucmp_convert_outputs"].as_object().unwrap();
        assert_eq!(
            fs::read_dir(out.path()).unwrap().count(),
            outputs.len(),
            "{path:?}"
        );
        for (name, content) in outputs {
            let found = out.path().join(name);
            match found.extension().and_then(|extension| extension.to_str()) {
                Some("json") => {
                    let found: Value = serde_json::from_slice(&fs::read(&found).unwrap()).unwrap();
                    assert_eq!(&found, content, "{name}");
                }
                Some("npy") => {
                    assert_array(&npy::read_file(&found).unwrap(), content, name);
                }
                _ => assert_eq!(json!({"hex": hex(&fs::read(&found).unwrap())}), *content),
            }
        }
    }
}

#[test]
fn records_are_read_and_written() {
    let mut n_records = 0;
    for (path, _) in dumps() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with(FILE_NAME_PREFIX) {
            continue;
        }
        let file = DumpFile::open(&path).unwrap();
        for tensor in file.tensors() {
            n_records += 1;
            let record = OverflowRecord::decode(tensor.bytes).unwrap();
            assert_eq!(record.encode(), tensor.bytes, "{name}");
        }
    }
    assert_eq!(n_records, 4);
}

#[test]
fn broken_files_are_refused() {
    let out = tempfile::tempdir().unwrap();
    // The reference's status for each: a file of eight bytes counts as an empty dump.
    let statuses = [
        ("Add.exactly_8_bytes.1.1.1700000000000404", 0),
        ("Add.garbage_proto.1.1.1700000000000403", 11),
        ("Add.header_longer_than_file.1.1.1700000000000401", 11),
        ("Add.payload_truncated.1.1.1700000000000402", 11),
        ("Opdebug.Node_OpDebug.1.1.1700000000000405", 11),
    ];
    for (name, status) in statuses {
        let path = golden().join("invalid").join(name);
        assert_eq!(convert(&path, out.path()), status, "{name}");
        let is_record = name.starts_with(FILE_NAME_PREFIX);
        assert_eq!(DumpFile::open(&path).is_ok(), is_record, "{name}");
    }
    // Files of one and three bytes with names of dumps have been published.
    let stubs = [
        ("exception_info.5.1.1706152473105513", "1", 0),
        ("invalid.npy", "xxx", 11),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (name, content, status) in stubs {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        assert_eq!(convert(&path, out.path()), status, "{name}");
        assert!(DumpFile::open(&path).is_err(), "{name}");
    }
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/tests/golden/cann")
}

/// The dump files with their expected contents.
fn dumps() -> Vec<(PathBuf, Value)> {
    let entries = fs::read_dir(golden().join("dumps")).unwrap();
    let dumps: Vec<(PathBuf, Value)> = entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = format!("{}.json", entry.file_name().display());
            let expected = fs::read(golden().join("expected").join(name)).unwrap();
            (entry.path(), serde_json::from_slice(&expected).unwrap())
        })
        .collect();
    assert_eq!(dumps.len(), 6);
    dumps
}

fn convert(path: &Path, out: &Path) -> i32 {
    // The drop-in accepts few characters in paths, so it gets a copy in a suitable directory.
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join(path.file_name().unwrap());
    fs::copy(path, &copy).unwrap();
    let words = [
        "convert",
        "-d",
        copy.to_str().unwrap(),
        "-out",
        out.to_str().unwrap(),
    ];
    opscope_msaccucmp::run(&words.map(OsString::from))
}

fn assert_entries(entries: &[TensorEntry], recorded: &Value) {
    let dims = |dims: &Option<Vec<u64>>| match dims {
        Some(dims) => json!({"dim": dims.iter().map(u64::to_string).collect::<Vec<_>>()}),
        None => Value::Null,
    };
    let recorded = recorded.as_array().unwrap();
    assert_eq!(entries.len(), recorded.len());
    for (entry, recorded) in entries.iter().zip(recorded) {
        assert_eq!(entry.data_type, recorded["data_type"]);
        assert_eq!(entry.format, recorded["format"]);
        assert_eq!(entry.size.to_string(), recorded["size"]);
        assert_eq!(entry.address.to_string(), recorded["address"]);
        assert_eq!(entry.sub_format, recorded["sub_format"]);
        assert_eq!(dims(&entry.shape), recorded["shape"]);
        assert_eq!(dims(&entry.original_shape), recorded["original_shape"]);
    }
}

/// Compares dtype, shape and values; all are exact in `f32`, unlike their decimal texts.
fn assert_array(tensor: &Tensor, recorded: &Value, name: &str) {
    assert_eq!(tensor.dtype().name(), recorded["dtype"], "{name}");
    assert_eq!(json!(tensor.shape().dims()), recorded["shape"], "{name}");
    let bytes = tensor.host_bytes().unwrap();
    let values: Vec<f32> = match tensor.dtype() {
        DType::Bool => bytes.iter().map(|&b| f32::from(b != 0)).collect(),
        DType::I8 => bytes.iter().map(|&b| f32::from(b as i8)).collect(),
        DType::F16 => {
            let (halves, _) = bytes.as_chunks::<2>();
            halves
                .iter()
                .map(|&b| half::f16::from_le_bytes(b).to_f32())
                .collect()
        }
        DType::F32 => {
            let (singles, _) = bytes.as_chunks::<4>();
            singles.iter().map(|&b| f32::from_le_bytes(b)).collect()
        }
        other => panic!("no array of {other} was recorded"),
    };
    let recorded = recorded["values"].as_array().unwrap().iter();
    let recorded: Vec<f32> = recorded
        .map(|value| match value {
            Value::Bool(flag) => f32::from(*flag),
            number => number.as_f64().unwrap() as f32,
        })
        .collect();
    assert_eq!(values, recorded, "{name}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
