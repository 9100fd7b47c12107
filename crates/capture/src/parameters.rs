//! Values that a step's operators read and none of them produces, kept until the step ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_store::record::Operator;
use opscope_tensor::Tensor;

use crate::counters::DropReason;

/// The parameters that a step has shown, by the names of their values.
#[derive(Default)]
pub(crate) struct Parameters(Mutex<BTreeMap<String, ShownParameter>>);

pub(crate) struct ShownParameter {
    /// The operator of its record.
    pub(crate) operator: Arc<Operator>,
    /// Its value, or why it was not inspected.
    pub(crate) value: Result<Tensor, DropReason>,
}

impl Parameters {
    /// Keeps the last value that is shown: operators may write in place.
    pub(crate) fn show(&self, operator: &Arc<Operator>, tensor: Tensor) {
        let Some(name) = operator.outputs.first() else {
            return;
        };
        let operator = operator.clone();
        let value = Ok(tensor);
        self.lock()
            .insert(name.clone(), ShownParameter { operator, value });
    }

    /// Replaces the value of one that was shown.
    pub(crate) fn refresh(&self, name: &str, tensor: Tensor) {
        if let Some(shown) = self.lock().get_mut(name) {
            shown.value = Ok(tensor);
        }
    }

    /// Remembers that a reader was not inspected, unless another reader has supplied the value.
    pub(crate) fn skip(&self, operator: &Arc<Operator>, reason: DropReason) {
        let Some(name) = operator.outputs.first() else {
            return;
        };
        // A reader that was inspected takes precedence over one that was not.
        let mut shown = self.lock();
        if !shown.contains_key(name) {
            let operator = operator.clone();
            let value = Err(reason);
            shown.insert(name.clone(), ShownParameter { operator, value });
        }
    }

    /// All of them, by name; none are left.
    pub(crate) fn take(&self) -> Vec<ShownParameter> {
        std::mem::take(&mut *self.lock()).into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ShownParameter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
