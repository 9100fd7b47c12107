//! The user's pairs of operators: a file of JSON or YAML, which can also be written as a proposal.

mod apply;
mod export;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(super) use apply::{apply, resolve};

use crate::compare::whole::{CheckedRules, RankRules};

/// Matching operators, and excluded ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Matching operators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<OperatorMapping>,
    /// Names of operators of either side that are left out, with `*` and `?`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// How ranks share tensors, of dumps that have no notes of it.
    #[serde(default, skip_serializing_if = "RankRules::is_empty")]
    pub ranks: RankRules,
    /// Operators that a proposal has no partner for. Not read; for people who complete it.
    #[serde(default, skip_serializing_if = "UnmappedOperators::is_empty")]
    pub unmatched: UnmappedOperators,
}

/// Operators that a proposal has no partner for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnmappedOperators {
    /// Those of the target.
    #[serde(default)]
    pub target: Vec<String>,
    /// Those of the golden side.
    #[serde(default)]
    pub golden: Vec<String>,
}

/// Matching operators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorMapping {
    /// The target's: one, or several that are one on the other side.
    pub target: MappedNames,
    /// The golden side's; an empty list if it has none.
    pub golden: MappedNames,
    /// Which of the executions of these names in a step is meant, counted from 0. Without a number,
    /// each with the one of the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_run: Option<usize>,
    /// The same of the golden side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub golden_run: Option<usize>,
    /// Slots of the target with those of the golden side, as `output.0`, or `relu1:output.0` where
    /// there are several operators. Other slots match by side and position.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slots: BTreeMap<String, String>,
    /// The evidence that brought them together, in a proposal. Not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// How sure that is, from 0 to 1, in a proposal. Not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likeness: Option<f64>,
}

/// One name or several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MappedNames {
    /// One.
    One(String),
    /// Several, or none.
    Many(Vec<String>),
}

impl Default for MappedNames {
    fn default() -> MappedNames {
        MappedNames::Many(Vec::new())
    }
}

impl MappedNames {
    /// The names.
    pub fn as_slice(&self) -> &[String] {
        match self {
            MappedNames::One(name) => std::slice::from_ref(name),
            MappedNames::Many(names) => names,
        }
    }
}

impl From<Vec<String>> for MappedNames {
    fn from(mut names: Vec<String>) -> MappedNames {
        match names.len() {
            1 => MappedNames::One(names.remove(0)),
            _ => MappedNames::Many(names),
        }
    }
}

impl UnmappedOperators {
    fn is_empty(&self) -> bool {
        self.target.is_empty() && self.golden.is_empty()
    }
}

/// The format that a mapping is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingForm {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Why a mapping cannot be used or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MappingError {
    /// It is not of this form.
    #[error("the mapping, line {line}, column {column}: {message}")]
    Syntax {
        /// Where, counted from 1; 0 if that is unknown.
        line: u64,
        /// Where in the line.
        column: u64,
        /// The problem.
        message: String,
    },
    /// A name that no operator of the side has.
    #[error("the mapping, `{place}`: the {side} side has no operator `{name}`")]
    UnknownName {
        /// Where in the mapping, such as `operators[3].target`.
        place: String,
        /// `target` or `golden`.
        side: &'static str,
        /// The name.
        name: String,
    },
    /// A name, or a slot, that is in the mapping twice.
    #[error("the mapping, `{place}`: `{name}` stands in `{first}` already")]
    Twice {
        /// Where in the mapping.
        place: String,
        /// The name.
        name: String,
        /// Where it stood before.
        first: String,
    },
    /// Something that is not a slot of the operators.
    #[error(
        "the mapping, `{place}`: `{text}` is no slot; expected `input.0`, `output.1`, or one of these after the name of an operator of this entry and `:`"
    )]
    Slot {
        /// Where in the mapping.
        place: String,
        /// The text at that place.
        text: String,
    },
    /// It cannot be written.
    #[error("cannot write the mapping: {message}")]
    Write {
        /// Why.
        message: String,
    },
    /// A rule about ranks that cannot be understood.
    #[error("the mapping, `ranks.{place}`: {message}")]
    Ranks {
        /// Where below `ranks`, such as `target.tensors[0].dims`.
        place: String,
        /// The problem.
        message: String,
    },
    /// An entry without operators.
    #[error(
        "the mapping, `{place}`: no operator is named; what the target lacks belongs into `ignore`"
    )]
    Nothing {
        /// Where in the mapping.
        place: String,
    },
}

impl Mapping {
    /// The rules about the ranks of both sides, understood.
    ///
    /// # Errors
    /// [`MappingError::Ranks`].
    pub(crate) fn rank_rules(&self) -> Result<[CheckedRules; 2], MappingError> {
        understood(&self.ranks)
    }

    /// Whether all rules about ranks can be understood.
    ///
    /// # Errors
    /// [`MappingError::Ranks`].
    pub fn check_ranks(&self) -> Result<(), MappingError> {
        self.rank_rules().map(drop)
    }

    /// Reads a mapping.
    ///
    /// # Errors
    /// [`MappingError::Syntax`].
    pub fn parse(text: &str, form: MappingForm) -> Result<Mapping, MappingError> {
        match form {
            MappingForm::Json => serde_json::from_str(text).map_err(|error| MappingError::Syntax {
                line: error.line() as u64,
                column: error.column() as u64,
                message: without_place(&error.to_string()),
            }),
            MappingForm::Yaml => serde_saphyr::from_str(text).map_err(|error| {
                // A message is one line; a snippet of the file takes several.
                let error = error.without_snippet();
                let place = error.location();
                MappingError::Syntax {
                    line: place.map_or(0, |place| place.line()),
                    column: place.map_or(0, |place| place.column()),
                    message: without_place(&error.to_string()),
                }
            }),
        }
    }

    /// The mapping as text.
    ///
    /// # Errors
    /// [`MappingError::Write`] if a name cannot be written.
    pub fn to_text(&self, form: MappingForm) -> Result<String, MappingError> {
        let text = match form {
            MappingForm::Json => serde_json::to_string_pretty(self)
                .map(|text| text + "\n")
                .map_err(|error| error.to_string()),
            MappingForm::Yaml => serde_saphyr::to_string(self).map_err(|error| error.to_string()),
        };
        text.map_err(|message| MappingError::Write { message })
    }
}

/// Rules about ranks of both sides, understood.
///
/// # Errors
/// [`MappingError::Ranks`].
pub(crate) fn understood(rules: &RankRules) -> Result<[CheckedRules; 2], MappingError> {
    let sides = [("target", &rules.target), ("golden", &rules.golden)];
    let [target, golden] = sides.map(|(side, rules)| {
        let checked = rules.check();
        checked.map_err(|(place, message)| MappingError::Ranks {
            place: format!("{side}.{place}"),
            message,
        })
    });
    Ok([target?, golden?])
}

/// The first line of a message, without the place at its end.
fn without_place(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    // The position follows the last of these words: a message may quote a text that has them, too.
    let end = line.rfind(" at line ").unwrap_or(line.len());
    line[..end].to_owned()
}

impl MappingForm {
    /// The form of a file by its name and content: `.json`, or whatever begins with a brace, is
    /// JSON.
    pub fn detect(file_name: &str, text: &str) -> MappingForm {
        let is_json = file_name.ends_with(".json") || text.trim_start().starts_with('{');
        if is_json {
            MappingForm::Json
        } else {
            MappingForm::Yaml
        }
    }
}
