//! Parts of one model put into another, to see what they change.
//!
//! Compares two models value by value: [`ModelPair`] lists where their definitions differ –
//! operators, attributes, weights, wiring, results – and [`ModelPair::healed`] is the first model
//! with the second one's definition at the requested places. Only files are compared: nothing runs,
//! and no recorded value goes into a model.
//!
//! | module | job |
//! | --- | --- |
//! | `side` | a graph by its values: who makes each, and which are constant |
//! | `definition` | whether two values are defined alike, and what differs |
//! | `places` | the list of differences |
//! | `assembly` | the model with some of them healed |
//! | `replacement` | golden's operator in the place of one of the target |
//! | `rows` | two operators of a type in a row, and one on the other side |
//! | `forms` | values in another dtype or shape |
//! | `captured` | values that bodies read from the graph around them |
//! | `behind` | operators that match by what reads their outputs |
//! | `exchange` | outputs of one operator in other places |
//! | `order` | a graph without what nobody reads, in an order that can be run |

mod assembly;
mod behind;
mod captured;
mod definition;
mod exchange;
mod forms;
mod order;
mod places;
mod replacement;
mod rows;
mod sets;
mod side;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use opscope_tensor::DType;
use prost::Message;

use self::assembly::Assembled;
use self::side::GraphSide;
use super::proto::{self, N_MESSAGE_BYTES_MAX};
use crate::{EngineError, ModelSource};

pub use self::exchange::ExchangedOutputs;
pub use self::places::{DefinitionDifference, DifferentPart, NodeLabel};

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

/// A model with places of it healed.
pub struct HealedModel {
    /// The bytes of its file.
    pub bytes: Vec<u8>,
    /// The file of the target; external weights are relative to its directory.
    path: PathBuf,
}

/// The operators that come and go with a model's healing.
pub struct OperatorChanges {
    /// Operators that were taken over although the target has nothing in their place.
    pub added: Vec<NodeLabel>,
    /// Operators of the target that nothing reads any more.
    pub removed: Vec<NodeLabel>,
}

impl HealedModel {
    /// The model for an engine to load.
    pub fn source(&self) -> ModelSource<'_> {
        ModelSource::Part {
            bytes: &self.bytes,
            path: &self.path,
        }
    }
}

impl ModelPair {
    /// Reads both models. `values` are made by operators of the main graphs; `inputs` are names of
    /// inputs, the target's first. Names that a graph lacks, or uses for several operators, are
    /// skipped.
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
        // Values that are compared as they are need nothing between.
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
        partners.extend(unseen(&target, &golden, &partners));
        rows::shift(&mut partners, &target, &golden);
        behind::extend(&mut partners, &target, &golden);
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

    /// Whether golden computes its value from the target's value, by operators without a match in
    /// the target: then the target lacks these operators.
    pub fn is_made_from(&self, difference: &DefinitionDifference) -> bool {
        let values = difference.parts.iter().filter_map(|part| match part {
            DifferentPart::Wiring { target, golden, .. }
            | DifferentPart::Result { target, golden } => Some((target, golden)),
            _ => None,
        });
        values
            .into_iter()
            .any(|(target, golden)| self.leads_to(golden, target))
    }

    fn leads_to(&self, golden: &str, target: &str) -> bool {
        // Not farther than to the next values that both sides have.
        let mut open: Vec<&str> = vec![golden];
        let mut seen: HashSet<&str> = HashSet::new();
        while let Some(value) = open.pop() {
            if self
                .partners
                .get(value)
                .is_some_and(|partner| partner == target)
            {
                return true;
            }
            let maker = self
                .golden
                .maker(value)
                .filter(|_| !self.partners.contains_key(value));
            if let Some((node, _)) = maker.filter(|_| seen.insert(value)) {
                open.extend(self.golden.nodes()[node].input.iter().map(String::as_str));
            }
        }
        false
    }

    /// The operators that come and go with these [differences](ModelPair::differences) healed.
    ///
    /// # Errors
    /// As for [`ModelPair::healed`], but for the size.
    pub fn changes(&self, chosen: &[usize]) -> Result<OperatorChanges, String> {
        let Assembled { added, removed, .. } = self.assemble(chosen)?;
        Ok(OperatorChanges { added, removed })
    }

    /// The target with golden's definition at these [differences](ModelPair::differences), without
    /// values that become unused.
    ///
    /// # Errors
    /// Text that says why there is no such model: an operator of the golden model would have to be
    /// taken over that no value of the target corresponds to, or the result is too large.
    pub fn healed(&self, chosen: &[usize]) -> Result<HealedModel, String> {
        self.encoded(&self.assemble(chosen)?)
    }

    /// [`ModelPair::healed`] with all weights in the file itself, so that it may lie anywhere.
    ///
    /// # Errors
    /// As for [`ModelPair::healed`], and if a weight is not where the target says.
    pub fn healed_whole(&self, chosen: &[usize]) -> Result<HealedModel, String> {
        let mut assembled = self.assemble(chosen)?;
        let graph = assembled.model.graph.iter_mut();
        for tensor in graph.flat_map(|graph| &mut graph.initializer) {
            if !tensor.external_data.is_empty() {
                let (_, _, bytes) = self.target.elements(tensor).ok_or_else(|| {
                    format!("the weight `{}` is not where the model says", tensor.name)
                })?;
                tensor.external_data = Vec::new();
                tensor.data_location = None;
                tensor.raw_data = Some(bytes);
            }
        }
        self.encoded(&assembled)
    }

    fn encoded(&self, assembled: &Assembled) -> Result<HealedModel, String> {
        let n_bytes = assembled.model.encoded_len();
        if n_bytes > N_MESSAGE_BYTES_MAX {
            return Err(format!(
                "the model takes {n_bytes} bytes; expected at most {N_MESSAGE_BYTES_MAX}"
            ));
        }
        Ok(HealedModel {
            bytes: assembled.model.encode_to_vec(),
            path: self.target.path.clone(),
        })
    }
}

/// Values that no run has shown, such as unread ones, and that have one name and one type in both
/// models: golden's value and the target's.
fn unseen(
    target: &GraphSide,
    golden: &GraphSide,
    partners: &HashMap<String, String>,
) -> Vec<(String, String)> {
    let taken: HashSet<&String> = partners.values().collect();
    let mut found = Vec::new();
    for node in golden.nodes() {
        let name = proto::node_name(node);
        let (Some(own), Some(_)) = (target.node(&name), golden.node(&name)) else {
            continue;
        };
        // Values of a run are paired by more than a name, or deliberately not at all.
        let is_known = node.output.iter().any(|value| partners.contains_key(value))
            || own.output.iter().any(|value| taken.contains(value));
        if !is_known && own.op_type == node.op_type && own.output.len() == node.output.len() {
            let values = node.output.iter().cloned().zip(own.output.iter().cloned());
            found
                .extend(values.filter(|(golden, target)| !golden.is_empty() && !target.is_empty()));
        }
    }
    found
}

#[cfg(test)]
mod tests;
