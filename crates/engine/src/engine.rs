//! The interface of engines.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use opscope_capture::{Purpose, Quantised, Tap};
use opscope_store::record::Operator;
use opscope_store::record::graph::TensorType;
use opscope_tensor::{DType, Tensor};

use crate::EngineError;

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

    /// [`Engine::load`] for runs of this purpose. An engine that stands for several takes the one that can.
    ///
    /// # Errors
    /// As for [`Engine::load`].
    fn load_for(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
        purpose: Purpose,
    ) -> Result<TakenModel, EngineError> {
        let _ = purpose;
        let model = self.load(source, options)?;
        Ok(TakenModel { model, taken: None })
    }
}

/// A model that was loaded by one of several engines.
pub struct TakenModel {
    /// The model.
    pub model: Box<dyn LoadedModel>,
    /// The engine that loaded it and why, if it is another one than the first.
    pub taken: Option<TakenEngine>,
}

/// An engine that was taken in place of the first.
#[derive(Clone)]
pub struct TakenEngine {
    /// The engine.
    pub engine: SharedEngine,
    /// Why, in the words of the one that cannot.
    pub reason: String,
}

/// Where a model comes from.
#[derive(Clone, Copy, Debug)]
pub enum ModelSource<'a> {
    /// A file. Data that it keeps outside are looked for beside it.
    File(&'a Path),
    /// The bytes of such a file. Data outside are looked for in the current directory.
    Memory(&'a [u8]),
    /// The bytes of a model that was made of parts of the one at `path`. Data outside are looked for beside it.
    Part {
        /// The bytes.
        bytes: &'a [u8],
        /// Where the whole model is.
        path: &'a Path,
    },
}

/// A model that is ready to run. It may move from one thread to another.
pub trait LoadedModel: Send {
    /// The values that the model takes and gives.
    fn signature(&self) -> &Signature;

    /// The operators that a run may execute, in order of execution. Operators of a branch that is
    /// not taken are listed but do not execute.
    fn operators(&self) -> &[Arc<Operator>];

    /// Names of the values that are written into the graph as nodes of their own. Weights are not
    /// among them.
    fn constants(&self) -> &[String] {
        &[]
    }

    /// Values that a body is given by the operator that runs it, by the tasks of the operators that read them;
    /// sorted.
    fn carried(&self) -> &[(u32, String)] {
        &[]
    }

    /// Types of inputs, weights and constants, by name, as far as the model says them; an extent that
    /// it leaves open is -1.
    fn value_types(&self) -> &[(String, TensorType)] {
        &[]
    }

    /// Versions of the sets of operators that the model uses, by domain; the standard one has none.
    fn opsets(&self) -> &[(String, i64)] {
        &[]
    }

    /// Why the model cannot be run under a plan of this purpose, if so. Such a run is refused.
    fn refusal(&self, purpose: Purpose) -> Option<EngineError> {
        let _ = purpose;
        None
    }

    /// Gets ready for runs with `tap`, which has begun no step yet, so that the first one takes no longer than
    /// the others. If that fails, so does the run.
    fn prepare(&mut self, tap: &Tap) {
        let _ = tap;
    }

    /// Takes the texts about the runs so far that should be told although they went well; each is given once.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Where operators have quantised values; of an engine that does not look for them, nowhere.
    fn quantised(&self) -> &[Quantised] {
        &[]
    }

    /// Executes the model once.
    ///
    /// `inputs` follow the order of [`Signature::inputs`] and have been checked against it. With a
    /// tap, every operator is shown to it; without one, or with one that is not
    /// [active](Tap::is_active), the run is as fast as the engine is.
    ///
    /// # Errors
    /// [`EngineError::Operator`] if an operator fails or panics, [`EngineError::Stopped`] if the tap
    /// asks to stop. What the tap has seen until then stays captured.
    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError>;
}

/// How to prepare a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Threads that operators may use.
    pub n_threads: usize,
    /// Which graph is run and shown.
    pub graph: GraphKind,
    /// Names of the devices' interfaces that operators may run on, the preferred one first; what none of them has runs
    /// on the CPU. Empty for the CPU alone.
    pub providers: Vec<String>,
}

impl LoadOptions {
    /// The model's own graph, on the CPU.
    pub fn with_threads(n_threads: usize) -> LoadOptions {
        LoadOptions {
            n_threads,
            graph: GraphKind::Original,
            providers: Vec::new(),
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

/// The values that a model takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// The name that the graph carries inside the file.
    pub graph_name: String,
    /// The values that a caller has to provide, in order.
    pub inputs: Vec<ValueInfo>,
    /// Graph inputs that the file itself gives a value; they cannot be set.
    pub initialised_inputs: Vec<String>,
    /// The results, in order. What the file does not say of one is [`DType::Undefined`] or `None`;
    /// nothing holds the engine to what it does say.
    pub outputs: Vec<ValueInfo>,
}

/// A model's input or output as the file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Extents, or `None` if the file does not say how many axes there are.
    pub dims: Option<Vec<Dim>>,
}

/// An extent in a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// Known.
    Fixed(usize),
    /// Known by name only.
    Named(String),
    /// Not known.
    Unknown,
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(n) => write!(f, "{n}"),
            Dim::Named(name) => f.write_str(name),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

impl ValueInfo {
    /// The shape as text, such as `[batch,3,224,224]`.
    pub fn shape_text(&self) -> String {
        match &self.dims {
            None => "of any shape".to_owned(),
            Some(dims) => {
                let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
                format!("[{}]", dims.join(","))
            }
        }
    }

    /// Whether `shape` agrees with every extent that is known.
    pub fn admits(&self, shape: &[usize]) -> bool {
        self.dims.as_ref().is_none_or(|dims| {
            dims.len() == shape.len()
                && dims.iter().zip(shape).all(|(dim, n)| match dim {
                    Dim::Fixed(fixed) => fixed == n,
                    Dim::Named(_) | Dim::Unknown => true,
                })
        })
    }
}
