//! Ascend's operator types and attributes, in the words of ONNX.
//!
//! Only operators with exactly one ONNX counterpart are here; ONNX types pass through unchanged. A
//! result that ONNX has in int64 alone is narrowed behind the engine.
//! Source of names and attributes: the public operator prototypes of the vendor's graph engine.

mod parameters;
mod window;

use opscope_store::file_format::ascend_codes::dtype_from_graph_engine;
use opscope_tensor::{DType, Layout};

use super::operator::{OperatorAttribute, OperatorError, SingleOperator};
use crate::onnx_dtype::code;

/// Types that differ in name only.
const RENAMED: &[(&str, &str)] = &[
    ("RealDiv", "Div"),
    ("Maximum", "Max"),
    ("Minimum", "Min"),
    ("LogicalAnd", "And"),
    ("LogicalOr", "Or"),
    ("LogicalNot", "Not"),
    ("Select", "Where"),
    ("SelectV2", "Where"),
    ("Conv2D", "Conv"),
    ("Conv3D", "Conv"),
    ("MaxPoolV3", "MaxPool"),
    ("AvgPool", "AveragePool"),
    ("AvgPoolV2", "AveragePool"),
    ("BiasAdd", "Add"),
    ("BroadcastTo", "Expand"),
];

/// Types whose one list or number has another name in ONNX.
const RENAMED_ATTRIBUTE: &[(&str, &str, &str, &str)] = &[
    ("TransposeD", "Transpose", "perm", "perm"),
    ("ConcatD", "Concat", "concat_dim", "axis"),
    ("LeakyRelu", "LeakyRelu", "negative_slope", "alpha"),
    ("ReduceMeanD", "ReduceMean", "axes", "axes"),
    ("ReduceMaxD", "ReduceMax", "axes", "axes"),
    ("ReduceMinD", "ReduceMin", "axes", "axes"),
    ("ReduceProdD", "ReduceProd", "axes", "axes"),
];

/// Returns ONNX's name of the type.
pub(super) fn name_in_onnx(op_type: &str) -> &str {
    let known = RENAMED.iter().find(|(ascend, _)| *ascend == op_type);
    known.map_or(op_type, |(_, name)| name)
}

/// The same operator in ONNX's words.
pub(super) fn to_onnx_operator(operator: &SingleOperator) -> Result<SingleOperator, OperatorError> {
    let mut onnx = operator.clone();
    onnx.op_type = name_in_onnx(&operator.op_type).to_owned();
    let renamed = RENAMED_ATTRIBUTE
        .iter()
        .find(|rule| rule.0 == operator.op_type);
    if let Some((_, name, from, to)) = renamed {
        onnx.op_type = (*name).to_owned();
        if let Some(value) = onnx.take(from) {
            onnx.attributes.push(((*to).to_owned(), value));
        }
        // All reductions among these types name it alike; the others have no such attribute.
        keep_dims(&mut onnx);
    }
    match operator.op_type.as_str() {
        "Cast" => cast(&mut onnx)?,
        "SoftmaxV2" => softmax(&mut onnx)?,
        "MatMul" | "MatMulV2" | "BatchMatMul" | "BatchMatMulV2" => matrix_product(&mut onnx)?,
        "Conv2D" | "Conv3D" => window::convolution(&mut onnx, true)?,
        "Conv" | "ConvTranspose" => window::convolution(&mut onnx, false)?,
        "MaxPool" | "MaxPoolV3" | "AvgPool" | "AvgPoolV2" | "AveragePool" | "LpPool" => {
            window::pool(&mut onnx)?;
        }
        "BiasAdd" => bias(&mut onnx),
        "DepthToSpace" | "SpaceToDepth" => depth(&mut onnx)?,
        "BroadcastToD" => parameters::broadcast(&mut onnx)?,
        "ReduceSumD" => parameters::sum(&mut onnx)?,
        "TileD" => {
            onnx.op_type = "Tile".into();
            parameters::read_attribute(&mut onnx, "multiples")?;
        }
        "ArgMaxV2" | "ArgMaxD" => parameters::position_of_extreme(&mut onnx, "ArgMax")?,
        "ArgMinD" => parameters::position_of_extreme(&mut onnx, "ArgMin")?,
        // ONNX's own `ArgMin` has one input and neither attribute.
        "ArgMin" if onnx.inputs.len() > 1 => {
            parameters::position_of_extreme(&mut onnx, "ArgMin")?;
        }
        _ => {}
    }
    Ok(onnx)
}

fn keep_dims(onnx: &mut SingleOperator) {
    if let Some(value) = onnx.take("keep_dims") {
        onnx.attributes.push(("keepdims".into(), value));
    }
}

/// The dtype for a number of `dst_type`, if AscendCL documents it for casts.
fn dst_type(number: i64) -> Option<DType> {
    dtype_from_graph_engine(i32::try_from(number).ok()?)
        .filter(|dtype| dtype.as_numpy().is_some() || *dtype == DType::BF16)
}

fn cast(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    let Some(value) = onnx.take("dst_type") else {
        return Ok(());
    };
    let dtype = match &value {
        OperatorAttribute::Int(number) => dst_type(*number),
        OperatorAttribute::Text(name) => super::json::dtype(name),
        _ => None,
    };
    let code = dtype.and_then(code).ok_or_else(|| {
        onnx.inexpressible(format!("`dst_type` {value:?} names no dtype that ONNX has"))
    })?;
    onnx.attributes
        .push(("to".into(), OperatorAttribute::Int(code.cast_signed())));
    Ok(())
}

fn softmax(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    onnx.op_type = "Softmax".into();
    match onnx.take("axes") {
        None => {}
        Some(OperatorAttribute::Ints(axes)) if axes.len() == 1 => {
            onnx.attributes
                .push(("axis".into(), OperatorAttribute::Int(axes[0])));
        }
        Some(_) => return Err(onnx.inexpressible("`axes` must name one axis")),
    }
    onnx.take("half_to_float");
    Ok(())
}

/// With transposed operands it is a general matrix product, which takes matrices only.
fn matrix_product(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    let names = [["transpose_x1", "adj_x1"], ["transpose_x2", "adj_x2"]];
    let [first, second] = names.map(|names| {
        let values = names.map(|name| onnx.take(name));
        values.contains(&Some(OperatorAttribute::Int(1)))
    });
    // It is for quantised inputs, for which ONNX has separate operators.
    onnx.take("offset_x");
    let has_bias = onnx.inputs.get(2).is_some_and(Option::is_some);
    if !first && !second && !has_bias {
        onnx.op_type = "MatMul".into();
        onnx.inputs.truncate(2);
        return Ok(());
    }
    // `Gemm` is the only product of ONNX that transposes, and it takes matrices only.
    let inputs = onnx.inputs.iter().take(2).flatten();
    let mut dims = inputs.filter_map(|input| input.dims.as_ref());
    if dims.any(|dims| dims.len() != 2) {
        return Err(onnx.inexpressible("transposing or adding a bias takes matrices of two axes"));
    }
    onnx.op_type = "Gemm".into();
    onnx.inputs.truncate(3);
    onnx.attributes
        .push(("transA".into(), OperatorAttribute::Int(first.into())));
    onnx.attributes
        .push(("transB".into(), OperatorAttribute::Int(second.into())));
    Ok(())
}

/// One value for each channel is added; the lowering puts it along the right axis.
fn bias(onnx: &mut SingleOperator) {
    onnx.op_type = "Add".into();
    onnx.inputs.truncate(2);
}

/// The block size has another name. The vendor's operator assumes channels last unless configured
/// otherwise, ONNX's channels first: the description has to say which.
fn depth(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    let Some(size) = onnx.take("block_size") else {
        return Ok(());
    };
    let image = onnx.inputs.first().and_then(Option::as_ref);
    if image.is_some_and(|image| image.layout == Layout::Nd) {
        return Err(onnx.inexpressible(
            "it is not said which axis has the channels: give input 0 a format, or set `data_format`",
        ));
    }
    onnx.attributes.push(("blocksize".into(), size));
    Ok(())
}
