//! `cargo xtask bench index`: an index of many files, statistics of large tensors, and an index of
//! two runs of many ranks with queries.

use std::env;
use std::fs;

use anyhow::{Context, Result};

use super::{bench_of, run_stage};
use crate::command::{cargo, root};
use crate::{E2E_REQUIREMENTS, built, python};

/// Generates files and indexes them.
const FILES_SCRIPT: &str = "tests/bench/index_files.py";
/// Indexes the dumps of many ranks and queries the index.
const RANKS_SCRIPT: &str = "tests/bench/index_scale.py";
/// Overrides the default ranks, steps and operators of the runs, separated by blanks.
const SHAPE: &str = "INDEX_BENCH_SHAPE";
/// 60 million rows, which take 20 GB of disk space.
const DEFAULT_SHAPE: &str = "256 4 6000";

pub(super) fn run() -> Result<()> {
    let build = [
        "build",
        "--release",
        "--workspace",
        "--bin",
        "opscope",
        "--locked",
    ];
    run_stage("binary", cargo(&build))?;
    let out = root().join(format!("target/bench-index/{}", std::process::id()));
    let mut script = python::with_packages(E2E_REQUIREMENTS)?;
    script.arg(root().join(FILES_SCRIPT));
    script.arg(built("release", "opscope")?).arg(&out);
    run_stage("files", script)?;
    let shape = env::var(SHAPE).unwrap_or_else(|_| DEFAULT_SHAPE.to_owned());
    let mut generate = bench_of("opscope-store", "many_ranks");
    generate.arg(&out).args(shape.split_whitespace());
    run_stage("dumps", generate)?;
    let mut script = python::with_packages(E2E_REQUIREMENTS)?;
    script.arg(root().join(RANKS_SCRIPT));
    script.arg(built("release", "opscope")?).arg(&out);
    let result = run_stage("ranks", script);
    // Also after a failure: it is gigabytes in size.
    fs::remove_dir_all(&out).with_context(|| format!("cannot remove `{}`", out.display()))?;
    result
}
