//! Compares ranks with the same ranks in another run, bit for bit.

use std::collections::HashMap;

use opscope_store::record::SlotSide;

use super::run::RankedRun;
use opscope_analysis::compare::result::SlotKey;

/// The comparison of two runs.
#[derive(Debug, Default)]
pub struct RestartComparison {
    /// Diverging ranks, causes before their possible consequences.
    pub differences: Vec<RestartDifference>,
    /// Executions in both runs.
    pub n_compared: u64,
    /// Their tensors whose contents are known on both sides.
    pub n_tensors: u64,
    /// Executions in only one of the runs.
    pub n_single: u64,
    /// Ranks in only one of the runs.
    pub single_ranks: Vec<u32>,
}

/// The first execution of a rank that differs.
#[derive(Debug)]
pub struct RestartDifference {
    /// The rank.
    pub rank: u32,
    /// The execution in the first run.
    pub run: usize,
    /// The execution in the other run.
    pub other_run: usize,
    /// The first tensor that differs.
    pub slot: SlotKey,
    /// The kind of difference.
    pub kind: RestartDifferenceKind,
    /// Whether the difference may come from another rank in the list.
    pub may_follow: bool,
}

/// How an execution differs from the one in the other run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartDifferenceKind {
    /// All inputs are equal, and an output differs.
    Computed,
    /// A collective's result differs, although the rank contributed the same.
    Received,
    /// An input differs and nothing earlier explains it: data, weights, or overwritten memory.
    Input,
}

impl RestartDifferenceKind {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            RestartDifferenceKind::Computed => "computed",
            RestartDifferenceKind::Received => "received",
            RestartDifferenceKind::Input => "input",
        }
    }
}

/// Compares the ranks of a run with the same ranks of another. The marks of both must have been
/// read before.
pub fn compare(run: &RankedRun, other: &RankedRun) -> RestartComparison {
    let mut found = RestartComparison::default();
    for sequence in &run.ranks {
        let mut others = other.ranks.iter();
        let Some(partner) = others.find(|other| other.rank == sequence.rank) else {
            found.single_ranks.push(sequence.rank);
            continue;
        };
        // Positions may differ: the other run may use another selection.
        let mut of_key: HashMap<_, usize> = HashMap::new();
        for &index in &partner.runs {
            of_key.insert(key(other, index), index);
        }
        let mut first = None;
        for &index in &sequence.runs {
            let Some(other_index) = of_key.remove(&key(run, index)) else {
                found.n_single += 1;
                continue;
            };
            found.n_compared += 1;
            // All are counted, to show how much the runs have in common.
            let difference = difference(run, other, [index, other_index], &mut found.n_tensors);
            first = first.or(difference);
        }
        found.n_single += of_key.len() as u64;
        found
            .differences
            .extend(first.map(|difference| RestartDifference {
                rank: sequence.rank,
                ..difference
            }));
    }
    let ranks = other.ranks.iter().map(|sequence| sequence.rank);
    let single = ranks.filter(|rank| run.ranks.iter().all(|known| known.rank != *rank));
    found.single_ranks.extend(single);
    found.single_ranks.sort_unstable();
    found
        .differences
        .sort_by_key(|difference| run.sort_key(difference.run));
    let runs: Vec<usize> = found
        .differences
        .iter()
        .map(|difference| difference.run)
        .collect();
    for (nth, difference) in found.differences.iter_mut().enumerate() {
        let mut before = runs[..nth].iter();
        difference.may_follow = before.any(|&first| run.precedes(first, difference.run));
    }
    found
}

/// Identifies an execution in both runs.
fn key(run: &RankedRun, index: usize) -> (Option<u64>, Option<&str>, &str, &str, usize) {
    let one = &run.dump.runs[index];
    (
        one.place.step,
        one.place.model.as_deref(),
        one.op_type.as_str(),
        one.op_name.as_str(),
        one.repeat,
    )
}

/// The first tensor that differs between two executions; inputs come first.
fn difference(
    run: &RankedRun,
    other: &RankedRun,
    [index, other_index]: [usize; 2],
    n_tensors: &mut u64,
) -> Option<RestartDifference> {
    let one = &run.dump.runs[index];
    let partner = &other.dump.runs[other_index];
    let mut first = None;
    for (at, slot) in one.slots.iter().enumerate() {
        let mut slots = partner.slots.iter();
        let other_at = slots.position(|other| other.key() == slot.key());
        let marks = run.marks.get(index, at);
        // By slot position, because one run may have been dumped without inputs.
        let marks = marks.zip(other_at.and_then(|at| other.marks.get(other_index, at)));
        let Some((a, b)) = marks.filter(|(a, b)| a.kind == b.kind) else {
            continue;
        };
        *n_tensors += 1;
        if a != b {
            first = first.or(Some((slot.side, slot.key())));
        }
    }
    let (side, slot) = first?;
    let kind = match side {
        SlotSide::Input => RestartDifferenceKind::Input,
        SlotSide::Output if run.is_collective(index) => RestartDifferenceKind::Received,
        SlotSide::Output => RestartDifferenceKind::Computed,
    };
    Some(RestartDifference {
        rank: 0,
        run: index,
        other_run: other_index,
        slot,
        kind,
        may_follow: false,
    })
}
