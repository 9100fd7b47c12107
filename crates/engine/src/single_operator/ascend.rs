//! Ascend's operator types and attributes, in the words of ONNX.
//!
//! Only operators with exactly one ONNX counterpart are here; ONNX types pass through unchanged.
//! Source of names and attributes: the public operator prototypes of the vendor's graph engine.

use opscope_tensor::DType;

use super::onnx::code;
use super::{Attribute, OperatorError, SingleOperator};

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

/// The numbers that Ascend's `dst_type` uses, as AscendCL documents them.
const ASCEND_DTYPES: &[(i64, DType)] = &[
    (0, DType::F32),
    (1, DType::F16),
    (2, DType::I8),
    (3, DType::I32),
    (4, DType::U8),
    (6, DType::I16),
    (7, DType::U16),
    (8, DType::U32),
    (9, DType::I64),
    (10, DType::U64),
    (11, DType::F64),
    (12, DType::Bool),
    (16, DType::C64),
    (17, DType::C128),
    (27, DType::BF16),
];

/// The same operator in ONNX's words.
pub(super) fn to_onnx_operator(operator: &SingleOperator) -> Result<SingleOperator, OperatorError> {
    let mut onnx = operator.clone();
    if let Some((_, name)) = RENAMED
        .iter()
        .find(|(ascend, _)| *ascend == operator.op_type)
    {
        onnx.op_type = (*name).to_owned();
    }
    let renamed = RENAMED_ATTRIBUTE
        .iter()
        .find(|rule| rule.0 == operator.op_type);
    if let Some((_, name, from, to)) = renamed {
        onnx.op_type = (*name).to_owned();
        if let Some(value) = onnx.take(from) {
            onnx.attributes.push(((*to).to_owned(), value));
        }
        keep_dims(&mut onnx);
    }
    match operator.op_type.as_str() {
        "Cast" => cast(&mut onnx)?,
        "SoftmaxV2" => softmax(&mut onnx)?,
        "MatMul" | "MatMulV2" | "BatchMatMul" | "BatchMatMulV2" => matrix_product(&mut onnx)?,
        "Conv2D" => convolution(&mut onnx)?,
        _ => {}
    }
    Ok(onnx)
}

fn keep_dims(onnx: &mut SingleOperator) {
    if let Some(value) = onnx.take("keep_dims") {
        onnx.attributes.push(("keepdims".into(), value));
    }
}

fn cast(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    let Some(value) = onnx.take("dst_type") else {
        return Ok(());
    };
    let dtype = match &value {
        Attribute::Int(number) => ASCEND_DTYPES
            .iter()
            .find(|(n, _)| n == number)
            .map(|(_, d)| *d),
        Attribute::Text(name) => super::json::dtype(name),
        _ => None,
    };
    let code = dtype.and_then(code).ok_or_else(|| {
        onnx.inexpressible(format!("`dst_type` {value:?} names no dtype that ONNX has"))
    })?;
    onnx.attributes
        .push(("to".into(), Attribute::Int(code.cast_signed())));
    Ok(())
}

fn softmax(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    onnx.op_type = "Softmax".into();
    match onnx.take("axes") {
        None => {}
        Some(Attribute::Ints(axes)) if axes.len() == 1 => {
            onnx.attributes
                .push(("axis".into(), Attribute::Int(axes[0])));
        }
        Some(_) => return Err(onnx.inexpressible("`axes` must name one axis")),
    }
    onnx.take("half_to_float");
    Ok(())
}

/// With transposed operands it is a general matrix product, which takes matrices only.
fn matrix_product(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    let mut is_set = |names: [&str; 2]| {
        let values = names.map(|name| onnx.take(name));
        values.contains(&Some(Attribute::Int(1)))
    };
    let (first, second) = (
        is_set(["transpose_x1", "adj_x1"]),
        is_set(["transpose_x2", "adj_x2"]),
    );
    onnx.take("offset_x");
    let has_bias = onnx.inputs.get(2).is_some_and(Option::is_some);
    if !first && !second && !has_bias {
        onnx.op_type = "MatMul".into();
        onnx.inputs.truncate(2);
        return Ok(());
    }
    let is_matrix = |i: usize| {
        let dims = onnx
            .inputs
            .get(i)
            .and_then(|input| input.as_ref()?.dims.as_ref());
        dims.is_none_or(|dims| dims.len() == 2)
    };
    if !is_matrix(0) || !is_matrix(1) {
        return Err(onnx.inexpressible("transposing or adding a bias takes matrices of two axes"));
    }
    onnx.op_type = "Gemm".into();
    onnx.inputs.truncate(3);
    onnx.attributes
        .push(("transA".into(), Attribute::Int(first.into())));
    onnx.attributes
        .push(("transB".into(), Attribute::Int(second.into())));
    Ok(())
}

/// Strides and dilations come for four axes; the pads are top, bottom, left and right.
fn convolution(onnx: &mut SingleOperator) -> Result<(), OperatorError> {
    onnx.op_type = "Conv".into();
    onnx.inputs.truncate(3);
    let is_nhwc = onnx.take("data_format") == Some(Attribute::Text("NHWC".into()));
    if is_nhwc {
        return Err(onnx.inexpressible("ONNX convolves `NCHW` only, `data_format` is `NHWC`"));
    }
    onnx.take("offset_x");
    for name in ["strides", "dilations"] {
        let Some(value) = onnx.take(name) else {
            continue;
        };
        let Attribute::Ints(values) = &value else {
            return Err(onnx.inexpressible(format!("`{name}` must be a list of numbers")));
        };
        let planar = values.get(2..4).unwrap_or(values).to_vec();
        onnx.attributes
            .push((name.to_owned(), Attribute::Ints(planar)));
    }
    match onnx.take("pads") {
        None => {}
        Some(Attribute::Ints(pads)) if pads.len() == 4 => {
            let sorted = vec![pads[0], pads[2], pads[1], pads[3]];
            onnx.attributes
                .push(("pads".into(), Attribute::Ints(sorted)));
        }
        Some(_) => return Err(onnx.inexpressible("`pads` must be four numbers")),
    }
    if let Some(groups) = onnx.take("groups") {
        onnx.attributes.push(("group".into(), groups));
    }
    Ok(())
}
