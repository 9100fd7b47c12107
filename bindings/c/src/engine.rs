//! The engine that models are loaded with.

use std::sync::Arc;

use opscope_acl::SharedEngine;

#[cfg(feature = "tract")]
pub(crate) fn engine() -> SharedEngine {
    Arc::new(opscope_engine::onnx::Tract)
}

#[cfg(not(feature = "tract"))]
pub(crate) fn engine() -> SharedEngine {
    Arc::new(none::NoEngine)
}

#[cfg(not(feature = "tract"))]
mod none {
    use opscope_engine::{Engine, EngineError, LoadOptions, LoadedModel, ModelSource};

    /// Says that there is no engine when a model is loaded, so that all else can still be used.
    pub(super) struct NoEngine;

    impl Engine for NoEngine {
        fn name(&self) -> &'static str {
            "none"
        }

        fn load(
            &self,
            source: ModelSource<'_>,
            _options: &LoadOptions,
        ) -> Result<Box<dyn LoadedModel>, EngineError> {
            if let ModelSource::File(path) = source {
                std::fs::metadata(path).map_err(|source| EngineError::Read {
                    path: path.to_owned(),
                    source,
                })?;
            }
            Err(EngineError::Engine {
                engine: "libascendcl",
                reason: "it was built without an engine to run models with; build it with \
                         `--features tract`"
                    .to_owned(),
            })
        }
    }
}
