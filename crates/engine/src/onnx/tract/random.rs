//! Operators that draw random numbers, with a seed in any case.
//!
//! tract's builder checks the end of the node's name instead of its type, and draws float16 numbers
//! from an even distribution where a normal one is asked for. These are drawn in float32 and
//! rounded.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::cast::cast;
use tract_onnx::tract_hir::internal::*;

use super::composition::{Built, builder_of_engine, float};
use super::wiring::WiredOutlets;
use crate::onnx::random::seed;

/// The operators that are built here.
pub(super) const OP_TYPES: &[&str] = &[
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];

/// An operator that draws float16 numbers, made of one that draws float32.
#[derive(Debug, Clone)]
struct HalfPrecisionDraw {
    single: Box<dyn InferenceOp>,
    /// Whether the type is that of the input.
    is_like_input: bool,
}

pub(super) fn draw(context: &ParsingContext<'_>, node: &NodeProto) -> Built {
    let mut node = node.clone();
    if !node.attribute.iter().any(|attr| attr.name == "seed") {
        let value = seed(node.output.first().map_or("", String::as_str));
        node.attribute.push(float("seed", value.into()));
    }
    let builder = builder_of_engine(&node.op_type)?;
    // It draws indices, so that neither its name nor a float type matters.
    if node.op_type == "Multinomial" {
        return builder(context, &node);
    }
    // tract's builder uses the end of the name to decide the distribution.
    node.name.clone_from(&node.op_type);
    let dtype = node.attribute.iter_mut().find(|attr| attr.name == "dtype");
    let has_type = dtype.is_some();
    let is_half = dtype.is_some_and(|attr| {
        let is_half = attr.i == DataType::Float16 as i64;
        if is_half {
            attr.i = DataType::Float as i64;
        }
        is_half
    });
    // Without a type attribute, the operator takes the type of its input, which is known only when
    // it is wired.
    let is_like_input = !has_type && node.op_type.ends_with("Like");
    let (single, closure) = builder(context, &node)?;
    if is_half || is_like_input {
        let rounded = HalfPrecisionDraw {
            single,
            is_like_input,
        };
        return Ok((expand(rounded), closure));
    }
    Ok((single, closure))
}

impl Expansion for HalfPrecisionDraw {
    fn name(&self) -> StaticName {
        "Random".into()
    }

    fn runs_out_of_plan(&self) -> bool {
        false
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        if let Some(like) = inputs.first() {
            solver.equals(&like.shape, &outputs[0].shape)?;
        }
        match inputs.first().filter(|_| self.is_like_input) {
            Some(like) => solver.equals(&like.datum_type, &outputs[0].datum_type),
            None => solver.equals(&outputs[0].datum_type, DatumType::F16),
        }
    }

    fn wire(&self, prefix: &str, model: &mut TypedModel, inputs: &[OutletId]) -> WiredOutlets {
        let single = self.single.as_op().downcast_ref::<Box<dyn Expansion>>();
        let single = single.context("the engine builds this operator in another way")?;
        let like = inputs.first().filter(|_| self.is_like_input);
        let mut inputs: TVec<OutletId> = inputs.into();
        if let Some(&like) = like {
            if model.outlet_fact(like)?.datum_type != DatumType::F16 {
                return single.wire(prefix, model, &inputs);
            }
            inputs[0] =
                model.wire_node(format!("{prefix}.like"), cast(DatumType::F32), &[like])?[0];
        }
        let drawn = single.wire(&format!("{prefix}.drawn"), model, &inputs)?;
        model.wire_node(prefix, cast(DatumType::F16), &drawn)
    }
}
