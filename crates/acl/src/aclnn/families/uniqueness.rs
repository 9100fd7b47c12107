//! Unique elements.

use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Value};
use crate::aclnn::families::movement::{
    as_int, axis_attribute, constant_of, expect_same_dtype, gathered, joined, sliced,
};
use crate::aclnn::families::selecting::expect_room;
use crate::aclnn::families::sorting::{distinct_keys, places_in_order};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of operators that find different elements.
#[macro_export]
macro_rules! aclnn_uniqueness {
    ($rows:ident) => {
        $rows! { "different elements";
            UniqueWithCountsAndSorting("aclnn_unique.h", "the different elements of self in order, and the place among them of each element") by unique():
                aclnnUnique(self_: Tensor, sorted: Flag, returnInverse: Flag, valueOut: Out, inverseOut: Out);
            UniqueWithCountsAndSorting("aclnn_unique2.h", "the different elements of self in order, the place among them of each element, and how often they occur") by unique():
                aclnnUnique2(self_: Tensor, sorted: Flag, returnInverse: Flag, returnCounts: Flag, valueOut: Out, inverseOut: Out, countsOut: Out);
        }
    };
}
aclnn_uniqueness!(operator_rows);

fn unique(call: &OperatorCall<'_>) -> Composed {
    let (x, values) = (call.tensor("self")?, call.tensor("valueOut")?);
    let inverse = call.tensor("inverseOut")?;
    let n = x.n_elements();
    expect_same_dtype(call, values, x)?;
    expect_room(call, values, &[None])?;
    let has_counts = call.has("returnCounts") && call.flag("returnCounts")?;
    let has_inverse = has_counts || call.flag("returnInverse")?;
    if n == 0 {
        call.fill(values, ScalarNumber::Int(0))?;
        call.fill(inverse, ScalarNumber::Int(0))?;
        if call.has("countsOut") {
            call.fill(call.tensor("countsOut")?, ScalarNumber::Int(0))?;
        }
        return Ok(());
    }
    let keys = distinct_keys(call, x)?;
    let order = places_in_order(call, &keys, n)?;
    let sorted = gathered(call, &keys, 0, &order);
    // The first entry starts a run, and every other one that differs from its predecessor.
    let (front, rest) = (
        sliced(call, &sorted, 0, [0, as_int(n) - 1, 1]),
        sliced(call, &sorted, 0, [1, as_int(n), 1]),
    );
    let is_new = (!front.equal(&rest)).cast(DType::I64);
    let first = call.constant_ints(&[1]);
    let is_new = joined(call, &[first, is_new], 0);
    let starts = call.node("NonZero", &[&is_new], DType::I64);
    let row = call.constant_ints(&[-1]);
    let starts = starts.reshaped_by(&row);
    // The first of equal elements in the tensor represents them.
    let places = gathered(call, &order, 0, &starts);
    let value = call.read_raw(x)?;
    let value = value.reshaped(&[n]);
    call.write_raw_part(values, gathered(call, &value, 0, &places))?;
    if has_inverse {
        call.expect_shape(inverse, x.dims())?;
        let axis = call.constant(0.0, DType::I64);
        let groups = call.node("CumSum", &[&is_new, &axis], DType::I64);
        let groups = &groups - 1.0;
        // Back to the order of the tensor: the sort returned the index of each element.
        let zeros = constant_of(call, 0.0, DType::I64, &[n]);
        let into = [&zeros, &order, &groups];
        let found = call.node_with("ScatterElements", &into, axis_attribute(0), DType::I64);
        call.write(inverse, found.reshaped(x.dims()), DType::I64)?;
    } else {
        call.fill(inverse, ScalarNumber::Int(0))?;
    }
    if call.has("countsOut") {
        write_counts(call, &starts, n, has_counts)?;
    }
    Ok(())
}

/// Number of entries from each start to the next.
fn write_counts(call: &OperatorCall<'_>, starts: &Value, n: usize, has_counts: bool) -> Composed {
    let counts = call.tensor("countsOut")?;
    if !has_counts {
        return call.fill(counts, ScalarNumber::Int(0));
    }
    expect_room(call, counts, &[None])?;
    let next = sliced(call, starts, 0, [1, i64::MAX, 1]);
    let end = call.constant_dims(&[n]);
    let next = joined(call, &[next, end], 0);
    call.write_part(counts, &next - starts, DType::I64)
}
