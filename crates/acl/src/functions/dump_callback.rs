//! Passes dumps to the program instead of writing them.

use crate::callback::DumpCallback;
use crate::lock::lock;
use crate::status::FAILURE;
use crate::{AclProcess, Answer};

impl AclProcess {
    /// `acldumpRegCallback`: passes dumped files to `callback` until
    /// [`AclProcess::unregister_callback`]. A second one is accepted and ignored. The configuration
    /// still selects the dump: without one the callback gets nothing.
    ///
    /// # Errors
    /// `FAILURE` without a callback, or if `flag` is not 0.
    pub fn register_callback(&self, callback: Option<DumpCallback>, flag: i32) -> Answer {
        const NAME: &str = "acldumpRegCallback";
        let Some(callback) = callback else {
            return Err(self.refuse(FAILURE, "EP0007", &[NAME, "messageCallback"]));
        };
        if flag != 0 {
            let placeholders = [NAME, &flag.to_string(), "flag", "it must be 0"];
            return Err(self.refuse(FAILURE, "EP0006", &placeholders));
        }
        // As in the vendor's library, a second registration succeeds and changes nothing.
        lock(&self.callback).get_or_insert(callback);
        Ok(())
    }

    /// `acldumpUnregCallback`: later executions write to disk again.
    pub fn unregister_callback(&self) {
        lock(&self.callback).take();
    }
}
