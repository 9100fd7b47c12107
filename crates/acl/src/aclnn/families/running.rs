//! Cumulative extremes and products along an axis.

use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, arithmetic_type};
use crate::aclnn::families::movement::{
    as_int, axis_in, counted, expanded, joined, reshaped, sliced,
};
use crate::aclnn::families::sorting::{NAN_KEY, SortedAxis, complement};
use crate::aclnn::promotion::is_float;
use crate::aclnn::row::operator_rows;
use crate::data_type::UNDEFINED;

/// Calls a macro with the rows of running extremes and products.
#[macro_export]
macro_rules! aclnn_running {
    ($rows:ident) => {
        $rows! { "running extremes and products";
            aclnnCummax = Cummax("aclnn_cummax.h", "the largest entry of axis dim so far, with its last place") by running_maximum
                (self_: Tensor, dim: Int, valuesOut: Out, indicesOut: Out);
            aclnnCummin = Cummin("aclnn_cummin.h", "the smallest entry of axis dim so far, with its last place") by running_minimum
                (self_: Tensor, dim: Int, valuesOut: Out, indicesOut: Out);
            aclnnCumprod = Cumprod("aclnn_cumprod.h", "the product of the entries of axis dim so far") by running_product
                (input: Tensor, dim: Scalar, dtype: DataType, out: Out);
            aclnnInplaceCumprod = Cumprod("aclnn_cumprod.h", "the product of the entries of axis dim so far") by running_product
                (input: Inplace, dim: Scalar);
        }
    };
}
aclnn_running!(operator_rows);

fn running_maximum(call: &mut OperatorCall<'_>) -> Composed {
    running_extreme(call, false)
}

fn running_minimum(call: &mut OperatorCall<'_>) -> Composed {
    running_extreme(call, true)
}

fn running_extreme(call: &mut OperatorCall<'_>, is_smallest: bool) -> Composed {
    let sorted = SortedAxis::read(call, "self", "dim")?;
    let (values, places) = (call.tensor("valuesOut")?, call.tensor("indicesOut")?);
    call.expect_shape(values, sorted.x.dims())?;
    call.expect_shape(places, sorted.x.dims())?;
    let mut keys = sorted.keys(call)?;
    if is_smallest {
        let nan = call.constant(NAN_KEY, DType::I64);
        let is_nan = call.node("Equal", &[&keys, &nan], DType::Bool);
        let others = complement(call, &keys)?;
        // NaN comes first in either order.
        keys = if is_float(sorted.x.dtype) {
            call.node("Where", &[&is_nan, &nan, &others], DType::I64)
        } else {
            others
        };
    }
    let n = sorted.n();
    let mut along = vec![1; sorted.dims.len()];
    along[sorted.axis] = n;
    let found = counted(call, n)?;
    let found = reshaped(call, &found, &along)?;
    let mut found = expanded(call, &found, &sorted.dims)?;
    // After each step, entries know the extreme of twice as many predecessors.
    let mut step = 1;
    while step < n {
        let before = shifted(call, &sorted, &keys, step)?;
        let found_before = shifted(call, &sorted, &found, step)?;
        let rest = [as_int(step), as_int(n), 1];
        let later = sliced(call, &keys, sorted.axis, rest)?;
        let found_later = sliced(call, &found, sorted.axis, rest)?;
        // Of equal entries the later index is returned, as in PyTorch.
        let is_later = call.node("GreaterOrEqual", &[&later, &before], DType::Bool);
        let best = call.node("Where", &[&is_later, &later, &before], DType::I64);
        let at = call.node(
            "Where",
            &[&is_later, &found_later, &found_before],
            DType::I64,
        );
        keys = with_front(call, &sorted, &keys, &best, step)?;
        found = with_front(call, &sorted, &found, &at, step)?;
        step *= 2;
    }
    sorted.write(call, &found, values, Some(places))
}

/// The entries that have another one `step` positions later.
fn shifted(
    call: &mut OperatorCall<'_>,
    sorted: &SortedAxis<'_>,
    value: &Value,
    step: usize,
) -> Composed<Value> {
    let end = as_int(sorted.n()) - as_int(step);
    sliced(call, value, sorted.axis, [0, end, 1])
}

/// The first `step` entries of a value, followed by others.
fn with_front(
    call: &mut OperatorCall<'_>,
    sorted: &SortedAxis<'_>,
    value: &Value,
    others: &Value,
    step: usize,
) -> Composed<Value> {
    let front = sliced(call, value, sorted.axis, [0, as_int(step), 1])?;
    Ok(joined(call, &[front, others.clone()], sorted.axis))
}

fn running_product(call: &mut OperatorCall<'_>) -> Composed {
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
    let mut value = reshaped(call, &value, &sorted.dims)?;
    // As many steps as the axis size has bits, rather than one for each entry.
    let mut step = 1;
    while step < sorted.n() {
        let before = shifted(call, &sorted, &value, step)?;
        let rest = [as_int(step), as_int(sorted.n()), 1];
        let later = sliced(call, &value, axis, rest)?;
        let product = call.node("Mul", &[&before, &later], compute);
        value = with_front(call, &sorted, &value, &product, step)?;
        step *= 2;
    }
    let value = reshaped(call, &value, x.dims())?;
    call.write(out, &value, dtype);
    Ok(())
}
