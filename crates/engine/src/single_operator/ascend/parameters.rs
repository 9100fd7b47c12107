//! Parameters that Ascend has as attributes where ONNX reads a value, and the other way round.

use opscope_tensor::{DType, Layout, Shape, Tensor};

use super::keep_dims;
use crate::DeclaredDim;
use crate::single_operator::operator::{Operand, OperatorAttribute, OperatorError, SingleOperator};

/// The first opset in which `ReduceSum` reads its axes.
const AXES_ARE_READ: i64 = 13;

/// Puts a list of numbers behind the inputs as a constant.
pub(super) fn read_attribute(onnx: &mut SingleOperator, name: &str) -> Result<(), OperatorError> {
    let numbers = match onnx.take(name) {
        Some(OperatorAttribute::Ints(numbers)) => numbers,
        Some(OperatorAttribute::Int(number)) => vec![number],
        _ => return Err(onnx.inexpressible(format!("`{name}` must be a list of numbers"))),
    };
    onnx.inputs.truncate(1);
    let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let tensor = Shape::new([numbers.len()])
        .map_err(|error| error.to_string())
        .and_then(|shape| {
            Tensor::from_vec(DType::I64, shape, bytes).map_err(|error| error.to_string())
        })
        .map_err(|reason| onnx.inexpressible(format!("`{name}`: {reason}")))?;
    onnx.inputs.push(Some(Operand {
        // No operand of the description has such a name.
        name: format!("attribute::{name}"),
        dtype: DType::I64,
        dims: Some(vec![DeclaredDim::Fixed(numbers.len())]),
        constant: Some(tensor),
        layout: Layout::Nd,
        origin_layout: None,
    }));
    Ok(())
}

/// `BroadcastToD`. ONNX's `Expand` also widens the shape by the input, which Ascend refuses.
pub(super) fn broadcast(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    onnx.op_type = "Expand".into();
    let shape = onnx.attributes.iter().find(|(name, _)| name == "shape");
    let input = onnx.inputs.first().and_then(Option::as_ref);
    let dims = input.and_then(|input| input.dims.as_ref());
    if let (Some((_, OperatorAttribute::Ints(shape))), Some(dims)) = (shape, dims) {
        let mut pairs = dims.iter().rev().zip(shape.iter().rev());
        if dims.len() > shape.len()
            || !pairs.all(|(dim, wanted)| match dim {
                DeclaredDim::Fixed(n) => *n == 1 || i64::try_from(*n) == Ok(*wanted),
                DeclaredDim::Named(_) | DeclaredDim::Unknown => true,
            })
        {
            let reason = format!("`shape` is {shape:?}, to which input 0 cannot be broadcast");
            return Err(onnx.inexpressible(reason));
        }
    }
    read_attribute(onnx, "shape")
}

/// `ReduceSumD`.
pub(super) fn sum(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    onnx.op_type = "ReduceSum".into();
    keep_dims(onnx);
    if onnx.opset < AXES_ARE_READ {
        return Ok(());
    }
    read_attribute(onnx, "axes")
}

/// `ArgMaxV2`, `ArgMin` and the like: the axis is `dimension`, an input or an attribute, and is
/// dropped from the result. Equal elements give the first of them, as in ONNX.
pub(super) fn position_of_extreme(
    onnx: &mut SingleOperator,
    op_type: &str,
) -> Result<(), OperatorError> {
    let axis = match onnx.take("dimension") {
        Some(OperatorAttribute::Int(axis)) => Some(axis),
        _ => onnx
            .inputs
            .get(1)
            .and_then(Option::as_ref)
            .and_then(|operand| sole_number(operand.constant.as_ref()?)),
    };
    let Some(axis) = axis else {
        let reason = "`dimension` must be an attribute, or input 1 with `const_value`";
        return Err(onnx.inexpressible(reason));
    };
    onnx.op_type = op_type.into();
    onnx.inputs.truncate(1);
    // The dtype of the result, which its description has as well.
    onnx.take("dtype");
    let number = OperatorAttribute::Int;
    onnx.attributes.push(("axis".into(), number(axis)));
    onnx.attributes.push(("keepdims".into(), number(0)));
    if let Some(Some(output)) = onnx.outputs.first_mut() {
        output.dtype = DType::I64;
    }
    Ok(())
}

/// The only element of a tensor of integers.
fn sole_number(tensor: &Tensor) -> Option<i64> {
    let bytes = tensor.host_bytes().ok()?;
    match tensor.dtype() {
        DType::I32 => Some(i32::from_le_bytes(bytes.try_into().ok()?).into()),
        DType::I64 => Some(i64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}
