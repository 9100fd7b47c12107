//! The state of eager mode in a session, which outlives a step.

use std::sync::{Arc, Mutex};

use opscope_store::record::ModelId;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::chooser::TensorChooser;
use super::kind::KindTable;
use super::links::ForwardLinks;
use super::lock::lock;
use super::names::NameCounter;
use super::values::MemoryValues;
use crate::capture::parallel::PlacementNotes;
use crate::capture::shared::TorchSessionState;

/// State that outlives a step.
///
/// No lock is held while Python runs or while the interpreter is released: another thread would
/// wait for the lock while holding the interpreter.
pub(super) struct EagerState {
    pub(super) shared: Arc<TorchSessionState>,
    pub(super) model: Arc<ModelId>,
    pub(super) chooser: TensorChooser,
    pub(super) kinds: KindTable,
    pub(super) placements: PlacementNotes,
    /// `torch.Tensor`.
    pub(super) tensor: Py<PyType>,
    pub(super) values: Mutex<MemoryValues>,
    pub(super) links: Mutex<ForwardLinks>,
    /// Names for all steps, if these share a directory.
    pub(super) names: Option<Arc<Mutex<NameCounter>>>,
}

impl Drop for EagerState {
    fn drop(&mut self) {
        if self.shared.is_past() {
            return;
        }
        // During shutdown the interpreter does not need its memory back.
        let _ = Python::try_attach(|py| lock(&self.values).free(py));
    }
}
