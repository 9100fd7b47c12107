//! `opscope.acl.op`: single operators.

mod attribute;
mod execute;
mod model_dir;

use pyo3::prelude::*;

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    attribute::fill(module)?;
    execute::fill(module)?;
    model_dir::fill(module)
}
