//! Pooling with windows of a given size.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::{DType, Shape, Tensor};

use super::windows::{Members, Windows, combined};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::compute_type;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of pooling.
#[macro_export]
macro_rules! aclnn_pooling {
    ($rows:ident) => {
        $rows! { "pooling";
            MaxPoolV3("aclnn_max_pool.h", "the maximum of each window; without strides 1") by maximum_pool():
                aclnnMaxPool(self_: Tensor, kernelShape: IntArray, strides: IntArray, autoPad: Int, pads: IntArray, dilations: IntArray, ceilMode: Int, out: Out);
            MaxPool3DWithArgmaxV2("aclnn_max_pool2d_with_indices.h", "the maximum of each window, and its place in the plane; without stride the extents of the kernel") by maximum_pool_2d():
                aclnnMaxPool2dWithIndices(self_: Tensor, kernelSize: IntArray, stride: IntArray, padding: IntArray, dilation: IntArray, ceilMode: Flag, out: Out, indices: Out);
            MaxPool3DWithArgmaxV2("aclnn_max_pool3d_with_argmax.h", "the maximum of each window, and its place in the volume; without stride the extents of the kernel") by maximum_pool_3d():
                aclnnMaxPool3dWithArgmax(self_: Tensor, kernelSize: IntArray, stride: IntArray, padding: IntArray, dilation: IntArray, ceilMode: Flag, out: Out, indices: Out);
            AvgPoolV2("aclnn_avgpool2d.h", "the mean of each window; the padding counts if countIncludePad is true; divisorOverride divides instead of the number unless it is 0") by average_pool_2d():
                aclnnAvgPool2d(self_: Tensor, kernelSize: IntArray, strides: IntArray, paddings: IntArray, ceilMode: Flag, countIncludePad: Flag, divisorOverride: Int, cubeMathType: Int8, out: Out);
            AvgPool3D("aclnn_avgpool3d.h", "the mean of each window; the padding counts if countIncludePad is true; divisorOverride divides instead of the number unless it is 0") by average_pool(3):
                aclnnAvgPool3d(self_: Tensor, kernelSize: IntArray, stride: IntArray, padding: IntArray, ceilMode: Flag, countIncludePad: Flag, divisorOverride: Int, out: Out);
        }
    };
}
aclnn_pooling!(operator_rows);

/// Maximum number of axes of a kernel.
const MOST_AXES: usize = 3;

/// Whether indices of a pool may have this dtype.
pub(super) fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64)
}

/// Numbers for `n` axes: one for all, one for each, or none for the default `other`.
pub(super) fn numbers(
    call: &OperatorCall<'_>,
    name: &str,
    n: usize,
    least: i64,
    other: Option<&[usize]>,
) -> Composed<Vec<usize>> {
    let list = call.ints(name)?;
    let expected = || {
        Refusal::invalid(format!(
            "`{name}` is {list:?}; expected 1 or {n} numbers of {least} or more"
        ))
    };
    // The bound keeps sums of a few numbers within an integer.
    if list
        .iter()
        .any(|&number| number < least || number > i64::from(i32::MAX))
    {
        return Err(expected());
    }
    let list: Vec<usize> = list
        .iter()
        .filter_map(|&n| usize::try_from(n).ok())
        .collect();
    match (list.as_slice(), other) {
        ([], Some(other)) => Ok(other.to_vec()),
        ([one], _) => Ok(vec![*one; n]),
        (list, _) if list.len() == n => Ok(list.to_vec()),
        _ => Err(expected()),
    }
}

/// A pool: the tensor, its trailing axes with windows, and the shape of the result.
pub(super) struct Pool<'a> {
    pub(super) x: &'a TensorArgument,
    pub(super) windows: Vec<Windows>,
    pub(super) dims: Vec<usize>,
}

impl<'a> Pool<'a> {
    /// The last `n` axes of `self`, after one or two others.
    pub(super) fn tensor(call: &OperatorCall<'a>, n: usize) -> Composed<&'a TensorArgument> {
        let x = call.tensor("self")?;
        call.expect_float(x)?;
        refuse_if!(
            x.n_axes() != n + 1 && x.n_axes() != n + 2,
            "`self` has {} axes; expected {} or {}",
            x.n_axes(),
            n + 1,
            n + 2
        );
        // Batches may be empty, axes with windows may not: a window needs elements.
        refuse_if!(
            x.dims()[x.n_axes() - n..].contains(&0),
            "`self` has the shape {:?}; windows need elements",
            x.dims()
        );
        Ok(x)
    }

    pub(super) fn new(
        call: &OperatorCall<'a>,
        n: usize,
        is_rounded_up: bool,
        mut windows: Vec<Windows>,
    ) -> Composed<Pool<'a>> {
        let x = Pool::tensor(call, n)?;
        let mut dims = x.dims().to_vec();
        let first = x.n_axes() - n;
        for (window, extent) in windows.iter_mut().zip(&mut dims[first..]) {
            window.extent = *extent;
            window.count(is_rounded_up).ok_or_else(|| {
                let (kernel, extent) = (window.kernel, window.extent);
                Refusal::invalid(format!(
                    "a kernel of {kernel} does not fit into an axis of {extent} with its padding"
                ))
            })?;
            *extent = window.n;
        }
        Ok(Pool { x, windows, dims })
    }

    /// With the usual parameters: the default stride is that of the kernel.
    pub(super) fn usual(call: &OperatorCall<'a>, n: usize) -> Composed<Pool<'a>> {
        let [stride, padding] = if call.has("strides") {
            ["strides", "paddings"]
        } else {
            ["stride", "padding"]
        };
        let kernel = numbers(call, "kernelSize", n, 1, None)?;
        let stride = numbers(call, stride, n, 1, Some(&kernel))?;
        let before = numbers(call, padding, n, 0, None)?;
        let dilation = if call.has("dilation") {
            numbers(call, "dilation", n, 1, Some(&[1; MOST_AXES][..n]))?
        } else {
            vec![1; n]
        };
        let mut windows = Vec::with_capacity(n);
        for axis in 0..n {
            refuse_if!(
                before[axis] * 2 > kernel[axis],
                "`{padding}` is more than half of `kernelSize`"
            );
            windows.push(Windows {
                extent: 0,
                kernel: kernel[axis],
                stride: stride[axis],
                before: before[axis],
                after: before[axis],
                dilation: dilation[axis],
                n: 0,
            });
        }
        Pool::new(call, n, call.flag("ceilMode")?, windows)
    }

    /// The elements of all windows.
    pub(super) fn members(&self) -> Composed<Vec<Members>> {
        let extents = self
            .windows
            .iter()
            .flat_map(|window| [window.n, window.kernel]);
        let first = self.dims.len() - self.windows.len();
        // The program controls kernel and padding, which no tensor's size bounds.
        expect_room(self.dims[..first].iter().copied().chain(extents))?;
        Ok(self.windows.iter().map(Windows::axis_members).collect())
    }

    /// Stores the maxima, and their indices in the flattened spatial axes.
    pub(super) fn write_maxima(
        &self,
        call: &OperatorCall<'_>,
        out: &TensorArgument,
        indices: Option<&TensorArgument>,
    ) -> Composed {
        call.expect_shape(out, &self.dims)?;
        call.expect_cast(out, self.x.dtype)?;
        if let Some(indices) = indices {
            call.expect_shape(indices, &self.dims)?;
            call.expect_dtype(indices, is_index, "int32 or int64")?;
        }
        if out.is_empty() {
            for out in [Some(out), indices].into_iter().flatten() {
                call.fill(out, ScalarNumber::Int(0))?;
            }
            return Ok(());
        }
        write_largest(call, self.x, &self.members()?, out, indices)
    }
}

fn maximum_pool(call: &OperatorCall<'_>) -> Composed {
    let out = call.tensor("out")?;
    refuse_if!(
        call.int("autoPad")? != 0,
        "`autoPad` is not 0; expected 0 (NOTSET)"
    );
    refuse_if!(
        call.ints("dilations")?.iter().any(|&n| n != 1),
        "`dilations` are not all 1"
    );
    let kernel = numbers(call, "kernelShape", 2, 1, None)?;
    let stride = numbers(call, "strides", 2, 1, Some(&[1, 1]))?;
    // Top, left, bottom, right.
    let pads = if call.ints("pads")?.len() == 4 {
        numbers(call, "pads", 4, 0, None)?
    } else {
        numbers(call, "pads", 2, 0, Some(&[0, 0]))?.repeat(2)
    };
    let windows = (0..2).map(|axis| Windows {
        extent: 0,
        kernel: kernel[axis],
        stride: stride[axis],
        before: pads[axis],
        after: pads[axis + 2],
        dilation: 1,
        n: 0,
    });
    let windows: Vec<Windows> = windows.collect();
    refuse_if!(
        windows
            .iter()
            .any(|window| window.before >= window.kernel || window.after >= window.kernel),
        "`pads` are not less than `kernelShape`"
    );
    let pool = Pool::new(call, 2, call.flag("ceilMode")?, windows)?;
    pool.write_maxima(call, out, None)
}

fn maximum_pool_2d(call: &OperatorCall<'_>) -> Composed {
    let (out, indices) = (call.tensor("out")?, call.tensor("indices")?);
    Pool::usual(call, 2)?.write_maxima(call, out, Some(indices))
}

fn maximum_pool_3d(call: &OperatorCall<'_>) -> Composed {
    let (out, indices) = (call.tensor("out")?, call.tensor("indices")?);
    Pool::usual(call, 3)?.write_maxima(call, out, Some(indices))
}

fn average_pool_2d(call: &OperatorCall<'_>) -> Composed {
    refuse_if!(
        !(0..=3).contains(&call.int("cubeMathType")?),
        "`cubeMathType` is not 0 to 3"
    );
    average_pool(call, 2)
}

fn average_pool(call: &OperatorCall<'_>, n: usize) -> Composed {
    let out = call.tensor("out")?;
    let pool = Pool::usual(call, n)?;
    let (counts_padding, divisor) = (call.flag("countIncludePad")?, call.int("divisorOverride")?);
    call.expect_shape(out, &pool.dims)?;
    call.expect_cast(out, pool.x.dtype)?;
    if out.is_empty() {
        return call.fill(out, ScalarNumber::Int(0));
    }
    // Computed from the sums: the program may pass a divisor, and windows at the ends have fewer
    // elements.
    let divisors = divisors(&pool, counts_padding, divisor);
    write_means(call, pool.x, &pool.members()?, &divisors, out)
}

/// The divisor of the sum of each window.
#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of elements are divided in floats"
)]
pub(super) fn divisors(pool: &Pool<'_>, counts_padding: bool, divisor: i64) -> Vec<f32> {
    let mut numbers = vec![1_usize];
    for axis in &pool.windows {
        let members = (0..axis.n).map(|window| axis.members(window, counts_padding));
        let members: Vec<usize> = members.collect();
        let pairs = numbers
            .iter()
            .flat_map(|n_others| members.iter().map(move |n| n_others * n));
        numbers = pairs.collect();
    }
    let divisors = numbers.iter().map(|&n| match divisor {
        0 => n as f32,
        other => other as f32,
    });
    divisors.collect()
}

/// Checks that numbers for this shape fit into memory, before they are allocated.
pub(super) fn expect_room(extents: impl IntoIterator<Item = usize>) -> Composed {
    let extents = extents.into_iter().map(|n| n as u64);
    let n = extents.fold(BYTES_OF_A_NUMBER, u64::saturating_mul);
    opscope_store::check_memory(n)
        .map_err(|error| Refusal::invalid(format!("what is computed is too large: {error}")))
}

/// Several copies of an element may exist at once.
const BYTES_OF_A_NUMBER: u64 = 32;

pub(super) fn floats(
    call: &OperatorCall<'_>,
    numbers: &[f32],
    dims: Vec<usize>,
) -> Composed<Value> {
    let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let shape = Shape::new(dims).ok();
    let tensor = shape.and_then(|shape| Tensor::from_vec(DType::F32, shape, bytes).ok());
    let tensor = tensor.ok_or_else(|| Refusal::invalid("the output is too large"))?;
    Ok(call.tensor_value(tensor))
}

/// The elements of windows, along the last axis.
struct WindowElements {
    /// With the shape of the result, and an axis of members.
    value: Value,
    membership: Membership,
    dims: Vec<usize>,
    /// Number of members of each window, including the filling.
    n_together: usize,
}

fn window_elements(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    axes: &[Members],
) -> Composed<WindowElements> {
    let n = axes.len();
    let first = x.n_axes() - n;
    let compute = compute_type(x.dtype);
    let mut value = call.read(x, compute)?;
    // Copies of the elements, which every engine sums and compares with the same treatment of NaN
    // and indices, unlike the engines' pools. Each axis becomes two, of windows and of members.
    for (i, share) in axes.iter().enumerate() {
        let places = call.constant_dims(&share.places);
        let places = places.reshaped(&[share.n, share.longest]);
        let axis = (first + 2 * i).cast_signed() as i64;
        let along = vec![("axis", OperatorAttribute::Int(axis))];
        value = call.node_with("Gather", &[&value, &places], along, compute);
    }
    let outer = 0..first;
    let windows = (0..n).map(|i| first + 2 * i);
    let members = (0..n).map(|i| first + 2 * i + 1);
    let order = outer.chain(windows).chain(members);
    let order = order.map(|axis| axis.cast_signed() as i64).collect();
    let order = vec![("perm", OperatorAttribute::Ints(order))];
    value = call.node_with("Transpose", &[&value], order, compute);
    let n_together: usize = axes.iter().map(|share| share.longest).product();
    let mut dims = x.dims()[..first].to_vec();
    dims.extend(axes.iter().map(|members| members.n));
    let mut whole = dims.clone();
    whole.push(n_together);
    let value = value.reshaped(&whole);
    Ok(WindowElements {
        value,
        membership: membership(call, axes)?,
        dims,
        n_together,
    })
}

/// The members of each window, with an axis for each axis of windows and one of members.
pub(super) struct Membership {
    /// Whether it is an element rather than filling.
    pub(super) is_member: Value,
    /// Its index in the flattened spatial axes.
    pub(super) places: Value,
}

pub(super) fn membership(call: &OperatorCall<'_>, axes: &[Members]) -> Composed<Membership> {
    let each: Vec<&[bool]> = axes
        .iter()
        .map(|members| members.are_members.as_slice())
        .collect();
    let are_members = combined(&each, axes, true, |a, b, _| a && b);
    let each: Vec<&[usize]> = axes
        .iter()
        .map(|members| members.places.as_slice())
        .collect();
    let places = combined(&each, axes, 0, |a, b, extent| a * extent + b);
    let mut shape: Vec<usize> = axes.iter().map(|members| members.n).collect();
    shape.push(axes.iter().map(|members| members.longest).product());
    let flags: Vec<f32> = are_members
        .iter()
        .map(|&is_member| f32::from(u8::from(is_member)))
        .collect();
    // Passed to each run rather than stored in the graph, which is cached for later calls.
    let flags = floats(call, &flags, shape.clone())?;
    let is_member = flags.greater(0.5);
    let places = call.constant_dims(&places);
    let places = places.reshaped(&shape);
    Ok(Membership { is_member, places })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of elements are divided in floats"
)]
pub(super) fn as_number(n: usize) -> f32 {
    n as f32
}

/// Stores the sum of each window, divided by its divisor.
pub(super) fn write_means(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    axes: &[Members],
    divisors: &[f32],
    out: &TensorArgument,
) -> Composed {
    let windows = window_elements(call, x, axes)?;
    let compute = windows.value.dtype;
    let zero = call.constant(0.0, compute);
    let members = [&windows.membership.is_member, &windows.value, &zero];
    let value = call.node("Where", &members, compute);
    // Sums are computed in double precision, and rounded once.
    let value = value.cast(DType::F64);
    let last = call.constant_ints(&[-1]);
    let drops_axes = vec![("keepdims", OperatorAttribute::Int(0))];
    let sum = call.node_with("ReduceSum", &[&value, &last], drops_axes, DType::F64);
    // Numbers of elements are integers, exact in single precision.
    let divisors = floats(
        call,
        divisors,
        axes.iter().map(|members| members.n).collect(),
    )?;
    call.write(out, &sum / divisors.cast(DType::F64), x.dtype)
}

/// Stores the largest element of each window, or NaN if it contains one, and its index in the
/// flattened spatial axes: the first of equal elements, but the last NaN.
pub(super) fn write_largest(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    axes: &[Members],
    out: &TensorArgument,
    indices: Option<&TensorArgument>,
) -> Composed {
    let windows = window_elements(call, x, axes)?;
    let compute = windows.value.dtype;
    let lowest = call.constant(f64::NEG_INFINITY, compute);
    let members = [&windows.membership.is_member, &windows.value, &lowest];
    let value = call.node("Where", &members, compute);
    let last = ("axis", OperatorAttribute::Int(-1));
    let last_one = ("select_last_index", OperatorAttribute::Int(1));
    let is_nan = value.is_nan();
    // Engines differ in comparisons with NaN, so it is handled separately.
    let numbers = is_nan.choose(&lowest, &value);
    let largest = call.node_with("ArgMax", &[&numbers], vec![last.clone()], DType::I64);
    let marks = is_nan.choose(value.number(1.0), 0.0);
    let marked = vec![last.clone(), last_one];
    let marked = call.node_with("ArgMax", &[&marks], marked, DType::I64);
    let along = vec![last.clone()];
    let mark = call.node_with("GatherElements", &[&marks, &marked], along, compute);
    // PyTorch continues after NaN and replaces it by each later one, so the last index stays.
    let chosen = mark.greater(0.0).choose(&marked, &largest);
    let along = vec![last.clone()];
    let maxima = call.node_with("GatherElements", &[&value, &chosen], along, compute);
    call.write(out, maxima.reshaped(&windows.dims), x.dtype)?;
    if let Some(indices) = indices {
        let mut shape = windows.dims.clone();
        shape.push(windows.n_together);
        let places = windows.membership.places.expanded(&shape);
        let along = vec![last];
        let places = call.node_with("GatherElements", &[&places, &chosen], along, DType::I64);
        call.write(indices, places.reshaped(&windows.dims), DType::I64)?;
    }
    Ok(())
}
