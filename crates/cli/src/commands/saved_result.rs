//! Saved comparison results.

use std::path::Path;

use opscope_analysis::compare::report::json;
use opscope_analysis::compare::result::Comparison;

use crate::exit::{CommandFailure, CommandResult, UNREADABLE};

/// Reads a result of `--json` or `--jsonl`.
pub(crate) fn read(saved: &Path) -> CommandResult<Comparison> {
    json::read(saved).map_err(|error| {
        let error = anyhow::Error::new(error);
        CommandFailure::new(UNREADABLE, error.context(format!("`{}`", saved.display())))
    })
}

/// The program, as results name it.
pub(crate) fn program() -> String {
    format!("opscope {}", env!("CARGO_PKG_VERSION"))
}
