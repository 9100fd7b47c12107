//! Operators that run one by one, on inputs of the caller's choice.

use std::collections::BTreeMap;

use opscope_store::record::Operator;
use opscope_tensor::Tensor;

use crate::{EngineError, LoadOptions};

/// A model, or the description of one, as a source of its operators.
pub trait OperatorSource {
    /// The operators in file order, those of bodies right after the operator that they belong to.
    fn operators(&self) -> &[SourceOperator];

    /// Whether a value that the operator of this index reads is a constant of the model: a weight,
    /// or the value of a node that holds one.
    fn is_constant(&self, index: usize, name: &str) -> bool;

    /// Whether the source has the value of that constant, so that it need not be given.
    fn has_value(&self, index: usize, name: &str) -> bool;

    /// Runs the operator of this index once and returns the requested outputs, with their
    /// positions.
    ///
    /// # Errors
    /// [`EngineError`] if something that it reads is not given, if the engine cannot run it, or if
    /// it fails.
    fn run(
        &self,
        index: usize,
        given: &OperatorCall,
        options: &LoadOptions,
    ) -> Result<Vec<(usize, Tensor)>, EngineError>;
}

/// An operator of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceOperator {
    /// The operator.
    pub operator: Operator,
    /// Names of the values that graphs inside it read from outside, sorted.
    pub captured: Vec<String>,
}

/// Values for an operator to run on, and the outputs that are wanted.
#[derive(Clone, Debug, Default)]
pub struct OperatorCall {
    /// Inputs by position; an input that is missing here is taken from the source, if that has it.
    pub inputs: BTreeMap<usize, Tensor>,
    /// Values that graphs inside it read, by name.
    pub captured: BTreeMap<String, Tensor>,
    /// Which outputs are wanted.
    pub outputs: Vec<usize>,
}

/// Operators whose results cannot be reproduced.
const RANDOM: [&str; 6] = [
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];
/// The input of `Dropout` that says whether anything is dropped.
const TRAINING_MODE: usize = 2;

/// Whether an operator draws random numbers when it runs on these inputs.
pub fn is_random(operator: &Operator, inputs: &BTreeMap<usize, Tensor>) -> bool {
    let is_standard = ["", "ai.onnx"].contains(&operator.domain.as_str());
    match operator.op_type.as_str() {
        _ if !is_standard => false,
        "Dropout" => {
            let mode = inputs.get(&TRAINING_MODE);
            // Training is switched on by the input, so the same operator may draw or not.
            let bytes = mode.and_then(|mode| mode.host_bytes().ok());
            bytes.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0))
        }
        op_type => RANDOM.contains(&op_type),
    }
}

#[cfg(test)]
mod tests {
    use opscope_tensor::{DType, Shape};

    use super::*;

    #[test]
    fn randomness() {
        let check = |op_type: &str, domain: &str, training: Option<u8>, expected: bool| {
            let operator = Operator {
                op_type: op_type.into(),
                domain: domain.into(),
                ..Operator::default()
            };
            let mode = |byte| Tensor::from_vec(DType::Bool, Shape::scalar(), vec![byte]).unwrap();
            let inputs = training.map(|byte| (TRAINING_MODE, mode(byte)));
            let found = is_random(&operator, &inputs.into_iter().collect());
            assert_eq!(found, expected, "{op_type} {domain} {training:?}");
        };
        check("RandomNormal", "", None, true);
        check("RandomNormal", "com.example", None, false);
        check("Dropout", "", None, false);
        check("Dropout", "", Some(0), false);
        check("Dropout", "ai.onnx", Some(1), true);
        check("Add", "", Some(1), false);
    }
}
