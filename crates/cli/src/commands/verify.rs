//! `opscope verify`, and `--verify` of commands that read dumps.

use std::io::Write;
use std::path::{Path, PathBuf};

use opscope_analysis::default_jobs;
use opscope_analysis::verify::{VerifyReport, verify};
use serde_json::{Value, json};

use crate::console::{self, line, report};
use crate::exit::{CommandFailure, CommandResult, FOUND, PARTIAL, UNREADABLE, refuse_model};
use crate::progress;
use crate::{format, passed_over};

/// Maximum number of changed tensors to list.
const N_TOLD_MAX: usize = 20;

/// Check that the elements of a dump have not changed since they were written
///
/// Reads all elements and compares their digests with the stored ones, so a bit flipped on disk or
/// in transit is reported with its tensor. The native form stores a digest in each row; MindSpore's
/// does if its statistics include MD5. Exit codes: 0 if all digests match, 1 if one does not, 3 if
/// nothing could be read, and 4 if something could not be read or no tensor has a digest.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope verify dump
  opscope verify dump_a dump_b --json")]
pub(crate) struct VerifyArguments {
    /// Dumps, each a directory or a file
    #[arg(value_name = "DUMP", required = true)]
    dumps: Vec<PathBuf>,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// The option `--verify` of commands that read dumps.
#[derive(clap::Args)]
pub(crate) struct VerifyOption {
    /// First check the elements against their digests, as `opscope verify` does; ends with 4 if one
    /// does not match
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(arguments: &VerifyArguments) -> CommandResult {
    let n_threads = arguments.jobs.unwrap_or_else(default_jobs).max(1);
    let mut results = Vec::new();
    let mut codes = Vec::new();
    for dump in &arguments.dumps {
        refuse_model(dump)?;
        let report = progress::with_spinner("verifying", || verify(dump, n_threads))?;
        report_problems(&report);
        if arguments.json {
            results.push(to_json(dump, &report));
        } else {
            print(dump, &report)?;
        }
        codes.push(code_of(&report));
    }
    if arguments.json {
        console::print_json(&json!({ "dumps": results }))?;
    }
    // A changed tensor is the most important finding.
    let first = codes.iter().find(|code| **code == FOUND);
    match first.or(codes.iter().max()) {
        None | Some(0) => Ok(()),
        Some(code) => Err(CommandFailure::silent(*code)),
    }
}

impl VerifyOption {
    /// Checks the dumps that a command is about to read if requested, then does its `work`.
    pub(crate) fn before(
        &self,
        dumps: &[&Path],
        work: impl FnOnce() -> CommandResult,
    ) -> CommandResult {
        let mut is_damaged = false;
        if self.verify {
            for dump in dumps {
                let report = progress::with_spinner("verifying", || verify(dump, default_jobs()))?;
                report_problems(&report);
                if report.n_verified == 0 && report.changed.is_empty() {
                    report!(
                        "opscope: `--verify`: no tensor of `{}` has a digest of its elements",
                        dump.display()
                    );
                }
                is_damaged |= code_of(&report) != 0;
            }
        }
        // The command's own exit code says more than that a file is damaged.
        match work() {
            Ok(()) if is_damaged => Err(CommandFailure::silent(PARTIAL)),
            done => done,
        }
    }
}

/// The exit code for one dump.
fn code_of(report: &VerifyReport) -> u8 {
    let has_errors = !report.errors.is_empty();
    match (report.changed.is_empty(), report.n_verified) {
        (false, _) => FOUND,
        (true, 0) if has_errors => UNREADABLE,
        (true, 0) => PARTIAL,
        (true, _) if has_errors => PARTIAL,
        (true, _) => 0,
    }
}

fn report_problems(report: &VerifyReport) {
    for error in &report.errors {
        report!("opscope: {error}");
    }
    for tensor in report.changed.iter().take(N_TOLD_MAX) {
        report!(
            "opscope: `{}`: the elements of {} have changed since they were written: expected {}, found {}",
            tensor.path.display(),
            tensor.tensor,
            tensor.expected,
            tensor.found
        );
    }
    let n_more = report.changed.len().saturating_sub(N_TOLD_MAX);
    if n_more > 0 {
        report!("opscope: and {n_more} more tensors; `verify --json` lists them");
    }
}

fn print(dump: &Path, report: &VerifyReport) -> CommandResult {
    let n = report.n_verified + report.changed.len() as u64;
    let changed = match report.changed.len() {
        0 if n == 0 => "no tensor has a digest of its elements".to_owned(),
        0 => format!(
            "{} as written",
            format::count_as(n, ["tensor is", "tensors are"])
        ),
        n_changed => format!("{n_changed} of {} changed", format::count(n, "tensor")),
    };
    let without = match report.n_without_digest {
        0 => String::new(),
        n => format!("; {n} without elements or digest"),
    };
    let bytes = format::bytes(report.n_bytes);
    let mut out = console::out();
    line!(
        out,
        "{}: {changed}, {bytes} verified{without}",
        dump.display()
    )?;
    passed_over::print(&mut out, &report.passed_over)?;
    Ok(())
}

fn to_json(dump: &Path, report: &VerifyReport) -> Value {
    let changed = report.changed.iter().map(|tensor| {
        json!({
            "path": tensor.path,
            "tensor": tensor.tensor,
            "expected": tensor.expected,
            "found": tensor.found,
        })
    });
    json!({
        "path": dump,
        "verified": report.n_verified,
        "bytes": report.n_bytes,
        "without_digest": report.n_without_digest,
        "changed": changed.collect::<Vec<_>>(),
        "errors": report.errors,
        "passed_over": passed_over::to_json(&report.passed_over),
    })
}
