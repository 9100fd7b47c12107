//! `cargo xtask bench`: makes the models, then runs the benchmarks of the crates.

use anyhow::Result;

use crate::command::{self, cargo, root};
use crate::python;

/// Models that are there already.
const STORED: &[&str] = &[
    "examples/digits/digits_cnn.onnx",
    "tests/models/light_squeezenet.onnx",
];
/// Models that a script makes.
const GENERATED: &[&str] = &["resnet18.onnx", "transformer.onnx"];

pub(crate) fn run(filters: &[String]) -> Result<()> {
    let models = root().join("target/bench-models");
    let mut generate = python::with_packages("tests/e2e/requirements.txt")?;
    generate.arg("tests/models/generate.py").arg(&models);
    run_stage("models", generate)?;
    let mut capture = cargo(&[
        "bench",
        "--package",
        "opscope",
        "--bench",
        "capture",
        "--locked",
        "--",
    ]);
    capture.args(STORED.iter().map(|model| root().join(model)));
    capture.args(GENERATED.iter().map(|model| models.join(model)));
    let stages = [("capture", capture)];
    for (name, command) in stages {
        if filters.is_empty() || filters.iter().any(|filter| filter == name) {
            run_stage(name, command)?;
        }
    }
    Ok(())
}

fn run_stage(name: &str, command: std::process::Command) -> Result<()> {
    command::run(&format!("benchmark: {name}"), command)
}
