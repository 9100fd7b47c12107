//! Switches to an engine that supports the requested dump, so that switching a dump on fails no
//! execution.

use opscope_capture::Purpose;
use opscope_engine::{EngineError, FallbackEngine, FallbackModel, ModelSource};

use crate::AclProcess;
use crate::lock::lock;
use crate::model::{AclModel, ModelCopy, ModelRunState};

impl AclProcess {
    /// The purpose of the dump in force.
    pub(super) fn purpose_at_load(&self) -> Option<Purpose> {
        lock(&self.dump).purpose()
    }

    /// The source to load a model from again. Its bytes are stored only if it may be dumped.
    pub(super) fn source_for_later(
        &self,
        source: ModelSource<'_>,
        is_dumped: bool,
    ) -> Option<ModelCopy> {
        match source {
            ModelSource::File(path) | ModelSource::Part { path, .. } => {
                Some(ModelCopy::File(path.to_owned()))
            }
            ModelSource::Memory(bytes) => {
                // A control file may request a dump at any time; otherwise a copy would waste
                // memory.
                let may_be_dumped = is_dumped || self.control.is_some();
                may_be_dumped.then(|| ModelCopy::Bytes(bytes.into()))
            }
        }
    }

    /// Reports that a fallback engine replaced the first one.
    pub(super) fn tell_taken(&self, model: &str, taken: Option<&FallbackEngine>) {
        if let Some(FallbackEngine { engine, reason }) = taken {
            let name = engine.name();
            self.log
                .warning(format_args!("model `{model}` runs in {name}: {reason}"));
        }
    }

    /// Whether a plan of this purpose can be followed, possibly with another engine. If not, the
    /// model runs without it, and the reason is reported once.
    pub(super) fn can_follow(
        &self,
        model: &AclModel,
        running: &mut ModelRunState,
        purpose: Purpose,
    ) -> bool {
        let Some(refusal) = running.engine.refusal(purpose) else {
            return true;
        };
        // Tried once: otherwise a model that cannot be loaded would be tried before every
        // execution.
        let again = running.again.take();
        let loaded = again.as_ref().and_then(|copy| {
            let source = match copy {
                ModelCopy::File(path) => ModelSource::File(path),
                ModelCopy::Bytes(bytes) => ModelSource::Memory(bytes),
            };
            self.load_for(source, purpose).ok()
        });
        if let Some(FallbackModel { model: engine, taken }) = loaded
            && engine.refusal(purpose).is_none()
            // The file may have been replaced.
            && *engine.signature() == model.signature
            && engine.operators().len() == running.engine.operators().len()
        {
            self.tell_taken(&model.id.file_stem, taken.as_ref());
            running.engine = engine;
            running.taken = taken;
            return true;
        }
        self.tell_once(running, &not_dumped(model, &refusal));
        false
    }

    /// Reports a gap in the dump of a model, once.
    pub(super) fn tell_once(&self, running: &mut ModelRunState, text: &str) {
        if running.told.insert(text.to_owned()) {
            self.dump_failed(text);
        }
    }
}

fn not_dumped(model: &AclModel, refusal: &EngineError) -> String {
    let name = &model.id.file_stem;
    format!("nothing of model `{name}` is dumped, it runs without: {refusal}")
}
