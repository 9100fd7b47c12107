//! Where ranks that must agree stop agreeing.
//!
//! A rank is accused by what it did itself: it had the same inputs as others and made something
//! else, a collective gave it something else than its group was given, or a tensor was changed
//! between the operator that made it and the one that reads it. What differs because of that
//! afterwards is not told.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use opscope_store::record::SlotSide;
use opscope_store::record::parallel::CollectiveKind;

use super::content::{ContentMark, MarkKind};
use super::meetings::{GroupSource, Meeting};
use super::recomputed::{self, MeetingFits, ResultDifference, ResultFit};
use super::replicas;
use super::run::RankedRun;
use crate::compare::result::SlotKey;
use crate::compare::side::SlotRef;
use crate::job;

/// What was found in a run, and how much was looked at.
#[derive(Debug, Default)]
pub struct RankDivergences {
    /// The findings, in an order in which none comes before another that it may follow from.
    pub findings: Vec<DivergenceFinding>,
    /// Collectives of which the results were computed again.
    pub n_recomputed: u64,
    /// Collectives whose results were set against each other alone, because what was given is not
    /// in the dump or the kind is not computed here.
    pub n_compared: u64,
    /// Collectives of which nothing could be checked.
    pub n_unchecked: u64,
    /// Collectives of which nothing tells the other ranks.
    pub n_unmatched: u64,
    /// Operators that several ranks executed with equal inputs.
    pub n_replicated: u64,
    /// Tensors that were set against the operator that made them.
    pub n_edges: u64,
    /// Tensors of which nothing tells the content.
    pub n_unknown: u64,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq)]
pub struct DivergenceFinding {
    /// What it is.
    pub kind: DivergenceKind,
    /// The execution that shows it, on the first of the ranks that are accused.
    pub run: usize,
    /// The tensor that shows it, where one does.
    pub slot: Option<SlotKey>,
    /// The ranks that are accused: one of them, or each, as [`is_each`](Self::is_each) says.
    pub ranks: Vec<u32>,
    /// Whether each of the ranks is accused, or one of them that nothing tells from the others.
    pub is_each: bool,
    /// The ranks that agree with each other.
    pub others: Vec<u32>,
    /// The collective, as a number of the run's meetings.
    pub meeting: Option<usize>,
    /// Where values differ, if elements were looked at.
    pub difference: Option<ResultDifference>,
    /// What the finding rests on.
    pub evidence: DivergenceEvidence,
    /// Executions of the same operator in later steps with the same finding.
    pub later: Vec<usize>,
}

/// What must not be.
#[derive(Clone, Debug, PartialEq)]
pub enum DivergenceKind {
    /// Ranks of a group go on to different collectives; the number is that of the run's list.
    Desync(usize),
    /// A collective's result is not what its group gave.
    WrongResult,
    /// A collective's result has the right parts in a wrong order: the ranks by place.
    WrongOrder(Vec<u32>),
    /// A collective gave its ranks different results.
    UnequalResults,
    /// An operator made something else than on other ranks, of equal inputs.
    OperatorDiffers,
    /// Tensors that must be equal on several ranks are not, and nothing before explains it.
    ReplicaDiffers,
    /// A tensor changed between the execution that made it, which is given, and its reader.
    Overwritten(usize),
}

impl DivergenceKind {
    /// Its name in documents.
    pub fn name(&self) -> &'static str {
        match self {
            DivergenceKind::Desync(_) => "desync",
            DivergenceKind::WrongResult => "wrong_result",
            DivergenceKind::WrongOrder(_) => "wrong_order",
            DivergenceKind::UnequalResults => "unequal_results",
            DivergenceKind::OperatorDiffers => "operator_differs",
            DivergenceKind::ReplicaDiffers => "replica_differs",
            DivergenceKind::Overwritten(_) => "overwritten",
        }
    }
}

/// What a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivergenceEvidence {
    /// The order of collectives.
    Order,
    /// Values that were computed again.
    Recomputed,
    /// Digests of all bits.
    Bits,
    /// Statistics, which differ.
    Statistics,
    /// Placements, which say that tensors are replicated.
    Placement,
    /// That the tensors were equal in earlier steps.
    History,
}

impl DivergenceEvidence {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            DivergenceEvidence::Order => "order",
            DivergenceEvidence::Recomputed => "recomputed",
            DivergenceEvidence::Bits => "bits",
            DivergenceEvidence::Statistics => "statistics",
            DivergenceEvidence::Placement => "placement",
            DivergenceEvidence::History => "history",
        }
    }
}

/// Looks for ranks that stop agreeing; elements of collectives are read on `n_threads` threads. The
/// run's marks have to be read before.
pub fn find(run: &RankedRun, n_threads: usize) -> RankDivergences {
    let mut found = RankDivergences {
        n_unmatched: run.meetings.unmatched.len() as u64,
        ..RankDivergences::default()
    };
    let meetings = &run.meetings.meetings;
    let fits = job::map(meetings, n_threads, |meeting| {
        recomputed::check(run, meeting)
    });
    let fits = without_unlike_kinds(run, fits);
    desyncs(run, &mut found);
    for (nth, meeting) in meetings.iter().enumerate() {
        check_meeting(run, nth, meeting, &fits[nth], &mut found);
    }
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
    let more = replicas::equal_before(run, &found.findings);
    found.findings.extend(more);
    found
        .findings
        .sort_by_key(|finding| run.sort_key(finding.run));
    found.findings = with_later_ones(run, std::mem::take(&mut found.findings));
    found.n_unknown = n_unknown(run);
    found
}

/// Forgets what was computed again of a kind of collective that never fits: its tensors were shown
/// before it was over, or are something else than they seem.
fn without_unlike_kinds(run: &RankedRun, fits: Vec<MeetingFits>) -> Vec<MeetingFits> {
    let mut has_fit: HashSet<&str> = HashSet::new();
    let meetings = &run.meetings.meetings;
    for (meeting, fits) in meetings.iter().zip(&fits) {
        if fits.contains(&Some(ResultFit::Fits)) {
            has_fit.insert(meeting.kind.name());
        }
    }
    let fits = meetings.iter().zip(fits);
    let fits = fits.map(
        |(meeting, fits)| match has_fit.contains(meeting.kind.name()) {
            true => fits,
            false => vec![None; fits.len()],
        },
    );
    fits.collect()
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

fn check_meeting(
    run: &RankedRun,
    nth: usize,
    meeting: &Meeting,
    fits: &MeetingFits,
    found: &mut RankDivergences,
) {
    let takers: Vec<usize> = (0..meeting.calls.len())
        .filter(|&at| meeting.takes(at))
        .collect();
    let is_recomputed = takers.iter().any(|&at| fits[at].is_some());
    let wrong: Vec<usize> = takers
        .iter()
        .copied()
        .filter(|&at| !matches!(fits[at], None | Some(ResultFit::Fits)))
        .collect();
    let fitting = takers
        .iter()
        .filter(|&&at| fits[at] == Some(ResultFit::Fits));
    let fitting: Vec<u32> = fitting.map(|&at| meeting.calls[at].rank).collect();
    // A group that is known by equal results alone may be several, which were equal by chance: a
    // rank is accused if it alone does not fit.
    let is_doubtful = wrong.len() > 1 || fitting.is_empty();
    if meeting.group_source == GroupSource::Contents && !wrong.is_empty() && is_doubtful {
        found.n_unchecked += 1;
        return;
    }
    for &at in &wrong {
        let call = &meeting.calls[at];
        let (kind, difference) = match fits[at].clone() {
            Some(ResultFit::Reordered(order)) => (DivergenceKind::WrongOrder(order), None),
            Some(ResultFit::Differs(difference)) => {
                let is_counted = difference.n_elements > 0;
                (
                    DivergenceKind::WrongResult,
                    is_counted.then_some(difference),
                )
            }
            _ => continue,
        };
        found.findings.push(DivergenceFinding {
            kind,
            run: call.run,
            slot: Some(SlotKey::default()),
            ranks: vec![call.rank],
            is_each: true,
            others: fitting.clone(),
            meeting: Some(nth),
            difference,
            evidence: DivergenceEvidence::Recomputed,
            later: Vec::new(),
        });
    }
    let is_compared = wrong.is_empty() && unequal_results(run, nth, meeting, &takers, found);
    match (is_recomputed, is_compared) {
        (true, _) => found.n_recomputed += 1,
        (false, true) => found.n_compared += 1,
        (false, false) => found.n_unchecked += 1,
    }
}

/// Tells of results that differ from rank to rank though a collective gives all the same; whether
/// they could be compared.
fn unequal_results(
    run: &RankedRun,
    nth: usize,
    meeting: &Meeting,
    takers: &[usize],
    found: &mut RankDivergences,
) -> bool {
    let gives_all_the_same = matches!(
        meeting.kind,
        CollectiveKind::AllReduce(_) | CollectiveKind::AllGather | CollectiveKind::Broadcast(_)
    );
    if !gives_all_the_same || takers.len() < 2 {
        return false;
    }
    let mut of_mark: BTreeMap<ContentMark, Vec<usize>> = BTreeMap::new();
    for &at in takers {
        let call = &meeting.calls[at];
        let Some(mark) = run.marks.of_side(&run.dump, call.run, SlotSide::Output) else {
            return false;
        };
        of_mark.entry(mark).or_default().push(at);
    }
    let kinds: HashSet<MarkKind> = of_mark.keys().map(|mark| mark.kind).collect();
    if kinds.len() != 1 {
        return false;
    }
    let apart = minority(of_mark.into_values().collect());
    let is_doubtful = apart.as_ref().is_some_and(|apart| {
        let is_one_against_all = apart.accused.len() == 1 && apart.others.len() > 1;
        meeting.group_source == GroupSource::Contents && !is_one_against_all
    });
    if is_doubtful {
        return false;
    }
    if let Some(Minority {
        accused,
        others,
        is_each,
    }) = apart
    {
        let ranks = |calls: &[usize]| calls.iter().map(|&at| meeting.calls[at].rank).collect();
        found.findings.push(DivergenceFinding {
            kind: DivergenceKind::UnequalResults,
            run: meeting.calls[accused[0]].run,
            slot: Some(SlotKey::default()),
            ranks: ranks(&accused),
            is_each,
            others: ranks(&others),
            meeting: Some(nth),
            difference: None,
            evidence: evidence_of(kinds.contains(&MarkKind::Bits)),
            later: Vec::new(),
        });
    }
    true
}

/// Members that stand apart.
pub(super) struct Minority {
    pub(super) accused: Vec<usize>,
    pub(super) others: Vec<usize>,
    /// Whether more than half of all agree against them.
    pub(super) is_each: bool,
}

/// Members apart from the class that more than half of all are in, or all if there is none; none if
/// there is one class alone.
pub(super) fn minority(mut classes: Vec<Vec<usize>>) -> Option<Minority> {
    if classes.len() < 2 {
        return None;
    }
    classes.sort_by_key(|class| (std::cmp::Reverse(class.len()), class[0]));
    let n: usize = classes.iter().map(Vec::len).sum();
    let has_majority = classes[0].len() * 2 > n;
    let others = if has_majority {
        classes.remove(0)
    } else {
        Vec::new()
    };
    let mut accused: Vec<usize> = classes.into_iter().flatten().collect();
    accused.sort_unstable();
    Some(Minority {
        accused,
        others,
        is_each: has_majority,
    })
}

pub(super) fn evidence_of(is_of_bits: bool) -> DivergenceEvidence {
    if is_of_bits {
        DivergenceEvidence::Bits
    } else {
        DivergenceEvidence::Statistics
    }
}

/// Looks for tensors that are something else where they are read than where they were made.
fn overwritten(run: &RankedRun, fits: &[MeetingFits], found: &mut RankDivergences) {
    let mut written: HashMap<SlotRef, Vec<usize>> = HashMap::new();
    let mut told: HashSet<SlotRef> = HashSet::new();
    for sequence in &run.ranks {
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
                let is_written = written.contains_key(&maker);
                if let Some(is_equal) = is_unchanged(run, reader, at, maker) {
                    found.n_edges += 1;
                    let is_sure = is_settled(run, fits, maker.run);
                    if !is_equal && !is_written && is_sure && told.insert(maker) {
                        found
                            .findings
                            .push(overwritten_finding(run, reader, at, maker.run));
                    }
                }
            }
            // What works in place writes to what it reads; later readers see another content.
            if may_write(&one.op_type) {
                for (_, maker) in read {
                    written.entry(maker).or_default().push(reader);
                }
            }
        }
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

/// Whether a tensor is what was made, as far as all bits of both are known and both have the same
/// dtype and extents.
fn is_unchanged(run: &RankedRun, reader: usize, at: usize, maker: SlotRef) -> Option<bool> {
    let read = &run.dump.runs[reader].slots[at];
    let made = run.dump.runs[maker.run].slots.get(maker.slot)?;
    let marks = [
        run.marks.get(reader, at)?,
        run.marks.get(maker.run, maker.slot)?,
    ];
    let is_comparable = read.dtype_name == made.dtype_name
        && read.shape == made.shape
        && marks.iter().all(|mark| mark.kind == MarkKind::Bits);
    is_comparable.then_some(marks[0] == marks[1])
}

/// Whether what an execution made was all there when it was shown: a collective may go on behind
/// its call, unless its result is known to be right.
fn is_settled(run: &RankedRun, fits: &[MeetingFits], maker: usize) -> bool {
    match run.meetings.of_run.get(&maker) {
        Some(&(nth, at)) => fits[nth][at] == Some(ResultFit::Fits) || has_one_result(run, nth),
        None => !run.meetings.unmatched.contains_key(&maker),
    }
}

/// Whether all ranks of a collective were shown the same result, to the bit, and it is another than
/// what they gave.
fn has_one_result(run: &RankedRun, nth: usize) -> bool {
    let calls = run.meetings.meetings[nth].calls.iter();
    let marks = calls.map(|call| {
        let given = run.marks.of_side(&run.dump, call.run, SlotSide::Input);
        let result = run.marks.of_side(&run.dump, call.run, SlotSide::Output);
        result.filter(|mark| mark.kind == MarkKind::Bits && given != result)
    });
    let marks: HashSet<Option<ContentMark>> = marks.collect();
    marks.len() == 1 && !marks.contains(&None)
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

/// Joins findings of one operator, kind and ranks, in order.
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
