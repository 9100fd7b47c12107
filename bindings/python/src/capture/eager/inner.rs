//! The state of eager mode in a session, which outlives a step.

use std::sync::{Arc, Mutex};

use opscope_store::record::ModelId;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::chooser::Chooser;
use super::kind::Kinds;
use super::links::Links;
use super::lock::lock;
use super::names::Names;
use super::values::Values;
use crate::capture::shared::Shared;

/// State that outlives a step.
///
/// No lock is held while Python runs or while the interpreter is given up: another thread would wait for
/// the lock with the interpreter in its hands.
pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    pub(super) model: Arc<ModelId>,
    pub(super) chooser: Chooser,
    pub(super) kinds: Kinds,
    /// `torch.Tensor`.
    pub(super) tensor: Py<PyType>,
    pub(super) values: Mutex<Values>,
    pub(super) links: Mutex<Links>,
    /// Names that hold for all steps, where these share a directory.
    pub(super) names: Option<Arc<Mutex<Names>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.shared.is_past() {
            return;
        }
        // An interpreter that is ending needs no memory back.
        let _ = Python::try_attach(|py| lock(&self.values).free(py));
    }
}
