//! Padding at the ends of axes.

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::families::movement::{
    Elements, as_int, expect_same_dtype, extent, picked, read_moved, sliced,
};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of padding.
#[macro_export]
macro_rules! aclnn_padding {
    ($rows:ident) => {
        $rows! { "padding";
            PadV3("aclnn_constant_pad_nd.h", "self with value before and behind the entries of its last axes") by pad_with_value():
                aclnnConstantPadNd(self_: Tensor, pad: IntArray, value: Scalar, out: Out);
            MirrorPad("aclnn_reflection_pad1d.h", "self with its last axis mirrored at both ends") by reflect():
                aclnnReflectionPad1d(self_: Tensor, padding: IntArray, out: Out);
            MirrorPad("aclnn_reflection_pad2d.h", "self with its last two axes mirrored at both ends") by reflect():
                aclnnReflectionPad2d(self_: Tensor, padding: IntArray, out: Out);
            MirrorPad("aclnn_reflection_pad3d.h", "self with its last three axes mirrored at both ends") by reflect():
                aclnnReflectionPad3d(self_: Tensor, padding: IntArray, out: Out);
            PadV3("aclnn_replication_pad1d.h", "self with the outermost entries of its last axis repeated") by replicate():
                aclnnReplicationPad1d(self_: Tensor, padding: IntArray, out: Out);
            PadV3("aclnn_replication_pad2d.h", "self with the outermost entries of its last two axes repeated") by replicate():
                aclnnReplicationPad2d(self_: Tensor, padding: IntArray, out: Out);
            PadV3("aclnn_replication_pad3d.h", "self with the outermost entries of its last three axes repeated") by replicate():
                aclnnReplicationPad3d(self_: Tensor, padding: IntArray, out: Out);
            CircularPad("aclnn_circular_pad2d.h", "self with its last two axes going on at both ends") by pad_from(|n| n, i64::rem_euclid):
                aclnnCircularPad2d(self_: Tensor, padding: IntArray, out: Out);
            CircularPad("aclnn_circular_pad3d.h", "self with its last three axes going on at both ends") by pad_from(|n| n, i64::rem_euclid):
                aclnnCircularPad3d(self_: Tensor, padding: IntArray, out: Out);
        }
    };
}
aclnn_padding!(operator_rows);

/// Numbers of entries before and after an axis. The list of numbers begins with the last axis.
struct AxisPadding {
    axis: usize,
    before: i64,
    behind: i64,
}

fn axis_padding(parameter: &str, pads: &[i64], n_axes: usize) -> Composed<Vec<AxisPadding>> {
    let (pairs, rest) = pads.as_chunks::<2>();
    refuse_if!(
        !rest.is_empty() || pairs.len() > n_axes,
        "`{parameter}` is {pads:?}; expected two numbers for {n_axes} axes at most"
    );
    let axes = (0..n_axes).rev();
    let pairs = axes.zip(pairs);
    let padding = pairs.map(|(axis, &[before, behind])| AxisPadding {
        axis,
        before,
        behind,
    });
    Ok(padding.collect())
}

/// The size of a padded axis.
fn padded(n: usize, one: &AxisPadding) -> Composed<usize> {
    let sum = as_int(n).checked_add(one.before);
    let sum = sum
        .and_then(|sum| sum.checked_add(one.behind))
        .unwrap_or(-1);
    usize::try_from(sum).map_err(|_| {
        let (before, behind) = (one.before, one.behind);
        Refusal::invalid(format!(
            "{before} and {behind} entries are added to {n}; expected 0 or more altogether"
        ))
    })
}

fn pad_with_value(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    let padding = axis_padding("pad", call.ints("pad")?, x.n_axes())?;
    let mut dims = x.dims().to_vec();
    for one in &padding {
        dims[one.axis] = padded(dims[one.axis], one)?;
    }
    call.expect_shape(out, &dims)?;
    let scalar = call.scalar("value")?;
    // An empty tensor leaves nothing but the padding.
    if x.is_empty() {
        return call.fill(out, scalar.number);
    }
    let elements = Elements::Bits(x.dtype);
    let mut value = elements.read(call, x)?;
    let n = x.n_axes();
    let mut pads = vec![0_i64; 2 * n];
    for one in &padding {
        // Negative numbers remove entries.
        if one.before.min(one.behind) < 0 {
            let end = as_int(x.dims()[one.axis]).saturating_add(one.behind.min(0));
            let start = one.before.min(0).saturating_neg();
            value = sliced(call, &value, one.axis, [start, end, 1]);
        }
        // ONNX lists all leading numbers first, then all trailing ones.
        pads[one.axis] = one.before.max(0);
        pads[n + one.axis] = one.behind.max(0);
    }
    if n > 0 {
        let pads = call.constant_ints(&pads);
        let number = elements.number(call, scalar.number)?;
        value = call.node("Pad", &[&value, &pads, &number], value.dtype);
    }
    call.write_raw(out, &value)
}

/// Number of the last axes that the operator pads, from the required length of its list.
fn n_padded_axes(call: &OperatorCall<'_>) -> Composed<usize> {
    let (x, padding) = (call.tensor("self")?, call.ints("padding")?);
    let n = padding.len() / 2;
    let is_fine = (n + 1..=n + 2).contains(&x.n_axes()) && n > 0 && padding.len() == 2 * n;
    refuse_if!(
        !is_fine,
        "`self` is {x} and `padding` {padding:?}; expected two numbers for each padded axis, \
             and one or two axes before them"
    );
    Ok(n)
}

/// The source of an entry at a position beyond the ends of an axis of `n` entries.
type Source = fn(at: i64, n: i64) -> i64;

fn pad_from(call: &OperatorCall<'_>, most: fn(usize) -> usize, source: Source) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    n_padded_axes(call)?;
    let padding = axis_padding("padding", call.ints("padding")?, x.n_axes())?;
    // Axis by axis: corners derive from the padding of earlier axes.
    let mut dims = x.dims().to_vec();
    let mut value: Value = read_moved(call, x, out)?;
    for one in &padding {
        let n = dims[one.axis];
        let (before, behind) = (
            extent("padding", one.before)?,
            extent("padding", one.behind)?,
        );
        // Beyond that the rule would need nonexistent entries.
        let most = most(n);
        refuse_if!(
            n == 0 || before.max(behind) > most,
            "`padding` has {before} and {behind} for an axis of {n}; expected {most} at most"
        );
        dims[one.axis] = padded(n, one)?;
        let places: Vec<i64> = (0..as_int(dims[one.axis]))
            .map(|i| source(i - one.before, as_int(n)))
            .collect();
        value = picked(call, &value, one.axis, &places);
    }
    call.expect_shape(out, &dims)?;
    call.write_raw(out, &value)
}

fn reflect(call: &OperatorCall<'_>) -> Composed {
    // The outermost entry itself is not repeated.
    pad_from(
        call,
        |n| n.saturating_sub(1),
        |at, n| {
            let at = at.abs();
            if at < n { at } else { 2 * (n - 1) - at }
        },
    )
}

fn replicate(call: &OperatorCall<'_>) -> Composed {
    // Far more than any tensor has, but small enough for sums.
    pad_from(call, |_| 1 << 40, |at, n| at.clamp(0, n - 1))
}
