//! Elements at the indices in a tensor.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::families::movement::{
    as_int, axis_attribute, axis_of, constant_of, counted, expect_same_dtype, extent, gathered,
    read_moved, transposed,
};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::is_integer;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of operators that take elements by their places.
#[macro_export]
macro_rules! aclnn_indexing {
    ($rows:ident) => {
        $rows! { "elements by their places";
            GatherElements("aclnn_gather.h", "for each element of index the one of self at that place of axis dim") by gather():
                aclnnGather(self_: Tensor, dim: Int, index: Tensor, out: Out);
            GatherV2("aclnn_gather_v2.h", "the entries of axis dim at the places of index, which may count from the end") by gather_entries():
                aclnnGatherV2(self_: Tensor, dim: Int, index: Tensor, out: Out);
            GatherV2("aclnn_gather_v3.h", "as aclnnGatherV2, for each batch of the first batchDims axes on its own") by gather_batches():
                aclnnGatherV3(self_: Tensor, dim: Int, index: Tensor, batchDims: Int, mode: Int, out: Out);
            GatherNd("aclnn_gather_nd.h", "the parts of self at the places whose coordinates are the last axis of indices") by gather_parts():
                aclnnGatherNd(self_: Tensor, indices: Tensor, negativeIndexSupport: Flag, out: Out);
            GatherV2("aclnn_index_select.h", "the entries of axis dim at the places of index") by select():
                aclnnIndexSelect(self_: Tensor, dim: Int, index: Tensor, out: Out);
            GatherV2("aclnn_take.h", "the elements of self, counted row by row, at the places of index") by take():
                aclnnTake(self_: Tensor, index: Tensor, out: Out);
            GatherV2("aclnn_embedding.h", "the rows of weight at the places of indices") by embed():
                aclnnEmbedding(weight: Tensor, indices: Tensor, out: Out);
            OneHot("aclnn_one_hot.h", "onValue where the new axis counts to the number in self, offValue elsewhere") by one_hot():
                aclnnOneHot(self_: Tensor, numClasses: Int32, onValue: Tensor, offValue: Tensor, axis: Int, out: Out);
        }
    };
}
aclnn_indexing!(operator_rows);

/// An index beyond every axis, which makes an engine fail.
pub(super) const NOWHERE: f64 = 9e18;

/// Reads non-negative indices: a negative one makes the run fail, like one beyond the end.
pub(super) fn read_places(call: &OperatorCall<'_>, index: &TensorArgument) -> Composed<Value> {
    let places = read_any_places(call, index)?;
    forward(&places)
}

/// Indices, with negative ones replaced by an invalid one.
fn forward(places: &Value) -> Composed<Value> {
    Ok(places.less(0.0).choose(NOWHERE, places))
}

/// Reads indices that count from the end if negative.
pub(super) fn read_any_places(call: &OperatorCall<'_>, index: &TensorArgument) -> Composed<Value> {
    call.expect_dtype(index, is_integer, "int32 or int64")?;
    call.read(index, DType::I64)
}

/// Checks that there is an element to take, if one is requested.
pub(super) fn expect_elements(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    out: &TensorArgument,
) -> Composed {
    if x.is_empty() && !out.is_empty() {
        let name = call.name(x);
        return Err(Refusal::invalid(format!(
            "`{name}` is {x}, which has no element to take"
        )));
    }
    Ok(())
}

fn gather(call: &OperatorCall<'_>) -> Composed {
    let (x, index) = (call.tensor("self")?, call.tensor("index")?);
    let out = call.tensor("out")?;
    let axis = axis_of(call, "dim", x)?;
    call.expect_shape(out, index.dims())?;
    expect_elements(call, x, out)?;
    let is_inside = index.n_axes() == x.n_axes()
        && (0..x.n_axes()).all(|i| i == axis || index.dims()[i] <= x.dims()[i]);
    if !is_inside {
        let (found, room) = (index.dims(), x.dims());
        return Err(Refusal::invalid(format!(
            "`index` has the shape {found:?}; expected no more than {room:?} but for axis {axis}"
        )));
    }
    let mut value = read_moved(call, x, out)?;
    let mut places = read_any_places(call, index)?;
    // ONNX gathers along an axis, so a scalar tensor gets one.
    if x.n_axes() == 0 {
        value = value.reshaped(&[1]);
        places = places.reshaped(&[1]);
    }
    let inputs = [&value, &places];
    let mut result = call.node_with("GatherElements", &inputs, axis_attribute(axis), value.dtype);
    if x.n_axes() == 0 {
        result = result.reshaped(&[]);
    }
    call.write_raw(out, &result)
}

/// The shape of `x` with an axis replaced by the shape of `index`.
fn replaced_axis(x: &[usize], axis: usize, index: &[usize]) -> Vec<usize> {
    let before = &x[..axis.min(x.len())];
    let behind = x.get(axis + 1..).unwrap_or_default();
    [before, index, behind].concat()
}

fn gather_entries(call: &OperatorCall<'_>) -> Composed {
    let (x, index) = (call.tensor("self")?, call.tensor("index")?);
    let axis = axis_of(call, "dim", x)?;
    let out = call.tensor("out")?;
    let mut dims = replaced_axis(x.dims(), axis, index.dims());
    // A scalar index counts as one element if the output's shape requires it.
    if index.n_axes() == 0 && out.n_axes() == x.n_axes() {
        dims = replaced_axis(x.dims(), axis, &[1]);
    }
    call.expect_shape(out, &dims)?;
    // The vendor's example has negative indices, despite its documentation.
    let places = read_any_places(call, index)?;
    entries_into(call, x, axis, &places, out)
}

/// Writes the entries of an axis at indices; the shapes were checked.
fn entries_into(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    axis: usize,
    places: &Value,
    out: &TensorArgument,
) -> Composed {
    expect_elements(call, x, out)?;
    let mut value = read_moved(call, x, out)?;
    if x.n_axes() == 0 {
        value = value.reshaped(&[1]);
    }
    let result = gathered(call, &value, axis, places);
    call.write_raw(out, result.reshaped(out.dims()))
}

fn gather_batches(call: &OperatorCall<'_>) -> Composed {
    let (x, index, out) = (
        call.tensor("self")?,
        call.tensor("index")?,
        call.tensor("out")?,
    );
    let axis = axis_of(call, "dim", x)?;
    let n_batches = call.int("batchDims")?;
    let batch = usize::try_from(n_batches).ok();
    let batch = batch
        .filter(|&n| n <= axis && n <= index.n_axes())
        .ok_or_else(|| {
            Refusal::invalid(format!(
                "`batchDims` is {n_batches}; expected 0 or more, not beyond axis {axis} or `index`"
            ))
        })?;
    let mode = call.int("mode")?;
    refuse_if!(
        !(0..=1).contains(&mode),
        "`mode` is {mode}; expected 0 or 1"
    );
    if index.dims()[..batch] != x.dims()[..batch] {
        let (found, expected) = (&index.dims()[..batch], &x.dims()[..batch]);
        return Err(Refusal::invalid(format!(
            "`index` has the batches {found:?}; expected {expected:?} as in `self`"
        )));
    }
    // Without batches this is the plain operator, which also accepts tensors without axes.
    if batch == 0 {
        return gather_entries(call);
    }
    let dims = replaced_axis(x.dims(), axis, &index.dims()[batch..]);
    call.expect_shape(out, &dims)?;
    expect_elements(call, x, out)?;
    let value = read_moved(call, x, out)?;
    // The axis is moved after the batches, and the indices' axes back to its position.
    let n = x.n_axes();
    let mut order: Vec<usize> = (0..n).filter(|&i| i != axis).collect();
    order.insert(batch, axis);
    let value = transposed(call, &value, &order);
    let places = read_places(call, index)?;
    let last = [index.dims(), &[1]].concat();
    let places = places.reshaped(&last);
    let attributes = vec![("batch_dims", OperatorAttribute::Int(as_int(batch)))];
    let result = call.node_with("GatherND", &[&value, &places], attributes, value.dtype);
    // The engine puts the axes of the indices after the batches.
    let n_new = index.n_axes() - batch;
    let moved = axis - batch;
    let mut back: Vec<usize> = (0..batch).collect();
    back.extend(batch + n_new..batch + n_new + moved);
    back.extend(batch..batch + n_new);
    back.extend(batch + n_new + moved..dims.len());
    call.write_raw(out, transposed(call, &result, &back))
}

fn gather_parts(call: &OperatorCall<'_>) -> Composed {
    let (x, indices) = (call.tensor("self")?, call.tensor("indices")?);
    let out = call.tensor("out")?;
    let (n_coordinates, outer) = match indices.dims() {
        [outer @ .., n] if (1..=x.n_axes()).contains(n) => (*n, outer),
        _ => {
            let n = x.n_axes();
            return Err(Refusal::invalid(format!(
                "`indices` is {indices}; expected 1 to {n} coordinates on its last axis"
            )));
        }
    };
    let dims = [outer, &x.dims()[n_coordinates..]].concat();
    call.expect_shape(out, &dims)?;
    expect_elements(call, x, out)?;
    let value = read_moved(call, x, out)?;
    let mut places = read_any_places(call, indices)?;
    if call.flag("negativeIndexSupport")? {
        // Not every engine supports negative indices.
        let extents = call.constant_dims(&x.dims()[..n_coordinates]);
        places = places.less(0.0).choose(&places + &extents, &places);
    }
    let places = forward(&places)?;
    let result = call.node("GatherND", &[&value, &places], value.dtype);
    call.write_raw(out, &result)
}

fn select(call: &OperatorCall<'_>) -> Composed {
    let (x, index, out) = (
        call.tensor("self")?,
        call.tensor("index")?,
        call.tensor("out")?,
    );
    let axis = axis_of(call, "dim", x)?;
    refuse_if!(
        index.n_axes() > 1,
        "`index` is {index}; expected one axis at most"
    );
    let mut dims = x.dims().to_vec();
    match dims.get_mut(axis) {
        Some(n) => *n = index.n_elements(),
        None if index.n_elements() == 1 => {}
        None => {
            let text = format!("`index` is {index}; expected one place in a tensor without axes");
            return Err(Refusal::invalid(text));
        }
    }
    call.expect_shape(out, &dims)?;
    let places = read_places(call, index)?;
    entries_into(call, x, axis, &places, out)
}

fn take(call: &OperatorCall<'_>) -> Composed {
    let (x, index, out) = (
        call.tensor("self")?,
        call.tensor("index")?,
        call.tensor("out")?,
    );
    call.expect_shape(out, index.dims())?;
    expect_elements(call, x, out)?;
    let value = read_moved(call, x, out)?;
    // Elements count in row-major order, regardless of the strides in memory.
    let value = value.reshaped(&[x.n_elements()]);
    let places = read_places(call, index)?;
    call.write_raw(out, gathered(call, &value, 0, &places))
}

fn embed(call: &OperatorCall<'_>) -> Composed {
    let (weight, indices) = (call.tensor("weight")?, call.tensor("indices")?);
    let out = call.tensor("out")?;
    let &[_, n_columns] = weight.dims() else {
        let text = format!("`weight` is {weight}; expected a matrix");
        return Err(Refusal::invalid(text));
    };
    let dims = [indices.dims(), &[n_columns]].concat();
    call.expect_shape(out, &dims)?;
    let places = read_places(call, indices)?;
    entries_into(call, weight, 0, &places, out)
}

/// The first element of a tensor.
fn first_element(call: &OperatorCall<'_>, tensor: &TensorArgument) -> Composed<Value> {
    if tensor.is_empty() {
        let name = call.name(tensor);
        return Err(Refusal::invalid(format!(
            "`{name}` is {tensor}; expected an element"
        )));
    }
    let value = call.read_raw(tensor)?;
    let value = value.reshaped(&[tensor.n_elements()]);
    let first = call.constant(0.0, DType::I64);
    Ok(gathered(call, &value, 0, &first))
}

fn one_hot(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let (on, off) = (call.tensor("onValue")?, call.tensor("offValue")?);
    expect_same_dtype(call, on, out)?;
    expect_same_dtype(call, off, out)?;
    call.expect_dtype(x, is_integer, "uint8, int32 or int64")?;
    let n_classes = extent("numClasses", call.int("numClasses")?)?;
    let number = call.int("axis")?;
    let axis = if number == -1 {
        Some(x.n_axes())
    } else {
        usize::try_from(number).ok()
    };
    let axis = axis.filter(|&axis| axis <= x.n_axes()).ok_or_else(|| {
        let n = x.n_axes();
        Refusal::invalid(format!("`axis` is {number}; expected -1 to {n}"))
    })?;
    let mut dims = x.dims().to_vec();
    dims.insert(axis, n_classes);
    call.expect_shape(out, &dims)?;
    // The vendor uses the first element, even if there are more.
    let (on, off) = (first_element(call, on)?, first_element(call, off)?);
    let value = call.read(x, DType::I64)?;
    dims[axis] = 1;
    let value = value.reshaped(&dims);
    let mut along = vec![1; dims.len()];
    along[axis] = n_classes;
    let classes = counted(call, n_classes)?;
    let classes = classes.reshaped(&along);
    // A number without a class equals none, so its whole row is off.
    call.write_raw(out, value.equal(&classes).choose(&on, &off))
}

/// Indices along one axis, expanded to each element of a value of this shape.
pub(super) fn expand_indices(
    call: &OperatorCall<'_>,
    places: &Value,
    axis: usize,
    dims: &[usize],
) -> Value {
    let mut along = vec![1; dims.len()];
    if let Some(n) = along.get_mut(axis) {
        *n = dims[axis];
    }
    let places = places.reshaped(&along);
    let zeros = constant_of(call, 0.0, DType::I64, dims);
    &places + &zeros
}
