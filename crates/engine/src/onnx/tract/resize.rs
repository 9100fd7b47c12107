//! `Resize` of an axis to one element.
//!
//! With `pytorch_half_pixel` the only element is at the first position of the axis; tract takes it
//! from half an element before, which shows with a cubic curve.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;

use super::composition::{Built, Composition, EnginePart, ResultShape, build, builder_of_engine};
use super::wiring::{NodeWiring, WiredOutlets};

/// A cubic `Resize` with `pytorch_half_pixel`.
#[derive(Clone, Debug)]
struct CubicResize(EnginePart);

pub(super) fn resize(context: &ParsingContext<'_>, node: &NodeProto) -> Built {
    let mode = node.get_attr_opt::<&str>("mode")?;
    let positions = node.get_attr_opt::<&str>("coordinate_transformation_mode")?;
    if mode == Some("cubic") && positions == Some("pytorch_half_pixel") {
        return build::<CubicResize>(context, node);
    }
    builder_of_engine("Resize")?(context, node)
}

impl Composition for CubicResize {
    const OP_TYPE: &'static str = "Resize";
    const RESULT_SHAPE: ResultShape = ResultShape::OfSameRank;

    fn from_node(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        Ok(CubicResize(EnginePart::new(context, node)?))
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        // The dimensions are known only once the operator is wired, so it is refused here and not
        // at the load.
        let outputs = self.0.wire(wiring, inputs)?;
        let (given, resized) = (wiring.dims(inputs[0])?, wiring.dims(outputs[0])?);
        ensure!(
            !given
                .iter()
                .zip(&resized)
                .any(|(given, resized)| *given > 1 && *resized == 1),
            "from {given:?} to {resized:?}: the engine gets an axis of one element wrong with \
             `mode=cubic` and `pytorch_half_pixel`"
        );
        Ok(outputs)
    }
}
