//! `Cast` to integers that stay integers.
//!
//! tract treats computed `int64` values as dimensions, and makes symbols of them. Its operators
//! calculate differently with symbols than with integers: a remainder has the sign of the dividend,
//! a quotient is rounded down.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::cast::cast;

use super::composition::{Built, Composition, ResultType, build, builder_of_engine};
use super::wiring::{NodeWiring, WiredOutlets};

/// A cast to `int64`.
#[derive(Debug, Clone)]
struct CastToInteger;

pub(super) fn cast_to(context: &ParsingContext<'_>, node: &NodeProto) -> Built {
    // Only this type is treated as dimensions; casts to all others are right.
    if node.get_attr::<DatumType>("to")? == DatumType::I64 {
        return build::<CastToInteger>(context, node);
    }
    builder_of_engine("Cast")?(context, node)
}

impl Composition for CastToInteger {
    const OP_TYPE: &'static str = "Cast";
    const RESULT_TYPE: ResultType = ResultType::Fixed(DatumType::I64);

    fn from_node(_context: &ParsingContext<'_>, _node: &NodeProto) -> TractResult<Self> {
        Ok(CastToInteger)
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        Ok(tvec!(
            wiring.wire_as_is(cast(DatumType::I64), &inputs[..1])?
        ))
    }
}
