//! All failures, with the reference's numbers.

use crate::log;

/// Exit status for failures that the reference does not expect.
pub(super) const UNEXPECTED_STATUS: i32 = 1;

/// The reference's error numbers, which are exit statuses too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorCode {
    /// An error of one operator that the reference did not expect.
    Unknown = 1,
    /// No dump of an operator.
    NoDumpFile = 2,
    /// A path that is missing, unreadable or of the wrong kind.
    InvalidPath = 3,
    /// An overflow record that could not be converted.
    ParseDumpFile = 4,
    /// An option's value, or a path with a forbidden character.
    InvalidParameter = 6,
    /// An inconsistent dump file.
    InvalidDumpData = 11,
    /// `-o` or `-i` beyond the last tensor, `-r` or `-n` out of range.
    IndexOutOfBounds = 12,
    /// A converted overflow record that is not JSON.
    Json = 13,
    /// More than one converted record for one file.
    MoreFilesMatch = 17,
    /// A directory without dumps, or with dumps of several kinds.
    DumpFile = 18,
    /// An output file that could not be written.
    WriteFile = 19,
    /// Two kinds of dumps that cannot be compared.
    DumpType = 20,
    /// A dtype that is not supported.
    DataType = 21,
    /// An unsupported layout, or pair of layouts.
    Format = 22,
    /// The text of `-s`, or shapes that do not match.
    Shape = 23,
    /// A file without the suffix `.npy`.
    FileType = 24,
    /// A conversion that failed.
    Conversion = 26,
    /// A malformed producer in a fusion rule.
    JsonFile = 29,
    /// An operator that is not compared.
    Unsupported = 30,
    /// No known algorithm was chosen.
    Algorithm = 31,
    /// A file of an earlier run that could not be deleted.
    DeleteFile = 32,
    /// A shape to which a `FRACTAL_NZ` tensor cannot be cut.
    FractalNz = 34,
    /// An accelerator that is unknown, or a record without overflow (first layout).
    OverflowType = 35,
    /// A record without overflow (second layout).
    OverflowStatus = 36,
    /// A file name with an unknown kind of task.
    TaskType = 37,
    /// A nano dump whose size does not match its header.
    SizeMismatch = 39,
    /// A slice whose number of elements differs from its shape.
    SliceShape = 40,
    /// A FFTS+ attribute for another number of tensors, or an input whose producer is unknown.
    InputMapping = 42,
    /// A nano dump with a broken header.
    Nano = 47,
}

/// A failure and its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolFailure {
    /// A failure that the reference reports with a code; it continues with the next file.
    Coded(ErrorCode, String),
    /// A failure that was already logged.
    Logged(ErrorCode),
    /// An exception that the reference does not catch; the command ends with status 1.
    Unexpected(String),
}

impl ToolFailure {
    /// A failure with a message to log.
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> ToolFailure {
        ToolFailure::Coded(code, message.into())
    }

    /// A failure that the reference would not catch.
    pub(super) fn unexpected(message: impl Into<String>) -> ToolFailure {
        ToolFailure::Unexpected(message.into())
    }

    /// The exit status.
    pub(super) fn status(&self) -> i32 {
        match self {
            ToolFailure::Coded(code, _) | ToolFailure::Logged(code) => *code as i32,
            ToolFailure::Unexpected(_) => UNEXPECTED_STATUS,
        }
    }

    /// Logs the message, unless that has happened.
    pub(super) fn log(&self) {
        match self {
            ToolFailure::Coded(_, message) | ToolFailure::Unexpected(message) => {
                log::error(message);
            }
            ToolFailure::Logged(_) => {}
        }
    }

    /// Logs the message and keeps the code, for callers that have more to report.
    #[must_use]
    pub(super) fn logged(self) -> ToolFailure {
        self.log();
        match self {
            ToolFailure::Coded(code, _) => ToolFailure::Logged(code),
            // An exception keeps its text because the command's last line repeats it.
            other => other,
        }
    }
}
