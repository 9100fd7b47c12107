//! Kinds of operators: facts known before a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use super::lock::lock;
use crate::capture::reason::UnseenReason;

/// One of torch's operators.
pub(super) struct OperatorKind {
    /// `aten.add.Tensor`.
    pub(super) target: String,
    /// `add`.
    pub(super) base: String,
    /// `Add`.
    pub(super) alias: String,
    pub(super) written: Vec<WrittenArgument>,
    /// Why its results cannot be observed, if so.
    pub(super) reason: Option<UnseenReason>,
    /// Whether it may write to any argument without declaring it.
    pub(super) may_write_all: bool,
    /// Whether it continues writing after it has returned.
    pub(super) is_late: bool,
    /// Indices of uninitialised results.
    pub(super) blank: Vec<usize>,
    /// Whether it is not part of a model, such as a profiler mark.
    pub(super) is_ignored: bool,
}

/// An argument that an operator writes to.
pub(super) struct WrittenArgument {
    pub(super) position: usize,
    pub(super) name: String,
    /// The position of an argument that enables the write.
    pub(super) only_if: Option<usize>,
}

/// Python's description of a kind.
#[derive(FromPyObject)]
struct KindDescription {
    target: String,
    base: String,
    alias: String,
    written: Vec<(usize, String, Option<usize>)>,
    reason: Option<String>,
    may_write_all: bool,
    is_late: bool,
    blank: Vec<usize>,
    is_ignored: bool,
}

/// A kind with its operator object.
type Known = (Py<PyAny>, Arc<OperatorKind>);

/// Kinds by operator object, which is kept alive so that its address stays unique.
pub(super) struct KindTable {
    describe: Py<PyAny>,
    known: Mutex<HashMap<usize, Known>>,
}

impl KindTable {
    pub(super) fn new(describe: Py<PyAny>) -> KindTable {
        KindTable {
            describe,
            known: Mutex::default(),
        }
    }

    /// Returns the kind of the operator `func`, described once by Python.
    pub(super) fn find_or_describe(&self, func: &Bound<'_, PyAny>) -> PyResult<Arc<OperatorKind>> {
        let address = func.as_ptr().addr();
        if let Some((_, kind)) = lock(&self.known).get(&address) {
            return Ok(kind.clone());
        }
        let described: KindDescription = self.describe.bind(func.py()).call1((func,))?.extract()?;
        let written = described.written.into_iter();
        let kind = Arc::new(OperatorKind {
            target: described.target,
            base: described.base,
            alias: described.alias,
            written: written
                .map(|(position, name, only_if)| WrittenArgument {
                    position,
                    name,
                    only_if,
                })
                .collect(),
            reason: described.reason.map(UnseenReason::Known),
            may_write_all: described.may_write_all,
            is_late: described.is_late,
            blank: described.blank,
            is_ignored: described.is_ignored,
        });
        let entry = (func.clone().unbind(), kind.clone());
        lock(&self.known).insert(address, entry);
        Ok(kind)
    }
}
