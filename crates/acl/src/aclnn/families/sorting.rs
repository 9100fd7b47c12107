//! Sorting and order statistics.
//!
//! Elements are compared by integer keys in PyTorch's order: NaN is above everything, and the two
//! zeros are equal. All engines sort integers the same way.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::families::movement::{
    as_int, axis_attribute, axis_of, counted, expect_same_dtype, sliced,
};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{is_float, is_integer};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of operators on orders.
#[macro_export]
macro_rules! aclnn_sorting {
    ($rows:ident) => {
        $rows! { "orders";
            TopKV2("aclnn_topk.h", "the k largest or smallest entries of axis dim, with their places") by top():
                aclnnTopk(self_: Tensor, k: Int, dim: Int, largest: Flag, sorted: Flag, valuesOut: Out, indicesOut: Out);
            Sort("aclnn_sort.h", "self in order along axis dim, with the places where its entries were") by sort():
                aclnnSort(self_: Tensor, stable: Flag, dim: Int, descending: Flag, valuesOut: Out, indicesOut: Out);
            SortWithIndex("aclnn_sort_with_index.h", "x in order along axis, and index in the same one") by sort_with_index():
                aclnnSortWithIndex(x: Tensor, index: Tensor, axis: Int, descending: Flag, stable: Flag, valuesOut: Out, indicesOut: Out);
            Sort("aclnn_argsort.h", "the places of the entries of axis dim in order") by argsort():
                aclnnArgsort(self_: Tensor, dim: Int, descending: Flag, out: Out);
            KthValue("aclnn_kthvalue.h", "the k-th smallest entry of axis dim, counted from 1, with its place") by kth_value():
                aclnnKthvalue(self_: Tensor, k: Int, dim: Int, keepdim: Flag, valuesOut: Out, indicesOut: Out);
            Median("aclnn_median.h", "the lower median of all elements; NaN if one is") by median():
                aclnnMedian(self_: Tensor, valuesOut: Out);
            Median("aclnn_median.h", "the lower median of axis dim, with its place; NaN if one is") by median():
                aclnnMedianDim(self_: Tensor, dim: Int, keepDim: Flag, valuesOut: Out, indicesOut: Out);
            NanMedian("aclnn_median.h", "the lower median of all elements but NaN") by median_with(false):
                aclnnNanMedian(self_: Tensor, out: Out);
            NanMedian("aclnn_median.h", "the lower median of axis dim without NaN, with its place") by median_with(false):
                aclnnNanMedianDim(self_: Tensor, dim: Int, keepDim: Flag, valuesOut: Out, indicesOut: Out);
        }
    };
}
aclnn_sorting!(operator_rows);

/// The key of NaN, above that of infinity in any dtype. A double represents it exactly.
pub(super) const NAN_KEY: f64 = 9_221_120_237_041_090_560.0;

/// Integers in the order of the elements.
pub(super) fn keys(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<Value> {
    // The sign bit, or all bits below it, and the bits of infinity.
    let (sign, infinity) = match x.dtype {
        DType::F16 => (0x8000, 0x7C00),
        DType::BF16 => (0x8000, 0x7F80),
        DType::F32 => (0x7FFF_FFFF, 0x7F80_0000),
        DType::F64 => (i64::MAX, 0x7FF0_0000_0000_0000),
        _ => return call.read(x, DType::I64),
    };
    let bits = call.read_raw(x)?;
    // Keys of every dtype have 64 bits, which the engines sort.
    let bits = bits.cast(DType::I64);
    let (size, is_negative) = if matches!(x.dtype, DType::F32 | DType::F64) {
        // Single-precision bits are sign-extended, like those of double precision. No step
        // overflows: larger values are clamped before.
        let last = call.constant(-1.0, DType::I64);
        let below = call.node("Min", &[&bits, &last], DType::I64);
        let largest = scalar(call, sign);
        let size = &below + 1.0 + &largest;
        (size, bits.less(0.0))
    } else {
        let sign = scalar(call, sign);
        let size = &bits - &sign;
        (size, bits.greater_or_equal(&sign))
    };
    let size = is_negative.choose(&size, &bits);
    let infinity = scalar(call, infinity);
    Ok(size
        .greater(&infinity)
        .choose(NAN_KEY, is_negative.choose(-&size, &bits)))
}

/// An integer scalar beyond the exact range of a double.
fn scalar(call: &OperatorCall<'_>, number: i64) -> Value {
    let one = call.constant_ints(&[number]);
    one.reshaped(&[])
}

/// Keys in a row, with a distinct key for each NaN.
pub(super) fn distinct_keys(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<Value> {
    let n = x.n_elements();
    let keys = keys(call, x)?;
    let keys = keys.reshaped(&[n]);
    if !is_float(x.dtype) {
        return Ok(keys);
    }
    let places = counted(call, n)?;
    Ok(keys.equal(NAN_KEY).choose(NAN_KEY + &places, &keys))
}

/// The indices of keys in a row, in ascending order.
pub(super) fn places_in_order(call: &OperatorCall<'_>, keys: &Value, n: usize) -> Composed<Value> {
    first_places(call, keys, 0, n, false)
}

/// The indices of the first `k` keys of an axis in order. The sort is stable.
fn first_places(
    call: &OperatorCall<'_>,
    keys: &Value,
    axis: usize,
    k: usize,
    is_descending: bool,
) -> Composed<Value> {
    // The smallest numbers are the largest complements: engines agree on ties there.
    let keys = if is_descending {
        keys.clone()
    } else {
        complement(keys)
    };
    let count = call.constant_dims(&[k]);
    let mut attributes = axis_attribute(axis);
    attributes.push(("largest", OperatorAttribute::Int(1)));
    attributes.push(("sorted", OperatorAttribute::Int(1)));
    let dtypes = [DType::I64; 2];
    let inputs = [Some(&keys), Some(&count)];
    let mut results = call.node_of_many("TopK", &inputs, attributes, &dtypes);
    Ok(results.swap_remove(1))
}

/// A tensor with an axis to sort; one without axes counts as one element.
pub(super) struct SortedAxis<'a> {
    pub(super) x: &'a TensorArgument,
    pub(super) axis: usize,
    pub(super) dims: Vec<usize>,
}

impl<'a> SortedAxis<'a> {
    pub(super) fn new(x: &'a TensorArgument, axis: usize) -> SortedAxis<'a> {
        let dims = if x.n_axes() == 0 {
            vec![1]
        } else {
            x.dims().to_vec()
        };
        SortedAxis { x, axis, dims }
    }

    pub(super) fn read(
        call: &OperatorCall<'a>,
        tensor: &str,
        axis: &str,
    ) -> Composed<SortedAxis<'a>> {
        let x = call.tensor(tensor)?;
        Ok(SortedAxis::new(x, axis_of(call, axis, x)?))
    }

    pub(super) fn n(&self) -> usize {
        self.dims[self.axis]
    }

    /// The shape of the tensor with another size along the axis.
    fn resized(&self, n: usize) -> Vec<usize> {
        let mut dims = self.dims.clone();
        dims[self.axis] = n;
        if self.x.n_axes() == 0 && n == 1 {
            Vec::new()
        } else {
            dims
        }
    }

    pub(super) fn keys(&self, call: &OperatorCall<'_>) -> Composed<Value> {
        let keys = keys(call, self.x)?;
        Ok(keys.reshaped(&self.dims))
    }

    /// The indices of the first `k` entries in order. The sort is stable.
    fn places(
        &self,
        call: &OperatorCall<'_>,
        keys: &Value,
        k: usize,
        is_descending: bool,
    ) -> Composed<Value> {
        first_places(call, keys, self.axis, k, is_descending)
    }

    /// Entries at indices of the axis, by their bits.
    fn entries(&self, call: &OperatorCall<'_>, places: &Value) -> Composed<Value> {
        let value = call.read_raw(self.x)?;
        let value = value.reshaped(&self.dims);
        let attributes = axis_attribute(self.axis);
        Ok(call.node_with("GatherElements", &[&value, places], attributes, value.dtype))
    }

    /// Stores the entries at indices, and the indices.
    pub(super) fn write(
        &self,
        call: &OperatorCall<'_>,
        places: &Value,
        values_out: &TensorArgument,
        places_out: Option<&TensorArgument>,
    ) -> Composed {
        expect_same_dtype(call, values_out, self.x)?;
        let values = self.entries(call, places)?;
        call.write_raw(values_out, values.reshaped(values_out.dims()))?;
        if let Some(out) = places_out {
            write_places(call, places, out)?;
        }
        Ok(())
    }
}

fn write_places(call: &OperatorCall<'_>, places: &Value, out: &TensorArgument) -> Composed {
    call.expect_dtype(out, is_integer, "int64")?;
    call.write(out, places.reshaped(out.dims()), DType::I64)
}

/// Reverses the order of integers without overflow.
pub(super) fn complement(keys: &Value) -> Value {
    -1.0 - keys
}

fn top(call: &OperatorCall<'_>) -> Composed {
    let sorted = SortedAxis::read(call, "self", "dim")?;
    let (values, places) = (call.tensor("valuesOut")?, call.tensor("indicesOut")?);
    let number = call.int("k")?;
    let n = sorted.n();
    let k = usize::try_from(number)
        .ok()
        .filter(|&k| k <= n)
        .ok_or_else(|| {
            Refusal::invalid(format!(
                "`k` is {number}; expected 0 to {n}, the entries of the axis"
            ))
        })?;
    // The axis keeps only `k` entries.
    let dims = sorted.resized(k);
    call.expect_shape(values, &dims)?;
    call.expect_shape(places, &dims)?;
    let keys = sorted.keys(call)?;
    let found = sorted.places(call, &keys, k, call.flag("largest")?)?;
    sorted.write(call, &found, values, Some(places))
}

fn sort(call: &OperatorCall<'_>) -> Composed {
    let sorted = SortedAxis::read(call, "self", "dim")?;
    let (values, places) = (call.tensor("valuesOut")?, call.tensor("indicesOut")?);
    call.expect_shape(values, sorted.x.dims())?;
    call.expect_shape(places, sorted.x.dims())?;
    let keys = sorted.keys(call)?;
    let found = sorted.places(call, &keys, sorted.n(), call.flag("descending")?)?;
    sorted.write(call, &found, values, Some(places))
}

fn sort_with_index(call: &OperatorCall<'_>) -> Composed {
    let sorted = SortedAxis::read(call, "x", "axis")?;
    let index = SortedAxis::new(call.tensor("index")?, sorted.axis);
    let (values, places) = (call.tensor("valuesOut")?, call.tensor("indicesOut")?);
    for tensor in [index.x, values, places] {
        call.expect_shape(tensor, sorted.x.dims())?;
    }
    let keys = sorted.keys(call)?;
    let found = sorted.places(call, &keys, sorted.n(), call.flag("descending")?)?;
    sorted.write(call, &found, values, None)?;
    index.write(call, &found, places, None)
}

fn argsort(call: &OperatorCall<'_>) -> Composed {
    let sorted = SortedAxis::read(call, "self", "dim")?;
    let out = call.tensor("out")?;
    call.expect_shape(out, sorted.x.dims())?;
    let keys = sorted.keys(call)?;
    let found = sorted.places(call, &keys, sorted.n(), call.flag("descending")?)?;
    write_places(call, &found, out)
}

/// The shape of a result with one entry along the axis.
fn one_entry_dims(sorted: &SortedAxis<'_>, keeps_axis: bool) -> Vec<usize> {
    let mut dims = sorted.resized(1);
    if !keeps_axis && !dims.is_empty() {
        dims.remove(sorted.axis);
    }
    dims
}

fn kth_value(call: &OperatorCall<'_>) -> Composed {
    let sorted = SortedAxis::read(call, "self", "dim")?;
    let (values, places) = (call.tensor("valuesOut")?, call.tensor("indicesOut")?);
    let dims = one_entry_dims(&sorted, call.flag("keepdim")?);
    call.expect_shape(values, &dims)?;
    call.expect_shape(places, &dims)?;
    let (number, n) = (call.int("k")?, sorted.n());
    let k = usize::try_from(number)
        .ok()
        .filter(|&k| (1..=n).contains(&k))
        .ok_or_else(|| {
            Refusal::invalid(format!(
                "`k` is {number}; expected 1 to {n}, the entries of the axis"
            ))
        })?;
    let keys = sorted.keys(call)?;
    let found = sorted.places(call, &keys, k, false)?;
    // The last of the k smallest.
    let found = sliced(call, &found, sorted.axis, [as_int(k) - 1, as_int(k), 1]);
    sorted.write(call, &found, values, Some(places))
}

fn median(call: &OperatorCall<'_>) -> Composed {
    median_with(call, true)
}

fn median_with(call: &OperatorCall<'_>, is_nan_shown: bool) -> Composed {
    let x = call.tensor("self")?;
    let has_axis = call.has("dim");
    let values = call.tensor(if call.has("valuesOut") {
        "valuesOut"
    } else {
        "out"
    })?;
    let sorted = if has_axis {
        SortedAxis::read(call, "self", "dim")?
    } else {
        SortedAxis {
            x,
            axis: 0,
            dims: vec![x.n_elements()],
        }
    };
    let places = if has_axis {
        let dims = one_entry_dims(&sorted, call.flag("keepDim")?);
        call.expect_shape(values, &dims)?;
        call.expect_shape(call.tensor("indicesOut")?, &dims)?;
        Some(call.tensor("indicesOut")?)
    } else {
        // The vendor's examples have an axis of one element here, PyTorch none.
        if values.dims() != [1] {
            call.expect_shape(values, &[])?;
        }
        None
    };
    let n = sorted.n();
    refuse_if!(n == 0, "`self` is {x}; expected an entry to find");
    let keys = sorted.keys(call)?;
    let order = sorted.places(call, &keys, n, false)?;
    let is_nan = keys.equal(NAN_KEY).cast(DType::I64);
    // NaN comes last, and the median is that of the numbers before it.
    let axes = call.constant_dims(&[sorted.axis]);
    let n_nan = call.node("ReduceSum", &[&is_nan, &axes], DType::I64);
    let all = call.constant_dims(&[n]);
    let n_numbers = &all - &n_nan;
    let zero = call.constant(0.0, DType::I64);
    let last = &n_numbers - 1.0;
    let last = call.node("Max", &[&last, &zero], DType::I64);
    let mut middle = &last / 2.0;
    if is_nan_shown {
        // The first NaN follows the numbers.
        middle = n_nan.greater(&zero).choose(&n_numbers, &middle);
    }
    let attributes = axis_attribute(sorted.axis);
    let found = call.node_with("GatherElements", &[&order, &middle], attributes, DType::I64);
    sorted.write(call, &found, values, places)
}
