//! A comparison that several processes share.

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
use crate::exit::{CommandFailure, PARTIAL, USAGE};
use crate::format;

/// How work is shared with other processes and machines.
#[derive(clap::Args)]
#[command(next_help_heading = "Sharing")]
pub(crate) struct SharingArguments {
    /// Keep what the elements tell in files of this directory, one for each rank and step, and take
    /// those that are there
    #[arg(long, value_name = "DIR")]
    pub(super) parts: Option<PathBuf>,
    /// Make the parts that fall to process I of N, counted from 0, and no result
    #[arg(long, value_name = "I/N", requires = "parts", conflicts_with_all = ["unit", "merge"])]
    pub(super) shard: Option<Shard>,
    /// Make the part of this unit, as `--list-units` calls it, and no result
    #[arg(
        long,
        value_name = "NAME",
        requires = "parts",
        conflicts_with = "merge"
    )]
    pub(super) unit: Option<String>,
    /// List the units as JSON, one to a line, with their sizes and parts, and compare nothing
    #[arg(long, requires = "parts", conflicts_with_all = ["shard", "unit", "merge"])]
    pub(super) list_units: bool,
    /// Make the result of parts that are all there; without it, those that are not are made
    #[arg(long, requires = "parts")]
    pub(super) merge: bool,
    #[command(flatten)]
    pub(super) pace: PaceArguments,
}

/// Where the work is done, and how fast.
#[derive(clap::Args)]
#[command(next_help_heading = "Sharing")]
pub(crate) struct PaceArguments {
    /// Do the work as tasks of a Ray cluster: `ray` for one on this machine, or the one that
    /// `RAY_ADDRESS` names, `ray://HOST:PORT` for another
    #[arg(long, value_name = "ray[://ADDRESS]")]
    pub(crate) on: Option<String>,
    /// Read no more than so many MB of elements a second in each process
    #[arg(long, value_name = "MB/S")]
    read_limit: Option<f64>,
}

/// Bytes in a megabyte.
const MB: f64 = 1e6;

impl PaceArguments {
    /// Sets the pace of this process.
    ///
    /// # Errors
    /// Usage, if it is none.
    pub(crate) fn keep(&self) -> Result<(), CommandFailure> {
        let Some(limit) = self.read_limit else {
            return Ok(());
        };
        if !(limit > 0.0 && limit.is_finite()) {
            let message = "`--read-limit` is a number of megabytes above 0";
            return Err(CommandFailure::message(USAGE, message));
        }
        // Of the whole process, whose threads share it.
        limit_reading(Some(limit * MB));
        Ok(())
    }
}

/// The outcome of a command that shares its work.
pub(super) enum SharedOutcome {
    /// Lines to print, and no result.
    Lines(Vec<Value>),
    /// The result.
    Whole(Box<Comparison>),
}

impl SharingArguments {
    /// Does what falls to this process, if the work is shared at all.
    pub(super) fn run(
        &self,
        request: &ComparisonRequest,
    ) -> Result<Option<SharedOutcome>, CommandFailure> {
        self.pace.keep()?;
        let Some(dir) = &self.parts else {
            return Ok(None);
        };
        let creator = Creator::new(PermissionModes::default());
        // What killed processes left unfinished.
        temporary::clean(dir);
        let outcome = if self.list_units {
            SharedOutcome::Lines(self.list(request, dir)?)
        } else if let Some(name) = &self.unit {
            let units = ComparisonUnits::list(request).map_err(failure)?;
            // A task of a cluster does one, and knows of no others.
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
    fn list(&self, request: &ComparisonRequest, dir: &Path) -> Result<Vec<Value>, CommandFailure> {
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
    ) -> Result<Comparison, CommandFailure> {
        let mut measure = |measured: &MeasuredUnit| report_damage(measured);
        // A merge that is asked for must not turn into hours of reading unnoticed.
        let missing = if self.merge {
            MissingParts::Refuse
        } else {
            MissingParts::Measure(&mut measure)
        };
        // The only place that needs the tables of all ranks at once.
        let merged = merge(request, dir, creator, missing).map_err(refused)?;
        // Standard output is that of one process.
        report!(
            "opscope: {} taken together; {} of elements read again",
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
) -> Result<Value, CommandFailure> {
    let units = ComparisonUnits::list(request).map_err(failure)?;
    let sizes: Vec<u64> = units.plans().iter().map(|plan| plan.n_bytes).collect();
    // Every process comes to the same division, so that none has to be asked.
    let own = shard.share(&sizes);
    // One unit after the other: the threads share the tensors of each, and memory is that of one.
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

/// Says that a part was there and no good.
fn report_damage(measured: &MeasuredUnit) {
    if let PartState::Damaged(why) = &measured.found {
        let part = &measured.plan.part;
        report!("opscope: the part `{part}` is damaged ({why}) and was made again");
    }
}

fn refused(error: PartsError) -> CommandFailure {
    match error {
        PartsError::Compare(error) => failure(error),
        PartsError::NoUnit(_) => CommandFailure::new(USAGE, error),
        PartsError::Store(error) => CommandFailure::from(error),
        PartsError::Missing { .. } => CommandFailure::new(PARTIAL, error)
            .with_hint("without `--merge` they are made by this process"),
    }
}
