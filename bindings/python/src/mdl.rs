//! `opscope.acl.mdl`: models.

mod aipp;
mod config;
mod dataset;
mod describe;
mod dump;
mod exec_config;
mod execute;
mod load;

use pyo3::prelude::*;

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    load::fill(module)?;
    config::fill(module)?;
    describe::fill(module)?;
    dataset::fill(module)?;
    execute::fill(module)?;
    exec_config::fill(module)?;
    dump::fill(module)?;
    aipp::fill(module)
}
