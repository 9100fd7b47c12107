//! `Gemm` for every float type.
//!
//! tract's own builder keeps `alpha` and `beta` in float32, which makes a float16 Gemm with a bias
//! fail. This one composes the same tract operators with the factors cast to the type of the data.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::axes::AxesMapping;
use tract_onnx::tract_core::ops::change_axes::AxisOp;
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_core::ops::math::{add, mul};
use tract_onnx::tract_hir::internal::*;

#[derive(Debug, Clone)]
struct Gemm {
    alpha: f32,
    beta: f32,
    is_a_transposed: bool,
    is_b_transposed: bool,
}

pub(super) fn build(
    _context: &ParsingContext<'_>,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let gemm = Gemm {
        alpha: node.get_attr_opt("alpha")?.unwrap_or(1.0),
        beta: node.get_attr_opt("beta")?.unwrap_or(1.0),
        is_a_transposed: node.get_attr_opt("transA")?.unwrap_or(false),
        is_b_transposed: node.get_attr_opt("transB")?.unwrap_or(false),
    };
    Ok((expand(gemm), vec![]))
}

impl Expansion for Gemm {
    fn name(&self) -> StaticName {
        "Gemm".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&inputs[0].rank, 2)?;
        solver.equals(&inputs[1].rank, 2)?;
        solver.equals(&outputs[0].rank, 2)?;
        solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let dtype = model.outlet_fact(inputs[0])?.datum_type;
        let axes =
            AxesMapping::for_numpy_matmul(2, self.is_a_transposed, self.is_b_transposed, false)?;
        let product = EinSum::new(axes, dtype);
        let mut wire = model.wire_node(format!("{prefix}.ab"), product, &inputs[..2])?[0];
        wire = scale(model, &format!("{prefix}.alpha"), wire, self.alpha, dtype)?;
        if let (Some(&bias), true) = (inputs.get(2), self.beta != 0.0) {
            let mut bias = bias;
            for axis in model.outlet_fact(bias)?.rank()..2 {
                let name = format!("{prefix}.bias_axis_{axis}");
                bias = model.wire_node(name, AxisOp::Add(0), &[bias])?[0];
            }
            let bias = scale(model, &format!("{prefix}.beta"), bias, self.beta, dtype)?;
            wire = model.wire_node(prefix, add(), &[wire, bias])?[0];
        }
        Ok(tvec!(wire))
    }
}

/// Multiplies by a factor of the data's own type, unless it is one.
fn scale(
    model: &mut TypedModel,
    name: &str,
    wire: OutletId,
    factor: f32,
    dtype: DatumType,
) -> TractResult<OutletId> {
    if factor == 1.0 {
        return Ok(wire);
    }
    let factor = tensor0(factor)
        .cast_to_dt(dtype)?
        .into_owned()
        .broadcast_into_rank(2)?;
    let factor = model.add_const(format!("{name}.factor"), factor)?;
    Ok(model.wire_node(name, mul(), &[factor, wire])?[0])
}
