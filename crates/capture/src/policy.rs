//! Policies for a sink that fails or falls behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::SinkError;

/// Response to a failure of the sink: a full disk, a directory that is gone, a panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The first failure ends capturing. Queued and later tensors are dropped, and the model runs
    /// to its end undisturbed.
    #[default]
    StopCapture,
    /// The record that failed is lost; the others go on.
    Drop,
    /// The first failure ends capturing, and the model stops before its next operator.
    StopRun,
}

/// Response to records that are produced faster than the sink takes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBehind {
    /// The model waits until the queue has space.
    #[default]
    Wait,
    /// A record that does not fit is dropped; the model never waits for the sink.
    Drop,
}

/// The reaction of a session to failures of its sink.
pub(crate) struct FailureResponse {
    on_failure: FailurePolicy,
    first_error: Mutex<Option<SinkError>>,
    is_capture_ended: AtomicBool,
    is_run_ended: AtomicBool,
}

impl FailureResponse {
    pub(crate) fn new(on_failure: FailurePolicy) -> FailureResponse {
        FailureResponse {
            on_failure,
            first_error: Mutex::default(),
            is_capture_ended: AtomicBool::new(false),
            is_run_ended: AtomicBool::new(false),
        }
    }

    /// Remembers the first failure and applies the policy; returns whether capturing has ended.
    pub(crate) fn note(&self, error: SinkError) -> bool {
        self.first_error().get_or_insert(error);
        if self.on_failure == FailurePolicy::StopRun {
            self.is_run_ended.store(true, Ordering::Relaxed);
        }
        let is_ended = self.on_failure != FailurePolicy::Drop;
        self.is_capture_ended.fetch_or(is_ended, Ordering::Relaxed);
        is_ended
    }

    /// Whether a failure has ended capturing.
    pub(crate) fn is_capture_ended(&self) -> bool {
        self.is_capture_ended.load(Ordering::Relaxed)
    }

    /// Whether the model is to stop because of it.
    pub(crate) fn is_run_ended(&self) -> bool {
        self.is_run_ended.load(Ordering::Relaxed)
    }

    /// Takes the first failure.
    pub(crate) fn take_first_error(&self) -> Option<SinkError> {
        self.first_error().take()
    }

    fn first_error(&self) -> MutexGuard<'_, Option<SinkError>> {
        // It is replaced whole, so a panic cannot leave it half-changed.
        self.first_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
