//! `cargo xtask verdicts [OPTIONS]`: cases with a known right answer through the built binary.
//!
//! `tests/verdicts` makes the cases and judges what the binary says of them. Its `expected.json`
//! has the outcome of every case, so that a change shows which of them got better or worse.

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
