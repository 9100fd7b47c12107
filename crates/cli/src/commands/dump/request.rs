//! A run's request: what to keep, and where that goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use opscope_capture::Sink;
use opscope_capture::sink::NoSink;
use opscope_capture::{
    KernelSelection, ModelSelection, OperatorSelection, Plan, Purpose, Steps, TensorRules,
};
use opscope_config::dialect::acl::Content;
use opscope_config::dialect::{Dialect, acl, detect, mindspore};
use opscope_config::{Environment, Issue, Severity};
use opscope_dump::{AclSink, MindSporeOptions, MindSporeSink, RangeSink, StatsSink};
use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::record::ModelId;
use opscope_store::tree::acl::OVERWRITES_FILE;

use super::RunArguments;
use super::dry_run::DryRun;
use super::environment::{self, FailureDump};
use super::mindspore::{Dump, check_file_name, configuration_of_environment};
use super::quantising;
use super::range::{NarrowFloat, Ranges};
use crate::console::tell;
use crate::exit::{Failure, USAGE};

/// How many seconds after now are tried as names of a dump's directory.
const N_TIMES_MAX: i64 = 3600;

/// Plan of what to keep, and the places to write it to.
pub(crate) struct Request {
    /// Plan of what to keep of models.
    pub(super) plan: Plan,
    /// Whether operators that run on their own are kept.
    has_single_operators: bool,
    content: Content,
    /// Which tensors are written whole where statistics are written too.
    pub(super) tensors: TensorRules,
    /// The first usable one is meant; none if nothing is written.
    places: Vec<PathBuf>,
    /// The tree of MindSpore to write instead.
    mindspore: Option<MindSporeOptions>,
    /// The file that says so, if there is one.
    pub(super) configuration: Option<PathBuf>,
    /// The dump of operators that fail which the environment asks for, where the rest is about something else.
    failures: Option<acl::AclDump>,
}

/// Dump that a configuration asks for.
enum Configured {
    Acl(Option<acl::AclDump>),
    MindSpore(Option<Dump>),
}

/// The text of a configuration.
pub(super) struct Source<'a> {
    /// The file that it is in.
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    /// Pointer to it in the file.
    pub(super) pointer: &'a str,
}

impl<'a> Source<'a> {
    /// A file that is a configuration as a whole.
    pub(super) fn file(path: &'a Path, text: &'a str) -> Source<'a> {
        let pointer = "";
        Source {
            path,
            text,
            pointer,
        }
    }

    /// Issues with pointers from the root of the file.
    fn placed(&self, mut issues: Vec<Issue>) -> Vec<Issue> {
        for issue in &mut issues {
            issue.pointer.insert_str(0, self.pointer);
        }
        issues
    }
}

/// Where the selected tensors go.
pub(super) enum Target {
    Acl(Arc<AclSink>),
    MindSpore(Arc<MindSporeSink>),
    Stats(Arc<StatsSink>),
    Nothing,
}

/// The target, behind a sink that looks at ranges if that is asked for.
pub(crate) struct Sinks {
    pub(super) target: Target,
    creator: Arc<Creator>,
    /// Counts what would be written, if nothing is.
    pub(super) dry_run: Option<DryRun>,
    ranges: Option<Arc<RangeSink>>,
    /// Where a failing step goes that nothing else keeps.
    pub(super) failures: Option<FailureDump>,
}

impl Request {
    /// Reads the configuration, or takes the options' word.
    pub(crate) fn new(arguments: &RunArguments) -> Result<Request, Failure> {
        let env = crate::commands::environment()?;
        let nothing = Request::nothing(arguments);
        let has_other = arguments.out.is_some() || arguments.stats || !arguments.narrow.is_empty();
        let of_environment = configuration_of_environment().filter(|_| !has_other);
        let Some(path) = arguments.config.as_ref().or(of_environment.as_ref()) else {
            if !has_other && acl::from_environment(&env).is_some() {
                let followed = environment::follow(None, &env);
                arguments.ring.prepare(true)?;
                arguments.compress.apply(None)?;
                return Ok(Request::of(Configured::Acl(followed.dump), arguments));
            }
            if !has_other {
                let message = "nothing to do: no configuration and no place to dump to";
                let hint = "give `--out DIR`, `--config FILE`, `--stats` or `--as DTYPE`";
                return Err(Failure::message(USAGE, message).with_hint(hint));
            }
            arguments.volume.check(arguments.out.is_some())?;
            arguments.ring.prepare(arguments.out.is_some())?;
            arguments.compress.apply(None)?;
            return Ok(Request {
                plan: quantising::apply(arguments.quant_dumpable, Plan::everything()),
                has_single_operators: true,
                places: arguments.out.iter().map(|out| env.expanded(out)).collect(),
                failures: environment::follow(None, &env).dump,
                ..nothing
            });
        };
        arguments.volume.check(true)?;
        arguments.ring.prepare(true)?;
        let configured = read(path, arguments)?;
        let (mut configured, failures) = match configured {
            Configured::Acl(dump) => {
                let followed = environment::follow(dump, &env);
                (Configured::Acl(followed.dump), followed.beside)
            }
            other => (other, environment::follow(None, &env).dump),
        };
        match &mut configured {
            Configured::Acl(_) => arguments.compress.apply(None)?,
            Configured::MindSpore(Some(dump)) => {
                arguments.compress.apply(Some(&mut dump.options))?;
            }
            // Nothing is dumped.
            Configured::MindSpore(None) => {}
        }
        let configuration = match configured {
            Configured::Acl(None) | Configured::MindSpore(None) => None,
            _ => Some(path.clone()),
        };
        Ok(Request {
            configuration,
            failures,
            ..Request::of(configured, arguments)
        })
    }

    /// The same for a model: what is about operators outside models alone keeps nothing of it, and opens
    /// no directory.
    pub(super) fn for_models(self) -> Request {
        let is_about_models = !self.has_single_operators || !self.is_nothing();
        let places = self.places;
        Request {
            places: places.into_iter().filter(|_| is_about_models).collect(),
            ..self
        }
    }

    /// Builds the request of a configuration that was read elsewhere.
    pub(super) fn from_source(
        source: &Source<'_>,
        arguments: &RunArguments,
    ) -> Result<Request, Failure> {
        let is_mindspore = arguments.target.is_some();
        Ok(Request::of(
            interpret(source, arguments, is_mindspore)?,
            arguments,
        ))
    }

    fn of(configured: Configured, arguments: &RunArguments) -> Request {
        let nothing = Request::nothing(arguments);
        let volume = &arguments.volume;
        let shown = |plan| quantising::apply(arguments.quant_dumpable, plan);
        match configured {
            Configured::Acl(Some(dump)) => Request {
                plan: Plan {
                    has_graph_inputs: arguments.graph_inputs,
                    ..shown(dump.plan)
                },
                has_single_operators: dump.has_single_operators,
                content: volume.content(dump.content),
                places: dump.places,
                ..nothing
            },
            Configured::MindSpore(Some(dump)) => Request {
                plan: shown(dump.plan),
                has_single_operators: true,
                mindspore: Some(volume.apply(dump.options)),
                ..nothing
            },
            Configured::Acl(None) | Configured::MindSpore(None) => nothing,
        }
    }

    fn nothing(arguments: &RunArguments) -> Request {
        Request {
            plan: Plan::nothing(),
            has_single_operators: false,
            content: arguments.volume.content(Content::Tensors),
            tensors: arguments.volume.rules(),
            places: Vec::new(),
            mindspore: None,
            configuration: None,
            failures: None,
        }
    }

    /// The plan of `next`, for a dump that was begun for this request: it goes on in its directories
    /// and in its form.
    pub(super) fn plan_to_continue_with(&self, next: Request) -> Result<Plan, Failure> {
        if next.is_nothing() {
            return Ok(Plan {
                models: ModelSelection::None,
                ..self.plan.clone()
            });
        }
        let message = match (&self.mindspore, &next.mindspore) {
            (Some(ours), Some(theirs)) if !ours.is_same_dump(theirs) => {
                "the configuration asks for other files or another place than the one at the start; \
                 only operators and executions may differ"
            }
            (Some(_), Some(_)) => return Ok(next.plan),
            (Some(_), None) => "the dump is in MindSpore's form, the configuration is AscendCL's",
            (None, Some(_)) => {
                "the dump is not in MindSpore's form, which the configuration asks for"
            }
            (None, None) if self.content != next.content => {
                "whether and which statistics are written cannot change while the model runs"
            }
            (None, None)
                if !self
                    .places
                    .iter()
                    .map(real)
                    .eq(next.places.iter().map(real)) =>
            {
                let place = |places: &[PathBuf]| match places.first() {
                    Some(place) => format!("`{}`", place.display()),
                    None => "nowhere".to_owned(),
                };
                let (found, expected) = (place(&next.places), place(&self.places));
                let message = format!(
                    "the configuration dumps to {found}, expected {expected} as at the start"
                );
                return Err(Failure::message(USAGE, message));
            }
            (None, None) => return Ok(next.plan),
        };
        Err(Failure::message(USAGE, message))
    }

    /// Threads that write.
    pub(super) fn n_writers(&self, wanted: usize) -> usize {
        let most = self
            .mindspore
            .as_ref()
            .map_or(usize::MAX, MindSporeOptions::n_writers_max);
        wanted.min(most)
    }

    /// The same for operators that run on their own: which models are meant is of no interest then.
    pub(crate) fn for_single_operators(self) -> Request {
        if self.mindspore.is_some() {
            return self;
        }
        let is_kept = match self.plan.purpose {
            Purpose::Values => self.has_single_operators,
            Purpose::Overflow | Purpose::NonFinite | Purpose::Failures(_) => true,
            Purpose::Watch => false,
        };
        let plan = if is_kept {
            Plan {
                models: ModelSelection::Every(OperatorSelection::every()),
                excluded: Vec::new(),
                steps: Steps::every(),
                has_graph_inputs: false,
                ..self.plan
            }
        } else {
            Plan::nothing()
        };
        Request { plan, ..self }
    }

    /// The reason for which a selected operator is kept.
    pub(crate) fn purpose(&self) -> Purpose {
        self.plan.purpose
    }

    /// Whether operators are chosen by marks.
    pub(super) fn is_marking(&self) -> bool {
        let kernels = match &self.plan.models {
            ModelSelection::Every(operators) => operators.kernels.as_ref(),
            ModelSelection::None | ModelSelection::Named(_) => None,
        };
        kernels == Some(&KernelSelection::Marked)
    }

    /// Whether nothing will be kept whatever runs.
    pub(crate) fn is_nothing(&self) -> bool {
        self.plan.models == ModelSelection::None
    }

    /// Opens what the tensors go to.
    pub(crate) fn open(&self, arguments: &RunArguments) -> Result<Sinks, Failure> {
        arguments.once.warn_without_effect(self.mindspore.as_ref());
        let modes = arguments.modes.modes();
        let is_dry = arguments.volume.dry_run;
        if let Some(options) = &self.mindspore {
            let options = MindSporeOptions {
                dedup: arguments.once.dedup(),
                ..options.clone()
            };
            let creator = Arc::new(match is_dry {
                true => Creator::pretending(modes),
                false => Creator::in_shared_dump(&options.path, modes),
            });
            let sink = MindSporeSink::create_by(creator.clone(), options)
                .map_err(|error| Failure::new(USAGE, error))?
                .with_tensors_where(self.tensors.clone());
            let target = Target::MindSpore(Arc::new(sink));
            let sinks = Sinks::new(target, creator, arguments, &[]);
            return Ok(self.with_failures(sinks, arguments));
        }
        let mut creator = Arc::new(Creator::new(modes));
        let target = match &self.places[..] {
            [] if arguments.stats => Target::Stats(Arc::default()),
            [] => Target::Nothing,
            places => {
                let of_place = |place: &Path| match is_dry {
                    true => Creator::pretending(modes),
                    false => Creator::in_dump(place, modes),
                };
                let sink;
                (sink, creator) = self.create_sink(places, of_place)?;
                Target::Acl(Arc::new(sink))
            }
        };
        let sinks = Sinks::new(target, creator, arguments, &arguments.narrow);
        Ok(self.with_failures(sinks, arguments))
    }

    fn with_failures(&self, sinks: Sinks, arguments: &RunArguments) -> Sinks {
        let wanted = self.failures.as_ref().filter(|_| !arguments.volume.dry_run);
        let failures = wanted.and_then(|dump| FailureDump::new(dump, arguments.modes.modes()));
        Sinks { failures, ..sinks }
    }

    /// A sink at the first place that is usable. Where files may never come, no directory is made for
    /// them before they do.
    fn create_sink(
        &self,
        places: &[PathBuf],
        creator: impl Fn(&Path) -> Creator,
    ) -> Result<(AclSink, Arc<Creator>), Failure> {
        let is_lazy = matches!(self.plan.purpose, Purpose::Overflow | Purpose::Failures(_));
        let mut first_error: Option<StoreError> = None;
        for place in places {
            let creator = Arc::new(creator(place));
            let sink = if is_lazy {
                // Created unless it is there, to see whether it is usable.
                creator
                    .create_dir(place)
                    .map(|()| AclSink::lazy_by(creator.clone(), place, &free_time(place)))
            } else {
                AclSink::create_by(creator.clone(), place, times())
            };
            match sink {
                Ok(sink) => {
                    let sink = sink.with_content(self.content.clone());
                    return Ok((sink.with_tensors_where(self.tensors.clone()), creator));
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        let error = first_error.map_or_else(|| anyhow!("no place to dump to"), Into::into);
        Err(Failure::new(USAGE, error))
    }
}

impl Sinks {
    fn new(
        target: Target,
        creator: Arc<Creator>,
        arguments: &RunArguments,
        narrow: &[NarrowFloat],
    ) -> Sinks {
        let targets = NarrowFloat::dtypes(narrow);
        let next: Option<Arc<dyn Sink>> = match &target {
            Target::Acl(sink) => Some(sink.clone()),
            Target::MindSpore(sink) => Some(sink.clone()),
            Target::Stats(sink) => Some(sink.clone()),
            Target::Nothing => None,
        };
        let dry_run = arguments.volume.dry_run.then(|| {
            let place = match &target {
                Target::Acl(sink) => sink.tree().root().to_owned(),
                Target::MindSpore(sink) => sink.tree().rank_dir(),
                Target::Stats(_) | Target::Nothing => PathBuf::from("."),
            };
            let next = next.clone().unwrap_or_else(|| Arc::new(NoSink));
            DryRun::new(creator.clone(), next, place)
        });
        let next = match &dry_run {
            Some(run) => Some(run.sink.clone() as Arc<dyn Sink>),
            None => next,
        };
        let ranges = (!targets.is_empty()).then(|| Arc::new(RangeSink::new(targets, next)));
        Sinks {
            target,
            creator,
            dry_run,
            ranges,
            failures: None,
        }
    }

    /// Creates what lies beside the dump.
    pub(super) fn creator(&self) -> &Creator {
        &self.creator
    }

    /// Returns the sink that a session writes to.
    pub(super) fn first(&self) -> Arc<dyn Sink> {
        if let (None, Some(run)) = (&self.ranges, &self.dry_run) {
            return run.sink.clone();
        }
        match (&self.ranges, &self.target) {
            (Some(ranges), _) => ranges.clone(),
            (None, Target::Acl(sink)) => sink.clone(),
            (None, Target::MindSpore(sink)) => sink.clone(),
            (None, Target::Stats(sink)) => sink.clone(),
            (None, Target::Nothing) => Arc::new(NoSink),
        }
    }

    pub(super) fn take_ranges(&self, narrow: &[NarrowFloat]) -> Result<Option<Ranges>, Failure> {
        let rows = self.ranges.as_ref().map(|sink| sink.take_rows());
        rows.map(|rows| Ranges::new(NarrowFloat::dtypes(narrow), rows))
            .transpose()
    }

    /// The directories that steps of `id` wrote to.
    pub(super) fn dump_dirs(&self, id: &ModelId, n_steps: u64) -> Vec<PathBuf> {
        let step_dir = |step| match &self.target {
            Target::Acl(sink) => Some(sink.tree().step_dir(id, step)),
            Target::MindSpore(sink) => Some(sink.step_dir(id, step)),
            Target::Stats(_) | Target::Nothing => None,
        };
        let mut dirs: Vec<PathBuf> = (0..n_steps).filter_map(step_dir).collect();
        dirs.dedup();
        dirs.retain(|dir| dir.is_dir());
        dirs
    }

    /// Writes what was overwritten beside the dump.
    pub(super) fn write_overwrites(&self, text: &str) -> Result<(), StoreError> {
        if let Target::Acl(sink) = &self.target {
            let path = sink.tree().root().join(OVERWRITES_FILE);
            self.creator.create_file(&path, &[text.as_bytes()])?;
        }
        Ok(())
    }

    /// The directory of operators that failed, if there is one.
    pub(super) fn failure_dir(&self, id: &ModelId, n_steps: u64) -> Option<PathBuf> {
        let dir = match &self.target {
            Target::Acl(sink) => sink.tree().failure_dir(id.device),
            Target::MindSpore(sink) => sink.failure_dir(id, n_steps.saturating_sub(1)),
            Target::Stats(_) | Target::Nothing => return None,
        };
        Some(dir).filter(|dir| dir.is_dir())
    }

    /// The directory that holds a tree of MindSpore.
    pub(super) fn tree_dir(&self) -> Option<PathBuf> {
        match &self.target {
            Target::MindSpore(sink) => Some(sink.tree().rank_dir()),
            Target::Acl(_) | Target::Stats(_) | Target::Nothing => None,
        }
    }

    /// Why tensors have no file, and how many.
    pub(super) fn refused(&self) -> Vec<(String, u64)> {
        match &self.target {
            Target::MindSpore(sink) => sink.refused(),
            Target::Acl(sink) => sink.refused(),
            Target::Stats(_) | Target::Nothing => Vec::new(),
        }
    }
}

/// Reads a configuration; tells what there is to tell about it.
fn read(path: &Path, arguments: &RunArguments) -> Result<Configured, Failure> {
    // The variable is MindSpore's, and so is the target.
    let is_mindspore = arguments.config.is_none() || arguments.target.is_some();
    if arguments.config.is_none() {
        check_file_name(path).map_err(|issues| refused(path, &issues))?;
    }
    let text = opscope_config::read_text(path)?;
    interpret(&Source::file(path, &text), arguments, is_mindspore)
}

fn interpret(
    source: &Source<'_>,
    arguments: &RunArguments,
    is_mindspore: bool,
) -> Result<Configured, Failure> {
    let Source { path, text, .. } = *source;
    let refused = |issues: Vec<Issue>| refused(path, &source.placed(issues));
    let env = Environment {
        device_id: arguments.device,
        ..crate::commands::environment()?
    };
    if is_mindspore || detect(text) == Dialect::MindSpore {
        let target = match arguments.target {
            Some(target) => target.into(),
            None => mindspore::default_target(&env),
        };
        let config = mindspore::load(text, target, &env).map_err(refused)?;
        tell(path, &source.placed(config.issues.clone()));
        let time = times().next().unwrap_or_default();
        let dump = Dump::new(config, arguments.rank, arguments.modes, time)?;
        return Ok(Configured::MindSpore(dump));
    }
    let loaded = opscope_config::check_nesting(text)
        .map_err(|issue| vec![*issue])
        .and_then(|()| acl::load(text, &env));
    let config = loaded.map_err(refused)?;
    tell(path, &source.placed(config.issues));
    Ok(Configured::Acl(config.dump))
}

/// The directory that a path means, if it exists.
fn real(place: &PathBuf) -> PathBuf {
    let real = place.canonicalize().or_else(|_| std::path::absolute(place));
    real.unwrap_or_else(|_| place.clone())
}

/// Tells why a configuration is refused.
pub(super) fn refused(path: &Path, issues: &[Issue]) -> Failure {
    tell(path, issues);
    let is_error = |issue: &&Issue| issue.severity == Severity::Error;
    let n = issues.iter().filter(is_error).count();
    let n = crate::format::count(n as u64, "error");
    let message = format!("the configuration is refused: {n}");
    Failure::message(USAGE, message)
}

fn tell(path: &Path, issues: &[Issue]) {
    for issue in issues {
        tell!("{}:{issue}", path.display());
    }
}

/// Names of a dump's directory: the second that it is now, and those that follow.
fn times() -> impl Iterator<Item = String> {
    let now = jiff::Zoned::now();
    (0..N_TIMES_MAX).map(move |seconds| {
        let time = now.saturating_add(jiff::Span::new().seconds(seconds));
        time.strftime("%Y%m%d%H%M%S").to_string()
    })
}

fn free_time(place: &Path) -> String {
    let mut times = times();
    times
        .find(|time| !place.join(time).exists())
        .unwrap_or_default()
}
