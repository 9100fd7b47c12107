//! Choosing the steps to dump and to keep.

use std::io::Write;
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use clap::ValueEnum;
use opscope_capture::{
    CaptureSession, RingOptions, RingReport, Steps, TriggerCause, TriggerEvent, TriggerKind,
};
use serde_json::{Value, json};
use signal_hook::SigId;
use signal_hook::consts::SIGUSR2;

use super::dump_report::DumpReport;
use super::findings::cause_names;
use crate::arguments::{NumberRanges, step_ranges};
use crate::console::{line, report};
use crate::exit::{CommandFailure, CommandResult, PARTIAL, USAGE};
use crate::format;
use crate::signals::UnusedSignal;

/// Maximum number of triggers in the table.
const N_TRIGGERS_SHOWN: usize = 10;

/// Maximum number of steps searched for a selected one.
const N_STEPS_CHECKED: u64 = 1 << 20;

/// Which steps to dump, and how long to keep them.
#[derive(clap::Args)]
#[command(next_help_heading = "Steps")]
pub(crate) struct RingArguments {
    /// Dump each Nth step: 0, N, 2N, …
    #[arg(long, value_name = "N")]
    every: Option<NonZeroU64>,
    /// Dump these steps, counted from 0, if the configuration selects them too
    #[arg(long, value_name = "0-3,10,20-", value_parser = step_ranges)]
    iterations: Option<NumberRanges>,
    /// Keep the last N dumped steps: a new step removes the oldest ones unless a trigger has fired
    #[arg(long, value_name = "N", conflicts_with = "stats")]
    keep_last: Option<NonZeroUsize>,
    /// Events that keep the retained steps, including the current one, for good
    #[arg(
        long,
        value_enum,
        value_name = "WHAT,…",
        value_delimiter = ',',
        requires = "keep_last",
        default_value = "overflow,nan,exception,signal"
    )]
    trigger: Vec<TriggerWord>,
    /// At the end, remove steps that no trigger has kept
    #[arg(long, requires = "keep_last")]
    keep_only_triggered: bool,
}

/// A trigger, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TriggerWord {
    /// An operator's arithmetic overflowed; detecting this takes time
    Overflow,
    /// A dumped tensor holds NaN or an infinity
    Nan,
    /// An operator failed, or the run ends by an error
    Exception,
    /// The process gets SIGUSR2
    Signal,
}

impl TriggerWord {
    fn kind(self) -> TriggerKind {
        match self {
            TriggerWord::Overflow => TriggerKind::Overflow,
            TriggerWord::Nan => TriggerKind::NonFinite,
            TriggerWord::Exception => TriggerKind::Failure,
            TriggerWord::Signal => TriggerKind::Signal,
        }
    }
}

impl RingArguments {
    /// Checks that there will be steps to remove.
    pub(super) fn prepare(&self, has_files: bool) -> CommandResult {
        if self.keep_last.is_none() {
            return Ok(());
        }
        if !has_files {
            let message = "`--keep-last` needs a dump";
            return Err(
                CommandFailure::message(USAGE, message).with_hint("pass `--out` or `--config`")
            );
        }
        Ok(())
    }

    /// The selected steps.
    pub(super) fn steps(&self) -> Steps {
        let nth = self.every.map_or_else(Steps::every, Steps::every_nth);
        match &self.iterations {
            None => nth,
            Some(NumberRanges(ranges)) => nth.intersection(Steps::in_ranges(ranges.clone())),
        }
    }

    /// Warns if `steps`, which include this selection, exclude the whole run.
    pub(super) fn warn_if_none(&self, steps: &Steps, n_steps: u64) {
        let is_choice = self.every.is_some() || self.iterations.is_some();
        let mut first_ones = 0..n_steps.min(N_STEPS_CHECKED);
        // Later steps may still be selected, unless every range is empty.
        let may_be_later =
            n_steps > N_STEPS_CHECKED && !steps.ranges().is_some_and(<[_]>::is_empty);
        if is_choice && !first_ones.any(|step| steps.contains(step)) && !may_be_later {
            let n = format::count(n_steps, "step");
            report!("opscope: warning: nothing is dumped: the run has {n}, none of them chosen");
        }
    }

    /// Returns the ring options of a session.
    pub(super) fn options(&self) -> Option<RingOptions> {
        Some(RingOptions {
            n_steps: self.keep_last?,
            triggers: self.trigger.iter().map(|word| word.kind()).collect(),
            keeps_only_triggered: self.keep_only_triggered,
        })
    }

    /// Lets SIGUSR2 keep the last steps of `session` until the result is dropped.
    pub(super) fn listen_for(&self, session: &CaptureSession) -> CommandResult<KeepSignal> {
        match session.ring_flag() {
            Some(flag) if self.trigger.contains(&TriggerWord::Signal) => self.listen(flag),
            // A signal without a ring is reported at the end as having kept nothing.
            _ => Ok(KeepSignal {
                id: None,
                _in_vain: Some(UnusedSignal::watch()),
            }),
        }
    }

    fn listen(&self, flag: Arc<AtomicBool>) -> CommandResult<KeepSignal> {
        let id = signal_hook::flag::register(SIGUSR2, flag).map_err(|error| {
            CommandFailure::new(PARTIAL, anyhow!(error).context("cannot listen for SIGUSR2"))
        })?;
        Ok(KeepSignal {
            id: Some(id),
            _in_vain: None,
        })
    }
}

/// Handles SIGUSR2 during the run: sets a flag, or reports at the end that the signal had no
/// effect.
pub(super) struct KeepSignal {
    id: Option<SigId>,
    _in_vain: Option<UnusedSignal>,
}

impl Drop for KeepSignal {
    /// From here on the signal is ignored.
    fn drop(&mut self) {
        self.id.map(signal_hook::low_level::unregister);
    }
}

/// The error of a step as text for a trigger.
pub(super) fn reason(error: &CommandFailure) -> String {
    error
        .error
        .as_ref()
        .map_or_else(String::new, |error| format!("{error:#}"))
}

/// Turns a failure to remove steps into the command's error.
pub(super) fn check(report: Option<RingReport>) -> CommandResult {
    match report.and_then(|report| report.first_error) {
        None => Ok(()),
        Some(error) => {
            let context = "a step that is too old could not be removed";
            Err(CommandFailure::new(
                PARTIAL,
                anyhow!(error).context(context),
            ))
        }
    }
}

impl DumpReport {
    /// Prints the lines of the closing table about kept and removed steps.
    pub(super) fn print_ring(&self, out: &mut impl Write) -> CommandResult {
        let Some(report) = &self.summary.ring else {
            return Ok(());
        };
        let ranges: Vec<String> = kept_steps(report).map(range_text).collect();
        let ranges = match &ranges[..] {
            [] => "none".to_owned(),
            ranges => ranges.join(", "),
        };
        line!(out, "steps kept        {ranges}")?;
        for triggered in report.triggers.iter().take(N_TRIGGERS_SHOWN) {
            line!(out, "trigger           {}", trigger_text(triggered))?;
        }
        // All triggers are counted, but a long run keeps details of the first ones only.
        let n_shown = report.triggers.len().min(N_TRIGGERS_SHOWN) as u64;
        match report.n_triggers.saturating_sub(n_shown) {
            0 if n_shown == 0 => writeln!(out, "trigger           none")?,
            0 => {}
            n_more => line!(out, "trigger           {n_more} more")?,
        }
        let c = &self.summary.counters;
        line!(
            out,
            "removed           {}: {} in {}",
            format::count(report.n_steps_removed, "step"),
            format::bytes(c.n_bytes_removed),
            format::count(c.n_files_removed, "file"),
        )?;
        if report.n_files_left > 0 {
            let n = format::count(report.n_files_left, "file");
            line!(
                out,
                "not removed       {n} changed or removed by another program"
            )?;
        }
        Ok(())
    }

    /// The ring's JSON member.
    pub(super) fn ring_json(&self) -> Option<(String, Value)> {
        let report = self.summary.ring.as_ref()?;
        let kept: Vec<[u64; 2]> = kept_steps(report).map(|r| [*r.start(), *r.end()]).collect();
        let triggers: Vec<Value> = report.triggers.iter().map(trigger_json).collect();
        let value = json!({
            "kept": kept,
            "triggers": triggers,
            "n_triggers": report.n_triggers,
            "steps_removed": report.n_steps_removed,
            "files_removed": self.summary.counters.n_files_removed,
            "bytes_removed": self.summary.counters.n_bytes_removed,
            "files_left": report.n_files_left,
        });
        Some(("ring".to_owned(), value))
    }
}

fn kept_steps(report: &RingReport) -> impl Iterator<Item = &RangeInclusive<u64>> {
    report.kept.iter().flat_map(|kept| &kept.steps)
}

fn range_text(range: &RangeInclusive<u64>) -> String {
    let (first, last) = (range.start(), range.end());
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

fn word(kind: TriggerKind) -> &'static str {
    match kind {
        TriggerKind::Overflow => "overflow",
        TriggerKind::NonFinite => "nan",
        TriggerKind::Failure => "exception",
        TriggerKind::Signal => "signal",
    }
}

/// Such as ``nan at step 4: Div `/div` output.0: 1 NaN, 0 +Inf, 0 -Inf``.
fn trigger_text(triggered: &TriggerEvent) -> String {
    let mut text = format!(
        "{} at step {}",
        word(triggered.cause.kind()),
        triggered.step
    );
    if let Some(operator) = &triggered.operator {
        text += &format!(": {} `{}`", operator.op_type, operator.op_name);
    }
    text + &match &triggered.cause {
        TriggerCause::Overflow(status) => format!(": {status:#x} = {}", cause_names(*status)),
        TriggerCause::NonFinite {
            side,
            index,
            counts,
        } => format!(
            " {}.{index}: {} NaN, {} +Inf, {} -Inf",
            side.name(),
            counts.n_nan,
            counts.n_pos_inf,
            counts.n_neg_inf
        ),
        TriggerCause::Failure(reason) => format!(": {reason}"),
        TriggerCause::Signal => String::new(),
    }
}

fn trigger_json(triggered: &TriggerEvent) -> Value {
    let operator = triggered.operator.as_ref();
    let mut value = json!({
        "trigger": word(triggered.cause.kind()),
        "step": triggered.step,
        "task_id": operator.map(|operator| operator.task_id),
        "op_type": operator.map(|operator| &operator.op_type),
        "op_name": operator.map(|operator| &operator.op_name),
    });
    let more = match &triggered.cause {
        TriggerCause::Overflow(status) => {
            json!({"status": status, "causes": cause_names(*status)})
        }
        TriggerCause::NonFinite {
            side,
            index,
            counts,
        } => json!({
            "slot": format!("{}.{index}", side.name()),
            "nan": counts.n_nan,
            "pos_inf": counts.n_pos_inf,
            "neg_inf": counts.n_neg_inf,
        }),
        TriggerCause::Failure(reason) => json!({"reason": reason}),
        TriggerCause::Signal => json!({}),
    };
    if let (Some(object), Value::Object(more)) = (value.as_object_mut(), more) {
        object.extend(more);
    }
    value
}
