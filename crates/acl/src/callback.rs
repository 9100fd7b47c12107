//! Handing dumps to the program in place of writing them.

use std::sync::Arc;

use crate::process::lock;
use crate::status::FAILURE;
use crate::{Answer, Process};

/// A piece of a file that would have been written. Pieces of one file come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The path that the file would have had, absolute.
    pub file_name: &'a str,
    /// The next bytes of the file.
    pub bytes: &'a [u8],
    /// Whether they end the file.
    pub is_last: bool,
}

/// Receives dumps. What it answers is not used, as in the vendor's library: nothing is written to
/// disk instead.
pub type DumpCallback = Arc<dyn Fn(&Chunk<'_>) -> i32 + Send + Sync>;

impl Process {
    /// `acldumpRegCallback`: hands what dumps would write to `callback`, from now until
    /// [`Process::unregister_callback`]. A second one is accepted and the first stays. What is kept
    /// still depends on a configuration: without one nothing comes.
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
        lock(&self.callback).get_or_insert(callback);
        Ok(())
    }

    /// `acldumpUnregCallback`: later executions write to disk again.
    pub fn unregister_callback(&self) {
        lock(&self.callback).take();
    }
}
