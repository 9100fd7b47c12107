//! One call of an operator, between its beginning and its end.

use std::sync::{Arc, Mutex};

use opscope_store::record::parallel::{Collective, Placement};
use opscope_tensor::Tensor;
use pyo3::prelude::*;

use super::kind::OperatorKind;
use super::links::ForwardLink;
use super::lock::lock;
use crate::capture::reason::UnseenReason;

/// One call of an operator, between its beginning and its end.
#[pyclass(name = "Call", frozen, module = "opscope._native.capture")]
pub(super) struct EagerCall {
    #[pyo3(get)]
    task_id: u32,
    #[pyo3(get)]
    op_name: String,
    #[pyo3(get)]
    op_type: String,
    #[pyo3(get)]
    module: String,
    #[pyo3(get)]
    source: String,
    #[pyo3(get)]
    phase: String,
    #[pyo3(get)]
    seq_nr: Option<u64>,
    /// `None` once the operator has ended.
    begun: Mutex<Option<PendingOperator>>,
}

/// An operator as it is known before it runs.
pub(super) struct PendingOperator {
    pub(super) kind: Arc<OperatorKind>,
    pub(super) task_id: u32,
    pub(super) op_name: Arc<str>,
    pub(super) inputs: Vec<CallInput>,
    /// Tensors that it writes to.
    pub(super) written: Vec<Py<PyAny>>,
    pub(super) texts: Vec<(String, String)>,
    pub(super) origin: CallOrigin,
    pub(super) is_selected: bool,
    /// The collective that it is.
    pub(super) collective: Option<Arc<Collective>>,
}

/// A collective, for which Python says more than its arguments do.
#[derive(FromPyObject)]
pub(super) struct CollectiveCall<'py> {
    /// Such as `all_reduce(sum)`.
    pub(super) kind: String,
    /// The global ranks of its group.
    pub(super) ranks: Vec<u32>,
    /// Tensors that this process gives.
    pub(super) inputs: Vec<Bound<'py, PyAny>>,
    /// Tensors that it fills, as far as these are arguments.
    pub(super) outputs: Vec<Bound<'py, PyAny>>,
}

/// An input.
pub(super) struct CallInput {
    pub(super) name: Arc<str>,
    /// `None` if it is not kept, or cannot be.
    pub(super) tensor: Option<Tensor>,
    /// Its memory and torch's count of writes there.
    pub(super) memory: Option<(usize, Option<u64>)>,
    /// Of which distributed tensor it is a part.
    pub(super) placement: Option<Arc<Placement>>,
}

/// Where an operator comes from.
#[derive(Clone)]
pub(super) struct CallOrigin {
    pub(super) phase: String,
    pub(super) module: Arc<str>,
    pub(super) source: Arc<str>,
    /// Number that a forward operator and its backward ones share.
    pub(super) seq_nr: Option<u64>,
    /// The node of autograd's that runs.
    pub(super) node: Option<String>,
    /// The forward operator of a backward one.
    pub(super) forward: Option<ForwardLink>,
}

impl PendingOperator {
    /// The name of a result.
    pub(super) fn result_name(&self, position: usize, is_list: bool) -> Arc<str> {
        if is_list {
            format!("{}.{position}", self.op_name).into()
        } else {
            self.op_name.clone()
        }
    }

    /// Why a result is not to be looked at, if so. Those of a collective are shown when they are
    /// there.
    pub(super) fn reason(&self, position: usize) -> Option<UnseenReason> {
        if self.kind.blank.contains(&position) {
            return Some(UnseenReason::uninitialised());
        }
        let reason = self.kind.reason.as_ref();
        reason.filter(|_| self.collective.is_none()).cloned()
    }
}

impl EagerCall {
    pub(super) fn new(begun: PendingOperator) -> EagerCall {
        let origin = &begun.origin;
        EagerCall {
            task_id: begun.task_id,
            op_name: begun.op_name.to_string(),
            op_type: begun.kind.target.clone(),
            module: origin.module.to_string(),
            source: origin.source.to_string(),
            phase: origin.phase.clone(),
            seq_nr: origin.seq_nr,
            begun: Mutex::new(Some(begun)),
        }
    }

    /// Name of the operator, and the tensors that it writes to, as long as it has not ended.
    pub(super) fn written(&self, py: Python<'_>) -> Option<(Arc<str>, Vec<Py<PyAny>>)> {
        let begun = lock(&self.begun);
        let begun = begun.as_ref()?;
        let written = begun.written.iter().map(|tensor| tensor.clone_ref(py));
        Some((begun.op_name.clone(), written.collect()))
    }

    /// Gives the operator another number, as long as it has not ended.
    pub(super) fn renumber(&self, task_id: u32) {
        if let Some(begun) = lock(&self.begun).as_mut() {
            begun.task_id = task_id;
        }
    }

    /// Takes the operator that has begun; `None` from the second call on.
    pub(super) fn take(&self) -> Option<PendingOperator> {
        lock(&self.begun).take()
    }
}

#[pymethods]
impl EagerCall {
    /// Names of the values that it reads; none once it has ended.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        let begun = lock(&self.begun);
        let inputs = begun.iter().flat_map(|begun| &begun.inputs);
        inputs.map(|input| input.name.to_string()).collect()
    }
}
