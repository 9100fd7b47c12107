//! Experiments as they are saved.

use serde::{Deserialize, Serialize};

use super::{AttributeDifference, Cause, OperatorName, WiringChange};

/// Runs of the target with parts replaced, to find out which of them make its outputs differ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Experiments {
    /// The engine that ran them.
    pub engine: String,
    /// Definitions that differ between the models: operators, results and inputs that read another
    /// value.
    pub n_differences: usize,
    /// Those of them that may matter, as an output of their operator differs or was not compared.
    pub n_candidates: usize,
    /// Runs of the target, the control included.
    pub n_runs: usize,
    /// The result.
    pub outcome: ExperimentOutcome,
    /// Largest relative distance of an output as it is; infinite where shapes or NaN differ.
    #[serde(with = "crate::compare::number")]
    pub before: f64,
    /// The same with all of `causes` healed.
    #[serde(with = "crate::compare::number")]
    pub after: f64,
    /// The places that have to be healed for the outputs to agree, in the order of the target's graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<HealedCause>,
    /// The operator that the comparison alone would have named, where another one was proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<OperatorName>,
    /// The file that the healed model was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired: Option<String>,
    /// Whether the outputs of the healed model agree for other inputs as well; none if that could
    /// not be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agrees_elsewhere: Option<bool>,
}

/// The result of experiments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentOutcome {
    /// With golden's definition of `causes` all outputs agree, and without any one of them they do
    /// not.
    Proven,
    /// The same, but fewer of them might do.
    Within,
    /// Outputs still differ with golden's definition at all candidates: none of them is the cause.
    #[default]
    Elsewhere,
    /// Nothing follows, for this reason.
    Inconclusive(String),
}

/// A place of the target that was healed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealedCause {
    /// The operator: golden's if the target lacks it, else the target's.
    pub operator: OperatorName,
    /// Its place among those of the comparison, or that of the first one that reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The cause.
    pub cause: Cause,
    /// Whether one side alone has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<WiringChange>,
    /// Further operators that came, or went, with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OperatorName>,
    /// The type of golden's operator, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub golden_type: Option<String>,
    /// Attributes that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributeDifference>,
    /// Inputs that are another weight, or a weight on one side alone: the number of the input, and
    /// the names of both sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<(usize, Option<String>, Option<String>)>,
    /// Inputs that read another value: the number of the input, and the values of both sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wiring: Vec<(usize, String, String)>,
    /// Sets of operators of another version: the domain, empty for ONNX's own, and the versions of
    /// both sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operator_sets: Vec<(String, i64, i64)>,
    /// Values that a body reads from around it, and that are others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub captured: Vec<String>,
    /// Operators that the models themselves define otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    /// Outputs of the operator that have each other's values, or others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exchanged: Vec<String>,
    /// The output of the model that has another source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}
