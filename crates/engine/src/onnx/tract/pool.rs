//! `GlobalLpPool`, of which tract has an average, and the positions of a `MaxPool` of integers.
//!
//! tract searches for an element above the lowest number of the type. If all elements of a window
//! are that number, which is zero for `uint8`, it returns the position of another element.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::math::{abs, mul, pow, sqrt};
use tract_onnx::tract_core::ops::nn::{Reduce, Reducer};
use tract_onnx::tract_hir::internal::*;

use super::composition::{Built, Composition, EnginePart, ResultShape, build, builder_of_engine};
use super::wiring::{NodeWiring, WiredOutlets};

/// The first axis of an image.
const FIRST_SPATIAL_AXIS: usize = 2;

/// `sum(|x|^p)^(1/p)` of each channel.
#[derive(Debug, Clone)]
pub(super) struct GlobalLpPool {
    p: i64,
}

/// `MaxPool` with positions.
#[derive(Debug, Clone)]
struct MaxPool(EnginePart);

pub(super) fn max_pool(context: &ParsingContext<'_>, node: &NodeProto) -> Built {
    let has_positions = node.output.get(1).is_some_and(|name| !name.is_empty());
    if has_positions {
        return build::<MaxPool>(context, node);
    }
    builder_of_engine("MaxPool")?(context, node)
}

impl Composition for GlobalLpPool {
    const OP_TYPE: &'static str = "GlobalLpPool";
    const RESULT_SHAPE: ResultShape = ResultShape::OfSameRank;

    fn from_node(_context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        let p = node.get_attr_opt("p")?.unwrap_or(2);
        ensure!(p > 0, "the exponent `p` is {p}, expected a positive number");
        Ok(GlobalLpPool { p })
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let x = inputs[0];
        let axes = (FIRST_SPATIAL_AXIS..wiring.dims(x)?.len()).collect();
        let reducer = Reducer::Sum;
        let size = wiring.wire(abs(), &[x])?;
        // The usual exponents need no general power, which is less exact.
        let powered = match self.p {
            1 => size,
            2 => wiring.wire(mul(), &[size, size])?,
            p => {
                let p = wiring.number(p as f64, x)?;
                wiring.wire(pow(), &[size, p])?
            }
        };
        let sum = wiring.wire_as_is(Reduce { axes, reducer }, &[powered])?;
        let result = match self.p {
            1 => sum,
            2 => wiring.wire(sqrt(), &[sum])?,
            p => {
                let root = wiring.number(1.0 / p as f64, x)?;
                wiring.wire(pow(), &[sum, root])?
            }
        };
        Ok(tvec!(result))
    }
}

impl Composition for MaxPool {
    const OP_TYPE: &'static str = "MaxPool";

    fn from_node(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        Ok(MaxPool(EnginePart::new(context, node)?))
    }

    fn n_outputs(&self) -> usize {
        2
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)?;
        solver.equals(&outputs[1].datum_type, DatumType::I64)
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let datum_type = wiring.datum_type(inputs[0])?;
        if datum_type.is_float() {
            return self.0.wire(wiring, inputs);
        }
        // All integers that ONNX pools have eight bits, and float32 has numbers below them.
        let x = wiring.cast(inputs[0], DatumType::F32)?;
        let mut outputs = self.0.wire(wiring, &[x])?;
        outputs[0] = wiring.cast(outputs[0], datum_type)?;
        Ok(outputs)
    }
}
