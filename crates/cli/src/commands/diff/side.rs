//! The two sides: models to run or dumps to read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::Purpose;
use opscope_engine::onnx::WidenedModel;
use opscope_engine::{GraphKind, LoadedModel, ModelSource};
use opscope_store::record::ModelId;
use opscope_store::remote;

use crate::commands::dump::file_stem;
use crate::engine::{EngineArguments, EngineInUse, GraphArguments};
use crate::exit::{CommandFailure, CommandResult, check_path};

/// The suffix of models.
const MODEL_SUFFIX: &str = "onnx";

/// A path on the command line, of a model or a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SidePath {
    Model(PathBuf),
    Dump(PathBuf),
}

impl SidePath {
    /// Files with the suffix of models are models; everything else is a dump.
    pub(super) fn new(path: &Path) -> CommandResult<SidePath> {
        check_path(path).map_err(|failure| with_python(failure, path))?;
        let is_model = path
            .extension()
            .is_some_and(|suffix| suffix == MODEL_SUFFIX);
        Ok(if is_model && !remote::is_dir(path) {
            SidePath::Model(path.to_owned())
        } else {
            SidePath::Dump(path.to_owned())
        })
    }

    pub(super) fn is_dump(&self) -> bool {
        matches!(self, SidePath::Dump(_))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            SidePath::Model(path) | SidePath::Dump(path) => path,
        }
    }
}

/// Names the command that runs functions of Python, if a missing file is named like one.
fn with_python(failure: CommandFailure, path: &Path) -> CommandFailure {
    let is_name = |text: &str| {
        let mut letters = text.chars();
        letters
            .next()
            .is_some_and(|c| c.is_alphabetic() || c == '_')
            && letters.all(|c| c.is_alphanumeric() || "._".contains(c))
    };
    let parts = path.to_str().and_then(|text| text.split_once(':'));
    if !parts.is_some_and(|(module, function)| is_name(module) && is_name(function)) {
        return failure;
    }
    failure.with_hint("`python -m opscope diff` runs functions that make PyTorch models")
}

/// A loaded model.
pub(super) struct ModelSide {
    pub(super) path: PathBuf,
    pub(super) engine: Arc<EngineInUse>,
    pub(super) model: Box<dyn LoadedModel>,
    pub(super) id: Arc<ModelId>,
    /// Its name in results: the path and the run options.
    pub(super) label: PathBuf,
    /// The model that runs instead of the one in the file; its weights may be in files next to
    /// that.
    pub(super) widened: Option<WidenedModel>,
}

impl ModelSide {
    /// Loads a model, widened to float32 if requested.
    pub(super) fn load(
        path: &Path,
        engine: &Arc<EngineInUse>,
        widened: Option<WidenedModel>,
    ) -> CommandResult<ModelSide> {
        let source = (widened.as_ref()).map_or(ModelSource::File(path), WidenedModel::source);
        let (model, engine) = engine.load(source, Purpose::Values)?;
        let options = engine.load_options();
        let mut how = vec![engine.name().to_owned()];
        if options.graph == GraphKind::Executed {
            how.push("executed graph".to_owned());
        }
        how.extend(options.providers.iter().cloned());
        how.extend(widened.as_ref().map(|_| "as float32".to_owned()));
        // Not a path, but results and pages print it as they print a dump's path.
        let label = PathBuf::from(format!("{} [{}]", path.display(), how.join(", ")));
        let id = ModelId::first_load(file_stem(path), model.signature().graph_name.clone());
        Ok(ModelSide {
            path: path.to_owned(),
            engine,
            model,
            id: Arc::new(id),
            label,
            widened,
        })
    }
}

/// The run options of a side, to compare both sides. `label` precedes the name of its engine.
pub(super) fn engine(
    label: &'static str,
    arguments: (&EngineArguments, &GraphArguments),
    n_threads: usize,
    is_quiet: bool,
) -> CommandResult<EngineInUse> {
    let (engine, graph) = arguments;
    let engine = EngineInUse::labelled(label, engine, graph, n_threads, is_quiet)?;
    Ok(engine.watching())
}
