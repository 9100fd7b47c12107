//! Judging the NaNs and infinities of a step by all its operators together.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use opscope_store::record::{Operator, Record, SlotSide};

use super::local::{NanSource, OnlyNegative, has_all_inputs};
use super::operators::{is_asking, is_softmax};
use super::{
    FirstNonFinite, LocalJudgement, NonFiniteFindings, NonFiniteOrigin, StepJudgement, lock, told,
};
use crate::record_order::RecordOrder;

/// Maximum number of operators of a step that are judged together; the rest are judged separately.
const N_NOTES_MAX: usize = 1 << 18;

/// Notes on the operators of one step that have non-finite values. They are judged when no more can
/// be added: the tap holds a reference while the step runs, and each record holds one until it is
/// written.
pub(crate) struct StepNotes {
    findings: Arc<NonFiniteFindings>,
    state: Mutex<StepState>,
}

#[derive(Default)]
struct StepState {
    notes: Vec<OperatorNote>,
    /// Operators' outputs, where inputs are not inspected.
    given: HashSet<String>,
}

struct OperatorNote {
    order: RecordOrder,
    operator: Arc<Operator>,
    local: LocalJudgement,
    told: FirstNonFinite,
    /// Inputs that hold an infinity or were not inspected.
    reads: Vec<usize>,
    /// Outputs in which anything was seen.
    gives: Vec<usize>,
}

impl Drop for StepNotes {
    fn drop(&mut self) {
        // In a fork another thread may have held the locks of the findings, and the fork never
        // reads the findings.
        if self.findings.home.is_elsewhere() {
            return;
        }
        self.judge();
    }
}

impl StepNotes {
    pub(super) fn new(findings: Arc<NonFiniteFindings>) -> StepNotes {
        StepNotes {
            findings,
            state: Mutex::default(),
        }
    }

    /// Adds the facts of a record.
    pub(crate) fn add(&self, order: RecordOrder, record: &Record, local: LocalJudgement) {
        // Without inputs it is unknown whether an infinity was read or computed, so the outputs are
        // remembered: a later operator may read them.
        let is_blind = !has_all_inputs(record);
        let is_end = is_blind && is_softmax(&record.operator, None);
        if local == LocalJudgement::Finite && !is_blind {
            return;
        }
        let mut state = lock(&self.state);
        if is_blind {
            let names = record.outputs.iter();
            let names = names.filter_map(|(i, _)| record.operator.outputs.get(*i));
            state.given.extend(names.cloned());
        }
        // A finite softmax is noted too: it may be where the -Inf of a mask ends.
        if (local == LocalJudgement::Finite && !is_end) || state.notes.len() >= N_NOTES_MAX {
            return;
        }
        state.notes.push(OperatorNote::new(order, record, local));
    }

    /// Judges what was noted until now.
    pub(super) fn judge(&self) {
        let StepState { mut notes, given } = std::mem::take(&mut *lock(&self.state));
        if notes.is_empty() {
            return;
        }
        // Writers add notes in whatever order they finish; the verdicts must not depend on it.
        notes.sort_by_key(|note| note.order);
        self.findings
            .merge(StepReview::new(&notes, &given).judged());
    }
}

impl OperatorNote {
    fn new(order: RecordOrder, record: &Record, local: LocalJudgement) -> OperatorNote {
        let is_bad = |tensor: &opscope_tensor::Tensor| tensor.non_finite().any();
        let shown = |position: usize| record.inputs.iter().find(|(i, _)| *i == position);
        let reads = (0..record.operator.inputs.len())
            .filter(|&i| shown(i).is_none_or(|(_, tensor)| is_bad(tensor)));
        let gives = record.outputs.iter().filter(|(_, tensor)| is_bad(tensor));
        let (slot, origin) = match local {
            LocalJudgement::Finite => ((SlotSide::Output, 0), NonFiniteOrigin::Unknown),
            LocalJudgement::Nan(slot, source) => (slot, origin_of(source)),
            LocalJudgement::MadeUp(slot) => (slot, NonFiniteOrigin::Constant),
            LocalJudgement::PassedOn(slot) => (slot, NonFiniteOrigin::Given),
            LocalJudgement::Computed(slot, _) => (slot, NonFiniteOrigin::Computed),
            LocalJudgement::Unseen(slot, _) => (slot, NonFiniteOrigin::Unknown),
        };
        OperatorNote {
            order,
            operator: record.operator.clone(),
            local,
            told: told(record, slot, origin),
            reads: reads.collect(),
            gives: gives.map(|(i, _)| *i).collect(),
        }
    }

    fn read_names(&self) -> impl Iterator<Item = &str> {
        let names = self
            .reads
            .iter()
            .filter_map(|&i| self.operator.inputs.get(i));
        names.map(String::as_str).filter(|name| !name.is_empty())
    }

    fn given_names(&self) -> impl Iterator<Item = &str> {
        let names = self
            .gives
            .iter()
            .filter_map(|&i| self.operator.outputs.get(i));
        names.map(String::as_str).filter(|name| !name.is_empty())
    }
}

fn origin_of(source: NanSource) -> NonFiniteOrigin {
    match source {
        NanSource::Input => NonFiniteOrigin::Given,
        NanSource::Output => NonFiniteOrigin::Computed,
        NanSource::MadeUp => NonFiniteOrigin::Constant,
        NanSource::Unseen => NonFiniteOrigin::Unknown,
    }
}

/// Verdict on one operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NonFiniteVerdict {
    /// To be reported.
    Guilty,
    /// It is, unless there is anything certain.
    Suspect,
    /// Its infinities are wanted.
    Deliberate,
    /// It was reached by the NaNs or infinities of an earlier operator.
    Reached,
    /// It has nothing.
    None,
}

/// The notes of one step, in the order of execution.
struct StepReview<'a> {
    notes: &'a [OperatorNote],
    given: &'a HashSet<String>,
    /// Which notes read a value.
    readers: HashMap<&'a str, Vec<usize>>,
    /// Which note gave a value, the last one.
    givers: HashMap<&'a str, usize>,
}

impl<'a> StepReview<'a> {
    fn new(notes: &'a [OperatorNote], given: &'a HashSet<String>) -> StepReview<'a> {
        let mut readers: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut givers = HashMap::new();
        for (i, note) in notes.iter().enumerate() {
            for name in note.read_names() {
                readers.entry(name).or_default().push(i);
            }
            for name in note.given_names() {
                givers.insert(name, i);
            }
        }
        StepReview {
            notes,
            given,
            readers,
            givers,
        }
    }

    fn judged(&self) -> StepJudgement {
        let mut judged = StepJudgement::default();
        let mut verdicts = Vec::with_capacity(self.notes.len());
        for (i, note) in self.notes.iter().enumerate() {
            let verdict = self.verdict(i, note, &verdicts);
            verdicts.push(verdict);
            let place = match verdict {
                NonFiniteVerdict::Guilty => &mut judged.first,
                NonFiniteVerdict::Suspect => &mut judged.first_unknown,
                NonFiniteVerdict::Deliberate => {
                    judged.n_deliberate += 1;
                    &mut judged.first_deliberate
                }
                NonFiniteVerdict::Reached | NonFiniteVerdict::None => continue,
            };
            // Notes are in the order of execution, so the first of a kind is the earliest.
            place.get_or_insert_with(|| (note.order, note.told.clone()));
        }
        judged
    }

    fn verdict(
        &self,
        i: usize,
        note: &OperatorNote,
        before: &[NonFiniteVerdict],
    ) -> NonFiniteVerdict {
        match note.local {
            LocalJudgement::Finite => NonFiniteVerdict::None,
            // Masks never contain NaN.
            LocalJudgement::Nan(..) => NonFiniteVerdict::Guilty,
            LocalJudgement::MadeUp(_) | LocalJudgement::PassedOn(_) => self.inherited(note, before),
            LocalJudgement::Computed(_, is_negative) => {
                self.unless_masking(i, is_negative, NonFiniteVerdict::Guilty)
            }
            LocalJudgement::Unseen(slot, is_negative) => {
                self.unseen(i, note, (slot.0, is_negative), before)
            }
        }
    }

    /// Of an operator with infinities that it did not compute: wanted ones, unless they come from
    /// one that did.
    fn inherited(&self, note: &OperatorNote, before: &[NonFiniteVerdict]) -> NonFiniteVerdict {
        let givers = note.read_names().filter_map(|name| self.givers.get(name));
        let mut verdicts = givers.filter_map(|&giver| before.get(giver));
        let is_propagated = verdicts.any(|verdict| {
            matches!(
                verdict,
                NonFiniteVerdict::Guilty | NonFiniteVerdict::Suspect | NonFiniteVerdict::Reached
            )
        });
        if is_propagated {
            NonFiniteVerdict::Reached
        } else {
            NonFiniteVerdict::Deliberate
        }
    }

    /// Of an operator whose inputs or outputs were not inspected.
    fn unseen(
        &self,
        i: usize,
        note: &OperatorNote,
        (side, is_negative): (SlotSide, OnlyNegative),
        before: &[NonFiniteVerdict],
    ) -> NonFiniteVerdict {
        if note
            .read_names()
            .any(|name| self.givers.get(name).is_some_and(|&giver| giver < i))
        {
            return self.inherited(note, before);
        }
        // An operator that dumps outputs only: if everything it read was given by operators that
        // had nothing, it must have computed the infinity.
        let is_known =
            side == SlotSide::Output && note.read_names().all(|name| self.given.contains(name));
        let verdict = if is_known {
            NonFiniteVerdict::Guilty
        } else {
            NonFiniteVerdict::Suspect
        };
        self.unless_masking(i, is_negative, verdict)
    }

    /// A mask may be computed as well: -Inf that is only read by a softmax is deliberate.
    fn unless_masking(
        &self,
        i: usize,
        is_negative: OnlyNegative,
        verdict: NonFiniteVerdict,
    ) -> NonFiniteVerdict {
        if is_negative && self.only_masks(i) {
            NonFiniteVerdict::Deliberate
        } else {
            verdict
        }
    }

    /// Whether every way that the values of a note take ends in a softmax, and there is one.
    fn only_masks(&self, start: usize) -> bool {
        let mut seen: HashSet<usize> = HashSet::from([start]);
        let mut next = vec![start];
        let mut has_end = false;
        while let Some(i) = next.pop() {
            let names = self.notes[i].given_names();
            let readers = names.flat_map(|name| self.readers.get(name).into_iter().flatten());
            let mut has_reader = false;
            // A name may be given again later, as in a loop; a reader before the giver read an
            // older value.
            for &reader in readers.filter(|&&reader| reader > i) {
                has_reader = true;
                let operator = &self.notes[reader].operator;
                if is_softmax(operator, Some(&self.notes[i].operator)) {
                    has_end = true;
                // A comparison or a maximum reads the mask and propagates nothing of it.
                } else if !is_asking(operator) {
                    // A reader whose outputs are all finite used the -Inf for something other than
                    // masking.
                    let goes_on = !self.notes[reader].gives.is_empty();
                    let is_nan = matches!(self.notes[reader].local, LocalJudgement::Nan(..));
                    if !goes_on || is_nan {
                        return false;
                    }
                    if seen.insert(reader) {
                        next.push(reader);
                    }
                }
            }
            // No reader has a non-finite value, or the value is an output of the model.
            if !has_reader {
                return false;
            }
        }
        has_end
    }
}
