//! The step that a tap is in, shared by the operators that run in it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use opscope_store::record::ModelId;

use crate::non_finite::StepNotes;
use crate::overwrite::Watcher;
use crate::parameters::Parameters;
use crate::quantised::ValueClaims;
use crate::ring::StepHold;
use crate::step_end::StepEnd;

/// One execution of a model, for as long as its tap is in it or one of its operators runs.
pub(crate) struct RunningStep {
    pub(crate) model: Arc<ModelId>,
    /// The number of the execution.
    pub(crate) number: u64,
    /// Operators seen so far.
    pub(crate) n_operators: AtomicU64,
    /// Watched values.
    pub(crate) watcher: Watcher,
    pub(crate) parameters: Parameters,
    /// Which operators show the floats of quantised values.
    pub(crate) claims: ValueClaims,
    /// Prevents the ring from deciding on the step. Empty without a ring, and until the ring has
    /// space.
    pub(crate) hold: OnceLock<StepHold>,
    /// Notifies the sink when everything of the step is written. Empty for steps that the sink does
    /// not receive.
    pub(crate) end: OnceLock<Arc<StepEnd>>,
    /// Notes about operators with NaN or infinities.
    notes: Arc<StepNotes>,
}

/// A record's part in its step, which is judged and decided on once the last of them is gone.
pub(crate) struct StepTicket {
    pub(crate) hold: Option<StepHold>,
    pub(crate) notes: Arc<StepNotes>,
    /// Only held: the step ends with the last of them.
    _end: Option<Arc<StepEnd>>,
}

impl RunningStep {
    pub(crate) fn new(model: Arc<ModelId>, number: u64, notes: Arc<StepNotes>) -> RunningStep {
        RunningStep {
            model,
            number,
            n_operators: AtomicU64::new(0),
            watcher: Watcher::default(),
            parameters: Parameters::default(),
            claims: ValueClaims::default(),
            hold: OnceLock::new(),
            end: OnceLock::new(),
            notes,
        }
    }

    /// Returns a ticket for a record on its way to the sink.
    pub(crate) fn ticket(&self) -> StepTicket {
        StepTicket {
            hold: self.hold.get().map(StepHold::for_record),
            notes: self.notes.clone(),
            _end: self.end.get().cloned(),
        }
    }
}
