//! `cargo xtask bench diff`: the cost of running two models and comparing them, next to running
//! them.

use anyhow::Result;

use super::{FULL_SIZE, build_binary, run_stage};
use crate::command::root;
use crate::{E2E_REQUIREMENTS, built, python};

/// Runs both sides of each model, with and without capture.
const MODELS: &str = "tests/bench/diff_models.py";

pub(super) fn run() -> Result<()> {
    let models = root().join("target/bench-models/full");
    let mut generate = python::with_packages(E2E_REQUIREMENTS)?;
    generate.arg("tests/models/generate.py").arg(&models);
    generate.args(["--size", "full", "--only"]).args(FULL_SIZE);
    run_stage("models", generate)?;
    build_binary()?;
    let mut script = python::with_packages(E2E_REQUIREMENTS)?;
    script
        .arg(root().join(MODELS))
        .arg(built("release", "opscope")?)
        .arg(python::onnxruntime_library(E2E_REQUIREMENTS)?)
        .arg(root().join("target/bench-diff"))
        .args(FULL_SIZE.map(|stem| models.join(stem).with_extension("onnx")));
    run_stage("diff", script)
}
