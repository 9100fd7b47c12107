//! The steps that are not over, and those whose tables are being written.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::lock;
use super::step::StepRows;
use crate::sink::ledger::StepKey;

/// Rows of steps, by step.
#[derive(Default)]
pub(super) struct OpenSteps {
    state: Mutex<StepsState>,
    /// A step has ended.
    settled: Condvar,
}

#[derive(Default)]
struct StepsState {
    open: HashMap<StepKey, Arc<StepRows>>,
    /// How many threads are ending each step. A step that begins again may end twice at once.
    ending: HashMap<StepKey, usize>,
}

/// A step that ends. While it is there [`OpenSteps::wait_for`] waits.
pub(super) struct EndingStep<'a> {
    steps: &'a OpenSteps,
    pub(super) key: StepKey,
    pub(super) rows: Arc<StepRows>,
}

impl Drop for EndingStep<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.steps.state);
        if let Some(n_threads) = state.ending.get_mut(&self.key) {
            *n_threads -= 1;
            if *n_threads == 0 {
                state.ending.remove(&self.key);
            }
        }
        // Those that wake up would only wait for the lock.
        drop(state);
        self.steps.settled.notify_all();
    }
}

impl OpenSteps {
    /// The rows of a step, created by `create` if there are none.
    pub(super) fn get_or_create<E>(
        &self,
        key: StepKey,
        create: impl FnOnce() -> Result<StepRows, E>,
    ) -> Result<Arc<StepRows>, E> {
        let mut state = lock(&self.state);
        if let Some(rows) = state.open.get(&key) {
            return Ok(rows.clone());
        }
        // Under the lock: two threads that begin a step must not begin two journals.
        let rows = Arc::new(create()?);
        state.open.insert(key, rows.clone());
        Ok(rows)
    }

    /// Takes a step out to end it; `None` if it has no rows, or ends already.
    pub(super) fn end(&self, key: &StepKey) -> Option<EndingStep<'_>> {
        let mut state = lock(&self.state);
        // Later writes to the step begin a separate journal.
        let (key, rows) = state.open.remove_entry(key)?;
        *state.ending.entry(key.clone()).or_default() += 1;
        Some(EndingStep {
            steps: self,
            key,
            rows,
        })
    }

    /// Takes any step out to end it.
    pub(super) fn end_any(&self) -> Option<EndingStep<'_>> {
        let key = lock(&self.state).open.keys().next().cloned();
        self.end(&key?)
    }

    /// Waits until no thread is ending the step.
    pub(super) fn wait_for(&self, key: &StepKey) {
        let mut state = lock(&self.state);
        while state.ending.contains_key(key) {
            let waited = self.settled.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}
