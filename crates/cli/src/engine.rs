//! Which engine runs models, and how: from options and the environment.

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
use crate::exit::{CommandFailure, USAGE};

/// Which engine.
#[derive(Clone, PartialEq, clap::Args)]
pub(crate) struct EngineArguments {
    /// Engine that runs the model; `auto` takes ONNX Runtime if it finds one that works, else tract
    /// [default: what OPSCOPE_ENGINE says, else auto]
    #[arg(long, value_name = "ENGINE", value_parser = engine_kind(), help_heading = "Engine")]
    engine: Option<EngineKind>,
    /// Where ONNX Runtime's library is: the file, or a directory that has it [default: what
    /// OPSCOPE_ENGINE_LIB says, else beside the Python package `onnxruntime`]
    #[arg(long, value_name = "FILE|DIR", help_heading = "Engine")]
    engine_lib: Option<PathBuf>,
}

/// Options that choose which graph of a model runs, and where.
#[derive(Default, PartialEq, clap::Args)]
pub(crate) struct GraphArguments {
    /// Run the graph that the model has, or what ONNX Runtime makes of it to run it fast
    #[arg(long, value_name = "GRAPH", default_value = "original", value_parser = graph_kind(), help_heading = "Engine")]
    graph: GraphKind,
    /// An execution provider of ONNX Runtime to run operators on, such as `cuda` or `cuda:1`; may
    /// be repeated, the preferred one first. What none of them has runs on the CPU
    #[arg(long, value_name = "NAME", help_heading = "Engine")]
    provider: Vec<String>,
}

/// Which engine, which graph and where, for a second side of a comparison.
#[derive(clap::Args)]
pub(crate) struct GoldenEngineArguments {
    /// Engine that runs GOLDEN [default: that of TARGET]
    #[arg(long, value_name = "ENGINE", value_parser = engine_kind(), help_heading = "Engine")]
    golden_engine: Option<EngineKind>,
    /// Where ONNX Runtime's library for GOLDEN is [default: that of TARGET]
    #[arg(long, value_name = "FILE|DIR", help_heading = "Engine")]
    golden_engine_lib: Option<PathBuf>,
    /// The graph of GOLDEN that runs
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
    /// Whether another graph, or another place, is asked for than without any.
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

    /// The engine and the graph of the golden side. It has the target's engine unless it names one.
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
    fn wanted(&self) -> Result<EngineRequest, CommandFailure> {
        if self.engine == Some(EngineKind::Tract) && self.engine_lib.is_some() {
            // Neither option can win quietly: a library that is named is wanted, and so is an
            // engine.
            let message = "--engine-lib says where ONNX Runtime is, and --engine asks for tract";
            return Err(CommandFailure::message(USAGE, message));
        }
        let of_environment = EngineRequest::from_environment()?;
        let of_option = self.engine_lib.as_ref().map(|path| NamedLibrary {
            path: path.clone(),
            named_by: "--engine-lib",
        });
        // An option counts more than a variable: whoever gives the library by one wants it.
        let implied = of_option.as_ref().map(|_| EngineKind::OnnxRuntime);
        Ok(EngineRequest {
            kind: self.engine.or(implied).unwrap_or(of_environment.kind),
            library: of_option.or(of_environment.library),
        })
    }

    /// Chooses the engine, and says on standard error which one it is.
    pub(crate) fn choose(&self) -> Result<EngineChoice, CommandFailure> {
        let chosen = choice::choose(&self.wanted()?)?;
        report_choice(&chosen, false);
        Ok(chosen)
    }
}

/// Says which engine it is, unless `is_quiet`, and what was wrong with another one.
fn report_choice(chosen: &EngineChoice, is_quiet: bool) {
    if let Some(warning) = &chosen.warning {
        report!("opscope: warning: {warning}");
    }
    if !is_quiet {
        report!("opscope: engine: {}", chosen.reason);
    }
}

/// The engine of a run, and how it prepares models.
#[derive(Clone)]
pub(crate) struct EngineInUse {
    chosen: EngineChoice,
    options: LoadOptions,
    is_quiet: bool,
}

impl EngineInUse {
    /// Chooses the engine, and says which one it is, unless `is_quiet`.
    pub(crate) fn new(
        engine: &EngineArguments,
        graph: &GraphArguments,
        n_threads: usize,
        is_quiet: bool,
    ) -> Result<EngineInUse, CommandFailure> {
        let chosen = choice::choose(&engine.wanted()?)?;
        // Neither option has a meaning for tract, and a run without them would show another graph,
        // or run elsewhere, than was asked for.
        if chosen.kind == EngineKind::Tract {
            let option = match (graph.graph, graph.provider.first()) {
                (GraphKind::Executed, _) => Some("--graph executed".to_owned()),
                (GraphKind::Original, Some(name)) => Some(format!("--provider {name}")),
                (GraphKind::Original, None) => None,
            };
            if let Some(option) = option {
                // A library that was found and cannot be used explains more than that tract was
                // taken.
                let why = chosen.warning.as_ref().unwrap_or(&chosen.reason);
                let message =
                    format!("{option} needs ONNX Runtime, and the engine is tract: {why}");
                return Err(CommandFailure::message(USAGE, message));
            }
        }
        report_choice(&chosen, is_quiet);
        let options = LoadOptions {
            graph: graph.graph,
            providers: graph.provider.clone(),
            ..LoadOptions::with_threads(n_threads)
        };
        Ok(EngineInUse {
            chosen,
            options,
            is_quiet,
        })
    }

    /// The same engine for models all of whose runs show every value.
    pub(crate) fn watching(mut self) -> EngineInUse {
        self.options.is_watched = true;
        self
    }

    pub(crate) fn name(&self) -> &'static str {
        self.chosen.engine.name()
    }

    /// The engine, as it was chosen.
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

    /// Loads a model for runs of this purpose. Gives the engine that did it too: where the choice
    /// was open, it may be another one, which is told.
    pub(crate) fn load(
        self: &Arc<Self>,
        source: ModelSource<'_>,
        purpose: Purpose,
    ) -> Result<(Box<dyn LoadedModel>, Arc<EngineInUse>), CommandFailure> {
        let loaded = self.chosen.load(source, &self.options, purpose);
        let FallbackModel { model, taken } = loaded.map_err(|error| match error {
            // Nothing has been done yet: what cannot be had is what was asked for beside the model.
            EngineError::Engine { .. } if self.options != self.plain_options() => {
                CommandFailure::new(USAGE, error)
            }
            error => error.into(),
        })?;
        let Some(taken) = taken else {
            return Ok((model, self.clone()));
        };
        // Reports and the record of the run must name the engine that did the work, so that the
        // choice that failed for this model is not handed on.
        let engine = self.with(taken);
        report_choice(&engine.chosen, self.is_quiet);
        Ok((model, Arc::new(engine)))
    }

    /// Loads a model for runs that nobody watches.
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

    /// The same with another engine.
    fn with(&self, taken: FallbackEngine) -> EngineInUse {
        let name = taken.engine.name();
        let reason = match taken.engine.version() {
            Some(version) => format!("{name} {version}: {}", taken.reason),
            None => format!("{name}: {}", taken.reason),
        };
        EngineInUse {
            chosen: EngineChoice {
                // There are two.
                kind: EngineKind::Tract,
                engine: taken.engine,
                reason,
                warning: None,
                other: None,
            },
            options: self.options.clone(),
            is_quiet: self.is_quiet,
        }
    }

    fn plain_options(&self) -> LoadOptions {
        LoadOptions {
            is_watched: self.options.is_watched,
            ..LoadOptions::with_threads(self.options.n_threads)
        }
    }

    /// Adds what a report says of it; `engine` is the word that `--engine` takes.
    pub(crate) fn add_to(&self, report: &mut Map<String, Value>) {
        report.insert("engine".into(), json!(self.chosen.kind.name()));
        report.insert("engine_version".into(), json!(self.chosen.engine.version()));
        report.insert("engine_library".into(), json!(self.library()));
        report.insert("engine_reason".into(), json!(self.chosen.reason));
        report.insert("engine_graph".into(), json!(self.options.graph.name()));
        report.insert("engine_providers".into(), json!(self.options.providers));
    }

    /// Adds it to the record of a run.
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
