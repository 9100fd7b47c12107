//! Convolutions.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float};
use super::matmul::expect_mode;
use super::pooling::expect_room;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of convolutions.
#[macro_export]
macro_rules! aclnn_convolution {
    ($rows:ident) => {
        $rows! { "convolutions";
            Conv2D("aclnn_convolution.h", "the convolution of input with weight over one to three axes, plus bias; transposed is its gradient") by convolution():
                aclnnConvolution(input: Tensor, weight: Tensor, bias: OptionalTensor, stride: IntArray, padding: IntArray, dilation: IntArray, transposed: Flag, outputPadding: IntArray, groups: Int, output: Out, cubeMathType: Int8);
            Conv2D("aclnn_convolution.h", "the convolution over the first axis of self, behind which are samples and channels, with weight of taps, channels and results") by convolution_time_first():
                aclnnConvTbc(self_: Tensor, weight: Tensor, bias: Tensor, pad: Int, output: Out, cubeMathType: Int8);
            DepthwiseConv2D("aclnn_convolution.h", "the convolution of each channel of self with kernels of its own") by depthwise_convolution():
                aclnnConvDepthwise2d(self_: Tensor, weight: Tensor, kernelSize: IntArray, bias: OptionalTensor, stride: IntArray, padding: IntArray, dilation: IntArray, out: Out, cubeMathType: Int8);
        }
    };
}
aclnn_convolution!(operator_rows);

/// Numbers of at least `least`; their count is one of `counts`.
fn numbers(
    call: &OperatorCall<'_>,
    name: &str,
    counts: &[usize],
    least: i64,
) -> Composed<Vec<usize>> {
    let list = call.ints(name)?;
    let range = least..=i64::from(i32::MAX);
    let is_known = counts.contains(&list.len()) && list.iter().all(|n| range.contains(n));
    if !is_known {
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        return Err(Refusal::invalid(format!(
            "`{name}` is {list:?}; expected {} numbers of {least} or more",
            counts.join(" or ")
        )));
    }
    Ok(list
        .iter()
        .filter_map(|&n| usize::try_from(n).ok())
        .collect())
}

fn ints(list: &[usize]) -> OperatorAttribute {
    OperatorAttribute::Ints(list.iter().map(|&n| n.cast_signed() as i64).collect())
}

/// The parameters of a convolution along its axes.
pub(super) struct Steps {
    pub(super) stride: Vec<usize>,
    pub(super) before: Vec<usize>,
    pub(super) after: Vec<usize>,
    pub(super) dilation: Vec<usize>,
    /// Additional length of a transposed convolution's result at the end of each axis.
    pub(super) more: Vec<usize>,
    pub(super) is_transposed: bool,
    pub(super) groups: usize,
}

impl Steps {
    fn attributes(&self) -> Vec<(&'static str, OperatorAttribute)> {
        let after = self.after.iter().zip(&self.more);
        let after: Vec<usize> = after.map(|(pad, more)| pad.saturating_sub(*more)).collect();
        let pads: Vec<usize> = self.before.iter().copied().chain(after).collect();
        vec![
            ("strides", ints(&self.stride)),
            ("pads", ints(&pads)),
            ("dilations", ints(&self.dilation)),
            (
                "group",
                OperatorAttribute::Int(self.groups.cast_signed() as i64),
            ),
        ]
    }

    /// Padding at the end of each axis that no input element reaches.
    fn beyond(&self) -> Vec<usize> {
        let after = self.after.iter().zip(&self.more);
        after.map(|(pad, more)| more.saturating_sub(*pad)).collect()
    }

    /// The size of the result along an axis; `None` if the kernel does not fit.
    fn extent(&self, axis: usize, extent: usize, kernel: usize) -> Option<usize> {
        let reach = self.dilation[axis]
            .checked_mul(kernel.checked_sub(1)?)?
            .checked_add(1)?;
        let pads = self.before[axis].checked_add(self.after[axis])?;
        if self.is_transposed {
            // Each input element produces a kernel, one stride apart.
            let grown = extent.checked_sub(1)?.checked_mul(self.stride[axis])?;
            let grown = grown.checked_add(reach)?.checked_add(self.more[axis])?;
            return grown.checked_sub(pads).filter(|&n| n > 0);
        }
        let room = extent.checked_add(pads)?.checked_sub(reach)?;
        Some(room / self.stride[axis] + 1)
    }

    /// The size of a transposed convolution along an axis, before cropping the padding.
    pub(super) fn extent_before_cut(&self, axis: usize, extent: usize, kernel: usize) -> usize {
        let taps = self.dilation[axis].saturating_mul(kernel.saturating_sub(1));
        let steps = self.stride[axis].saturating_mul(extent.saturating_sub(1));
        taps.saturating_add(steps).saturating_add(1)
    }

    /// The shape of the result, from the input's and the weight's.
    pub(super) fn dims(&self, x: &[usize], weight: &[usize]) -> Composed<Vec<usize>> {
        // A transposed convolution has the weight layout of the convolution that it is the gradient
        // of.
        let (channels, results) = if self.is_transposed {
            (weight[0], weight[1].saturating_mul(self.groups))
        } else {
            (weight[1].saturating_mul(self.groups), weight[0])
        };
        let fits_groups =
            results.is_multiple_of(self.groups) && channels.is_multiple_of(self.groups);
        if x[1] != channels || !fits_groups {
            let groups = self.groups;
            return Err(Refusal::invalid(format!(
                "the shapes {x:?} and {weight:?} do not fit together with {groups} groups"
            )));
        }
        let mut dims = vec![x[0], results];
        for (axis, (&extent, &kernel)) in x[2..].iter().zip(&weight[2..]).enumerate() {
            dims.push(self.extent(axis, extent, kernel).ok_or_else(|| {
                Refusal::invalid(format!(
                    "a kernel of {kernel} does not fit into an axis of {extent} with its padding"
                ))
            })?);
        }
        Ok(dims)
    }
}

/// The value of a convolution with a checked shape.
pub(super) fn convolved(
    call: &OperatorCall<'_>,
    [x, weight]: [&Value; 2],
    bias: Option<&TensorArgument>,
    steps: &Steps,
) -> Composed<Value> {
    // The engine's bias and output padding are not used: the area beyond the input's reach gets the
    // bias too, and engines refuse some of these paddings.
    let op = if steps.is_transposed {
        "ConvTranspose"
    } else {
        "Conv"
    };
    let mut result = call.node_with(op, &[x, weight], steps.attributes(), DType::F32);
    let beyond = steps.beyond();
    if beyond.iter().any(|&n| n > 0) {
        let before = vec![0; beyond.len() + 4];
        let pads = call.constant_dims(&[before, beyond].concat());
        result = call.node("Pad", &[&result, &pads], DType::F32);
    }
    if let Some(bias) = bias {
        let mut dims = vec![bias.n_elements()];
        dims.resize(steps.stride.len() + 1, 1);
        let bias = call.read(bias, DType::F32)?;
        result = &result + bias.reshaped(&dims);
    }
    Ok(result)
}

fn expect_tensors(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    weight: &TensorArgument,
    bias: Option<&TensorArgument>,
) -> Composed<DType> {
    for tensor in [Some(x), Some(weight), bias].into_iter().flatten() {
        call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
    }
    call.promote(&[x, weight], &[])
}

fn expect_bias(call: &OperatorCall<'_>, bias: Option<&TensorArgument>, n: usize) -> Composed {
    match bias {
        Some(bias) => call.expect_shape(bias, &[n]),
        None => Ok(()),
    }
}

/// A convolution with samples and channels first.
fn convolve(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    bias: Option<&TensorArgument>,
    out: &TensorArgument,
    steps: &Steps,
) -> Composed {
    let weight = call.tensor("weight")?;
    let dtype = expect_tensors(call, x, weight, bias)?;
    let dims = expect_extents(call, x, weight, steps)?;
    call.expect_shape(out, &dims)?;
    call.expect_cast(out, dtype)?;
    expect_bias(call, bias, dims[1])?;
    if out.is_empty() {
        return call.fill(out, ScalarNumber::Int(0));
    }
    // A sum over nothing, which not every engine supports.
    refuse_if!(x.dims()[1] == 0, "there are no channels");
    let axes = x.dims()[2..]
        .iter()
        .zip(steps.before.iter().zip(&steps.after));
    // Engines copy the padded input, whose size the program controls.
    let padded = axes.map(|(n, (before, after))| n + before + after);
    expect_room(x.dims()[..2].iter().copied().chain(padded))?;
    let value = call.read(x, DType::F32)?;
    let weight = call.read(weight, DType::F32)?;
    let result = convolved(call, [&value, &weight], bias, steps)?;
    call.write(out, &result, dtype)
}

fn convolution(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("input")?, call.tensor("output")?);
    expect_mode(call)?;
    let steps = described_steps(call, x)?;
    let bias = call.optional_tensor("bias")?;
    convolve(call, x, bias, out, &steps)
}

/// The parameters in the arguments, for a tensor with samples and channels first.
pub(super) fn described_steps(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<Steps> {
    let n = x.n_axes().saturating_sub(2);
    refuse_if!(
        !(1..=3).contains(&n),
        "`input` has {} axes; expected 3 to 5",
        x.n_axes()
    );
    let is_transposed = call.flag("transposed")?;
    // Only plain convolutions over one or two axes support asymmetric padding.
    let both_sides = if is_transposed || n == 3 { n } else { 2 * n };
    let padding = numbers(call, "padding", &[n, both_sides], 0)?;
    let (before, after) = if padding.len() == n {
        (padding.clone(), padding)
    } else {
        // The two sides of an axis are adjacent.
        let before = padding.iter().step_by(2).copied().collect();
        (before, padding.iter().skip(1).step_by(2).copied().collect())
    };
    let stride = numbers(call, "stride", &[n], 1)?;
    let more = if is_transposed {
        numbers(call, "outputPadding", &[n], 0)?
    } else {
        vec![0; n]
    };
    let groups = call.int("groups")?;
    let groups = usize::try_from(groups).ok().filter(|&n| n > 0);
    let groups = groups.ok_or_else(|| Refusal::invalid("`groups` is less than 1"))?;
    let dilation = numbers(call, "dilation", &[n], 1)?;
    for axis in 0..n {
        // With more, several inputs would be possible for an output, as stated by the vendor and
        // PyTorch.
        refuse_if!(
            more[axis] >= stride[axis] && more[axis] >= dilation[axis],
            "`outputPadding` is not less than `stride` or `dilation`"
        );
    }
    Ok(Steps {
        stride,
        before,
        after,
        dilation,
        more,
        is_transposed,
        groups,
    })
}

/// The shape of a convolution's result, for operands with the same number of axes.
pub(super) fn expect_extents(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    weight: &TensorArgument,
    steps: &Steps,
) -> Composed<Vec<usize>> {
    if x.n_axes() != weight.n_axes() {
        let (a, b) = (x.n_axes(), weight.n_axes());
        let name = call.name(x);
        let text = format!("`{name}` has {a} axes and `weight` {b}; expected as many");
        return Err(Refusal::invalid(text));
    }
    steps.dims(x.dims(), weight.dims())
}

fn depthwise_convolution(call: &OperatorCall<'_>) -> Composed {
    let (x, weight) = (call.tensor("self")?, call.tensor("weight")?);
    let out = call.tensor("out")?;
    expect_mode(call)?;
    let kernel = numbers(call, "kernelSize", &[2], 1)?;
    let &[_, channels, _, _] = x.dims() else {
        let text = format!("`self` has {} axes; expected 4", x.n_axes());
        return Err(Refusal::invalid(text));
    };
    refuse_if!(
        weight.n_axes() != 4 || weight.dims()[1] != 1 || weight.dims()[2..] != kernel,
        "`weight` has the shape {:?}; expected [.., 1, {kernel:?}]",
        weight.dims()
    );
    let padding = numbers(call, "padding", &[2], 0)?;
    let steps = Steps {
        stride: numbers(call, "stride", &[2], 1)?,
        before: padding.clone(),
        after: padding,
        dilation: numbers(call, "dilation", &[2], 1)?,
        more: vec![0; 2],
        is_transposed: false,
        groups: channels.max(1),
    };
    let bias = call.optional_tensor("bias")?;
    convolve(call, x, bias, out, &steps)
}

/// The parameters of a convolution along time, which only has padding.
pub(super) fn time_steps(call: &OperatorCall<'_>) -> Composed<Steps> {
    let pad = usize::try_from(call.int("pad")?).ok().filter(|&n| n <= 255);
    let pad = pad.ok_or_else(|| Refusal::invalid("`pad` is not 0 to 255"))?;
    Ok(Steps {
        stride: vec![1],
        before: vec![pad],
        after: vec![pad],
        dilation: vec![1],
        more: vec![0],
        is_transposed: false,
        groups: 1,
    })
}

fn convolution_time_first(call: &OperatorCall<'_>) -> Composed {
    let (x, weight) = (call.tensor("self")?, call.tensor("weight")?);
    let (bias, out) = (call.tensor("bias")?, call.tensor("output")?);
    expect_mode(call)?;
    let dtype = expect_tensors(call, x, weight, Some(bias))?;
    let (&[time, samples, channels], &[taps, inputs, results]) = (x.dims(), weight.dims()) else {
        let text = format!("`self` has {} axes; expected 3", x.n_axes());
        return Err(Refusal::invalid(text));
    };
    let steps = time_steps(call)?;
    let dims = steps.dims(&[samples, channels, time], &[results, inputs, taps])?;
    call.expect_shape(out, &[dims[2], samples, results])?;
    call.expect_cast(out, dtype)?;
    expect_bias(call, Some(bias), results)?;
    if out.is_empty() {
        return call.fill(out, ScalarNumber::Int(0));
    }
    refuse_if!(channels == 0, "there are no channels");
    let value = call.read(x, DType::F32)?;
    // Engines convolve along the last axis, after samples and channels.
    let value = turned(call, &value, [1, 2, 0]);
    let kernel = call.read(weight, DType::F32)?;
    let kernel = turned(call, &kernel, [2, 1, 0]);
    let result = convolved(call, [&value, &kernel], Some(bias), &steps)?;
    call.write(out, turned(call, &result, [2, 0, 1]), dtype)
}

fn turned(call: &OperatorCall<'_>, x: &Value, order: [i64; 3]) -> Value {
    let order = vec![("perm", OperatorAttribute::Ints(order.to_vec()))];
    call.node_with("Transpose", &[x], order, x.dtype)
}
