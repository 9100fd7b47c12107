//! Handing dumps to the program in place of writing them.

use crate::callback::DumpCallback;
use crate::lock::lock;
use crate::status::FAILURE;
use crate::{AclProcess, Answer};

impl AclProcess {
    /// `acldumpRegCallback`: hands what dumps would write to `callback`, from now until
    /// [`AclProcess::unregister_callback`]. A second one is accepted and the first stays. What is
    /// kept still depends on a configuration: without one nothing comes.
    ///
    /// # Errors
    /// `FAILURE` without a callback, or if `flag` is not 0.
    pub fn register_callback(&self, callback: Option<DumpCallback>, flag: i32) -> Answer {
        const NAME: &str = "acldumpRegCallback";
        let Some(callback) = callback else {
            return Err(self.refuse(FAILURE, "EP0007", &[NAME, "messageCallback"]));
        };
        if flag != 0 {
            let placeholders = [NAME, &flag.to_string(), "flag", "it has to be 0"];
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
