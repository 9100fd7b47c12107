//! Logs of PyTorch's `DebugMode`, against what a hook saw while they were made:
//! `tests/peers/debug_mode_cases.py`.

use std::path::{Path, PathBuf};

use opscope_store::SharedText;
use opscope_store::file_format::debug_mode::{self, DebugLog, DebugTensor};
use opscope_store::reader::{DumpIndex, FileRequest, read_dump};
use opscope_store::record::SlotSide;
use opscope_tensor::DType;
use serde_json::{Map, Value};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/debug_mode")
}

fn json(name: &str) -> Map<String, Value> {
    let text = std::fs::read_to_string(golden().join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn read(name: &str) -> DebugLog {
    debug_mode::parse(&std::fs::read(golden().join(name)).unwrap()).unwrap()
}

fn open(path: &Path) -> DumpIndex {
    read_dump(path, &mut |requests| {
        requests.iter().map(FileRequest::read_head).collect()
    })
    .unwrap()
}

/// Dtypes and extents that a hook saw, with the mode's words for dtypes.
fn seen(tensors: &Value, words: &Map<String, Value>) -> Vec<(String, Vec<u64>)> {
    let tensors = tensors.as_array().unwrap().iter().map(|tensor| {
        let word = words
            .iter()
            .find(|(_, name)| **name == tensor[0])
            .unwrap()
            .0;
        let shape = tensor[1].as_array().unwrap().iter();
        (
            word.clone(),
            shape.map(|dim| dim.as_u64().unwrap()).collect(),
        )
    });
    tensors.collect()
}

fn told(tensors: &[DebugTensor]) -> Vec<(String, Vec<u64>)> {
    let tensors = tensors.iter();
    tensors
        .map(|tensor| (tensor.dtype.clone(), tensor.shape.clone().unwrap()))
        .collect()
}

/// The hashes of each tensor that has any.
fn hashes(tensors: &[DebugTensor]) -> Vec<Vec<String>> {
    let all = tensors.iter().filter(|tensor| !tensor.hashes.is_empty());
    all.map(|tensor| tensor.hashes.iter().map(|(_, text)| text.clone()).collect())
        .collect()
}

/// The same as Python prints them: floats in another way, and texts in quotes.
fn known_hashes(of_tensors: &Value) -> Vec<Vec<String>> {
    let own_form = |text: &Value| {
        let text = text.as_str().unwrap().trim_matches('\'');
        match (text.parse::<u64>(), text.parse::<f64>()) {
            (Err(_), Ok(number)) => format!("{number:?}").to_lowercase(),
            _ => text.to_owned(),
        }
    };
    let of_tensors = of_tensors.as_array().unwrap().iter();
    of_tensors
        .map(|hashes| hashes.as_array().unwrap().iter().map(own_form).collect())
        .collect()
}

#[test]
fn calls_are_what_a_hook_saw() {
    let words = json("dtypes.json");
    for (case, expected) in json("known.json") {
        // Calls of other kinds were seen by no hook.
        let is_operator =
            |name: &str| !["redistribute_input", "triton_poi_fused_add_0"].contains(&name);
        for form in ["json", "txt"] {
            let log = read(&format!("{case}.{form}"));
            assert_eq!(
                log.unread,
                debug_mode::UnreadParts::default(),
                "{case}.{form}"
            );
            let mut calls = log.calls.iter().filter(|call| is_operator(&call.name));
            for known in expected.as_array().unwrap() {
                let call = calls.next().unwrap();
                let name = known["name"].as_str().unwrap();
                let at = format!("{case}.{form} {name}");
                // Addresses change from run to run, and are left out.
                let begin = name.split(" at 0x").next().unwrap();
                let end = if name.contains(" at 0x") { ">" } else { "" };
                assert_eq!(call.name, format!("{begin}{end}"), "{at}");
                assert_eq!(
                    hashes(&call.inputs),
                    known_hashes(&known["input_hash"]),
                    "{at}"
                );
                assert_eq!(hashes(&call.outputs), known_hashes(&known["hash"]), "{at}");
                // Hooks see what reaches the dispatcher, and what calls of functions call there.
                if known["seen"].is_null() {
                    continue;
                }
                assert_eq!(
                    told(&call.inputs),
                    seen(&known["seen"]["inputs"], &words),
                    "{at}"
                );
                if case != "no_outputs" {
                    assert_eq!(
                        told(&call.outputs),
                        seen(&known["seen"]["outputs"], &words),
                        "{at}"
                    );
                }
            }
            assert!(calls.next().is_none(), "{case}.{form}");
        }
    }
}

#[test]
fn both_forms_say_the_same() {
    for case in json("known.json").keys() {
        let [from_json, from_text] = ["json", "txt"].map(|form| read(&format!("{case}.{form}")));
        assert_eq!(from_json.calls.len(), from_text.calls.len(), "{case}");
        for (a, b) in from_json.calls.iter().zip(&from_text.calls) {
            // The text names a line of the program once, and the outermost frames are not of the
            // program.
            let (mut a, mut b) = (a.clone(), b.clone());
            a.source.clear();
            b.source.clear();
            assert_eq!(a, b, "{case}");
        }
    }
}

#[test]
fn every_dtype_of_the_mode_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dtypes.txt");
    // Those that share bytes, or have no counterpart, keep the mode's words.
    let unknown = [
        "b1x8",
        "b2x4",
        "b4x2",
        "b8x1",
        "b16x1",
        "f4e2m1fnx2",
        "bc32",
    ];
    for (word, name) in json("dtypes.json") {
        std::fs::write(&path, format!("  aten::f(t: {word}[2])\n")).unwrap();
        let index = open(&path);
        let dtype = index.tensors[0].dtype.clone().unwrap();
        let name = name.as_str().unwrap().replace("e8m0fnu", "e8m0");
        if unknown.contains(&word.as_str()) {
            assert_eq!((dtype.to_string(), dtype.value()), (word, None));
        } else {
            assert_eq!(
                dtype.value(),
                Some(name.parse::<DType>().unwrap()),
                "{word}"
            );
        }
    }
}

#[test]
fn a_log_is_a_dump() {
    for form in ["json", "txt"] {
        let index = open(&golden().join(format!("norm.{form}")));
        assert_eq!((index.form, index.errors.len()), ("debug_mode", 0));
        let call = index.executions.iter().find(|one| one.op_name == "addmm_1");
        let call = call.unwrap();
        assert_eq!(call.op_type, "aten::addmm");
        let site = call.call_site.as_ref().unwrap();
        assert_eq!(&*site.module, "TinyModel.blocks.1.linear");
        assert!(
            site.source.starts_with("/train/model.py:"),
            "{}",
            site.source
        );
        assert!(site.source.ends_with(" forward"), "{}", site.source);
        let tensors: Vec<_> = index
            .tensors
            .iter()
            .filter(|tensor| *tensor.execution == **call)
            .collect();
        let slots: Vec<_> = tensors.iter().map(|tensor| tensor.slot.unwrap()).collect();
        let (input, output) = (SlotSide::Input, SlotSide::Output);
        assert_eq!(slots, [(input, 0), (input, 1), (input, 2), (output, 0)]);
        assert!(
            tensors
                .iter()
                .all(|tensor| tensor.statistics.iter().next().unwrap().0 == "DebugMode norm")
        );
        assert_eq!(tensors[3].n_bytes, Some(32));
    }
    let spread = open(&golden().join("sharded.json"));
    let layouts: Vec<_> = spread
        .tensors
        .iter()
        .filter_map(|one| one.layout.as_ref())
        .collect();
    assert!(layouts.iter().all(|layout| layout.to_string() == "S(0)"));
    assert_eq!(layouts.len(), 2);
}

#[test]
fn directories_of_logs_have_ranks_and_steps() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "rank0/step_1.json",
        "rank0/step_2.json",
        "rank_1/step1.txt",
        "b.json",
        "a.log",
    ] {
        let form = if name.ends_with("json") {
            "json"
        } else {
            "txt"
        };
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(golden().join(format!("default.{form}")), path).unwrap();
    }
    std::fs::write(dir.path().join("notes.txt"), "nothing of a log").unwrap();
    let arrays = golden().join("../torch_save/one.pt");
    std::fs::copy(arrays, dir.path().join("weights.pt")).unwrap();
    let index = open(dir.path());
    assert_eq!(index.form, "debug_mode");
    assert_eq!(index.errors.len(), 1, "{:?}", index.errors);
    let mut places: Vec<_> = index
        .executions
        .iter()
        .map(|one| (one.rank, one.step, one.model.clone()))
        .collect();
    places.dedup();
    let model = |name: &str| Some(SharedText::from(name));
    let expected = [
        (None, None, model("a")),
        (None, None, model("b")),
        (Some(0), Some(1), None),
        (Some(0), Some(2), None),
        (Some(1), Some(1), None),
        // The file next to the logs.
        (None, None, None),
    ];
    assert_eq!(places, expected);
}

#[test]
fn every_cut_and_flip_is_read_or_refused() {
    for name in ["kernel.json", "kernel.txt", "sharded.txt", "values.txt"] {
        let whole = std::fs::read(golden().join(name)).unwrap();
        for n in (1..whole.len()).step_by(97) {
            let cut = debug_mode::parse(&whole[..n]);
            assert!(cut.is_err() || name.ends_with("txt"), "{name} {n}");
        }
        for at in (0..whole.len()).step_by(if cfg!(debug_assertions) { 41 } else { 1 }) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x11;
            let _ = debug_mode::parse(&damaged);
        }
    }
}
