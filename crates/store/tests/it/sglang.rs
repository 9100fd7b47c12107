//! Dumps of SGLang, against what torch reads of them: `tests/peers/sglang_cases.py`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use opscope_store::reader::{DumpIndex, FileRequest, IndexedTensor, TensorFile, read_dump};
use opscope_store::record::SlotSide;
use serde_json::{Map, Value, json};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn open(path: &Path) -> DumpIndex {
    read_dump(path, &mut |requests| {
        requests.iter().map(FileRequest::read_head).collect()
    })
    .unwrap()
}

fn known() -> Map<String, Value> {
    let known = std::fs::read_to_string(golden("sglang/known.json")).unwrap();
    serde_json::from_str(&known).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `{operator} {side}.{position}`, as in other places.
fn slot(tensor: &IndexedTensor) -> String {
    let name = &tensor.execution.op_name;
    match tensor.slot {
        Some((side, position)) => format!("{name} {}.{position}", side.name()),
        None => format!("{name} damaged"),
    }
}

#[test]
fn every_tensor_is_what_torch_reads() {
    let root = golden("sglang");
    let mut found: BTreeMap<String, Vec<IndexedTensor>> = BTreeMap::new();
    let mut passed_over = Vec::new();
    for dump in ["plain", "passes", "modules", "modules_bent", "tagged"] {
        let index = open(&root.join(dump));
        assert_eq!(index.form, "sglang", "{dump}");
        assert!(index.errors.is_empty(), "{dump}: {:?}", index.errors);
        let name = |path: &Path| {
            path.strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        passed_over.extend(index.passed_over.iter().map(|one| name(&one.path)));
        for tensor in index.tensors {
            found.entry(name(&tensor.path)).or_default().push(tensor);
        }
    }
    for (path, expected) in known() {
        let of_file = expected["tensors"].as_array().unwrap();
        if of_file.is_empty() {
            assert!(passed_over.contains(&path), "{path}");
            continue;
        }
        let tensors = found.remove(&path).unwrap();
        assert_eq!(tensors.len(), of_file.len(), "{path}");
        for tensor in tensors {
            let place = tensor.elements.as_ref().unwrap();
            let (side, position) = place.tensor.unwrap();
            let known = &of_file[position];
            let file = TensorFile::open(&tensor.path, &place.real_name).unwrap();
            let read = file.tensor(side, position).unwrap();
            assert_eq!(
                json!(hex(file.elements(read).unwrap().as_ref())),
                known["values"],
                "{path}"
            );
            assert_eq!(json!(tensor.shape), known["shape"], "{path}");
            let dtype = tensor.dtype.as_ref().unwrap().to_string();
            assert_eq!(json!(dtype), known["dtype"], "{path}");
            let meta = &expected["meta"];
            for (key, own) in [
                ("rank", json!(tensor.execution.rank)),
                ("step", json!(tensor.execution.step)),
            ] {
                assert!(
                    meta.get(key).is_none_or(|known| *known == own),
                    "{path} {key}"
                );
            }
            let name = meta.get("name").and_then(Value::as_str).unwrap_or("");
            let name = name.strip_prefix("non_intrusive__").unwrap_or(name);
            let own_name = &tensor.execution.op_name;
            let module = own_name.split("___").next().unwrap();
            assert!(
                own_name.starts_with(name) || name.starts_with(module) || module == "non_intrusive",
                "{path}: {own_name}"
            );
        }
    }
    assert!(found.is_empty(), "torch knows no {:?}", found.keys());
}

#[test]
fn names_say_which_operator_and_which_slot() {
    let labels = |dump: &str, rank: u32, step: u64| {
        let index = open(&golden("sglang").join(dump));
        let tensors = index.tensors.iter().filter(|tensor| {
            (tensor.execution.rank, tensor.execution.step) == (Some(rank), Some(step))
        });
        tensors.map(slot).collect::<Vec<_>>()
    };
    let plain = [
        "embedding output.0",
        "attention___layer_id=0 output.0",
        "view___layer_id=0 output.0",
        "attention___layer_id=1 output.0",
        "view___layer_id=1 output.0",
        "pair output.0",
        "pair output.1",
    ];
    assert_eq!(labels("plain", 0, 1), plain);
    assert_eq!(labels("plain", 0, 2), plain);
    let tagged = labels("tagged", 0, 0);
    for expected in [
        "list output.1",
        "nested.a output.0",
        "nested.b.c.0 output.0",
        "batch_ids output.0",
        "block/mlp output.0",
        "twice___named output.0",
        "attention___phase=decode___layer_id=1 output.0",
        "grad__given output.0",
        "param__weight output.0",
        "grad__param__weight output.0",
    ] {
        assert!(
            tagged.contains(&expected.to_owned()),
            "{expected}: {tagged:?}"
        );
    }
    let passes = labels("passes", 0, 1);
    assert!(
        passes.contains(&"model.layers.1.mlp output.0".to_owned()),
        "{passes:?}"
    );
    let modules = labels("modules", 0, 0);
    // A module ends behind those that it calls; its arguments by name are counted as they come.
    let expected = [
        "model.embed input.0",
        "model.embed output.0",
        "model.layers.0.mlp input.0",
        "model.layers.0.mlp output.0",
        "model.layers.0.norm input.0",
        "model.layers.0.norm output.0",
        "model.layers.0 input.0",
        "model.layers.0 input.1",
        "model.layers.0 output.0",
        "model.layers.0 output.1",
    ];
    assert_eq!(modules.get(..expected.len()).unwrap(), expected);
    assert!(
        modules.contains(&"model.layers.1 input.2".to_owned()),
        "{modules:?}"
    );
    assert_eq!(modules.last().unwrap(), "non_intrusive output.0");
}

#[test]
fn a_second_call_and_a_note_about_axes_are_kept() {
    let index = open(&golden("sglang/tagged"));
    let runs: Vec<_> = index
        .executions
        .iter()
        .filter(|one| one.op_name.starts_with("attention") && one.rank == Some(1))
        .filter(|one| one.step == Some(0))
        .map(|one| (one.op_name.as_str(), one.run, one.model.clone()))
        .collect();
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(layer, run)| {
        let name = format!("attention___phase=decode___layer_id={layer}");
        (name, run, None)
    });
    let runs: Vec<_> = runs
        .into_iter()
        .map(|(name, run, model)| (name.to_owned(), run, model))
        .collect();
    assert_eq!(runs, expected);
    let hidden = |tensor: &&IndexedTensor| tensor.execution.op_name == "hidden";
    let hidden = index.tensors.iter().find(hidden).unwrap();
    assert_eq!(hidden.layout.as_ref().unwrap().to_string(), "t h[tp]");
}

#[test]
fn runs_side_by_side_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let name = "step=0___rank=0___dump_index=1___name=x___tp_rank=";
    let one = golden("torch_save/one.pt");
    for run in ["first", "second"] {
        std::fs::create_dir(dir.path().join(run)).unwrap();
        for rank in 0..2 {
            let path = dir.path().join(run).join(format!("{name}{rank}.pt"));
            std::fs::copy(&one, path).unwrap();
        }
    }
    let index = open(dir.path());
    // Processes that do not know of each other have the same rank.
    let found: Vec<_> = index
        .executions
        .iter()
        .map(|one| (one.model.as_deref().unwrap(), one.op_name.as_str(), one.run))
        .collect();
    let expected = [
        ("first", "x___tp_rank=0", 0),
        ("first", "x___tp_rank=1", 0),
        ("second", "x___tp_rank=0", 0),
        ("second", "x___tp_rank=1", 0),
    ];
    assert_eq!(found, expected);
    let alone = open(&dir.path().join("first").join(format!("{name}1.pt")));
    assert_eq!(alone.form, "sglang");
    assert_eq!(
        alone.tensors.iter().map(slot).collect::<Vec<_>>(),
        ["x output.0"]
    );
}

#[test]
fn damaged_and_foreign_files_are_errors() {
    let hostile = golden("torch_save/hostile");
    let known = std::fs::read_to_string(golden("torch_save/known.json")).unwrap();
    let known: Value = serde_json::from_str(&known).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut n_files = 0;
    for (number, name) in (0..).zip(known["errors"].as_object().unwrap().keys()) {
        let to = format!("step=0___rank=0___dump_index={number}___name=\u{1b}[31m{name}.pt");
        std::fs::copy(hostile.join(name), dir.path().join(to)).unwrap();
        n_files += 1;
    }
    let sound = "step=0___rank=0___dump_index=99___name=..x.pt";
    std::fs::copy(golden("torch_save/one.pt"), dir.path().join(sound)).unwrap();
    std::fs::write(dir.path().join("notes.txt"), "not a tensor").unwrap();
    std::fs::copy(golden("torch_save/dtypes.pt"), dir.path().join("other.pt")).unwrap();
    let index = open(dir.path());
    assert_eq!(index.form, "sglang");
    assert_eq!(index.errors.len(), n_files + 1, "{:?}", index.errors);
    let is_damaged = |tensor: &&IndexedTensor| tensor.dtype.is_none();
    assert_eq!(index.tensors.iter().filter(is_damaged).count(), n_files);
    let names: Vec<_> = index.tensors.iter().map(slot).collect();
    assert!(names.contains(&"..x output.0".to_owned()), "{names:?}");
    // Other files are read as without a dump around them.
    assert!(names.contains(&"float16 output.0".to_owned()), "{names:?}");
    assert!(
        index
            .tensors
            .iter()
            .all(|tensor| { tensor.slot.is_none_or(|(side, _)| side == SlotSide::Output) })
    );
}

#[test]
fn other_directories_of_tensors_are_named_arrays() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["step=0.pt", "Pass00000.pt", "name=x___rank=0.pt"] {
        std::fs::copy(golden("torch_save/one.pt"), dir.path().join(name)).unwrap();
    }
    assert_eq!(open(dir.path()).form, "arrays");
}
