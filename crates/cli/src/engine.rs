//! The choice of engine and its settings, from options and the environment.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use opscope_capture::Purpose;
use opscope_dump::note_engine;
use opscope_engine::choice::{self, EngineChoice, EngineKind, EngineRequest, NamedLibrary};
use opscope_engine::{
    EngineError, FallbackEngine, FallbackModel, GraphKind, LoadOptions, LoadedModel, ModelSource,
};
use opscope_store::file_format::run_json::RunRecord;
use serde_json::{Map, Value, json};

use crate::console::report;
use crate::exit::{CommandFailure, CommandResult, USAGE};

/// The engine to use.
#[derive(Clone, PartialEq, clap::Args)]
pub(crate) struct EngineArguments {
    /// Engine that runs the model; `auto` means ONNX Runtime if a working one is found, otherwise
    /// tract [default: OPSCOPE_ENGINE, or auto]
    #[arg(long, value_name = "ENGINE", value_parser = engine_kind(), help_heading = "Engine")]
    engine: Option<EngineKind>,
    /// ONNX Runtime's library: the file, or its directory [default: OPSCOPE_ENGINE_LIB, or the one
    /// in the Python package `onnxruntime`]
    #[arg(long, value_name = "FILE|DIR", help_heading = "Engine")]
    engine_lib: Option<PathBuf>,
}

/// Options that select which graph of a model runs, and on which device.
#[derive(Default, PartialEq, clap::Args)]
pub(crate) struct GraphArguments {
    /// Run the model's own graph, or the one that ONNX Runtime optimises for speed
    #[arg(long, value_name = "GRAPH", default_value = "original", value_parser = graph_kind(), help_heading = "Engine")]
    graph: GraphKind,
    /// An execution provider of ONNX Runtime for operators, such as `cuda` or `cuda:1`; may be
    /// repeated, the preferred one first. Unsupported operators run on the CPU
    #[arg(long, value_name = "NAME", help_heading = "Engine")]
    provider: Vec<String>,
}

/// Engine, graph and providers of the golden side.
#[derive(clap::Args)]
pub(crate) struct GoldenEngineArguments {
    /// Engine that runs GOLDEN [default: that of TARGET]
    #[arg(long, value_name = "ENGINE", value_parser = engine_kind(), help_heading = "Engine")]
    golden_engine: Option<EngineKind>,
    /// ONNX Runtime's library for GOLDEN [default: that of TARGET]
    #[arg(long, value_name = "FILE|DIR", help_heading = "Engine")]
    golden_engine_lib: Option<PathBuf>,
    /// The graph of GOLDEN to run
    #[arg(long, value_name = "GRAPH", default_value = "original", value_parser = graph_kind(), help_heading = "Engine")]
    golden_graph: GraphKind,
    /// An execution provider of ONNX Runtime for GOLDEN; may be repeated [default: the CPU]
    #[arg(long, value_name = "NAME", help_heading = "Engine")]
    golden_provider: Vec<String>,
}

impl EngineArguments {
    /// Whether any of them is given.
    pub(crate) fn is_given(&self) -> bool {
        self.engine.is_some() || self.engine_lib.is_some()
    }
}

impl GraphArguments {
    /// Whether the options differ from the default graph and device.
    pub(crate) fn is_given(&self) -> bool {
        self.graph != GraphKind::default() || !self.provider.is_empty()
    }
}

impl GoldenEngineArguments {
    /// Whether any of them is given.
    pub(crate) fn is_given(&self) -> bool {
        let has_engine = self.golden_engine.is_some() || self.golden_engine_lib.is_some();
        let has_graph = self.golden_graph != GraphKind::default();
        has_engine || has_graph || !self.golden_provider.is_empty()
    }

    /// The engine and graph of the golden side. The target's engine is the default.
    pub(crate) fn resolve(&self, target: &EngineArguments) -> (EngineArguments, GraphArguments) {
        let names_one = self.golden_engine.is_some() || self.golden_engine_lib.is_some();
        let engine = if names_one {
            EngineArguments {
                engine: self.golden_engine,
                engine_lib: self.golden_engine_lib.clone(),
            }
        } else {
            target.clone()
        };
        let graph = GraphArguments {
            graph: self.golden_graph,
            provider: self.golden_provider.clone(),
        };
        (engine, graph)
    }
}

fn engine_kind() -> impl TypedValueParser<Value = EngineKind> {
    let names = EngineKind::ALL.map(EngineKind::name);
    PossibleValuesParser::new(names).try_map(|text| text.parse::<EngineKind>())
}

fn graph_kind() -> impl TypedValueParser<Value = GraphKind> {
    let names = [GraphKind::Original, GraphKind::Executed].map(GraphKind::name);
    PossibleValuesParser::new(names).try_map(|text| text.parse::<GraphKind>())
}

impl EngineArguments {
    fn wanted(&self) -> CommandResult<EngineRequest> {
        if self.engine == Some(EngineKind::Tract) && self.engine_lib.is_some() {
            // Neither option may silently win, as both are explicit.
            let message = "--engine-lib is for ONNX Runtime, but --engine selects tract";
            return Err(CommandFailure::message(USAGE, message));
        }
        let of_environment = EngineRequest::from_environment()?;
        let of_option = self.engine_lib.as_ref().map(|path| NamedLibrary {
            path: path.clone(),
            named_by: "--engine-lib",
        });
        // An option takes precedence over a variable: passing the library selects ONNX Runtime.
        let implied = of_option.as_ref().map(|_| EngineKind::OnnxRuntime);
        Ok(EngineRequest {
            kind: self.engine.or(implied).unwrap_or(of_environment.kind),
            library: of_option.or(of_environment.library),
        })
    }

    /// Chooses the engine, and prints its name to standard error.
    pub(crate) fn choose(&self) -> CommandResult<EngineChoice> {
        let chosen = choice::choose(&self.wanted()?)?;
        report_choice(ENGINE, &chosen, false);
        Ok(chosen)
    }
}

/// The first word of a line that names the engine, where a single model runs.
const ENGINE: &str = "engine";

/// Prints the chosen engine, unless `is_quiet`, and any problem with another one.
fn report_choice(label: &str, chosen: &EngineChoice, is_quiet: bool) {
    if let Some(warning) = &chosen.warning {
        report!("opscope: warning: {warning}");
    }
    if !is_quiet {
        report!("opscope: {label}: {}", chosen.reason);
    }
}

/// The engine of a run, and its settings for models.
#[derive(Clone)]
pub(crate) struct EngineInUse {
    chosen: EngineChoice,
    options: LoadOptions,
    /// The first word of a line that names another engine, taken for a model.
    label: &'static str,
    is_quiet: bool,
}

impl EngineInUse {
    /// Chooses the engine, and prints its name unless `is_quiet`.
    pub(crate) fn new(
        engine: &EngineArguments,
        graph: &GraphArguments,
        n_threads: usize,
        is_quiet: bool,
    ) -> CommandResult<EngineInUse> {
        EngineInUse::labelled(ENGINE, engine, graph, n_threads, is_quiet)
    }

    /// [`EngineInUse::new`] with other words in front of the name.
    pub(crate) fn labelled(
        label: &'static str,
        engine: &EngineArguments,
        graph: &GraphArguments,
        n_threads: usize,
        is_quiet: bool,
    ) -> CommandResult<EngineInUse> {
        let chosen = choice::choose(&engine.wanted()?)?;
        // tract supports neither option, and ignoring them would run another graph, or on another
        // device, than requested.
        if chosen.kind == EngineKind::Tract {
            let option = match (graph.graph, graph.provider.first()) {
                (GraphKind::Executed, _) => Some("--graph executed".to_owned()),
                (GraphKind::Original, Some(name)) => Some(format!("--provider {name}")),
                (GraphKind::Original, None) => None,
            };
            if let Some(option) = option {
                // An unusable library explains more than that tract was chosen.
                let why = chosen.warning.as_ref().unwrap_or(&chosen.reason);
                let message =
                    format!("{option} needs ONNX Runtime, but the engine is tract: {why}");
                return Err(CommandFailure::message(USAGE, message));
            }
        }
        report_choice(label, &chosen, is_quiet);
        let options = LoadOptions {
            graph: graph.graph,
            providers: graph.provider.clone(),
            ..LoadOptions::with_threads(n_threads)
        };
        Ok(EngineInUse {
            chosen,
            options,
            label,
            is_quiet,
        })
    }

    /// The same engine for one of two models.
    pub(crate) fn of_side(mut self, label: &'static str) -> EngineInUse {
        self.label = label;
        self
    }

    /// The same engine, for models whose runs expose every value.
    pub(crate) fn watching(mut self) -> EngineInUse {
        self.options.is_watched = true;
        self
    }

    pub(crate) fn name(&self) -> &'static str {
        self.chosen.engine.name()
    }

    /// The engine choice.
    pub(crate) fn choice(&self) -> &EngineChoice {
        &self.chosen
    }

    /// Threads, graph and providers.
    pub(crate) fn load_options(&self) -> &LoadOptions {
        &self.options
    }

    /// Which graph of a model it runs.
    pub(crate) fn graph(&self) -> GraphKind {
        self.options.graph
    }

    /// Loads a model for runs of this purpose. Also returns the engine used: with an automatic
    /// choice it may be another one, which is reported.
    pub(crate) fn load(
        self: &Arc<Self>,
        source: ModelSource<'_>,
        purpose: Purpose,
    ) -> CommandResult<(Box<dyn LoadedModel>, Arc<EngineInUse>)> {
        let loaded = self.chosen.load(source, &self.options, purpose);
        let FallbackModel { model, taken } = loaded.map_err(|error| match error {
            // Nothing has been done yet: the requested options are what is unavailable.
            EngineError::Engine { .. } if self.options != self.plain_options() => {
                CommandFailure::new(USAGE, error)
            }
            error => error.into(),
        })?;
        let Some(taken) = taken else {
            return Ok((model, self.clone()));
        };
        // Reports and the run's record must name the engine that did the work, so the choice that
        // failed for this model is dropped.
        let engine = self.with(taken);
        report_choice(self.label, &engine.chosen, self.is_quiet);
        Ok((model, Arc::new(engine)))
    }

    /// Loads a model for unobserved runs.
    pub(crate) fn load_alone(
        &self,
        source: ModelSource<'_>,
    ) -> Result<Box<dyn LoadedModel>, EngineError> {
        let options = LoadOptions {
            is_watched: false,
            ..self.options.clone()
        };
        let loaded = self.chosen.load(source, &options, Purpose::Values);
        loaded.map(|loaded| loaded.model)
    }

    /// The same settings with another engine.
    fn with(&self, taken: FallbackEngine) -> EngineInUse {
        let name = taken.engine.name();
        let reason = match taken.engine.version() {
            Some(version) => format!("{name} {version}: {}", taken.reason),
            None => format!("{name}: {}", taken.reason),
        };
        EngineInUse {
            chosen: EngineChoice {
                // There are only two engines.
                kind: EngineKind::Tract,
                engine: taken.engine,
                reason,
                warning: None,
                other: None,
            },
            options: self.options.clone(),
            label: self.label,
            is_quiet: self.is_quiet,
        }
    }

    fn plain_options(&self) -> LoadOptions {
        LoadOptions {
            is_watched: self.options.is_watched,
            ..LoadOptions::with_threads(self.options.n_threads)
        }
    }

    /// Adds the engine to a report; `engine` has the value that `--engine` takes.
    pub(crate) fn add_to(&self, report: &mut Map<String, Value>) {
        report.insert("engine".into(), json!(self.chosen.kind.name()));
        report.insert("engine_version".into(), json!(self.chosen.engine.version()));
        report.insert("engine_library".into(), json!(self.library()));
        report.insert("engine_reason".into(), json!(self.chosen.reason));
        report.insert("engine_graph".into(), json!(self.options.graph.name()));
        report.insert("engine_providers".into(), json!(self.options.providers));
    }

    /// Adds the engine to the record of a run.
    pub(crate) fn record(&self, record: &mut RunRecord) {
        note_engine(record, &*self.chosen.engine);
        record.engine_graph = Some(self.options.graph.name().to_owned());
        record.engine_providers.clone_from(&self.options.providers);
        record.n_engine_threads = self.options.n_threads as u64;
    }

    fn library(&self) -> Option<String> {
        let library = self.chosen.engine.library();
        library.map(|path| path.display().to_string())
    }
}
