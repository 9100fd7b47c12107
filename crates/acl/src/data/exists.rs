//! Asking whether a handle is one.

use crate::Process;
use crate::handle::Handle;

impl Process {
    /// Whether `desc` is a description of a model, filled or empty. For functions that need nothing
    /// of it.
    pub fn is_desc(&self, desc: Handle) -> bool {
        self.objects().model_descs.get(desc).is_some()
    }
}
