//! Reshaping and reordering of elements.

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, refuse_if};
use crate::aclnn::families::movement::{
    Elements, as_int, axis_in, axis_of, expect_same_dtype, extent, picked, read_moved, sliced,
    transposed,
};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::broadcast;

/// Calls a macro with the rows of operators that move elements.
#[macro_export]
macro_rules! aclnn_moves {
    ($rows:ident) => {
        $rows! { "shapes and orders of elements";
            Transpose("aclnn_permute.h", "self with its axes in the order of dims") by permute():
                aclnnPermute(self_: Tensor, dims: IntArray, out: Out);
            BroadcastTo("aclnn_expand.h", "self broadcast to the extents of size; -1 leaves one as it is") by expand():
                aclnnExpand(self_: Tensor, size: IntArray, out: Out);
            Tile("aclnn_repeat.h", "self, as often along each axis as repeats says") by repeat():
                aclnnRepeat(self_: Tensor, repeats: IntArray, out: Out);
            ReverseV2("aclnn_flip.h", "self with the axes of dims reversed") by flip():
                aclnnFlip(self_: Tensor, dims: IntArray, out: Out);
            Roll("aclnn_roll.h", "x moved along the axes of dims, or as one row, with what leaves an end coming in at the other") by roll():
                aclnnRoll(x: Tensor, shifts: IntArray, dims: IntArray, out: Out);
            Flatten("aclnn_flatten.h", "self as a matrix: axes before axis become its rows") by flatten():
                aclnnFlatten(self_: Tensor, axis: Int, out: Out);
            ViewCopy("aclnn_copy.h", "src, broadcast and converted") by copy():
                aclnnInplaceCopy(selfRef: Inplace, src: Tensor);
            ShuffleChannel("aclnn_channel_shuffle.h", "self with the channels of its groups taken in turns") by shuffle_channels():
                aclnnChannelShuffle(self_: Tensor, groups: Int, out: Out);
            Im2col("aclnn_im2col.h", "the windows of a convolution as columns") by windows_as_columns():
                aclnnIm2col(self_: Tensor, kernelSize: IntArray, dilation: IntArray, padding: IntArray, stride: IntArray, out: Out);
        }
    };
}
aclnn_moves!(operator_rows);

/// The source and the destination.
pub(super) fn ends<'a>(
    call: &OperatorCall<'a>,
) -> Composed<(&'a TensorArgument, &'a TensorArgument)> {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    Ok((x, out))
}

fn permute(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = ends(call)?;
    let dims = call.ints("dims")?;
    let n = x.n_axes();
    let mut order = Vec::with_capacity(n);
    for &dim in dims {
        let axis = axis_in("dims", dim, n)?;
        refuse_if!(
            order.contains(&axis),
            "`dims` is {dims:?}; expected each axis once"
        );
        order.push(axis);
    }
    refuse_if!(
        order.len() != n,
        "`dims` is {dims:?}; expected the {n} axes of `self`"
    );
    let extents: Vec<usize> = order.iter().map(|&axis| x.dims()[axis]).collect();
    call.expect_shape(out, &extents)?;
    let mut value = read_moved(call, x, out)?;
    // Without axes there is nothing to permute, and ONNX's empty list would reverse them.
    if n > 0 {
        value = transposed(call, &value, &order);
    }
    call.write_raw(out, &value)
}

fn expand(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = ends(call)?;
    let size = call.ints("size")?;
    let new = size.len().checked_sub(x.n_axes()).ok_or_else(|| {
        let text = format!("`size` is {size:?}; expected a size for each axis of `self`");
        Refusal::invalid(text)
    })?;
    let mut dims = Vec::with_capacity(size.len());
    for (i, &n) in size.iter().enumerate() {
        let known = i.checked_sub(new).and_then(|axis| x.dims().get(axis));
        dims.push(match (n, known) {
            (-1, Some(&known)) => known,
            _ => extent("size", n)?,
        });
    }
    if broadcast(x.dims(), &dims).as_deref() != Some(&dims) {
        let found = x.dims();
        return Err(Refusal::invalid(format!(
            "`self` has the shape {found:?}, which does not broadcast to {dims:?}"
        )));
    }
    call.expect_shape(out, &dims)?;
    let value = read_moved(call, x, out)?;
    call.write_raw(out, value.expanded(&dims))
}

fn repeat(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = ends(call)?;
    let repeats = call.ints("repeats")?;
    let new = repeats.len().checked_sub(x.n_axes()).ok_or_else(|| {
        let text = format!("`repeats` is {repeats:?}; expected a number for each axis of `self`");
        Refusal::invalid(text)
    })?;
    // New axes have size 1 and are repeated.
    let mut known = vec![1; new];
    known.extend(x.dims());
    let mut dims = Vec::with_capacity(known.len());
    for (&n, &times) in known.iter().zip(repeats) {
        let product = n.checked_mul(extent("repeats", times)?);
        dims.push(product.ok_or_else(|| Refusal::invalid("`repeats` has too large a number"))?);
    }
    call.expect_shape(out, &dims)?;
    let mut value = read_moved(call, x, out)?;
    if !repeats.is_empty() {
        // New axes come first, and ONNX's operator expects them to exist.
        value = value.reshaped(&known);
        let repeats = call.constant_ints(repeats);
        value = call.node("Tile", &[&value, &repeats], value.dtype);
    }
    call.write_raw(out, &value)
}

fn flip(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = ends(call)?;
    call.expect_shape(out, x.dims())?;
    let dims = call.ints("dims")?;
    let mut value = read_moved(call, x, out)?;
    let mut flipped = Vec::new();
    for &dim in dims {
        let axis = axis_in("dims", dim, x.n_axes())?;
        refuse_if!(
            flipped.contains(&axis),
            "`dims` is {dims:?}; expected each axis once"
        );
        flipped.push(axis);
        if x.n_axes() > 0 {
            // From after the last entry to before the first.
            value = sliced(call, &value, axis, [-1, i64::MIN, -1]);
        }
    }
    call.write_raw(out, &value)
}

fn roll(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("x")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    let (shifts, dims) = (call.ints("shifts")?, call.ints("dims")?);
    let mut value = read_moved(call, x, out)?;
    if dims.is_empty() {
        let [shift] = shifts else {
            let text = format!("`shifts` is {shifts:?}; expected one number without `dims`");
            return Err(Refusal::invalid(text));
        };
        value = value.reshaped(&[x.n_elements()]);
        value = rolled(call, &value, 0, x.n_elements(), *shift);
        value = value.reshaped(x.dims());
    } else if dims.len() != shifts.len() {
        let text = format!("`shifts` is {shifts:?}; expected a number for each of {dims:?}");
        return Err(Refusal::invalid(text));
    } else {
        for (&shift, &dim) in shifts.iter().zip(dims) {
            let axis = axis_in("dims", dim, x.n_axes())?;
            let n = x.dims().get(axis).copied().unwrap_or(1);
            value = rolled(call, &value, axis, n, shift);
        }
    }
    call.write_raw(out, &value)
}

fn rolled(call: &OperatorCall<'_>, value: &Value, axis: usize, n: usize, shift: i64) -> Value {
    let start = shift.checked_rem_euclid(as_int(n)).unwrap_or(0);
    // An empty part must not be concatenated.
    if start == 0 {
        return value.clone();
    }
    let cut = as_int(n) - start;
    let front = sliced(call, value, axis, [cut, as_int(n), 1]);
    let back = sliced(call, value, axis, [0, cut, 1]);
    super::movement::joined(call, &[front, back], axis)
}

fn flatten(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = ends(call)?;
    let axis = axis_of(call, "axis", x)?;
    let rows: usize = x.dims()[..axis.min(x.n_axes())].iter().product();
    let columns: usize = x.dims()[axis.min(x.n_axes())..].iter().product();
    call.expect_shape(out, &[rows, columns])?;
    let value = read_moved(call, x, out)?;
    call.write_raw(out, value.reshaped(&[rows, columns]))
}

fn copy(call: &OperatorCall<'_>) -> Composed {
    let (out, source) = (call.tensor("selfRef")?, call.tensor("src")?);
    call.broadcast(&[Side::Tensor(out), Side::Tensor(source)], out)?;
    // A copy has the shape of its destination, without promotion. It may convert to a lower kind:
    // floats to integers like in C.
    let elements = if source.dtype == out.dtype {
        Elements::Bits(out.dtype)
    } else {
        Elements::Numbers(source.dtype)
    };
    let value = elements.read(call, source)?;
    elements.write(call, out, value.expanded(out.dims()))
}

fn shuffle_channels(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = ends(call)?;
    call.expect_shape(out, x.dims())?;
    let number = call.int("groups")?;
    let &[n, channels, ref rest @ ..] = x.dims() else {
        let text = format!("`self` is {x}; expected channels on its second axis");
        return Err(Refusal::invalid(text));
    };
    let groups = usize::try_from(number)
        .ok()
        .filter(|&groups| groups > 0 && channels.is_multiple_of(groups));
    let groups = groups.ok_or_else(|| {
        let text = format!("`groups` is {number}; expected a divisor of {channels} channels");
        Refusal::invalid(text)
    })?;
    let value = read_moved(call, x, out)?;
    let n_rest = rest.iter().product();
    // Interleaves the channels: the first of each group, then the second of each.
    let value = value.reshaped(&[n, groups, channels / groups, n_rest]);
    let value = transposed(call, &value, &[0, 2, 1, 3]);
    call.write_raw(out, value.reshaped(x.dims()))
}

/// Two numbers of a list, each at least `least`.
fn pair(call: &OperatorCall<'_>, parameter: &str, least: usize) -> Composed<[usize; 2]> {
    let list = call.ints(parameter)?;
    let found = match list {
        &[a, b] => usize::try_from(a).ok().zip(usize::try_from(b).ok()),
        _ => None,
    };
    match found {
        Some((a, b)) if a.min(b) >= least => Ok([a, b]),
        _ => Err(Refusal::invalid(format!(
            "`{parameter}` is {list:?}; expected two numbers from {least} on"
        ))),
    }
}

/// The indices of the entries at each position of a window, in an axis of `n` entries with padding:
/// a list for each position in the window.
fn window_places(
    n: usize,
    [kernel, dilation, padding, stride]: [usize; 4],
) -> Composed<(Vec<i64>, usize)> {
    let reach = (kernel - 1).checked_mul(dilation);
    let padded = padding.checked_mul(2).and_then(|both| both.checked_add(n));
    let room = padded
        .zip(reach)
        .and_then(|(padded, reach)| padded.checked_sub(reach + 1));
    let room = room.ok_or_else(|| Refusal::invalid("a window is larger than `self`"))?;
    let count = room / stride + 1;
    let places = (0..kernel)
        .flat_map(|k| (0..count).map(move |i| as_int(k * dilation + i * stride)))
        .collect();
    Ok((places, count))
}

fn windows_as_columns(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = ends(call)?;
    let (kernel, dilation) = (pair(call, "kernelSize", 1)?, pair(call, "dilation", 1)?);
    let (padding, stride) = (pair(call, "padding", 0)?, pair(call, "stride", 1)?);
    let (batch, channels, height, width) = match *x.dims() {
        [channels, height, width] => (None, channels, height, width),
        [n, channels, height, width] => (Some(n), channels, height, width),
        _ => {
            let text = format!("`self` is {x}; expected 3 or 4 axes");
            return Err(Refusal::invalid(text));
        }
    };
    let (rows, n_rows) = window_places(height, [kernel[0], dilation[0], padding[0], stride[0]])?;
    let (columns, n_columns) =
        window_places(width, [kernel[1], dilation[1], padding[1], stride[1]])?;
    let n_channels = channels * kernel[0] * kernel[1];
    let mut dims: Vec<usize> = batch.into_iter().collect();
    dims.extend([n_channels, n_rows * n_columns]);
    call.expect_shape(out, &dims)?;
    let value = read_moved(call, x, out)?;
    let n = batch.unwrap_or(1);
    let value = value.reshaped(&[n, channels, height, width]);
    let [top, left] = padding;
    let pads = call.constant_dims(&[0, 0, top, left, 0, 0, top, left]);
    let value = call.node("Pad", &[&value, &pads], value.dtype);
    // Rows and columns repeat for each position in the window, which turns each into two axes.
    let value = picked(call, &value, 2, &rows);
    let value = picked(call, &value, 3, &columns);
    let split = [n, channels, kernel[0], n_rows, kernel[1], n_columns];
    // Windows come last: the positions in a window become channels.
    let value = value.reshaped(&split);
    let value = transposed(call, &value, &[0, 1, 2, 4, 3, 5]);
    call.write_raw(out, value.reshaped(&dims))
}
