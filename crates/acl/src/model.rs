//! Loaded models.

mod aipp;
mod config;
mod description;
mod gears;
mod shapes;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use opscope_engine::{FallbackEngine, LoadedModel, ModelSignature};
use opscope_store::record::ModelId;

pub use self::aipp::{AippInfo, AippShape};
pub(crate) use self::aipp::{AippRole, InputAipp, parameter_bytes};
pub use self::config::ConfigValue;
pub(crate) use self::config::ModelConfig;
pub use self::description::NamedDims;
pub(crate) use self::description::{ModelDesc, ModelSide, ModelValue, dims_of, outputs};
pub(crate) use self::gears::ModelGears;
pub(crate) use self::shapes::{InputBuffer, extents, resolve};
use crate::dump::DumpRegistration;
use crate::lock::lock;

/// A model that was loaded.
pub(crate) struct AclModel {
    /// How dumps name it.
    pub(crate) id: Arc<ModelId>,
    pub(crate) signature: ModelSignature,
    pub(crate) description: Arc<ModelDesc>,
    pub(crate) registration: Mutex<DumpRegistration>,
    /// Held while the model runs.
    pub(crate) running: Mutex<ModelRunState>,
}

/// The part of a model that one execution at a time uses.
pub(crate) struct ModelRunState {
    pub(crate) engine: Box<dyn LoadedModel>,
    /// Executions so far, dumped or not.
    pub(crate) n_executions: u64,
    /// Where the model can be loaded from once more, by an engine that can do what a dump asks for.
    pub(crate) again: Option<ModelCopy>,
    /// The engine that runs it, if it is another one than the process has chosen.
    pub(crate) taken: Option<FallbackEngine>,
    /// Texts about its dump that were told, each once.
    pub(crate) told: HashSet<String>,
}

impl AclModel {
    /// Waits until the execution that is under way, if one is, has ended.
    pub(crate) fn wait(&self) {
        drop(lock(&self.running));
    }
}

/// The source of a model, as far as it is kept when the model is loaded.
#[derive(Clone)]
pub(crate) enum ModelCopy {
    File(PathBuf),
    /// Kept only for models that are dumped, or may be.
    Bytes(Arc<[u8]>),
}
