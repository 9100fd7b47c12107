//! The report of a ring: the steps it kept, why, and those it removed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use opscope_store::record::{ModelId, Operator, SlotSide};
use opscope_tensor::NonFinite;

use super::TriggerKind;
use super::steps::{KeptSteps, Serial};
use crate::SinkError;
use crate::record_order::RecordOrder;

/// Maximum number of triggers in the report.
const N_TRIGGERS_MAX: usize = 1000;

/// The report of a ring of steps.
#[derive(Debug, Default)]
pub struct RingReport {
    /// Steps that are on disk, by model.
    pub kept: Vec<KeptSteps>,
    /// Triggers that kept steps for good, in the order of steps: of each kind, the first in each
    /// step. The first 1000.
    pub triggers: Vec<TriggerEvent>,
    /// Number of them.
    pub n_triggers: u64,
    /// Steps that were removed.
    pub n_steps_removed: u64,
    /// Files of those steps that were changed, replaced or removed by others.
    pub n_files_left: u64,
    /// The first file or directory that could not be removed.
    pub first_error: Option<SinkError>,
}

/// Something that kept steps for good.
#[derive(Clone, Debug)]
pub struct TriggerEvent {
    /// The cause.
    pub cause: TriggerCause,
    /// In which model.
    pub model: Arc<ModelId>,
    /// In which step.
    pub step: u64,
    /// In which operator, if it was one.
    pub operator: Option<Arc<Operator>>,
}

/// Why steps were kept for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerCause {
    /// Arithmetic overflowed; the bits of the status register.
    Overflow(u64),
    /// A tensor was not finite.
    NonFinite {
        /// Input or output.
        side: SlotSide,
        /// Which of them.
        index: usize,
        /// Number of elements, by kind.
        counts: NonFinite,
    },
    /// The operator, or the step, failed; why.
    Failure(String),
    /// The session's flag was set.
    Signal,
}

impl TriggerCause {
    /// The kind.
    pub fn kind(&self) -> TriggerKind {
        match self {
            TriggerCause::Overflow(_) => TriggerKind::Overflow,
            TriggerCause::NonFinite { .. } => TriggerKind::NonFinite,
            TriggerCause::Failure(_) => TriggerKind::Failure,
            TriggerCause::Signal => TriggerKind::Signal,
        }
    }
}

/// Notes for the report, taken while the session runs.
#[derive(Default)]
pub(super) struct RingLog {
    triggers: BTreeMap<(Serial, TriggerKind), (RecordOrder, TriggerEvent)>,
    n_triggers: u64,
    /// Triggers of steps past the reported ones, so that each counts once.
    untold: BTreeSet<(Serial, TriggerKind)>,
    pub(super) n_steps_removed: u64,
    pub(super) n_files_left: u64,
    pub(super) first_error: Option<SinkError>,
}

impl RingLog {
    /// Notes a trigger unless an earlier operator pulled the same in the same step.
    pub(super) fn trigger(&mut self, serial: Serial, order: RecordOrder, triggered: TriggerEvent) {
        let key = (serial, triggered.cause.kind());
        if self.untold.contains(&key) {
            return;
        }
        match self.triggers.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert((order, triggered));
                self.n_triggers += 1;
            }
            Entry::Occupied(mut entry) => {
                // An operator that fails makes those fail that it runs in, which began before it.
                let is_failure = key.1 == TriggerKind::Failure;
                if order < entry.get().0 && !is_failure {
                    entry.insert((order, triggered));
                }
            }
        }
        if self.triggers.len() > N_TRIGGERS_MAX
            && let Some((key, _)) = self.triggers.pop_last()
        {
            self.forget_below(key.0);
            self.untold.insert(key);
        }
    }

    /// Steps long gone pull no trigger again.
    fn forget_below(&mut self, serial: Serial) {
        let first = serial.saturating_sub(N_TRIGGERS_MAX as u64);
        self.untold = self.untold.split_off(&(first, TriggerKind::Overflow));
    }

    pub(super) fn into_report(self, kept: Vec<KeptSteps>) -> RingReport {
        let triggers = self.triggers.into_values();
        RingReport {
            kept,
            triggers: triggers.map(|(_, triggered)| triggered).collect(),
            n_triggers: self.n_triggers,
            n_steps_removed: self.n_steps_removed,
            n_files_left: self.n_files_left,
            first_error: self.first_error,
        }
    }
}
