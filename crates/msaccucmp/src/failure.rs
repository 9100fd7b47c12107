//! Everything that can go wrong, with the reference's number for it.

use crate::log;

/// Exit status when something fails that the reference does not expect to fail.
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
    /// An option's value, or a path with a character that is not allowed.
    InvalidParameter = 6,
    /// A dump file that does not hold together.
    InvalidDumpData = 11,
    /// `-o` or `-i` beyond the last tensor, `-r` or `-n` out of range.
    IndexOutOfBounds = 12,
    /// A converted overflow record that is no JSON.
    Json = 13,
    /// More than one converted record for one file.
    MoreFilesMatch = 17,
    /// A directory without dumps, or with dumps of several kinds.
    DumpFile = 18,
    /// An output file that could not be written.
    WriteFile = 19,
    /// Dumps of kinds that are not compared with each other.
    DumpType = 20,
    /// A dtype that is not supported.
    DataType = 21,
    /// A layout that is not supported, or a pair of them.
    Format = 22,
    /// The text of `-s`, or shapes that do not fit each other.
    Shape = 23,
    /// A file whose name does not end in `.npy`.
    FileType = 24,
    /// A conversion that failed.
    Conversion = 26,
    /// A producer that a fusion rule names in a way that is not understood.
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
    /// A slice with another number of elements than its shape.
    SliceShape = 40,
    /// A FFTS+ attribute for another number of tensors, or an input whose producer is unknown.
    InputMapping = 42,
    /// A nano dump with a broken header.
    Nano = 47,
}

/// A failure and how far it reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolFailure {
    /// One that the reference reports with a code; the next file is still converted.
    Coded(ErrorCode, String),
    /// One that has been logged already, by the same rules.
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

    /// Writes the message to the log, unless that has happened.
    pub(super) fn log(&self) {
        match self {
            ToolFailure::Coded(_, message) | ToolFailure::Unexpected(message) => {
                log::error(message);
            }
            ToolFailure::Logged(_) => {}
        }
    }

    /// Logs the message and keeps the code, for callers that have more to say afterwards.
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
