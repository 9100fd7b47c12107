//! Pooling with windows derived from the size of the result.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::pooling::{Pool, as_number, expect_room, is_index, write_largest, write_means};
use super::windows::{Members, combined};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of adaptive and global pooling.
#[macro_export]
macro_rules! aclnn_adaptive_pooling {
    ($rows:ident) => {
        $rows! { "adaptive and global pooling";
            AdaptiveAvgPool2d("aclnn_adaptive_avg_pool2d.h", "the mean of each of outputSize windows") by adaptive_average(2):
                aclnnAdaptiveAvgPool2d(self_: Tensor, outputSize: IntArray, out: Out);
            AdaptiveAvgPool3d("aclnn_adaptive_avg_pool3d.h", "the mean of each of outputSize windows") by adaptive_average(3):
                aclnnAdaptiveAvgPool3d(self_: Tensor, outputSize: IntArray, out: Out);
            AdaptiveMaxPool2d("aclnn_adaptive_max_pool2d.h", "the maximum of each of outputSize windows, and its place in the plane") by adaptive_maximum(2):
                aclnnAdaptiveMaxPool2d(self_: Tensor, outputSize: IntArray, outputOut: Out, indicesOut: Out);
            AdaptiveMaxPool3d("aclnn_adaptive_max_pool3d.h", "the maximum of each of outputSize windows, and its place in the volume") by adaptive_maximum(3):
                aclnnAdaptiveMaxPool3d(self_: Tensor, outputSize: IntArray, outputOut: Out, indicesOut: Out);
            GlobalAveragePool("aclnn_global_average_pool.h", "the mean of each channel") by global("ReduceMean"):
                aclnnGlobalAveragePool(self_: Tensor, out: Out);
            GlobalMaxPool("aclnn_global_max_pool.h", "the maximum of each channel") by global("ReduceMax"):
                aclnnGlobalMaxPool(self_: Tensor, out: Out);
        }
    };
}
aclnn_adaptive_pooling!(operator_rows);

/// Checks an adaptive pool and returns its tensor and its numbers of windows.
fn adaptive<'a>(call: &OperatorCall<'a>, n: usize) -> Composed<(&'a TensorArgument, Vec<usize>)> {
    let x = Pool::tensor(call, n)?;
    let list = call.ints("outputSize")?;
    let sizes: Option<Vec<usize>> = list.iter().map(|&n| usize::try_from(n).ok()).collect();
    let sizes = sizes.filter(|sizes| sizes.len() == n);
    let sizes = sizes
        .ok_or_else(|| Refusal::invalid(format!("`outputSize` is {list:?}; expected {n} sizes")))?;
    Ok((x, sizes))
}

fn adaptive_dims(x: &TensorArgument, sizes: &[usize]) -> Vec<usize> {
    let mut dims = x.dims()[..x.n_axes() - sizes.len()].to_vec();
    dims.extend(sizes);
    dims
}

fn adaptive_average(call: &OperatorCall<'_>, n: usize) -> Composed {
    let (x, sizes) = adaptive(call, n)?;
    let out = call.tensor("out")?;
    call.expect_shape(out, &adaptive_dims(x, &sizes))?;
    call.expect_cast(out, x.dtype)?;
    if out.is_empty() {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let axes = shares(x, &sizes)?;
    let counts = counts(&axes);
    write_means(call, x, &axes, &counts, out)
}

/// Number of elements of each window.
pub(super) fn counts(axes: &[Members]) -> Vec<f32> {
    let each: Vec<&[bool]> = axes
        .iter()
        .map(|members| members.are_members.as_slice())
        .collect();
    let n_together: usize = axes.iter().map(|members| members.longest).product();
    let members = combined(&each, axes, true, |a, b, _| a && b);
    let windows = members.chunks(n_together.max(1));
    let counts = windows.map(|window| window.iter().filter(|&&is_member| is_member).count());
    counts.map(as_number).collect()
}

fn adaptive_maximum(call: &OperatorCall<'_>, n: usize) -> Composed {
    let (x, sizes) = adaptive(call, n)?;
    let (out, indices) = (call.tensor("outputOut")?, call.tensor("indicesOut")?);
    let dims = adaptive_dims(x, &sizes);
    call.expect_shape(out, &dims)?;
    call.expect_shape(indices, &dims)?;
    call.expect_cast(out, x.dtype)?;
    call.expect_dtype(indices, is_index, "int32 or int64")?;
    if out.is_empty() {
        call.fill(out, ScalarNumber::Int(0))?;
        return call.fill(indices, ScalarNumber::Int(0));
    }
    write_largest(call, x, &shares(x, &sizes)?, out, Some(indices))
}

pub(super) fn shares(x: &TensorArgument, sizes: &[usize]) -> Composed<Vec<Members>> {
    let first = x.n_axes() - sizes.len();
    let axes = x.dims()[first..].iter().zip(sizes);
    // A window is at most one element longer than an equal share, on either side.
    let extents = axes
        .clone()
        .flat_map(|(&extent, &size)| [size, extent / size.max(1) + 2]);
    expect_room(x.dims()[..first].iter().copied().chain(extents))?;
    Ok(axes
        .map(|(&extent, &size)| Members::shares(extent, size))
        .collect())
}

fn global(call: &OperatorCall<'_>, op: &'static str) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_float(x)?;
    refuse_if!(
        x.n_axes() < 3 || x.dims()[2..].contains(&0),
        "`self` has the shape {:?}; expected axes behind channels",
        x.dims()
    );
    let mut dims = x.dims().to_vec();
    dims[2..].fill(1);
    call.expect_shape(out, &dims)?;
    call.expect_cast(out, x.dtype)?;
    if out.is_empty() {
        return call.fill(out, ScalarNumber::Int(0));
    }
    // Means are computed in double precision, and rounded once.
    let value = call.read(x, DType::F64)?;
    let axes = (2..x.n_axes())
        .map(|axis| axis.cast_signed() as i64)
        .collect();
    let attributes = vec![
        ("axes", OperatorAttribute::Ints(axes)),
        ("keepdims", OperatorAttribute::Int(1)),
    ];
    let mut result = call.node_with(op, &[&value], attributes.clone(), DType::F64);
    if op == "ReduceMax" {
        // Engines may lose NaN, but a sum with NaN is NaN.
        let is_nan = value.is_nan();
        let marks = is_nan.cast(DType::F64);
        let mark = call.node_with(op, &[&marks], attributes.clone(), DType::F64);
        let numbers = is_nan.choose(f64::NEG_INFINITY, &value);
        let largest = call.node_with(op, &[&numbers], attributes, DType::F64);
        result = mark.greater(0.0).choose(f64::NAN, &largest);
    }
    call.write(out, &result, x.dtype)
}
