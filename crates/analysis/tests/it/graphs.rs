//! Descriptions of graphs next to a dump: who made what an operator reads.

use std::fs;
use std::path::{Path, PathBuf};

use opscope_analysis::compare::matching::SlotRef;
use opscope_analysis::compare::side::ComparedDump;
use opscope_store::file_format::npy;
use opscope_tensor::{DType, Shape};

const GRAPH: &str = r#"{"version": 1, "name": "net", "opsets": {"ai.onnx": 17}, "operators": [
  {"task_id": 0, "op_type": "A", "op_name": "m/a", "inputs": ["x"], "outputs": ["one", "two"]},
  {"task_id": 1, "op_type": "B", "op_name": "m/b", "inputs": ["two", null, "one"], "outputs": ["b"],
   "original_names": ["first", "second"]},
  {"task_id": 2, "op_type": "B", "op_name": "m/b", "inputs": ["b", "x"], "outputs": ["c"]}]}"#;

/// A dump of two executions, as arrays that dump files were converted to.
fn dump(dir: &Path) -> PathBuf {
    let root = dir.join("20240101000000");
    for step in 0..2 {
        let place = root.join(format!("0/net/1/{step}"));
        fs::create_dir_all(&place).unwrap();
        for (i, name) in [
            "A.m_a.0.0.10.input.0",
            "A.m_a.0.0.10.output.0",
            "A.m_a.0.0.10.output.1",
            "B.m_b.1.0.20.input.0",
            "B.m_b.1.0.20.input.2",
            "B.m_b.1.0.20.output.0",
            "B.m_b.2.0.30.input.0",
            "B.m_b.2.0.30.input.1",
        ]
        .iter()
        .enumerate()
        {
            let shape = Shape::new([1]).unwrap();
            let mut bytes = npy::encode_header(DType::F32, &shape).unwrap();
            bytes.extend_from_slice(&(i as f32).to_le_bytes());
            fs::write(place.join(format!("{name}.npy")), bytes).unwrap();
        }
    }
    fs::create_dir_all(root.join(".opscope/graphs")).unwrap();
    fs::write(root.join(".opscope/graphs/net.json"), GRAPH).unwrap();
    root
}

/// `{task of the reader}.{slot} < {task of the maker}.{slot}`, of all inputs in order.
fn edges(side: &ComparedDump) -> Vec<String> {
    let mut all = Vec::new();
    for (run, one) in side.runs.iter().enumerate() {
        for slot in 0..one.slots.len() {
            let Some(from) = side.producer_of(SlotRef { run, slot }) else {
                continue;
            };
            let maker = &side.runs[from.run];
            assert_eq!(maker.place, one.place);
            let name = |run: usize, slot: usize| {
                let run = &side.runs[run];
                format!("{}.{}", run.task_id.unwrap(), run.slots[slot].key())
            };
            all.push(format!(
                "{} < {}",
                name(run, slot),
                name(from.run, from.slot)
            ));
        }
    }
    all
}

#[test]
fn inputs_know_their_makers() {
    let dir = tempfile::tempdir().unwrap();
    let root = dump(dir.path());
    let of_step = [
        "1.input.0 < 0.output.1",
        "1.input.2 < 0.output.0",
        "2.input.0 < 1.output.0",
    ];
    let whole = ComparedDump::open(&root, 2).unwrap();
    assert_eq!(edges(&whole), [of_step, of_step].concat());
    // A part of the dump knows the graph too.
    let part = ComparedDump::open(&root.join("0/net/1/1"), 2).unwrap();
    assert_eq!(edges(&part), of_step);
    let fused = part.runs.iter().find(|run| run.task_id == Some(1)).unwrap();
    assert_eq!(fused.original_names, ["first", "second"]);
    assert!(part.problems.is_empty());
}

#[test]
fn a_damaged_description_costs_itself() {
    let dir = tempfile::tempdir().unwrap();
    let root = dump(dir.path());
    fs::write(root.join(".opscope/graphs/net.json"), &GRAPH[..100]).unwrap();
    let side = ComparedDump::open(dir.path(), 1).unwrap();
    assert_eq!(side.runs.len(), 6);
    assert!(edges(&side).is_empty());
    assert_eq!(side.problems.len(), 1);
    assert!(
        side.problems[0].contains("graph description"),
        "{:?}",
        side.problems
    );
}
