//! `cargo xtask bench [capture] [cluster] [compare] [convert] [diff] [engines] [gpu] [index] [mindspore] [scale] [stats] [torch] [view] [write]`:
//! the benchmarks.

mod cluster;
mod compare;
mod diff;
mod gpu;
mod index;
mod mindspore;
mod scale;
mod torch;

use std::process::Command;

use anyhow::Result;

use crate::command::{self, cargo, root};
use crate::{E2E_REQUIREMENTS, python};

/// Models that are there already.
const STORED: &[&str] = &[
    "examples/digits/digits_cnn.onnx",
    "tests/models/light_squeezenet.onnx",
];
/// Models that a script makes.
const GENERATED: &[&str] = &["resnet50.onnx", "transformer_medium.onnx", "wide.onnx"];

/// Models of real architectures and sizes, without weights of anybody.
const FULL_SIZE: [&str; 4] = ["resnet50", "mobilenet_v3", "vit", "bert"];

pub(crate) fn run(filters: &[String]) -> Result<()> {
    let is_wanted = |name: &str| filters.is_empty() || filters.iter().any(|f| f == name);
    if is_wanted("capture") {
        run_stage("capture", capture()?)?;
    }
    if is_wanted("cluster") {
        cluster::run()?;
    }
    if is_wanted("compare") {
        compare::run()?;
    }
    if is_wanted("convert") {
        run_stage("convert", bench_of("opscope-analysis", "convert"))?;
    }
    if is_wanted("diff") {
        diff::run()?;
    }
    if is_wanted("engines") {
        run_stage("engines", engines()?)?;
    }
    // Only where it is asked for: without a GPU it ends with a status of its own.
    if filters.iter().any(|filter| filter == "gpu") {
        gpu::run()?;
    }
    if is_wanted("index") {
        index::run()?;
    }
    if is_wanted("mindspore") {
        mindspore::run()?;
    }
    if is_wanted("scale") {
        scale::run()?;
    }
    if is_wanted("stats") {
        run_stage("stats", bench_of("opscope-tensor", "stats"))?;
    }
    if is_wanted("torch") {
        torch::run()?;
    }
    if is_wanted("view") {
        run_stage("view", bench_of("opscope-view", "view"))?;
    }
    if is_wanted("write") {
        run_stage("write", bench_of("opscope-store", "write"))?;
    }
    Ok(())
}

fn bench_of(package: &str, bench: &str) -> Command {
    cargo(&[
        "bench",
        "--package",
        package,
        "--bench",
        bench,
        "--locked",
        "--",
    ])
}

/// The benchmark of dumping, with the models that it runs.
fn capture() -> Result<Command> {
    let models = root().join("target/bench-models");
    let mut generate = python::with_packages(E2E_REQUIREMENTS)?;
    generate.arg("tests/models/generate.py").arg(&models);
    generate.arg("--bench");
    run_stage("models", generate)?;
    let mut capture = bench_of("opscope", "capture");
    capture.args(STORED.iter().map(|model| root().join(model)));
    capture.args(GENERATED.iter().map(|model| models.join(model)));
    Ok(capture)
}

/// The benchmark of taps in ONNX Runtime, with models of real sizes.
fn engines() -> Result<Command> {
    let models = root().join("target/bench-models/full");
    let mut generate = python::with_packages(E2E_REQUIREMENTS)?;
    generate.arg("tests/models/generate.py").arg(&models);
    generate.args(["--size", "full", "--only"]).args(FULL_SIZE);
    run_stage("models", generate)?;
    let mut engines = bench_of("opscope", "engines");
    engines.arg(python::onnxruntime_library(E2E_REQUIREMENTS)?);
    engines.args(FULL_SIZE.map(|stem| models.join(stem).with_extension("onnx")));
    Ok(engines)
}

/// Builds the binary that is measured.
fn build_binary() -> Result<()> {
    let build = [
        "build",
        "--release",
        "--workspace",
        "--bin",
        "opscope",
        "--locked",
    ];
    run_stage("binary", cargo(&build))
}

fn run_stage(name: &str, command: Command) -> Result<()> {
    command::run(&format!("benchmark: {name}"), command)
}
