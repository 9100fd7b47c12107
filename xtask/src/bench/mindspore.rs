//! `cargo xtask bench mindspore`: the cost of MindSpore's dump and of Opscope's.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{build_binary, run_stage};
use crate::command::root;
use crate::{E2E_REQUIREMENTS, built, python};

/// Names a Python that has MindSpore.
const PYTHON: &str = "MINDSPORE_PYTHON";
/// Names a binary to measure instead of the one that would be built.
const BINARY: &str = "OPSCOPE";
/// Runs both programs and checks their dumps.
const SCRIPT: &str = "tests/bench/mindspore/measure.py";

pub(super) fn run() -> Result<()> {
    let Some(vendor_python) = env::var_os(PYTHON) else {
        eprintln!(
            "== benchmark: mindspore: skipped, because `{PYTHON}` names no Python that has MindSpore. With one:\n   \
             python3.11 -m venv VENV && VENV/bin/pip install mindspore==2.10.0\n   \
             {PYTHON}=VENV/bin/python cargo xtask bench mindspore"
        );
        return Ok(());
    };
    let mut script = python::with_packages(E2E_REQUIREMENTS)?;
    script.env("PYTHONDONTWRITEBYTECODE", "1");
    script.arg(root().join(SCRIPT)).arg(binary()?);
    // Runs have separate directories, where a relative path would not be found. Links are not
    // resolved: Python finds its packages next to the link.
    let vendor_python = PathBuf::from(vendor_python);
    if vendor_python.components().count() > 1 {
        script.arg(std::path::absolute(vendor_python)?);
    } else {
        script.arg(vendor_python);
    }
    let out = format!("target/bench-mindspore/{}", std::process::id());
    script.arg(root().join(out));
    run_stage("mindspore", script)
}

/// The binary to measure.
fn binary() -> Result<PathBuf> {
    if let Some(path) = env::var_os(BINARY) {
        return fs::canonicalize(&path)
            .with_context(|| format!("cannot find `{}`", path.display()));
    }
    build_binary()?;
    built("release", "opscope")
}
