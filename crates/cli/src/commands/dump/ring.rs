//! Which steps of a run are dumped, and which of them stay.

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
use crate::exit::{CommandFailure, PARTIAL, USAGE};
use crate::format;
use crate::signals::UnusedSignal;

/// Most triggers that the table names.
const N_TRIGGERS_SHOWN: usize = 10;

/// Most steps of a run that are looked through for one that is chosen.
const N_STEPS_CHECKED: u64 = 1 << 20;

/// Which steps to dump, and for how long.
#[derive(clap::Args)]
#[command(next_help_heading = "Steps")]
pub(crate) struct RingArguments {
    /// Dump each Nth step: 0, N, 2N, …
    #[arg(long, value_name = "N")]
    every: Option<NonZeroU64>,
    /// Dump these steps, counted from 0; of a configuration's steps, those that are among these
    #[arg(long, value_name = "0-3,10,20-", value_parser = step_ranges)]
    iterations: Option<NumberRanges>,
    /// Keep the last N dumped steps: when another begins, older ones are removed, unless something
    /// has happened
    #[arg(long, value_name = "N", conflicts_with = "stats")]
    keep_last: Option<NonZeroUsize>,
    /// Events that keep the steps that are there for good, the current one among them
    #[arg(
        long,
        value_enum,
        value_name = "WHAT,…",
        value_delimiter = ',',
        requires = "keep_last",
        default_value = "overflow,nan,exception,signal"
    )]
    trigger: Vec<TriggerWord>,
    /// Remove at the end what no trigger has kept
    #[arg(long, requires = "keep_last")]
    keep_only_triggered: bool,
}

/// A trigger as users call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TriggerWord {
    /// An operator's arithmetic overflowed; looking for that takes time
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
    /// Looks whether there will be anything to remove.
    pub(super) fn prepare(&self, has_files: bool) -> Result<(), CommandFailure> {
        if self.keep_last.is_none() {
            return Ok(());
        }
        if !has_files {
            let message = "`--keep-last` needs a dump to keep steps of";
            return Err(
                CommandFailure::message(USAGE, message).with_hint("give `--out` or `--config`")
            );
        }
        Ok(())
    }

    /// The steps that are chosen here.
    pub(super) fn steps(&self) -> Steps {
        let nth = self.every.map_or_else(Steps::every, Steps::every_nth);
        match &self.iterations {
            None => nth,
            Some(NumberRanges(ranges)) => nth.intersection(Steps::in_ranges(ranges.clone())),
        }
    }

    /// Says so if `steps`, which a choice made here is part of, leaves nothing of a run.
    pub(super) fn warn_if_none(&self, steps: &Steps, n_steps: u64) {
        let is_choice = self.every.is_some() || self.iterations.is_some();
        let mut first_ones = 0..n_steps.min(N_STEPS_CHECKED);
        // Steps behind those looked through may still be chosen, unless no range has any step at
        // all.
        let may_be_later =
            n_steps > N_STEPS_CHECKED && !steps.ranges().is_some_and(<[_]>::is_empty);
        if is_choice && !first_ones.any(|step| steps.contains(step)) && !may_be_later {
            let n = format::count(n_steps, "step");
            report!("opscope: warning: nothing is dumped: the run has {n}, none of them chosen");
        }
    }

    /// Returns the options that a session is given.
    pub(super) fn options(&self) -> Option<RingOptions> {
        Some(RingOptions {
            n_steps: self.keep_last?,
            triggers: self.trigger.iter().map(|word| word.kind()).collect(),
            keeps_only_triggered: self.keep_only_triggered,
        })
    }

    /// Lets the signal keep the last steps of `session` until the result is dropped.
    pub(super) fn listen_for(
        &self,
        session: &CaptureSession,
    ) -> Result<KeepSignal, CommandFailure> {
        match session.ring_flag() {
            Some(flag) if self.trigger.contains(&TriggerWord::Signal) => self.listen(flag),
            // Whoever sends the signal all the same learns at the end that it kept nothing.
            _ => Ok(KeepSignal {
                id: None,
                _in_vain: Some(UnusedSignal::watch()),
            }),
        }
    }

    fn listen(&self, flag: Arc<AtomicBool>) -> Result<KeepSignal, CommandFailure> {
        let id = signal_hook::flag::register(SIGUSR2, flag).map_err(|error| {
            CommandFailure::new(PARTIAL, anyhow!(error).context("cannot listen for SIGUSR2"))
        })?;
        Ok(KeepSignal {
            id: Some(id),
            _in_vain: None,
        })
    }
}

/// A handler of the signal while the run lasts: it sets a flag, or brings a word about it at the
/// end.
pub(super) struct KeepSignal {
    id: Option<SigId>,
    _in_vain: Option<UnusedSignal>,
}

impl Drop for KeepSignal {
    /// The signal goes on being ignored.
    fn drop(&mut self) {
        self.id.map(signal_hook::low_level::unregister);
    }
}

/// Returns the text that the error of a step is told as.
pub(super) fn reason(error: &CommandFailure) -> String {
    error
        .error
        .as_ref()
        .map_or_else(String::new, |error| format!("{error:#}"))
}

/// An error of removing steps, as the command's end.
pub(super) fn check(report: Option<RingReport>) -> Result<(), CommandFailure> {
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
    /// The lines of the closing table about steps that were kept and removed.
    pub(super) fn print_ring(&self, out: &mut impl Write) -> Result<(), CommandFailure> {
        let Some(report) = &self.summary.ring else {
            return Ok(());
        };
        let ranges: Vec<String> = kept(report).map(range_text).collect();
        let ranges = match &ranges[..] {
            [] => "none".to_owned(),
            ranges => ranges.join(", "),
        };
        line!(out, "steps kept        {ranges}")?;
        for triggered in report.triggers.iter().take(N_TRIGGERS_SHOWN) {
            line!(out, "trigger           {}", trigger_text(triggered))?;
        }
        // All triggers are counted, but a long run keeps the details of the first ones only.
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
                "not removed       {n} that somebody has changed or removed"
            )?;
        }
        Ok(())
    }

    /// The same as a member of the JSON object.
    pub(super) fn ring_json(&self) -> Option<(String, Value)> {
        let report = self.summary.ring.as_ref()?;
        let kept: Vec<[u64; 2]> = kept(report).map(|r| [*r.start(), *r.end()]).collect();
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

fn kept(report: &RingReport) -> impl Iterator<Item = &RangeInclusive<u64>> {
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
