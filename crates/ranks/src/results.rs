//! Checks the results of collectives against their inputs and each other.

use std::collections::{BTreeMap, HashMap, HashSet};

use opscope_store::record::SlotSide;
use opscope_store::record::parallel::CollectiveKind;

use super::content::{ContentMark, MarkKind};
use super::finding::{
    DivergenceEvidence, DivergenceFinding, DivergenceKind, Minority, RankDivergences, evidence_of,
    minority,
};
use super::meetings::{GroupSource, Meeting, MeetingCall};
use super::recomputed::{self, MeetingFits, ResultFit};
use super::run::RankedRun;
use opscope_analysis::compare::result::SlotKey;
use opscope_analysis::job;

/// How often results of one operator type are right. A type with mostly wrong results was captured
/// before it finished, as asynchronous calls are, or is not the collective that it seems.
#[derive(Clone, Copy, Default)]
struct TypeRecord {
    n_fitting: u64,
    n_other: u64,
    n_equal: u64,
    n_unequal: u64,
}

/// Checks all collectives. Returns the recomputed results by meeting.
pub(super) fn check(
    run: &RankedRun,
    n_threads: usize,
    found: &mut RankDivergences,
) -> Vec<MeetingFits> {
    let meetings = &run.meetings.meetings;
    let mut fits = job::map(meetings, n_threads, |meeting| over_only(run, meeting));
    let mut records: HashMap<&str, TypeRecord> = HashMap::new();
    for (meeting, fits) in meetings.iter().zip(&fits) {
        let record = records.entry(op_type(run, meeting)).or_default();
        let known = fits.iter().flatten();
        let n_fitting = known.clone().filter(|fit| **fit == ResultFit::Fits).count() as u64;
        record.n_fitting += n_fitting;
        record.n_other += known.count() as u64 - n_fitting;
        if let Some(classes) = classes(run, meeting) {
            let is_equal = classes.calls.len() < 2;
            record.n_equal += u64::from(is_equal);
            record.n_unequal += u64::from(!is_equal);
        }
    }
    for (nth, meeting) in meetings.iter().enumerate() {
        let record = records
            .get(op_type(run, meeting))
            .copied()
            .unwrap_or_default();
        // If most results are wrong, the type is misunderstood and no single rank is to blame.
        let is_unlike = record.n_other > 0 && record.n_fitting <= record.n_other;
        if is_unlike {
            fits[nth].fill(None);
        }
        // A single unequal collective of its type is neither a pattern nor a proof.
        let may_compare = !is_unlike && record.n_equal > record.n_unequal;
        check_meeting(run, nth, &fits[nth], may_compare, found);
    }
    fits
}

/// The type of a collective, on its first rank.
fn op_type<'a>(run: &'a RankedRun, meeting: &Meeting) -> &'a str {
    let first = meeting.calls.first();
    first.map_or("", |call| run.dump.runs[call.run].op_type.as_str())
}

/// A collective's recomputed results, without those that equal the rank's own contribution: these
/// were captured before the call finished.
fn over_only(run: &RankedRun, meeting: &Meeting) -> MeetingFits {
    let mut fits = recomputed::check(run, meeting);
    for (fit, call) in fits.iter_mut().zip(&meeting.calls) {
        if !matches!(fit, None | Some(ResultFit::Fits)) && is_own_input(run, call) {
            *fit = None;
        }
    }
    fits
}

fn is_own_input(run: &RankedRun, call: &MeetingCall) -> bool {
    let given = run.marks.of_side(&run.dump, call.run, SlotSide::Input);
    given.is_some() && given == run.marks.of_side(&run.dump, call.run, SlotSide::Output)
}

/// Calls with equal results.
struct ResultClasses {
    calls: Vec<Vec<usize>>,
    is_of_bits: bool,
}

/// The calls of a collective with a common result, grouped by result. `None` if not all are known,
/// or one was captured before it finished.
fn classes(run: &RankedRun, meeting: &Meeting) -> Option<ResultClasses> {
    let gives_all_the_same = matches!(
        meeting.kind,
        CollectiveKind::AllReduce(_) | CollectiveKind::AllGather | CollectiveKind::Broadcast(_)
    );
    if !gives_all_the_same || meeting.calls.len() < 2 {
        return None;
    }
    let mut of_mark: BTreeMap<ContentMark, Vec<usize>> = BTreeMap::new();
    for (at, call) in meeting.calls.iter().enumerate() {
        let mark = run.marks.of_side(&run.dump, call.run, SlotSide::Output)?;
        of_mark.entry(mark).or_default().push(at);
    }
    // The root of a broadcast has the same input and output.
    let has_root = matches!(meeting.kind, CollectiveKind::Broadcast(_));
    // One rank may show its result, and another still its input.
    let mut calls = meeting.calls.iter();
    if of_mark.len() > 1 && !has_root && calls.any(|call| is_own_input(run, call)) {
        return None;
    }
    let kinds: HashSet<MarkKind> = of_mark.keys().map(|mark| mark.kind).collect();
    (kinds.len() == 1).then(|| ResultClasses {
        calls: of_mark.into_values().collect(),
        is_of_bits: kinds.contains(&MarkKind::Bits),
    })
}

fn check_meeting(
    run: &RankedRun,
    nth: usize,
    fits: &MeetingFits,
    may_compare: bool,
    found: &mut RankDivergences,
) {
    let meeting = &run.meetings.meetings[nth];
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
    // A group inferred from equal results may be several groups that were equal by chance: suspect
    // a rank only if it alone does not fit.
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
    let is_compared = wrong.is_empty() && may_compare && unequal_results(run, nth, found);
    match (is_recomputed, is_compared) {
        (true, _) => found.n_recomputed += 1,
        (false, true) => found.n_compared += 1,
        (false, false) => found.n_unchecked += 1,
    }
}

/// Reports results that differ between ranks although the collective returns the same to all.
/// Returns whether they could be compared.
fn unequal_results(run: &RankedRun, nth: usize, found: &mut RankDivergences) -> bool {
    let meeting = &run.meetings.meetings[nth];
    let Some(ResultClasses { calls, is_of_bits }) = classes(run, meeting) else {
        return false;
    };
    let Some(Minority {
        accused,
        others,
        is_each,
    }) = minority(calls)
    else {
        return true;
    };
    let is_one_against_all = accused.len() == 1 && others.len() > 1;
    if meeting.group_source == GroupSource::Contents && !is_one_against_all {
        return false;
    }
    found.findings.push(DivergenceFinding {
        kind: DivergenceKind::UnequalResults,
        run: meeting.calls[accused[0]].run,
        slot: Some(SlotKey::default()),
        ranks: accused.iter().map(|&at| meeting.calls[at].rank).collect(),
        is_each,
        others: others.iter().map(|&at| meeting.calls[at].rank).collect(),
        meeting: Some(nth),
        difference: None,
        evidence: evidence_of(is_of_bits),
        later: Vec::new(),
    });
    true
}
