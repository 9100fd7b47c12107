//! Loading and unloading models.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use opscope_capture::Purpose;
use opscope_engine::{EngineError, FallbackModel, LoadOptions, ModelSource};
use opscope_store::record::ModelId;

use crate::lock::lock;
use crate::model::{AclModel, ModelDesc, ModelRunState, outputs};
use crate::status::{
    GE_EXEC_MODEL_DATA_SIZE_INVALID, GE_EXEC_MODEL_ID_INVALID, GE_EXEC_MODEL_PATH_INVALID,
    GE_EXEC_NOT_INIT, GE_INTERNAL_ERROR, GE_LOAD_MODEL, GE_PARAM_INVALID, INVALID_PARAM,
    RT_MODEL_EXECUTE,
};
use crate::{AclProcess, Answer, Status};

/// Work memory size returned by `aclmdlQuerySize`. The memory is not used, but programs allocate
/// it, and allocating 0 bytes is an error.
const WORK_BYTES: usize = 512;

impl AclProcess {
    /// `aclmdlLoadFromFile`. Returns the model's ID: IDs count from 1 and are never reused.
    ///
    /// # Errors
    /// `GE_EXEC_NOT_INIT` before [`AclProcess::init`], `GE_EXEC_MODEL_PATH_INVALID` if the file
    /// cannot be opened, `GE_EXEC_MODEL_DATA_SIZE_INVALID` if it is damaged or not a model, or if
    /// the file with its gears is damaged or does not match it, `GE_LOAD_MODEL` if the engine does
    /// not support it.
    pub fn load_from_file(&self, path: &Path) -> Answer<u32> {
        self.load(ModelSource::File(path))
    }

    /// `aclmdlLoadFromMem`.
    ///
    /// # Errors
    /// As for [`AclProcess::load_from_file`], and `INVALID_PARAM` for no bytes.
    pub fn load_from_mem(&self, bytes: &[u8]) -> Answer<u32> {
        check_bytes(bytes)?;
        self.load(ModelSource::Memory(bytes))
    }

    fn load(&self, source: ModelSource<'_>) -> Answer<u32> {
        self.check_executor("a model was loaded")?;
        let (file, file_stem) = match source {
            ModelSource::File(path) | ModelSource::Part { path, .. } => {
                (Some(path), file_stem(path))
            }
            ModelSource::Memory(_) => (None, String::new()),
        };
        // The purpose affects the choice: an engine may be able to run the model but not to dump
        // it.
        let purpose = self.purpose_at_load();
        let FallbackModel { model, taken } =
            self.load_engine(source, purpose.unwrap_or(Purpose::Values))?;
        let mut engine = model;
        self.tell_taken(&file_stem, taken.as_ref());
        let signature = engine.signature().clone();
        let gears = self.gears(file, &signature)?;
        // This may run the model, so it comes before other threads can.
        let outputs = outputs(&mut *engine);
        let operators = engine.operators().to_vec();
        let again = self.source_for_later(source, purpose.is_some());
        let id = self.register_model(|load, registration| {
            // The ID is not public yet: a dump configured concurrently affects all of the model or
            // nothing.
            let description = ModelDesc::new(Some(load), &signature, &outputs, operators, gears);
            AclModel {
                id: Arc::new(ModelId {
                    file_stem,
                    graph_name: signature.graph_name.clone(),
                    load: Some(load),
                    device: 0,
                }),
                signature,
                description: Arc::new(description),
                registration: Mutex::new(registration),
                running: Mutex::new(ModelRunState {
                    engine,
                    n_executions: 0,
                    again,
                    taken,
                    told: HashSet::new(),
                }),
            }
        });
        Ok(id)
    }

    /// `aclmdlQuerySize`: bytes of work and weight memory, which is not used: memory passed when
    /// loading is left alone. The file must exist but is not read.
    ///
    /// # Errors
    /// As for [`AclProcess::load_from_file`].
    pub fn query_size(&self, path: &Path) -> Answer<(usize, usize)> {
        self.check_executor("a model's size was asked for")?;
        let metadata = std::fs::metadata(path).map_err(|source| {
            self.engine_error(&EngineError::Read {
                path: path.to_owned(),
                source,
            })
        })?;
        if !metadata.is_file() || metadata.len() == 0 {
            let reason = "it is empty, or not a regular file";
            let placeholders = [&*path.to_string_lossy(), reason];
            return Err(self.refuse(GE_EXEC_MODEL_DATA_SIZE_INVALID, "EH0004", &placeholders));
        }
        let weights = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        Ok((WORK_BYTES, weights))
    }

    /// `aclmdlQuerySizeFromMem`.
    ///
    /// # Errors
    /// As for [`AclProcess::load_from_mem`].
    pub fn query_size_from_mem(&self, bytes: &[u8]) -> Answer<(usize, usize)> {
        check_bytes(bytes)?;
        self.check_executor("a model's size was asked for")?;
        Ok((WORK_BYTES, bytes.len()))
    }

    /// `aclmdlUnload`. A running execution continues to its end.
    ///
    /// # Errors
    /// `GE_EXEC_NOT_INIT` before [`AclProcess::init`], `GE_EXEC_MODEL_ID_INVALID`.
    pub fn unload(&self, model_id: u32) -> Answer {
        self.check_executor("a model was unloaded")?;
        // Freeing a large model takes time, so it happens without the lock.
        let removed = lock(&self.models).by_id.remove(&model_id);
        removed
            .map(drop)
            .ok_or_else(|| self.unknown_model(model_id))
    }

    /// The loaded model with this ID.
    pub(crate) fn model(&self, model_id: u32) -> Answer<Arc<AclModel>> {
        let models = lock(&self.models);
        let model = models.by_id.get(&model_id).cloned();
        drop(models);
        model.ok_or_else(|| self.unknown_model(model_id))
    }

    fn unknown_model(&self, model_id: u32) -> Status {
        let placeholders = [&model_id.to_string(), "modelId", "no such model is loaded"];
        self.refuse(GE_EXEC_MODEL_ID_INVALID, "EH0001", &placeholders)
    }

    pub(crate) fn check_executor(&self, what: &str) -> Answer {
        if self.is_initialized() {
            return Ok(());
        }
        Err(self.inner_error(GE_EXEC_NOT_INIT, &format!("{what} before aclInit")))
    }

    pub(crate) fn load_engine(
        &self,
        source: ModelSource<'_>,
        purpose: Purpose,
    ) -> Answer<FallbackModel> {
        let loaded = self.load_for(source, purpose);
        loaded.map_err(|error| self.engine_error(&error))
    }

    /// Loads a model with one thread per core.
    pub(super) fn load_for(
        &self,
        source: ModelSource<'_>,
        purpose: Purpose,
    ) -> Result<FallbackModel, EngineError> {
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        let options = LoadOptions::with_threads(n_threads);
        self.engine.load_for(source, &options, purpose)
    }

    /// Reports an engine's error, and returns its code.
    pub(crate) fn engine_error(&self, error: &EngineError) -> Status {
        let text = with_causes(error);
        match error {
            EngineError::Read { path, source } => {
                let placeholders = [&*path.to_string_lossy(), &source.to_string()];
                self.refuse(GE_EXEC_MODEL_PATH_INVALID, "EH0003", &placeholders)
            }
            EngineError::Invalid { path, reason } => {
                let placeholders = [&*path.to_string_lossy(), reason];
                self.refuse(GE_EXEC_MODEL_DATA_SIZE_INVALID, "EH0004", &placeholders)
            }
            EngineError::Unsupported { .. } => self.inner_error(GE_LOAD_MODEL, &text),
            EngineError::Operator { .. } => self.inner_error(RT_MODEL_EXECUTE, &text),
            EngineError::Input(_) => self.inner_error(GE_PARAM_INVALID, &text),
            EngineError::Library { .. }
            | EngineError::NoEngine { .. }
            | EngineError::Watch { .. }
            | EngineError::Engine { .. }
            | EngineError::Write { .. }
            | EngineError::Stopped => self.inner_error(GE_INTERNAL_ERROR, &text),
        }
    }
}

/// The file name after the last `/`, cut at the last `.`.
fn file_stem(path: &Path) -> String {
    let path = path.to_string_lossy();
    let name = path.rsplit('/').next().unwrap_or_default();
    // `Path::file_stem` would keep a name such as `.onnx` whole.
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.to_owned()
}

pub(super) fn check_bytes(bytes: &[u8]) -> Answer {
    if bytes.is_empty() {
        return Err(INVALID_PARAM);
    }
    Ok(())
}

/// An error with its causes on one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_are_cut_at_the_last_dot() {
        let cases = [
            ("/m/net.onnx", "net"),
            ("net.v1.onnx", "net.v1"),
            ("m.d/net", "net"),
            (".onnx", ""),
            ("/m/", ""),
        ];
        for (path, stem) in cases {
            assert_eq!(file_stem(Path::new(path)), stem, "{path}");
        }
    }
}
