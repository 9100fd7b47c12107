//! `cargo xtask bench compare`: what comparing tensors and dumps costs, beside numpy and the
//! vendor's script.

use anyhow::Result;

use super::{bench_of, build_binary, run_stage};
use crate::command::root;
use crate::{E2E_REQUIREMENTS, built, python};

/// Compares whole directories. The variable `MSACCUCMP` names the vendor's script, if it is to be
/// measured too.
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
        // The benchmark says that numpy is left out.
        Err(error) => eprintln!("{error:#}"),
    }
    run_stage("compare", bench)?;
    build_binary()?;
    let mut script = python::with_packages(E2E_REQUIREMENTS)?;
    script
        .arg(root().join(DUMPS))
        .arg(built("release", "opscope")?);
    // Each run has a folder of its own, and removes it.
    let out = format!("target/bench-compare/{}", std::process::id());
    script.arg(root().join(out));
    run_stage("compare dumps", script)
}
