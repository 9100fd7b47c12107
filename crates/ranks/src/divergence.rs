//! Finds the places where ranks that should agree diverge.
//!
//! A rank is a culprit only for its own actions: it computed another result from the same inputs as
//! others, a collective returned something other than its group contributed, or a tensor changed
//! between its producer and its reader. Later differences that follow from these are not reported.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use opscope_store::record::SlotSide;

use super::content::{ContentMark, MarkKind};
use super::finding::{DivergenceEvidence, DivergenceFinding, DivergenceKind, RankDivergences};
use super::parameters;
use super::recomputed::{MeetingFits, ResultFit};
use super::replicas;
use super::results;
use super::run::RankedRun;
use opscope_analysis::compare::side::SlotRef;

/// Equal results of a type of collective that its readers must confirm before one exception counts.
const N_CONFIRMED_MIN: usize = 4;

/// Finds divergences between ranks. Elements of collectives are read on `n_threads` threads. The
/// run's marks must have been read before.
pub fn find(run: &RankedRun, n_threads: usize) -> RankDivergences {
    let mut found = RankDivergences {
        n_unmatched: run.meetings.unmatched.len() as u64,
        ..RankDivergences::default()
    };
    desyncs(run, &mut found);
    let fits = results::check(run, n_threads, &mut found);
    overwritten(run, &fits, &mut found);
    replicas::operators(run, &mut found);
    found
        .findings
        .sort_by_key(|finding| run.sort_key(finding.run));
    let more = replicas::placed(run, &found.findings);
    found.findings.extend(more);
    found
        .findings
        .sort_by_key(|finding| run.sort_key(finding.run));
    let more = parameters::drifted(run, &mut found);
    found.findings.extend(more);
    found
        .findings
        .sort_by_key(|finding| run.sort_key(finding.run));
    let more = replicas::equal_before(run, &found.findings);
    found.findings.extend(more);
    found
        .findings
        .sort_by_key(|finding| run.sort_key(finding.run));
    found.findings = with_later_ones(run, std::mem::take(&mut found.findings));
    found.n_unknown = n_unknown(run);
    found
}

fn n_unknown(run: &RankedRun) -> u64 {
    let runs = run.dump.runs.iter().enumerate();
    let unknown = runs.map(|(index, one)| {
        let slots = 0..one.slots.len();
        slots
            .filter(|&at| run.marks.get(index, at).is_none())
            .count() as u64
    });
    unknown.sum()
}

fn desyncs(run: &RankedRun, found: &mut RankDivergences) {
    for (nth, desync) in run.meetings.desyncs.iter().enumerate() {
        let [most, .., fewest] = &desync.sides[..] else {
            continue;
        };
        let has_majority = most.ranks.len() > fewest.ranks.len();
        let accused = desync.sides.iter().skip(usize::from(has_majority));
        let sides = accused.clone().chain([most]);
        let Some(shown) = sides.filter_map(|side| side.run).next() else {
            continue;
        };
        let mut ranks: Vec<u32> = accused.flat_map(|side| side.ranks.clone()).collect();
        ranks.sort_unstable();
        found.findings.push(DivergenceFinding {
            kind: DivergenceKind::Desync(nth),
            run: shown,
            slot: None,
            ranks,
            is_each: has_majority,
            others: if has_majority {
                most.ranks.clone()
            } else {
                Vec::new()
            },
            meeting: None,
            difference: None,
            evidence: DivergenceEvidence::Order,
            later: Vec::new(),
        });
    }
}

/// Finds tensors that differ between their producer and their reader.
fn overwritten(run: &RankedRun, fits: &[MeetingFits], found: &mut RankDivergences) {
    let mut written: HashMap<SlotRef, Vec<usize>> = HashMap::new();
    let mut told: HashSet<SlotRef> = HashSet::new();
    let mut unsettled = UnsettledResults::default();
    for sequence in &run.ranks {
        // Ranks share no memory.
        written.clear();
        for &reader in &sequence.runs {
            let one = &run.dump.runs[reader];
            let mut read: Vec<(usize, SlotRef)> = Vec::new();
            for (at, slot) in one.slots.iter().enumerate() {
                if slot.side == SlotSide::Input
                    && let Some(maker) = run.dump.producer_of(SlotRef {
                        run: reader,
                        slot: at,
                    })
                {
                    read.push((at, maker));
                }
            }
            for &(at, maker) in &read {
                // An operator in between wrote to it on purpose, and the description still names
                // the original producer.
                let is_written = written.contains_key(&maker);
                if let Some(is_equal) = is_unchanged(run, reader, at, maker) {
                    found.n_edges += 1;
                    if is_written {
                        continue;
                    }
                    if !is_settled(run, fits, maker.run) {
                        unsettled.add(run, fits, (reader, at), maker, is_equal);
                    } else if !is_equal && told.insert(maker) {
                        found
                            .findings
                            .push(overwritten_finding(run, reader, at, maker.run));
                    }
                }
            }
            // In-place operators write to their inputs; later readers see other content.
            if may_write(&one.op_type) {
                for (_, maker) in read {
                    written.entry(maker).or_default().push(reader);
                }
            }
        }
    }
    for (reader, at, maker) in unsettled.exceptions() {
        let finding = overwritten_finding(run, reader, at, maker.run);
        found.findings.push(finding);
    }
}

/// Collective results that cannot be recomputed, by the collective's type. A capture of an
/// asynchronous collective may have seen them unfinished, and then differs from many readers. A
/// single exception among results that readers confirm is no matter of timing.
#[derive(Default)]
struct UnsettledResults<'a> {
    of_type: BTreeMap<&'a str, UnsettledType>,
}

#[derive(Default)]
struct UnsettledType {
    confirmed: HashSet<SlotRef>,
    /// The first reader of each differing result.
    differing: BTreeMap<usize, (usize, usize, SlotRef)>,
}

impl<'a> UnsettledResults<'a> {
    fn add(
        &mut self,
        run: &'a RankedRun,
        fits: &[MeetingFits],
        (reader, at): (usize, usize),
        maker: SlotRef,
        is_equal: bool,
    ) {
        let op_type = run.dump.runs[maker.run].op_type.as_str();
        let of_type = self.of_type.entry(op_type).or_default();
        // A result that does not follow from the inputs has a finding already.
        let is_wrong = run
            .meetings
            .of_run
            .get(&maker.run)
            .is_some_and(|&(nth, at)| fits[nth][at].is_some());
        if is_equal {
            of_type.confirmed.insert(maker);
        } else if !is_wrong {
            let edge = (reader, at, maker);
            of_type.differing.entry(maker.run).or_insert(edge);
        }
    }

    /// Reader, its slot, and the result, of each type with a single exception.
    fn exceptions(self) -> impl Iterator<Item = (usize, usize, SlotRef)> {
        let of_type = self.of_type.into_values();
        of_type.filter_map(|mut of_type| {
            let (_, edge) = of_type.differing.pop_first()?;
            let is_single = of_type.differing.is_empty();
            let is_confirmed = of_type.confirmed.len() >= N_CONFIRMED_MIN;
            (is_single && is_confirmed).then_some(edge)
        })
    }
}

fn overwritten_finding(
    run: &RankedRun,
    reader: usize,
    at: usize,
    maker: usize,
) -> DivergenceFinding {
    DivergenceFinding {
        kind: DivergenceKind::Overwritten(maker),
        run: reader,
        slot: Some(run.dump.runs[reader].slots[at].key()),
        ranks: vec![run.rank_of(reader)],
        is_each: true,
        others: Vec::new(),
        meeting: run.meetings.of_run.get(&maker).map(|(nth, _)| *nth),
        difference: None,
        evidence: DivergenceEvidence::Bits,
        later: Vec::new(),
    }
}

/// Whether a tensor is unchanged since it was produced. `None` unless all bits of both are known
/// and dtype and shape match.
fn is_unchanged(run: &RankedRun, reader: usize, at: usize, maker: SlotRef) -> Option<bool> {
    let read = &run.dump.runs[reader].slots[at];
    let made = run.dump.runs[maker.run].slots.get(maker.slot)?;
    let marks = [
        run.marks.get(reader, at)?,
        run.marks.get(maker.run, maker.slot)?,
    ];
    // A view or a cast is another tensor with the same producer.
    let is_comparable = read.dtype_name == made.dtype_name
        && read.shape == made.shape
        && marks.iter().all(|mark| mark.kind == MarkKind::Bits);
    is_comparable.then_some(marks[0] == marks[1])
}

/// Whether an execution's output was complete when it was captured. A collective may continue after
/// its call, unless its result is known to be right.
fn is_settled(run: &RankedRun, fits: &[MeetingFits], maker: usize) -> bool {
    match run.meetings.of_run.get(&maker) {
        Some(&(nth, at)) => fits[nth][at] == Some(ResultFit::Fits) || has_one_result(run, nth),
        None => !run.meetings.unmatched.contains_key(&maker),
    }
}

/// Whether all ranks of a collective were shown the same result, bit for bit, and it differs from
/// their contributions.
fn has_one_result(run: &RankedRun, nth: usize) -> bool {
    let calls = &run.meetings.meetings[nth].calls;
    let marks = calls.iter().map(|call| {
        let given = run.marks.of_side(&run.dump, call.run, SlotSide::Input);
        let result = run.marks.of_side(&run.dump, call.run, SlotSide::Output);
        result.filter(|mark| mark.kind == MarkKind::Bits && given != result)
    });
    let marks: HashSet<Option<ContentMark>> = marks.collect();
    calls.len() > 1 && marks.len() == 1 && !marks.contains(&None)
}

/// Whether an operator of this type may write to its inputs.
fn may_write(op_type: &str) -> bool {
    const WRITING: [&str; 8] = [
        "assign", "apply", "copy_", "out", "foreach", "update", "inplace", "c10d",
    ];
    let lower = op_type.to_ascii_lowercase();
    let is_in_place = lower.split(['.', ':']).any(|part| part.ends_with('_'));
    is_in_place || WRITING.iter().any(|part| lower.contains(part))
}

/// Merges findings with the same operator, kind and ranks, in order.
fn with_later_ones(run: &RankedRun, findings: Vec<DivergenceFinding>) -> Vec<DivergenceFinding> {
    let mut joined: Vec<DivergenceFinding> = Vec::new();
    let mut known: HashMap<(Arc<str>, &'static str, Vec<u32>), usize> = HashMap::new();
    for finding in findings {
        let name: Arc<str> = run.dump.runs[finding.run].op_name.as_str().into();
        let key = (name, finding.kind.name(), finding.ranks.clone());
        match known.get(&key) {
            Some(&nth) => joined[nth].later.push(finding.run),
            None => {
                known.insert(key, joined.len());
                joined.push(finding);
            }
        }
    }
    joined
}
