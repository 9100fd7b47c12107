//! Operators that add, replace or fill entries of one axis.

use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, arithmetic_type, refuse_if};
use crate::aclnn::families::indexing::{expand_indices, read_any_places, read_places};
use crate::aclnn::families::movement::{
    Elements, as_int, axis_of, constant_of, expect_same_dtype, sliced,
};
use crate::aclnn::families::scattering::{Reduction, scattered};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::is_float;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of operators on entries of an axis.
#[macro_export]
macro_rules! aclnn_entries {
    ($rows:ident) => {
        $rows! { "entries of an axis";
            InplaceIndexAdd("aclnn_index_add.h", "self plus alpha * source at the places of index in axis dim") by add_entries():
                aclnnIndexAdd(self_: Tensor, dim: Int, index: Tensor, source: Tensor, alpha: Scalar, out: Out);
            InplaceIndexAdd("aclnn_index_add_v2.h", "self plus alpha * source at the places of index in axis dim") by add_entries():
                aclnnIndexAddV2(self_: Tensor, dim: Int, index: Tensor, source: Tensor, alpha: Scalar, mode: Int, out: Out);
            ScatterUpdate("aclnn_index_copy.h", "selfRef with the entries of source at the places of index in axis dim") by copy_entries():
                aclnnIndexCopy(selfRef: Tensor, dim: Int, index: Tensor, source: Tensor, outRef: Out),
                aclnnInplaceIndexCopy(selfRef: Inplace, dim: Int, index: Tensor, source: Tensor);
            IndexFill("aclnn_index_fill.h", "self with value at the places of index in axis dim; places beyond it are left out") by fill_entries():
                aclnnIndexFill(self_: Tensor, dim: Int, index: Tensor, value: Scalar, out: Out),
                aclnnInplaceIndexFill(selfRef: Inplace, dim: Int, index: Tensor, value: Scalar);
            IndexFill("aclnn_index_fill_tensor.h", "self with value at the places of index in axis dim") by fill_listed_entries():
                aclnnIndexFillTensor(self_: Tensor, dim: Int, index: IntArray, value: Scalar, out: Out),
                aclnnInplaceIndexFillTensor(selfRef: Inplace, dim: Int, index: IntArray, value: Scalar);
        }
    };
}
aclnn_entries!(operator_rows);

/// A tensor and the axis with the entries in a list of indices.
struct EntryPlaces<'a> {
    x: &'a TensorArgument,
    out: &'a TensorArgument,
    index: &'a TensorArgument,
    axis: usize,
    /// The shape of the tensor; a tensor without axes is treated as one element.
    dims: Vec<usize>,
}

impl<'a> EntryPlaces<'a> {
    fn read(call: &OperatorCall<'a>) -> Composed<EntryPlaces<'a>> {
        let (x, index) = (call.tensor("self")?, call.tensor("index")?);
        let out = call.tensor(if call.has("outRef") { "outRef" } else { "out" })?;
        expect_same_dtype(call, out, x)?;
        call.expect_shape(out, x.dims())?;
        refuse_if!(
            index.n_axes() > 1,
            "`index` is {index}; expected one axis at most"
        );
        let axis = axis_of(call, "dim", x)?;
        let dims = if x.n_axes() == 0 {
            vec![1]
        } else {
            x.dims().to_vec()
        };
        Ok(EntryPlaces {
            x,
            out,
            index,
            axis,
            dims,
        })
    }

    /// The tensor with the new entries, one for each index.
    fn source(&self, call: &OperatorCall<'a>) -> Composed<&'a TensorArgument> {
        let source = call.tensor("source")?;
        expect_same_dtype(call, source, self.x)?;
        let mut dims = self.dims.clone();
        dims[self.axis] = self.index.n_elements();
        let is_one = source.n_axes() == 0 && dims == [1];
        if !is_one {
            call.expect_shape(source, &dims)?;
        }
        Ok(source)
    }

    /// `value` with the elements of `source`, which has one entry for each index.
    fn scatter(
        &self,
        call: &OperatorCall<'_>,
        elements: Elements,
        source: &Value,
        reduction: Reduction,
    ) -> Composed {
        let value = elements.read(call, self.x)?;
        if self.index.is_empty() || self.x.is_empty() {
            elements.write(call, self.out, &value)?;
            return Ok(());
        }
        let value = value.reshaped(&self.dims);
        let mut dims = self.dims.clone();
        dims[self.axis] = self.index.n_elements();
        let places = read_places(call, self.index)?;
        let places = expand_indices(call, &places, self.axis, &dims);
        let source = source.reshaped(&dims);
        let result = scattered(call, [&value, &places, &source], self.axis, reduction);
        elements.write(call, self.out, result.reshaped(self.x.dims()))
    }
}

fn add_entries(call: &OperatorCall<'_>) -> Composed {
    let entries = EntryPlaces::read(call)?;
    let source = entries.source(call)?;
    let (alpha, dtype) = (call.scalar("alpha")?, entries.x.dtype);
    if alpha.is_float() && !is_float(dtype) {
        let found = alpha.dtype;
        return Err(Refusal::invalid(format!(
            "`alpha` is {found}; expected an integer for elements of type {dtype}"
        )));
    }
    let elements = Elements::Numbers(dtype);
    let mut value = elements.read(call, source)?;
    // Multiplying by 1 would change nothing.
    if alpha.as_f64() != 1.0 {
        let alpha = call.scalar_value(alpha, arithmetic_type(dtype))?;
        value = &value * &alpha;
    }
    entries.scatter(call, elements, &value, Reduction::Add)
}

fn copy_entries(call: &OperatorCall<'_>) -> Composed {
    let entries = EntryPlaces::read(call)?;
    let source = entries.source(call)?;
    let elements = Elements::Bits(entries.x.dtype);
    let value = elements.read(call, source)?;
    entries.scatter(call, elements, &value, Reduction::Replace)
}

fn fill_entries(call: &OperatorCall<'_>) -> Composed {
    let entries = EntryPlaces::read(call)?;
    let number = call.scalar("value")?.number;
    let n = entries.dims[entries.axis];
    let elements = Elements::Bits(entries.x.dtype);
    if entries.index.is_empty() {
        let value = elements.read(call, entries.x)?;
        elements.write(call, entries.out, &value)?;
        return Ok(());
    }
    // Places beyond the axis mark an additional entry, which is cut off afterwards.
    let places = read_any_places(call, entries.index)?;
    let places = places.reshaped(&[entries.index.n_elements()]);
    let behind = call.constant_dims(&[n]);
    let before = call.constant_ints(&[-as_int(n)]);
    let is_beyond = places.less(&before) | places.greater(&behind);
    let places = places.less(0.0).choose(&places + &behind, &places);
    let places = is_beyond.choose(&behind, &places);
    let zeros = constant_of(call, 0.0, DType::I64, &[n + 1]);
    let ones = constant_of(call, 1.0, DType::I64, &[entries.index.n_elements()]);
    let marks = scattered(call, [&zeros, &places, &ones], 0, Reduction::Replace);
    let marks = sliced(call, &marks, 0, [0, as_int(n), 1]);
    // Indices that occur twice mark the same entry.
    let is_filled = marks.cast(DType::Bool);
    fill_marked(call, &entries, &is_filled, number)
}

/// Writes the number where `is_filled`, one boolean for each entry, is true.
fn fill_marked(
    call: &OperatorCall<'_>,
    entries: &EntryPlaces<'_>,
    is_filled: &Value,
    number: ScalarNumber,
) -> Composed {
    fill_along(
        call,
        [entries.x, entries.out],
        entries.axis,
        is_filled,
        number,
    )
}

fn fill_along(
    call: &OperatorCall<'_>,
    [x, out]: [&TensorArgument; 2],
    axis: usize,
    is_filled: &Value,
    number: ScalarNumber,
) -> Composed {
    let elements = Elements::Bits(x.dtype);
    let value = elements.read(call, x)?;
    let number = elements.number(call, number)?;
    let mut along = vec![1; x.n_axes()];
    if let Some(n) = along.get_mut(axis) {
        *n = x.dims()[axis];
    }
    let is_filled = is_filled.reshaped(&along);
    elements.write(call, out, is_filled.choose(&number, &value))
}

fn fill_listed_entries(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    call.expect_shape(out, x.dims())?;
    let (axis, index) = (axis_of(call, "dim", x)?, call.ints("index")?);
    let n = x.dims().get(axis).copied().unwrap_or(1);
    let mut marks = vec![0_i64; n];
    for &place in index {
        let place_from_start = if place < 0 {
            place.saturating_add(as_int(n))
        } else {
            place
        };
        let mark = usize::try_from(place_from_start)
            .ok()
            .and_then(|at| marks.get_mut(at));
        *mark.ok_or_else(|| {
            Refusal::invalid(format!("`index` has {place}; expected a place of {n}"))
        })? = 1;
    }
    let marks = call.constant_ints(&marks);
    let is_filled = marks.cast(DType::Bool);
    let number = call.scalar("value")?.number;
    fill_along(call, [x, out], axis, &is_filled, number)
}
