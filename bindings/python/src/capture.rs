//! `opscope._native.capture`: a capture session for programs that run their models themselves.
//!
//! A [`session::Session`] takes descriptions of graphs; a [`graph::Graph`] begins steps; a [`run::Run`] is
//! one execution, which is shown the values that operators produce. Which values are shown, and when each
//! of them is needed for the last time, is worked out here once for each graph; Python writes the calls
//! into the graph's code. What runs without a graph goes through [`eager`].

mod description;
mod eager;
mod element_type;
mod graph;
mod memory;
mod reason;
mod release;
mod report;
mod request;
mod run;
mod run_record;
mod session;
mod shared;

use pyo3::prelude::*;

use self::request::check_acl_json;

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<session::Session>()?;
    module.add_class::<graph::Graph>()?;
    module.add_class::<run::Run>()?;
    eager::fill(module)?;
    crate::functions!(module, check_acl_json);
    Ok(())
}
