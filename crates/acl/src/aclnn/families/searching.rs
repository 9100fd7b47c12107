//! Search in sorted lists, and counts of numbers.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, arithmetic_type, refuse_if};
use crate::aclnn::families::indexing::read_places;
use crate::aclnn::families::movement::{axis_attribute, constant_of, extent};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::promotion::is_integer;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of searching and counting.
#[macro_export]
macro_rules! aclnn_searching {
    ($rows:ident) => {
        $rows! { "searching and counting";
            SearchSorted("aclnn_searchsorted.h", "the places where the elements of self keep the rows of sortedSequence in order") by search():
                aclnnSearchSorted(sortedSequence: Tensor, self_: Tensor, outInt32: Flag, right: Flag, sorter: OptionalTensor, out: Out);
            SearchSorted("aclnn_searchsorted.h", "the place where self keeps sortedSequence in order") by search():
                aclnnSearchSorteds(sortedSequence: Tensor, self_: Scalar, outInt32: Flag, right: Flag, sorter: OptionalTensor, out: Out);
            Bincount("aclnn_bincount.h", "how often each number occurs in self, or the sum of its weights") by count_numbers():
                aclnnBincount(self_: Tensor, weights: OptionalTensor, minlength: Int, out: Out);
        }
    };
}
aclnn_searching!(operator_rows);

fn search(call: &OperatorCall<'_>) -> Composed {
    let (sequence, values) = (call.tensor("sortedSequence")?, call.side("self")?);
    let out = call.tensor("out")?;
    let &[ref rows @ .., n] = sequence.dims() else {
        let text = format!("`sortedSequence` is {sequence}; expected an axis at least");
        return Err(Refusal::invalid(text));
    };
    let is_row = rows.is_empty();
    let fits = is_row || matches!(values.dims(), [outer @ .., _] if outer == rows);
    if !fits {
        let (found, expected) = (values.dims(), rows);
        return Err(Refusal::invalid(format!(
            "`self` has the shape {found:?}; expected the rows {expected:?} of `sortedSequence`"
        )));
    }
    if !(values.dims().is_empty() && out.dims() == [1]) {
        call.expect_shape(out, values.dims())?;
    }
    let expected = if call.flag("outInt32")? {
        DType::I32
    } else {
        DType::I64
    };
    if out.dtype != expected {
        let found = out.dtype;
        return Err(Refusal::invalid(format!(
            "`out` is {found}; expected {expected}"
        )));
    }
    if n == 0 {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let dtype = call.promote_sides(&[Side::Tensor(sequence), values])?;
    let compute = arithmetic_type(dtype);
    let mut sorted = call.read_as(sequence, dtype, compute)?;
    if let Some(sorter) = call.optional_tensor("sorter")? {
        call.expect_shape(sorter, sequence.dims())?;
        call.expect_dtype(sorter, is_integer, "int64")?;
        let places = read_places(call, sorter)?;
        let attributes = axis_attribute(rows.len());
        sorted = call.node_with("GatherElements", &[&sorted, &places], attributes, compute);
    }
    let value = call.read_side(values, dtype, compute)?;
    // Each value is compared with its whole row, and the smaller entries are counted. Comparing all
    // pairs needs memory for each, but no sequence of steps.
    let last = [values.dims(), &[1]].concat();
    let value = value.reshaped(&last);
    let row_dims = if is_row {
        vec![n]
    } else {
        [rows, &[1, n]].concat()
    };
    let sorted = sorted.reshaped(&row_dims);
    let comparison = if call.flag("right")? {
        "Greater"
    } else {
        "GreaterOrEqual"
    };
    let is_behind = call.node(comparison, &[&sorted, &value], DType::Bool);
    // The comparison is inverted so that NaN, which compares false, comes last.
    let is_before = (!&is_behind).cast(DType::I64);
    let axes = call.constant_ints(&[-1]);
    let keepdims = vec![("keepdims", OperatorAttribute::Int(0))];
    let count = call.node_with("ReduceSum", &[&is_before, &axes], keepdims, DType::I64);
    call.write(out, count.reshaped(out.dims()), DType::I64)
}

fn count_numbers(call: &OperatorCall<'_>) -> Composed {
    let (x, weights) = (call.tensor("self")?, call.optional_tensor("weights")?);
    let out = call.tensor("out")?;
    call.expect_dtype(x, is_integer, "integers")?;
    let least = extent("minlength", call.int("minlength")?)?;
    let (&[n], &[size]) = (x.dims(), out.dims()) else {
        let text = format!("`self` is {x} and `out` {out}; expected one axis each");
        return Err(Refusal::invalid(text));
    };
    refuse_if!(
        size < least,
        "`out` has {size} elements; expected `minlength`, {least}, at least"
    );
    if let Some(weights) = weights {
        call.expect_shape(weights, x.dims())?;
    }
    // Nothing was counted; engines differ for empty indices.
    if n == 0 || size == 0 {
        return call.fill(out, ScalarNumber::Int(0));
    }
    // A number beyond the output makes the run fail.
    let places = read_places(call, x)?;
    let compute = if weights.is_some() {
        DType::F64
    } else {
        DType::I64
    };
    let ones = match weights {
        Some(weights) => call.read(weights, compute)?,
        None => constant_of(call, 1.0, compute, &[n]),
    };
    let zeros = constant_of(call, 0.0, compute, &[size]);
    let mut attributes = axis_attribute(0);
    attributes.push(("reduction", OperatorAttribute::Text("add".to_owned())));
    let inputs = [&zeros, &places, &ones];
    let sums = call.node_with("ScatterElements", &inputs, attributes, compute);
    call.write(out, &sums, out.dtype)
}
