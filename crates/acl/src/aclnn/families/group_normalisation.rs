//! Normalisation of groups of channels, and of single ones, within a sample.

use super::activation::sigmoid_of;
use super::normalisation::{
    WIDE, affine, expect_result, expect_small_floats, fill_statistics, inverse_root,
    layer_normalised, moments, shaped,
};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of normalisations of groups and samples.
#[macro_export]
macro_rules! aclnn_group_normalisation {
    ($rows:ident) => {
        $rows! { "normalisations of groups and samples";
            GroupNorm("aclnn_group_norm.h", "(self - meanOut) * rstdOut * gamma + beta, for each sample and group of channels") by group_normalised(false):
                aclnnGroupNorm(self_: Tensor, gamma: OptionalTensor, beta: OptionalTensor, N: Int, C: Int, HxW: Int, group: Int, eps: Double, out: Out, meanOut: Out, rstdOut: Out);
            GroupNormSilu("aclnn_group_norm_silu.h", "silu(group norm of self)") by group_norm_silu():
                aclnnGroupNormSilu(self_: Tensor, gamma: OptionalTensor, beta: OptionalTensor, group: Int, eps: Double, out: Out, meanOut: Out, rstdOut: Out);
            GroupNormSilu("aclnn_group_norm_silu.h", "the group norm of self, and silu of it if activateSilu is true") by group_norm_silu():
                aclnnGroupNormSiluV2(self_: Tensor, gamma: OptionalTensor, beta: OptionalTensor, group: Int, eps: Double, activateSilu: Flag, out: Out, meanOut: Out, rstdOut: Out);
            InstanceNormV3("aclnn_instance_norm.h", "(x - mean) / the root of variance + eps, times gamma, plus beta, for each sample and channel") by instance_norm():
                aclnnInstanceNorm(x: Tensor, gamma: Tensor, beta: Tensor, dataFormat: Text, eps: Double, y: Out, mean: Out, variance: Out);
        }
    };
}
aclnn_group_normalisation!(operator_rows);

/// Numbers of samples, channels, elements per channel, and groups of channels.
struct Groups {
    n: usize,
    channels: usize,
    area: usize,
    groups: usize,
}

impl Groups {
    /// Derived from the tensor's shape, with which redundant parameters must agree.
    fn new(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<Groups> {
        let &[n, channels, ref area @ ..] = x.dims() else {
            let text = format!("`self` has {} axes; expected 2 or more", x.n_axes());
            return Err(Refusal::invalid(text));
        };
        let area = area.iter().fold(1, |a: usize, &n| a.saturating_mul(n));
        // The fused functions with silu derive the sizes from the tensor alone.
        if call.has("N") {
            for (name, extent) in [("N", n), ("C", channels), ("HxW", area)] {
                let found = call.int(name)?;
                refuse_if!(
                    usize::try_from(found) != Ok(extent),
                    "`{name}` is {found}; expected {extent}, as in `self`"
                );
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

fn group_norm_silu(call: &OperatorCall<'_>) -> Composed {
    let is_activated = !call.has("activateSilu") || call.flag("activateSilu")?;
    group_normalised(call, is_activated)
}

fn group_normalised(call: &OperatorCall<'_>, is_activated: bool) -> Composed {
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
        call.fill(out, ScalarNumber::Int(0))?;
        return fill_statistics(call, mean, rstd);
    }
    // Groups are adjacent in each sample, so a view with three axes contains them all.
    let share = sizes.channels / sizes.groups * sizes.area;
    let value = shaped(call, x, &[sizes.n, sizes.groups, share])?;
    let eps = call.number("eps")?;
    let parts = layer_normalised(call, &value, 2, 3, eps)?;
    // Weights belong to channels, not to groups.
    let planes = [sizes.n, sizes.channels, sizes.area];
    let result = parts.normalised.reshaped(&planes);
    let mut result = affine(call, &result, [gamma, beta], &[sizes.channels, 1])?;
    if is_activated {
        let gate = sigmoid_of(&result);
        result = &result * &gate;
    }
    call.write(out, result.reshaped(x.dims()), x.dtype)?;
    for (out, value) in [(mean, &parts.mean), (rstd, &parts.rstd)] {
        call.write(out, value.reshaped(&each), WIDE)?;
    }
    Ok(())
}

fn instance_norm(call: &OperatorCall<'_>) -> Composed {
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
    refuse_if!(x.n_axes() != 4, "`x` has {} axes; expected 4", x.n_axes());
    // The position of the channel axis depends on the format.
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
        call.fill(out, ScalarNumber::Int(0))?;
        return fill_statistics(call, mean, variance);
    }
    let value = call.read(x, WIDE)?;
    let moments = moments(call, &value, &axes);
    let eps = call.number("eps")?;
    let rstd = inverse_root(call, &moments.variance, eps)?;
    let normalised = &moments.centred * &rstd;
    let mut dims = vec![1; 4];
    dims[channel] = n;
    let result = affine(call, &normalised, [Some(gamma), Some(beta)], &dims)?;
    call.write(out, &result, x.dtype)?;
    call.write(mean, &moments.mean, WIDE)?;
    call.write(variance, &moments.variance, WIDE)
}
