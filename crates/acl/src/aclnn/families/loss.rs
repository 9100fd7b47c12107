//! Loss functions.

use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float, soft_maximum};
use super::softmax::{attribute, sum_along, write_shaped};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::broadcast;

/// Calls a macro with the rows of losses.
#[macro_export]
macro_rules! aclnn_loss {
    ($rows:ident) => {
        $rows! { "losses";
            MseLoss("aclnn_mse_loss.h", "(self - target)^2; reduction 1 gives their mean, 2 their sum") by squared_error():
                aclnnMseLoss(self_: Tensor, target: Tensor, reduction: Int, out: Out);
            MseLoss("aclnn_mse_loss_out.h", "(self - target)^2; reduction 1 gives their mean over the first axis, 2 their sum over it") by squared_error_along_batch():
                aclnnMseLossOut(self_: Tensor, target: Tensor, reduction: Int, out: Out);
            MseLossGrad("aclnn_mse_loss_backward.h", "2 * (self - target) * gradOutput, divided by their number for reduction 1") by squared_error_backward():
                aclnnMseLossBackward(gradOutput: Tensor, self_: Tensor, target: Tensor, reduction: Int, out: Out);
            LpLoss("aclnn_l1_loss.h", "the absolute value of self - target; reduction 1 gives their mean, 2 their sum") by absolute_error():
                aclnnL1Loss(self_: Tensor, target: Tensor, reduction: Int, out: Out);
            L1LossGrad("aclnn_l1_loss_backward.h", "the sign of self - target, times gradOutput, divided by their number for reduction 1") by absolute_error_backward():
                aclnnL1LossBackward(gradOutput: Tensor, self_: Tensor, target: Tensor, reduction: Int, gradInput: Out);
            SmoothL1LossV2("aclnn_smooth_l1_loss.h", "with d the absolute value of self - target: d^2 / (2 * beta) where d is below beta, else d - beta / 2; reduction 1 gives their mean, 2 their sum") by smooth_error():
                aclnnSmoothL1Loss(self_: Tensor, target: Tensor, reduction: Int, beta: Float, result: Out);
            SmoothL1LossGradV2("aclnn_smooth_l1_loss_backward.h", "(self - target) / beta, not beyond -1 and 1, times gradOut, divided by their number for reduction 1") by smooth_error_backward():
                aclnnSmoothL1LossBackward(gradOut: Tensor, self_: Tensor, target: Tensor, reduction: Int, beta: Float, gradInput: Out);
            BinaryCrossEntropy("aclnn_binary_cross_entropy.h", "-weight * (target * log(self) + (1 - target) * log(1 - self)), with logarithms not below -100; reduction 1 gives their mean, 2 their sum") by binary_cross_entropy():
                aclnnBinaryCrossEntropy(self_: Tensor, target: Tensor, weight: OptionalTensor, reduction: Int, out: Out);
            SigmoidCrossEntropyWithLogitsV2("aclnn_binary_cross_entropy_with_logits.h", "binary cross entropy of sigmoid(self), with target weighed by posWeightOptional; reduction 1 gives their mean, 2 their sum") by binary_cross_entropy_of_logits():
                aclnnBinaryCrossEntropyWithLogits(self_: Tensor, target: Tensor, weightOptional: OptionalTensor, posWeightOptional: OptionalTensor, reduction: Int, out: Out);
            KLDiv("aclnn_kl_div.h", "target * (log(target) - self), or e^target * (target - self) if logTarget is true; reduction 1 gives their mean, 2 their sum, 3 their sum divided by the first extent of self") by divergence():
                aclnnKlDiv(self_: Tensor, target: Tensor, reduction: Int, logTarget: Flag, out: Out);
            NLLLoss("aclnn_nll_loss.h", "-weight[target] * self[target] for each sample, 0 where target is ignoreIndex; reduction 1 gives their sum divided by that of the weights, 2 their sum; totalWeightOut is 0 for reduction 0") by negative_log_likelihood():
                aclnnNLLLoss(self_: Tensor, target: Tensor, weight: OptionalTensor, reduction: Int, ignoreIndex: Int, out: Out, totalWeightOut: Out);
            NLLLoss("aclnn_nll_loss2d.h", "aclnnNLLLoss for each place of a picture, with the classes along the second axis") by negative_log_likelihood():
                aclnnNLLLoss2d(self_: Tensor, target: Tensor, weight: OptionalTensor, reduction: Int, ignoreIndex: Int, out: Out, totalWeightOut: Out);
            CrossEntropyLoss("aclnn_cross_entropy_loss.h", "aclnnNLLLoss of the logarithm of softmax, which logProbOut gets; reductionOptional is mean, sum or none") by cross_entropy():
                aclnnCrossEntropyLoss(input: Tensor, target: Tensor, weightOptional: OptionalTensor, reductionOptional: Text, ignoreIndex: Int, labelSmoothing: Double, lseSquareScaleForZloss: Double, returnZloss: Flag, lossOut: Out, logProbOut: Out, zlossOut: OptionalOut, lseForZlossOut: OptionalOut);
        }
    };
}
aclnn_loss!(operator_rows);

/// How the losses of the elements are reduced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reduction {
    Kept,
    Mean,
    Sum,
    /// The sum, divided by the number of samples.
    BatchMean,
}

fn reduction(call: &OperatorCall<'_>, last: i64) -> Composed<Reduction> {
    let number = call.int("reduction")?;
    let known = match number {
        0 => Some(Reduction::Kept),
        1 => Some(Reduction::Mean),
        2 => Some(Reduction::Sum),
        3 => Some(Reduction::BatchMean),
        _ => None,
    };
    let known = known.filter(|_| number <= last);
    known.ok_or_else(|| Refusal::invalid(format!("`reduction` is {number}; expected 0 to {last}")))
}

/// Checks an output of one number, with or without an axis.
fn expect_number(call: &OperatorCall<'_>, out: &TensorArgument) -> Composed {
    // The vendor's samples pass one axis, PyTorch none.
    if out.dims() == [1] {
        return Ok(());
    }
    call.expect_shape(out, &[])
}

/// The operands of a loss, with their broadcast shape.
struct Pair<'a> {
    x: &'a TensorArgument,
    target: &'a TensorArgument,
    dims: Vec<usize>,
    dtype: DType,
}

impl<'a> Pair<'a> {
    fn new(call: &OperatorCall<'a>) -> Composed<Pair<'a>> {
        let (x, target) = (call.tensor("self")?, call.tensor("target")?);
        for tensor in [x, target] {
            call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
        }
        // PyTorch warns about such shapes, and computes them like the vendor.
        let dims = broadcast(x.dims(), target.dims()).ok_or_else(|| {
            let (a, b) = (x.dims(), target.dims());
            Refusal::invalid(format!("the shapes {a:?} and {b:?} do not broadcast"))
        })?;
        let dtype = call.promote(&[x, target], &[])?;
        Ok(Pair {
            x,
            target,
            dims,
            dtype,
        })
    }

    fn n_elements(&self) -> usize {
        self.dims.iter().product()
    }

    fn difference(&self, call: &OperatorCall<'_>) -> Composed<Value> {
        let x = call.read(self.x, DType::F32)?;
        let target = call.read(self.target, DType::F32)?;
        Ok(&x - &target)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a mean divides by a float as well"
)]
fn as_number(n: usize) -> ScalarNumber {
    ScalarNumber::Float(n as f64)
}

/// Stores the losses of elements, or their reduction.
fn write_reduced(
    call: &OperatorCall<'_>,
    losses: &Value,
    reduction: Reduction,
    pair: &Pair<'_>,
) -> Composed {
    let out = call.tensor("out")?;
    call.expect_cast(out, pair.dtype)?;
    if reduction == Reduction::Kept {
        call.expect_shape(out, &pair.dims)?;
        call.write(out, losses, pair.dtype)?;
        return Ok(());
    }
    expect_number(call, out)?;
    let n = pair.n_elements();
    if n == 0 {
        // The mean of nothing is NaN.
        let is_sum = match reduction {
            Reduction::Sum => true,
            Reduction::BatchMean => pair.x.dims().first().is_some_and(|&n| n > 0),
            Reduction::Kept | Reduction::Mean => false,
        };
        let number = if is_sum { 0.0 } else { f64::NAN };
        return call.fill(out, ScalarNumber::Float(number));
    }
    // The losses are flattened, which keeps the graph small.
    // Sums are computed in double precision, and rounded once.
    let flat = losses.reshaped(&[n]).cast(DType::F64);
    let mut result = sum_along(call, &flat, 0);
    let divisor = match reduction {
        Reduction::Mean => n,
        Reduction::BatchMean => pair.x.dims().first().copied().unwrap_or(1),
        Reduction::Kept | Reduction::Sum => 1,
    };
    if divisor != 1 {
        let divisor = call.number_value(as_number(divisor), DType::F64)?;
        result = &result / &divisor;
    }
    write_shaped(call, out, &result, pair.dtype)
}

/// A loss that is a function of the difference.
fn error(call: &OperatorCall<'_>, function: impl FnOnce(&Value) -> Composed<Value>) -> Composed {
    let reduction = reduction(call, 2)?;
    let pair = Pair::new(call)?;
    let difference = pair.difference(call)?;
    let losses = function(&difference)?;
    write_reduced(call, &losses, reduction, &pair)
}

fn squared_error(call: &OperatorCall<'_>) -> Composed {
    error(call, |d| Ok(d * d))
}

/// Like [`squared_error`], with a reduction over the first axis alone, which only the vendor's
/// function has.
fn squared_error_along_batch(call: &OperatorCall<'_>) -> Composed {
    let reduction = reduction(call, 2)?;
    let pair = Pair::new(call)?;
    let (Some((&n, rest)), false) = (pair.dims.split_first(), reduction == Reduction::Kept) else {
        return squared_error(call);
    };
    let out = call.tensor("out")?;
    if !(rest.is_empty() && out.dims() == [1]) {
        call.expect_shape(out, rest)?;
    }
    call.expect_cast(out, pair.dtype)?;
    let is_mean = reduction == Reduction::Mean;
    if pair.n_elements() == 0 {
        let number = if is_mean { f64::NAN } else { 0.0 };
        return call.fill(out, ScalarNumber::Float(number));
    }
    let difference = pair.difference(call)?;
    let losses = (&difference * &difference).cast(DType::F64);
    let mut result = sum_along(call, &losses, 0);
    if is_mean {
        let n = call.number_value(as_number(n), DType::F64)?;
        result = &result / &n;
    }
    write_shaped(call, out, &result, pair.dtype)
}

fn absolute_error(call: &OperatorCall<'_>) -> Composed {
    error(call, |d| Ok(d.abs()))
}

/// The threshold between the squared and the absolute loss, which may not be negative.
fn bend(call: &OperatorCall<'_>) -> Composed<f64> {
    let beta = call.number("beta")?;
    if beta >= 0.0 {
        return Ok(beta);
    }
    let text = format!("`beta` is {beta}; expected 0 or more");
    Err(Refusal::invalid(text))
}

fn smooth_error(call: &OperatorCall<'_>) -> Composed {
    error(call, |d| {
        let beta = bend(call)?;
        let size = d.abs();
        if beta == 0.0 {
            return Ok(size);
        }
        let beta = call.number_value(ScalarNumber::Float(beta), d.dtype)?;
        // Both forms are computed and one is selected, as a graph has no branches for elements.
        let is_small = size.less(&beta);
        Ok(is_small.choose(&size * &size * 0.5 / &beta, &size - &beta * 0.5))
    })
}

/// The gradient of a loss that is a function of the difference.
fn error_backward(
    call: &OperatorCall<'_>,
    [grad, out]: [&str; 2],
    slope: impl FnOnce(&Value) -> Composed<Value>,
) -> Composed {
    let reduction = reduction(call, 2)?;
    let pair = Pair::new(call)?;
    let (grad, out) = (call.tensor(grad)?, call.tensor(out)?);
    call.expect_dtype(grad, is_small_float, SMALL_FLOATS)?;
    let sides = [pair.x, pair.target, grad].map(Side::Tensor);
    call.broadcast(&sides, out)?;
    let dtype = call.promote(&[pair.x, pair.target, grad], &[])?;
    call.expect_cast(out, dtype)?;
    let difference = pair.difference(call)?;
    let slope = slope(&difference)?;
    let grad = call.read(grad, DType::F32)?;
    let mut result = &slope * &grad;
    if reduction == Reduction::Mean {
        let n = call.number_value(as_number(pair.n_elements()), DType::F32)?;
        result = &result / &n;
    }
    call.write(out, &result, dtype)
}

fn squared_error_backward(call: &OperatorCall<'_>) -> Composed {
    error_backward(call, ["gradOutput", "out"], |d| Ok(d + d))
}

fn absolute_error_backward(call: &OperatorCall<'_>) -> Composed {
    error_backward(call, ["gradOutput", "gradInput"], |d| Ok(d.sign()))
}

fn smooth_error_backward(call: &OperatorCall<'_>) -> Composed {
    error_backward(call, ["gradOut", "gradInput"], |d| {
        let beta = bend(call)?;
        let sign = d.sign();
        if beta == 0.0 {
            return Ok(sign);
        }
        let beta = call.number_value(ScalarNumber::Float(beta), d.dtype)?;
        Ok(d.abs().less(&beta).choose(d / &beta, &sign))
    })
}

/// Reads a tensor that broadcasts to the shape of a pair.
fn weight(call: &OperatorCall<'_>, name: &str, pair: &Pair<'_>) -> Composed<Option<Value>> {
    let Some(tensor) = call.optional_tensor(name)? else {
        return Ok(None);
    };
    call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
    if broadcast(tensor.dims(), &pair.dims).is_none_or(|dims| dims != pair.dims) {
        let (found, expected) = (tensor.dims(), &pair.dims);
        return Err(Refusal::invalid(format!(
            "`{name}` of shape {found:?} does not broadcast to {expected:?}"
        )));
    }
    call.read(tensor, DType::F32).map(Some)
}

/// The logarithm, clamped to at least -100.
fn bounded_log(x: &Value) -> Value {
    // PyTorch's bound, which makes the loss of a certain but wrong prediction finite.
    let log = x.log();
    log.less(-100.0).choose(-100.0, &log)
}

fn binary_cross_entropy(call: &OperatorCall<'_>) -> Composed {
    let reduction = reduction(call, 2)?;
    let pair = Pair::new(call)?;
    call.expect_shape(pair.target, pair.x.dims())?;
    let weight = weight(call, "weight", &pair)?;
    let x = call.read(pair.x, DType::F32)?;
    let target = call.read(pair.target, DType::F32)?;
    let other = 1.0 - &x;
    let log = bounded_log(&x);
    let other_log = bounded_log(&other);
    let mut losses = (&target - 1.0) * &other_log - &target * &log;
    if let Some(weight) = weight {
        losses = &losses * &weight;
    }
    write_reduced(call, &losses, reduction, &pair)
}

/// `(1 - target) · x + p · log(1 + e^-x)`, where `p` is 1 or `(weight - 1) · target + 1`.
fn binary_cross_entropy_of_logits(call: &OperatorCall<'_>) -> Composed {
    let reduction = reduction(call, 2)?;
    let pair = Pair::new(call)?;
    call.expect_shape(pair.target, pair.x.dims())?;
    let (weight, positive) = (
        weight(call, "weightOptional", &pair)?,
        weight(call, "posWeightOptional", &pair)?,
    );
    let x = call.read(pair.x, DType::F32)?;
    let target = call.read(pair.target, DType::F32)?;
    let negated = -&x;
    // log(sigmoid(x)) is -log(1 + e^-x), which does not overflow for large numbers of either sign.
    let mut log = soft_maximum(&negated);
    if let Some(positive) = positive {
        log = &log * ((&positive - 1.0) * &target + 1.0);
    }
    let mut losses = (1.0 - &target) * &x + &log;
    if let Some(weight) = weight {
        losses = &losses * &weight;
    }
    write_reduced(call, &losses, reduction, &pair)
}

fn divergence(call: &OperatorCall<'_>) -> Composed {
    let reduction = reduction(call, 3)?;
    let pair = Pair::new(call)?;
    let x = call.read(pair.x, DType::F32)?;
    let target = call.read(pair.target, DType::F32)?;
    let losses = if call.flag("logTarget")? {
        target.exp() * (&target - &x)
    } else {
        // 0 log 0 counts as 0.
        let entropy = target.equal(0.0).choose(0.0, &target * target.log());
        &entropy - &target * &x
    };
    write_reduced(call, &losses, reduction, &pair)
}

/// Samples with a class each: log-probabilities, with the classes along an axis.
struct Classes<'a> {
    target: &'a TensorArgument,
    weight: Option<&'a TensorArgument>,
    n: usize,
    axis: usize,
    dtype: DType,
}

impl<'a> Classes<'a> {
    fn new(
        call: &OperatorCall<'_>,
        x: &TensorArgument,
        target: &'a TensorArgument,
        weight: Option<&'a TensorArgument>,
    ) -> Composed<Classes<'a>> {
        call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
        call.expect_dtype(
            target,
            |dtype| matches!(dtype, DType::I64 | DType::I32 | DType::U8),
            "int64, int32 or uint8",
        )?;
        // Classes are the second axis, or the only one of a single sample.
        let axis = usize::from(x.n_axes() > 1);
        let Some(&n) = x.dims().get(axis) else {
            return Err(Refusal::invalid("`self` has no axes; expected classes"));
        };
        let mut dims = x.dims().to_vec();
        dims.remove(axis);
        call.expect_shape(target, &dims)?;
        if let Some(weight) = weight {
            call.expect_dtype(weight, is_small_float, SMALL_FLOATS)?;
            call.expect_shape(weight, &[n])?;
        }
        Ok(Classes {
            target,
            weight,
            n,
            axis,
            dtype: x.dtype,
        })
    }

    /// The weight of each sample, and its loss.
    fn losses(&self, call: &OperatorCall<'_>, x: &Value) -> Composed<[Value; 2]> {
        let ignored = ScalarNumber::Int(call.int("ignoreIndex")?);
        let ignored = call.number_value(ignored, DType::I64)?;
        let target = call.read(self.target, DType::I64)?;
        let is_ignored = target.equal(&ignored);
        // Invalid classes would fail, or read another element. An ignored class need not be valid.
        let target = is_ignored.choose(0.0, &target);
        // Engines count negative indices from the end; such a class does not exist.
        let is_negative = target.less(0.0);
        let none = call.constant_dims(&[self.n]);
        let target = is_negative.choose(none.reshaped(&[]), &target);
        let weight = match self.weight {
            Some(weight) => {
                let list = call.read(weight, DType::F32)?;
                call.node_with("Gather", &[&list, &target], attribute(0), DType::F32)
            }
            None => {
                let one = call.constant(1.0, DType::F32);
                one.expanded(self.target.dims())
            }
        };
        let weight = is_ignored.choose(0.0, &weight);
        let axes = call.constant_dims(&[self.axis]);
        let places = call.node("Unsqueeze", &[&target, &axes], DType::I64);
        let along = attribute(self.axis);
        let chosen = call.node_with("GatherElements", &[x, &places], along, DType::F32);
        let chosen = call.node("Squeeze", &[&chosen, &axes], DType::F32);
        // A selection: the loss of an ignored sample may be infinite, and 0 times infinity is NaN.
        let losses = is_ignored.choose(0.0, -&chosen * &weight);
        Ok([weight, losses])
    }

    /// Stores the loss, and returns the sum of the weights unless the losses are not reduced.
    fn write(
        &self,
        call: &OperatorCall<'_>,
        x: &Value,
        reduction: Reduction,
        out: &TensorArgument,
    ) -> Composed<Option<Value>> {
        let [weight, losses] = self.losses(call, x)?;
        if reduction == Reduction::Kept {
            call.write(out, &losses, self.dtype)?;
            return Ok(None);
        }
        let n = self.target.n_elements();
        let losses = losses.reshaped(&[n]).cast(DType::F64);
        let weight = weight.reshaped(&[n]).cast(DType::F64);
        let total = sum_along(call, &weight, 0);
        let mut result = sum_along(call, &losses, 0);
        if reduction == Reduction::Mean {
            result = &result / &total;
        }
        write_shaped(call, out, &result, self.dtype)?;
        Ok(Some(total))
    }

    /// Checks the output, and fills it if there are no samples.
    fn is_done(
        &self,
        call: &OperatorCall<'_>,
        reduction: Reduction,
        out: &TensorArgument,
    ) -> Composed<bool> {
        call.expect_cast(out, self.dtype)?;
        let is_single = self.axis == 0 && out.dims() == [1];
        if reduction != Reduction::Kept {
            expect_number(call, out)?;
        } else if !is_single {
            call.expect_shape(out, self.target.dims())?;
        }
        if !self.target.is_empty() {
            refuse_if!(self.n == 0, "there are no classes");
            return Ok(false);
        }
        let number = if reduction == Reduction::Mean {
            f64::NAN
        } else {
            0.0
        };
        call.fill(out, ScalarNumber::Float(number))?;
        Ok(true)
    }
}

fn negative_log_likelihood(call: &OperatorCall<'_>) -> Composed {
    let (x, target) = (call.tensor("self")?, call.tensor("target")?);
    let (out, total) = (call.tensor("out")?, call.tensor("totalWeightOut")?);
    let reduction = reduction(call, 2)?;
    let classes = Classes::new(call, x, target, call.optional_tensor("weight")?)?;
    expect_number(call, total)?;
    call.expect_cast(total, x.dtype)?;
    if classes.is_done(call, reduction, out)? {
        return call.fill(total, ScalarNumber::Int(0));
    }
    let value = call.read(x, DType::F32)?;
    let sum = if reduction == Reduction::Kept && out.dims() != target.dims() {
        // The vendor's loss of a single sample has an axis, where PyTorch has none.
        let [_, losses] = classes.losses(call, &value)?;
        write_shaped(call, out, &losses, x.dtype)?;
        None
    } else {
        classes.write(call, &value, reduction, out)?
    };
    match sum {
        Some(sum) => write_shaped(call, total, &sum, x.dtype),
        None => call.fill(total, ScalarNumber::Int(0)),
    }
}

fn cross_entropy(call: &OperatorCall<'_>) -> Composed {
    let (x, target) = (call.tensor("input")?, call.tensor("target")?);
    let (out, log_out) = (call.tensor("lossOut")?, call.tensor("logProbOut")?);
    let text = call.text("reductionOptional")?;
    let reduction = match text.as_ref() {
        "none" => Reduction::Kept,
        "mean" | "" => Reduction::Mean,
        "sum" => Reduction::Sum,
        other => {
            let text = format!("`reductionOptional` is \"{other}\"; expected mean, sum or none");
            return Err(Refusal::invalid(text));
        }
    };
    refuse_if!(
        call.number("labelSmoothing")? != 0.0,
        "`labelSmoothing` is not 0; expected 0"
    );
    refuse_if!(
        call.number("lseSquareScaleForZloss")? != 0.0 || call.flag("returnZloss")?,
        "a z-loss is not supported"
    );
    refuse_if!(
        x.n_axes() != 2,
        "`input` has {} axes; expected 2",
        x.n_axes()
    );
    let classes = Classes::new(call, x, target, call.optional_tensor("weightOptional")?)?;
    call.expect_like(log_out, x)?;
    // The vendor requires these tensors, and does not compute them either.
    for name in ["zlossOut", "lseForZlossOut"] {
        if let Some(out) = call.optional_tensor(name)? {
            call.fill(out, ScalarNumber::Int(0))?;
        }
    }
    if classes.is_done(call, reduction, out)? {
        return call.fill(log_out, ScalarNumber::Int(0));
    }
    let value = call.read(x, DType::F32)?;
    let log = call.node_with("LogSoftmax", &[&value], attribute(1), DType::F32);
    call.write(log_out, &log, x.dtype)?;
    classes.write(call, &log, reduction, out)?;
    Ok(())
}
