//! `cargo xtask conformance [--engine NAME] [--cases PATTERN]`: ONNX's own node cases through the
//! engines.
//!
//! Python generates and judges them (`tests/conformance`). Each case runs the built binary twice:
//! with every operator dumped at each of three steps, and with the inputs in other forms.

use anyhow::Result;

use crate::command::{root, run};
use crate::pytest::{self, AtOnce};
use crate::{E2E_REQUIREMENTS, build_binary, built, python};

/// Generated cases are cached here.
const CASES: &str = "target/conformance";

/// Runs all cases and writes the tables into `tests/conformance/README.md`; with options, runs only
/// the chosen cases and writes nothing.
pub(crate) fn run_all(options: &[String]) -> Result<()> {
    let write: &[&str] = if options.is_empty() {
        &["--write"]
    } else {
        &[]
    };
    let more: Vec<&str> = options
        .iter()
        .map(String::as_str)
        .chain(write.iter().copied())
        .collect();
    run_suite("ONNX's node cases", &more)
}

/// Runs the stored sample and compares its results with the stored ones.
pub(crate) fn run_sample() -> Result<()> {
    run_suite("a sample of ONNX's node cases", &["--sample"])
}

fn run_suite(stage: &str, options: &[&str]) -> Result<()> {
    build_binary()?;
    let tests = pytest::in_folder(E2E_REQUIREMENTS, "tests/conformance", AtOnce::One)?;
    run("the judge of the node cases", tests)?;
    let mut suite = python::with_packages(E2E_REQUIREMENTS)?;
    suite.args(["-B", "tests/conformance/main.py", "--binary"]);
    suite.arg(built("debug", "opscope")?);
    suite.arg("--folder").arg(root().join(CASES));
    suite.args(options);
    run(stage, suite)
}
