//! Overflow records of several ranks, in the order of steps and collectives.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::run::RankedRun;
use opscope_analysis::overflow::{OverflowReport, OverflowScan};

/// The ranks that overflowed, and their order.
#[derive(Debug, Default)]
pub struct OverflowOrder {
    /// For each overflow of the scan, its rank if the dump has it.
    pub ranks: Vec<Option<u32>>,
    /// The first overflow of each rank that follows no other rank's, as indices into the scan's
    /// list. A single entry is the first of all; several are unordered.
    pub first: Vec<usize>,
    /// Operators that overflowed in a step on several ranks: step, name and ranks.
    pub together: Vec<(Option<u64>, String, Vec<u32>)>,
}

/// Sorts the overflows of a scan by step, then by collectives between ranks, then by rank, then by
/// time (of one clock within a rank). `None` if there is only one rank; the order then stays
/// unchanged.
pub fn order_overflows(run: &RankedRun, scan: &mut OverflowScan) -> Option<OverflowOrder> {
    // Records name tasks; operator files determine the rank.
    let files = Executions::find(run, &scan.overflows);
    let known = scan
        .overflows
        .iter()
        .map(|overflow| files.of_overflow(overflow));
    let known: Vec<(Option<usize>, Option<u32>)> = known.collect();
    let ranks: HashSet<u32> = known.iter().filter_map(|(_, rank)| *rank).collect();
    if ranks.len() < 2 {
        return None;
    }
    let overflows = std::mem::take(&mut scan.overflows);
    let mut numbered: Vec<_> = overflows.into_iter().zip(known).enumerate().collect();
    numbered.sort_by_key(|(nth, (one, (index, rank)))| {
        let level = index.map_or(u32::MAX, |index| run.sort_key(index).1);
        // The scan sorts them by time.
        (
            one.step.unwrap_or(u64::MAX),
            level,
            rank.unwrap_or(u32::MAX),
            *nth,
        )
    });
    let mut order = OverflowOrder::default();
    let mut executions = Vec::new();
    for (_, (one, (index, rank))) in numbered {
        scan.overflows.push(one);
        executions.push(index);
        order.ranks.push(rank);
    }
    order.first = first_of(run, &order.ranks, &executions);
    order.together = together(run, &order.ranks, &executions);
    Some(order)
}

/// The executions and ranks of files.
struct Executions<'a> {
    of_file: HashMap<&'a Path, usize>,
    rank_of_dir: HashMap<PathBuf, u32>,
    run: &'a RankedRun,
}

impl<'a> Executions<'a> {
    fn find(run: &'a RankedRun, overflows: &[OverflowReport]) -> Executions<'a> {
        let wanted: HashSet<&Path> = overflows.iter().filter_map(operator_file).collect();
        let mut found = Executions {
            of_file: HashMap::new(),
            rank_of_dir: HashMap::new(),
            run,
        };
        for (index, one) in run.dump.runs.iter().enumerate() {
            for slot in &one.slots {
                let path = slot.facts().path.as_path();
                if wanted.contains(path) {
                    found.of_file.entry(path).or_insert(index);
                }
                let dir = path.parent().unwrap_or(Path::new(""));
                if !found.rank_of_dir.contains_key(dir) {
                    found.rank_of_dir.insert(dir.to_owned(), run.rank_of(index));
                }
            }
        }
        found
    }

    fn of_overflow(&self, overflow: &OverflowReport) -> (Option<usize>, Option<u32>) {
        let file = operator_file(overflow);
        let index = file.and_then(|file| self.of_file.get(file).copied());
        // A record whose operator has no dump is next to those of its rank.
        let dir = overflow.path.parent();
        let rank = index.map(|index| self.run.rank_of(index));
        (index, rank.or_else(|| self.rank_of_dir.get(dir?).copied()))
    }
}

fn operator_file(overflow: &OverflowReport) -> Option<&Path> {
    Some(&overflow.operator.as_ref()?.files.first()?.path)
}

fn first_of(run: &RankedRun, ranks: &[Option<u32>], executions: &[Option<usize>]) -> Vec<usize> {
    let mut of_rank: BTreeMap<u32, usize> = BTreeMap::new();
    for (nth, rank) in ranks.iter().enumerate() {
        if let Some(rank) = rank {
            of_rank.entry(*rank).or_insert(nth);
        }
    }
    // Later overflows of a rank come after its first.
    let firsts: Vec<usize> = of_rank.into_values().collect();
    let mut first: Vec<usize> = firsts
        .iter()
        .copied()
        .filter(|&nth| {
            let mut others = firsts.iter().filter(|other| **other != nth);
            !others.any(|&other| match (executions[other], executions[nth]) {
                (Some(other), Some(this)) => {
                    run.precedes(other, this) && !run.precedes(this, other)
                }
                _ => false,
            })
        })
        .collect();
    first.sort_unstable();
    first
}

fn together(
    run: &RankedRun,
    ranks: &[Option<u32>],
    executions: &[Option<usize>],
) -> Vec<(Option<u64>, String, Vec<u32>)> {
    let mut found: BTreeMap<(Option<u64>, &str), Vec<u32>> = BTreeMap::new();
    for (rank, index) in ranks.iter().zip(executions) {
        if let (Some(rank), Some(index)) = (rank, index) {
            let one = &run.dump.runs[*index];
            let key = (one.place.step, one.op_name.as_str());
            found.entry(key).or_default().push(*rank);
        }
    }
    let found = found.into_iter().map(|((step, name), mut ranks)| {
        ranks.sort_unstable();
        ranks.dedup();
        (step, name.to_owned(), ranks)
    });
    found.filter(|(.., ranks)| ranks.len() > 1).collect()
}
