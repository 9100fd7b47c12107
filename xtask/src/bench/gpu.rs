//! `cargo xtask bench gpu`: the cost of a PyTorch dump on a GPU.

use std::env;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::root;
use crate::package;

/// Names a Python that has PyTorch with CUDA, torchvision and transformers, and msprobe to measure
/// it as well.
const PYTHON: &str = "TORCH_PYTHON";
const SCRIPT: &str = "tests/bench/gpu_cost.py";
/// The script's exit status without a GPU.
const NO_GPU: i32 = 4;

/// Runs the benchmark; ends the process with status 4 without a GPU.
pub(super) fn run() -> Result<()> {
    let Some(python) = env::var_os(PYTHON) else {
        eprintln!(
            "== benchmark: gpu: not run, because `{PYTHON}` names no Python that has PyTorch with \
             CUDA. With one:\n   \
             python3 -m venv VENV && VENV/bin/pip install torch torchvision transformers\n   \
             {PYTHON}=VENV/bin/python cargo xtask bench gpu"
        );
        std::process::exit(NO_GPU);
    };
    // The check comes before the build, which takes minutes of a possibly rented GPU.
    let probe = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 4)";
    let mut has_gpu = Command::new(&python);
    let found = has_gpu.args(["-c", probe]).status();
    let found = found.with_context(|| format!("cannot start {}", python.display()))?;
    match found.code() {
        Some(0) => {}
        Some(NO_GPU) => {
            eprintln!("== benchmark: gpu: not run, because PyTorch sees no GPU");
            std::process::exit(NO_GPU);
        }
        _ => bail!("{} cannot import torch ({found})", python.display()),
    }
    let source = package::place_module("release")?;
    let out = root().join("target/bench-gpu");
    let mut script = Command::new(python);
    package::put_first_on_path(&mut script, source)?;
    script.arg(root().join(SCRIPT));
    // Each run has a separate folder.
    script.arg(out.join(std::process::id().to_string()));
    super::run_stage("gpu", script)
}
