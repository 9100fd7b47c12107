//! Gradients of convolutions, which are convolutions too.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float};
use super::convolution::{Steps, convolved, described_steps, expect_extents, time_steps};
use super::matmul::expect_mode;
use super::movement::sliced;
use super::normalisation::{absent, expect_mask};
use super::pooling::expect_room;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of gradients of convolutions.
#[macro_export]
macro_rules! aclnn_convolution_backward {
    ($rows:ident) => {
        $rows! { "gradients of convolutions";
            Conv2DBackprop("aclnn_convolution_backward.h", "the gradients of aclnnConvolution for input, weight and bias, as outputMask asks for") by convolution_backward():
                aclnnConvolutionBackward(gradOutput: Tensor, input: Tensor, weight: Tensor, biasSizes: OptionalIntArray, stride: IntArray, padding: IntArray, dilation: IntArray, transposed: Flag, outputPadding: IntArray, groups: Int32, outputMask: BoolArray, cubeMathType: Int8, gradInput: OptionalOut, gradWeight: OptionalOut, gradBias: OptionalOut);
            ConvTbcBackward("aclnn_convolution_backward.h", "the gradients of aclnnConvTbc; self is that of its output") by time_first_backward():
                aclnnConvTbcBackward(self_: Tensor, input: Tensor, weight: Tensor, bias: Tensor, pad: Int, cubeMathType: Int8, gradInput: Out, gradWeight: Out, gradBias: Out);
        }
    };
}
aclnn_convolution_backward!(operator_rows);

/// A convolution with samples and channels first, and the gradient of its result.
struct Gradients<'a> {
    steps: &'a Steps,
    grad: Value,
    x: Value,
    weight: Value,
    grad_dims: Vec<usize>,
    x_dims: Vec<usize>,
    weight_dims: Vec<usize>,
}

/// Moves the axes `first` to the front; spatial axes follow unchanged.
fn turned(call: &OperatorCall<'_>, x: &Value, first: &[i64], n: usize) -> Value {
    let mut order = first.to_vec();
    let len = first.len() as i64;
    order.extend((0..n as i64).map(|axis| axis + len));
    let order = vec![("perm", OperatorAttribute::Ints(order))];
    call.node_with("Transpose", &[x], order, x.dtype)
}

fn ints(list: &[usize]) -> OperatorAttribute {
    OperatorAttribute::Ints(list.iter().map(|&n| n.cast_signed() as i64).collect())
}

impl Gradients<'_> {
    /// Number of spatial axes.
    fn n(&self) -> usize {
        self.steps.stride.len()
    }

    fn is_empty(&self) -> bool {
        [&self.grad_dims, &self.x_dims, &self.weight_dims]
            .into_iter()
            .any(|dims| dims.contains(&0))
    }

    /// The gradient of the input: the opposite convolution with the same weight.
    fn of_input(&self, call: &OperatorCall<'_>) -> Composed<Value> {
        let steps = self.steps;
        let mut back = Steps {
            stride: steps.stride.clone(),
            before: steps.before.clone(),
            after: steps.after.clone(),
            dilation: steps.dilation.clone(),
            more: vec![0; self.n()],
            is_transposed: !steps.is_transposed,
            groups: steps.groups,
        };
        if back.is_transposed {
            for axis in 0..self.n() {
                let (extent, kernel) = (self.grad_dims[axis + 2], self.weight_dims[axis + 2]);
                // Elements that no window reached, because the stride did not divide the rest.
                let reached = back.extent_before_cut(axis, extent, kernel);
                back.more[axis] = (self.x_dims[axis + 2] + back.before[axis] + back.after[axis])
                    .saturating_sub(reached);
            }
        }
        let result = convolved(call, [&self.grad, &self.weight], None, &back)?;
        // A transposed convolution with much output padding has room for another window.
        self.cut(call, &result, &self.x_dims)
    }

    /// The gradient of the weight: samples are summed like channels, and stride and dilation are
    /// swapped.
    fn of_weight(&self, call: &OperatorCall<'_>) -> Composed<Value> {
        let (large, small) = (&self.x, &self.grad);
        let (large_dims, small_dims) = (&self.x_dims, &self.grad_dims);
        // A transposed convolution has the larger result.
        let ((large, small), (large_dims, small_dims)) = if self.steps.is_transposed {
            ((small, large), (small_dims, large_dims))
        } else {
            ((large, small), (large_dims, small_dims))
        };
        let (n, groups) = (self.n(), self.steps.groups);
        let (samples, channels) = (large_dims[0], large_dims[1]);
        let each = channels / groups;
        let mut split = vec![samples, groups, each];
        split.extend(&large_dims[2..]);
        let value = large.reshaped(&split);
        let value = turned(call, &value, &[2, 1, 0], n);
        let mut joined = vec![each, groups * samples];
        joined.extend(&large_dims[2..]);
        let value = value.reshaped(&joined);
        // The gradient slides over the input like a kernel, with its elements a stride apart.
        let kernel = turned(call, small, &[1, 0], n);
        let pads = [self.steps.before.as_slice(), &self.steps.after].concat();
        let attributes = vec![
            ("strides", ints(&self.steps.dilation)),
            ("pads", ints(&pads)),
            ("dilations", ints(&self.steps.stride)),
            ("group", OperatorAttribute::Int(groups.cast_signed() as i64)),
        ];
        let result = call.node_with("Conv", &[&value, &kernel], attributes, DType::F32);
        let result = turned(call, &result, &[1, 0], n);
        debug_assert_eq!(small_dims[1], self.weight_dims[0]);
        self.cut(call, &result, &self.weight_dims)
    }

    /// Crops the spatial axes.
    fn cut(&self, call: &OperatorCall<'_>, x: &Value, dims: &[usize]) -> Composed<Value> {
        let mut value = x.clone();
        for (axis, &n) in dims.iter().enumerate().skip(2) {
            value = sliced(call, &value, axis, [0, n.cast_signed() as i64, 1]);
        }
        Ok(value)
    }

    /// The gradient of the bias: the sum over all samples and positions.
    fn of_bias(&self, call: &OperatorCall<'_>) -> Composed<Value> {
        let axes: Vec<usize> = (0..self.n() + 2).filter(|&axis| axis != 1).collect();
        let axes = call.constant_dims(&axes);
        // Sums are computed in double precision, and rounded once.
        let wide = self.grad.cast(DType::F64);
        let drops_axes = vec![("keepdims", OperatorAttribute::Int(0))];
        Ok(call.node_with("ReduceSum", &[&wide, &axes], drops_axes, DType::F64))
    }
}

/// Checks the operands; returns the vendor's compute dtype.
fn expect_operands(call: &OperatorCall<'_>, tensors: &[&TensorArgument]) -> Composed<DType> {
    for tensor in tensors {
        call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
    }
    call.promote(tensors, &[])
}

fn convolution_backward(call: &OperatorCall<'_>) -> Composed {
    let (grad, x) = (call.tensor("gradOutput")?, call.tensor("input")?);
    let weight = call.tensor("weight")?;
    expect_mode(call)?;
    let dtype = expect_operands(call, &[grad, x, weight])?;
    let steps = described_steps(call, x)?;
    let dims = expect_extents(call, x, weight, &steps)?;
    call.expect_shape(grad, &dims)?;
    let axes = x.dims()[2..].iter();
    let pads = steps.before.iter().zip(&steps.after);
    // Engines copy the padded input, whose size the program controls.
    let padded = axes
        .zip(pads)
        .map(|(n, (before, after))| n + before + after);
    expect_room(x.dims()[..2].iter().copied().chain(padded))?;
    let mask = expect_mask(call)?;
    if let Some(sizes) = call.optional_ints("biasSizes")? {
        let expected = [dims[1].cast_signed() as i64];
        refuse_if!(
            mask[2] && sizes != expected,
            "`biasSizes` is {sizes:?}; expected {expected:?}"
        );
    }
    let gradients = Gradients {
        grad: call.read(grad, DType::F32)?,
        x: call.read(x, DType::F32)?,
        weight: call.read(weight, DType::F32)?,
        steps: &steps,
        grad_dims: dims.clone(),
        x_dims: x.dims().to_vec(),
        weight_dims: weight.dims().to_vec(),
    };
    let names = ["gradInput", "gradWeight", "gradBias"];
    for (i, (name, &is_asked)) in names.into_iter().zip(mask).enumerate() {
        let Some(out) = call.optional_tensor(name)? else {
            if is_asked {
                return Err(absent(name));
            }
            continue;
        };
        let bias = [dims[1]];
        let expected = [x.dims(), weight.dims(), &bias][i];
        // The documentation does not define the content of a tensor that is passed but not
        // requested.
        if !is_asked {
            call.fill(out, ScalarNumber::Int(0))?;
            continue;
        }
        call.expect_shape(out, expected)?;
        call.expect_dtype(out, is_small_float, SMALL_FLOATS)?;
        let is_of_nothing = if i == 2 {
            grad.is_empty()
        } else {
            gradients.is_empty()
        };
        if is_of_nothing || out.is_empty() {
            call.fill(out, ScalarNumber::Int(0))?;
            continue;
        }
        let result = match i {
            0 => gradients.of_input(call)?,
            1 => gradients.of_weight(call)?,
            _ => gradients.of_bias(call)?,
        };
        call.write(out, &result, dtype)?;
    }
    Ok(())
}

fn time_first_backward(call: &OperatorCall<'_>) -> Composed {
    let (grad, x) = (call.tensor("self")?, call.tensor("input")?);
    let (weight, bias) = (call.tensor("weight")?, call.tensor("bias")?);
    let outs = [
        call.tensor("gradInput")?,
        call.tensor("gradWeight")?,
        call.tensor("gradBias")?,
    ];
    expect_mode(call)?;
    let dtype = expect_operands(call, &[grad, x, weight, bias])?;
    let (&[time, samples, channels], &[taps, inputs, results]) = (x.dims(), weight.dims()) else {
        let text = format!("`input` has {} axes; expected 3", x.n_axes());
        return Err(Refusal::invalid(text));
    };
    let steps = time_steps(call)?;
    let (x_dims, weight_dims) = ([samples, channels, time], [results, inputs, taps]);
    let dims = steps.dims(&x_dims, &weight_dims)?;
    call.expect_shape(grad, &[dims[2], samples, results])?;
    call.expect_shape(bias, &[results])?;
    for (out, expected) in outs.into_iter().zip([x.dims(), weight.dims(), bias.dims()]) {
        call.expect_shape(out, expected)?;
        call.expect_dtype(out, is_small_float, SMALL_FLOATS)?;
    }
    let (a, b, c) = (
        call.read(grad, DType::F32)?,
        call.read(x, DType::F32)?,
        call.read(weight, DType::F32)?,
    );
    let gradients = Gradients {
        // Samples and channels precede time, as in every other convolution.
        grad: turned(call, &a, &[1, 2, 0], 0),
        x: turned(call, &b, &[1, 2, 0], 0),
        weight: turned(call, &c, &[2, 1, 0], 0),
        steps: &steps,
        grad_dims: dims,
        x_dims: x_dims.to_vec(),
        weight_dims: weight_dims.to_vec(),
    };
    // Engines refuse empty convolutions; sums over nothing are 0.
    if gradients.is_empty() {
        for out in outs {
            call.fill(out, ScalarNumber::Int(0))?;
        }
        return Ok(());
    }
    let result = gradients.of_input(call)?;
    let result = turned(call, &result, &[2, 0, 1], 0);
    call.write(outs[0], &result, dtype)?;
    let result = gradients.of_weight(call)?;
    let result = turned(call, &result, &[2, 1, 0], 0);
    call.write(outs[1], &result, dtype)?;
    let result = gradients.of_bias(call)?;
    call.write(outs[2], &result, dtype)
}
