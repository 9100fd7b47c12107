//! `BitShift` by any number of bits.
//!
//! tract shifts by the remainder of the number and the width of the type. A shift by a negative
//! number, or by as many bits as the type has, or more, leaves nothing but copies of the sign:
//! zero, or -1 where a negative number is shifted to the right.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::logic::{and, comp_gte, comp_lt};
use tract_onnx::tract_core::ops::math::{shift_left, shift_right};
use tract_onnx::tract_hir::internal::*;

use super::composition::{Composition, ResultShape};
use super::wiring::{NodeWiring, WiredOutlets};

#[derive(Debug, Clone)]
pub(super) struct BitShift {
    is_right: bool,
}

impl Composition for BitShift {
    const OP_TYPE: &'static str = "BitShift";
    const RESULT_SHAPE: ResultShape = ResultShape::Broadcast;

    fn from_node(_context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        let is_right = match node.get_attr::<&str>("direction")? {
            "LEFT" => false,
            "RIGHT" => true,
            other => bail!("direction `{other}`, expected `LEFT` or `RIGHT`"),
        };
        Ok(BitShift { is_right })
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let (x, n_bits) = (inputs[0], inputs[1]);
        let datum_type = wiring.datum_type(x)?;
        let zero = wiring.number(0.0, x)?;
        let width = wiring.number(8.0 * datum_type.size_of() as f32, x)?;
        // tract takes the remainder, so the number of bits is replaced before it gets there.
        let mut is_within = wiring.compare(comp_lt(), n_bits, width)?;
        if datum_type.is_signed() {
            let is_positive = wiring.compare(comp_gte(), n_bits, zero)?;
            is_within = wiring.wire(and(), &[is_within, is_positive])?;
        }
        let n_bits = wiring.select(is_within, n_bits, zero)?;
        let shift = if self.is_right {
            shift_right()
        } else {
            shift_left()
        };
        let shifted = wiring.wire(shift, &[x, n_bits])?;
        let mut rest = zero;
        if self.is_right && datum_type.is_signed() {
            let ones = wiring.number(-1.0, x)?;
            let is_negative = wiring.compare(comp_lt(), x, zero)?;
            rest = wiring.select(is_negative, ones, zero)?;
        }
        Ok(tvec!(wiring.select(is_within, shifted, rest)?))
    }
}
