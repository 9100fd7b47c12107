//! Files in a dump's directories that are not read as a part of the dump.

use std::path::PathBuf;

use crate::file_format::mapping_csv;
use crate::temporary;
use crate::tree::acl::OVERWRITES_FILE;
use crate::tree::own::OWN_DIR;

/// A file or directory that is not read as a part of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// Where it is.
    pub path: PathBuf,
    /// Why.
    pub reason: PassReason,
}

/// Why something is not read as a part of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PassReason {
    /// `mapping.csv`: it was read for real names.
    RealNames,
    /// The directory in which runs describe themselves.
    OwnRecords,
    /// The list of values that a watched run has overwritten.
    Overwrites,
    /// A configuration: of MindSpore's, as the runtime below it gets it, or of msProbe's.
    Configuration,
    /// The arguments of one of MindSpore's kernels.
    KernelArguments,
    /// A file that is still being written, or was never finished.
    Unfinished,
    /// A hidden file, or a hidden directory with everything below it.
    Hidden,
    /// The text that accompanies the dump of a failing operator.
    FailureText,
    /// A table of statistics, where tensors are wanted.
    Statistics,
    /// A graph or a list of operators, where tensors are wanted.
    Graph,
    /// An array or JSON file that is what converting would make.
    Converted,
    /// An overflow record, where tensors are wanted.
    OverflowRecord,
    /// A file of elements, which tables name.
    Elements,
    /// The journal of a database, with which that is read.
    Journal,
    /// A value that is not a tensor, where tensors are saved.
    PlainValue,
    /// A run of which another one in the same place is read.
    OtherRun,
}

impl PassReason {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            PassReason::RealNames => "real_names",
            PassReason::OwnRecords => "own_records",
            PassReason::Overwrites => "overwrites",
            PassReason::Configuration => "configuration",
            PassReason::KernelArguments => "kernel_arguments",
            PassReason::Unfinished => "unfinished",
            PassReason::Hidden => "hidden",
            PassReason::FailureText => "failure_text",
            PassReason::Statistics => "statistics",
            PassReason::Graph => "graph",
            PassReason::Converted => "converted",
            PassReason::OverflowRecord => "overflow_record",
            PassReason::Elements => "elements",
            PassReason::Journal => "journal",
            PassReason::PlainValue => "plain_value",
            PassReason::OtherRun => "other_run",
        }
    }

    /// The words for such files, in the singular and the plural.
    pub fn nouns(self) -> [&'static str; 2] {
        match self {
            PassReason::RealNames => ["list of real names", "lists of real names"],
            PassReason::OwnRecords => ["record of runs", "records of runs"],
            PassReason::Overwrites => ["list of overwritten values", "lists of overwritten values"],
            PassReason::Configuration => ["configuration", "configurations"],
            PassReason::KernelArguments => ["file of arguments", "files of arguments"],
            PassReason::Unfinished => ["unfinished file", "unfinished files"],
            PassReason::Hidden => ["hidden file or directory", "hidden files or directories"],
            PassReason::FailureText => ["text about a failure", "texts about failures"],
            PassReason::Statistics => ["table of statistics", "tables of statistics"],
            PassReason::Graph => ["graph or list of operators", "graphs or lists of operators"],
            PassReason::Converted => ["array or JSON file", "arrays or JSON files"],
            PassReason::OverflowRecord => ["overflow record", "overflow records"],
            PassReason::Elements => ["file of elements", "files of elements"],
            PassReason::Journal => ["journal of a database", "journals of databases"],
            PassReason::PlainValue => ["value that is no tensor", "values that are no tensors"],
            PassReason::OtherRun => [
                "other run in the same place",
                "other runs in the same place",
            ],
        }
    }

    /// Whether every dump may have such files, so that they need not be reported.
    pub fn is_ordinary(self) -> bool {
        matches!(
            self,
            PassReason::RealNames
                | PassReason::OwnRecords
                | PassReason::Configuration
                | PassReason::KernelArguments
                | PassReason::Elements
                | PassReason::Journal
        )
    }
}

/// Why a file of this name is skipped, if it is.
pub(super) fn reason_of_name(file_name: &str) -> Option<PassReason> {
    Some(match file_name {
        mapping_csv::FILE_NAME => PassReason::RealNames,
        OVERWRITES_FILE => PassReason::Overwrites,
        OWN_DIR => PassReason::OwnRecords,
        _ if file_name.starts_with(temporary::PREFIX) => PassReason::Unfinished,
        _ if file_name.starts_with('.') => PassReason::Hidden,
        _ => return None,
    })
}
