//! `cargo xtask bench scale`: very many steps, very many operators and very large tensors.

use anyhow::Result;

use super::{build_binary, run_stage};
use crate::command::root;
use crate::{E2E_REQUIREMENTS, built, python};

/// Generates the models, runs the commands and checks their output.
const SCRIPT: &str = "tests/bench/scale.py";

pub(super) fn run() -> Result<()> {
    build_binary()?;
    let mut script = python::with_packages(E2E_REQUIREMENTS)?;
    // Each run has a separate folder, and removes it.
    let out = format!("target/bench-scale/{}", std::process::id());
    script
        .arg(root().join(SCRIPT))
        .arg(built("release", "opscope")?)
        .arg(root().join(out))
        .arg(python::onnxruntime_library(E2E_REQUIREMENTS)?);
    run_stage("scale", script)
}
