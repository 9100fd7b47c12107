//! `Resize` of an axis to one element.
//!
//! With `pytorch_half_pixel` the one element stands at the first one of the axis; tract takes it from half an element before, which
//! a cubic curve shows.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;

use super::composition::{Built, Composition, Part, ResultShape, compose};
use super::wiring::Wiring;

/// A cubic `Resize` with `pytorch_half_pixel`.
#[derive(Clone, Debug)]
struct CubicResize(Part);

pub(super) fn build(context: &ParsingContext<'_>, node: &NodeProto) -> Built {
    let resize = super::builder_of_engine("Resize")?(context, node);
    let word = |name: &str| node.get_attr_opt::<&str>(name);
    let is_cubic = word("mode")? == Some("cubic");
    if is_cubic && word("coordinate_transformation_mode")? == Some("pytorch_half_pixel") {
        return compose(CubicResize(Part::new(resize)?));
    }
    resize
}

impl Composition for CubicResize {
    const RESULT_SHAPE: ResultShape = ResultShape::OfSameRank;

    fn op_type(&self) -> StaticName {
        "Resize".into()
    }

    fn wire(&self, wiring: &mut Wiring<'_>, inputs: &[OutletId]) -> TractResult<TVec<OutletId>> {
        let outputs = self.0.wire(wiring, inputs)?;
        let (given, resized) = (wiring.dims(inputs[0])?, wiring.dims(outputs[0])?);
        let shrinks = |(given, resized): (&usize, &usize)| *given > 1 && *resized == 1;
        ensure!(
            !given.iter().zip(&resized).any(shrinks),
            "from {given:?} to {resized:?}: the engine gets an axis of one element wrong with \
             `mode=cubic` and `pytorch_half_pixel`"
        );
        Ok(outputs)
    }
}
