//! Which NaN or infinity is the first that a model computed.
//!
//! An attention mask is full of deliberate infinities from the first step on; reporting it first
//! would hide a NaN in a later step. So each operator with a non-finite value is judged by itself
//! when it is written ([`local`]), and again together with the rest of its step when the step is
//! over ([`step`]). The rules are in `docs/non-finite.md`.

mod local;
mod operators;
mod step;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use opscope_overflow::InfiniteResult;
use opscope_store::record::{CallSite, Record, SlotSide};
use opscope_tensor::{DType, NonFinite, Tensor};

pub(crate) use self::local::{LocalJudgement, judge};
pub(crate) use self::step::StepNotes;
use crate::home::HomeProcess;
use crate::record_order::RecordOrder;

/// The first tensor, in execution order, that holds NaN or an infinity that is not deliberate.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstNonFinite {
    /// Execution of the model.
    pub step: u64,
    /// The graph, by the name that its directory has.
    pub graph: String,
    /// Position of the operator in the model.
    pub task_id: u32,
    /// The operator's type.
    pub op_type: String,
    /// The operator's name.
    pub op_name: String,
    /// Where the program calls it; empty if unknown.
    pub call_site: CallSite,
    /// Input or output.
    pub side: SlotSide,
    /// Which of them.
    pub index: usize,
    /// The first such element in row-major order; `None` if the elements were gone when it was
    /// found.
    pub element: Option<usize>,
    /// The dtype of the tensor; `None` if it is gone.
    pub dtype: Option<DType>,
    /// Value of that element: NaN or an infinity.
    pub value: f64,
    /// The largest magnitude that the infinite elements would have in a wider dtype; `None` if it
    /// is unknown.
    pub needed: Option<f64>,
    /// Number of elements, by kind.
    pub counts: NonFinite,
    /// How it got there.
    pub origin: NonFiniteOrigin,
}

/// How a NaN or an infinity got into a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonFiniteOrigin {
    /// The operator computed it from finite numbers.
    Computed,
    /// The operator read it, and none that was dumped gave it: an input of the model, a weight, or
    /// what an operator gave that was not selected.
    Given,
    /// The program wrote it into the graph: a constant, a fill, a scalar argument.
    Constant,
    /// An input or output of the operator was not inspected.
    Unknown,
}

impl NonFiniteOrigin {
    /// `computed`, `given`, `constant` or `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            NonFiniteOrigin::Computed => "computed",
            NonFiniteOrigin::Given => "given",
            NonFiniteOrigin::Constant => "constant",
            NonFiniteOrigin::Unknown => "unknown",
        }
    }
}

/// Deliberate infinities, such as those of a mask.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliberateInfinities {
    /// Operator executions that made them up, read them or passed them on.
    pub n_operators: u64,
    /// The first of these.
    pub first: Option<FirstNonFinite>,
}

/// Findings of a session's steps, merged as they end.
#[derive(Default)]
pub(crate) struct NonFiniteFindings {
    merged: Mutex<MergedFindings>,
    /// Steps that are not judged yet.
    open: Mutex<Vec<Weak<StepNotes>>>,
    home: HomeProcess,
}

#[derive(Default)]
struct MergedFindings {
    first: Option<(RecordOrder, FirstNonFinite)>,
    /// The first possibly deliberate one.
    first_unknown: Option<(RecordOrder, FirstNonFinite)>,
    n_deliberate: u64,
    first_deliberate: Option<(RecordOrder, FirstNonFinite)>,
}

/// Findings of one step.
#[derive(Default)]
struct StepJudgement {
    first: Option<(RecordOrder, FirstNonFinite)>,
    first_unknown: Option<(RecordOrder, FirstNonFinite)>,
    n_deliberate: u64,
    first_deliberate: Option<(RecordOrder, FirstNonFinite)>,
}

impl NonFiniteFindings {
    /// Collects the notes of a step until the last reference to them is dropped.
    pub(crate) fn begin_step(self: &Arc<NonFiniteFindings>) -> Arc<StepNotes> {
        let notes = Arc::new(StepNotes::new(self.clone()));
        let mut open = lock(&self.open);
        // Only where the list would grow, so that looking for ended steps costs nothing on average.
        if open.len() == open.capacity() {
            open.retain(|step| step.strong_count() > 0);
        }
        open.push(Arc::downgrade(&notes));
        notes
    }

    fn merge(&self, judged: StepJudgement) {
        let mut merged = lock(&self.merged);
        keep_earlier(&mut merged.first, judged.first);
        keep_earlier(&mut merged.first_unknown, judged.first_unknown);
        keep_earlier(&mut merged.first_deliberate, judged.first_deliberate);
        merged.n_deliberate += judged.n_deliberate;
    }

    /// Returns the findings of all steps. A finding that may be deliberate is reported only if
    /// there is no other.
    pub(crate) fn finish(&self) -> (Option<FirstNonFinite>, DeliberateInfinities) {
        let open = std::mem::take(&mut *lock(&self.open));
        // A tap that is still in a step keeps its notes from judging themselves.
        for step in open.iter().filter_map(Weak::upgrade) {
            step.judge();
        }
        let merged = std::mem::take(&mut *lock(&self.merged));
        let first = merged.first.or(merged.first_unknown);
        let deliberate = DeliberateInfinities {
            n_operators: merged.n_deliberate,
            first: merged.first_deliberate.map(|(_, first)| first),
        };
        (first.map(|(_, first)| first), deliberate)
    }
}

fn keep_earlier(
    known: &mut Option<(RecordOrder, FirstNonFinite)>,
    found: Option<(RecordOrder, FirstNonFinite)>,
) {
    let Some(found) = found else {
        return;
    };
    if known.as_ref().is_none_or(|known| found.0 < known.0) {
        *known = Some(found);
    }
}

/// A slot with its record, in words.
fn told(
    record: &Record,
    (side, index): (SlotSide, usize),
    origin: NonFiniteOrigin,
) -> FirstNonFinite {
    let operator = &record.operator;
    let mut slots = record.slots();
    let tensor = slots.find(|(s, i, _)| (*s, *i) == (side, index));
    let observed = tensor.as_ref().map(|(_, _, tensor)| tensor.observed());
    let counts = observed
        .map(|tensor| tensor.non_finite())
        .unwrap_or_default();
    let places = observed.map(|tensor| tensor.non_finite_places());
    let places = places.unwrap_or_default();
    let usual = match counts.n_pos_inf {
        0 => f64::NEG_INFINITY,
        _ => f64::INFINITY,
    };
    let (element, value) = match counts.n_nan {
        // The elements may be gone; the counts are remembered with the sign of the infinities at
        // least.
        0 => match places.infinity {
            Some((element, value)) => (Some(element), value),
            None => (None, usual),
        },
        _ => (places.nan, f64::NAN),
    };
    let model = &record.model;
    FirstNonFinite {
        step: record.step,
        graph: if model.graph_name.is_empty() {
            model.file_stem.clone()
        } else {
            model.graph_name.clone()
        },
        task_id: operator.task_id,
        op_type: operator.op_type.clone(),
        op_name: operator.op_name.clone(),
        call_site: operator.call_site.clone().unwrap_or_default(),
        side,
        index,
        element,
        dtype: tensor.map(|(_, _, tensor)| tensor.dtype()),
        value,
        needed: (origin == NonFiniteOrigin::Computed && counts.n_nan == 0)
            .then(|| needed(record, tensor?.2))
            .flatten(),
        counts,
        origin,
    }
}

/// Recomputes a result with infinities in a wider dtype.
fn needed(record: &Record, output: &Tensor) -> Option<f64> {
    let inputs = record.inputs.iter();
    let inputs = inputs.map(|(_, tensor)| tensor.host_view().ok());
    let attributes = &record.operator.attributes;
    let result = InfiniteResult {
        op_type: &record.operator.op_type,
        attribute: &|name| {
            let mut known = attributes.iter();
            let (_, text) = known.find(|(own, _)| own == name)?;
            Some(text)
        },
        inputs: &inputs.collect::<Option<Vec<_>>>()?,
        output: output.host_view().ok()?,
    };
    result.needed()
}

/// Values behind these locks are replaced completely, so a panic cannot leave them half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
