//! One call of an operator, from its arguments to its results.

use std::sync::{Arc, Mutex};

use opscope_store::record::parallel::{Collective, Placement};
use opscope_tensor::Tensor;
use pyo3::prelude::*;

use super::kind::OperatorKind;
use super::links::ForwardLink;
use super::lock::lock;
use crate::capture::reason::UnseenReason;

/// One call of an operator, from its arguments to its results.
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
    /// `None` after the operator has ended.
    begun: Mutex<Option<PendingOperator>>,
}

/// An operator as known before it runs.
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
    /// Its collective, if any.
    pub(super) collective: Option<Arc<Collective>>,
}

/// A collective, with facts from Python in addition to its arguments.
#[derive(FromPyObject)]
pub(super) struct CollectiveCall<'py> {
    /// Such as `all_reduce(sum)`.
    pub(super) kind: String,
    /// The global ranks of its group.
    pub(super) ranks: Vec<u32>,
    /// This process's inputs.
    pub(super) inputs: Vec<Bound<'py, PyAny>>,
    /// The tensors that it writes to, if they are arguments.
    pub(super) outputs: Vec<Bound<'py, PyAny>>,
}

/// An input.
pub(super) struct CallInput {
    pub(super) name: Arc<str>,
    /// `None` if it is not kept, or cannot be read.
    pub(super) tensor: Option<Tensor>,
    /// Its storage and torch's version counter.
    pub(super) memory: Option<(usize, Option<u64>)>,
    /// Its placement in a distributed tensor.
    pub(super) placement: Option<Arc<Placement>>,
}

/// The origin of an operator.
#[derive(Clone)]
pub(super) struct CallOrigin {
    pub(super) phase: String,
    pub(super) module: Arc<str>,
    pub(super) source: Arc<str>,
    /// Sequence number shared by a forward operator and its backward ones.
    pub(super) seq_nr: Option<u64>,
    /// The running autograd node.
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

    /// Why a result cannot be observed, if so. Results of a collective are recorded once they are
    /// ready.
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

    /// The operator's name and the tensors that it writes to, until it has ended.
    pub(super) fn written(&self, py: Python<'_>) -> Option<(Arc<str>, Vec<Py<PyAny>>)> {
        let begun = lock(&self.begun);
        let begun = begun.as_ref()?;
        let written = begun.written.iter().map(|tensor| tensor.clone_ref(py));
        Some((begun.op_name.clone(), written.collect()))
    }

    /// Renumbers the operator, until it has ended.
    pub(super) fn renumber(&self, task_id: u32) {
        if let Some(begun) = lock(&self.begun).as_mut() {
            begun.task_id = task_id;
        }
    }

    /// Takes the running operator; `None` from the second call on.
    pub(super) fn take(&self) -> Option<PendingOperator> {
        lock(&self.begun).take()
    }
}

#[pymethods]
impl EagerCall {
    /// Names of the values that it reads; empty once it has ended.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        let begun = lock(&self.begun);
        let inputs = begun.iter().flat_map(|begun| &begun.inputs);
        inputs.map(|input| input.name.to_string()).collect()
    }
}
