//! Limits of a dump, and its behaviour when writing fails.

use std::io::{self, Write};

use anyhow::anyhow;
use clap::ValueEnum;
use opscope_capture::{Counters, FailurePolicy, SessionOptions, SessionSummary, WhenBehind};
use serde_json::{Map, Value};

use crate::arguments;
use crate::console::line;
use crate::exit::{CommandFailure, CommandResult, INTERRUPTED, PARTIAL};
use crate::format;

/// Options about limits and failures.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Limits and failures")]
pub(crate) struct PolicyArguments {
    /// When writing fails: stop the dump but not the model, skip only what failed, or stop the
    /// model as well. The exit code is 4 in each case
    #[arg(long, value_enum, value_name = "WHAT", default_value = "stop-capture")]
    on_error: OnError,
    /// When the queue is full because the model outpaces the writers: make the model wait, or drop
    /// tensors
    #[arg(long, value_enum, value_name = "WHAT", default_value = "wait")]
    when_behind: BehindPolicy,
    /// Dump at most this many bytes of tensors, such as 500M or 2GiB; the first operator that would
    /// exceed the limit ends the dump
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    max_bytes: Option<u64>,
    /// Dump at most this many tensors, counting each input and output of an operator
    // The old name `--max-records` keeps existing scripts working.
    #[arg(long, alias = "max-records", value_name = "N")]
    max_tensors: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnError {
    StopCapture,
    Drop,
    StopRun,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BehindPolicy {
    Wait,
    Drop,
}

impl PolicyArguments {
    /// The session options that these set.
    pub(crate) fn session_options(&self) -> SessionOptions {
        SessionOptions {
            on_failure: match self.on_error {
                OnError::StopCapture => FailurePolicy::StopCapture,
                OnError::Drop => FailurePolicy::Drop,
                OnError::StopRun => FailurePolicy::StopRun,
            },
            when_behind: match self.when_behind {
                BehindPolicy::Wait => WhenBehind::Wait,
                BehindPolicy::Drop => WhenBehind::Drop,
            },
            n_bytes_max: self.max_bytes,
            n_tensors_max: self.max_tensors,
            ..SessionOptions::default()
        }
    }
}

/// A model stopped by a failed dump behaved as requested, so the failure is the error to report.
pub(super) fn without_own_stop(
    result: CommandResult,
    summary: &SessionSummary,
    is_signalled: bool,
) -> CommandResult {
    match result {
        Err(failure)
            if failure.code == INTERRUPTED && summary.is_ended_by_failure && !is_signalled =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Reports what is missing from a dump, except for limits that the user requested.
pub(super) fn check(summary: SessionSummary) -> CommandResult {
    let c = summary.counters;
    // A failure comes first, as the cause of later drops.
    if let Some(error) = summary.first_error {
        let mut context = match c.n_failed {
            0 => "a file other than a tensor could not be written".to_owned(),
            n => format!(
                "{} could not be written; the first",
                format::count(n, "tensor")
            ),
        };
        if summary.is_ended_by_failure {
            let n = format::count(c.dropped.n_stopped, "more tensor");
            context = format!("the dump ended early, without {n}: {context}");
        }
        return Err(CommandFailure::new(
            PARTIAL,
            anyhow!(error).context(context),
        ));
    }
    // Without a failure, operators are skipped only because the writers are behind.
    if c.dropped.n_behind > 0 || c.n_operators_skipped > 0 {
        let n = format::count(c.dropped.n_behind, "tensor");
        let skipped = match c.n_operators_skipped {
            0 => String::new(),
            n => format!(" and {} not examined", format::count(n, "operator")),
        };
        let message = format!("{n} dropped{skipped}: the writers were behind");
        return Err(CommandFailure::message(PARTIAL, message));
    }
    // `limit` was requested, and the other reasons are reported above.
    let others = [
        ("not_shown", c.dropped.n_not_shown),
        ("operator_failed", c.dropped.n_operator_failed),
        ("ended", c.dropped.n_ended),
    ];
    match others.into_iter().find(|(_, n)| *n > 0) {
        Some((reason, n)) => {
            let n = format::count(n, "tensor");
            let reason = in_words(reason);
            let message = format!("{n} could not be dumped: {reason}");
            Err(CommandFailure::message(PARTIAL, message))
        }
        None => Ok(()),
    }
}

/// Prints the losses among selected tensors.
pub(super) fn print_losses(out: &mut impl Write, c: &Counters) -> io::Result<()> {
    for (reason, n) in c.dropped.by_reason() {
        if n > 0 {
            line!(
                out,
                "dropped           {}: {}",
                format::count(n, "tensor"),
                in_words(reason)
            )?;
        }
    }
    if c.n_operators_skipped > 0 {
        let n = format::count(c.n_operators_skipped, "operator");
        line!(out, "not examined      {n}")?;
    }
    Ok(())
}

fn in_words(reason: &str) -> &str {
    match reason {
        "not_shown" => "the engine did not expose their bytes",
        "operator_failed" => "the operator failed",
        "limit" => "beyond the limit",
        "behind" => "the writers were behind",
        "stopped" => "writing had failed before",
        "ended" => "the dump had ended",
        other => other,
    }
}

/// Dropped tensors by reason.
pub(super) fn reasons_json(c: &Counters) -> Value {
    let reasons = c.dropped.by_reason();
    let reasons = reasons.map(|(reason, n)| (reason.to_owned(), n.into()));
    Value::Object(Map::from_iter(reasons))
}
