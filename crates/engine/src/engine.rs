//! The interface of engines.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use opscope_capture::{Purpose, Tap};
use opscope_store::record::Operator;
use opscope_tensor::Tensor;

use crate::description::{ModelDescription, ModelSignature};
use crate::error::EngineError;
use crate::rounding::{ResultRounding, ResultSurvey};

/// An engine that several users hold.
pub type SharedEngine = Arc<dyn Engine>;

/// Loads models.
pub trait Engine: Send + Sync {
    /// The engine's name, such as `tract`.
    fn name(&self) -> &'static str;

    /// Its version, if it has one.
    fn version(&self) -> Option<&str> {
        None
    }

    /// The file that it was loaded from, if it is not part of this program.
    fn library(&self) -> Option<&Path> {
        None
    }

    /// Reads a model and prepares it for running.
    ///
    /// # Errors
    /// [`EngineError`] if the file cannot be read, is no model, or needs what the engine lacks.
    fn load(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
    ) -> Result<Box<dyn LoadedModel>, EngineError>;

    /// [`Engine::load`] for runs of this purpose. An engine that combines several picks one that
    /// can run the model.
    ///
    /// # Errors
    /// As for [`Engine::load`].
    fn load_for(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
        purpose: Purpose,
    ) -> Result<FallbackModel, EngineError> {
        // An engine that is the only one has no choice to make.
        let _ = purpose;
        let model = self.load(source, options)?;
        Ok(FallbackModel { model, taken: None })
    }
}

/// A model that was loaded by one of several engines.
pub struct FallbackModel {
    /// The model.
    pub model: Box<dyn LoadedModel>,
    /// The engine that loaded it and why, if it is another one than the first.
    pub taken: Option<FallbackEngine>,
}

/// An engine that was taken in place of the first.
#[derive(Clone)]
pub struct FallbackEngine {
    /// The engine.
    pub engine: SharedEngine,
    /// The reason, as the failing engine reports it.
    pub reason: String,
}

/// Where a model comes from.
#[derive(Clone, Copy, Debug)]
pub enum ModelSource<'a> {
    /// A file. Its external data are relative to its directory.
    File(&'a Path),
    /// The bytes of such a file. Data outside are looked for in the current directory.
    Memory(&'a [u8]),
    /// The bytes of a model made from parts of the one at `path`. External data are relative to its
    /// directory.
    Part {
        /// The bytes.
        bytes: &'a [u8],
        /// Where the whole model is.
        path: &'a Path,
    },
}

/// A model that is ready to run. It may move from one thread to another.
pub trait LoadedModel: Send {
    /// The values, the operators and the rest that can be said of the model without running it.
    fn description(&self) -> &ModelDescription;

    /// The inputs and outputs of the model.
    fn signature(&self) -> &ModelSignature {
        &self.description().signature
    }

    /// The operators that a run may execute, in order of execution.
    fn operators(&self) -> &[Arc<Operator>] {
        &self.description().operators
    }

    /// Why the model cannot be run under a plan of this purpose, if so. Such a run is refused.
    fn refusal(&self, purpose: Purpose) -> Option<EngineError> {
        let _ = purpose;
        None
    }

    /// Prepares for runs with `tap`, so that the first run takes no longer than the others. The tap
    /// has begun no step yet. If the preparation fails, the run reports it.
    fn prepare(&mut self, tap: &Tap) {
        let _ = tap;
    }

    /// Releases resources that take long to release and only runs need. A later run recreates them.
    fn rest(&mut self) {}

    /// Takes the warnings about runs that went well; each is returned once.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Executes the model once.
    ///
    /// `inputs` follow the order of [`ModelSignature::inputs`] and have been checked against it.
    /// With a tap, every operator is shown to it; without one, or with one that is not
    /// [active](Tap::is_active), the run is as fast as the engine is.
    ///
    /// # Errors
    /// [`EngineError::Operator`] if an operator fails or panics, [`EngineError::Stopped`] if the
    /// tap asks to stop. Records captured before stay captured.
    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError>;

    /// Executes the model once and returns the operators that ran, and the types of their results.
    ///
    /// # Errors
    /// As for [`LoadedModel::run`], and [`EngineError::Engine`] of an engine that cannot round.
    fn survey_results(&mut self, inputs: &[Tensor]) -> Result<ResultSurvey, EngineError> {
        let _ = inputs;
        Err(cannot_round())
    }

    /// Executes the model once while results of operators are rounded.
    ///
    /// Nothing else differs from run to run: without anything to round, results are those of
    /// [`LoadedModel::run`]. Operators that no [survey](LoadedModel::survey_results) of this model
    /// has seen running are not rounded.
    ///
    /// # Errors
    /// As for [`LoadedModel::survey_results`].
    fn run_rounded(
        &mut self,
        inputs: &[Tensor],
        rounding: &ResultRounding,
    ) -> Result<Vec<Tensor>, EngineError> {
        let _ = (inputs, rounding);
        Err(cannot_round())
    }
}

/// The error of engines that leave results as they are.
fn cannot_round() -> EngineError {
    EngineError::Engine {
        engine: "the engine",
        reason: "it cannot round results of operators; tract and ONNX Runtime can".into(),
    }
}

/// How to prepare a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Threads that operators may use.
    pub n_threads: usize,
    /// Which graph is run and shown.
    pub graph: GraphKind,
    /// Names of the devices' interfaces that operators may run on, the preferred one first; what
    /// none of them has runs on the CPU. Empty for the CPU alone.
    pub providers: Vec<String>,
    /// Whether taps are to show every value of the runs to come. The engine may then prepare the
    /// model for such runs alone; others work, and take longer to begin.
    pub is_watched: bool,
}

impl LoadOptions {
    /// The model's own graph, on the CPU.
    pub fn with_threads(n_threads: usize) -> LoadOptions {
        LoadOptions {
            n_threads,
            graph: GraphKind::Original,
            providers: Vec::new(),
            is_watched: false,
        }
    }
}

/// Which of a model's graphs is run.
///
/// ```
/// use opscope_engine::GraphKind;
///
/// assert_eq!("executed".parse(), Ok(GraphKind::Executed));
/// assert_eq!(GraphKind::Original.name(), "original");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphKind {
    /// The one in the file, operator by operator.
    #[default]
    Original,
    /// The graph that the engine makes of it to run it fast: operators are fused, constants
    /// computed beforehand.
    Executed,
}

impl GraphKind {
    /// The word for it in options and records.
    pub fn name(self) -> &'static str {
        match self {
            GraphKind::Original => "original",
            GraphKind::Executed => "executed",
        }
    }
}

impl FromStr for GraphKind {
    type Err = String;

    /// # Errors
    /// Text that names the words that are allowed.
    fn from_str(text: &str) -> Result<GraphKind, String> {
        let all = [GraphKind::Original, GraphKind::Executed];
        let found = all.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| "expected original or executed".to_owned())
    }
}
