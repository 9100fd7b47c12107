//! `cargo xtask verdicts [OPTIONS]`: cases with a known right answer through the built binary.
//!
//! `tests/verdicts` generates the cases and judges the answers of the binary. Its `expected.json`
//! has the outcome of every case, so that changes for better or worse are visible.

use anyhow::Result;

use crate::command::{cargo, run};
use crate::{E2E_REQUIREMENTS, built, python};

/// Runs the sets that the options choose. `--update` stores the outcomes.
pub(crate) fn run_sets(options: &[String]) -> Result<()> {
    // Without extras: no case needs a server or SQL.
    run(
        "binary",
        cargo(&["build", "--package", "opscope", "--locked"]),
    )?;
    let mut sets = python::with_packages(E2E_REQUIREMENTS)?;
    sets.args(["-B", "tests/verdicts/main.py", "--binary"]);
    sets.arg(built("debug", "opscope")?);
    sets.arg("--engine-lib");
    sets.arg(python::onnxruntime_library(E2E_REQUIREMENTS)?);
    sets.args(options);
    run("verdicts", sets)
}
