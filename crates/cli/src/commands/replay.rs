//! `opscope replay`.

mod arrays;
mod operators;
mod report;
mod run;
mod values;

use std::path::{Path, PathBuf};

use opscope_analysis::compare::matching::{Matching, MatchingOptions};
use opscope_analysis::compare::replay::{ChoiceError, OperatorChoice, ReplayResult, choose};
use opscope_analysis::compare::result::{OperatorName, VerdictLevel};
use opscope_analysis::compare::side::ComparedDump;
use opscope_analysis::compare::verdict::Thresholds;
use opscope_engine::LoadOptions;
use opscope_engine::choice::EngineChoice;
use opscope_store::reader::FilePlace;

use self::arrays::ArrayFolder;
use self::operators::{ModelOperators, ReplayEngine};
use self::run::{GoldenDump, ReplayContext, ReplayedDump};
use crate::arguments::ModeArguments;
use crate::commands::dump::near_names::nearest;
use crate::commands::view::FindingsPage;
use crate::engine::EngineArguments;
use crate::exit::{CommandFailure, CommandResult, FOUND, PARTIAL, UNREADABLE, USAGE, refuse_model};

/// Re-run operators on their dumped inputs, to separate their own error from inherited error
///
/// OP is a name, its form in file names, the end of one, or a pattern with `*` and `?`. The model
/// defines the operator; dumps that describe their graph need no model. Ends with 1 if something
/// differs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope replay dump conv1 --model net.onnx
  opscope replay npu 'layer.3/*' --model net.onnx --golden cpu
  opscope replay dump --all --json own.json
  opscope replay dump conv1 --out again
  opscope replay dump --all --view")]
pub(crate) struct ReplayArguments {
    /// The dump
    dump: PathBuf,
    /// The operators to re-run
    #[arg(value_name = "OP")]
    operator: Option<String>,
    /// All operators
    #[arg(long, conflicts_with = "operator")]
    all: bool,
    /// The ONNX model that was dumped
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Only this step
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Only this rank
    #[arg(long, value_name = "R")]
    rank: Option<u32>,
    /// A reference dump: also shows how much error the inputs contribute
    #[arg(long, value_name = "DIR")]
    golden: Option<PathBuf>,
    /// Limits of metrics, in YAML or JSON, that override the defaults
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
    /// Write all findings as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace the file of `--json` if it exists
    #[arg(long, requires = "json")]
    force: bool,
    /// Write the recomputed outputs as arrays
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads that the engine may use [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    modes: ModeArguments,
    #[command(flatten)]
    page: FindingsPage,
}

/// Why an operator could not be re-run, with the exit code if this is the only problem.
#[derive(Clone, Debug)]
pub(super) struct ReplayRefusal {
    code: u8,
    text: String,
}

impl ReplayRefusal {
    fn new(code: u8, text: impl Into<String>) -> ReplayRefusal {
        let text = text.into();
        ReplayRefusal { code, text }
    }
}

impl From<CommandFailure> for ReplayRefusal {
    fn from(failure: CommandFailure) -> ReplayRefusal {
        let text = failure.error.map(|error| format!("{error:#}"));
        ReplayRefusal::new(failure.code, text.unwrap_or_default())
    }
}

impl From<ReplayRefusal> for CommandFailure {
    fn from(refusal: ReplayRefusal) -> CommandFailure {
        CommandFailure::message(refusal.code, refusal.text)
    }
}

/// An operator that could not be re-run.
pub(super) struct RefusedOperator {
    operator: OperatorName,
    refusal: ReplayRefusal,
}

/// A side of a comparison whose operators are re-run.
pub(crate) struct ReplaySide<'a> {
    /// Its tensors.
    pub(crate) dump: &'a ComparedDump,
    /// The model; `None` if the dump describes its graph well enough.
    pub(crate) model: Option<&'a Path>,
}

/// Re-runs target executions, each with its golden counterpart, in a given engine, and prints the
/// results.
pub(crate) fn print_replayed(
    [target, golden]: [ReplaySide<'_>; 2],
    runs: &[usize],
    (choice, options): (&EngineChoice, &LoadOptions),
    (matching, thresholds): (&MatchingOptions, &Thresholds),
) -> CommandResult {
    let engine = ReplayEngine::of_choice(choice.clone());
    let [of_target, of_golden] = [target.model, golden.model].map(|path| {
        // If the model cannot be opened, operators run from their descriptions, or are reported as
        // refused.
        let opened = path.and_then(|path| engine.open(path).ok());
        opened.map(ModelOperators::of_model)
    });
    let matching = Matching::align(target.dump, golden.dump, matching);
    let matching = matching.map_err(|error| CommandFailure::new(USAGE, error))?;
    let half = ReplayedDump::new(golden.dump, of_golden.as_ref(), &engine);
    let context = ReplayContext {
        target: &ReplayedDump::new(target.dump, of_target.as_ref(), &engine),
        golden: Some(GoldenDump::new(half, &matching)),
        thresholds,
        options: options.clone(),
    };
    let (mut replayed, mut refused) = (Vec::new(), Vec::new());
    for &run in runs {
        match context.replay(run) {
            Ok((found, _)) => replayed.push(found),
            Err(refusal) => refused.push(RefusedOperator {
                operator: run::name_of(&target.dump.runs[run]),
                refusal,
            }),
        }
    }
    report::print(&replayed, &refused, true)
}

/// The failure if no operator is chosen; suggests similar names.
fn not_chosen(error: ChoiceError, side: &ComparedDump, choice: &OperatorChoice) -> CommandFailure {
    let code = match error {
        ChoiceError::Empty { .. } => UNREADABLE,
        ChoiceError::None { .. } | ChoiceError::Several { .. } => USAGE,
    };
    let names = side.runs.iter().map(|run| &*run.op_name);
    let similar = match (&error, &choice.name) {
        (ChoiceError::None { .. }, Some(name)) => nearest(name, names),
        _ => Vec::new(),
    };
    let failure = CommandFailure::new(code, error);
    if similar.is_empty() {
        return failure;
    }
    failure.with_hint(format!("similar names: {}", similar.join(", ")))
}

pub(crate) fn run(arguments: &ReplayArguments) -> CommandResult {
    refuse_model(&arguments.dump)?;
    if arguments.operator.is_none() && !arguments.all {
        let failure = CommandFailure::message(USAGE, "no operator is named");
        return Err(failure.with_hint("name one, as in `opscope replay DUMP OP`, or pass `--all`"));
    }
    let n_threads = (arguments.threads).map_or_else(opscope_analysis::default_jobs, usize::from);
    let thresholds = thresholds(arguments.thresholds.as_deref())?;
    let side = open(&arguments.dump, n_threads, |(rank, step)| {
        let is_rank = arguments.rank.is_none() || rank.is_none() || rank == arguments.rank;
        is_rank && (arguments.step.is_none() || step.is_none() || step == arguments.step)
    })?;
    let choice = OperatorChoice {
        name: arguments.operator.clone(),
        step: arguments.step,
        rank: arguments.rank,
    };
    let runs = choose(&side, &choice).map_err(|error| not_chosen(error, &side, &choice))?;
    let engine = ReplayEngine::new(&arguments.engine);
    let model = (arguments.model.as_deref())
        .map(|path| engine.open(path).map(ModelOperators::of_model))
        .transpose()?;
    let golden = (arguments.golden.as_deref())
        .map(|path| open(path, n_threads, |_| true))
        .transpose()?;
    let matching = (golden.as_ref())
        .map(|golden| Matching::align(&side, golden, &MatchingOptions::default()))
        .transpose()
        .map_err(|error| CommandFailure::new(USAGE, error))?;
    let target = ReplayedDump::new(&side, model.as_ref(), &engine);
    let context = ReplayContext {
        target: &target,
        golden: (golden.as_ref().zip(matching.as_ref())).map(|(side, matching)| {
            GoldenDump::new(ReplayedDump::new(side, model.as_ref(), &engine), matching)
        }),
        thresholds: &thresholds,
        options: LoadOptions::with_threads(n_threads),
    };
    let mut arrays =
        (arguments.out.as_deref()).map(|dir| ArrayFolder::new(dir, arguments.modes.modes()));
    let (mut replayed, mut refused) = (Vec::new(), Vec::new());
    for run in runs {
        match context.replay(run) {
            Ok((found, outputs)) => {
                // Outputs are written at once, because those of all operators may exceed memory.
                if let Some(arrays) = &mut arrays {
                    arrays.write(&side.runs[run], &outputs)?;
                }
                replayed.push(found);
            }
            Err(refusal) => refused.push(RefusedOperator {
                operator: run::name_of(&side.runs[run]),
                refusal,
            }),
        }
    }
    report::print(&replayed, &refused, context.golden.is_some())?;
    if let Some(path) = &arguments.json {
        report::write_json(
            path,
            (arguments.modes.modes(), arguments.force),
            engine.chosen(),
            (&replayed, &refused),
        )?;
    }
    // The last step, because the page is shown until it is interrupted.
    (arguments.page).show(&arguments.dump, || report::findings(&replayed), n_threads)?;
    end(&replayed, &refused)
}

/// The exit code: differences first, then operators that could not run.
fn end(replayed: &[ReplayResult], refused: &[RefusedOperator]) -> CommandResult {
    let mut levels = replayed.iter().map(|result| result.level);
    if levels.any(|level| level == VerdictLevel::Fail) {
        return Err(CommandFailure::silent(FOUND));
    }
    match (replayed, refused) {
        (_, []) => Ok(()),
        ([], [first, rest @ ..]) => {
            // The same refusal for several operators, as in a PyTorch dump, counts once.
            let code = first.refusal.code;
            let is_same = rest.iter().all(|entry| entry.refusal.code == code);
            Err(CommandFailure::silent(if is_same {
                code
            } else {
                UNREADABLE
            }))
        }
        _ => Err(CommandFailure::silent(PARTIAL)),
    }
}

fn open(
    path: &Path,
    n_threads: usize,
    is_wanted: impl Fn(FilePlace) -> bool,
) -> CommandResult<ComparedDump> {
    let side = ComparedDump::open_places(path, n_threads, is_wanted)?;
    if side.runs.is_empty() {
        // A fully damaged dump looks like one without tensors, so the message includes the first
        // damage.
        let damage = side.problems.first().map(|problem| format!(": {problem}"));
        let damage = damage.unwrap_or_default();
        let message = format!("`{}` holds no tensors{damage}", path.display());
        return Err(CommandFailure::message(UNREADABLE, message));
    }
    Ok(side)
}

fn thresholds(path: Option<&Path>) -> CommandResult<Thresholds> {
    let read = path.map_or_else(|| Ok(Thresholds::default()), Thresholds::read);
    read.map_err(|error| CommandFailure::new(USAGE, error))
}
