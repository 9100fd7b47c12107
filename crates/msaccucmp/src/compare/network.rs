//! Compares two directories of dumps.

use opscope_analysis::job;

use super::algorithms::Algorithms;
use super::detail::{self, TensorChoice};
use super::devices::{DeviceComparison, operators};
use super::dump_dir::has_arrays;
use super::fused::FusedComparison;
use super::inputs::{NetworkInputs, NetworkJob, RulePaths};
use super::outcome::{self, GroupOutcome};
use super::range::ModelRange;
use super::row::RowForm;
use super::rule::ModelRules;
use super::stop::CompareStop;
use super::{advisor, mapping, table};
use crate::arguments::integer;
use crate::failure::ErrorCode;
use crate::log;
use crate::output::OutputFolder;
use crate::paths::{self};

/// An empty table.
const NO_ROWS: [&[String]; 0] = [];

/// Runs a comparison; `None` on success.
pub(super) fn run(job: &NetworkJob<'_>) -> Result<Option<ErrorCode>, CompareStop> {
    let options = job.options;
    let paths = RulePaths::new(job.fusion_rule, &options.quant_rule, &options.close_rule);
    let op_name = options.op_name.as_deref().filter(|name| !name.is_empty());
    let detail = op_name
        .map(|name| TensorChoice::new(name, options))
        .transpose()?;
    let algorithms = Algorithms::choose(
        &options.algorithms,
        &options.custom_dir,
        &options.algorithm_options,
    )?;
    let mut choice = match (non_empty(&options.range), non_empty(&options.select)) {
        (Some(range), _) => Some(ModelRange::range(&range)?),
        (None, Some(select)) => Some(ModelRange::listed(&select)?),
        (None, None) => None,
    };
    paths.check()?;
    if let Some(detail) = &detail {
        detail.check()?;
    }
    let out_dir = paths::resolve(&options.out_dir);
    paths::create_output(&out_dir)?;
    let output = OutputFolder::new(out_dir.clone());
    let mut network = NetworkInputs::open(job, &paths)?;
    let finds_overflow = job.finds_overflow && !network.mine.begins_with_array();
    let Some(rule) = paths.load()? else {
        if choice.is_some() {
            return Err(CompareStop::index());
        }
        return match &detail {
            Some(detail) => {
                // The reference keeps a single table, and reads the golden one last.
                network.mine.sort_with(network.golden.mapping.clone());
                network.golden.sort_with(network.golden.mapping.clone());
                detail::of_devices(detail, &network, &out_dir).map(|()| None)
            }
            None => compare_devices(job, network, &algorithms, &output, finds_overflow),
        };
    };
    if let Some(choice) = &mut choice {
        let last = rule.sequence.last().ok_or_else(CompareStop::index)?;
        choice.check(rule.ops[*last].sequence)?;
    }
    let has_sequence = options.has_sequence_word;
    let fused = FusedComparison {
        network: &network,
        rule: &rule,
        form: RowForm {
            algorithms: &algorithms,
            mine_has_arrays: has_arrays(job.my_path),
            golden_has_arrays: has_arrays(&options.golden_path),
            finds_overflow,
            has_sequence,
        },
    };
    if let Some(detail) = &detail {
        return detail::of_rule(detail, &fused, &out_dir);
    }
    if options.is_mapping {
        mapping::write(&fused, &groups(&rule, choice.as_ref())?, &output)?;
        return Ok(None);
    }
    compare_fused(job, &fused, choice.as_ref(), &output)
}

/// The value of an option, unless it is empty.
fn non_empty(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}

/// Positions of the groups to compare.
fn groups(rule: &ModelRules, choice: Option<&ModelRange>) -> Result<Vec<usize>, CompareStop> {
    match choice {
        Some(choice) => choice.groups(rule),
        None => Ok((0..rule.groups.len()).collect()),
    }
}

fn compare_fused(
    job: &NetworkJob<'_>,
    fused: &FusedComparison<'_>,
    choice: Option<&ModelRange>,
    output: &OutputFolder,
) -> Result<Option<ErrorCode>, CompareStop> {
    let name = result_name(job);
    let header = fused.form.header();
    // Written at once, so that a failing command leaves the header, as in the reference.
    output.text(&name, &table::text(&header, NO_ROWS)?)?;
    let groups = groups(fused.rule, choice)?;
    let outcomes = job::map(&groups, job::default_jobs(), |&group| {
        fused.compare(&fused.rule.groups[group].1)
    });
    let mut outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    outcome::take_over_results(&mut outcomes)?;
    finish(
        job,
        output,
        &name,
        &header,
        &outcomes,
        &fused.rule.input_nodes,
    )
}

fn compare_devices(
    job: &NetworkJob<'_>,
    mut network: NetworkInputs,
    algorithms: &Algorithms,
    output: &OutputFolder,
    finds_overflow: bool,
) -> Result<Option<ErrorCode>, CompareStop> {
    network.mine.sort_with(network.mine.mapping.clone());
    network.golden.sort_with(network.golden.mapping.clone());
    let ops = operators(&network.mine, &network.golden)?;
    let name = result_name(job);
    let form = RowForm {
        algorithms,
        mine_has_arrays: has_arrays(job.my_path),
        golden_has_arrays: has_arrays(&job.options.golden_path),
        finds_overflow,
        has_sequence: job.options.has_sequence_word,
    };
    let header = form.header();
    output.text(&name, &table::text(&header, NO_ROWS)?)?;
    let devices = DeviceComparison {
        form: RowForm {
            // Between two devices the address columns are always present.
            mine_has_arrays: false,
            golden_has_arrays: false,
            ..form
        },
    };
    let outcomes = job::map(&ops, job::default_jobs(), |op| devices.compare(op));
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    finish(job, output, &name, &header, &outcomes, &[])
}

/// Writes the table, sorted by group, and the advice.
fn finish(
    job: &NetworkJob<'_>,
    output: &OutputFolder,
    name: &str,
    header: &[String],
    outcomes: &[GroupOutcome],
    input_nodes: &[String],
) -> Result<Option<ErrorCode>, CompareStop> {
    let rows = outcomes.iter().flat_map(|outcome| &outcome.rows);
    let mut rows: Vec<&Vec<String>> = rows.flat_map(|rows| &rows.rows).collect();
    // As in the reference, the rows before the refused one stay in the file.
    if let Some(bad) = rows.iter().position(|row| table::check(row).is_err()) {
        output.text(name, &table::text(header, &rows[..bad])?)?;
        table::check(rows[bad])?;
    }
    rows.sort_by_key(|row| row.first().and_then(|index| integer(index)));
    let path = output.text(name, &table::text(header, &rows)?)?;
    let (status, is_matched) = outcome::summary(outcomes);
    if !is_matched {
        let message = "The model does not match the dump data, please check the model and the \
                       dump data again.";
        log::error(message);
        return Ok(Some(ErrorCode::NoDumpFile));
    }
    log::info(&format!(
        "The comparison result have been written to {}.",
        log::quoted(&path)
    ));
    if job.is_advised {
        let advice = advisor::advise(header, &rows, input_nodes)?;
        output.text(advisor::FILE_NAME, &advice.text())?;
    }
    Ok(status)
}

fn result_name(job: &NetworkJob<'_>) -> String {
    format!("{}result_{}.csv", job.name_start, table::time())
}
