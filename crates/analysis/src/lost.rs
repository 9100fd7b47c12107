//! Tensors that a capture selected and did not write: its dump lacks them without a trace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use opscope_store::run_file;

use crate::compare::result::LostTensors;
use crate::compare::side::ComparedDump;

/// Counters of run records, with the reason why a tensor was not written. Tensors that no engine
/// showed have no values that could be missed.
const REASONS: [(&str, &str); 5] = [
    ("n_failed", "writing failed"),
    ("n_dropped_behind", "the writers were behind"),
    ("n_dropped_limit", "beyond the limit"),
    ("n_dropped_stopped", "writing had failed before"),
    ("n_dropped_ended", "the dump had ended"),
];

/// The tensors that the capture of a dump did not write; `None` if it wrote all.
pub fn lost_tensors(dump: &ComparedDump) -> Option<LostTensors> {
    let runs = run_file::find(&dump.root).runs;
    let mut lost = LostTensors::default();
    let mut reasons: BTreeMap<usize, u64> = BTreeMap::new();
    for run in &runs {
        for (nth, (counter, _)) in REASONS.into_iter().enumerate() {
            let n = run.record.counters.get(counter).copied().unwrap_or(0);
            if n > 0 {
                *reasons.entry(nth).or_default() += n;
            }
        }
    }
    lost.n_tensors = reasons.values().sum();
    lost.reasons = reasons
        .keys()
        .map(|nth| REASONS[*nth].1.to_owned())
        .collect();
    if lost.n_tensors == 0 {
        return None;
    }
    let mut plans = runs.iter().map(|run| run.record.plan.get("operators"));
    if plans.all(|operators| operators.is_some_and(|operators| operators == "every")) {
        lost.operators = unseen(dump);
    }
    Some(lost)
}

/// Operators of described graphs that the dump has not as often as others of their graph.
fn unseen(dump: &ComparedDump) -> Vec<String> {
    let mut graphs: HashMap<&Path, HashMap<usize, usize>> = HashMap::new();
    let mut order = Vec::new();
    for run in 0..dump.runs.len() {
        if let Some((path, graph, at)) = dump.description_of(run) {
            let counts = graphs.entry(path).or_insert_with(|| {
                order.push((path, graph));
                HashMap::new()
            });
            *counts.entry(at).or_default() += 1;
        }
    }
    let mut names = Vec::new();
    let mut known = HashSet::new();
    for (path, graph) in order {
        let counts = &graphs[path];
        // Every step runs the whole graph, so the most frequent operator counts the steps.
        let n_most = counts.values().copied().max().unwrap_or_default();
        for (at, operator) in graph.operators.iter().enumerate() {
            let is_lost = counts.get(&at).copied().unwrap_or(0) < n_most;
            if is_lost && known.insert(&operator.op_name) {
                names.push(operator.op_name.clone());
            }
        }
    }
    names
}
