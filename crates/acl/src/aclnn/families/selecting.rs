//! Selection of elements by masks and conditions.

use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, refuse_if};
use crate::aclnn::families::movement::{Elements, expect_same_dtype, gathered, transposed};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{compute_type, is_float};
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::broadcast;

/// Calls a macro with the rows of operators that masks and conditions steer.
#[macro_export]
macro_rules! aclnn_selecting {
    ($rows:ident) => {
        $rows! { "masks and conditions";
            SelectV2("aclnn_s_where.h", "self where condition holds, other elsewhere") by choose():
                aclnnSWhere(condition: Tensor, self_: Tensor, other: Tensor, out: Out);
            MaskedFill("aclnn_masked_fill_scalar.h", "value where mask holds") by fill_masked():
                aclnnInplaceMaskedFillScalar(selfRef: Inplace, mask: Tensor, value: Scalar);
            MaskedFill("aclnn_masked_fill_tensor.h", "value where mask holds") by fill_masked():
                aclnnInplaceMaskedFillTensor(selfRef: Inplace, mask: Tensor, value: Tensor);
            MaskedScatter("aclnn_masked_scatter.h", "the elements of source, in order, where mask holds") by scatter_masked():
                aclnnInplaceMaskedScatter(selfRef: Inplace, mask: Tensor, source: Tensor);
            MaskedSelect("aclnn_masked_select.h", "the elements of self where mask holds, as a row") by select_masked():
                aclnnMaskedSelect(self_: Tensor, mask: Tensor, out: Out);
            MaskedScale("aclnn_masked_scale.h", "self * mask * scale") by scale_masked():
                aclnnMaskedScale(self_: Tensor, mask: Tensor, scale: Float, out: Out);
            NonZero("aclnn_nonzero.h", "the coordinates of elements other than 0, a row for each") by nonzero_rows():
                aclnnNonzero(self_: Tensor, out: Out);
            NonZero("aclnn_nonzero_v2.h", "the coordinates of elements other than 0, a column for each") by nonzero_columns():
                aclnnNonzeroV2(self_: Tensor, out: Out);
            NanToNum("aclnn_nan_to_num.h", "self with nan, posinf and neginf in place of what is no number") by replace_odd():
                aclnnNanToNum(self_: Tensor, nan: Float, posinf: Float, neginf: Float, out: Out),
                aclnnInplaceNanToNum(selfRef: Inplace, nan: Float, posinf: Float, neginf: Float);
        }
    };
}
aclnn_selecting!(operator_rows);

fn is_mask(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::U8)
}

fn read_mask(call: &OperatorCall<'_>, mask: &TensorArgument) -> Composed<Value> {
    call.expect_dtype(mask, is_mask, "bool or uint8")?;
    call.read(mask, DType::Bool)
}

fn choose(call: &OperatorCall<'_>) -> Composed {
    let (condition, out) = (call.tensor("condition")?, call.tensor("out")?);
    let (x, other) = (call.tensor("self")?, call.tensor("other")?);
    let sides = [
        Side::Tensor(condition),
        Side::Tensor(x),
        Side::Tensor(other),
    ];
    call.broadcast(&sides, out)?;
    let elements = Elements::common(call, &[x, other], out)?;
    let condition = read_mask(call, condition)?;
    let (x, other) = (elements.read(call, x)?, elements.read(call, other)?);
    elements.write(call, out, condition.choose(&x, &other))
}

fn fill_masked(call: &OperatorCall<'_>) -> Composed {
    let (x, mask) = (call.tensor("selfRef")?, call.tensor("mask")?);
    call.broadcast(&[Side::Tensor(x), Side::Tensor(mask)], x)?;
    let value = call.side("value")?;
    let elements = Elements::Bits(x.dtype);
    let filled = match value {
        Side::Scalar(_) => elements.side(call, value)?,
        Side::Tensor(tensor) if tensor.n_axes() > 0 => {
            let text = format!("`value` is {tensor}; expected a tensor without axes");
            return Err(Refusal::invalid(text));
        }
        Side::Tensor(tensor) if tensor.dtype == x.dtype => elements.read(call, tensor)?,
        Side::Tensor(tensor) => return fill_converted(call, x, mask, tensor),
    };
    let mask = read_mask(call, mask)?;
    let value = elements.read(call, x)?;
    elements.write(call, x, mask.choose(&filled, &value))
}

/// Fills with a tensor of another dtype, converted.
fn fill_converted(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    mask: &TensorArgument,
    filled: &TensorArgument,
) -> Composed {
    call.expect_cast(x, filled.dtype)?;
    let elements = Elements::Numbers(x.dtype);
    let mask = read_mask(call, mask)?;
    let value = elements.read(call, x)?;
    let filled = call.read_as(filled, x.dtype, value.dtype)?;
    elements.write(call, x, mask.choose(&filled, &value))
}

fn scatter_masked(call: &OperatorCall<'_>) -> Composed {
    let (x, mask) = (call.tensor("selfRef")?, call.tensor("mask")?);
    let source = call.tensor("source")?;
    expect_same_dtype(call, source, x)?;
    call.broadcast(&[Side::Tensor(x), Side::Tensor(mask)], x)?;
    refuse_if!(
        source.is_empty() && !x.is_empty(),
        "`source` is {source}; expected elements"
    );
    let n = x.n_elements();
    let mask = read_mask(call, mask)?;
    let mask = mask.expanded(x.dims());
    let mask = mask.reshaped(&[n]);
    // The number of elements selected so far is the index of the next one in the source.
    let count = mask.cast(DType::I64);
    let axis = call.constant(0.0, DType::I64);
    // It also counts the element itself, so 1 is subtracted below.
    let count = call.node("CumSum", &[&count, &axis], DType::I64);
    let zero = call.constant(0.0, DType::I64);
    let places = &count - 1.0;
    let places = call.node("Max", &[&places, &zero], DType::I64);
    let source_value = call.read_raw(source)?;
    let source_value = source_value.reshaped(&[source.n_elements()]);
    let chosen = gathered(call, &source_value, 0, &places);
    let value = call.read_raw(x)?;
    let value = value.reshaped(&[n]);
    let result = mask.choose(&chosen, &value);
    call.write_raw(x, result.reshaped(x.dims()))
}

/// The flat indices where a boolean is true.
fn true_places(call: &OperatorCall<'_>, mask: &Value, n: usize) -> Value {
    let mask = mask.reshaped(&[n]);
    let places = call.node("NonZero", &[&mask], DType::I64);
    let row = call.constant_ints(&[-1]);
    places.reshaped_by(&row)
}

/// Checks the other dimensions of an output whose number of entries depends on values. Its capacity
/// is checked when the entries are known.
pub(super) fn expect_room(
    call: &OperatorCall<'_>,
    out: &TensorArgument,
    dims: &[Option<usize>],
) -> Composed {
    let is_fine =
        |(&n, expected): (&usize, &Option<usize>)| expected.is_none_or(|known| known == n);
    if out.n_axes() == dims.len() && out.dims().iter().zip(dims).all(is_fine) {
        return Ok(());
    }
    let (name, found) = (call.name(out), out.dims());
    let expected: Vec<String> = dims
        .iter()
        .map(|n| n.map_or_else(|| "as many as there are".to_owned(), |n| n.to_string()))
        .collect();
    let expected = expected.join(", ");
    Err(Refusal::invalid(format!(
        "`{name}` has the shape {found:?}; expected [{expected}]"
    )))
}

fn select_masked(call: &OperatorCall<'_>) -> Composed {
    let (x, mask, out) = (
        call.tensor("self")?,
        call.tensor("mask")?,
        call.tensor("out")?,
    );
    expect_same_dtype(call, out, x)?;
    let dims = broadcast(x.dims(), mask.dims()).ok_or_else(|| {
        let (x, mask) = (x.dims(), mask.dims());
        Refusal::invalid(format!("the shapes {x:?} and {mask:?} do not broadcast"))
    })?;
    let n = dims.iter().product();
    expect_room(call, out, &[None])?;
    let value = call.read_raw(x)?;
    let value = value.expanded(&dims);
    let value = value.reshaped(&[n]);
    let mask = read_mask(call, mask)?;
    let mask = mask.expanded(&dims);
    // Indices rather than the mask: every engine gathers, not every one compresses.
    let places = true_places(call, &mask, n);
    call.write_raw_part(out, gathered(call, &value, 0, &places))
}

fn scale_masked(call: &OperatorCall<'_>) -> Composed {
    let (x, mask, out) = (
        call.tensor("self")?,
        call.tensor("mask")?,
        call.tensor("out")?,
    );
    call.expect_float(x)?;
    call.expect_shape(mask, x.dims())?;
    call.expect_shape(out, x.dims())?;
    expect_same_dtype(call, out, x)?;
    let compute = compute_type(x.dtype);
    let (value, mask) = (call.read(x, compute)?, call.read(mask, compute)?);
    let scale = call.number_value(ScalarNumber::Float(call.number("scale")?), compute)?;
    call.write(out, &value * &mask * &scale, x.dtype)
}

/// Coordinates of nonzero elements, a column for each, and the shape of the largest result.
fn coordinates(call: &OperatorCall<'_>) -> Composed<Value> {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_dtype(out, |dtype| dtype == DType::I64, "int64")?;
    let value = call.read(x, DType::Bool)?;
    if x.n_axes() > 0 {
        return Ok(call.node("NonZero", &[&value], DType::I64));
    }
    // Without axes there are no coordinates, so the output is empty.
    Ok(value)
}

fn nonzero_rows(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_room(call, out, &[None, Some(x.n_axes())])?;
    let mut value = coordinates(call)?;
    if x.n_axes() > 0 {
        value = transposed(call, &value, &[1, 0]);
    }
    call.write_part(out, &value, DType::I64)
}

fn nonzero_columns(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_room(call, out, &[Some(x.n_axes()), None])?;
    let value = coordinates(call)?;
    call.write_part(out, &value, DType::I64)
}

fn replace_odd(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    expect_same_dtype(call, out, x)?;
    let dtype = x.dtype;
    // Integers are never NaN or infinite.
    if !is_float(dtype) {
        let value = call.read_raw(x)?;
        call.write_raw(out, &value)?;
        return Ok(());
    }
    let compute = compute_type(dtype);
    let mut value = call.read(x, compute)?;
    let original = value.clone();
    let nan = call.number_value(ScalarNumber::Float(call.number("nan")?), compute)?;
    value = value.is_nan().choose(&nan, &value);
    for (parameter, infinity) in [("posinf", f64::INFINITY), ("neginf", f64::NEG_INFINITY)] {
        let number = ScalarNumber::Float(call.number(parameter)?);
        let number = call.number_value(number, compute)?;
        value = original.equal(infinity).choose(&number, &value);
    }
    call.write(out, &value, dtype)
}
