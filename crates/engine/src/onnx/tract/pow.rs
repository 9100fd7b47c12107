//! `PowComposition` of two types, and of integers.
//!
//! tract returns the wider of two types where ONNX requires that of the base, and takes a negative
//! exponent of an integer for a very large one.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::logic::comp_lt;
use tract_onnx::tract_core::ops::math::{max, pow};

use super::composition::{Composition, ResultShape};
use super::wiring::{NodeWiring, WiredOutlets};

#[derive(Debug, Clone)]
pub(super) struct PowComposition;

impl Composition for PowComposition {
    const OP_TYPE: &'static str = "Pow";
    const RESULT_SHAPE: ResultShape = ResultShape::Broadcast;

    fn from_node(_context: &ParsingContext<'_>, _node: &NodeProto) -> TractResult<Self> {
        Ok(PowComposition)
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let (base, exponent) = (inputs[0], inputs[1]);
        let datum_type = wiring.datum_type(base)?;
        let exponent_type = wiring.datum_type(exponent)?;
        let result = if datum_type.is_integer() && exponent_type.is_integer() {
            of_integers(wiring, base, exponent)?
        } else if datum_type == exponent_type {
            wiring.wire(pow(), inputs)?
        } else {
            of_floats(wiring, base, exponent, DatumType::F64)?
        };
        Ok(tvec!(result))
    }
}

/// Computes in another type, and returns the type of the base.
fn of_floats(
    wiring: &mut NodeWiring<'_>,
    base: OutletId,
    exponent: OutletId,
    datum_type: DatumType,
) -> TractResult<OutletId> {
    let own = wiring.datum_type(base)?;
    let base = wiring.cast(base, datum_type)?;
    let exponent = wiring.cast(exponent, datum_type)?;
    let result = wiring.wire(pow(), &[base, exponent])?;
    wiring.cast(result, own)
}

/// The truncated result for a negative exponent: 1, -1 or 0.
fn of_integers(
    wiring: &mut NodeWiring<'_>,
    base: OutletId,
    exponent: OutletId,
) -> TractResult<OutletId> {
    let datum_type = wiring.datum_type(base)?;
    let fraction = of_floats(wiring, base, exponent, DatumType::F64)?;
    let (wide_base, wide) = (
        wiring.cast(base, DatumType::I64)?,
        wiring.cast(exponent, DatumType::I64)?,
    );
    let zero = wiring.number(0.0, wide)?;
    let is_negative = wiring.compare(comp_lt(), wide, zero)?;
    // A negative exponent would be taken for a very large one, although its result is not used.
    let positive = wiring.wire(max(), &[wide, zero])?;
    let whole = wiring.wire(pow(), &[wide_base, positive])?;
    let whole = wiring.cast(whole, datum_type)?;
    wiring.select(is_negative, fraction, whole)
}
