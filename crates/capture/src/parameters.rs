//! What a step's operators read that none of them produces, until the step ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_store::record::Operator;
use opscope_tensor::Tensor;

/// The parameters that a step has shown, by the names of their values.
#[derive(Default)]
pub(crate) struct Parameters(Mutex<BTreeMap<String, Parameter>>);

pub(crate) struct Parameter {
    /// What its record says.
    pub(crate) operator: Arc<Operator>,
    pub(crate) tensor: Tensor,
}

impl Parameters {
    /// Keeps the last value that is shown: operators may write in place.
    pub(crate) fn show(&self, operator: &Arc<Operator>, tensor: Tensor) {
        let Some(name) = operator.outputs.first() else {
            return;
        };
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let operator = operator.clone();
        shown.insert(name.clone(), Parameter { operator, tensor });
    }

    /// All of them, by name; none are left.
    pub(crate) fn take(&self) -> Vec<Parameter> {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *shown).into_values().collect()
    }
}
