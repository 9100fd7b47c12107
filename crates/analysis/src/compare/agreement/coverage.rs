//! Whether a dump shows all operators of what ran, or some of them alone.
//!
//! A user may dump a few layers, and golden data may be a few arrays. What such a dump does not
//! show may be as it should be, so that less is evidence.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use opscope_store::file_format::graph_json::GraphOperator;

use super::values::{SideValues, ValueIndex};
use crate::compare::side::ComparedDump;

/// An operator in this many may be missing: branches that were not taken are not shown either.
const MISSING_ONE_IN: usize = 50;
/// Beginnings of the types that AscendCL's trees leave out, as a device makes places in memory of
/// them or runs other graphs for them.
const LEFT_OUT: [&str; 5] = ["Concat", "Split", "If", "Loop", "Scan"];
/// Without a description of the graph: one value in this many may come from nowhere that the other
/// side computes, such as a constant that an engine folded.
const GAP_ONE_IN: usize = 4;

/// Whether a place of a dump lacks operators. `sides` are this side's values and the other side's;
/// `equals` maps each value of this side to the other side's.
pub(super) fn is_partial(
    dump: &ComparedDump,
    runs: &[usize],
    sides: [&SideValues; 2],
    equals: &[Option<ValueIndex>],
) -> bool {
    if !sides[0].has_inputs() {
        return true;
    }
    match missing(dump, runs) {
        Some((missing, all)) => missing * MISSING_ONE_IN > all,
        None => has_gaps(sides, equals),
    }
}

/// The number of operators that the graphs next to a dump have and the dump lacks, and their total;
/// `None` without a description. Operators that read nothing, or that AscendCL omits, do not count.
fn missing(dump: &ComparedDump, runs: &[usize]) -> Option<(usize, usize)> {
    let mut shown: HashMap<&Path, HashSet<usize>> = HashMap::new();
    let mut n_all = 0;
    for (path, graph, at) in runs.iter().filter_map(|&run| dump.description_of(run)) {
        let of_graph = shown.entry(path).or_insert_with(|| {
            n_all += graph.operators.iter().filter(|one| is_counted(one)).count();
            HashSet::new()
        });
        if graph.operators.get(at).is_some_and(is_counted) {
            of_graph.insert(at);
        }
    }
    let n_shown: usize = shown.values().map(HashSet::len).sum();
    (n_all > 0).then(|| (n_all.saturating_sub(n_shown), n_all))
}

fn is_counted(operator: &GraphOperator) -> bool {
    let mut left_out = LEFT_OUT.iter();
    !operator.inputs.is_empty() && !left_out.any(|start| operator.op_type.starts_with(start))
}

fn has_gaps([own, other]: [&SideValues; 2], equals: &[Option<ValueIndex>]) -> bool {
    let values = own.values.iter().zip(equals);
    let read = values.filter(|(value, _)| !value.is_extents && !value.readers.is_empty());
    let (mut n_read, mut n_gaps) = (0, 0);
    for (value, equal) in read {
        n_read += 1;
        let is_made = equal.is_some_and(|equal| !other.values[equal.0].is_outside);
        n_gaps += usize::from(value.is_outside && is_made);
    }
    n_gaps * GAP_ONE_IN > n_read
}
