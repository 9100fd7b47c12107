//! The module `opscope._native`: pyACL's functions over the AscendCL process of `opscope-acl`.
//!
//! Every function only translates types; `opscope-acl` implements the call. Each releases the
//! interpreter's lock while it works: another thread may hold the process, and a dump callback may
//! need the interpreter. The Python files of this package arrange the functions as programs expect
//! them: `opscope.acl`, `opscope.acl.rt`, `.mdl`, `.media`, `.op` and `.util`. The functions in
//! `config` validate files for `opscope.torchair`.
//!
//! In addition, `command_line` and `reading` are the binary's commands and the reading of dumps,
//! and `capture` receives the operators of PyTorch's graphs from `opscope.torch`.

#![expect(
    clippy::needless_pass_by_value,
    reason = "PyO3 hands arguments over by value"
)]

mod argument;
mod base;
mod call;
mod callback;
mod capture;
mod command_line;
mod config;
mod dims;
mod duckdb;
mod engine;
mod mdl;
mod media;
mod op;
mod os_error;
mod reading;
mod rt;
mod table;
mod tensor_desc;
mod util;

// For its exported C functions: C programs link the extension module, which a wheel has anyway.
use ascendcl as _;
use pyo3::prelude::*;

/// Adds Python functions to a module.
macro_rules! functions {
    ($module:expr, $($function:ident),+ $(,)?) => {
        $($module.add_function(pyo3::wrap_pyfunction!($function, $module)?)?;)+
    };
}
pub(crate) use functions;

/// A function that adds functions to a part of the module.
pub(crate) type Fill = fn(&Bound<'_, PyModule>) -> PyResult<()>;

const PARTS: &[(&str, &[Fill])] = &[
    ("base", &[base::fill, tensor_desc::fill]),
    ("rt", rt::FILLS),
    ("mdl", mdl::FILLS),
    ("media", &[media::fill, media::more::fill]),
    ("op", op::FILLS),
    ("util", &[util::fill]),
    ("config", &[config::fill]),
    ("capture", &[capture::fill]),
    ("command_line", &[command_line::fill]),
    ("reading", &[reading::fill]),
];

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // The panic hook of this module's own Rust runtime, which is not shared.
    opscope_store::guard::silence_caught_panics();
    opscope_engine::choice::look_in_package(engine::package);
    opscope_cli::look_for_duckdb(duckdb::command);
    // Nothing is connected before a URL is opened.
    opscope_cli::remote::enable();
    let imported = py.import("sys")?.getattr("modules")?;
    for (name, fills) in PARTS {
        let part = PyModule::new(py, name)?;
        for fill in *fills {
            fill(&part)?;
        }
        module.add(*name, &part)?;
        // Imports find a part only here, because it has no file.
        imported.set_item(format!("opscope._native.{name}"), &part)?;
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
