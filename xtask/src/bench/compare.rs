//! `cargo xtask bench compare`: what comparing tensors costs, beside numpy.

use anyhow::Result;

use super::{bench_of, run_stage};
use crate::{E2E_REQUIREMENTS, python};

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
    run_stage("compare", bench)
}
