//! `cargo xtask bench torch`: the cost of a dump of a compiled PyTorch model.

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::command::{root, run as run_stage};
use crate::package;

/// Names a Python that has PyTorch and torchvision, and msprobe to measure it as well.
const PYTHON: &str = "TORCH_PYTHON";
const SCRIPT: &str = "tests/bench/torch_cost.py";

pub(super) fn run() -> Result<()> {
    let Some(python) = env::var_os(PYTHON) else {
        eprintln!(
            "== benchmark: torch: skipped, because `{PYTHON}` names no Python that has PyTorch. With one:\n   \
             python3 -m venv VENV && VENV/bin/pip install torch torchvision\n   \
             {PYTHON}=VENV/bin/python cargo xtask bench torch"
        );
        return Ok(());
    };
    let source = package::place_module("release")?;
    let out = root().join("target/bench-torch");
    let mut script = Command::new(python);
    package::put_first_on_path(&mut script, source)?;
    script.env("OMP_NUM_THREADS", "1");
    script.arg(root().join(SCRIPT));
    // Each run has a separate folder, and removes it.
    script.arg(out.join(std::process::id().to_string()));
    run_stage("benchmark: torch", script)
}
