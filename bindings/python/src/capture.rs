//! `opscope._native.capture`: a capture session for programs that run their models themselves.
//!
//! A [`session::TorchSession`] takes descriptions of graphs; a [`graph::SessionGraph`] begins
//! steps; a [`run::RunningGraph`] is one execution, which receives the values that operators
//! produce. This crate computes once per graph which values are needed, and until when; Python
//! writes the calls into the graph's code. Code without a graph goes through [`eager`]. A separate
//! [`file_writer::FileWriter`] writes single files.

mod arrival;
mod background_worker;
mod bodies;
mod description;
mod device;
mod eager;
mod element_type;
mod executions;
mod file_writer;
mod fork;
mod graph;
mod memory;
mod mindspore;
mod names_asked;
mod parallel;
mod parts;
mod reason;
mod release;
mod report;
mod request;
mod run;
mod run_record;
mod session;
mod shared;
mod shown;
mod take;
mod taps;
mod watch;
mod watched;

use pyo3::prelude::*;

use self::fork::note_fork;
use self::mindspore::{check_mindspore_file, check_mindspore_json, read_configuration};
use self::request::{acl_json_purpose, check_acl_json};

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<session::TorchSession>()?;
    module.add_class::<graph::SessionGraph>()?;
    module.add_class::<run::RunningGraph>()?;
    module.add_class::<file_writer::FileWriter>()?;
    module.add_class::<watch::MemoryWatch>()?;
    eager::fill(module)?;
    crate::functions!(
        module,
        acl_json_purpose,
        check_acl_json,
        check_mindspore_json,
        check_mindspore_file,
        read_configuration,
        note_fork
    );
    Ok(())
}
