//! The model that a plan is matched against.

use std::sync::Arc;

use opscope_store::record::Operator;
use opscope_store::record::graph::TensorType;

use crate::QuantisedPlace;

/// The parts of a model that a plan refers to.
#[derive(Clone, Copy, Debug, Default)]
pub struct GraphView<'a> {
    /// Its operators, in order of execution.
    pub operators: &'a [Arc<Operator>],
    /// Names of the values that a caller provides.
    pub inputs: &'a [String],
    /// Names of the values that are written into the graph, as `Constant` nodes of ONNX are.
    pub constants: &'a [String],
    /// Types that the model declares for values, by name: inputs, weights, constants.
    pub types: &'a [(String, TensorType)],
    /// Tasks of operators whose values are kept on both sides, whichever side the plan asks for.
    pub both_sides: &'a [u32],
    /// Where operators have quantised values.
    pub quantised: &'a [QuantisedPlace],
    /// Values that a body is given by the operator that runs it, such as what a loop carries, by
    /// the tasks of the operators that read them; sorted. They are neither weights nor inputs of
    /// the model.
    pub carried: &'a [(u32, String)],
}

impl GraphView<'_> {
    /// Whether what this operator reads under this name is given to the body that it is in.
    pub fn is_carried(&self, task_id: u32, name: &str) -> bool {
        self.carried
            .binary_search_by(|entry| (entry.0, entry.1.as_str()).cmp(&(task_id, name)))
            .is_ok()
    }
}
