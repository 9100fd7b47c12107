//! The dump that a configuration asks for.

use std::path::PathBuf;

use opscope_capture::{FailureDetail, Plan};
use opscope_store::file_format::stats_csv::StatsColumns;

use super::settings::AclSettings;
use crate::ConfigIssue;

/// A configuration after it was checked: the dump to make, and remarks about the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclConfig {
    /// The dump to make, or `None` if the configuration is accepted and asks for nothing. (A
    /// library that had one in force keeps it then.)
    pub dump: Option<AclDump>,
    /// The settings as the file's words give them; `None` if it has no `dump` object, or an empty
    /// one.
    pub settings: Option<AclSettings>,
    /// Warnings and notes; no errors.
    pub issues: Vec<ConfigIssue>,
}

/// A dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclDump {
    /// Which kind of dump it is.
    pub mode: DumpMode,
    /// Rules that choose the values of models to keep.
    pub plan: Plan,
    /// The form in which a tensor is written.
    pub content: AclContent,
    /// Whether operators that run outside a model are kept too.
    pub has_single_operators: bool,
    /// Absolute directories, the first choice first: the first one that exists or can be created,
    /// and can be read and written, is meant. There is at least one. All but dumps of failures have
    /// exactly one, which exists unless it was given as `ip:path`.
    pub places: Vec<PathBuf>,
}

/// Whether a tensor is written whole, as statistics, or as both. Configurations ask for the first
/// two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclContent {
    /// All of it.
    Tensors,
    /// A row of these statistics.
    Statistics(StatsColumns),
    /// A row of these statistics, and all of it where the rules of a command choose it.
    Both(StatsColumns),
    /// A row in a table that all operators of a step share. Creating files is most of what small
    /// tensors cost.
    StepTable,
}

/// The kinds of dumps; a configuration switches on one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpMode {
    /// Values of operators.
    Operator,
    /// Values of operators that run outside models, and of no model.
    SingleOperators,
    /// Values of operators that others may overwrite.
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
