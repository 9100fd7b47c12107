//! Descriptions of operators that run on their own, asked for by `aclopStartDumpArgs`.
//!
//! The vendor writes them for operators of its own kernel interface, which Opscope does not have,
//! so there is nothing to describe: the calls are checked, the directory is made, and stays empty.

use std::path::Path;

use super::exception::is_usable;
use crate::lock::lock;
use crate::status::FAILURE;
use crate::{AclProcess, Answer};

/// `ACL_OP_DUMP_OP_AICORE_ARGS`.
const AICORE_ARGS: u32 = 1;

impl AclProcess {
    /// `aclopStartDumpArgs`: makes the directory. See the module for why nothing comes into it.
    ///
    /// # Errors
    /// `FAILURE` for a null path, a kind without its lowest bit, if it was called before, and for a
    /// directory that cannot be made, read or written.
    pub fn start_dump_args(&self, kind: u32, path: Option<&Path>) -> Answer {
        const NAME: &str = "aclopStartDumpArgs";
        let Some(path) = path else {
            return Err(self.refuse(FAILURE, "EP0007", &[NAME, "path"]));
        };
        self.check_kind(NAME, kind)?;
        let mut is_started = lock(&self.is_dumping_args);
        if *is_started {
            let reason = "it was called before, and aclopStopDumpArgs was not called since";
            return Err(self.refuse(FAILURE, "EP0008", &[NAME, reason]));
        }
        if path.as_os_str().is_empty() || !is_usable(path) {
            let reason = "it has to be a directory that can be read and written";
            let placeholders = [NAME, &*path.to_string_lossy(), "path", reason];
            return Err(self.refuse(FAILURE, "EP0006", &placeholders));
        }
        *is_started = true;
        Ok(())
    }

    /// `aclopStopDumpArgs`, also without [`AclProcess::start_dump_args`] before.
    ///
    /// # Errors
    /// `FAILURE` for a kind without its lowest bit.
    pub fn stop_dump_args(&self, kind: u32) -> Answer {
        self.check_kind("aclopStopDumpArgs", kind)?;
        *lock(&self.is_dumping_args) = false;
        Ok(())
    }

    fn check_kind(&self, name: &str, kind: u32) -> Answer {
        if kind & AICORE_ARGS != 0 {
            return Ok(());
        }
        let reason = "its lowest bit has to be set";
        let placeholders = [name, &kind.to_string(), "dumpType", reason];
        Err(self.refuse(FAILURE, "EP0006", &placeholders))
    }
}
