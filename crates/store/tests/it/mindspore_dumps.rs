//! Dump directories of real MindSpore runs, read completely.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::sha256;
use opscope_store::dump::mindspore::{FileName, MindSporeListing, RunKind};
use opscope_store::file_format::npy::{self, NpyHeader};
use opscope_store::tree::acl::clean_name;
use opscope_store::tree::mindspore::{MindSporePlace, TensorFileName};
use serde_json::Value;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/mindspore")
}

/// Each recorded run with its directory and what is known of its arrays.
fn cases() -> Vec<(String, PathBuf, Vec<Value>)> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(golden()).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(manifest) = fs::read_to_string(dir.join("manifest.jsonl")) else {
            continue;
        };
        let lines = manifest
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        cases.push((name, dir.join("dump"), lines.collect()));
    }
    assert_eq!(cases.len(), 21);
    cases
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap()
}

#[test]
fn every_array_is_found_and_read() {
    for (case, dir, arrays) in cases() {
        let dump = MindSporeListing::open(&dir).unwrap();
        assert!(dump.errors.is_empty(), "{case}: {:?}", dump.errors);
        assert_eq!(dump.files.len(), arrays.len(), "{case}");
        let by_path: BTreeMap<_, _> = dump.files.iter().map(|f| (f.path.clone(), f)).collect();
        for array in &arrays {
            let file = by_path[&dir.join(text(array, "file"))];
            let FileName::Array(name) = &file.name else {
                panic!("{case}: {array}");
            };
            let real = array.get("mapped_from").or(array.get("file")).unwrap();
            let real = real.as_str().unwrap().rsplit('/').next().unwrap();
            assert_eq!(
                (name.to_string().as_str(), file.real_name.as_str()),
                (real, real)
            );
            assert_eq!(name.op_type, text(array, "op_type"));
            assert_eq!(name.op_name, text(array, "op_name"));
            assert_eq!(name.timestamp, number(array, "timestamp"));
            assert_eq!(
                (name.side.name(), name.slot),
                (text(array, "io"), number(array, "slot") as u32)
            );
            assert_eq!(
                (name.layout.as_str(), name.dtype.as_deref()),
                (text(array, "format"), array["dtype"].as_str())
            );
            let place: MindSporePlace = file.place.clone();
            assert_eq!(place.graph_id, Some(number(array, "graph_id") as u32));
            assert_eq!(place.iteration, Some(number(array, "iteration")));
            let bytes = fs::read(&file.path).unwrap();
            let (header, n_header) = NpyHeader::decode(&bytes).unwrap();
            assert_eq!(Some(header.dtype), name.known_dtype());
            assert!(String::from_utf8_lossy(&bytes[..n_header]).contains(text(array, "descr")));
            let shape: Vec<usize> = serde_json::from_value(array["shape"].clone()).unwrap();
            assert_eq!(header.shape.dims(), shape, "{case}: {real}");
            assert_eq!(
                npy::mindspore_header(header.dtype, &header.shape).unwrap(),
                bytes[..n_header]
            );
            let tensor = npy::from_bytes(bytes).unwrap();
            assert_eq!(
                tensor.host_bytes().unwrap().len() as u64,
                number(array, "payload_bytes")
            );
            assert_eq!(
                sha256::hex_digest(tensor.host_bytes().unwrap()),
                text(array, "payload_sha256")
            );
        }
    }
}

#[test]
fn records_have_their_full_names() {
    let mut n_renamed = 0;
    for (case, dir, arrays) in cases() {
        let dump = MindSporeListing::open(&dir).unwrap();
        let mut by_file = BTreeMap::new();
        for record in &dump.records {
            for slot in &record.slots {
                by_file.insert(dump.files[slot.file.unwrap()].path.clone(), record);
            }
        }
        assert_eq!(by_file.len(), arrays.len(), "{case}");
        for array in &arrays {
            let record = by_file[&dir.join(text(array, "file"))];
            let is_parameter = text(array, "op_type") == "Parameter";
            assert_eq!(record.kind == RunKind::Parameter, is_parameter);
            assert_eq!(
                record.full_name.as_deref(),
                Some(text(array, "full_name")),
                "{case}: {array}"
            );
            // A name that is listed is itself; for others the recorder says what it found, if it
            // could decide.
            let listed = array.get("listed_in_csv_as").and_then(Value::as_str);
            if record.listed_name != record.full_name && listed.is_some() {
                assert_eq!(record.listed_name.as_deref(), listed, "{case}: {array}");
                n_renamed += 1;
            }
        }
    }
    assert!(n_renamed > 30, "{n_renamed}");
}

/// In synchronous dumps the times of the files are the order of execution: without loops it is the
/// order of the records, and each record is one execution.
#[test]
fn records_come_in_execution_order() {
    for (case, dir, _) in cases() {
        let dump = MindSporeListing::open(&dir).unwrap();
        let mut by_place: BTreeMap<MindSporePlace, Vec<u64>> = BTreeMap::new();
        for record in dump.records.iter().filter(|r| r.kind == RunKind::Operator) {
            let first = record
                .slots
                .iter()
                .map(|slot| slot.timestamp)
                .min()
                .unwrap();
            let last = record
                .slots
                .iter()
                .map(|slot| slot.timestamp)
                .max()
                .unwrap();
            let slots: BTreeSet<_> = record.slots.iter().map(|s| (s.side, s.index)).collect();
            assert_eq!(slots.len(), record.slots.len());
            assert!(last - first < 1_000_000, "{case}");
            by_place
                .entry(record.place.clone())
                .or_default()
                .push(first);
        }
        for (place, times) in by_place {
            assert!(times.is_sorted(), "{case}: {place:?}");
        }
    }
    let dump = MindSporeListing::open(&golden().join("control_flow/dump")).unwrap();
    let loops = dump
        .records
        .iter()
        .filter(|r| r.op_type == "Less" && r.place.iteration == Some(1));
    assert_eq!(loops.map(|r| r.run).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_dump_without_anything_beside_it_is_read() {
    let copy = tempfile::tempdir().unwrap();
    let source = golden().join("lenet_all/dump/rank_0/Net");
    let target = copy.path().join("rank_0/Net");
    crate::support::copy_dir(&source, &target);
    let dump = MindSporeListing::open(copy.path()).unwrap();
    let whole = MindSporeListing::open(&golden().join("lenet_all/dump")).unwrap();
    assert!(dump.errors.is_empty() && dump.graphs.is_empty());
    let names = |dump: &MindSporeListing| -> Vec<(MindSporePlace, String, usize)> {
        let records = dump.records.iter();
        records
            .map(|r| (r.place.clone(), r.op_name.clone(), r.slots.len()))
            .collect()
    };
    assert_eq!(names(&dump), names(&whole));
    assert!(dump.records.iter().all(|r| r.full_name.is_none()));
    for record in &whole.records {
        assert_eq!(
            clean_name(record.full_name.as_deref().unwrap()),
            record.op_name
        );
    }
}

#[test]
fn a_tree_has_the_grammar_of_a_real_one() {
    let dir = golden().join("lenet_all/dump");
    let copy = tempfile::tempdir().unwrap();
    // The same files at another time, in another process, with other digits.
    let other = |name: &str| match TensorFileName::parse(name) {
        Some(mut name) => {
            name.timestamp += 123;
            name.to_string()
        }
        None => name.to_owned(),
    };
    crate::support::copy_dir_renamed(&dir, copy.path(), &other);
    assert_eq!(
        crate::support::tree::differences(&dir, copy.path()),
        Vec::<String>::new()
    );
    let file = |dir: &Path, name: &str| fs::write(dir.join("rank_0").join(name), "").unwrap();
    assert!(crate::support::tree::grammar_differences(&dir, copy.path()).is_empty());
    file(copy.path(), "stray.txt");
    assert_eq!(
        crate::support::tree::differences(&dir, copy.path()).len(),
        1
    );
    assert_eq!(
        crate::support::tree::grammar_differences(&dir, copy.path()).len(),
        1
    );
    // Two models have different trees of the same grammar.
    let other = golden().join("train_momentum/dump");
    assert!(crate::support::tree::grammar_differences(&dir, &other).is_empty());
    assert!(!crate::support::tree::differences(&dir, &other).is_empty());
    let parameters_only = golden().join("op_debug_mode_4_cpu/dump");
    assert!(!crate::support::tree::grammar_differences(&dir, &parameters_only).is_empty());
}
