//! Sharing a comparison between several processes.

use std::path::{Path, PathBuf};

use opscope_analysis::Shard;
use opscope_analysis::compare::parts::merge::{MissingParts, merge};
use opscope_analysis::compare::parts::units::{
    ComparisonUnits, MeasuredUnit, PartState, PartsError,
};
use opscope_analysis::compare::result::Comparison;
use opscope_analysis::compare::run::ComparisonRequest;
use opscope_analysis::elements::limit_reading;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::temporary;
use serde_json::{Value, json};

use crate::commands::compare::failure;
use crate::console::report;
use crate::exit::{CommandFailure, CommandResult, PARTIAL, UNREADABLE, USAGE};
use crate::format;

/// How to share the work between processes and machines.
#[derive(clap::Args)]
#[command(next_help_heading = "Sharing")]
pub(crate) struct SharingArguments {
    /// Keep the measurements of each rank and step in files of this directory, and reuse existing
    /// files
    #[arg(long, value_name = "DIR")]
    pub(super) parts: Option<PathBuf>,
    /// Measure only the parts of process I of N, counted from 0, without a result
    #[arg(long, value_name = "I/N", requires = "parts", conflicts_with_all = ["unit", "merge"])]
    pub(super) shard: Option<Shard>,
    /// Measure the part of one unit, named as in `--list-units`, without a result
    #[arg(
        long,
        value_name = "NAME",
        requires = "parts",
        conflicts_with = "merge"
    )]
    pub(super) unit: Option<String>,
    /// List the units as JSON, one per line, with their sizes and parts, without comparing anything
    #[arg(long, requires = "parts", conflicts_with_all = ["shard", "unit", "merge"])]
    pub(super) list_units: bool,
    /// Build the result from existing parts only; without this option, missing parts are measured
    #[arg(long, requires = "parts")]
    pub(super) merge: bool,
    #[command(flatten)]
    pub(super) pace: PaceArguments,
}

/// Where to run, and how fast to read.
#[derive(clap::Args)]
#[command(next_help_heading = "Sharing")]
pub(crate) struct PaceArguments {
    /// Run as tasks of a Ray cluster: `ray` for one on this machine or at `RAY_ADDRESS`,
    /// `ray://HOST:PORT` for another
    #[arg(long, value_name = "ray[://ADDRESS]")]
    pub(crate) on: Option<String>,
    /// Read at most this many MB of elements per second in each process
    #[arg(long, value_name = "MB/S")]
    read_limit: Option<f64>,
}

/// Bytes in a megabyte.
const MB: f64 = 1e6;

impl PaceArguments {
    /// Sets this process's read limit.
    ///
    /// # Errors
    ///
    /// A usage error if the limit is invalid.
    pub(crate) fn keep(&self) -> CommandResult {
        let Some(limit) = self.read_limit else {
            return Ok(());
        };
        if !(limit > 0.0 && limit.is_finite()) {
            let message = "`--read-limit` must be a number of megabytes above 0";
            return Err(CommandFailure::message(USAGE, message));
        }
        // The limit applies to the whole process; its threads share it.
        limit_reading(Some(limit * MB));
        Ok(())
    }
}

/// Outcome of a command that shares its work.
pub(super) enum SharedOutcome {
    /// Lines to print instead of a result.
    Lines(Vec<Value>),
    /// The result.
    Whole(Box<Comparison>),
}

impl SharingArguments {
    /// Does this process's share if the work is shared at all.
    pub(super) fn run(&self, request: &ComparisonRequest) -> CommandResult<Option<SharedOutcome>> {
        self.pace.keep()?;
        let Some(dir) = &self.parts else {
            return Ok(None);
        };
        let creator = Creator::new(PermissionModes::default());
        // Removes unfinished files of killed processes.
        temporary::clean(dir);
        let outcome = if self.list_units {
            SharedOutcome::Lines(self.list(request, dir)?)
        } else if let Some(name) = &self.unit {
            let units = ComparisonUnits::list(request).map_err(failure)?;
            // A task of a cluster measures one unit and knows no others.
            let unit = units.named(name).map_err(refused)?;
            let measured = units.measure(unit, dir, &creator).map_err(refused)?;
            report_damage(&measured);
            SharedOutcome::Lines(vec![line_of_unit(&measured)])
        } else if let Some(shard) = self.shard {
            SharedOutcome::Lines(vec![measure_shard(request, shard, dir, &creator)?])
        } else {
            SharedOutcome::Whole(Box::new(self.merged(request, dir, &creator)?))
        };
        Ok(Some(outcome))
    }

    /// The units with their state.
    fn list(&self, request: &ComparisonRequest, dir: &Path) -> CommandResult<Vec<Value>> {
        let units = ComparisonUnits::list(request).map_err(failure)?;
        let plans = units.plans().into_iter();
        let lines = plans.map(|plan| {
            let (state, damage) = match plan.state(dir) {
                PartState::Done => ("done", None),
                PartState::Missing => ("missing", None),
                PartState::Damaged(why) => ("damaged", Some(why)),
            };
            json!({
                "unit": plan.name,
                "bytes": plan.n_bytes,
                "part": plan.part,
                "state": state,
                "damage": damage,
            })
        });
        Ok(lines.collect())
    }

    fn merged(
        &self,
        request: &ComparisonRequest,
        dir: &Path,
        creator: &Creator,
    ) -> CommandResult<Comparison> {
        let mut measure = |measured: &MeasuredUnit| report_damage(measured);
        // A requested merge must not silently turn into hours of reading.
        let missing = if self.merge {
            MissingParts::Refuse
        } else {
            MissingParts::Measure(&mut measure)
        };
        // The only place that needs the tables of all ranks at once.
        let merged = merge(request, dir, creator, missing).map_err(refused)?;
        // Standard output would interleave with other processes'.
        report!(
            "opscope: {} merged; {} of elements re-read",
            format::count(merged.n_parts as u64, "part"),
            format::bytes(merged.n_bytes_read),
        );
        Ok(merged.comparison)
    }
}

fn measure_shard(
    request: &ComparisonRequest,
    shard: Shard,
    dir: &Path,
    creator: &Creator,
) -> CommandResult<Value> {
    let units = ComparisonUnits::list(request).map_err(failure)?;
    let sizes: Vec<u64> = units.plans().iter().map(|plan| plan.n_bytes).collect();
    // Every process computes the same division without communicating.
    let own = shard.share(&sizes);
    // One unit at a time: threads share its tensors, and memory is bounded by one unit.
    let (mut n_made, mut n_bytes) = (0, 0);
    for &at in &own {
        let measured = units
            .measure(&units.units()[at], dir, creator)
            .map_err(refused)?;
        report_damage(&measured);
        n_made += u64::from(measured.found != PartState::Done);
        n_bytes += measured.n_bytes_read;
    }
    Ok(json!({
        "units": own.len(),
        "of": sizes.len(),
        "made": n_made,
        "bytes_read": n_bytes,
    }))
}

fn line_of_unit(measured: &MeasuredUnit) -> Value {
    json!({
        "unit": measured.plan.name,
        "part": measured.plan.part,
        "made": measured.found != PartState::Done,
        "bytes": measured.plan.n_bytes,
        "bytes_read": measured.n_bytes_read,
    })
}

/// Reports that an existing part was unusable.
fn report_damage(measured: &MeasuredUnit) {
    if let PartState::Damaged(why) = &measured.found {
        let part = &measured.plan.part;
        report!("opscope: the part `{part}` is damaged ({why}) and was measured again");
    }
}

fn refused(error: PartsError) -> CommandFailure {
    match error {
        PartsError::Compare(error) => failure(error),
        PartsError::NoUnit(_) => CommandFailure::new(USAGE, error),
        PartsError::Store(error) => CommandFailure::from(error),
        PartsError::TooLarge { .. } => CommandFailure::new(UNREADABLE, error),
        PartsError::Missing { .. } => CommandFailure::new(PARTIAL, error)
            .with_hint("without `--merge` this process measures them"),
    }
}
