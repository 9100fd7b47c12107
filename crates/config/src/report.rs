//! Refusals as the vendor's library reports them: a code, and the arguments of its message.
//!
//! Callers of the vendor's interface query them, so they are data here.

use std::fmt;

/// A report, by code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorReport {
    /// `EP0001`: an item is missing, empty or of the wrong type.
    Item {
        /// Path of the item.
        item: String,
        /// Why it is refused.
        reason: RefusalReason,
    },
    /// `EP0002`: a value is not an allowed word.
    Word {
        /// Path of the item.
        item: String,
        /// The value, or its part that is not allowed.
        value: String,
        /// The allowed words, sorted, with `/` between them.
        expected: String,
    },
    /// `EP0003`: a value is not usable.
    Value {
        /// Path of the item.
        item: String,
        /// The value, or its part that is not usable.
        value: String,
        /// Why it is refused.
        reason: RefusalReason,
    },
    /// `EP0004`: the file is not valid JSON.
    Syntax {
        /// The parser's message.
        reason: String,
    },
    /// `EP0005`: two settings exclude each other.
    Conflict(SettingConflict),
}

/// An item that conflicts with another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingConflict {
    /// Path of the item.
    pub item: String,
    /// The forbidden value; `None` if the item is not allowed at all.
    pub value: Option<String>,
    /// The other item and a value.
    pub other: (String, String),
    /// Whether the conflict is that the other item has this value, or that it does not.
    pub is_other_so: bool,
}

/// Why an item or a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The item is missing.
    NotFound,
    /// The value is empty.
    Empty,
    /// It is not a string.
    NotString,
    /// It is not an array.
    NotArray,
    /// It is not an object.
    NotObject,
    /// A member of the array is not a string.
    MemberNotString,
    /// A member of the array is not an object.
    MemberNotObject,
    /// The path has more than 512 bytes.
    PathTooLong,
    /// The path does not exist.
    PathNotFound,
    /// It is not a directory.
    NotDirectory,
    /// The directory is not readable and writable.
    NoPermission,
    /// The path ends with its first colon.
    PathInvalid,
    /// The path contains a forbidden character.
    InvalidCharacters,
    /// There are more than 100 steps and ranges of steps.
    TooManySteps,
    /// A range of steps has more than two bounds.
    StepFormat,
    /// A step does not consist of digits.
    StepNotDigits,
    /// A range of steps is reversed.
    StepReversed,
    /// There are more than 100 exclusions.
    TooManyExclusions,
    /// A range of operators lacks an end.
    RangeIncomplete,
}

impl ErrorReport {
    /// The code.
    pub fn code(&self) -> &'static str {
        match self {
            ErrorReport::Item { .. } => "EP0001",
            ErrorReport::Word { .. } => "EP0002",
            ErrorReport::Value { .. } => "EP0003",
            ErrorReport::Syntax { .. } => "EP0004",
            ErrorReport::Conflict(_) => "EP0005",
        }
    }

    /// Returns the arguments of the code's message, in order. `file` is the configuration's path as
    /// given by the caller.
    pub fn placeholders(&self, file: &str) -> Vec<String> {
        let file = file.to_owned();
        // The order of the arguments follows the vendor's messages, and differs from code to code.
        match self.clone() {
            ErrorReport::Item { item, reason } => vec![item, file, reason.to_string()],
            ErrorReport::Word {
                item,
                value,
                expected,
            } => vec![value, item, file, expected],
            ErrorReport::Value {
                item,
                value,
                reason,
            } => vec![value, item, file, reason.to_string()],
            ErrorReport::Syntax { reason } => vec![file, reason],
            ErrorReport::Conflict(conflict) => vec![file, conflict.to_string()],
        }
    }
}

impl fmt::Display for SettingConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (other, value) = &self.other;
        let not = if self.is_other_so { "" } else { " not" };
        match &self.value {
            Some(own) => write!(f, "`{}` cannot be `{own}`", self.item)?,
            None => write!(f, "`{}` cannot be set", self.item)?,
        }
        write!(f, " when `{other}` is{not} `{value}`")
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RefusalReason::NotFound => "it is missing",
            RefusalReason::Empty => "the value is empty",
            RefusalReason::NotString => "expected a string",
            RefusalReason::NotArray => "expected an array",
            RefusalReason::NotObject => "expected an object",
            RefusalReason::MemberNotString => "expected strings as its members",
            RefusalReason::MemberNotObject => "expected objects as its members",
            RefusalReason::PathTooLong => "the path has more than 512 bytes",
            RefusalReason::PathNotFound => "the path does not exist",
            RefusalReason::NotDirectory => "the path is not a directory",
            RefusalReason::NoPermission => "the path is not readable and writable",
            RefusalReason::PathInvalid => "the path is not valid",
            RefusalReason::InvalidCharacters => "the path contains characters that are not allowed",
            RefusalReason::TooManySteps => "there are more than 100 steps and ranges",
            RefusalReason::StepFormat => "a range of steps has more than two bounds",
            RefusalReason::StepNotDigits => "a step does not consist of digits",
            RefusalReason::StepReversed => "a range of steps is reversed",
            RefusalReason::TooManyExclusions => "there are more than 100 entries",
            RefusalReason::RangeIncomplete => "a range needs both `begin` and `end`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_in_the_order_of_the_message() {
        let item = || "dump_step[1]".to_owned();
        let conflict = |value: Option<&str>, is_other_so| {
            ErrorReport::Conflict(SettingConflict {
                item: "dump_mode".into(),
                value: value.map(str::to_owned),
                other: ("dump_scene".into(), "watcher".into()),
                is_other_so,
            })
        };
        let cases = [
            (
                ErrorReport::Item {
                    item: item(),
                    reason: RefusalReason::NotFound,
                },
                "EP0001|dump_step[1]|f|it is missing",
            ),
            (
                ErrorReport::Word {
                    item: item(),
                    value: "x".into(),
                    expected: "off/on".into(),
                },
                "EP0002|x|dump_step[1]|f|off/on",
            ),
            (
                ErrorReport::Value {
                    item: item(),
                    value: "2-1".into(),
                    reason: RefusalReason::StepReversed,
                },
                "EP0003|2-1|dump_step[1]|f|a range of steps is reversed",
            ),
            (ErrorReport::Syntax { reason: "r".into() }, "EP0004|f|r"),
            (
                conflict(Some("all"), true),
                "EP0005|f|`dump_mode` cannot be `all` when `dump_scene` is `watcher`",
            ),
            (
                conflict(None, false),
                "EP0005|f|`dump_mode` cannot be set when `dump_scene` is not `watcher`",
            ),
        ];
        for (report, expected) in cases {
            let placeholders = report.placeholders("f").join("|");
            assert_eq!(format!("{}|{placeholders}", report.code()), expected);
        }
    }
}
