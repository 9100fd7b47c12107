//! Normalisation of the last axes, and shared code of all normalisations.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::axis;
use crate::status::ACLNN_PARAM_NULLPTR;

/// Calls a macro with the rows of normalisations.
#[macro_export]
macro_rules! aclnn_normalisation {
    ($rows:ident) => {
        $rows! { "normalisations";
            LayerNormV4("aclnn_layer_norm.h", "(input - mean) * rstd * weightOptional + biasOptional, over the last axes, whose extents are normalizedShape") by layer_norm():
                aclnnLayerNorm(input: Tensor, normalizedShape: IntArray, weightOptional: OptionalTensor, biasOptional: OptionalTensor, eps: Double, out: Out, meanOutOptional: OptionalOut, rstdOutOptional: OptionalOut);
            LayerNormV4("aclnn_layer_norm.h", "as aclnnLayerNorm; implMode, 0 to 2, changes nothing") by layer_norm():
                aclnnLayerNormWithImplMode(input: Tensor, normalizedShape: IntArray, weightOptional: OptionalTensor, biasOptional: OptionalTensor, eps: Double, out: Out, meanOutOptional: OptionalOut, rstdOutOptional: OptionalOut, implMode: Int32);
            AddLayerNorm("aclnn_add_layer_norm.h", "the layer norm of xOut, which is x1 + x2 + biasOptional, over the axes of gamma") by add_layer_norm():
                aclnnAddLayerNorm(x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor, biasOptional: OptionalTensor, epsilon: Double, additionalOutput: Flag, yOut: Out, meanOut: Out, rstdOut: Out, xOut: OptionalOut);
            RmsNorm("aclnn_rms_norm.h", "x * rstd * gamma, with rstd of the mean of squares over the axes of gamma") by rms_norm():
                aclnnRmsNorm(x: Tensor, gamma: Tensor, epsilon: Double, yOut: Out, rstdOut: Out);
            GemmaRmsNorm("aclnn_gemma_rms_norm.h", "x * rstd * (1 + gamma), with rstd of the mean of squares over the axes of gamma") by gemma_rms_norm():
                aclnnGemmaRmsNorm(x: Tensor, gamma: Tensor, epsilon: Double, yOut: Out, rstdOut: Out);
            AddRmsNorm("aclnn_add_rms_norm.h", "the RMS norm of xOut, which is x1 + x2") by add_rms_norm():
                aclnnAddRmsNorm(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: Double, yOut: Out, rstdOut: Out, xOut: OptionalOut);
            LayerNormGradV3("aclnn_layer_norm_backward.h", "the gradients of aclnnLayerNorm that outputMask asks for; others get 0") by layer_norm_backward():
                aclnnLayerNormBackward(gradOut: Tensor, input: Tensor, normalizedShape: IntArray, mean: Tensor, rstd: Tensor, weightOptional: OptionalTensor, biasOptional: OptionalTensor, outputMask: BoolArray, gradInputOut: OptionalOut, gradWeightOut: OptionalOut, gradBiasOut: OptionalOut);
            RmsNormGrad("aclnn_rms_norm_grad.h", "the gradients of aclnnRmsNorm") by rms_norm_backward():
                aclnnRmsNormGrad(dy: Tensor, x: Tensor, rstd: Tensor, gamma: Tensor, dxOut: Out, dgammaOut: Out);
            Renorm("aclnn_renorm.h", "self, with the slices along dim whose p-norm is above maxNorm scaled down to it") by renorm():
                aclnnRenorm(self_: Tensor, p: Scalar, dim: Int, maxNorm: Scalar, out: Out),
                aclnnInplaceRenorm(selfRef: Inplace, p: Scalar, dim: Int, maxNorm: Scalar);
        }
    };
}
aclnn_normalisation!(operator_rows);

/// Statistics are computed in double precision, and rounded once.
pub(super) const WIDE: DType = DType::F64;

/// Attributes of a reduction that keeps its axes.
fn over(axes: &[usize]) -> Vec<(&'static str, OperatorAttribute)> {
    let axes = axes.iter().map(|&axis| axis.cast_signed() as i64).collect();
    vec![
        ("axes", OperatorAttribute::Ints(axes)),
        ("keepdims", OperatorAttribute::Int(1)),
    ]
}

pub(super) fn mean_over(call: &OperatorCall<'_>, x: &Value, axes: &[usize]) -> Value {
    call.node_with("ReduceMean", &[x], over(axes), x.dtype)
}

/// Mean and variance of the elements along some axes, which are kept.
pub(super) struct Moments {
    pub(super) mean: Value,
    pub(super) variance: Value,
    /// The elements minus the mean.
    pub(super) centred: Value,
}

pub(super) fn moments(call: &OperatorCall<'_>, x: &Value, axes: &[usize]) -> Moments {
    let mean = mean_over(call, x, axes);
    // In two passes: the mean of squares minus the squared mean would lose the digits of elements
    // far from 0.
    let centred = x - &mean;
    let square = &centred * &centred;
    let variance = mean_over(call, &square, axes);
    Moments {
        mean,
        variance,
        centred,
    }
}

/// `1 / sqrt(x + eps)`.
pub(super) fn inverse_root(call: &OperatorCall<'_>, x: &Value, eps: f64) -> Composed<Value> {
    // Passed to each run: another epsilon needs no other graph.
    let eps = call.number_value(ScalarNumber::Float(eps), x.dtype)?;
    Ok(1.0 / (x + &eps).sqrt())
}

/// `x · weight + bias`, each optional and reshaped to `dims`.
pub(super) fn affine(
    call: &OperatorCall<'_>,
    x: &Value,
    [weight, bias]: [Option<&TensorArgument>; 2],
    dims: &[usize],
) -> Composed<Value> {
    let mut result = x.clone();
    for (tensor, op) in [(weight, "Mul"), (bias, "Add")] {
        if let Some(tensor) = tensor {
            let value = shaped(call, tensor, dims)?;
            result = call.node(op, &[&result, &value], x.dtype);
        }
    }
    Ok(result)
}

pub(super) fn shaped(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    dims: &[usize],
) -> Composed<Value> {
    let value = call.read(x, WIDE)?;
    Ok(value.reshaped(dims))
}

/// Checks an output of any float dtype.
pub(super) fn expect_result(
    call: &OperatorCall<'_>,
    out: &TensorArgument,
    dims: &[usize],
) -> Composed {
    call.expect_shape(out, dims)?;
    call.expect_dtype(out, is_small_float, SMALL_FLOATS)
}

pub(super) fn expect_small_floats(
    call: &OperatorCall<'_>,
    tensors: &[Option<&TensorArgument>],
) -> Composed {
    for tensor in tensors.iter().flatten() {
        call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
    }
    Ok(())
}

/// The first of the trailing axes with this shape; preceding axes are batches.
fn last_axes(call: &OperatorCall<'_>, x: &TensorArgument, extents: &[usize]) -> Composed<usize> {
    // Without axes each element would be a separate batch, which the vendor refuses too.
    if !extents.is_empty() && x.dims().ends_with(extents) {
        return Ok(x.n_axes() - extents.len());
    }
    let (name, found) = (call.name(x), x.dims());
    Err(Refusal::invalid(format!(
        "`{name}` has the shape {found:?}; expected one that ends in {extents:?}"
    )))
}

/// The shape with the axes from `first` on replaced by 1.
fn batches_of(dims: &[usize], first: usize) -> Vec<usize> {
    let mut batches = dims.to_vec();
    batches[first..].fill(1);
    batches
}

/// The statistics of empty batches.
pub(super) fn fill_statistics(
    call: &OperatorCall<'_>,
    mean: &TensorArgument,
    rstd: &TensorArgument,
) -> Composed {
    call.fill(mean, ScalarNumber::Int(0))?;
    call.fill(rstd, ScalarNumber::Float(f64::NAN))
}

fn layer_norm(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("input")?, call.tensor("out")?);
    let weight = call.optional_tensor("weightOptional")?;
    let bias = call.optional_tensor("biasOptional")?;
    let mean = call.optional_tensor("meanOutOptional")?;
    let rstd = call.optional_tensor("rstdOutOptional")?;
    // The modes select device kernels, which differ only in precision.
    refuse_if!(
        call.has("implMode") && !(0..=2).contains(&call.int("implMode")?),
        "`implMode` is not 0, 1 or 2"
    );
    expect_small_floats(call, &[Some(x), weight, bias, mean, rstd])?;
    let extents = normalised_extents(call)?;
    let first = last_axes(call, x, &extents)?;
    expect_result(call, out, x.dims())?;
    for tensor in [weight, bias].into_iter().flatten() {
        call.expect_shape(tensor, &extents)?;
    }
    let batches = batches_of(x.dims(), first);
    for tensor in [mean, rstd].into_iter().flatten() {
        call.expect_shape(tensor, &batches)?;
    }
    // Batches may be empty, and their statistics are still stored.
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0))?;
        for (tensor, number) in [(mean, 0.0), (rstd, f64::NAN)] {
            if let Some(tensor) = tensor {
                call.fill(tensor, ScalarNumber::Float(number))?;
            }
        }
        return Ok(());
    }
    let value = call.read(x, WIDE)?;
    let eps = call.number("eps")?;
    let parts = layer_normalised(call, &value, first, x.n_axes(), eps)?;
    let result = affine(call, &parts.normalised, [weight, bias], &extents)?;
    call.write(out, &result, x.dtype)?;
    if let Some(mean) = mean {
        call.write(mean, &parts.mean, WIDE)?;
    }
    if let Some(rstd) = rstd {
        call.write(rstd, &parts.rstd, WIDE)?;
    }
    Ok(())
}

fn normalised_extents(call: &OperatorCall<'_>) -> Composed<Vec<usize>> {
    let extents = call.ints("normalizedShape")?;
    let extents: Option<Vec<usize>> = extents.iter().map(|&n| usize::try_from(n).ok()).collect();
    extents.ok_or_else(|| Refusal::invalid("`normalizedShape` has a negative size"))
}

/// The sum over the leading axes.
fn sum_of_batches(call: &OperatorCall<'_>, x: &Value, n: usize) -> Value {
    if n == 0 {
        return x.clone();
    }
    let axes: Vec<usize> = (0..n).collect();
    let axes = call.constant_dims(&axes);
    let drops_axes = vec![("keepdims", OperatorAttribute::Int(0))];
    call.node_with("ReduceSum", &[x, &axes], drops_axes, x.dtype)
}

/// The operands of the gradient of a normalisation over the axes from `first` on.
struct Slopes {
    /// The gradient of the result.
    grad: Value,
    normalised: Value,
    rstd: Value,
    axes: Vec<usize>,
}

impl Slopes {
    /// `rstd · (g - mean(g) - normalised · mean(g · normalised))`, with `g` the gradient times the
    /// weight; without `mean(g)` if no mean was subtracted.
    fn of_input(
        &self,
        call: &OperatorCall<'_>,
        weight: Option<&TensorArgument>,
        is_centred: bool,
    ) -> Composed<Value> {
        let mut grad = self.grad.clone();
        if let Some(weight) = weight {
            let weight = call.read(weight, WIDE)?;
            grad = &grad * &weight;
        }
        let product = &grad * &self.normalised;
        let share = mean_over(call, &product, &self.axes);
        let mut rest = &grad - &self.normalised * &share;
        if is_centred {
            let mean = mean_over(call, &grad, &self.axes);
            rest = &rest - &mean;
        }
        Ok(&rest * &self.rstd)
    }

    fn of_weight(&self, call: &OperatorCall<'_>) -> Composed<Value> {
        let product = &self.grad * &self.normalised;
        Ok(sum_of_batches(
            call,
            &product,
            self.axes.first().copied().unwrap_or(0),
        ))
    }

    fn of_bias(&self, call: &OperatorCall<'_>) -> Composed<Value> {
        let first = self.axes.first().copied().unwrap_or(0);
        Ok(sum_of_batches(call, &self.grad, first))
    }
}

/// Which of three gradients are requested.
pub(super) fn expect_mask<'a>(call: &OperatorCall<'a>) -> Composed<&'a [bool]> {
    let mask = call.flags("outputMask")?;
    if mask.len() != 3 {
        let n = mask.len();
        let text = format!("`outputMask` has {n} elements; expected 3");
        return Err(Refusal::invalid(text));
    }
    Ok(mask)
}

fn layer_norm_backward(call: &OperatorCall<'_>) -> Composed {
    let (grad, x) = (call.tensor("gradOut")?, call.tensor("input")?);
    let (mean, rstd) = (call.tensor("mean")?, call.tensor("rstd")?);
    let weight = call.optional_tensor("weightOptional")?;
    expect_small_floats(call, &[Some(grad), Some(x), Some(mean), Some(rstd), weight])?;
    let extents = normalised_extents(call)?;
    let first = last_axes(call, x, &extents)?;
    call.expect_shape(grad, x.dims())?;
    for tensor in [mean, rstd] {
        call.expect_shape(tensor, &batches_of(x.dims(), first))?;
    }
    if let Some(weight) = weight {
        call.expect_shape(weight, &extents)?;
    }
    let mask = expect_mask(call)?;
    let value = call.read(x, WIDE)?;
    let mean = call.read(mean, WIDE)?;
    let rstd = call.read(rstd, WIDE)?;
    let centred = &value - &mean;
    let slopes = Slopes {
        grad: call.read(grad, WIDE)?,
        normalised: &centred * &rstd,
        rstd,
        axes: (first..x.n_axes()).collect(),
    };
    let names = ["gradInputOut", "gradWeightOut", "gradBiasOut"];
    // Gradients are stored separately, as programs omit those that they do not need.
    for (i, (name, &is_asked)) in names.into_iter().zip(mask).enumerate() {
        let Some(out) = call.optional_tensor(name)? else {
            if is_asked {
                return Err(absent(name));
            }
            continue;
        };
        let dims = if i == 0 { x.dims() } else { &extents };
        expect_result(call, out, dims)?;
        if !is_asked || x.is_empty() {
            call.fill(out, ScalarNumber::Int(0))?;
            continue;
        }
        let result = match i {
            0 => slopes.of_input(call, weight, true)?,
            1 => slopes.of_weight(call)?,
            _ => slopes.of_bias(call)?,
        };
        call.write(out, &result, WIDE)?;
    }
    Ok(())
}

fn rms_norm_backward(call: &OperatorCall<'_>) -> Composed {
    let (grad, x) = (call.tensor("dy")?, call.tensor("x")?);
    let (rstd, gamma) = (call.tensor("rstd")?, call.tensor("gamma")?);
    let (out, gamma_out) = (call.tensor("dxOut")?, call.tensor("dgammaOut")?);
    expect_small_floats(call, &[Some(grad), Some(x), Some(rstd), Some(gamma)])?;
    let first = last_axes(call, x, gamma.dims())?;
    call.expect_shape(grad, x.dims())?;
    // The documentation lists only the leading axes, its sample fewer, and the forward operator
    // appends ones: one number for each batch is enough.
    let batches = batches_of(x.dims(), first);
    if rstd.n_elements() != batches.iter().product::<usize>() {
        call.expect_shape(rstd, &batches)?;
    }
    expect_result(call, out, x.dims())?;
    expect_result(call, gamma_out, gamma.dims())?;
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0))?;
        return call.fill(gamma_out, ScalarNumber::Int(0));
    }
    let value = call.read(x, WIDE)?;
    let rstd = call.read(rstd, WIDE)?;
    let rstd = rstd.reshaped(&batches);
    let slopes = Slopes {
        grad: call.read(grad, WIDE)?,
        normalised: &value * &rstd,
        rstd,
        axes: (first..x.n_axes()).collect(),
    };
    let result = slopes.of_input(call, Some(gamma), false)?;
    call.write(out, &result, WIDE)?;
    let result = slopes.of_weight(call)?;
    call.write(gamma_out, &result, WIDE)
}

pub(super) struct LayerNormalised {
    pub(super) normalised: Value,
    pub(super) mean: Value,
    pub(super) rstd: Value,
}

pub(super) fn layer_normalised(
    call: &OperatorCall<'_>,
    x: &Value,
    first: usize,
    n_axes: usize,
    eps: f64,
) -> Composed<LayerNormalised> {
    let axes: Vec<usize> = (first..n_axes).collect();
    let moments = moments(call, x, &axes);
    let rstd = inverse_root(call, &moments.variance, eps)?;
    let normalised = &moments.centred * &rstd;
    Ok(LayerNormalised {
        normalised,
        mean: moments.mean,
        rstd,
    })
}

/// The sum of the inputs of an operator that adds before it normalises, with checked shapes.
fn added(
    call: &OperatorCall<'_>,
    [x1, x2]: [&TensorArgument; 2],
    bias: Option<&TensorArgument>,
) -> Composed<Value> {
    call.expect_shape(x2, x1.dims())?;
    let first = call.read(x1, WIDE)?;
    let second = call.read(x2, WIDE)?;
    let mut sum = &first + &second;
    if let Some(bias) = bias {
        // With the whole shape, or that of the normalised axes.
        last_axes(call, x1, bias.dims())?;
        let value = call.read(bias, WIDE)?;
        sum = &sum + &value;
    }
    Ok(sum)
}

fn add_layer_norm(call: &OperatorCall<'_>) -> Composed {
    let (x1, x2) = (call.tensor("x1")?, call.tensor("x2")?);
    let (gamma, beta) = (call.tensor("gamma")?, call.tensor("beta")?);
    let bias = call.optional_tensor("biasOptional")?;
    let out = call.tensor("yOut")?;
    let (mean, rstd) = (call.tensor("meanOut")?, call.tensor("rstdOut")?);
    let sum_out = call.optional_tensor("xOut")?;
    expect_small_floats(call, &[Some(x1), Some(x2), Some(gamma), Some(beta), bias])?;
    let first = last_axes(call, x1, gamma.dims())?;
    call.expect_shape(beta, gamma.dims())?;
    let batches = batches_of(x1.dims(), first);
    for (tensor, dims) in [(out, x1.dims()), (mean, &batches), (rstd, &batches)] {
        expect_result(call, tensor, dims)?;
    }
    if let Some(sum_out) = sum_out {
        expect_result(call, sum_out, x1.dims())?;
    } else if call.flag("additionalOutput")? {
        return Err(absent("xOut"));
    }
    let sum = added(call, [x1, x2], bias)?;
    // The sum is stored rounded, but normalised before rounding.
    let dtype = call.promote(&[x1, x2], &[])?;
    if let Some(sum_out) = sum_out {
        call.write(sum_out, &sum, dtype)?;
    }
    if x1.is_empty() {
        call.fill(out, ScalarNumber::Int(0))?;
        return fill_statistics(call, mean, rstd);
    }
    let eps = call.number("epsilon")?;
    let parts = layer_normalised(call, &sum, first, x1.n_axes(), eps)?;
    let result = affine(
        call,
        &parts.normalised,
        [Some(gamma), Some(beta)],
        gamma.dims(),
    )?;
    call.write(out, &result, dtype)?;
    call.write(mean, &parts.mean, WIDE)?;
    call.write(rstd, &parts.rstd, WIDE)
}

pub(super) fn absent(name: &str) -> Refusal {
    Refusal {
        status: ACLNN_PARAM_NULLPTR,
        text: format!("`{name}` is a null pointer"),
    }
}

fn rms_norm(call: &OperatorCall<'_>) -> Composed {
    let x = call.tensor("x")?;
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    let value = call.read(x, WIDE)?;
    rms_normalised(call, x, &value, false)
}

fn gemma_rms_norm(call: &OperatorCall<'_>) -> Composed {
    let x = call.tensor("x")?;
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    let value = call.read(x, WIDE)?;
    rms_normalised(call, x, &value, true)
}

fn add_rms_norm(call: &OperatorCall<'_>) -> Composed {
    let (x1, x2) = (call.tensor("x1")?, call.tensor("x2")?);
    let sum_out = call.optional_tensor("xOut")?;
    expect_small_floats(call, &[Some(x1), Some(x2)])?;
    let sum = added(call, [x1, x2], None)?;
    if let Some(sum_out) = sum_out {
        expect_result(call, sum_out, x1.dims())?;
        call.write(sum_out, &sum, x1.dtype)?;
    }
    rms_normalised(call, x1, &sum, false)
}

/// Stores `value · rstd · gamma`, where `x` has the shape and dtype of the value.
fn rms_normalised(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    value: &Value,
    adds_one: bool,
) -> Composed {
    let gamma = call.tensor("gamma")?;
    let (out, rstd_out) = (call.tensor("yOut")?, call.tensor("rstdOut")?);
    call.expect_dtype(gamma, is_small_float, SMALL_FLOATS)?;
    let first = last_axes(call, x, gamma.dims())?;
    expect_result(call, out, x.dims())?;
    expect_result(call, rstd_out, &batches_of(x.dims(), first))?;
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0))?;
        return call.fill(rstd_out, ScalarNumber::Float(f64::NAN));
    }
    let axes: Vec<usize> = (first..x.n_axes()).collect();
    let square = value * value;
    let mean = mean_over(call, &square, &axes);
    let eps = call.number("epsilon")?;
    let rstd = inverse_root(call, &mean, eps)?;
    let mut weight = call.read(gamma, WIDE)?;
    if adds_one {
        weight = &weight + 1.0;
    }
    let result = value * &rstd * &weight;
    let dtype = call.promote(&[x, gamma], &[])?;
    call.write(out, &result, dtype)?;
    call.write(rstd_out, &rstd, WIDE)
}

fn renorm(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    expect_result(call, out, x.dims())?;
    let dim = call.int("dim")?;
    let kept = axis(dim, x.n_axes()).filter(|_| x.n_axes() >= 2);
    let kept = kept.ok_or_else(|| {
        let n = x.n_axes();
        Refusal::invalid(format!("`dim` is {dim}; `self` has {n} axes, of 2 or more"))
    })?;
    let (p, largest) = (call.scalar("p")?, call.scalar("maxNorm")?);
    let power = p.as_f64();
    for (name, number) in [("p", power), ("maxNorm", largest.as_f64())] {
        refuse_if!(
            number.is_nan() || number < 0.0,
            "`{name}` is {number}; expected 0 or more"
        );
    }
    let others: Vec<usize> = (0..x.n_axes()).filter(|&axis| axis != kept).collect();
    let value = call.read(x, WIDE)?;
    let norm = norm_over(call, &value, power, &others)?;
    let largest = call.scalar_value(largest, WIDE)?;
    // Added to the norm, as in PyTorch, so that a norm of 0 does not divide by 0.
    let scale = &largest / (&norm + (1e-7));
    call.write(
        out,
        &value * norm.greater(&largest).choose(&scale, 1.0),
        x.dtype,
    )
}

/// The p-norm over some axes, which are kept; with p = 0 the number of nonzero elements.
fn norm_over(call: &OperatorCall<'_>, x: &Value, power: f64, axes: &[usize]) -> Composed<Value> {
    let size = x.abs();
    if power.is_infinite() {
        return Ok(call.node_with("ReduceMax", &[&size], over(axes), x.dtype));
    }
    // In this operator set sums take their axes as an input, means and extremes as an attribute.
    let list: Vec<i64> = axes.iter().map(|&axis| axis.cast_signed() as i64).collect();
    let list = call.constant_ints(&list);
    let keeps_axes = vec![("keepdims", OperatorAttribute::Int(1))];
    if power == 0.0 {
        // The sign of an absolute value is 1 unless it is 0.
        let counted = size.sign();
        return Ok(call.node_with("ReduceSum", &[&counted, &list], keeps_axes, x.dtype));
    }
    let exponent = call.number_value(ScalarNumber::Float(power), x.dtype)?;
    let raised = size.pow(&exponent);
    let sum = call.node_with("ReduceSum", &[&raised, &list], keeps_axes, x.dtype);
    // The root is a power as well, which engines support for any exponent.
    let inverse = call.number_value(ScalarNumber::Float(1.0 / power), x.dtype)?;
    Ok(sum.pow(&inverse))
}
