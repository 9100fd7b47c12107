//! The dump of a configuration.

use std::path::PathBuf;

use opscope_capture::{FailureDetail, Plan};
use opscope_store::file_format::stats_csv::StatsColumns;

use super::settings::AclSettings;
use crate::ConfigIssue;

/// A checked configuration: the dump, and remarks about the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclConfig {
    /// The dump, or `None` if the configuration is valid but requests none. (A library with a dump
    /// in force keeps it then.)
    pub dump: Option<AclDump>,
    /// The settings in the file; `None` if it has no `dump` object, or an empty one.
    pub settings: Option<AclSettings>,
    /// Warnings and notes; no errors.
    pub issues: Vec<ConfigIssue>,
}

/// A dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclDump {
    /// The kind of dump.
    pub mode: DumpMode,
    /// Rules that select the values of models.
    pub plan: Plan,
    /// The form of a written tensor.
    pub content: AclContent,
    /// Whether operators outside a model are dumped too.
    pub has_single_operators: bool,
    /// Absolute directories in order of preference: the first that exists or can be created, and is
    /// readable and writable, is used. There is at least one. All but dumps of failures have
    /// exactly one, which exists unless it was given as `ip:path`.
    pub places: Vec<PathBuf>,
}

/// Whether a tensor is written whole, as statistics, or both. Configurations select one of the
/// first two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclContent {
    /// The whole tensor.
    Tensors,
    /// A row of these statistics.
    Statistics(StatsColumns),
    /// A row of these statistics, and the whole tensor if the rules of a command select it.
    Both(StatsColumns),
    /// A row in a table shared by all operators of a step. Creating files is most of the cost of
    /// small tensors.
    StepTable,
}

/// The kinds of dumps; a configuration enables one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpMode {
    /// Values of operators.
    Operator,
    /// Values of operators outside models, and of no model.
    SingleOperators,
    /// Values of operators that other operators may overwrite.
    Watcher,
    /// Operators that overflow.
    Overflow,
    /// Operators that fail.
    Failures(FailureDetail),
}

impl DumpMode {
    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            DumpMode::Operator => "operator",
            DumpMode::SingleOperators => "single_operator",
            DumpMode::Watcher => "watcher",
            DumpMode::Overflow => "overflow",
            DumpMode::Failures(FailureDetail::Brief) => "exception_brief",
            DumpMode::Failures(FailureDetail::Normal) => "exception_norm",
            DumpMode::Failures(FailureDetail::Full) => "exception_detail",
        }
    }
}
