//! Judging configuration files.

use std::panic::{AssertUnwindSafe, catch_unwind};

use opscope_config::dialect::acl::{self, AclConfig};
use opscope_config::{Environment, Issue, Severity, check_nesting};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::{functions, os_error};

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module, check_acl_json);
    Ok(())
}

/// Errors and warnings about the text of an acl.json, each a line with its place, and which kind of
/// dump it asks for (`None` for an error, and where nothing is dumped).
///
/// Directories are looked up in the surroundings of this process; `$HOME` at the beginning of a path is
/// the user's.
#[pyfunction]
fn check_acl_json(py: Python<'_>, text: &str) -> PyResult<Findings> {
    let env = Environment::of_process()
        .map_err(|error| os_error::of_chain(&error, "cannot tell the working directory", None))?;
    py.detach(|| catch_unwind(AssertUnwindSafe(|| findings(text, &env))))
        .map_err(|_| PyRuntimeError::new_err("the check of the configuration failed"))
}

/// Errors, warnings, kind.
type Findings = (Vec<String>, Vec<String>, Option<&'static str>);

fn findings(text: &str, env: &Environment) -> Findings {
    let loaded = match check_nesting(text) {
        Ok(()) => acl::load(text, env),
        Err(issue) => Err(vec![*issue]),
    };
    let (issues, kind) = match loaded {
        Ok(AclConfig { dump, issues, .. }) => (issues, dump.map(|dump| dump.mode.name())),
        Err(issues) => (issues, None),
    };
    let lines = |severity: Severity| -> Vec<String> {
        let of_it = issues.iter().filter(|issue| issue.severity == severity);
        of_it.map(Issue::to_string).collect()
    };
    (lines(Severity::Error), lines(Severity::Warning), kind)
}
