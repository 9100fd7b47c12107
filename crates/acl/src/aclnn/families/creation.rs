//! Creation of tensors, and conversion.

use opscope_tensor::{DType, Shape, Tensor};

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::elements::Numbers;
use crate::aclnn::object::{ScalarNumber, ScalarValue};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{compute_type, is_float, is_number};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of creation and conversion.
#[macro_export]
macro_rules! aclnn_creation {
    ($rows:ident) => {
        $rows! { "creation and conversion";
            Range("aclnn_arange.h", "start, start + step and so on, up to end without it") by steps_from_start(false):
                aclnnArange(start: Scalar, end: Scalar, step: Scalar, out: Out);
            Range("aclnn_range.h", "start, start + step and so on, up to end with it") by range():
                aclnnRange(start: Scalar, end: Scalar, step: Scalar, out: Out);
            LinSpace("aclnn_linspace.h", "steps numbers from start to end, at equal distances") by linspace():
                aclnnLinspace(start: Scalar, end: Scalar, steps: Int, out: Out);
            Eye("aclnn_eye.h", "1 on the diagonal, 0 elsewhere") by eye():
                aclnnEye(n: Int, m: Int, out: Out);
            Fill("aclnn_fill_scalar.h", "value in every element") by fill_scalar():
                aclnnInplaceFillScalar(selfRef: Inplace, value: Scalar);
            Fill("aclnn_fill_tensor.h", "the only element of value in every element") by fill_tensor():
                aclnnInplaceFillTensor(selfRef: Inplace, value: Tensor);
            OnesLike("aclnn_ones.h", "1 in every element") by one():
                aclnnInplaceOne(selfRef: Inplace);
            ZerosLike("aclnn_zero.h", "0 in every element") by zero():
                aclnnInplaceZero(selfRef: Inplace);
            Cast("aclnn_cast.h", "self as elements of type dtype") by cast():
                aclnnCast(self_: Tensor, dtype: DataType, out: Out);
        }
    };
}
aclnn_creation!(operator_rows);

fn range(call: &OperatorCall<'_>) -> Composed {
    steps_from_start(call, true)
}

fn steps_from_start(call: &OperatorCall<'_>, has_end: bool) -> Composed {
    let (start, end) = (call.scalar("start")?, call.scalar("end")?);
    let (step, out) = (call.scalar("step")?, call.tensor("out")?);
    call.expect_dtype(
        out,
        |dtype| is_number(dtype) && dtype != DType::Bool,
        "numbers",
    )?;
    let n = n_steps(start, end, step, has_end)?;
    call.expect_shape(out, &[n])?;
    if n == 0 {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let is_whole = [start, end, step].iter().all(|number| !number.is_float());
    let compute = if !is_whole || is_float(out.dtype) {
        DType::F64
    } else {
        DType::I64
    };
    // From the start each time: a running sum would accumulate rounding errors.
    let (first, step) = (
        call.scalar_value(start, compute)?,
        call.scalar_value(step, compute)?,
    );
    let places = places(call, n, compute)?;
    call.write(out, &first + &places * &step, out.dtype)
}

/// Number of elements of a range.
fn n_steps(
    start: &ScalarValue,
    end: &ScalarValue,
    step: &ScalarValue,
    has_end: bool,
) -> Composed<usize> {
    let (from, to, by) = (start.as_f64(), end.as_f64(), step.as_f64());
    refuse_if!(
        by == 0.0 || !from.is_finite() || !to.is_finite() || !by.is_finite(),
        "`start`, `end` and `step` are {from}, {to} and {by}; expected numbers \
                            that are finite, and a step other than 0"
    );
    let is_whole = [start, end, step].iter().all(|number| !number.is_float());
    // In integers if all three are: doubles lack digits of large ones.
    let n = if is_whole {
        let length = i128::from(end.as_i64()) - i128::from(start.as_i64());
        let step = i128::from(step.as_i64());
        let n = if has_end {
            length.div_euclid(step) + i128::from(step < 0 && length.rem_euclid(step) != 0)
        } else {
            let up = length + if step > 0 { step - 1 } else { step + 1 };
            up / step
        };
        n + i128::from(has_end)
    } else {
        let quotient = (to - from) / by;
        let n = if has_end {
            quotient.floor() + 1.0
        } else {
            quotient.ceil()
        };
        // Larger numbers are refused with the shape.
        n as i128
    };
    // An empty range is valid only if start and end are equal.
    let is_other_way = (to - from) * by < 0.0;
    refuse_if!(is_other_way, "`step` is {by}, which leads away from `end`");
    Ok(usize::try_from(n.max(0)).unwrap_or(usize::MAX))
}

/// The numbers from 0 to n - 1.
fn places(call: &OperatorCall<'_>, n: usize, dtype: DType) -> Composed<Value> {
    let list: Vec<i64> = (0..n.cast_signed() as i64).collect();
    let shape = Shape::new(vec![n]).ok();
    let bytes = Numbers::Ints(list).to_bytes(dtype);
    let tensor = shape.zip(bytes);
    let tensor = tensor.and_then(|(shape, bytes)| Tensor::from_vec(dtype, shape, bytes).ok());
    let tensor = tensor.ok_or_else(|| Refusal::invalid(format!("there are {n} elements")))?;
    Ok(call.tensor_value(tensor))
}

fn linspace(call: &OperatorCall<'_>) -> Composed {
    let (start, end) = (call.scalar("start")?, call.scalar("end")?);
    let (steps, out) = (call.int("steps")?, call.tensor("out")?);
    call.expect_dtype(out, is_number, "booleans, integers or floats")?;
    let n = usize::try_from(steps)
        .map_err(|_| Refusal::invalid(format!("`steps` is {steps}; expected 0 or more")))?;
    call.expect_shape(out, &[n])?;
    if n == 0 {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let dtype = DType::F64;
    let (first, last) = (
        call.scalar_value(start, dtype)?,
        call.scalar_value(end, dtype)?,
    );
    let places = places(call, n, dtype)?;
    #[expect(clippy::cast_precision_loss, reason = "no tensor has so many elements")]
    // The division comes first, so that the last number is exactly the end.
    let part = &places / ((n - 1).max(1) as f64);
    let result = &first + &part * (&last - &first);
    // Integers are truncated, as in PyTorch.
    call.write(out, &result, out.dtype)
}

fn eye(call: &OperatorCall<'_>) -> Composed {
    let (n, m, out) = (call.int("n")?, call.int("m")?, call.tensor("out")?);
    call.expect_dtype(out, is_number, "booleans, integers or floats")?;
    // A negative second size means the first one.
    let m = if m < 0 { n } else { m };
    let dims = [n, m].map(|extent| usize::try_from(extent).ok());
    let [Some(n), Some(m)] = dims else {
        return Err(Refusal::invalid(format!("`n` is {n}; expected 0 or more")));
    };
    call.expect_shape(out, &[n, m])?;
    if n == 0 || m == 0 {
        return call.fill(out, ScalarNumber::Int(0));
    }
    // The diagonal has equal row and column positions.
    let (rows, columns) = (places(call, n, DType::I64)?, places(call, m, DType::I64)?);
    call.write(out, rows.reshaped(&[n, 1]).equal(&columns), DType::Bool)
}

fn filled_tensor<'a>(call: &OperatorCall<'a>) -> Composed<&'a TensorArgument> {
    let out = call.tensor("out")?;
    call.expect_dtype(out, is_number, "booleans, integers or floats")?;
    Ok(out)
}

fn fill_scalar(call: &OperatorCall<'_>) -> Composed {
    let (out, value) = (filled_tensor(call)?, call.scalar("value")?);
    call.fill(out, value.number)
}

fn fill_tensor(call: &OperatorCall<'_>) -> Composed {
    let (out, value) = (filled_tensor(call)?, call.tensor("value")?);
    if value.n_axes() > 1 || value.n_elements() != 1 {
        let found = value.dims();
        let text = format!("`value` has the shape {found:?}; expected one element");
        return Err(Refusal::invalid(text));
    }
    let compute = compute_type(out.dtype);
    // A list of one element has an axis, which is removed before broadcasting.
    let one = call.read_as(value, out.dtype, compute)?;
    call.write(out, one.reshaped(&[]).expanded(out.dims()), out.dtype)
}

fn one(call: &OperatorCall<'_>) -> Composed {
    let out = filled_tensor(call)?;
    call.fill(out, ScalarNumber::Int(1))
}

fn zero(call: &OperatorCall<'_>) -> Composed {
    let out = filled_tensor(call)?;
    call.fill(out, ScalarNumber::Int(0))
}

fn cast(call: &OperatorCall<'_>) -> Composed {
    let (x, dtype, out) = (
        call.tensor("self")?,
        call.dtype("dtype")?,
        call.tensor("out")?,
    );
    call.expect_shape(out, x.dims())?;
    call.expect_dtype(out, is_number, "booleans, integers or floats")?;
    if out.dtype != dtype {
        let found = out.dtype;
        let text = format!("`out` is {found}; expected {dtype}, which `dtype` names");
        return Err(Refusal::invalid(text));
    }
    call.expect_dtype(x, is_number, "booleans, integers or floats")?;
    if x.dtype == dtype {
        // No conversion: the bits stay, including those of NaN.
        let bits = call.read_raw(x)?;
        call.write_raw(out, &bits)?;
        return Ok(());
    }
    // Converted on input, because engines differ for large numbers.
    let value = call.read_as(x, dtype, compute_type(dtype))?;
    call.write(out, &value, dtype)
}
