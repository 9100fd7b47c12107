//! The executions of each rank in order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use opscope_store::reader::ExecutionKind;
use opscope_store::record::parallel::CollectiveKind;

use opscope_analysis::compare::side::{ComparedDump, OperatorExecution};

/// The executions of a rank.
#[derive(Debug)]
pub struct RankSequence {
    /// The rank.
    pub rank: u32,
    /// The executions in order, as indices into [`ComparedDump::runs`].
    pub runs: Vec<usize>,
    /// The steps with executions of the rank.
    pub steps: HashSet<Option<u64>>,
}

/// The place of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankPlace {
    /// Index of the rank among the ranks of the run.
    pub nth_rank: usize,
    /// Index in its sequence.
    pub position: usize,
}

/// An execution of a collective before it is matched.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) run: usize,
    pub(super) rank: u32,
    pub(super) place: RankPlace,
    pub(super) step: Option<u64>,
    pub(super) kind: CollectiveKind,
    /// The ranks of its group, if notes name them.
    pub(super) group: Option<Arc<[u32]>>,
}

/// The rank of an execution; without one, that of the only process.
pub(super) fn rank(run: &OperatorExecution) -> u32 {
    run.place.rank.unwrap_or(0)
}

/// The executions of each rank, by step. Within a step they keep the dump's order, or are sorted by
/// time if several models of a process alternate: these times come from one clock.
pub(super) fn sequences(dump: &ComparedDump) -> Vec<RankSequence> {
    let mut of_rank: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, run) in dump.runs.iter().enumerate() {
        // Parameters and constants are values at the end of a step, which nobody executed.
        if run.kind == ExecutionKind::Operator {
            of_rank.entry(rank(run)).or_default().push(index);
        }
    }
    let sequences = of_rank.into_iter().map(|(rank, mut runs)| {
        // A dump lists models in sequence, each with all its steps. The sort is stable, so the
        // order within a step stays.
        runs.sort_by_key(|&run| dump.runs[run].place.step);
        for runs in runs.chunk_by_mut(|&a, &b| dump.runs[a].place.step == dump.runs[b].place.step) {
            put_models_in_order(dump, runs);
        }
        let steps = runs.iter().map(|&run| dump.runs[run].place.step).collect();
        RankSequence { rank, runs, steps }
    });
    sequences.collect()
}

fn put_models_in_order(dump: &ComparedDump, runs: &mut [usize]) {
    let mut models: HashMap<_, u64> = HashMap::new();
    for &run in runs.iter() {
        let place = &dump.runs[run].place;
        *models.entry((&place.model, place.model_id)).or_default() += 1;
    }
    // If any time is missing, the dump's order is as good as any.
    let has_times = runs
        .iter()
        .all(|&run| dump.runs[run].timestamp_us.is_some());
    if models.len() > 1 && has_times {
        runs.sort_by_key(|&run| dump.runs[run].timestamp_us);
    }
}
