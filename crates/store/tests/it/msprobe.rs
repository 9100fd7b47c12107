//! Dumps of msProbe, against what Python, torch and numpy read of them:
//! `tests/peers/msprobe_cases.py` and `msprobe_mindspore_cases.py`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use opscope_store::reader::{DumpIndex, FileRequest, IndexedTensor, TensorFile, read_dump};
use opscope_store::record::SlotSide;
use serde_json::{Map, Value, json};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/msprobe")
}

/// Those that the tool wrote under MindSpore.
fn golden_mindspore() -> PathBuf {
    golden().with_file_name("msprobe_mindspore")
}

fn known(name: &str) -> Map<String, Value> {
    known_in(&golden(), name)
}

fn known_in(golden: &Path, name: &str) -> Map<String, Value> {
    let known = std::fs::read_to_string(golden.join(name)).unwrap();
    serde_json::from_str(&known).unwrap()
}

fn open(path: &Path) -> DumpIndex {
    read_dump(path, &mut |requests| {
        requests.iter().map(FileRequest::read_head).collect()
    })
    .unwrap()
}

/// A tensor as the list of Python has it; numbers as Rust prints what their texts mean.
fn listed(tensor: &IndexedTensor) -> Value {
    let (side, position) = tensor.slot.unwrap();
    let mut digest = Value::Null;
    let mut statistics = Map::new();
    for (title, text) in tensor.statistics.iter() {
        match title.strip_suffix(" Value") {
            Some(_) => statistics.insert(title.to_string(), number(text.as_deref())),
            None => {
                digest = json!(text.as_deref());
                None
            }
        };
    }
    json!({
        "op": tensor.execution.op_name,
        "side": if side == SlotSide::Input { "input" } else { "output" },
        "position": position,
        "dtype": tensor.dtype.as_ref().unwrap().to_string(),
        "shape": tensor.shape,
        "statistics": statistics,
        "digest": digest,
    })
}

fn number(text: Option<&str>) -> Value {
    json!(text.map(|text| text.parse::<f64>().unwrap().to_string()))
}

#[test]
fn tensors_are_what_python_lists() {
    check_listed(&golden());
    check_listed(&golden_mindspore());
}

fn check_listed(golden: &Path) {
    for (path, expected) in known_in(golden, "listed.json") {
        let dir = golden.join(&path);
        let index = open(dir.parent().unwrap());
        assert_eq!(index.form, "msprobe", "{path}");
        assert!(index.errors.is_empty(), "{path}: {:?}", index.errors);
        let mut expected: Vec<Value> = expected.as_array().unwrap().clone();
        for row in &mut expected {
            // MindSpore's names of dtypes begin in upper case.
            row["dtype"] = json!(row["dtype"].as_str().unwrap().to_lowercase());
            for text in row["statistics"].as_object_mut().unwrap().values_mut() {
                *text = number(text.as_str());
            }
            // The tool writes a scalar itself instead of its digest.
            if let Some(scalar) = row["digest"].as_f64() {
                row["digest"] = json!(scalar.to_string());
            }
        }
        // Order inside of a step is another test's matter.
        let by_slot = |row: &Value| row.to_string();
        let mut found: Vec<Value> = index.tensors.iter().map(listed).collect();
        found.sort_by_key(by_slot);
        expected.sort_by_key(by_slot);
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn calls_keep_their_order_step_and_module() {
    let index = open(&golden().join("statistics_mix"));
    let mut calls: Vec<_> = index.tensors.iter().map(|one| &one.execution).collect();
    calls.dedup();
    let first: Vec<_> = calls
        .iter()
        .take(3)
        .map(|call| {
            let site = call.call_site.clone().unwrap_or_default();
            (call.op_name.as_str(), call.op_type.clone(), call.step, site)
        })
        .map(|(name, op_type, step, site)| (name, op_type, step, site.module, site.source))
        .collect();
    let expected = [
        ("Functional.linear.0.forward", "linear"),
        ("Module.layer1.Linear.forward.0", "Linear"),
        ("Functional.relu.0.forward", "relu"),
    ];
    for (found, (name, op_type)) in first.iter().zip(expected) {
        assert_eq!(
            (found.0, found.1.as_str(), found.2),
            (name, op_type, Some(0))
        );
    }
    assert_eq!(&*first[1].3, "layer1");
    assert_eq!(&*first[1].4, "/train/model.py:50 forward");
    assert!(calls.iter().any(|call| call.step == Some(1)));
}

#[test]
fn elements_are_what_torch_reads() {
    let root = golden().join("tensor_l0");
    let mut expected: BTreeMap<_, _> = known("tensor_l0.expected.json").into_iter().collect();
    for tensor in open(&root).tensors {
        let place = tensor.elements.as_ref().unwrap();
        let name = tensor.path.strip_prefix(&root).unwrap();
        let known = expected.remove(name.to_str().unwrap()).unwrap();
        let file = TensorFile::open(&tensor.path, &place.real_name).unwrap();
        let (side, index) = place.tensor.unwrap_or((SlotSide::Output, 0));
        let bytes = file.elements(file.tensor(side, index).unwrap()).unwrap();
        let bytes = bytes.as_ref().to_vec();
        let values = bytes.chunks_exact(4).map(|four| {
            let four: [u8; 4] = four.try_into().unwrap();
            f64::from(f32::from_le_bytes(four))
        });
        let values: Vec<f64> = values.collect();
        assert_eq!(json!(tensor.shape), known["shape"], "{name:?}");
        assert_eq!(json!(values), known["values"], "{name:?}");
        assert_eq!(tensor.dtype.unwrap().to_string(), "float32");
    }
    assert!(expected.is_empty(), "not listed: {:?}", expected.keys());
}

#[test]
fn elements_of_mindspore_are_what_numpy_reads() {
    for case in ["tensor_mix", "tensor_l0"] {
        let root = golden_mindspore().join(case);
        let expected = known_in(&golden_mindspore(), &format!("{case}.expected.json"));
        let mut expected: BTreeMap<_, _> = expected.into_iter().collect();
        for tensor in open(&root).tensors {
            let place = tensor.elements.as_ref().unwrap();
            let name = tensor.path.strip_prefix(&root).unwrap();
            let known = expected.remove(name.to_str().unwrap()).unwrap();
            let file = TensorFile::open(&tensor.path, &place.real_name).unwrap();
            let (side, index) = place.tensor.unwrap_or((SlotSide::Output, 0));
            let bytes = file.elements(file.tensor(side, index).unwrap()).unwrap();
            let bytes = bytes.as_ref().to_vec();
            let bytes: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let dtype = tensor.dtype.unwrap().to_string();
            assert_eq!(json!(tensor.shape), known["shape"], "{name:?}");
            assert_eq!(json!(dtype), known["dtype"], "{name:?}");
            assert_eq!(json!(bytes), known["bytes"], "{name:?}");
        }
        assert!(expected.is_empty(), "not listed: {:?}", expected.keys());
    }
}

#[test]
fn cells_of_mindspore_are_modules() {
    let index = open(&golden_mindspore().join("tensor_mix"));
    let sites: BTreeMap<&str, [&str; 2]> = index
        .tensors
        .iter()
        .map(|tensor| &tensor.execution)
        .map(|call| {
            let site = call.call_site.as_ref().unwrap();
            (call.op_name.as_str(), [&*site.module, &*site.source])
        })
        .collect();
    let expected = [
        (
            "Cell.turn.Turn.forward.0",
            "turn",
            "/train/net.py:41 construct",
        ),
        (
            "Functional.logical_and.0.forward",
            "",
            "/train/net.py:42 construct",
        ),
        (
            "Functional.logical_not.0.forward",
            "turn",
            "/train/net.py:33 construct",
        ),
        ("Functional.sin.0.forward", "", "/train/net.py:42 construct"),
        ("Tensor.__add__.0.forward", "", "/train/net.py:42 construct"),
        (
            "Tensor.__mul__.0.forward",
            "turn",
            "/train/net.py:33 construct",
        ),
    ];
    let expected = expected.map(|(name, module, source)| (name, [module, source]));
    assert_eq!(sites, BTreeMap::from(expected));
}

#[test]
fn a_dump_of_structure_has_no_tensors() {
    // The tool leaves `data` empty then, so there is nothing to list, and nothing wrong either.
    let index = open(&golden().join("structure_mix"));
    assert_eq!(index.form, "msprobe");
    assert_eq!((index.tensors.len(), index.errors.len()), (0, 0));
}

#[test]
fn damaged_files_are_errors() {
    let deep = format!(r#"{{"a":{}"#, "[".repeat(4000));
    let tensor = |description: &str| format!(r#"{{"x.0.debug":{description}}}"#);
    // Content of `data`, and a part of the error; none where everything is sound.
    let cases = [
        (deep, "recursion limit"),
        ("[]".to_owned(), "an object of calls"),
        ("{".to_owned(), "EOF"),
        (
            r#"{"Functional.a.0.forward":7}"#.to_owned(),
            "expected an object",
        ),
        (
            r#"{"Functional.a.0.forward":{"odd":[]}}"#.to_owned(),
            "found `odd`",
        ),
        (tensor(r#"{"type":"t","dtype":1,"shape":[1]}"#), "`dtype`"),
        (
            tensor(r#"{"type":"t","dtype":"float32","shape":[-1]}"#),
            "`shape`",
        ),
        (
            tensor(r#"{"type":"t","dtype":"float32","shape":[1.5]}"#),
            "`shape`",
        ),
        (
            tensor(r#"{"type":"t","dtype":"float32","shape":"1"}"#),
            "`shape`",
        ),
        (
            tensor(r#"{"type":"t","dtype":"float32","shape":[18446744073709551615,9]}"#),
            "",
        ),
        (tensor(r#"{"type":"t","dtype":"no such","shape":[1]}"#), ""),
        (
            tensor(r#"{"type":"t","dtype":"float32","shape":[1],"data_name":"../dump.json"}"#),
            "found no file",
        ),
        (
            tensor(r#"{"type":"t","dtype":"float32","shape":[1],"data_name":"/etc/passwd"}"#),
            "found no file",
        ),
        (r#"{"x.0.debug":1,"x.0.debug":2}"#.to_owned(), ""),
    ];
    for (data, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(r#"{{"task":"tensor","level":"L1","data":{data}}}"#);
        std::fs::write(dir.path().join("dump.json"), text).unwrap();
        let index = open(dir.path());
        let errors = format!("{:?}", index.errors);
        let start: String = data.chars().take(80).collect();
        assert_eq!(
            index.errors.len(),
            usize::from(!expected.is_empty()),
            "{start}: {errors}"
        );
        assert!(errors.contains(expected), "{start}: {errors}");
    }
}
