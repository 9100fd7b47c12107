//! Gradients of pooling: each window passes its gradient on to its elements.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::adaptive_pooling::{counts, shares};
use super::indexing::read_places;
use super::movement::constant_of;
use super::pooling::{Pool, divisors, floats, is_index, membership};
use super::windows::Members;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of gradients of pools.
#[macro_export]
macro_rules! aclnn_pooling_backward {
    ($rows:ident) => {
        $rows! { "gradients of pooling";
            AvgPoolV2Grad("aclnn_avgpool2d_backward.h", "the gradient of aclnnAvgPool2d") by average_2d():
                aclnnAvgPool2dBackward(gradOutput: Tensor, self_: Tensor, kernelSize: IntArray, stride: IntArray, padding: IntArray, ceilMode: Flag, countIncludePad: Flag, divisorOverride: Int, cubeMathType: Int8, gradInput: Out);
            AvgPool3DGrad("aclnn_avgpool3d_backward.h", "the gradient of aclnnAvgPool3d") by average(3):
                aclnnAvgPool3dBackward(gradOutput: Tensor, self_: Tensor, kernelSize: IntArray, stride: IntArray, padding: IntArray, ceilMode: Flag, countIncludePad: Flag, divisorOverride: Int, output: Out);
            MaxPoolGradWithArgmaxV3("aclnn_max_pool2d_with_indices_backward.h", "the gradient of aclnnMaxPool2dWithIndices, which goes to the places of indices") by maximum(2):
                aclnnMaxPool2dWithIndicesBackward(gradOutput: Tensor, self_: Tensor, indices: Tensor, kernelSize: IntArray, stride: IntArray, padding: IntArray, dilation: IntArray, ceilMode: Flag, gradInput: Out);
            MaxPool3DGradWithArgmax("aclnn_max_pool3d_with_argmax_backward.h", "the gradient of aclnnMaxPool3dWithArgmax, which goes to the places of indices") by maximum(3):
                aclnnMaxPool3dWithArgmaxBackward(gradOutput: Tensor, self_: Tensor, indices: Tensor, kernelSize: IntArray, stride: IntArray, padding: IntArray, dilation: IntArray, ceilMode: Flag, gradInput: Out);
            AdaptiveAvgPool2dGrad("aclnn_adaptive_avg_pool2d_backward.h", "the gradient of aclnnAdaptiveAvgPool2d") by adaptive_average(2):
                aclnnAdaptiveAvgPool2dBackward(gradOutput: Tensor, self_: Tensor, out: Out);
            AdaptiveAvgPool3dGrad("aclnn_adaptive_avg_pool3d_backward.h", "the gradient of aclnnAdaptiveAvgPool3d") by adaptive_average(3):
                aclnnAdaptiveAvgPool3dBackward(gradOutput: Tensor, self_: Tensor, out: Out);
            AdaptiveMaxPool2dGrad("aclnn_adaptive_max_pool2d_backward.h", "the gradient of aclnnAdaptiveMaxPool2d, which goes to the places of indices") by adaptive_maximum_2d():
                aclnnAdaptiveMaxPool2dBackward(gradOutput: Tensor, self_: Tensor, indices: Tensor, gradInput: Out);
            AdaptiveMaxPool3dGrad("aclnn_adaptive_max_pool3d_backward.h", "the gradient of aclnnAdaptiveMaxPool3d, which goes to the places of indices") by adaptive_maximum_3d():
                aclnnAdaptiveMaxPool3dBackward(gradOutput: Tensor, self_: Tensor, indices: Tensor, gradInput: Out);
        }
    };
}
aclnn_pooling_backward!(operator_rows);

/// The gradient of a pool's result, and the destination of its operand's gradient.
struct Gradient<'a> {
    grad: &'a TensorArgument,
    x: &'a TensorArgument,
    out: &'a TensorArgument,
    /// Number of axes with windows.
    n: usize,
}

impl<'a> Gradient<'a> {
    fn new(call: &OperatorCall<'a>, n: usize) -> Composed<Gradient<'a>> {
        let x = Pool::tensor(call, n)?;
        let grad = call.tensor("gradOutput")?;
        // The vendor's declarations have three names for the result.
        let names = ["gradInput", "output", "out"];
        let name = names.into_iter().find(|name| call.has(name));
        let out = call.tensor(name.unwrap_or("out"))?;
        refuse_if!(
            grad.dtype != x.dtype,
            "`gradOutput` is {}, but `self` {}",
            grad.dtype,
            x.dtype
        );
        call.expect_like(out, x)?;
        Ok(Gradient { grad, x, out, n })
    }

    /// The leading axes, and those with windows.
    fn parts<'b>(&self, dims: &'b [usize]) -> (&'b [usize], &'b [usize]) {
        dims.split_at(dims.len().saturating_sub(self.n))
    }

    /// Adds `values` at their indices `places`, both with `count` entries for each leading axis.
    fn scatter(
        &self,
        call: &OperatorCall<'_>,
        [values, places]: [&Value; 2],
        count: usize,
    ) -> Composed {
        let (front, plane) = self.parts(self.x.dims());
        let (front, plane): (usize, usize) = (front.iter().product(), plane.iter().product());
        let values = values.reshaped(&[front, count]);
        let places = places.reshaped(&[front, count]);
        // Sums are computed in double precision, and rounded once.
        let start = constant_of(call, 0.0, DType::F64, &[front, plane]);
        let attributes = vec![
            ("axis", OperatorAttribute::Int(1)),
            ("reduction", OperatorAttribute::Text("add".to_owned())),
        ];
        let into = [&start, &places, &values];
        let result = call.node_with("ScatterElements", &into, attributes, DType::F64);
        call.write(self.out, result.reshaped(self.x.dims()), self.x.dtype)
    }

    /// Passes the gradient of each window, divided by its divisor, on to all its elements.
    fn share(&self, call: &OperatorCall<'_>, axes: &[Members], divisors: &[f32]) -> Composed {
        let windows: Vec<usize> = axes.iter().map(|members| members.n).collect();
        let n_together: usize = axes.iter().map(|members| members.longest).product();
        let grad = call.read(self.grad, DType::F64)?;
        let divisors = floats(call, divisors, windows.clone())?;
        let (front, _) = self.parts(self.x.dims());
        let mut dims = self.grad.dims().to_vec();
        // One more axis, along which the share goes to each element of its window.
        dims.push(1);
        let part = (&grad / divisors.cast(DType::F64)).reshaped(&dims);
        let membership = membership(call, axes)?;
        let zero = call.constant(0.0, DType::F64);
        // Filling adds nothing, whatever its index.
        let chosen = [&membership.is_member, &part, &zero];
        let values = call.node("Where", &chosen, DType::F64);
        let mut whole = front.to_vec();
        whole.extend(&windows);
        whole.push(n_together);
        let places = membership.places.expanded(&whole);
        let count = windows.iter().product::<usize>() * n_together;
        self.scatter(call, [&values, &places], count)
    }

    /// Passes the gradient of each window on to its maximum.
    fn choose(&self, call: &OperatorCall<'_>) -> Composed {
        let indices = call.tensor("indices")?;
        call.expect_dtype(indices, is_index, "int32 or int64")?;
        call.expect_shape(indices, self.grad.dims())?;
        if self.is_done(call)? {
            return Ok(());
        }
        // Indices count within one plane, as in the forward operator.
        let values = call.read(self.grad, DType::F64)?;
        let places = read_places(call, indices)?;
        let (_, windows) = self.parts(self.grad.dims());
        self.scatter(call, [&values, &places], windows.iter().product())
    }

    /// Whether there is no gradient to pass on.
    fn is_done(&self, call: &OperatorCall<'_>) -> Composed<bool> {
        // No windows yield no gradient, and engines refuse empty scatters.
        let is_done = self.out.is_empty() || self.grad.is_empty();
        if is_done {
            call.fill(self.out, ScalarNumber::Int(0))?;
        }
        Ok(is_done)
    }
}

fn average(call: &OperatorCall<'_>, n: usize) -> Composed {
    let gradient = Gradient::new(call, n)?;
    let pool = Pool::usual(call, n)?;
    let (counts_padding, divisor) = (call.flag("countIncludePad")?, call.int("divisorOverride")?);
    call.expect_shape(gradient.grad, &pool.dims)?;
    if gradient.is_done(call)? {
        return Ok(());
    }
    let axes = pool.members()?;
    gradient.share(call, &axes, &divisors(&pool, counts_padding, divisor))
}

fn average_2d(call: &OperatorCall<'_>) -> Composed {
    // All precision modes compute in full precision, which each of them allows.
    refuse_if!(
        !(0..=3).contains(&call.int("cubeMathType")?),
        "`cubeMathType` is not 0 to 3"
    );
    average(call, 2)
}

fn maximum(call: &OperatorCall<'_>, n: usize) -> Composed {
    let gradient = Gradient::new(call, n)?;
    let pool = Pool::usual(call, n)?;
    call.expect_shape(gradient.grad, &pool.dims)?;
    gradient.choose(call)
}

/// Adaptive windows derive from the two shapes, which have the same leading axes.
fn adaptive<'a>(call: &OperatorCall<'a>, n: usize) -> Composed<Gradient<'a>> {
    let gradient = Gradient::new(call, n)?;
    let (grad, x) = (gradient.grad.dims(), gradient.x.dims());
    if grad.len() != x.len() || gradient.parts(grad).0 != gradient.parts(x).0 {
        let text = format!("`gradOutput` has the shape {grad:?}, `self` {x:?}");
        return Err(Refusal::invalid(format!(
            "{text}; expected the same axes in front"
        )));
    }
    Ok(gradient)
}

fn adaptive_average(call: &OperatorCall<'_>, n: usize) -> Composed {
    let gradient = adaptive(call, n)?;
    if gradient.is_done(call)? {
        return Ok(());
    }
    let axes = shares(gradient.x, gradient.parts(gradient.grad.dims()).1)?;
    let counts = counts(&axes);
    gradient.share(call, &axes, &counts)
}

fn adaptive_maximum_2d(call: &OperatorCall<'_>) -> Composed {
    adaptive(call, 2)?.choose(call)
}

fn adaptive_maximum_3d(call: &OperatorCall<'_>) -> Composed {
    adaptive(call, 3)?.choose(call)
}
