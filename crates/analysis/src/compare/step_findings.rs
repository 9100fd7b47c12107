//! The findings of a comparison of several steps, as they are saved.

use serde::{Deserialize, Serialize};

use super::verdict_level::VerdictLevel;

/// The comparison of several steps, step by step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepFindings {
    /// Steps that were compared, in order.
    pub compared: Vec<StepResult>,
    /// The first step as bad as the whole; none if all agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstStep>,
}

/// A step that was compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    /// The target's number.
    pub step: u64,
    /// The worst level of its operators.
    pub level: VerdictLevel,
    /// Whether elements were compared, of one tensor at least; otherwise statistics or digests.
    pub has_elements: bool,
    /// The operator of the list whose outputs are farthest apart, unless the step passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<usize>,
}

/// The first step that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstStep {
    /// Its number.
    pub step: u64,
    /// The compared step before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Where to search for the fault.
    pub fault: StepFault,
    /// The additional dump that would help most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextDump>,
}

/// Where the fault of a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepFault {
    /// In an operator of the step, which reads what the other side's reads.
    Inside,
    /// Before the step: it differs in what comes into it.
    Before,
    /// Unknown.
    #[default]
    Unknown,
}

/// The steps to dump next, on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextDump {
    /// Their numbers.
    pub steps: Vec<u64>,
    /// Whether elements are needed; statistics will do otherwise.
    pub needs_elements: bool,
    /// How many dumps more it takes after this one to know the first step.
    pub n_rounds_after: usize,
}
