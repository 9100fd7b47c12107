//! Quantised values of a model, and the floats that are kept in addition to them.

mod claims;
mod job;

use std::sync::Arc;

use opscope_store::record::{Operator, SlotSide};

pub(crate) use self::claims::ValueClaims;
pub(crate) use self::job::{DequantiseJob, OperatorTurn, ShownParts};

/// The slot of an operator: the side, and the position on it.
pub type SlotPosition = (SlotSide, usize);

/// An operator's slot that holds quantised elements, and the slots of its scale and zero point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantisedPlace {
    /// The operator.
    pub task_id: u32,
    /// The slot of the elements.
    pub place: SlotPosition,
    /// The number of the value, which all its places share.
    pub value: u32,
    /// How the operator uses it.
    pub kind: QuantisedKind,
    /// The slots of the scale's factors; empty if it has no scale for these elements.
    pub scale: Vec<SlotPosition>,
    /// The slot of the zero point, if any.
    pub zero_point: Option<SlotPosition>,
    /// The axis that a scale with one axis runs along; negative ones count from the end.
    pub axis: i64,
    /// Elements that share a scale along that axis; 0 without blocks.
    pub block_size: usize,
}

/// How an operator uses a quantised value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantisedKind {
    /// Converts floats, its first input, to it.
    Quantises,
    /// Converts it to floats, its first output.
    Dequantises,
    /// Computes with it, or computes it.
    Computes,
}

/// The floats that a quantised value represents, kept in addition to the record of the operator
/// that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatView {
    /// Which value, as in [`QuantisedPlace::value`].
    pub value: u32,
    /// Which executions provide it.
    pub showing: ShowingRule,
    /// The operator's slot of the elements.
    pub elements: SlotPosition,
    /// The slots of the scale's factors, at least one.
    pub scale: Vec<SlotPosition>,
    /// The slot of the zero point, if any.
    pub zero_point: Option<SlotPosition>,
    /// As [`QuantisedPlace::axis`].
    pub axis: i64,
    /// As [`QuantisedPlace::block_size`].
    pub block_size: usize,
    /// Name of the operator that has the elements.
    pub of: String,
    /// The operator of its record: the type `DequantizeLinear`, a name after the value's, the task
    /// of the operator that has it.
    pub operator: Arc<Operator>,
    /// Which inputs the record has, of elements, scale and zero point.
    pub inputs: Vec<usize>,
}

/// Which executions of the operators with a quantised value provide the floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShowingRule {
    /// All: the operator produces the value.
    Always,
    /// All executions of the operator that reads it first in a step.
    ByFirstReader,
    /// The first one in a step: no operator produces the value, so it never changes.
    Once,
}

impl FloatView {
    /// Number of tensors in its record.
    pub fn n_slots(&self) -> u64 {
        self.inputs.len() as u64 + 1
    }

    /// The operator's slots whose tensors it uses.
    pub fn places(&self) -> impl Iterator<Item = SlotPosition> {
        let scales = self.scale.iter().copied();
        scales.chain([self.elements]).chain(self.zero_point)
    }

    /// Whether it uses the tensor in this slot of the operator.
    pub fn needs(&self, place: SlotPosition) -> bool {
        self.places().any(|needed| needed == place)
    }

    /// Whether it uses any tensor of this side.
    pub fn needs_side(&self, side: SlotSide) -> bool {
        self.places().any(|(of, _)| of == side)
    }

    /// Returns the operator for the record of an execution whose own operator is called `op_name`:
    /// in a loop, the number of the iteration follows the name in the graph.
    pub(crate) fn operator_for(&self, op_name: &str) -> Arc<Operator> {
        let suffix = op_name.strip_prefix(&self.of).unwrap_or_default();
        if suffix.is_empty() || self.showing == ShowingRule::Once {
            return self.operator.clone();
        }
        let mut operator = Operator::clone(&self.operator);
        operator.op_name.push_str(suffix);
        Arc::new(operator)
    }
}
