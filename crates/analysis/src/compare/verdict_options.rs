//! How a verdict is given.

use super::allow::SkipPattern;
use super::verdict::Thresholds;

/// How numbers are judged; a saved result can be judged again.
#[derive(Clone, Debug)]
pub struct VerdictOptions {
    /// How far is too far.
    pub thresholds: Thresholds,
    /// Number of operators that are ranked.
    pub n_ranked: usize,
    /// Patterns for things that may stay uncompared.
    pub allowed: Vec<SkipPattern>,
    /// Whether everything inside has to agree and to be compared, and not the outputs alone.
    pub is_strict: bool,
    /// The relative distance from a float model up to which outputs of a quantised one pass.
    pub limit: Option<f64>,
}
