//! `cargo xtask bench cluster`: the speed-up of a Ray cluster of four nodes over one.

use std::fs;

use anyhow::{Context, Result};

use super::run_stage;
use crate::command::root;
use crate::{package, python};

/// Generates runs of several ranks and compares them on one node, and on four.
const SCRIPT: &str = "tests/bench/cluster.py";

pub(super) fn run() -> Result<()> {
    let source = package::place_module("release")?;
    let out = root().join(format!("target/bench-cluster/{}", std::process::id()));
    let mut script = python::with_packages(package::RAY_REQUIREMENTS)?;
    package::put_first_on_path(&mut script, source)?;
    script.arg(root().join(SCRIPT)).arg(&out);
    let result = run_stage("cluster", script);
    // Also after a failure: the files are sparse, but gigabytes in size.
    fs::remove_dir_all(&out).with_context(|| format!("cannot remove `{}`", out.display()))?;
    result
}
