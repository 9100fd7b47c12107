//! `cargo xtask bench compare`: the cost of comparing tensors and dumps, next to numpy and the
//! vendor's script.

use anyhow::Result;

use super::{bench_of, build_binary, run_stage};
use crate::command::root;
use crate::{E2E_REQUIREMENTS, built, python};

/// Compares whole directories. The variable `MSACCUCMP` names the vendor's script, to measure it
/// too.
const DUMPS: &str = "tests/bench/compare_dumps.py";

pub(super) fn run() -> Result<()> {
    let mut bench = bench_of("opscope-tensor", "difference");
    match python::with_packages(E2E_REQUIREMENTS) {
        Ok(python) => {
            bench.env("NUMPY_PYTHON", python.get_program());
            for (name, value) in python.get_envs() {
                if let Some(value) = value {
                    bench.env(name, value);
                }
            }
        }
        // The benchmark reports that numpy is skipped.
        Err(error) => eprintln!("{error:#}"),
    }
    run_stage("compare", bench)?;
    build_binary()?;
    let mut script = python::with_packages(E2E_REQUIREMENTS)?;
    script
        .arg(root().join(DUMPS))
        .arg(built("release", "opscope")?);
    // Each run has a separate folder, and removes it.
    let out = format!("target/bench-compare/{}", std::process::id());
    script.arg(root().join(out));
    run_stage("compare dumps", script)
}
