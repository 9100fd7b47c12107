//! `opscope compare`.

mod colour;
mod experiments;
mod layout;
mod outcome;
mod parameters;
mod partners;
mod reports;
pub(super) mod sharing;
mod terminal;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_analysis::compare::experiments::Experimenter;
use opscope_analysis::compare::result::Comparison;
use opscope_analysis::compare::run::{self, CompareError, ComparisonRequest, VerdictOptions};
use opscope_analysis::compare::verdict::Thresholds;
use opscope_analysis::compare::{Selection, SkipPattern};
use opscope_analysis::default_jobs;
use opscope_tensor::difference;
use opscope_view::ViewedRuns;
use serde_json::Value;

use self::experiments::ExperimentArguments;
use self::outcome::FailOn;
pub(super) use self::reports::NotedModel;
use self::reports::ReportArguments;
use self::sharing::{SharedOutcome, SharingArguments};
use crate::arguments::{NumberRanges, rank_ranges, step_ranges};
use crate::commands::next_line;
use crate::commands::saved_result::{self, program};
use crate::commands::verify::VerifyOption;
use crate::commands::view::{self, ServerArguments};
use crate::console::{self, line};
use crate::exit::{CommandFailure, CommandResult, UNREADABLE, USAGE, refuse_model};
use crate::progress;

/// Compare two dumps operator by operator and find where they diverge
///
/// TARGET is the dump under test, GOLDEN the reference. Operators are matched, all their inputs and
/// outputs are compared, and the first operator that adds its own error is named. Dumps of any kind
/// that `show` reads can be compared with each other.
///
/// The models' outputs decide the result. Exit codes: 0 if they agree, 1 if one differs too much, 3
/// if one side cannot be read at all, and 4 if a file is damaged (whatever else was found) or too
/// little was compared.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope compare npu/20240102030405 cpu/20240102030405
  opscope compare fp16 fp32 --reference fp16_cpu --html report.html
  opscope compare npu cpu --filter '*/layer_3/*' --outputs-only --json - | jq .summary
  opscope compare npu cpu --model net.onnx --export-onnx noted.onnx
  opscope compare npu cpu --json result.json
  opscope compare --from result.json --thresholds strict.json")]
pub(crate) struct CompareArguments {
    /// The dump under test: a directory or a file
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    target: Option<PathBuf>,
    /// The reference dump
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    golden: Option<PathBuf>,
    /// Judge a result saved by `--json` or `--jsonl` again, without reading tensors
    #[arg(long, value_name = "RESULT", conflicts_with_all = MEASURING)]
    from: Option<PathBuf>,
    /// A dump that shows how much difference from GOLDEN is normal, such as one of the same dtype
    /// as TARGET
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    reference: Option<PathBuf>,
    /// Write the operator matches to a file for editing and passing to `--mapping`; dumps are
    /// compared only if a report is also requested
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    export_mapping: Option<PathBuf>,
    /// Show the result in the browser, as `opscope view` does, until Ctrl-C
    #[arg(long, conflicts_with = "from")]
    view: bool,
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    sharing: SharingArguments,
    #[command(flatten)]
    experiments: ExperimentArguments,
    #[command(flatten)]
    verify: VerifyOption,
    // Last, because their headings apply to every option below them.
    #[command(flatten)]
    options: ComparisonArguments,
}

/// Options that have no meaning for a result that has already been measured.
const MEASURING: [&str; 21] = [
    "mapping",
    "whole",
    "fusion",
    "golden_fusion",
    "no_guesses",
    "kl",
    "weights",
    "jobs",
    "steps",
    "step_offset",
    "ranks",
    "filter",
    "op_type",
    "outputs_only",
    "parts",
    "shard",
    "unit",
    "list_units",
    "merge",
    "on",
    "verify",
];

/// How dumps are compared and where the result goes.
#[derive(clap::Args)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct ComparisonArguments {
    /// Limits that override the defaults; `int8` selects those for models quantised to 8 bits
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
    /// Ignore differences of up to N, however large in relative terms [default: 0, or the value in
    /// the thresholds file]
    #[arg(long, value_name = "N", value_parser = tolerance)]
    atol: Option<f64>,
    /// Operators that belong together, in YAML or JSON; the rest are matched as usual
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
    /// The vendor's fusion rules, in JSON, for what the compiler fused in TARGET
    #[arg(long, value_name = "FILE")]
    fusion: Option<PathBuf>,
    /// The vendor's fusion rules for GOLDEN
    #[arg(long, value_name = "FILE")]
    golden_fusion: Option<PathBuf>,
    /// Assemble tensors from all ranks even if both sides have the same ranks
    #[arg(long)]
    whole: bool,
    /// Match operators by mapping, fusion rules and name only, never by order or similarity
    #[arg(long)]
    no_guesses: bool,
    /// Also compute the Kullback-Leibler divergence
    #[arg(long)]
    kl: bool,
    /// List the parameters and buffers of both sides with dtypes and values, and mark rounded ones
    #[arg(long)]
    weights: bool,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Number of operators and skips to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Outcomes that set the exit code to 1: failures, also warnings, or also uncompared items
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "fail")]
    fail_on: FailOn,
    /// Also fail for internal differences (1) and for uncompared items (4) when the outputs agree
    #[arg(long)]
    strict: bool,
    /// Maximum relative distance of a quantised model's outputs from those of a float model
    #[arg(long, value_name = "N", value_parser = tolerance)]
    limit: Option<f64>,
    /// Items that may remain uncompared: a regular expression for name, type, file or reason; may
    /// be repeated
    #[arg(long, value_name = "PATTERN")]
    allow_skip: Vec<String>,
    /// Print only what `-` requests
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    part: PartArguments,
    #[command(flatten)]
    reports: ReportArguments,
}

/// The part of both dumps to compare.
#[derive(clap::Args)]
#[command(next_help_heading = "Part")]
struct PartArguments {
    /// Compare these steps, and everything that belongs to no step
    #[arg(long, value_name = "0-3,10,20-", value_parser = step_ranges)]
    steps: Option<NumberRanges>,
    /// Compare step S + N of TARGET with step S of GOLDEN
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        conflicts_with = "steps"
    )]
    step_offset: Option<i64>,
    /// Compare these ranks, and everything that belongs to no rank
    #[arg(long, value_name = "0-3,7", value_parser = rank_ranges)]
    ranks: Option<NumberRanges>,
    /// Compare operators whose name matches, with `*` and `?`; may be repeated
    #[arg(long, value_name = "PATTERN")]
    filter: Vec<String>,
    /// Compare operators whose type matches, with `*` and `?`; may be repeated
    #[arg(long, value_name = "PATTERN")]
    op_type: Vec<String>,
    /// Skip inputs; errors inherited from upstream cannot be recognised then
    #[arg(long)]
    outputs_only: bool,
}

impl CompareArguments {
    /// The command that shows more of the result.
    fn next_command(&self) -> String {
        match (&self.from, &self.target, &self.golden) {
            (None, Some(target), Some(golden)) => next_line("view", &[target, golden]),
            (saved, ..) => next_line("view --from", &[saved.as_deref().unwrap_or(Path::new("-"))]),
        }
    }

    /// The model of `--export-onnx` and of node data: the target's, or else golden's.
    fn noted_model(&self) -> CommandResult<Option<NotedModel>> {
        let is_needed = self.options.has_model();
        if !is_needed && !self.options.reports.has_node_data() {
            return (self.experiments)
                .refuse_unused_model(self.from.is_some())
                .map(|()| None);
        }
        let dumps = match &self.from {
            Some(saved) => {
                let config = saved_result::read(saved)?.config;
                [config.target.into(), config.golden.into()]
            }
            None => [&self.target, &self.golden].map(|dump| dump.clone().unwrap_or_default()),
        };
        let noted = self.experiments.noted_model(&dumps);
        // Node data do without the name of the graph.
        if is_needed {
            noted
        } else {
            Ok(noted.unwrap_or_default())
        }
    }

    /// The cluster to run on.
    pub(crate) fn cluster(&self) -> Option<&str> {
        self.sharing.pace.on.as_deref()
    }

    /// Compares both dumps in this process and runs the requested experiments.
    fn compare(&self, request: &ComparisonRequest) -> CommandResult<Comparison> {
        let dumps = [&*request.target, &*request.golden];
        let is_quiet = !self.options.has_words();
        let planned =
            self.experiments
                .plan(dumps, request.n_threads, is_quiet, self.options.has_model())?;
        let experimenter = planned.as_ref().map(|planned| planned as &dyn Experimenter);
        let compared = progress::with_comparing_bar(request.progress.as_deref(), || {
            run::run(request, experimenter)
        });
        let mut comparison = compared.map_err(failure)?;
        if let Some(planned) = &planned {
            planned.write(&mut comparison)?;
        }
        Ok(comparison)
    }
}

/// The option that re-judging a result replaces.
const THRESHOLDS: &str = "thresholds";
const ATOL: &str = "atol";

pub(crate) fn run(arguments: &CompareArguments) -> CommandResult {
    let dumps = [&arguments.target, &arguments.golden, &arguments.reference];
    let dumps: Vec<&Path> = dumps.into_iter().flatten().map(PathBuf::as_path).collect();
    arguments.verify.before(&dumps, || compare(arguments))
}

fn compare(arguments: &CompareArguments) -> CommandResult {
    let options = &arguments.options;
    options.reports.check()?;
    let noted = arguments.noted_model()?;
    let judging = options.judging()?;
    let comparison = match (&arguments.from, &arguments.target, &arguments.golden) {
        // The saved pairs and numbers stay as they are: clap refuses options that would change them
        // with `--from`.
        (Some(saved), ..) => judged_anew(options, saved, &judging)?,
        (None, Some(target), Some(golden)) => {
            refuse_model(target)?;
            refuse_model(golden)?;
            let request = ComparisonRequest {
                reference: arguments.reference.clone(),
                ..options.request((target, golden), judging)?
            };
            if let Some(path) = &arguments.export_mapping {
                let mapping = run::mapping(&request).map_err(failure)?;
                partners::export(&mapping, path, options.reports.is_replacing())?;
                // The mapping is for editing. Comparing by matches that the user is about to
                // correct would be wasted work unless reports are requested.
                if !options.reports.is_any() && !arguments.view {
                    return Ok(());
                }
            }
            let shared = progress::with_spinner("comparing", || arguments.sharing.run(&request));
            match shared? {
                Some(SharedOutcome::Lines(lines)) => return print_lines(&lines),
                Some(SharedOutcome::Whole(comparison)) => *comparison,
                None => arguments.compare(&request)?,
            }
        }
        // clap guarantees this.
        (None, ..) => {
            return Err(CommandFailure::message(
                USAGE,
                "TARGET and GOLDEN are required",
            ));
        }
    };
    // The verdict is printed before the reports are written, so a full disk does not lose it.
    options.print(&comparison)?;
    options.reports.write(&comparison, noted.as_ref())?;
    let code = options.code(&comparison);
    if code != 0 && options.has_words() && !arguments.view {
        line!(console::out(), "{}", arguments.next_command())?;
    }
    if options.reports.has_page() || arguments.view {
        let dumps = arguments.target.as_deref().zip(arguments.golden.as_deref());
        let server = arguments.view.then_some(&arguments.server);
        options.show(comparison, dumps, server)?;
    }
    match code {
        0 => Ok(()),
        code => Err(CommandFailure::silent(code)),
    }
}

/// Prints values as JSON, one per line.
fn print_lines(lines: &[Value]) -> CommandResult {
    for value in lines {
        writeln!(console::json_out(), "{value}")?;
    }
    Ok(())
}

impl ComparisonArguments {
    /// Checks before the work that the reports can be written.
    pub(crate) fn check(&self) -> CommandResult {
        self.reports.check()
    }

    /// Limits, and the items that may remain uncompared.
    pub(crate) fn judging(&self) -> CommandResult<VerdictOptions> {
        let patterns = self.allow_skip.iter();
        Ok(VerdictOptions {
            thresholds: thresholds(self.thresholds.as_deref(), self.atol)?,
            n_ranked: self.top,
            allowed: patterns.map(|text| SkipPattern::new(text)).collect(),
            is_strict: self.strict,
            limit: self.limit,
        })
    }

    /// Number of comparing threads. `--jobs 0` means the minimum that makes progress.
    pub(crate) fn n_threads(&self) -> usize {
        self.jobs.unwrap_or_else(default_jobs).max(1)
    }

    /// The comparison that these options request.
    pub(crate) fn request(
        &self,
        (target, golden): (&Path, &Path),
        judging: VerdictOptions,
    ) -> CommandResult<ComparisonRequest> {
        let part = &self.part;
        let ranges =
            // No ranges mean everything.
            |given: &Option<NumberRanges>| given.clone().map(|ranges| ranges.0).unwrap_or_default();
        Ok(ComparisonRequest {
            target: target.to_owned(),
            golden: golden.to_owned(),
            reference: None,
            selection: Selection {
                steps: ranges(&part.steps),
                ranks: ranges(&part.ranks),
                names: part.filter.clone(),
                op_types: part.op_type.clone(),
                is_outputs_only: part.outputs_only,
            },
            matching: partners::options(
                self.mapping.as_deref(),
                [self.fusion.as_deref(), self.golden_fusion.as_deref()],
                self.no_guesses,
                part.step_offset,
            )?,
            is_whole: self.whole,
            has_parameters: self.weights,
            n_threads: self.n_threads(),
            difference: difference::DifferenceOptions { has_kl: self.kl },
            judging,
            program: program(),
            options: options(self),
            progress: Some(Arc::default()),
        })
    }

    /// Whether standard output carries the text result.
    pub(crate) fn has_words(&self) -> bool {
        !self.quiet && !self.reports.is_stdout_taken()
    }

    /// Prints a result unless `--quiet` or a report on standard output replaces it.
    pub(crate) fn print(&self, comparison: &Comparison) -> CommandResult {
        if self.has_words() {
            terminal::print(comparison, self.top)?;
        }
        Ok(())
    }

    /// Writes all reports except the page. `model` is the one of `--export-onnx`.
    pub(crate) fn write(
        &self,
        comparison: &Comparison,
        model: Option<&NotedModel>,
    ) -> CommandResult {
        self.reports.write(comparison, model)
    }

    /// Whether the model is a report, with the result as its properties.
    pub(crate) fn has_model(&self) -> bool {
        self.reports.has_model()
    }

    /// The file of `--json`, for a command without other reports; `option` explains the refusal.
    pub(crate) fn only_json(&self, option: &str) -> CommandResult<Option<&Path>> {
        self.reports.only_json(option)
    }

    /// Writes JSON to a file, or to standard output for `-`.
    pub(crate) fn write_json(&self, value: &Value, path: &Path) -> CommandResult {
        self.reports.write_json(value, path)
    }

    /// Whether to write the page to a file, which reads the dumps again.
    pub(crate) fn has_page(&self) -> bool {
        self.reports.has_page()
    }

    /// The exit code of a result.
    pub(crate) fn code(&self, comparison: &Comparison) -> u8 {
        outcome::code(comparison, self.fail_on)
    }

    /// Writes the page to a file if requested, and serves it on `server`.
    pub(crate) fn show(
        &self,
        comparison: Comparison,
        dumps: Option<(&Path, &Path)>,
        server: Option<&ServerArguments>,
    ) -> CommandResult {
        let n_threads = self.n_threads();
        let runs = match dumps {
            // The page reads elements again because a comparison keeps only metrics.
            Some((target, golden)) => {
                ViewedRuns::open_compared(comparison, [target, golden], n_threads)
                    .map_err(view::failure)?
            }
            None => ViewedRuns::of_saved(comparison),
        };
        self.reports.write_page(&runs)?;
        match server {
            Some(server) => view::serve(Arc::new(runs), None, server, n_threads),
            None => Ok(()),
        }
    }
}

fn thresholds(path: Option<&Path>, atol: Option<f64>) -> CommandResult<Thresholds> {
    let read = path.map(Thresholds::read).transpose();
    let thresholds = read.map_err(|error| CommandFailure::new(USAGE, error))?;
    let thresholds = thresholds.unwrap_or_default();
    Ok(Thresholds {
        atol: atol.unwrap_or(thresholds.atol),
        ..thresholds
    })
}

fn tolerance(text: &str) -> Result<f64, String> {
    let tolerance: Option<f64> = text.parse().ok();
    let tolerance = tolerance.filter(|atol| atol.is_finite() && *atol >= 0.0);
    tolerance.ok_or_else(|| "expected a finite number of at least 0".to_owned())
}

fn judged_anew(
    arguments: &ComparisonArguments,
    saved: &Path,
    judging: &VerdictOptions,
) -> CommandResult<Comparison> {
    let mut comparison = saved_result::read(saved)?;
    // The measurements stay; only the judgement changes.
    let options = &mut comparison.config.options;
    options.retain(|(name, _)| name != THRESHOLDS && name != ATOL);
    options.extend(limits_options(arguments));
    run::rejudge(&mut comparison, judging);
    Ok(comparison)
}

/// Compares two dumps, and prints and writes nothing.
pub(crate) fn compared(arguments: &CompareArguments) -> CommandResult<Comparison> {
    let (Some(target), Some(golden)) = (&arguments.target, &arguments.golden) else {
        return Err(CommandFailure::message(
            USAGE,
            "TARGET and GOLDEN are required",
        ));
    };
    refuse_model(target)?;
    refuse_model(golden)?;
    let options = &arguments.options;
    let request = options.request((target, golden), options.judging()?)?;
    arguments.compare(&request)
}

/// The verdict and its evidence as on the terminal, line by line.
pub(crate) fn verdict_lines(comparison: &Comparison) -> Vec<String> {
    terminal::verdict_lines(comparison)
}

/// Compares two dumps with default options.
pub(crate) fn with_defaults(
    target: &Path,
    golden: &Path,
    n_threads: usize,
) -> CommandResult<Comparison> {
    let request = ComparisonRequest::with_defaults(target, golden, n_threads, program());
    progress::with_spinner("comparing", || run::run(&request, None)).map_err(failure)
}

pub(crate) fn failure(error: CompareError) -> CommandFailure {
    let code = match &error {
        CompareError::Open { .. } | CompareError::Empty { .. } => UNREADABLE,
        // The dumps are readable: the options select nothing, or a file from the user contradicts
        // the dumps.
        CompareError::NothingChosen { .. } | CompareError::Mapping(_) => USAGE,
    };
    CommandFailure::new(code, error)
}

/// The judging options to record in the result.
fn limits_options(arguments: &ComparisonArguments) -> Vec<(String, String)> {
    let path = arguments.thresholds.as_ref();
    let path = path.map(|path| (THRESHOLDS, path.display().to_string()));
    let atol = arguments.atol.map(|atol| (ATOL, atol.to_string()));
    let options = path.into_iter().chain(atol);
    options
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The measuring options to record in the result.
fn options(arguments: &ComparisonArguments) -> Vec<(String, String)> {
    let part = &arguments.part;
    let mut options = limits_options(arguments);
    for (name, ranges) in [("steps", &part.steps), ("ranks", &part.ranks)] {
        options.extend(
            ranges
                .iter()
                .map(|ranges| (name.to_owned(), ranges.to_string())),
        );
    }
    if let Some(offset) = part.step_offset {
        options.push(("step-offset".to_owned(), offset.to_string()));
    }
    for (name, patterns) in [("filter", &part.filter), ("op-type", &part.op_type)] {
        options.extend(
            patterns
                .iter()
                .map(|pattern| (name.to_owned(), pattern.clone())),
        );
    }
    let files = [
        ("mapping", &arguments.mapping),
        ("fusion", &arguments.fusion),
        ("golden-fusion", &arguments.golden_fusion),
    ];
    for (name, path) in files {
        if let Some(path) = path {
            options.push((name.to_owned(), path.display().to_string()));
        }
    }
    let flags = [
        ("outputs-only", part.outputs_only),
        ("no-guesses", arguments.no_guesses),
        ("whole", arguments.whole),
        ("kl", arguments.kl),
        ("weights", arguments.weights),
    ];
    for (name, is_set) in flags {
        // A result lists only the options that the user set.
        if is_set {
            options.push((name.to_owned(), "true".to_owned()));
        }
    }
    options
}
