//! `opscope diff`.

mod both;
mod experiments;
mod inputs;
mod repeat;
mod replayed;
mod side;
mod store;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_analysis::compare::result::{Comparison, ExperimentOutcome, Party};
use opscope_analysis::compare::run;
use opscope_dump::held::HeldRoom;
use opscope_engine::ModelSource;
use opscope_engine::onnx::widen_model;
use opscope_store::free_memory_bytes;

use self::both::{BothSides, ComparedSides};
use self::replayed::replay_suspects;
use self::side::{ModelSide, SidePath};
use self::store::KeepingPlace;
use super::compare::{self, ComparisonArguments, NotedModel};
use super::next_line;
use super::view::ServerArguments;
use crate::arguments::ModeArguments;
use crate::console::{self, line, report};
use crate::engine::{EngineArguments, EngineInUse, GoldenEngineArguments, GraphArguments};
use crate::exit::{CommandFailure, CommandResult, USAGE};
use crate::inputs::InputArguments;
use crate::progress;

/// Run two models, or one model in two ways, and name the operator where they diverge
///
/// TARGET is the side under test, GOLDEN the reference: each an ONNX model (`.onnx`) or a dump.
/// Without GOLDEN, TARGET is both, and options say how the sides differ. Both run on the same
/// inputs, random ones by default. The target is compared while it runs. If an output differs,
/// experiments on the target search for the replacement that makes all outputs agree; if they prove
/// nothing, the suspected operators are re-run in isolation.
///
/// Exit codes: 0 if the outputs agree, 1 if one differs too much, 2 for wrong usage, 3 if a side
/// cannot be read or run, and 4 if too little could be compared.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope diff quantised.onnx net.onnx --inputs samples.npz
  opscope diff net.onnx --engine tract --golden-engine onnxruntime
  opscope diff net.onnx --graph executed --seed 3
  opscope diff half.onnx --golden-as float32
  opscope diff faulty.onnx net.onnx --repair healed.onnx
  opscope diff net.onnx dump_of_yesterday --first
  opscope diff net.onnx --repeat 10")]
pub(crate) struct DiffArguments {
    /// The side under test: a model or a dump
    target: PathBuf,
    /// The reference side [default: TARGET, run as the options for GOLDEN say]
    golden: Option<PathBuf>,
    #[command(flatten)]
    inputs: InputArguments,
    /// Number of runs of the models [default: one, or one for each set of inputs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Stop TARGET at the first operator whose output differs too much
    #[arg(long)]
    first: bool,
    /// Run TARGET this many times on the same inputs, and name the operators whose results vary
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..), conflicts_with_all = ["golden", "first", "save", "view"])]
    repeat: Option<u32>,
    /// Threads that the engine may use in the runs of `--repeat`, in turn
    #[arg(long, value_name = "N,M", value_delimiter = ',', requires = "repeat", value_parser = clap::value_parser!(u16).range(1..))]
    repeat_threads: Vec<u16>,
    /// Maximum number of TARGET runs with parts of GOLDEN, which show what makes the outputs differ
    #[arg(long, value_name = "N", default_value_t = 12)]
    experiments: usize,
    /// Run no experiments, and do not re-run the suspected operators
    #[arg(long, visible_alias = "no-replay")]
    no_experiments: bool,
    /// Write TARGET with the culprit repaired, if its outputs then agree, as a new file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["repeat", "first", "no_experiments"])]
    repair: Option<PathBuf>,
    /// Keep the dumps of both sides: `{DIR}/target` and `{DIR}/golden`
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Show the result in the browser, as `opscope view` does, until Ctrl-C
    #[arg(long)]
    view: bool,
    #[command(flatten)]
    server: ServerArguments,
    /// Threads that the engine may use [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Resources")]
    threads: Option<u16>,
    /// Maximum tensor bytes, in MiB, to hold in memory; the rest goes to an unnamed temporary file
    /// in TMPDIR [default: half of the free memory]
    #[arg(long, value_name = "MIB", help_heading = "Resources")]
    memory: Option<u64>,
    /// Run GOLDEN with all float16 and bfloat16 values and casts as this dtype: the remaining
    /// difference is the cost of the narrow dtype
    #[arg(long, value_name = "DTYPE", value_enum, help_heading = "Engine")]
    golden_as: Option<GoldenDtype>,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    graph: GraphArguments,
    #[command(flatten)]
    golden_engine: GoldenEngineArguments,
    #[command(flatten)]
    modes: ModeArguments,
    #[command(flatten)]
    options: ComparisonArguments,
    /// The command line, quoted for a shell.
    #[arg(skip)]
    pub(crate) words: Vec<String>,
}

/// The words in front of an engine's name.
const TARGET_ENGINE: &str = "engine of the target";
const GOLDEN_ENGINE: &str = "engine of golden";
const BOTH_ENGINES: &str = "engine of both sides";

/// The dtype that replaces narrow floats on the golden side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum GoldenDtype {
    /// Single precision
    Float32,
}

/// Both sides, with models loaded.
struct DiffSides {
    target: LoadedSide,
    golden: LoadedSide,
}

/// A side that is ready to run or read.
enum LoadedSide {
    Model(Box<ModelSide>),
    Dump(PathBuf),
}

impl LoadedSide {
    /// Loads the sides that are models.
    fn load(
        side: &SidePath,
        engine: Option<&Arc<EngineInUse>>,
        load: impl FnOnce(&Arc<EngineInUse>) -> CommandResult<ModelSide>,
    ) -> CommandResult<LoadedSide> {
        match engine {
            Some(engine) => load(engine).map(|model| LoadedSide::Model(Box::new(model))),
            None => Ok(LoadedSide::Dump(side.path().to_owned())),
        }
    }

    /// The side's name in results.
    fn label(&self) -> &Path {
        match self {
            LoadedSide::Model(model) => &model.label,
            LoadedSide::Dump(path) => path,
        }
    }
}

pub(crate) fn run(arguments: &DiffArguments) -> CommandResult {
    arguments.options.check()?;
    arguments.noted_model()?;
    let target = SidePath::new(&arguments.target)?;
    if let Some(n_runs) = arguments.repeat {
        return repeat::run(arguments, &target, n_runs);
    }
    let golden = arguments.golden.as_deref().map(SidePath::new).transpose()?;
    let sides = arguments.load(&target, golden.as_ref())?;
    let Some(sides) = sides else {
        return arguments.compare_dumps(&target, golden.as_ref());
    };
    arguments.run_sides(sides)
}

/// Compares both sides, and prints and writes nothing but the dumps of `--save`.
pub(crate) fn compared(arguments: &DiffArguments) -> CommandResult<Comparison> {
    let target = SidePath::new(&arguments.target)?;
    let golden = arguments.golden.as_deref().map(SidePath::new).transpose()?;
    let Some(mut sides) = arguments.load(&target, golden.as_ref())? else {
        return arguments.compared_dumps([&target, golden.as_ref().unwrap_or(&target)]);
    };
    let place = arguments.place()?;
    let labels = [sides.target.label(), sides.golden.label()].map(Path::to_owned);
    let options = &arguments.options;
    let request = options.request((&labels[0], &labels[1]), options.judging()?)?;
    let compared = BothSides::new(arguments, &request, &place).compare(&mut sides)?;
    Ok(compared.comparison)
}

impl DiffArguments {
    fn n_threads(&self) -> usize {
        self.threads
            .map_or_else(opscope_analysis::default_jobs, usize::from)
    }

    /// Runs the models, compares, and prints and writes the result.
    fn run_sides(&self, mut sides: DiffSides) -> CommandResult {
        let options = &self.options;
        let place = self.place()?;
        // Paths alone would not distinguish one model in two engines.
        let labels = [sides.target.label(), sides.golden.label()].map(Path::to_owned);
        let request = options.request((&labels[0], &labels[1]), options.judging()?)?;
        let mut both = BothSides::new(self, &request, &place);
        let compared = both.compare(&mut sides)?;
        // The verdict comes first; re-running operators may take a while.
        options.print(&compared.comparison)?;
        if options.has_words() {
            if !self.no_experiments && !is_proven(&compared.comparison) {
                replay_suspects(&request, &compared, &sides)?;
            }
            both.report_costs();
            if !self.view {
                let mut out = console::out();
                line!(out, "{}", self.next_command(&compared, &place))?;
            }
        }
        let paths = (&compared.target.path, &compared.golden.path);
        self.finish(compared.comparison, paths)
    }

    /// Where both sides' tensors are kept. A page re-reads them from the disk.
    fn place(&self) -> CommandResult<KeepingPlace> {
        if let Some(root) = &self.save {
            return KeepingPlace::directory(root, self.modes.modes());
        }
        if self.view || self.options.has_page() {
            return KeepingPlace::temporary();
        }
        let room = HeldRoom::new(self.memory_bytes());
        Ok(KeepingPlace::Process(Arc::new(room)))
    }

    /// Maximum number of bytes held in memory.
    fn memory_bytes(&self) -> u64 {
        match self.memory {
            Some(mib) => mib.saturating_mul(1 << 20),
            // If the system does not report free memory, everything goes to the file.
            None => free_memory_bytes().unwrap_or(0) / 2,
        }
    }

    /// The command that shows more of the result.
    fn next_command(&self, compared: &ComparedSides, place: &KeepingPlace) -> String {
        match (&compared.target.path, &compared.golden.path) {
            (Some(target), Some(golden)) if place.stays() => next_line("view", &[target, golden]),
            _ => format!("next: {} --view", self.words.join(" ")),
        }
    }

    /// Whether engines print nothing about themselves.
    fn is_quiet(&self) -> bool {
        !self.options.has_words()
    }

    /// Loads the models; `None` if both sides are dumps.
    fn load(
        &self,
        target: &SidePath,
        golden: Option<&SidePath>,
    ) -> CommandResult<Option<DiffSides>> {
        self.check_options(target, golden)?;
        if let (SidePath::Dump(_), Some(SidePath::Dump(_))) = (target, golden) {
            return Ok(None);
        }
        // The options for the golden side apply even if both sides are the same file.
        let golden_side = match (target, golden) {
            (_, Some(golden)) => golden,
            (SidePath::Model(_), None) => target,
            (SidePath::Dump(path), None) => {
                let message = format!("`{}` is a dump: GOLDEN is required", path.display());
                return Err(CommandFailure::message(USAGE, message));
            }
        };
        let is_same = golden.is_none_or(|golden| golden.path() == target.path());
        if is_same && self.golden_as.is_none() {
            self.check_differs()?;
        }
        let [target_engine, golden_engine] = self.engines(target, golden_side)?;
        // Loading uses one processor per model and may take longer than the runs.
        let (target, golden) = std::thread::scope(|scope| {
            let golden = scope.spawn(|| {
                LoadedSide::load(golden_side, golden_engine.as_ref(), |engine| {
                    self.load_golden(golden_side.path(), engine)
                })
            });
            let target = LoadedSide::load(target, target_engine.as_ref(), |engine| {
                ModelSide::load(target.path(), engine, None)
            });
            (target, golden.join())
        });
        let golden = golden.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Some(DiffSides {
            target: target?,
            golden: golden?,
        }))
    }

    /// The engines of the sides that are models, each named with its side.
    fn engines(
        &self,
        target: &SidePath,
        golden: &SidePath,
    ) -> CommandResult<[Option<Arc<EngineInUse>>; 2]> {
        let (n_threads, is_quiet) = (self.n_threads(), self.is_quiet());
        let is_model = [target, golden].map(|side| matches!(side, SidePath::Model(_)));
        let (engine, graph) = self.golden_engine.resolve(&self.engine);
        // An engine that both sides use is printed once.
        let is_shared = is_model == [true, true] && engine == self.engine;
        let label = if is_shared {
            BOTH_ENGINES
        } else {
            TARGET_ENGINE
        };
        let of_target = is_model[0]
            .then(|| side::engine(label, (&self.engine, &self.graph), n_threads, is_quiet))
            .transpose()?;
        // One of two models that share an engine may need another one.
        let of_target = of_target.map(|engine| Arc::new(engine.of_side(TARGET_ENGINE)));
        let of_golden = is_model[1]
            .then(|| {
                let is_quiet = is_quiet || is_shared;
                side::engine(GOLDEN_ENGINE, (&engine, &graph), n_threads, is_quiet)
            })
            .transpose()?;
        Ok([of_target, of_golden.map(Arc::new)])
    }

    fn load_golden(&self, path: &Path, engine: &Arc<EngineInUse>) -> CommandResult<ModelSide> {
        let Some(GoldenDtype::Float32) = self.golden_as else {
            return ModelSide::load(path, engine, None);
        };
        let widened = widen_model(ModelSource::File(path))?.ok_or_else(|| {
            let message = format!(
                "`{}` has no float16 or bfloat16: `--golden-as float32` would change nothing",
                path.display()
            );
            CommandFailure::message(USAGE, message)
        })?;
        let kept: Vec<&str> = widened
            .kept_dtypes()
            .iter()
            .map(|dtype| dtype.name())
            .collect();
        if !kept.is_empty() {
            report!(
                "opscope: `--golden-as float32`: {} is part of quantisation and stays unchanged",
                kept.join(", ")
            );
        }
        ModelSide::load(path, engine, Some(widened))
    }

    /// Refuses run options for a side that is a dump.
    fn check_options(&self, target: &SidePath, golden: Option<&SidePath>) -> CommandResult {
        if golden.is_some_and(SidePath::is_dump) {
            if self.golden_as.is_some() {
                return Err(only_for_models("GOLDEN is a dump", "`--golden-as`"));
            }
            if self.golden_engine.is_given() {
                return Err(only_for_models(
                    "GOLDEN is a dump",
                    "an option for its engine",
                ));
            }
        }
        if !target.is_dump() {
            return Ok(());
        }
        if self.first {
            return Err(only_for_models("TARGET is a dump", "`--first`"));
        }
        if !golden.is_some_and(SidePath::is_dump) {
            return Ok(());
        }
        let given = [
            (!self.inputs.is_empty(), "an option for inputs"),
            (self.runs.is_some(), "`--runs`"),
            (self.save.is_some(), "`--save`"),
            (
                self.engine.is_given() || self.graph.is_given(),
                "an option for an engine",
            ),
        ];
        match given.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => Err(only_for_models("both sides are dumps", option)),
            None => Ok(()),
        }
    }

    /// Refuses to compare a model with itself under the same options.
    fn check_differs(&self) -> CommandResult {
        let golden = self.golden_engine.resolve(&self.engine);
        if (&golden.0, &golden.1) != (&self.engine, &self.graph) {
            return Ok(());
        }
        let message = "both sides are the same model, run in the same way";
        let hint = "give GOLDEN, or an option such as `--golden-engine`, `--graph executed`, `--provider` or \
             `--golden-as float32`; `--repeat N` checks whether its results vary";
        Err(CommandFailure::message(USAGE, message).with_hint(hint))
    }

    /// The model of `--export-onnx`: TARGET, or GOLDEN if TARGET is a dump.
    fn noted_model(&self) -> CommandResult<Option<NotedModel>> {
        let sides = [
            (Party::Target, Some(&self.target)),
            (Party::Golden, self.golden.as_ref()),
        ];
        for (party, path) in sides {
            if let Some(SidePath::Model(path)) = path.map(|path| SidePath::new(path)).transpose()? {
                return Ok(Some((party, path)));
            }
        }
        if !self.options.has_model() {
            return Ok(None);
        }
        let message = "both sides are dumps, but `--export-onnx` writes a model with notes";
        let hint = "`opscope compare --model FILE --export-onnx FILE` takes the model of a dump";
        Err(CommandFailure::message(USAGE, message).with_hint(hint))
    }

    /// Compares two dumps, as `opscope compare` does.
    fn compare_dumps(&self, target: &SidePath, golden: Option<&SidePath>) -> CommandResult {
        let sides = [target, golden.unwrap_or(target)];
        let comparison = self.compared_dumps(sides)?;
        self.options.print(&comparison)?;
        if self.options.code(&comparison) != 0 && self.options.has_words() && !self.view {
            let next = next_line("view", &sides.map(SidePath::path));
            line!(console::out(), "{next}")?;
        }
        let [target, golden] = sides.map(|side| Some(side.path().to_owned()));
        self.finish(comparison, (&target, &golden))
    }

    fn compared_dumps(&self, sides: [&SidePath; 2]) -> CommandResult<Comparison> {
        // Nothing runs, so the dumps are read in place.
        let [target, golden] = sides.map(SidePath::path);
        let request = (self.options).request((target, golden), self.options.judging()?)?;
        let compared =
            progress::with_comparing_bar(request.progress.as_deref(), || run::run(&request, None));
        compared.map_err(compare::failure)
    }

    /// Writes a result, and shows it if requested.
    fn finish(
        &self,
        comparison: Comparison,
        dumps: (&Option<PathBuf>, &Option<PathBuf>),
    ) -> CommandResult {
        self.options
            .write(&comparison, self.noted_model()?.as_ref())?;
        // The page takes the result and blocks until the user leaves.
        let code = self.options.code(&comparison);
        if self.options.has_page() || self.view {
            let server = self.view.then_some(&self.server);
            let dumps = dumps.0.as_deref().zip(dumps.1.as_deref());
            self.options.show(comparison, dumps, server)?;
        }
        match code {
            0 => Ok(()),
            code => Err(CommandFailure::silent(code)),
        }
    }
}

/// Whether experiments have proven the cause.
fn is_proven(comparison: &Comparison) -> bool {
    let experiments = comparison.experiments.as_deref();
    experiments.is_some_and(|made| made.outcome == ExperimentOutcome::Proven)
}

fn only_for_models(side: &str, option: &str) -> CommandFailure {
    let message = format!("{side}, but {option} applies to running a model");
    CommandFailure::message(USAGE, message)
}

/// A word quoted for a shell.
pub(crate) fn quote(word: &str) -> String {
    // A shell may interpret every other character, such as `~` and `*`.
    if !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c))
    {
        return word.to_owned();
    }
    // Single quotes have no escape inside: each one ends the quoted part, follows it escaped, and
    // begins another part.
    format!("'{}'", word.replace('\'', "'\\''"))
}
