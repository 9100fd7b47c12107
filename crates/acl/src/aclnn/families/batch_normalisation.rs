//! Normalisation of channels over a batch.

use opscope_engine::single_operator::OperatorAttribute;

use super::activation::{SMALL_FLOATS, is_small_float};
use super::normalisation::{
    Moments, WIDE, absent, affine, expect_mask, expect_result, expect_small_floats,
    fill_statistics, inverse_root, mean_over, moments, shaped,
};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of batch normalisations.
#[macro_export]
macro_rules! aclnn_batch_normalisation {
    ($rows:ident) => {
        $rows! { "batch normalisations";
            BatchNormV3("aclnn_batch_norm.h", "(input - mean) * invstd * weight + bias for each channel, of the batch in training, else of the running statistics, which training moves by momentum; without training saveMean and saveInvstd get 0") by batch_norm():
                aclnnBatchNorm(input: Tensor, weight: OptionalTensor, bias: OptionalTensor, runningMean: OptionalInplace, runningVar: OptionalInplace, training: Flag, momentum: Double, eps: Double, output: Out, saveMean: OptionalOut, saveInvstd: OptionalOut);
            BatchNormGradV3("aclnn_batch_norm_backward.h", "the gradients of aclnnBatchNorm that outputMask asks for; others get 0; without training of the running statistics") by batch_norm_backward():
                aclnnBatchNormBackward(gradOut: Tensor, input: Tensor, weight: OptionalTensor, runningMean: OptionalTensor, runningVar: OptionalTensor, saveMean: OptionalTensor, saveInvstd: OptionalTensor, training: Flag, eps: Double, outputMask: BoolArray, gradInput: OptionalOut, gradWeight: OptionalOut, gradBias: OptionalOut);
            BatchNormStats("aclnn_batch_norm_stats.h", "the mean of each channel, and 1 / the root of its variance + eps") by batch_statistics():
                aclnnBatchNormStats(input: Tensor, eps: Double, mean: Out, invstd: Out);
            BatchNormElemt("aclnn_batch_norm_elemt.h", "(input - mean) * invstd * weight + bias for each channel") by batch_norm_of_statistics():
                aclnnBatchNormElemt(input: Tensor, weight: OptionalTensor, bias: OptionalTensor, mean: Tensor, invstd: Tensor, eps: Double, output: Out);
        }
    };
}
aclnn_batch_normalisation!(operator_rows);

/// A batch with channels: the other axes, and the shape of per-channel numbers.
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
    // Channels are the second axis in every accepted format.
    let others: Vec<usize> = (0..x.n_axes()).filter(|&axis| axis != 1).collect();
    let n = x.dims()[1];
    let mut dims = vec![1; x.n_axes()];
    dims[1] = n;
    Ok(Channels { n, others, dims })
}

fn batch_norm(call: &OperatorCall<'_>) -> Composed {
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
            // Only training stores statistics; inference accepts null pointers.
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
        let centred = &value - &mean;
        (centred, Batch::Running(variance))
    };
    let invstd = inverse_root(call, variance.variance(), eps)?;
    if let Batch::Own(moments) = &variance {
        for (tensor, value) in saved.into_iter().zip([&moments.mean, &invstd]) {
            write_channels(call, tensor, value, channels.n)?;
        }
    } else {
        for tensor in saved.into_iter().flatten() {
            call.fill(tensor, ScalarNumber::Int(0))?;
        }
    }
    let normalised = &centred * &invstd;
    let result = affine(call, &normalised, [weight, bias], &channels.dims)?;
    call.write(out, &result, x.dtype)
}

/// The source of the variance that a batch is divided by.
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

/// One number for each channel, or a default without a tensor.
fn running_or(
    call: &OperatorCall<'_>,
    tensor: Option<&TensorArgument>,
    other: f64,
    dims: &[usize],
) -> Composed<Value> {
    match tensor {
        Some(tensor) => shaped(call, tensor, dims),
        None => Ok(call.constant(other, WIDE)),
    }
}

fn write_channels(
    call: &OperatorCall<'_>,
    out: Option<&TensorArgument>,
    value: &Value,
    n: usize,
) -> Composed {
    if let Some(out) = out {
        call.write(out, value.reshaped(&[n]), WIDE)?;
    }
    Ok(())
}

fn keep_statistics(call: &OperatorCall<'_>, running: [Option<&TensorArgument>; 2]) -> Composed {
    for tensor in running.into_iter().flatten() {
        // Tensors written in place always need a result, here their current content.
        let value = call.read_raw(tensor)?;
        call.write_raw(tensor, &value)?;
    }
    Ok(())
}

/// Updates the running statistics with those of a batch with `n` elements per channel.
fn move_statistics(
    call: &OperatorCall<'_>,
    running: [Option<&TensorArgument>; 2],
    moments: &Moments,
    n: usize,
) -> Composed {
    let momentum = call.number("momentum")?;
    // Beyond that the correction is 1 in any precision.
    let n = f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    // The running variance is the unbiased estimate. For a batch of one element it is undefined:
    // the quotient is infinite, its product NaN.
    let corrections = [1.0, n / (n - 1.0)];
    let new = [&moments.mean, &moments.variance];
    for ((tensor, value), correction) in running.into_iter().zip(new).zip(corrections) {
        let Some(tensor) = tensor else { continue };
        let kept = call.number_value(ScalarNumber::Float(1.0 - momentum), WIDE)?;
        let old = call.read(tensor, WIDE)?;
        let part = ScalarNumber::Float(momentum * correction);
        let part = call.number_value(part, WIDE)?;
        call.write(
            tensor,
            &old * &kept + value.reshaped(tensor.dims()) * &part,
            WIDE,
        )?;
    }
    Ok(())
}

fn batch_norm_of_nothing(
    call: &OperatorCall<'_>,
    out: &TensorArgument,
    running: [Option<&TensorArgument>; 2],
    saved: [Option<&TensorArgument>; 2],
) -> Composed {
    call.fill(out, ScalarNumber::Int(0))?;
    keep_statistics(call, running)?;
    for (tensor, number) in saved.into_iter().zip([0.0, f64::NAN]) {
        if let Some(tensor) = tensor {
            call.fill(tensor, ScalarNumber::Float(number))?;
        }
    }
    Ok(())
}

/// The mean and the inverse root used to normalise a batch.
fn statistics_of_batch(call: &OperatorCall<'_>, channels: &Channels) -> Composed<[Value; 2]> {
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

fn batch_norm_backward(call: &OperatorCall<'_>) -> Composed {
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
    let normalised = (&value - &mean) * &rstd;
    let grad = call.read(grad, WIDE)?;
    let product = &grad * &normalised;
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
            call.fill(out, ScalarNumber::Int(0))?;
            continue;
        }
        if i > 0 {
            let terms = if i == 1 { &product } else { &grad };
            let axes: Vec<i64> = channels
                .others
                .iter()
                .map(|&n| n.cast_signed() as i64)
                .collect();
            let axes = call.constant_ints(&axes);
            let drops_axes = vec![("keepdims", OperatorAttribute::Int(0))];
            let sum = call.node_with("ReduceSum", &[terms, &axes], drops_axes, WIDE);
            call.write(out, &sum, WIDE)?;
            continue;
        }
        let mut rest = grad.clone();
        // Running statistics do not depend on the batch, so no gradient flows through them.
        if call.flag("training")? {
            let slope = mean_over(call, &product, &channels.others);
            let offset = mean_over(call, &grad, &channels.others);
            rest = &rest - &normalised * &slope;
            rest = &rest - &offset;
        }
        let result = &rest * &rstd;
        let result = affine(call, &result, [weight, None], &channels.dims)?;
        call.write(out, &result, WIDE)?;
    }
    Ok(())
}

fn batch_statistics(call: &OperatorCall<'_>) -> Composed {
    let x = call.tensor("input")?;
    let (mean, invstd) = (call.tensor("mean")?, call.tensor("invstd")?);
    let channels = channels(call, x)?;
    for out in [mean, invstd] {
        expect_result(call, out, &[channels.n])?;
    }
    if x.is_empty() {
        return fill_statistics(call, mean, invstd);
    }
    let value = call.read(x, WIDE)?;
    let moments = moments(call, &value, &channels.others);
    let eps = call.number("eps")?;
    let inverse = inverse_root(call, &moments.variance, eps)?;
    write_channels(call, Some(mean), &moments.mean, channels.n)?;
    write_channels(call, Some(invstd), &inverse, channels.n)
}

fn batch_norm_of_statistics(call: &OperatorCall<'_>) -> Composed {
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
    let centred = &value - &mean;
    let result = affine(call, &centred, [Some(invstd), None], &channels.dims)?;
    let result = affine(call, &result, [weight, bias], &channels.dims)?;
    call.write(out, &result, x.dtype)
}
