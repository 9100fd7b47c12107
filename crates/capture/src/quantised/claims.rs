//! Which operator shows a value that several of them read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{FloatView, ShowingRule};

/// The operators that were first to read a value in a step, by value.
#[derive(Default)]
pub(crate) struct ValueClaims(Mutex<HashMap<u32, u32>>);

impl ValueClaims {
    /// Whether an operator that is about to run shows the floats.
    pub(crate) fn take(&self, view: &FloatView) -> bool {
        let task_id = view.operator.task_id;
        match view.showing {
            ShowingRule::Always => true,
            ShowingRule::ByFirstReader => {
                *self.lock().entry(view.value).or_insert(task_id) == task_id
            }
            // Nothing in the model produces the value, so every reader sees the same one.
            ShowingRule::Once => self.lock().insert(view.value, task_id).is_none(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u32, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
