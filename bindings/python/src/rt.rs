//! `opscope.acl.rt`: the runtime.

mod device;
mod event;
mod exception;
mod memory;
mod report;

use pyo3::prelude::*;

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    device::fill(module)?;
    memory::fill(module)?;
    event::fill(module)?;
    report::fill(module)?;
    exception::fill(module)
}
