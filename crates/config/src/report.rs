//! Refusals as the vendor's library reports them: a code, and values for its message's blanks.
//!
//! The vendor's interface keeps these for its caller to ask for, so they are data here.

use std::fmt;

/// A report, by code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorReport {
    /// `EP0001`: an item is missing, empty or of the wrong type.
    Item {
        /// Path of the item.
        item: String,
        /// The fault of the item.
        reason: RefusalReason,
    },
    /// `EP0002`: a value is not one of the words allowed.
    Word {
        /// Path of the item.
        item: String,
        /// The value, or the part of it that is not allowed.
        value: String,
        /// The words allowed, sorted, with `/` between them.
        expected: String,
    },
    /// `EP0003`: a value cannot be used.
    Value {
        /// Path of the item.
        item: String,
        /// The value, or the part of it that cannot be used.
        value: String,
        /// The fault of the value.
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

/// An item that cannot be set because of what another one is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingConflict {
    /// Path of the item.
    pub item: String,
    /// The value that it must not have; `None` if it must not be there at all.
    pub value: Option<String>,
    /// The other item and a value.
    pub other: (String, String),
    /// Whether the conflict is that the other item has this value, or that it has not.
    pub is_other_so: bool,
}

/// Why an item or a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The item is missing.
    NotFound,
    /// The value is empty.
    Empty,
    /// It is no text.
    NotString,
    /// It is no array.
    NotArray,
    /// It is no object.
    NotObject,
    /// A member of the array is no text.
    MemberNotString,
    /// A member of the array is no object.
    MemberNotObject,
    /// The path has more than 512 bytes.
    PathTooLong,
    /// The path does not exist.
    PathNotFound,
    /// It is no directory.
    NotDirectory,
    /// The directory cannot be read and written.
    NoPermission,
    /// The path ends with its first colon.
    PathInvalid,
    /// The path holds a character that is not allowed.
    InvalidCharacters,
    /// There are more than 100 steps and ranges of steps.
    TooManySteps,
    /// A range of steps has more than two bounds.
    StepFormat,
    /// A step is not made of digits.
    StepNotDigits,
    /// A range of steps runs backwards.
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

    /// Returns the values for the blanks of the code's message, in order. `file` is the
    /// configuration's path as the caller gave it.
    pub fn placeholders(&self, file: &str) -> Vec<String> {
        let file = file.to_owned();
        // The order of the values is that of the blanks in the vendor's messages, and differs from
        // code to code.
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
            RefusalReason::NotString => "it has to be a string",
            RefusalReason::NotArray => "it has to be an array",
            RefusalReason::NotObject => "it has to be an object",
            RefusalReason::MemberNotString => "its members have to be strings",
            RefusalReason::MemberNotObject => "its members have to be objects",
            RefusalReason::PathTooLong => "the path has more than 512 bytes",
            RefusalReason::PathNotFound => "the path does not exist",
            RefusalReason::NotDirectory => "the path is not a directory",
            RefusalReason::NoPermission => "the path cannot be read and written",
            RefusalReason::PathInvalid => "the path is not valid",
            RefusalReason::InvalidCharacters => "the path holds characters that are not allowed",
            RefusalReason::TooManySteps => "there are more than 100 steps and ranges",
            RefusalReason::StepFormat => "a range of steps has more than two bounds",
            RefusalReason::StepNotDigits => "a step is not made of digits",
            RefusalReason::StepReversed => "a range of steps runs backwards",
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
                "EP0003|2-1|dump_step[1]|f|a range of steps runs backwards",
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
