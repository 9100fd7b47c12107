//! Parts of one model put into another, to see what they change.
//!
//! Two models are held against each other, value by value: [`ModelPair`] lists where their
//! definitions differ – operators, attributes, weights, wiring, results. Only files are compared here: nothing runs, and no recorded value goes into a model.
//!
//! | module | job |
//! | --- | --- |
//! | `side` | a graph by its values: who makes each, and which are constant |
//! | `definition` | whether two values are defined alike, and what differs |
//! | `places` | the list of differences |
//! | `captured` | values that bodies read from the graph around them |

mod captured;
mod definition;
mod places;
mod side;

use std::collections::HashMap;

use opscope_tensor::DType;

use self::side::GraphSide;
use crate::{EngineError, ModelSource};

pub use self::places::{DefinitionDifference, DifferentPart, NodeLabel, WeightElements};

/// Two models and what is known to be the same value in both.
pub struct ModelPair {
    target: GraphSide,
    golden: GraphSide,
    /// The target's value, by golden's.
    partners: HashMap<String, String>,
    /// The target's form and golden's, of values that have different ones, by golden's name.
    forms: HashMap<String, [ValueForm; 2]>,
    differences: Vec<DefinitionDifference>,
}

/// A value of the target and the same one of the golden model, by operator and number of the
/// output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameValue {
    /// The target's operator.
    pub target: String,
    /// Number of its output.
    pub target_output: usize,
    /// Golden's operator.
    pub golden: String,
    /// Number of its output.
    pub golden_output: usize,
    /// The forms of both, where they differ.
    pub forms: Option<[ValueForm; 2]>,
}

/// The dtype and the shape of a value. Two forms of one value have as many elements, in the same
/// order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueForm {
    /// Its dtype.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<u64>,
}

impl ModelPair {
    /// Reads both models. `values` are made by operators of the main graphs; `inputs` are names of
    /// inputs, the target's first. Operators that a graph does not have, or has several of by one
    /// name, are passed over.
    ///
    /// # Errors
    /// [`EngineError`] if a model cannot be read.
    pub fn read(
        target: ModelSource<'_>,
        golden: ModelSource<'_>,
        values: &[SameValue],
        inputs: &[[String; 2]],
    ) -> Result<ModelPair, EngineError> {
        let [target, golden] = [GraphSide::read(target)?, GraphSide::read(golden)?];
        let mut partners: HashMap<String, String> = HashMap::new();
        let mut forms: HashMap<String, [ValueForm; 2]> = HashMap::new();
        for [target, golden] in inputs {
            partners.insert(golden.clone(), target.clone());
        }
        for value in values {
            let found = (
                target.output_of(&value.target, value.target_output),
                golden.output_of(&value.golden, value.golden_output),
            );
            if let (Some(target), Some(golden)) = found {
                partners.entry(golden.to_owned()).or_insert_with(|| {
                    let differing = value.forms.clone().map(|both| (golden.to_owned(), both));
                    forms.extend(differing);
                    target.to_owned()
                });
            }
        }
        let mut pair = ModelPair {
            target,
            golden,
            partners,
            forms,
            differences: Vec::new(),
        };
        pair.differences = pair.find_differences();
        Ok(pair)
    }

    /// Where the definitions differ, in the order of the target's graph.
    pub fn differences(&self) -> &[DefinitionDifference] {
        &self.differences
    }
}
