//! Normalisations.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float, sigmoid_of};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value};
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
            aclnnLayerNorm = LayerNormV4("aclnn_layer_norm.h", "(input - mean) * rstd * weightOptional + biasOptional, over the last axes, whose extents are normalizedShape") by layer_norm
                (input: Tensor, normalizedShape: IntArray, weightOptional: OptionalTensor, biasOptional: OptionalTensor, eps: Double, out: Out, meanOutOptional: OptionalOut, rstdOutOptional: OptionalOut);
            aclnnLayerNormWithImplMode = LayerNormV4("aclnn_layer_norm.h", "as aclnnLayerNorm; implMode, 0 to 2, changes nothing") by layer_norm
                (input: Tensor, normalizedShape: IntArray, weightOptional: OptionalTensor, biasOptional: OptionalTensor, eps: Double, out: Out, meanOutOptional: OptionalOut, rstdOutOptional: OptionalOut, implMode: Int32);
            aclnnAddLayerNorm = AddLayerNorm("aclnn_add_layer_norm.h", "the layer norm of xOut, which is x1 + x2 + biasOptional, over the axes of gamma") by add_layer_norm
                (x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor, biasOptional: OptionalTensor, epsilon: Double, additionalOutput: Flag, yOut: Out, meanOut: Out, rstdOut: Out, xOut: OptionalOut);
            aclnnRmsNorm = RmsNorm("aclnn_rms_norm.h", "x * rstd * gamma, with rstd of the mean of squares over the axes of gamma") by rms_norm
                (x: Tensor, gamma: Tensor, epsilon: Double, yOut: Out, rstdOut: Out);
            aclnnGemmaRmsNorm = GemmaRmsNorm("aclnn_gemma_rms_norm.h", "x * rstd * (1 + gamma), with rstd of the mean of squares over the axes of gamma") by gemma_rms_norm
                (x: Tensor, gamma: Tensor, epsilon: Double, yOut: Out, rstdOut: Out);
            aclnnAddRmsNorm = AddRmsNorm("aclnn_add_rms_norm.h", "the RMS norm of xOut, which is x1 + x2") by add_rms_norm
                (x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: Double, yOut: Out, rstdOut: Out, xOut: OptionalOut);
            aclnnBatchNorm = BatchNormV3("aclnn_batch_norm.h", "(input - mean) * invstd * weight + bias for each channel, of the batch in training, else of the running statistics, which training moves by momentum; without training saveMean and saveInvstd get 0") by batch_norm
                (input: Tensor, weight: OptionalTensor, bias: OptionalTensor, runningMean: OptionalInplace, runningVar: OptionalInplace, training: Flag, momentum: Double, eps: Double, output: Out, saveMean: OptionalOut, saveInvstd: OptionalOut);
            aclnnBatchNormBackward = BatchNormGradV3("aclnn_batch_norm_backward.h", "the gradients of aclnnBatchNorm that outputMask asks for; others get 0; without training of the running statistics") by batch_norm_backward
                (gradOut: Tensor, input: Tensor, weight: OptionalTensor, runningMean: OptionalTensor, runningVar: OptionalTensor, saveMean: OptionalTensor, saveInvstd: OptionalTensor, training: Flag, eps: Double, outputMask: BoolArray, gradInput: OptionalOut, gradWeight: OptionalOut, gradBias: OptionalOut);
            aclnnBatchNormStats = BatchNormStats("aclnn_batch_norm_stats.h", "the mean of each channel, and 1 / the root of its variance + eps") by batch_statistics
                (input: Tensor, eps: Double, mean: Out, invstd: Out);
            aclnnBatchNormElemt = BatchNormElemt("aclnn_batch_norm_elemt.h", "(input - mean) * invstd * weight + bias for each channel") by batch_norm_of_statistics
                (input: Tensor, weight: OptionalTensor, bias: OptionalTensor, mean: Tensor, invstd: Tensor, eps: Double, output: Out);
            aclnnGroupNorm = GroupNorm("aclnn_group_norm.h", "(self - meanOut) * rstdOut * gamma + beta, for each sample and group of channels") by group_norm
                (self_: Tensor, gamma: OptionalTensor, beta: OptionalTensor, N: Int, C: Int, HxW: Int, group: Int, eps: Double, out: Out, meanOut: Out, rstdOut: Out);
            aclnnGroupNormSilu = GroupNormSilu("aclnn_group_norm_silu.h", "silu(group norm of self)") by group_norm_silu
                (self_: Tensor, gamma: OptionalTensor, beta: OptionalTensor, group: Int, eps: Double, out: Out, meanOut: Out, rstdOut: Out);
            aclnnGroupNormSiluV2 = GroupNormSilu("aclnn_group_norm_silu.h", "the group norm of self, and silu of it if activateSilu is true") by group_norm_silu
                (self_: Tensor, gamma: OptionalTensor, beta: OptionalTensor, group: Int, eps: Double, activateSilu: Flag, out: Out, meanOut: Out, rstdOut: Out);
            aclnnInstanceNorm = InstanceNormV3("aclnn_instance_norm.h", "(x - mean) / the root of variance + eps, times gamma, plus beta, for each sample and channel") by instance_norm
                (x: Tensor, gamma: Tensor, beta: Tensor, dataFormat: Text, eps: Double, y: Out, mean: Out, variance: Out);
            aclnnLayerNormBackward = LayerNormGradV3("aclnn_layer_norm_backward.h", "the gradients of aclnnLayerNorm that outputMask asks for; others get 0") by layer_norm_backward
                (gradOut: Tensor, input: Tensor, normalizedShape: IntArray, mean: Tensor, rstd: Tensor, weightOptional: OptionalTensor, biasOptional: OptionalTensor, outputMask: BoolArray, gradInputOut: OptionalOut, gradWeightOut: OptionalOut, gradBiasOut: OptionalOut);
            aclnnRmsNormGrad = RmsNormGrad("aclnn_rms_norm_grad.h", "the gradients of aclnnRmsNorm") by rms_norm_backward
                (dy: Tensor, x: Tensor, rstd: Tensor, gamma: Tensor, dxOut: Out, dgammaOut: Out);
            aclnnRenorm = Renorm("aclnn_renorm.h", "self, with the slices along dim whose p-norm is above maxNorm scaled down to it") by renorm
                (self_: Tensor, p: Scalar, dim: Int, maxNorm: Scalar, out: Out);
            aclnnInplaceRenorm = Renorm("aclnn_renorm.h", "self, with the slices along dim whose p-norm is above maxNorm scaled down to it") by renorm
                (selfRef: Inplace, p: Scalar, dim: Int, maxNorm: Scalar);
        }
    };
}
aclnn_normalisation!(operator_rows);

/// Statistics are taken in double precision, and rounded once.
const WIDE: DType = DType::F64;

/// Attributes of a reduction that keeps its axes.
fn over(axes: &[usize]) -> Vec<(&'static str, OperatorAttribute)> {
    let axes = axes.iter().map(|&axis| axis.cast_signed() as i64).collect();
    vec![
        ("axes", OperatorAttribute::Ints(axes)),
        ("keepdims", OperatorAttribute::Int(1)),
    ]
}

pub(super) fn mean_over(call: &mut OperatorCall<'_>, x: &Value, axes: &[usize]) -> Value {
    call.node_with("ReduceMean", &[x], over(axes), x.dtype)
}

/// Mean and variance of the elements along some axes, which are kept.
struct Moments {
    mean: Value,
    variance: Value,
    /// The elements, less the mean.
    centred: Value,
}

fn moments(call: &mut OperatorCall<'_>, x: &Value, axes: &[usize]) -> Moments {
    let mean = mean_over(call, x, axes);
    // In two passes: the mean of squares less the square of the mean would lose the digits of
    // elements far from 0.
    let centred = call.node("Sub", &[x, &mean], x.dtype);
    let square = call.node("Mul", &[&centred, &centred], x.dtype);
    let variance = mean_over(call, &square, axes);
    Moments {
        mean,
        variance,
        centred,
    }
}

/// `1 / sqrt(x + eps)`.
fn inverse_root(call: &mut OperatorCall<'_>, x: &Value, eps: f64) -> Composed<Value> {
    // Given for each run: another epsilon needs no other graph.
    let eps = call.number_value(ScalarNumber::Float(eps), x.dtype)?;
    let one = call.constant(1.0, x.dtype)?;
    let sum = call.node("Add", &[x, &eps], x.dtype);
    let root = call.node("Sqrt", &[&sum], x.dtype);
    Ok(call.node("Div", &[&one, &root], x.dtype))
}

/// `x · weight + bias`, each of which may be left out, given the shape `dims` first.
fn affine(
    call: &mut OperatorCall<'_>,
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

fn shaped(call: &mut OperatorCall<'_>, x: &TensorArgument, dims: &[usize]) -> Composed<Value> {
    let value = call.read(x, WIDE)?;
    call.reshaped(&value, dims)
}

/// Checks an output whose elements may be any float.
fn expect_result(call: &OperatorCall<'_>, out: &TensorArgument, dims: &[usize]) -> Composed {
    call.expect_shape(out, dims)?;
    call.expect_dtype(out, is_small_float, SMALL_FLOATS)
}

fn expect_small_floats(call: &OperatorCall<'_>, tensors: &[Option<&TensorArgument>]) -> Composed {
    for tensor in tensors.iter().flatten() {
        call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
    }
    Ok(())
}

/// The axes at the end with these extents, as the first of them; axes before it are batches.
fn last_axes(call: &OperatorCall<'_>, x: &TensorArgument, extents: &[usize]) -> Composed<usize> {
    // Without axes each element would be its own batch, which the vendor refuses as well.
    if !extents.is_empty() && x.dims().ends_with(extents) {
        return Ok(x.n_axes() - extents.len());
    }
    let (name, found) = (call.name(x), x.dims());
    Err(Refusal::invalid(format!(
        "`{name}` has the shape {found:?}; expected one that ends in {extents:?}"
    )))
}

/// The shape with 1 in the place of the axes from `first` on.
fn batches_of(dims: &[usize], first: usize) -> Vec<usize> {
    let mut batches = dims.to_vec();
    batches[first..].fill(1);
    batches
}

/// The statistics over nothing.
fn fill_statistics(call: &mut OperatorCall<'_>, mean: &TensorArgument, rstd: &TensorArgument) {
    call.fill(mean, ScalarNumber::Int(0));
    call.fill(rstd, ScalarNumber::Float(f64::NAN));
}

fn layer_norm(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("input")?, call.tensor("out")?);
    let weight = call.optional_tensor("weightOptional")?;
    let bias = call.optional_tensor("biasOptional")?;
    let mean = call.optional_tensor("meanOutOptional")?;
    let rstd = call.optional_tensor("rstdOutOptional")?;
    // The modes choose between kernels of a device, which differ in their digits alone.
    if call.has("implMode") && !(0..=2).contains(&call.int("implMode")?) {
        return Err(Refusal::invalid("`implMode` is not 0, 1 or 2"));
    }
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
    // There may be batches without elements, whose statistics are stored all the same.
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        for (tensor, number) in [(mean, 0.0), (rstd, f64::NAN)] {
            if let Some(tensor) = tensor {
                call.fill(tensor, ScalarNumber::Float(number));
            }
        }
        return Ok(());
    }
    let value = call.read(x, WIDE)?;
    let eps = call.number("eps")?;
    let parts = layer_normalised(call, &value, first, x.n_axes(), eps)?;
    let result = affine(call, &parts.normalised, [weight, bias], &extents)?;
    call.write(out, &result, x.dtype);
    if let Some(mean) = mean {
        call.write(mean, &parts.mean, WIDE);
    }
    if let Some(rstd) = rstd {
        call.write(rstd, &parts.rstd, WIDE);
    }
    Ok(())
}

fn normalised_extents(call: &OperatorCall<'_>) -> Composed<Vec<usize>> {
    let extents = call.ints("normalizedShape")?;
    let extents: Option<Vec<usize>> = extents.iter().map(|&n| usize::try_from(n).ok()).collect();
    extents.ok_or_else(|| Refusal::invalid("`normalizedShape` has a negative extent"))
}

/// The sum over the axes in front.
fn sum_of_batches(call: &mut OperatorCall<'_>, x: &Value, n: usize) -> Composed<Value> {
    if n == 0 {
        return Ok(x.clone());
    }
    let axes: Vec<usize> = (0..n).collect();
    let axes = call.constant_dims(&axes)?;
    let drops_axes = vec![("keepdims", OperatorAttribute::Int(0))];
    Ok(call.node_with("ReduceSum", &[x, &axes], drops_axes, x.dtype))
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
    /// weight; without `mean(g)` where no mean was taken off.
    fn of_input(
        &self,
        call: &mut OperatorCall<'_>,
        weight: Option<&TensorArgument>,
        is_centred: bool,
    ) -> Composed<Value> {
        let mut grad = self.grad.clone();
        if let Some(weight) = weight {
            let weight = call.read(weight, WIDE)?;
            grad = call.node("Mul", &[&grad, &weight], WIDE);
        }
        let product = call.node("Mul", &[&grad, &self.normalised], WIDE);
        let share = mean_over(call, &product, &self.axes);
        let share = call.node("Mul", &[&self.normalised, &share], WIDE);
        let mut rest = call.node("Sub", &[&grad, &share], WIDE);
        if is_centred {
            let mean = mean_over(call, &grad, &self.axes);
            rest = call.node("Sub", &[&rest, &mean], WIDE);
        }
        Ok(call.node("Mul", &[&rest, &self.rstd], WIDE))
    }

    fn of_weight(&self, call: &mut OperatorCall<'_>) -> Composed<Value> {
        let product = call.node("Mul", &[&self.grad, &self.normalised], WIDE);
        sum_of_batches(call, &product, self.axes.first().copied().unwrap_or(0))
    }

    fn of_bias(&self, call: &mut OperatorCall<'_>) -> Composed<Value> {
        let first = self.axes.first().copied().unwrap_or(0);
        sum_of_batches(call, &self.grad, first)
    }
}

/// Which of three gradients are asked for.
fn expect_mask<'a>(call: &OperatorCall<'a>) -> Composed<&'a [bool]> {
    let mask = call.flags("outputMask")?;
    if mask.len() != 3 {
        let n = mask.len();
        let text = format!("`outputMask` has {n} elements; expected 3");
        return Err(Refusal::invalid(text));
    }
    Ok(mask)
}

fn layer_norm_backward(call: &mut OperatorCall<'_>) -> Composed {
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
    let centred = call.node("Sub", &[&value, &mean], WIDE);
    let slopes = Slopes {
        grad: call.read(grad, WIDE)?,
        normalised: call.node("Mul", &[&centred, &rstd], WIDE),
        rstd,
        axes: (first..x.n_axes()).collect(),
    };
    let names = ["gradInputOut", "gradWeightOut", "gradBiasOut"];
    // Each gradient is stored on its own, as programs leave out those that they need not.
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
            call.fill(out, ScalarNumber::Int(0));
            continue;
        }
        let result = match i {
            0 => slopes.of_input(call, weight, true)?,
            1 => slopes.of_weight(call)?,
            _ => slopes.of_bias(call)?,
        };
        call.write(out, &result, WIDE);
    }
    Ok(())
}

fn rms_norm_backward(call: &mut OperatorCall<'_>) -> Composed {
    let (grad, x) = (call.tensor("dy")?, call.tensor("x")?);
    let (rstd, gamma) = (call.tensor("rstd")?, call.tensor("gamma")?);
    let (out, gamma_out) = (call.tensor("dxOut")?, call.tensor("dgammaOut")?);
    expect_small_floats(call, &[Some(grad), Some(x), Some(rstd), Some(gamma)])?;
    let first = last_axes(call, x, gamma.dims())?;
    call.expect_shape(grad, x.dims())?;
    call.expect_shape(rstd, &batches_of(x.dims(), first))?;
    expect_result(call, out, x.dims())?;
    expect_result(call, gamma_out, gamma.dims())?;
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        call.fill(gamma_out, ScalarNumber::Int(0));
        return Ok(());
    }
    let value = call.read(x, WIDE)?;
    let rstd = call.read(rstd, WIDE)?;
    let slopes = Slopes {
        grad: call.read(grad, WIDE)?,
        normalised: call.node("Mul", &[&value, &rstd], WIDE),
        rstd,
        axes: (first..x.n_axes()).collect(),
    };
    let result = slopes.of_input(call, Some(gamma), false)?;
    call.write(out, &result, WIDE);
    let result = slopes.of_weight(call)?;
    call.write(gamma_out, &result, WIDE);
    Ok(())
}

struct LayerNormalised {
    normalised: Value,
    mean: Value,
    rstd: Value,
}

fn layer_normalised(
    call: &mut OperatorCall<'_>,
    x: &Value,
    first: usize,
    n_axes: usize,
    eps: f64,
) -> Composed<LayerNormalised> {
    let axes: Vec<usize> = (first..n_axes).collect();
    let moments = moments(call, x, &axes);
    let rstd = inverse_root(call, &moments.variance, eps)?;
    let normalised = call.node("Mul", &[&moments.centred, &rstd], x.dtype);
    Ok(LayerNormalised {
        normalised,
        mean: moments.mean,
        rstd,
    })
}

/// The sum of the inputs of an operator that adds before it normalises, after its shapes were
/// checked.
fn added(
    call: &mut OperatorCall<'_>,
    [x1, x2]: [&TensorArgument; 2],
    bias: Option<&TensorArgument>,
) -> Composed<Value> {
    call.expect_shape(x2, x1.dims())?;
    let first = call.read(x1, WIDE)?;
    let second = call.read(x2, WIDE)?;
    let mut sum = call.node("Add", &[&first, &second], WIDE);
    if let Some(bias) = bias {
        // As long as the whole, or as the axes that are normalised.
        last_axes(call, x1, bias.dims())?;
        let value = call.read(bias, WIDE)?;
        sum = call.node("Add", &[&sum, &value], WIDE);
    }
    Ok(sum)
}

fn add_layer_norm(call: &mut OperatorCall<'_>) -> Composed {
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
    // The sum is stored rounded, but normalised as it was computed.
    let dtype = call.promote(&[x1, x2], &[])?;
    if let Some(sum_out) = sum_out {
        call.write(sum_out, &sum, dtype);
    }
    if x1.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        fill_statistics(call, mean, rstd);
        return Ok(());
    }
    let eps = call.number("epsilon")?;
    let parts = layer_normalised(call, &sum, first, x1.n_axes(), eps)?;
    let result = affine(
        call,
        &parts.normalised,
        [Some(gamma), Some(beta)],
        gamma.dims(),
    )?;
    call.write(out, &result, dtype);
    call.write(mean, &parts.mean, WIDE);
    call.write(rstd, &parts.rstd, WIDE);
    Ok(())
}

fn absent(name: &str) -> Refusal {
    Refusal {
        status: ACLNN_PARAM_NULLPTR,
        text: format!("`{name}` is a null pointer"),
    }
}

fn rms_norm(call: &mut OperatorCall<'_>) -> Composed {
    let x = call.tensor("x")?;
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    let value = call.read(x, WIDE)?;
    rms_normalised(call, x, &value, false)
}

fn gemma_rms_norm(call: &mut OperatorCall<'_>) -> Composed {
    let x = call.tensor("x")?;
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    let value = call.read(x, WIDE)?;
    rms_normalised(call, x, &value, true)
}

fn add_rms_norm(call: &mut OperatorCall<'_>) -> Composed {
    let (x1, x2) = (call.tensor("x1")?, call.tensor("x2")?);
    let sum_out = call.optional_tensor("xOut")?;
    expect_small_floats(call, &[Some(x1), Some(x2)])?;
    let sum = added(call, [x1, x2], None)?;
    if let Some(sum_out) = sum_out {
        expect_result(call, sum_out, x1.dims())?;
        call.write(sum_out, &sum, x1.dtype);
    }
    rms_normalised(call, x1, &sum, false)
}

/// Stores `value · rstd · gamma`, where `x` has the shape and type of the value.
fn rms_normalised(
    call: &mut OperatorCall<'_>,
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
        call.fill(out, ScalarNumber::Int(0));
        call.fill(rstd_out, ScalarNumber::Float(f64::NAN));
        return Ok(());
    }
    let axes: Vec<usize> = (first..x.n_axes()).collect();
    let square = call.node("Mul", &[value, value], WIDE);
    let mean = mean_over(call, &square, &axes);
    let eps = call.number("epsilon")?;
    let rstd = inverse_root(call, &mean, eps)?;
    let mut weight = call.read(gamma, WIDE)?;
    if adds_one {
        let one = call.constant(1.0, WIDE)?;
        weight = call.node("Add", &[&weight, &one], WIDE);
    }
    let normalised = call.node("Mul", &[value, &rstd], WIDE);
    let result = call.node("Mul", &[&normalised, &weight], WIDE);
    let dtype = call.promote(&[x, gamma], &[])?;
    call.write(out, &result, dtype);
    call.write(rstd_out, &rstd, WIDE);
    Ok(())
}

/// A batch of channels: all axes but that of the channels, and the shape of one number for each.
struct Channels {
    n: usize,
    others: Vec<usize>,
    dims: Vec<usize>,
}

fn channels(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<Channels> {
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    if !(2..=8).contains(&x.n_axes()) {
        let (name, n) = (call.name(x), x.n_axes());
        let text = format!("`{name}` has {n} axes; expected 2 to 8, the second of channels");
        return Err(Refusal::invalid(text));
    }
    // Channels are the second axis in every format that is accepted here.
    let others: Vec<usize> = (0..x.n_axes()).filter(|&axis| axis != 1).collect();
    let n = x.dims()[1];
    let mut dims = vec![1; x.n_axes()];
    dims[1] = n;
    Ok(Channels { n, others, dims })
}

fn batch_norm(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("input")?, call.tensor("output")?);
    let channels = channels(call, x)?;
    let weight = call.optional_tensor("weight")?;
    let bias = call.optional_tensor("bias")?;
    let running = [
        call.optional_tensor("runningMean")?,
        call.optional_tensor("runningVar")?,
    ];
    let saved = [
        call.optional_tensor("saveMean")?,
        call.optional_tensor("saveInvstd")?,
    ];
    let is_training = call.flag("training")?;
    expect_result(call, out, x.dims())?;
    expect_small_floats(call, &[weight, bias, running[0], running[1]])?;
    for tensor in [weight, bias].iter().chain(&running).flatten() {
        call.expect_shape(tensor, &[channels.n])?;
    }
    for (tensor, name) in saved.iter().zip(["saveMean", "saveInvstd"]) {
        match tensor {
            // Only training stores statistics; inference takes null pointers for them.
            None if is_training => return Err(absent(name)),
            Some(tensor) if is_training => expect_result(call, tensor, &[channels.n])?,
            Some(tensor) => call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?,
            None => {}
        }
    }
    if x.is_empty() {
        return batch_norm_of_nothing(call, out, running, saved);
    }
    let value = call.read(x, WIDE)?;
    let eps = call.number("eps")?;
    let (centred, variance) = if is_training {
        let moments = moments(call, &value, &channels.others);
        let n = x.n_elements() / channels.n.max(1);
        move_statistics(call, running, &moments, n)?;
        (moments.centred.clone(), Batch::Own(moments))
    } else {
        let mean = running_or(call, running[0], 0.0, &channels.dims)?;
        let variance = running_or(call, running[1], 1.0, &channels.dims)?;
        keep_statistics(call, running)?;
        let centred = call.node("Sub", &[&value, &mean], WIDE);
        (centred, Batch::Running(variance))
    };
    let invstd = inverse_root(call, variance.variance(), eps)?;
    if let Batch::Own(moments) = &variance {
        for (tensor, value) in saved.into_iter().zip([&moments.mean, &invstd]) {
            write_channels(call, tensor, value, channels.n)?;
        }
    } else {
        for tensor in saved.into_iter().flatten() {
            call.fill(tensor, ScalarNumber::Int(0));
        }
    }
    let normalised = call.node("Mul", &[&centred, &invstd], WIDE);
    let result = affine(call, &normalised, [weight, bias], &channels.dims)?;
    call.write(out, &result, x.dtype);
    Ok(())
}

/// Whose variance a batch is divided by.
enum Batch {
    Own(Moments),
    Running(Value),
}

impl Batch {
    fn variance(&self) -> &Value {
        match self {
            Batch::Own(moments) => &moments.variance,
            Batch::Running(variance) => variance,
        }
    }
}

/// One number for each channel, or the same one where there is no tensor.
fn running_or(
    call: &mut OperatorCall<'_>,
    tensor: Option<&TensorArgument>,
    other: f64,
    dims: &[usize],
) -> Composed<Value> {
    match tensor {
        Some(tensor) => shaped(call, tensor, dims),
        None => call.constant(other, WIDE),
    }
}

fn write_channels(
    call: &mut OperatorCall<'_>,
    out: Option<&TensorArgument>,
    value: &Value,
    n: usize,
) -> Composed {
    if let Some(out) = out {
        let list = call.reshaped(value, &[n])?;
        call.write(out, &list, WIDE);
    }
    Ok(())
}

fn keep_statistics(call: &mut OperatorCall<'_>, running: [Option<&TensorArgument>; 2]) -> Composed {
    for tensor in running.into_iter().flatten() {
        // Tensors that are written in place need a result, which here is what they hold.
        let value = call.read_raw(tensor)?;
        call.write_raw(tensor, &value);
    }
    Ok(())
}

/// Moves the running statistics towards those of a batch with `n` elements for each channel.
fn move_statistics(
    call: &mut OperatorCall<'_>,
    running: [Option<&TensorArgument>; 2],
    moments: &Moments,
    n: usize,
) -> Composed {
    let momentum = call.number("momentum")?;
    // Beyond that the correction is 1 in any precision.
    let n = f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    // The running variance is that of the population, which the batch is a sample of.
    // A batch of one element has no variance of a population: the quotient is infinite, its product
    // NaN.
    let corrections = [1.0, n / (n - 1.0)];
    let new = [&moments.mean, &moments.variance];
    for ((tensor, value), correction) in running.into_iter().zip(new).zip(corrections) {
        let Some(tensor) = tensor else { continue };
        let kept = call.number_value(ScalarNumber::Float(1.0 - momentum), WIDE)?;
        let old = call.read(tensor, WIDE)?;
        let old = call.node("Mul", &[&old, &kept], WIDE);
        let part = ScalarNumber::Float(momentum * correction);
        let part = call.number_value(part, WIDE)?;
        let list = call.reshaped(value, tensor.dims())?;
        let new = call.node("Mul", &[&list, &part], WIDE);
        let sum = call.node("Add", &[&old, &new], WIDE);
        call.write(tensor, &sum, WIDE);
    }
    Ok(())
}

fn batch_norm_of_nothing(
    call: &mut OperatorCall<'_>,
    out: &TensorArgument,
    running: [Option<&TensorArgument>; 2],
    saved: [Option<&TensorArgument>; 2],
) -> Composed {
    call.fill(out, ScalarNumber::Int(0));
    keep_statistics(call, running)?;
    for (tensor, number) in saved.into_iter().zip([0.0, f64::NAN]) {
        if let Some(tensor) = tensor {
            call.fill(tensor, ScalarNumber::Float(number));
        }
    }
    Ok(())
}

/// The mean and the inverse root that a batch was normalised with.
fn statistics_of_batch(call: &mut OperatorCall<'_>, channels: &Channels) -> Composed<[Value; 2]> {
    let is_training = call.flag("training")?;
    let names = if is_training {
        ["saveMean", "saveInvstd"]
    } else {
        ["runningMean", "runningVar"]
    };
    let mut values = Vec::with_capacity(2);
    for name in names {
        let tensor = call.optional_tensor(name)?.ok_or_else(|| absent(name))?;
        call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
        call.expect_shape(tensor, &[channels.n])?;
        values.push(shaped(call, tensor, &channels.dims)?);
    }
    let (second, first) = (values.swap_remove(1), values.swap_remove(0));
    if is_training {
        return Ok([first, second]);
    }
    let eps = call.number("eps")?;
    let rstd = inverse_root(call, &second, eps)?;
    Ok([first, rstd])
}

fn batch_norm_backward(call: &mut OperatorCall<'_>) -> Composed {
    let (grad, x) = (call.tensor("gradOut")?, call.tensor("input")?);
    let channels = channels(call, x)?;
    let weight = call.optional_tensor("weight")?;
    expect_small_floats(call, &[Some(grad), weight])?;
    call.expect_shape(grad, x.dims())?;
    if let Some(weight) = weight {
        call.expect_shape(weight, &[channels.n])?;
    }
    let mask = expect_mask(call)?;
    let [mean, rstd] = statistics_of_batch(call, &channels)?;
    let value = call.read(x, WIDE)?;
    let centred = call.node("Sub", &[&value, &mean], WIDE);
    let normalised = call.node("Mul", &[&centred, &rstd], WIDE);
    let grad = call.read(grad, WIDE)?;
    let product = call.node("Mul", &[&grad, &normalised], WIDE);
    let names = ["gradInput", "gradWeight", "gradBias"];
    for (i, (name, &is_asked)) in names.into_iter().zip(mask).enumerate() {
        let Some(out) = call.optional_tensor(name)? else {
            if is_asked {
                return Err(absent(name));
            }
            continue;
        };
        let dims = if i == 0 { x.dims() } else { &[channels.n] };
        expect_result(call, out, dims)?;
        if !is_asked || x.is_empty() {
            call.fill(out, ScalarNumber::Int(0));
            continue;
        }
        if i > 0 {
            let terms = if i == 1 { &product } else { &grad };
            let axes: Vec<i64> = channels
                .others
                .iter()
                .map(|&n| n.cast_signed() as i64)
                .collect();
            let axes = call.constant_ints(&axes)?;
            let drops_axes = vec![("keepdims", OperatorAttribute::Int(0))];
            let sum = call.node_with("ReduceSum", &[terms, &axes], drops_axes, WIDE);
            call.write(out, &sum, WIDE);
            continue;
        }
        let mut rest = grad.clone();
        // Running statistics do not depend on the batch, so that nothing comes back through them.
        if call.flag("training")? {
            let slope = mean_over(call, &product, &channels.others);
            let share = call.node("Mul", &[&normalised, &slope], WIDE);
            let offset = mean_over(call, &grad, &channels.others);
            rest = call.node("Sub", &[&rest, &share], WIDE);
            rest = call.node("Sub", &[&rest, &offset], WIDE);
        }
        let result = call.node("Mul", &[&rest, &rstd], WIDE);
        let result = affine(call, &result, [weight, None], &channels.dims)?;
        call.write(out, &result, WIDE);
    }
    Ok(())
}

fn batch_statistics(call: &mut OperatorCall<'_>) -> Composed {
    let x = call.tensor("input")?;
    let (mean, invstd) = (call.tensor("mean")?, call.tensor("invstd")?);
    let channels = channels(call, x)?;
    for out in [mean, invstd] {
        expect_result(call, out, &[channels.n])?;
    }
    if x.is_empty() {
        fill_statistics(call, mean, invstd);
        return Ok(());
    }
    let value = call.read(x, WIDE)?;
    let moments = moments(call, &value, &channels.others);
    let eps = call.number("eps")?;
    let inverse = inverse_root(call, &moments.variance, eps)?;
    write_channels(call, Some(mean), &moments.mean, channels.n)?;
    write_channels(call, Some(invstd), &inverse, channels.n)
}

fn batch_norm_of_statistics(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("input")?, call.tensor("output")?);
    let (mean, invstd) = (call.tensor("mean")?, call.tensor("invstd")?);
    let weight = call.optional_tensor("weight")?;
    let bias = call.optional_tensor("bias")?;
    let channels = channels(call, x)?;
    expect_result(call, out, x.dims())?;
    let each = [weight, bias, Some(mean), Some(invstd)];
    expect_small_floats(call, &each)?;
    for tensor in each.into_iter().flatten() {
        call.expect_shape(tensor, &[channels.n])?;
    }
    let value = call.read(x, WIDE)?;
    let mean = shaped(call, mean, &channels.dims)?;
    let centred = call.node("Sub", &[&value, &mean], WIDE);
    let result = affine(call, &centred, [Some(invstd), None], &channels.dims)?;
    let result = affine(call, &result, [weight, bias], &channels.dims)?;
    call.write(out, &result, x.dtype);
    Ok(())
}

/// Samples, channels, elements for each channel, and groups of channels.
struct Groups {
    n: usize,
    channels: usize,
    area: usize,
    groups: usize,
}

impl Groups {
    /// From the tensor's shape, with which parameters that say the same have to agree.
    fn new(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<Groups> {
        let &[n, channels, ref area @ ..] = x.dims() else {
            let text = format!("`self` has {} axes; expected 2 or more", x.n_axes());
            return Err(Refusal::invalid(text));
        };
        let area = area.iter().fold(1, |a: usize, &n| a.saturating_mul(n));
        // The functions that come with silu take the sizes from the tensor alone.
        if call.has("N") {
            for (name, extent) in [("N", n), ("C", channels), ("HxW", area)] {
                let found = call.int(name)?;
                if usize::try_from(found) != Ok(extent) {
                    let text = format!("`{name}` is {found}; expected {extent}, as in `self`");
                    return Err(Refusal::invalid(text));
                }
            }
        }
        let group = call.int("group")?;
        let groups = usize::try_from(group).ok().filter(|&n| n > 0);
        let groups = groups.filter(|groups| channels.is_multiple_of(*groups));
        let groups = groups.ok_or_else(|| {
            Refusal::invalid(format!(
                "`group` is {group}; expected a divisor of {channels}, the number of channels"
            ))
        })?;
        Ok(Groups {
            n,
            channels,
            area,
            groups,
        })
    }
}

fn group_norm(call: &mut OperatorCall<'_>) -> Composed {
    group_normalised(call, false)
}

fn group_norm_silu(call: &mut OperatorCall<'_>) -> Composed {
    let is_activated = !call.has("activateSilu") || call.flag("activateSilu")?;
    group_normalised(call, is_activated)
}

fn group_normalised(call: &mut OperatorCall<'_>, is_activated: bool) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let (gamma, beta) = (
        call.optional_tensor("gamma")?,
        call.optional_tensor("beta")?,
    );
    let (mean, rstd) = (call.tensor("meanOut")?, call.tensor("rstdOut")?);
    expect_small_floats(call, &[Some(x), gamma, beta])?;
    let sizes = Groups::new(call, x)?;
    expect_result(call, out, x.dims())?;
    for tensor in [gamma, beta].into_iter().flatten() {
        call.expect_shape(tensor, &[sizes.channels])?;
    }
    let each = [sizes.n, sizes.groups];
    for tensor in [mean, rstd] {
        expect_result(call, tensor, &each)?;
    }
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        fill_statistics(call, mean, rstd);
        return Ok(());
    }
    // Groups lie side by side in each sample, so that a view with three axes has them all.
    let share = sizes.channels / sizes.groups * sizes.area;
    let value = shaped(call, x, &[sizes.n, sizes.groups, share])?;
    let eps = call.number("eps")?;
    let parts = layer_normalised(call, &value, 2, 3, eps)?;
    // Weights belong to channels, not to groups.
    let planes = [sizes.n, sizes.channels, sizes.area];
    let result = call.reshaped(&parts.normalised, &planes)?;
    let mut result = affine(call, &result, [gamma, beta], &[sizes.channels, 1])?;
    if is_activated {
        let gate = sigmoid_of(call, &result)?;
        result = call.node("Mul", &[&result, &gate], WIDE);
    }
    let result = call.reshaped(&result, x.dims())?;
    call.write(out, &result, x.dtype);
    for (out, value) in [(mean, &parts.mean), (rstd, &parts.rstd)] {
        let value = call.reshaped(value, &each)?;
        call.write(out, &value, WIDE);
    }
    Ok(())
}

fn instance_norm(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("x")?, call.tensor("y")?);
    let (gamma, beta) = (call.tensor("gamma")?, call.tensor("beta")?);
    let (mean, variance) = (call.tensor("mean")?, call.tensor("variance")?);
    let format = call.text("dataFormat")?;
    let axes = match format.as_ref() {
        "NCHW" => [2, 3],
        "NHWC" => [1, 2],
        other => {
            let text = format!("`dataFormat` is \"{other}\"; expected NCHW or NHWC");
            return Err(Refusal::invalid(text));
        }
    };
    expect_small_floats(call, &[Some(x), Some(gamma), Some(beta)])?;
    if x.n_axes() != 4 {
        let text = format!("`x` has {} axes; expected 4", x.n_axes());
        return Err(Refusal::invalid(text));
    }
    // Channels stand on the other side of the plane's axes in either format.
    let channel = if axes[0] == 2 { 1 } else { 3 };
    let n = x.dims()[channel];
    for tensor in [gamma, beta] {
        call.expect_shape(tensor, &[n])?;
    }
    expect_result(call, out, x.dims())?;
    let mut each = x.dims().to_vec();
    each[axes[0]] = 1;
    each[axes[1]] = 1;
    for tensor in [mean, variance] {
        expect_result(call, tensor, &each)?;
    }
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        fill_statistics(call, mean, variance);
        return Ok(());
    }
    let value = call.read(x, WIDE)?;
    let moments = moments(call, &value, &axes);
    let eps = call.number("eps")?;
    let rstd = inverse_root(call, &moments.variance, eps)?;
    let normalised = call.node("Mul", &[&moments.centred, &rstd], WIDE);
    let mut dims = vec![1; 4];
    dims[channel] = n;
    let result = affine(call, &normalised, [Some(gamma), Some(beta)], &dims)?;
    call.write(out, &result, x.dtype);
    call.write(mean, &moments.mean, WIDE);
    call.write(variance, &moments.variance, WIDE);
    Ok(())
}

fn renorm(call: &mut OperatorCall<'_>) -> Composed {
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
        if number.is_nan() || number < 0.0 {
            let text = format!("`{name}` is {number}; expected 0 or more");
            return Err(Refusal::invalid(text));
        }
    }
    let others: Vec<usize> = (0..x.n_axes()).filter(|&axis| axis != kept).collect();
    let value = call.read(x, WIDE)?;
    let norm = norm_over(call, &value, power, &others)?;
    let largest = call.scalar_value(largest, WIDE)?;
    // Added to the norm, as PyTorch does it, so that a norm of 0 does not divide.
    let floor = call.constant(1e-7, WIDE)?;
    let divisor = call.node("Add", &[&norm, &floor], WIDE);
    let scale = call.node("Div", &[&largest, &divisor], WIDE);
    let is_large = call.node("Greater", &[&norm, &largest], DType::Bool);
    let one = call.constant(1.0, WIDE)?;
    let scale = call.node("Where", &[&is_large, &scale, &one], WIDE);
    let result = call.node("Mul", &[&value, &scale], WIDE);
    call.write(out, &result, x.dtype);
    Ok(())
}

/// The p-norm over some axes, which are kept; of 0 it is the number of elements other than 0.
fn norm_over(
    call: &mut OperatorCall<'_>,
    x: &Value,
    power: f64,
    axes: &[usize],
) -> Composed<Value> {
    let size = call.node("Abs", &[x], x.dtype);
    if power.is_infinite() {
        return Ok(call.node_with("ReduceMax", &[&size], over(axes), x.dtype));
    }
    // Sums take their axes as an input in this operator set, means and extremes as an attribute.
    let list: Vec<i64> = axes.iter().map(|&axis| axis.cast_signed() as i64).collect();
    let list = call.constant_ints(&list)?;
    let keeps_axes = vec![("keepdims", OperatorAttribute::Int(1))];
    if power == 0.0 {
        // The sign of a size is 1 unless it is 0.
        let counted = call.node("Sign", &[&size], x.dtype);
        return Ok(call.node_with("ReduceSum", &[&counted, &list], keeps_axes, x.dtype));
    }
    let exponent = call.number_value(ScalarNumber::Float(power), x.dtype)?;
    let raised = call.node("Pow", &[&size, &exponent], x.dtype);
    let sum = call.node_with("ReduceSum", &[&raised, &list], keeps_axes, x.dtype);
    // The root is a power as well, which engines have for any number.
    let inverse = call.number_value(ScalarNumber::Float(1.0 / power), x.dtype)?;
    Ok(call.node("Pow", &[&sum, &inverse], x.dtype))
}
