//! Tensors that a capture did not write, as results list them.

use serde::{Deserialize, Serialize};

/// Maximum number of named operators.
const N_NAMES_MAX: usize = 8;

/// The tensors that a dump lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostTensors {
    /// Their number.
    pub n_tensors: u64,
    /// Why they were not written.
    pub reasons: Vec<String>,
    /// Operators of which the dump has nothing, in the order of their graph; empty if the plan
    /// selected some operators only, or no graph is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
}

impl LostTensors {
    /// `20 tensors (the writers were behind), of \`a\`, \`b\` and 3 more operators`.
    pub fn words(&self) -> String {
        let noun = if self.n_tensors == 1 {
            "tensor"
        } else {
            "tensors"
        };
        let shown = self.operators.iter().take(N_NAMES_MAX);
        let mut names: Vec<String> = shown.map(|name| format!("`{name}`")).collect();
        let n_more = self.operators.len() - names.len();
        if n_more > 0 {
            names.push(format!("{n_more} more operators"));
        }
        let of = match names.is_empty() {
            true => String::new(),
            false => format!(", of {}", names.join(", ")),
        };
        format!(
            "{} {noun} ({}){of}",
            self.n_tensors,
            self.reasons.join("; ")
        )
    }
}
