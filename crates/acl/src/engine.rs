//! The engine of a program, chosen when the first model is loaded or the first dump begins.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use opscope_capture::Purpose;
use opscope_engine::choice::{EngineChoice, EngineRequest, choose};
use opscope_engine::{
    Engine, EngineError, FallbackModel, LoadOptions, LoadedModel, ModelSource, SharedEngine,
};

use crate::log::ProcessLog;

/// The engine selected by the variables `OPSCOPE_ENGINE` and `OPSCOPE_ENGINE_LIB`, or the best
/// available.
///
/// The search is deferred until first use, so that a program may still set the variables, and one
/// that loads no model loads no engine. Without an engine, loading a model reports the reason.
pub fn engine_of_environment() -> SharedEngine {
    Arc::new(LazyEngine::new(|| {
        choose(&EngineRequest::from_environment()?)
    }))
}

/// Chooses an engine once.
type Choose = fn() -> Result<EngineChoice, EngineError>;

/// An engine that is not chosen yet.
struct LazyEngine {
    choose: Choose,
    /// The engine, or why there is none.
    chosen: OnceLock<Result<EngineChoice, String>>,
}

impl LazyEngine {
    fn new(choose: Choose) -> LazyEngine {
        LazyEngine {
            choose,
            chosen: OnceLock::new(),
        }
    }

    fn chosen(&self) -> Result<&EngineChoice, &str> {
        let chosen = self.chosen.get_or_init(|| {
            let chosen = (self.choose)().map_err(|error| error.to_string())?;
            if let Some(warning) = &chosen.warning {
                // A replacement for the installed engine is reported here only.
                let log = ProcessLog::from_environment(|name| std::env::var(name).ok());
                log.error(format_args!("{warning}; using {}", chosen.engine.name()));
            }
            Ok(chosen)
        });
        chosen.as_ref().map_err(String::as_str)
    }
}

impl Engine for LazyEngine {
    fn name(&self) -> &'static str {
        self.chosen().map_or("none", |chosen| chosen.engine.name())
    }

    fn version(&self) -> Option<&str> {
        self.chosen().ok()?.engine.version()
    }

    fn library(&self) -> Option<&Path> {
        self.chosen().ok()?.engine.library()
    }

    fn load(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
    ) -> Result<Box<dyn LoadedModel>, EngineError> {
        Ok(self.load_for(source, options, Purpose::Values)?.model)
    }

    fn load_for(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
        purpose: Purpose,
    ) -> Result<FallbackModel, EngineError> {
        let chosen = self.chosen().map_err(|reason| {
            // A missing file is the program's mistake, with a separate code.
            let missing = match source {
                ModelSource::File(path) => std::fs::metadata(path).err().map(|error| (path, error)),
                ModelSource::Memory(_) | ModelSource::Part { .. } => None,
            };
            match missing {
                Some((path, source)) => EngineError::Read {
                    path: path.to_owned(),
                    source,
                },
                None => EngineError::NoEngine {
                    reason: reason.to_owned(),
                },
            }
        })?;
        chosen.load(source, options, purpose)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn it_is_asked_once_and_late() {
        static N_ASKED: AtomicU32 = AtomicU32::new(0);
        let engine = LazyEngine::new(|| {
            N_ASKED.fetch_add(1, Ordering::Relaxed);
            Err(EngineError::NoEngine {
                reason: "there is none".to_owned(),
            })
        });
        assert_eq!(N_ASKED.load(Ordering::Relaxed), 0);
        let load = |source| {
            let loaded = engine.load(source, &LoadOptions::with_threads(1));
            loaded.map(drop).unwrap_err().to_string()
        };
        assert_eq!(load(ModelSource::Memory(b"")), "there is none");
        assert_eq!((engine.name(), engine.version()), ("none", None));
        assert_eq!(engine.library(), None);
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(load(ModelSource::File(here)), "there is none");
        let absent = here.join("absent");
        let told = load(ModelSource::File(&absent));
        assert!(told.starts_with("cannot read the model"), "{told}");
        assert_eq!(N_ASKED.load(Ordering::Relaxed), 1);
    }
}
