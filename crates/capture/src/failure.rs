//! The report about an operator that failed.

use std::backtrace::Backtrace;
use std::fmt;

use crate::FailureDetail;

/// Why, and in which circumstances, an operator failed.
#[derive(Clone, Debug)]
pub struct OperatorFailure {
    /// How much the report contains.
    pub detail: FailureDetail,
    /// The engine's error message.
    pub reason: String,
    /// Further lines from the engine, such as the program's call stack. Reported at every level of
    /// detail.
    pub notes: String,
    /// The circumstances; only with [`FailureDetail::Full`].
    pub trace: Option<FailureTrace>,
}

/// Where the program and the model were when an operator failed.
#[derive(Clone, Debug)]
pub struct FailureTrace {
    /// Position of the operator in the execution of the step, counted from 0.
    pub position_in_step: u64,
    /// Operators that the session had seen before it.
    pub n_operators_before: u64,
    /// Lines about the memory of the process, as the operating system words them.
    pub memory: Vec<String>,
    /// Calls that led to the failure, or why they are not known.
    pub backtrace: String,
}

impl FailureTrace {
    /// Captures the current state of the process. Slow: it resolves function names.
    pub(crate) fn capture(position_in_step: u64, n_operators_before: u64) -> FailureTrace {
        FailureTrace {
            position_in_step,
            n_operators_before,
            memory: memory_lines(),
            // The detail requires it, whatever `RUST_BACKTRACE` is.
            backtrace: Backtrace::force_capture().to_string(),
        }
    }
}

impl fmt::Display for FailureTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "position in step: {}", self.position_in_step)?;
        writeln!(f, "operators before: {}", self.n_operators_before)?;
        for line in &self.memory {
            writeln!(f, "{line}")?;
        }
        write!(f, "\nbacktrace:\n{}", self.backtrace)
    }
}

/// Returns the lines about the size of the process in `/proc/self/status`; none without such a
/// file.
fn memory_lines() -> Vec<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .filter(|line| {
            ["VmPeak:", "VmSize:", "VmHWM:", "VmRSS:"]
                .iter()
                .any(|name| line.starts_with(name))
        })
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}
