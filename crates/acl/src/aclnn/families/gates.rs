//! Operators that pass or replace elements.

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, arithmetic_type, refuse_if};
use crate::aclnn::families::movement::expect_same_dtype;
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::promotion::compute_type;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of operators that let elements pass.
#[macro_export]
macro_rules! aclnn_gates {
    ($rows:ident) => {
        $rows! { "steps and dropout";
            Heaviside("aclnn_heaviside.h", "0 below 0, 1 above it, values at it") by heaviside():
                aclnnHeaviside(input: Tensor, values: Tensor, out: Out);
            DropOutDoMask("aclnn_dropout.h", "input, or zeros if p is 1; nothing that random numbers decide") by drop():
                aclnnDropout(input: Tensor, p: Double, train: Flag, seed: Int, offset: Int, out: Out, maskOut: Inplace);
        }
    };
}
aclnn_gates!(operator_rows);

fn heaviside(call: &OperatorCall<'_>) -> Composed {
    let (x, values, out) = (
        call.tensor("input")?,
        call.tensor("values")?,
        call.tensor("out")?,
    );
    call.broadcast(&[Side::Tensor(x), Side::Tensor(values)], out)?;
    expect_same_dtype(call, values, x)?;
    expect_same_dtype(call, out, x)?;
    let compute = arithmetic_type(x.dtype);
    let (value, at_zero) = (call.read(x, compute)?, call.read(values, compute)?);
    // NaN is neither zero nor positive, and yields 0.
    let is_zero = value.equal(0.0);
    call.write(
        out,
        is_zero.choose(&at_zero, value.greater(0.0).cast(compute)),
        x.dtype,
    )
}

fn drop(call: &OperatorCall<'_>) -> Composed {
    let (x, out, mask) = (
        call.tensor("input")?,
        call.tensor("out")?,
        call.tensor("maskOut")?,
    );
    call.expect_float(x)?;
    call.expect_like(out, x)?;
    let p = call.number("p")?;
    refuse_if!(!(0.0..=1.0).contains(&p), "`p` is {p}; expected 0 to 1");
    // Here the vendor leaves the mask unchanged.
    let kept = call.read_raw(mask)?;
    call.write_raw(mask, &kept)?;
    if !call.flag("train")? || p == 0.0 {
        let value = call.read(x, compute_type(x.dtype))?;
        call.write(out, &value, x.dtype)?;
    } else if p == 1.0 {
        call.fill(out, ScalarNumber::Int(0))?;
    } else {
        let text = format!(
            "`p` is {p} in training; expected 0 or 1, since the device's random numbers are its own"
        );
        return Err(Refusal::invalid(text));
    }
    Ok(())
}
