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

/// A loaded model.
pub(crate) struct AclModel {
    /// Its identity in dumps.
    pub(crate) id: Arc<ModelId>,
    pub(crate) signature: ModelSignature,
    pub(crate) description: Arc<ModelDesc>,
    pub(crate) registration: Mutex<DumpRegistration>,
    /// Locked while the model runs.
    pub(crate) running: Mutex<ModelRunState>,
}

/// The state of a model that one execution at a time uses.
pub(crate) struct ModelRunState {
    pub(crate) engine: Box<dyn LoadedModel>,
    /// Number of executions so far, dumped or not.
    pub(crate) n_executions: u64,
    /// The source to load the model from again, with an engine that supports the requested dump.
    pub(crate) again: Option<ModelCopy>,
    /// The engine that runs it, if it is not the process's.
    pub(crate) taken: Option<FallbackEngine>,
    /// Messages about its dump that were already reported.
    pub(crate) told: HashSet<String>,
}

impl AclModel {
    /// Waits until the running execution, if any, has ended.
    pub(crate) fn wait(&self) {
        drop(lock(&self.running));
    }
}

/// The source of a model, as far as it is stored at load time.
#[derive(Clone)]
pub(crate) enum ModelCopy {
    File(PathBuf),
    /// Stored only for models that are or may be dumped.
    Bytes(Arc<[u8]>),
}
