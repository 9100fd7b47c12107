//! Finds the elements of an output that depend on finite input elements only: one masked score must
//! not hide the overflow of another.

use opscope_store::record::Record;
use opscope_tensor::Tensor;

use super::non_finite::{holds_non_finite, non_finite_elements};
use super::operators::is_set;
use super::walk::OperandWalk;

/// Element-wise operators of ONNX and PyTorch, in lower case and without underscores.
const ELEMENTWISE: &[&str] = &[
    "abs",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "biasgelu",
    "ceil",
    "celu",
    "cos",
    "cosh",
    "div",
    "elu",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "fastgelu",
    "floor",
    "fmod",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "leakyrelu",
    "lerp",
    "log",
    "log10",
    "log1p",
    "log2",
    "mean",
    "mish",
    "mod",
    "mul",
    "neg",
    "pow",
    "prelu",
    "quickgelu",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "rsub",
    "selu",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "sub",
    "sum",
    "swish",
    "tan",
    "tanh",
    "thresholdedrelu",
];
/// Operators of the list that are reductions in PyTorch.
const TORCH_REDUCING: [&str; 2] = ["mean", "sum"];

/// A mask of non-finite elements, with axes that broadcast to those of the output.
struct TaintedElements {
    dims: Vec<usize>,
    is_tainted: Vec<bool>,
}

/// For each element of an output, whether it depends on a non-finite input element; none if the
/// dependence is unknown for the operator.
pub(super) fn tainted(record: &Record, output: &Tensor) -> Option<Vec<bool>> {
    let dims = output.shape().dims();
    let inputs = record.inputs.iter().map(|(_, tensor)| tensor);
    let word = word_of(&record.operator.op_type);
    // ONNX's `Sum` and `Mean` combine several tensors, PyTorch's the elements of one.
    let is_torch = record.operator.op_type.contains('.');
    let is_reducing = is_torch && TORCH_REDUCING.contains(&word.as_str());
    let operands = if ELEMENTWISE.contains(&word.as_str()) && !is_reducing {
        inputs.map(taint_of).collect::<Option<Vec<_>>>()?
    } else {
        products(record, &word)?
    };
    let mut found = vec![false; output.shape().n_elements()];
    for operand in operands {
        if !operand.is_tainted.contains(&true) {
            continue;
        }
        let walk = OperandWalk::broadcast(&[dims, &operand.dims])?;
        // Operands larger than the output belong to another kind of operator.
        if walk.n_elements() != found.len() {
            return None;
        }
        walk.each_run(|n, offsets, strides| {
            for i in 0..n {
                let own = offsets[0] + i * strides[0];
                found[own] |= operand.is_tainted[offsets[1] + i * strides[1]];
            }
        });
    }
    Some(found)
}

/// The word that names an operator: `mul` of `Mul`, `aten.mul_.Tensor` and `aten.mul.Scalar`.
fn word_of(op_type: &str) -> String {
    let mut parts = op_type.split('.');
    let first = parts.next().unwrap_or_default();
    let word = parts.next().unwrap_or(first);
    word.to_ascii_lowercase().replace('_', "")
}

fn taint_of(tensor: &Tensor) -> Option<TaintedElements> {
    let mut is_tainted = vec![false; tensor.shape().n_elements()];
    if holds_non_finite(tensor) {
        for element in non_finite_elements(tensor.host_view().ok()?) {
            *is_tainted.get_mut(element)? = true;
        }
    }
    Some(TaintedElements {
        dims: tensor.shape().dims().to_vec(),
        is_tainted,
    })
}

/// The factors of a matrix product: whether a row of the first or a column of the second has a
/// non-finite element, and each element of the addend.
fn products(record: &Record, word: &str) -> Option<Vec<TaintedElements>> {
    let input = |i: usize| {
        let mut inputs = record.inputs.iter();
        inputs
            .find(|(index, _)| *index == i)
            .map(|(_, tensor)| tensor)
    };
    // Positions of both factors and of the addend, and whether each factor is transposed.
    let ([a, b], added, [turned_a, turned_b]) = match word {
        "matmul" | "mm" | "bmm" => ([0, 1], None, [false, false]),
        "gemm" => (
            [0, 1],
            Some(2),
            [
                is_set(&record.operator, "transA"),
                is_set(&record.operator, "transB"),
            ],
        ),
        "addmm" | "baddbmm" => ([1, 2], Some(0), [false, false]),
        "linear" => ([0, 1], Some(2), [false, true]),
        _ => return None,
    };
    let mut operands = vec![
        any_along(taint_of(input(a)?)?, !turned_a, true)?,
        any_along(taint_of(input(b)?)?, turned_b, false)?,
    ];
    if let Some(added) = added.and_then(input) {
        operands.push(taint_of(added)?);
    }
    Some(operands)
}

/// Whether any element along the summed axis is non-finite: the last axis, or the one before. The
/// result has the remaining axis as rows or as columns of the product.
fn any_along(elements: TaintedElements, is_last: bool, is_rows: bool) -> Option<TaintedElements> {
    let TaintedElements { dims, is_tainted } = elements;
    let (&[m, k], batch) = dims
        .split_last_chunk::<2>()
        .map(|(batch, last)| (last, batch))?;
    // A transposed factor is summed along its rows.
    let n_left = if is_last { m } else { k };
    let mut left = vec![false; batch.iter().product::<usize>() * n_left];
    for (at, _) in is_tainted.iter().enumerate().filter(|(_, is)| **is) {
        let (nth, inner) = (at / (m * k), at % (m * k));
        let own = if is_last { inner / k } else { inner % k };
        left[nth * n_left + own] = true;
    }
    let mut dims = batch.to_vec();
    dims.extend(if is_rows { [n_left, 1] } else { [1, n_left] });
    Some(TaintedElements {
        dims,
        is_tainted: left,
    })
}
