//! A parameter or buffer, as results list it.

use serde::{Deserialize, Serialize};

use super::change::TensorChange;
use super::tensor_summary::TensorSummary;

/// A parameter or buffer of either model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedParameter {
    /// Its name: the target's, or golden's if the target lacks it.
    pub name: String,
    /// The rank whose operators read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The pair of inputs that read it: the operator's index, and the slot's within it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<[usize; 2]>,
    /// The target's tensor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<TensorSummary>,
    /// The golden tensor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub golden: Option<TensorSummary>,
    /// The operation between both tensors, if one explains the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<TensorChange>,
    /// Whether the operation turns the target's tensor into golden's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_golden_changed: bool,
}

/// Weights that the sides read another number of times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightReads {
    /// Beginning of the names of these weights, up to a point: a module; or the only one's name.
    pub name: String,
    /// Number of weights.
    pub n_weights: usize,
    /// How many operators of the target read each of them.
    pub target: usize,
    /// How many operators of the golden side do.
    pub golden: usize,
}
