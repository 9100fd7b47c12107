//! Cumulative extremes and products along an axis.

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, arithmetic_type};
use crate::aclnn::families::movement::{as_int, axis_in, counted, joined, sliced};
use crate::aclnn::families::sorting::{NAN_KEY, SortedAxis, complement};
use crate::aclnn::promotion::is_float;
use crate::aclnn::row::operator_rows;
use crate::data_type::UNDEFINED;

/// Calls a macro with the rows of running extremes and products.
#[macro_export]
macro_rules! aclnn_running {
    ($rows:ident) => {
        $rows! { "running extremes and products";
            Cummax("aclnn_cummax.h", "the largest entry of axis dim so far, with its last place") by running_extreme(false):
                aclnnCummax(self_: Tensor, dim: Int, valuesOut: Out, indicesOut: Out);
            Cummin("aclnn_cummin.h", "the smallest entry of axis dim so far, with its last place") by running_extreme(true):
                aclnnCummin(self_: Tensor, dim: Int, valuesOut: Out, indicesOut: Out);
            Cumprod("aclnn_cumprod.h", "the product of the entries of axis dim so far") by running_product():
                aclnnCumprod(input: Tensor, dim: Scalar, dtype: DataType, out: Out),
                aclnnInplaceCumprod(input: Inplace, dim: Scalar);
        }
    };
}
aclnn_running!(operator_rows);

fn running_extreme(call: &OperatorCall<'_>, is_smallest: bool) -> Composed {
    let sorted = SortedAxis::read(call, "self", "dim")?;
    let (values, places) = (call.tensor("valuesOut")?, call.tensor("indicesOut")?);
    call.expect_shape(values, sorted.x.dims())?;
    call.expect_shape(places, sorted.x.dims())?;
    let mut keys = sorted.keys(call)?;
    if is_smallest {
        let is_nan = keys.equal(NAN_KEY);
        let others = complement(&keys);
        // NaN comes first in either order.
        keys = if is_float(sorted.x.dtype) {
            is_nan.choose(NAN_KEY, &others)
        } else {
            others
        };
    }
    let n = sorted.n();
    let mut along = vec![1; sorted.dims.len()];
    along[sorted.axis] = n;
    let found = counted(call, n)?;
    let found = found.reshaped(&along);
    let mut found = found.expanded(&sorted.dims);
    // After each step, entries know the extreme of twice as many predecessors.
    let mut step = 1;
    while step < n {
        let before = shifted(call, &sorted, &keys, step);
        let found_before = shifted(call, &sorted, &found, step);
        let rest = [as_int(step), as_int(n), 1];
        let later = sliced(call, &keys, sorted.axis, rest);
        let found_later = sliced(call, &found, sorted.axis, rest);
        // Of equal entries the later index is returned, as in PyTorch.
        let is_later = later.greater_or_equal(&before);
        let best = is_later.choose(&later, &before);
        let at = is_later.choose(&found_later, &found_before);
        keys = with_front(call, &sorted, &keys, &best, step);
        found = with_front(call, &sorted, &found, &at, step);
        step *= 2;
    }
    sorted.write(call, &found, values, Some(places))
}

/// The entries that have another one `step` positions later.
fn shifted(call: &OperatorCall<'_>, sorted: &SortedAxis<'_>, value: &Value, step: usize) -> Value {
    let end = as_int(sorted.n()) - as_int(step);
    sliced(call, value, sorted.axis, [0, end, 1])
}

/// The first `step` entries of a value, followed by others.
fn with_front(
    call: &OperatorCall<'_>,
    sorted: &SortedAxis<'_>,
    value: &Value,
    others: &Value,
    step: usize,
) -> Value {
    let front = sliced(call, value, sorted.axis, [0, as_int(step), 1]);
    joined(call, &[front, others.clone()], sorted.axis)
}

fn running_product(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("input")?, call.tensor("out")?);
    let number = call.scalar("dim")?.as_i64();
    let axis = axis_in("dim", number, x.n_axes())?;
    call.expect_shape(out, x.dims())?;
    // In-place functions have no other dtype.
    let is_given = call.has("dtype") && call.int("dtype")? != i64::from(UNDEFINED);
    let dtype = if is_given {
        call.dtype("dtype")?
    } else {
        x.dtype
    };
    if out.dtype != dtype {
        let found = out.dtype;
        return Err(Refusal::invalid(format!(
            "`out` is {found}; expected {dtype}"
        )));
    }
    let sorted = SortedAxis::new(x, axis);
    let compute = arithmetic_type(dtype);
    let value = call.read_as(x, dtype, compute)?;
    let mut value = value.reshaped(&sorted.dims);
    // As many steps as the axis size has bits, rather than one for each entry.
    let mut step = 1;
    while step < sorted.n() {
        let before = shifted(call, &sorted, &value, step);
        let rest = [as_int(step), as_int(sorted.n()), 1];
        let later = sliced(call, &value, axis, rest);
        let product = &before * &later;
        value = with_front(call, &sorted, &value, &product, step);
        step *= 2;
    }
    call.write(out, value.reshaped(x.dims()), dtype)
}
