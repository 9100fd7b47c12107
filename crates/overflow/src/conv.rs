//! Convolutions of integers.

use opscope_store::record::Record;

use super::OutputOverflow;
use super::contract::{I32, ProductSum, always_fits, centred, zeros};
use super::integers::IntegerTensor;
use super::operators::{int, ints, text};
use super::walk::{OperandWalk, dense_strides};

/// Maximum number of elements of a padded input that are checked individually: 1 GiB of memory.
const N_PADDED_MAX: usize = 1 << 26;

/// `ConvInteger`, accumulated in 32 bits.
pub(super) fn conv_integer(record: &Record) -> Option<OutputOverflow> {
    place(record, [0, 2], [1, 3], None)
}

/// `QLinearConv`, accumulated in 32 bits with its bias before requantisation.
pub(super) fn qlinear_conv(record: &Record) -> Option<OutputOverflow> {
    place(record, [0, 2], [3, 5], Some(8))
}

/// One spatial axis.
struct SpatialAxis {
    input: usize,
    kernel: usize,
    output: usize,
    stride: usize,
    dilation: usize,
    pad_before: usize,
    /// The part of input and padding that the kernel reaches.
    padded: usize,
}

/// Positions of the elements and of the zero point among the inputs, for the input and for the
/// weights.
fn place(
    record: &Record,
    x: [usize; 2],
    w: [usize; 2],
    bias: Option<usize>,
) -> Option<OutputOverflow> {
    let [x, zero_x] = x.map(|index| IntegerTensor::input(record, index));
    let [w, zero_w] = w.map(|index| IntegerTensor::input(record, index));
    let (x, w) = (x?, w?);
    let ([n, channels, x_spatial @ ..], [n_kernels, depth, w_spatial @ ..]) = (x.dims, w.dims)
    else {
        return None;
    };
    // Attributes come from a file: a negative or contradictory value must not reach the strides.
    let n_groups = usize::try_from(int(&record.operator, "group").unwrap_or(1)).ok()?;
    let axes = axes(record, x_spatial, w_spatial)?;
    if n_groups == 0 || !n_kernels.is_multiple_of(n_groups) || *channels != depth * n_groups {
        return None;
    }
    let bias = bias.and_then(|index| IntegerTensor::input(record, index));
    let magnitudes = [
        x.magnitude_around(zero_x.as_ref()),
        w.magnitude_around(zero_w.as_ref()),
    ];
    let start = bias.as_ref().map_or(0, IntegerTensor::magnitude_max);
    if always_fits(
        I32,
        depth * w_spatial.iter().product::<usize>(),
        &magnitudes,
        start,
    ) {
        return None;
    }
    // A list of zero points for the weights has one for each kernel.
    let mut kernels = zero_w.as_ref().map_or(vec![], |zero| zero.dims.to_vec());
    if let [n] = kernels[..] {
        kernels = vec![n];
        kernels.resize(w.dims.len(), 1);
    }
    let scalar = zero_x.as_ref().map_or(vec![], |zero| zero.dims.to_vec());
    let x_values = centred(&x, zero_x.as_ref(), &scalar)?;
    let w_values = centred(&w, zero_w.as_ref(), &kernels)?;
    // Zeros around the input let one nest of loops serve every kind of padding; otherwise each loop
    // would need separate bounds.
    let padded = padded(&x_values, n * channels, &axes)?;
    let mut outputs = axes.iter().map(|axis| axis.output);
    let n_outputs = outputs.try_fold(1_usize, usize::checked_mul)?;
    let mut results = zeros(record, &[*n, *n_kernels, n_outputs])?;
    if let Some(bias) = bias {
        let bias = bias.to_wide();
        for (i, result) in results.iter_mut().enumerate() {
            *result = *bias.get(i / n_outputs % n_kernels)?;
        }
    }
    let contraction = ProductSum {
        bounds: I32,
        walk: walk([*n, n_groups, n_kernels / n_groups, *depth], &axes),
        results,
    };
    contraction.place(&[&padded, &w_values])
}

/// The loops over the padded input, the weights and the result.
fn walk([n, n_groups, n_kernels, depth]: [usize; 4], axes: &[SpatialAxis]) -> OperandWalk {
    let extents: [fn(&SpatialAxis) -> usize; 3] =
        [|axis| axis.padded, |axis| axis.kernel, |axis| axis.output];
    let strides = extents.map(|extent| {
        let dims: Vec<usize> = axes.iter().map(extent).collect();
        (dense_strides(&dims), dims.iter().product::<usize>())
    });
    let [
        (x_strides, x_area),
        (w_strides, w_area),
        (to_strides, to_area),
    ] = strides;
    let kernel = depth * w_area;
    // Outer to inner: samples, groups, kernels, input channels. The input does not depend on the
    // kernel, nor the weights on the sample, which stride 0 expresses.
    let mut nest = vec![
        (
            n,
            vec![n_groups * depth * x_area, 0, n_groups * n_kernels * to_area],
        ),
        (
            n_groups,
            vec![depth * x_area, n_kernels * kernel, n_kernels * to_area],
        ),
        (n_kernels, vec![0, kernel, to_area]),
        (depth, vec![x_area, w_area, 0]),
    ];
    for (i, axis) in axes.iter().enumerate() {
        nest.push((
            axis.kernel,
            vec![axis.dilation * x_strides[i], w_strides[i], 0],
        ));
    }
    for (i, axis) in axes.iter().enumerate() {
        nest.push((
            axis.output,
            // Output positions are innermost: long runs with a constant weight.
            vec![axis.stride * x_strides[i], 0, to_strides[i]],
        ));
    }
    OperandWalk::new(3, nest)
}

/// The input with zeros around it.
fn padded(x: &[i128], n_planes: usize, axes: &[SpatialAxis]) -> Option<Vec<i128>> {
    let area = axes
        .iter()
        .try_fold(1_usize, |area, axis| area.checked_mul(axis.padded))?;
    let n_elements = area.checked_mul(n_planes).filter(|&n| n <= N_PADDED_MAX)?;
    let mut padded = vec![0; n_elements];
    let dims: Vec<usize> = axes.iter().map(|axis| axis.padded).collect();
    let (to, mut from) = (dense_strides(&dims), x.len() / n_planes.max(1));
    let mut nest = vec![(n_planes, vec![from, area])];
    let mut start = 0;
    for (axis, stride) in axes.iter().zip(to) {
        from /= axis.input.max(1);
        // Rows beyond what the kernel reaches are not needed.
        let kept = axis.input.min(axis.padded.saturating_sub(axis.pad_before));
        nest.push((kept, vec![from, stride]));
        start = axis.pad_before.saturating_mul(stride).saturating_add(start);
    }
    OperandWalk::new(2, nest).each_run(|len, offsets, strides| {
        for i in 0..len {
            padded[start + offsets[1] + i * strides[1]] = x[offsets[0] + i * strides[0]];
        }
    });
    Some(padded)
}

/// The spatial axes, from attributes and the shape of the recorded result.
fn axes(record: &Record, x: &[usize], w: &[usize]) -> Option<Vec<SpatialAxis>> {
    let operator = &record.operator;
    let n = x.len();
    let lists = [("strides", 1, n), ("dilations", 1, n), ("pads", 0, 2 * n)];
    let [strides, dilations, pads] = lists.map(|(name, default, n)| {
        let list = ints(operator, name).unwrap_or_else(|| vec![default; n]);
        let list = list.into_iter().map(|i| usize::try_from(i).ok());
        list.collect::<Option<Vec<usize>>>()
            .filter(|list| list.len() == n)
    });
    let (strides, dilations, pads) = (strides?, dilations?, pads?);
    // Attributes are stored as text, in which a string has quotes.
    let auto_pad = text(operator, "auto_pad").unwrap_or("\"NOTSET\"");
    // The recorded result has the sizes that `auto_pad` would otherwise determine.
    let result = record.outputs.iter().find(|(i, _)| *i == 0)?.1.shape();
    let outputs = result.get(2..)?;
    if w.len() != n || outputs.len() != n {
        return None;
    }
    let axes = (0..n).map(|i| {
        let reach = w[i]
            .checked_sub(1)?
            .checked_mul(dilations[i])?
            .checked_add(1)?;
        let padded = outputs[i]
            .saturating_sub(1)
            .checked_mul(strides[i])?
            .checked_add(reach)?;
        let missing = padded.saturating_sub(x[i]);
        Some(SpatialAxis {
            input: x[i],
            kernel: w[i],
            output: outputs[i],
            stride: strides[i],
            dilation: dilations[i],
            pad_before: match auto_pad {
                "\"SAME_UPPER\"" => missing / 2,
                "\"SAME_LOWER\"" => missing.div_ceil(2),
                "\"VALID\"" => 0,
                _ => pads[i],
            },
            padded,
        })
    });
    axes.collect()
}
