//! Comparing two directories of dumps.

use std::path::{Path, PathBuf};

use super::super::arguments::integer;
use super::super::custom::{Custom, has_converters};
use super::super::failure::Code;
use super::super::log;
use super::super::options::CompareOptions;
use super::super::output::Output;
use super::super::paths::{self, Kind as PathKind};
use super::advisor;
use super::algorithms::Algorithms;
use super::detail::{self, Detail};
use super::devices::{Devices, operators};
use super::dump_dir::{DumpDir, Naming, has_arrays};
use super::file_name::Kind;
use super::fused::Fused;
use super::mapping;
use super::outcome::{self, Outcome};
use super::range::Choice;
use super::row::Form;
use super::rule::{Rule, merge_close, merge_quant};
use super::stop::Stop;
use super::table;
use crate::job;

/// A table before its rows are known.
const NO_ROWS: [&[String]; 0] = [];

/// One comparison, where batches differ from what was given.
pub(super) struct Job<'a> {
    pub(super) options: &'a CompareOptions,
    pub(super) my_path: &'a str,
    pub(super) fusion_rule: &'a str,
    /// What the name of the result begins with.
    pub(super) name_start: String,
    /// Whether advice was asked for and is not turned off by another option.
    pub(super) is_advised: bool,
    pub(super) finds_overflow: bool,
}

/// Both sides, and what is to be done with them.
pub(super) struct Network {
    pub(super) mine: DumpDir,
    pub(super) golden: DumpDir,
    pub(super) custom: Option<Custom>,
    pub(super) n_elements_max: Option<usize>,
}

/// Files with rules; missing ones are `None`.
struct RulePaths {
    fusion: Option<PathBuf>,
    quant: Option<PathBuf>,
    close: Option<PathBuf>,
}

/// Runs a comparison. `None` if all went well.
pub(super) fn run(job: &Job<'_>) -> Result<Option<Code>, Stop> {
    let options = job.options;
    let paths = RulePaths {
        fusion: rule_path(job.fusion_rule),
        quant: rule_path(&options.quant_rule),
        close: rule_path(&options.close_rule),
    };
    let op_name = options.op_name.as_deref().filter(|name| !name.is_empty());
    let detail = op_name.map(|name| Detail::new(name, options)).transpose()?;
    let algorithms = Algorithms::choose(
        &options.algorithms,
        &options.custom_dir,
        &options.algorithm_options,
    )?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let mut choice = match (given(&options.range), given(&options.select)) {
        (Some(range), _) => Some(Choice::range(&range)?),
        (None, Some(select)) => Some(Choice::listed(&select)?),
        (None, None) => None,
    };
    paths.check()?;
    if let Some(detail) = &detail {
        detail.check()?;
    }
    let out_dir = paths::resolve(&options.out_dir);
    paths::create_output(&out_dir)?;
    let output = Output::new(out_dir.clone());
    let mut network = Network::open(job, &paths)?;
    let finds_overflow = job.finds_overflow && !network.mine.begins_with_array();
    let Some(rule) = paths.load()? else {
        if choice.is_some() {
            return Err(Stop::index());
        }
        return match &detail {
            Some(detail) => {
                // The reference keeps one table, and read the golden one last.
                network.mine.sort_with(network.golden.mapping.clone());
                network.golden.sort_with(network.golden.mapping.clone());
                detail::of_devices(detail, &network, &out_dir).map(|()| None)
            }
            None => compare_devices(job, network, &algorithms, &output, finds_overflow),
        };
    };
    if let Some(choice) = &mut choice {
        let last = rule.sequence.last().ok_or_else(Stop::index)?;
        choice.check(rule.ops[*last].sequence)?;
    }
    let has_sequence = options.has_sequence_word;
    let fused = Fused {
        network: &network,
        rule: &rule,
        form: Form {
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

/// Positions of the groups to compare.
fn groups(rule: &Rule, choice: Option<&Choice>) -> Result<Vec<usize>, Stop> {
    match choice {
        Some(choice) => choice.groups(rule),
        None => Ok((0..rule.groups.len()).collect()),
    }
}

fn compare_fused(
    job: &Job<'_>,
    fused: &Fused<'_>,
    choice: Option<&Choice>,
    output: &Output,
) -> Result<Option<Code>, Stop> {
    let name = result_name(job);
    let header = fused.form.header();
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
    job: &Job<'_>,
    mut network: Network,
    algorithms: &Algorithms,
    output: &Output,
    finds_overflow: bool,
) -> Result<Option<Code>, Stop> {
    network.mine.sort_with(network.mine.mapping.clone());
    network.golden.sort_with(network.golden.mapping.clone());
    let ops = operators(&network.mine, &network.golden)?;
    let name = result_name(job);
    let form = Form {
        algorithms,
        mine_has_arrays: has_arrays(job.my_path),
        golden_has_arrays: has_arrays(&job.options.golden_path),
        finds_overflow,
        has_sequence: job.options.has_sequence_word,
    };
    let header = form.header();
    output.text(&name, &table::text(&header, NO_ROWS)?)?;
    let devices = Devices {
        form: Form {
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
    job: &Job<'_>,
    output: &Output,
    name: &str,
    header: &[String],
    outcomes: &[Outcome],
    input_nodes: &[String],
) -> Result<Option<Code>, Stop> {
    let rows = outcomes.iter().flat_map(|outcome| &outcome.rows);
    let mut rows: Vec<&Vec<String>> = rows.flat_map(|rows| &rows.rows).collect();
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
        return Ok(Some(Code::NoDumpFile));
    }
    log::info(&format!(
        "The comparison result have been written to \"{}\".",
        log::quoted(&path)
    ));
    if job.is_advised {
        let advice = advisor::advise(header, &rows, input_nodes)?;
        output.text(advisor::FILE_NAME, &advice.text())?;
    }
    Ok(status)
}

fn result_name(job: &Job<'_>) -> String {
    format!("{}result_{}.csv", job.name_start, table::time())
}

fn rule_path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| paths::resolve(text))
}

impl RulePaths {
    fn check(&self) -> Result<(), Stop> {
        let given = [&self.fusion, &self.quant, &self.close];
        for path in given.into_iter().flatten() {
            paths::check_input(path, PathKind::File)?;
        }
        Ok(())
    }

    /// The rules, one put on top of the other; `None` if two devices are compared directly.
    fn load(&self) -> Result<Option<Rule>, Stop> {
        let open = |path: &Path| Rule::open(path);
        let rule = match (&self.fusion, &self.quant, &self.close) {
            (Some(fusion), Some(quant), _) => merge_quant(open(fusion)?, &open(quant)?),
            (Some(fusion), None, Some(close)) => merge_close(open(fusion)?, &open(close)?)?,
            (Some(fusion), None, None) => open(fusion)?,
            (None, Some(quant), _) => open(quant)?,
            (None, None, _) => return Ok(None),
        };
        Ok(Some(rule))
    }
}

impl Network {
    fn open(job: &Job<'_>, rules: &RulePaths) -> Result<Network, Stop> {
        let options = job.options;
        let naming = Naming {
            keeps_slices: options.keeps_slices,
            has_rule: rules.fusion.is_some(),
        };
        let mine = DumpDir::open(&paths::resolve(job.my_path), naming)?;
        let golden = DumpDir::open(&paths::resolve(&options.golden_path), naming)?;
        check_kinds(&mine, &golden, rules)?;
        let custom = if has_converters(&options.custom_dir)? {
            Some(Custom::open(&options.custom_dir)?)
        } else {
            None
        };
        Ok(Network {
            mine,
            golden,
            custom,
            n_elements_max: usize::try_from(options.n_elements_max)
                .ok()
                .filter(|&n| n > 0),
        })
    }
}

impl DumpDir {
    /// Whether the first operator's first file is an array, which cannot have overflowed.
    fn begins_with_array(&self) -> bool {
        let first = self
            .operators
            .first()
            .and_then(|operator| operator.files.first());
        first.is_some_and(|path| path.to_string_lossy().ends_with(".npy"))
    }
}

/// Which kinds of dumps are compared, and with which rules.
fn check_kinds(mine: &DumpDir, golden: &DumpDir, rules: &RulePaths) -> Result<(), Stop> {
    let refuse = |code, what: &str| {
        let message = format!(
            "When the left side is {} and the right side is {}, {what}",
            describe(mine),
            describe(golden)
        );
        Err(Stop::coded(code, message))
    };
    let (has_f, has_q, has_cf) = (
        rules.fusion.is_some(),
        rules.quant.is_some(),
        rules.close.is_some(),
    );
    let cannot = "this scenario cannot be compared.";
    let (parameter, kind) = (Code::InvalidParameter, Code::DumpType);
    match (mine.kind, golden.kind) {
        (Kind::Offline, Kind::Offline) if mine.is_quantised != golden.is_quantised => {
            refuse(kind, cannot)
        }
        (Kind::Offline, Kind::Offline) => match (has_f, has_cf, has_q) {
            (true, false, _) => refuse(parameter, "the -cf parameter is required."),
            (false, true, _) => refuse(parameter, "the -f parameter is required."),
            (_, _, true) => refuse(parameter, "there is no need to enter the -q parameter."),
            _ => Ok(()),
        },
        (Kind::Offline, Kind::Standard) => match (has_f, has_cf, mine.is_quantised, has_q) {
            (false, ..) => refuse(parameter, "the -f parameter is required."),
            (_, true, ..) => refuse(parameter, "there is no need to enter the -cf parameter."),
            (_, _, true, false) => refuse(parameter, "the -q parameter is required."),
            (_, _, false, true) => refuse(parameter, "there is no need to enter the -q parameter."),
            _ => Ok(()),
        },
        (Kind::Offline, _) if !mine.is_quantised => refuse(kind, cannot),
        (Kind::Offline, _) if !has_f => refuse(parameter, "the -f parameter is required."),
        (Kind::Offline, _) if has_q || has_cf => refuse(
            parameter,
            "there is no need to enter the -q or -cf parameter.",
        ),
        (Kind::Offline, _) => Ok(()),
        (Kind::Quant, _) if has_cf => refuse(kind, "there is no need to enter the -cf parameter."),
        (Kind::Quant, Kind::Standard) if !has_q => refuse(kind, "the -q parameter is required."),
        (Kind::Quant, Kind::Standard) if has_f => {
            refuse(kind, "there is no need to enter the -f parameter.")
        }
        (Kind::Quant, Kind::Standard) => Ok(()),
        _ => refuse(kind, cannot),
    }
}

fn describe(dir: &DumpDir) -> &'static str {
    match (dir.kind, dir.is_quantised) {
        (Kind::Offline, true) => "a dump of the quantised model on the device",
        (Kind::Offline, false) => "a dump of the model on the device",
        (Kind::Quant, _) => "the quantised original model",
        (Kind::Standard | Kind::Numpy, _) => "the original model",
    }
}
