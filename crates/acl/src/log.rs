//! Messages of the library on standard error, and their minimum severity.

use std::fmt;

use opscope_store::visible::visible;

/// Environment variable with the minimum severity: 0 debug, 1 info, 2 warning, 3 error, 4 nothing.
const LEVEL: &str = "ASCEND_GLOBAL_LOG_LEVEL";
/// Errors only, as in the vendor's library.
const LEVEL_DEFAULT: u32 = 3;
const INFO: u32 = 1;
const WARNING: u32 = 2;
const ERROR: u32 = 3;

/// A log on standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessLog {
    level: u32,
}

impl ProcessLog {
    /// A log with the severity in the environment.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> ProcessLog {
        let level = variable(LEVEL).and_then(|text| text.trim().parse().ok());
        ProcessLog {
            level: level.unwrap_or(LEVEL_DEFAULT),
        }
    }

    /// Everything is as requested, and worth knowing.
    pub(crate) fn info(self, text: impl fmt::Display) {
        self.line(INFO, "info", &text);
    }

    /// Something may surprise the user.
    pub(crate) fn warning(self, text: impl fmt::Display) {
        self.line(WARNING, "warning", &text);
    }

    /// A request of the user was not fulfilled, and no return code says so.
    pub(crate) fn error(self, text: impl fmt::Display) {
        self.line(ERROR, "error", &text);
    }

    #[expect(clippy::print_stderr, reason = "standard error is where it goes")]
    fn line(self, severity: u32, name: &str, text: &dyn fmt::Display) {
        if severity >= self.level {
            // The text may quote names from files, which must not control a terminal.
            eprintln!("opscope: {name}: {}", visible(&text.to_string()));
        }
    }
}
