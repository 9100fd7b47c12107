//! Resizing of pictures and signals by interpolation.
//!
//! Every method works along one axis at a time: an entry is a weighted sum of a few others, with
//! weights that depend only on its position.

use opscope_tensor::{DType, Shape, Tensor};

use super::activation::{SMALL_FLOATS, is_small_float};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::elements::Numbers;
use crate::aclnn::families::movement::{as_int, expect_same_dtype, extent, picked, read_moved};
use crate::aclnn::promotion::compute_type;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of interpolation.
#[macro_export]
macro_rules! aclnn_resizing {
    ($rows:ident) => {
        $rows! { "interpolation";
            ResizeNearestNeighborV2("aclnn_upsample_nearest_1d.h", "self with outputSize entries on its last axis, each the one at its place") by nearest():
                aclnnUpsampleNearest1d(self_: Tensor, outputSize: IntArray, out: Out);
            ResizeNearestNeighborV2("aclnn_upsample_nearest_2d.h", "self with outputSize entries on its last two axes, each the one at its place") by nearest():
                aclnnUpsampleNearest2d(self_: Tensor, outputSize: IntArray, out: Out);
            UpsampleNearest3d("aclnn_upsample_nearest_3d.h", "self with outputSize entries on its last three axes, each the one at its place") by nearest():
                aclnnUpsampleNearest3d(self_: Tensor, outputSize: IntArray, scalesD: Double, scalesH: Double, scalesW: Double, out: Out);
            UpsampleNearest("aclnn_upsample_nearest_exact1d.h", "self with outputSize entries on its last axis, each the one below its middle") by nearest_with(0.5):
                aclnnUpsampleNearestExact1d(self_: Tensor, outputSize: IntArray, scales: Double, out: Out);
            UpsampleNearest("aclnn_upsample_nearest_exact2d.h", "self with outputSize entries on its last two axes, each the one below its middle") by nearest_with(0.5):
                aclnnUpsampleNearestExact2d(self_: Tensor, outputSize: IntArray, scalesH: Double, scalesW: Double, out: Out);
            UpsampleNearestExact3d("aclnn_upsample_nearest_exact3d.h", "self with outputSize entries on its last three axes, each the one below its middle") by nearest_with(0.5):
                aclnnUpsampleNearestExact3d(self_: Tensor, outputSize: IntArray, scalesD: Double, scalesH: Double, scalesW: Double, out: Out);
            UpsampleLinear1d("aclnn_upsample_linear_1d.h", "self with outputSize entries on its last axis, between their two neighbours") by linear():
                aclnnUpsampleLinear1d(self_: Tensor, outputSize: IntArray, alignCorners: Flag, scale: Double, out: Out);
            UpsampleBilinear2d("aclnn_upsample_bilinear_2d.h", "self with outputSize entries on its last two axes, between their neighbours") by linear():
                aclnnUpsampleBilinear2d(self_: Tensor, outputSize: IntArray, alignCorners: Flag, scalesH: Double, scalesW: Double, out: Out);
            ResizeUpsampleTrilinear("aclnn_upsample_trilinear_3d.h", "self with outputSize entries on its last three axes, between their neighbours") by linear():
                aclnnUpsampleTrilinear3d(self_: Tensor, outputSize: IntArray, alignCorners: Flag, scalesD: Double, scalesH: Double, scalesW: Double, out: Out);
            UpsampleBicubic2d("aclnn_upsample_bicubic_2d.h", "self with outputSize entries on its last two axes, from four neighbours along each by cubic functions") by cubic():
                aclnnUpsampleBicubic2d(self_: Tensor, outputSize: IntArray, alignCorners: Flag, scalesH: Double, scalesW: Double, out: Out);
        }
    };
}
aclnn_resizing!(operator_rows);

/// A resized axis.
struct ResizedAxis {
    axis: usize,
    from: usize,
    to: usize,
    /// The scale that the caller passes; 0 to derive it from the sizes.
    factor: f64,
}

/// The axes that `outputSize` resizes: all but the first two.
fn resized_axes(call: &OperatorCall<'_>) -> Composed<Vec<ResizedAxis>> {
    let (x, out, sizes) = (
        call.tensor("self")?,
        call.tensor("out")?,
        call.ints("outputSize")?,
    );
    expect_same_dtype(call, out, x)?;
    refuse_if!(
        x.n_axes() != sizes.len() + 2 || sizes.is_empty() || sizes.len() > 3,
        "`self` is {x} and `outputSize` {sizes:?}; expected two axes and one for each number"
    );
    // Parameter names of the scale of each axis; a single axis has either name.
    let names: &[&[&str]] = match sizes.len() {
        1 => &[&["scales", "scale"]],
        2 => &[&["scalesH"], &["scalesW"]],
        _ => &[&["scalesD"], &["scalesH"], &["scalesW"]],
    };
    let mut axes = Vec::with_capacity(sizes.len());
    let mut dims = x.dims()[..2].to_vec();
    for (i, &size) in sizes.iter().enumerate() {
        let from = x.dims()[i + 2];
        let to = extent("outputSize", size)?;
        // There is nothing to interpolate, or no output.
        refuse_if!(
            from == 0 || to == 0,
            "`self` is {x} and `outputSize` {sizes:?}; expected entries"
        );
        let name = names[i].iter().find(|name| call.has(name));
        let factor = name.map_or(Ok(0.0), |name| call.number(name))?;
        axes.push(ResizedAxis {
            axis: i + 2,
            from,
            to,
            factor,
        });
        dims.push(to);
    }
    call.expect_shape(out, &dims)?;
    Ok(axes)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "places are computed in single precision, as PyTorch does it"
)]
impl ResizedAxis {
    /// The number of input entries per output entry.
    fn ratio(&self, aligns_corners: bool) -> f32 {
        if aligns_corners {
            let steps = (self.to - 1) as f32;
            return if self.to > 1 {
                (self.from - 1) as f32 / steps
            } else {
                0.0
            };
        }
        if self.factor > 0.0 {
            (1.0 / self.factor) as f32
        } else {
            self.from as f32 / self.to as f32
        }
    }

    /// The indices of the nearest entries; `shift` is 0.5 for half-pixel centres.
    fn nearest(&self, shift: f32) -> Vec<i64> {
        let (ratio, last) = (self.ratio(false), as_int(self.from) - 1);
        (0..self.to)
            .map(|i| (((i as f32 + shift) * ratio).floor() as i64).clamp(0, last))
            .collect()
    }

    /// The position of a result entry on the axis.
    fn position(&self, i: usize, aligns_corners: bool) -> f32 {
        let ratio = self.ratio(aligns_corners);
        if aligns_corners {
            ratio * i as f32
        } else {
            ratio * (i as f32 + 0.5) - 0.5
        }
    }

    /// The two neighbours of each entry with their weights.
    fn linear(&self, aligns_corners: bool) -> Vec<Tap> {
        let mut taps = vec![Tap::default(), Tap::default()];
        let last = as_int(self.from) - 1;
        for i in 0..self.to {
            // PyTorch copies an axis whose size stays the same, whatever the scale is.
            let is_kept = self.from == self.to;
            let at = if is_kept {
                i as f32
            } else {
                self.position(i, aligns_corners).max(0.0)
            };
            let low = (at as i64).min(last);
            let weight = (at - low as f32).clamp(0.0, 1.0);
            taps[0].push(low, 1.0 - weight);
            // After the last entry the weight is 0, or the entry itself is used.
            taps[1].push((low + 1).min(last), weight);
        }
        taps
    }

    /// The four neighbours of each entry with their weights, of cubic convolution with coefficient
    /// -0.75. Beyond the ends the outermost entry repeats.
    fn cubic(&self, aligns_corners: bool) -> Vec<Tap> {
        const A: f32 = -0.75;
        let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
        let far = |x: f32| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
        let mut taps: Vec<Tap> = (0..4).map(|_| Tap::default()).collect();
        let last = as_int(self.from) - 1;
        for i in 0..self.to {
            let at = self.position(i, aligns_corners);
            let low = at.floor();
            let t = at - low;
            let weights = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)];
            for ((tap, weight), place) in taps.iter_mut().zip(weights).zip(low as i64 - 1..) {
                tap.push(place.clamp(0, last), weight);
            }
        }
        taps
    }
}

/// An input entry for each result entry, with its weight.
#[derive(Default)]
struct Tap {
    places: Vec<i64>,
    weights: Vec<f32>,
}

impl Tap {
    fn push(&mut self, place: i64, weight: f32) {
        self.places.push(place);
        self.weights.push(weight);
    }
}

fn nearest(call: &OperatorCall<'_>) -> Composed {
    nearest_with(call, 0.0)
}

fn nearest_with(call: &OperatorCall<'_>, shift: f32) -> Composed {
    let axes = resized_axes(call)?;
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let mut value = read_moved(call, x, out)?;
    for axis in axes {
        value = picked(call, &value, axis.axis, &axis.nearest(shift));
    }
    call.write_raw(out, &value)
}

fn linear(call: &OperatorCall<'_>) -> Composed {
    interpolate(call, ResizedAxis::linear)
}

fn cubic(call: &OperatorCall<'_>) -> Composed {
    interpolate(call, ResizedAxis::cubic)
}

fn interpolate(call: &OperatorCall<'_>, taps: fn(&ResizedAxis, bool) -> Vec<Tap>) -> Composed {
    let axes = resized_axes(call)?;
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    // Positions and weights have single precision.
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    let aligns_corners = call.flag("alignCorners")?;
    let dtype = compute_type(x.dtype);
    let mut value = call.read(x, dtype)?;
    for axis in axes {
        let mut sum: Option<Value> = None;
        for tap in taps(&axis, aligns_corners) {
            let entries = picked(call, &value, axis.axis, &tap.places);
            let weights = weights(call, &tap, x.n_axes() - axis.axis, dtype)?;
            let term = &entries * &weights;
            sum = Some(match sum {
                None => term,
                Some(sum) => &sum + &term,
            });
        }
        value = sum.unwrap_or(value);
    }
    call.write(out, &value, x.dtype)
}

/// Weights along the first of `n_axes` axes.
fn weights(call: &OperatorCall<'_>, tap: &Tap, n_axes: usize, dtype: DType) -> Composed<Value> {
    let mut dims = vec![1; n_axes];
    dims[0] = tap.weights.len();
    let bytes = Numbers::Singles(tap.weights.clone()).to_bytes(dtype);
    let tensor = Shape::new(dims).ok().zip(bytes);
    let tensor = tensor.and_then(|(shape, bytes)| Tensor::from_vec(dtype, shape, bytes).ok());
    let tensor = tensor.ok_or_else(|| Refusal::invalid("`outputSize` is too large"))?;
    Ok(call.tensor_value(tensor))
}
