//! Refusals as the vendor's library reports them: a code, and values for its message's blanks.
//!
//! The vendor's interface keeps these for its caller to ask for, so they are data here.

use std::fmt;

/// A report, by code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// `EP0001`: an item is missing, empty or of the wrong type.
    Item {
        /// Path of the item.
        item: String,
        /// The fault of the item.
        reason: Reason,
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
        reason: Reason,
    },
    /// `EP0004`: the file is not valid JSON.
    Syntax {
        /// The parser's message.
        reason: String,
    },
    /// `EP0005`: two settings exclude each other.
    Conflict(Conflict),
}

/// An item that cannot be set because of what another one is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
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
pub enum Reason {
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

impl Report {
    /// The code.
    pub fn code(&self) -> &'static str {
        match self {
            Report::Item { .. } => "EP0001",
            Report::Word { .. } => "EP0002",
            Report::Value { .. } => "EP0003",
            Report::Syntax { .. } => "EP0004",
            Report::Conflict(_) => "EP0005",
        }
    }

    /// Returns the values for the blanks of the code's message, in order. `file` is the
    /// configuration's path as the caller gave it.
    pub fn placeholders(&self, file: &str) -> Vec<String> {
        let file = file.to_owned();
        // The order of the values is that of the blanks in the vendor's messages, and differs from
        // code to code.
        match self.clone() {
            Report::Item { item, reason } => vec![item, file, reason.to_string()],
            Report::Word {
                item,
                value,
                expected,
            } => vec![value, item, file, expected],
            Report::Value {
                item,
                value,
                reason,
            } => vec![value, item, file, reason.to_string()],
            Report::Syntax { reason } => vec![file, reason],
            Report::Conflict(conflict) => vec![file, conflict.to_string()],
        }
    }
}

impl fmt::Display for Conflict {
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::NotFound => "it is missing",
            Reason::Empty => "the value is empty",
            Reason::NotString => "it has to be a string",
            Reason::NotArray => "it has to be an array",
            Reason::NotObject => "it has to be an object",
            Reason::MemberNotString => "its members have to be strings",
            Reason::MemberNotObject => "its members have to be objects",
            Reason::PathTooLong => "the path has more than 512 bytes",
            Reason::PathNotFound => "the path does not exist",
            Reason::NotDirectory => "the path is not a directory",
            Reason::NoPermission => "the path cannot be read and written",
            Reason::PathInvalid => "the path is not valid",
            Reason::InvalidCharacters => "the path holds characters that are not allowed",
            Reason::TooManySteps => "there are more than 100 steps and ranges",
            Reason::StepFormat => "a range of steps has more than two bounds",
            Reason::StepNotDigits => "a step is not made of digits",
            Reason::StepReversed => "a range of steps runs backwards",
            Reason::TooManyExclusions => "there are more than 100 entries",
            Reason::RangeIncomplete => "a range needs both `begin` and `end`",
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
            Report::Conflict(Conflict {
                item: "dump_mode".into(),
                value: value.map(str::to_owned),
                other: ("dump_scene".into(), "watcher".into()),
                is_other_so,
            })
        };
        let cases = [
            (
                Report::Item {
                    item: item(),
                    reason: Reason::NotFound,
                },
                "EP0001|dump_step[1]|f|it is missing",
            ),
            (
                Report::Word {
                    item: item(),
                    value: "x".into(),
                    expected: "off/on".into(),
                },
                "EP0002|x|dump_step[1]|f|off/on",
            ),
            (
                Report::Value {
                    item: item(),
                    value: "2-1".into(),
                    reason: Reason::StepReversed,
                },
                "EP0003|2-1|dump_step[1]|f|a range of steps runs backwards",
            ),
            (Report::Syntax { reason: "r".into() }, "EP0004|f|r"),
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
