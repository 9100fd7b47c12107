//! Validating configuration files.

use std::panic::{AssertUnwindSafe, catch_unwind};

use opscope_config::dialect::acl::{self, AclConfig, DumpMode};
use opscope_config::{ConfigEnvironment, Severity, check_nesting};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::{functions, os_error};

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module, check_acl_json);
    Ok(())
}

/// Errors and warnings (with notes) about an acl.json, each as a line with its position, and the
/// requested kind of dump (`None` for an error, and if nothing is dumped).
///
/// Directories are checked in this process's environment; `$HOME` at the beginning of a path is
/// expanded.
#[pyfunction]
fn check_acl_json(py: Python<'_>, text: &str) -> PyResult<Findings> {
    let env = ConfigEnvironment::of_process()
        .map_err(|error| os_error::of_chain(&error, "cannot tell the working directory", None))?;
    py.detach(|| catch_unwind(AssertUnwindSafe(|| findings(text, &env))))
        .map_err(|_| PyRuntimeError::new_err("the check of the configuration failed"))
}

/// Errors, warnings, kind.
type Findings = (Vec<String>, Vec<String>, Option<&'static str>);

fn findings(text: &str, env: &ConfigEnvironment) -> Findings {
    let loaded = match check_nesting(text) {
        Ok(()) => acl::load(text, env),
        Err(issue) => Err(vec![*issue]),
    };
    let (issues, mode) = match loaded {
        Ok(AclConfig { dump, issues, .. }) => (issues, dump.map(|dump| dump.mode)),
        Err(issues) => (issues, None),
    };
    // A graph has no operators outside a model.
    let kind = mode.filter(|mode| *mode != DumpMode::SingleOperators);
    let is_idle = mode.is_some() && kind.is_none();
    let (mut errors, mut oddities) = (Vec::new(), Vec::new());
    for issue in &issues {
        match issue.severity {
            Severity::Error => errors.push(issue.to_string()),
            // The notes are about other dumps.
            Severity::Note if is_idle => {}
            Severity::Warning | Severity::Note => oddities.push(issue.to_string()),
        }
    }
    if is_idle {
        oddities.push("1:1: warning: nothing is dumped: no graph is selected".to_owned());
    }
    (errors, oddities, kind.map(DumpMode::name))
}
