//! Elements selected by a list of indices or masks for several axes.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::families::indexing::NOWHERE;
use crate::aclnn::families::movement::{
    Elements, as_int, axis_attribute, expect_same_dtype, gathered, joined, transposed,
};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::is_integer;
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::broadcast;

/// Calls a macro with the rows of operators with lists of indices.
#[macro_export]
macro_rules! aclnn_index_lists {
    ($rows:ident) => {
        $rows! { "lists of indices";
            Index("aclnn_index.h", "the elements of self at the places, or where the masks hold, of indices; an empty one takes a whole axis") by index():
                aclnnIndex(self_: Tensor, indices: TensorList, out: Out);
            IndexPutV2("aclnn_index_put_impl.h", "selfRef with values, or plus them, at the places of indices") by put():
                aclnnIndexPutImpl(selfRef: Inplace, indices: TensorList, values: Tensor, accumulate: Flag, unsafe_: Flag);
        }
    };
}
aclnn_index_lists!(operator_rows);

/// A tensor of indices, or a mask, with its axes.
struct AxisIndex<'a> {
    tensor: &'a TensorArgument,
    axis: usize,
    /// Number of axes covered by a mask; 1 for indices.
    n_axes: usize,
}

/// The split of a tensor by a list of indices.
struct Indices<'a> {
    list: Vec<AxisIndex<'a>>,
    /// The axes of the tensor that are indexed, in order.
    axes: Vec<usize>,
    /// Number of axes of the broadcast indices. A mask yields one of unknown size.
    n_place_axes: usize,
    has_mask: bool,
}

impl<'a> Indices<'a> {
    fn read(call: &OperatorCall<'a>, x: &TensorArgument) -> Composed<Indices<'a>> {
        let (mut list, mut axes, mut axis) = (Vec::new(), Vec::new(), 0);
        let (mut n_place_axes, mut has_mask) = (0, false);
        for tensor in call.tensors("indices")? {
            let is_mask = tensor.dtype == DType::Bool;
            let n_axes = if is_mask { tensor.n_axes() } else { 1 };
            // An empty tensor means a whole axis, unless it is a valid mask.
            if tensor.is_empty() && tensor.n_axes() <= 1 && !(is_mask && x.is_empty()) {
                axis += 1;
                continue;
            }
            let covered = x.dims().get(axis..axis + n_axes).unwrap_or_default();
            let fits = !covered.is_empty() && (!is_mask || covered == tensor.dims());
            if !(fits && (is_mask || is_integer(tensor.dtype))) {
                let room = x.dims().get(axis..).unwrap_or_default();
                return Err(Refusal::invalid(format!(
                    "`indices` has {tensor}; expected int32 or int64, or booleans of the shape \
                     of axis {axis} and the following ones, {room:?}"
                )));
            }
            has_mask |= is_mask;
            n_place_axes = n_place_axes.max(if is_mask { 1 } else { tensor.n_axes() });
            axes.extend(axis..axis + n_axes);
            list.push(AxisIndex {
                tensor,
                axis,
                n_axes,
            });
            axis += n_axes;
        }
        if axis > x.n_axes() || list.is_empty() {
            let n = x.n_axes();
            return Err(Refusal::invalid(format!(
                "`indices` stands for {axis} axes; expected 1 to {n}, one of them indexed"
            )));
        }
        Ok(Indices {
            list,
            axes,
            n_place_axes,
            has_mask,
        })
    }

    /// Whether the indexed axes are adjacent: then the indices' axes replace them, otherwise they
    /// come first.
    fn follow_each_other(&self) -> bool {
        self.axes.windows(2).all(|pair| pair[0] + 1 == pair[1])
    }

    /// The axes of the tensor with the indexed ones first.
    fn order(&self, n_axes: usize) -> Vec<usize> {
        let mut order = self.axes.clone();
        order.extend((0..n_axes).filter(|axis| !self.axes.contains(axis)));
        order
    }

    /// Number of axes before the indices' axes in the result.
    fn n_before(&self) -> usize {
        if self.follow_each_other() {
            self.axes.first().copied().unwrap_or(0)
        } else {
            0
        }
    }

    /// Flat indices into the combined indexed axes. An index beyond an axis is beyond the
    /// combination too.
    fn places(&self, call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<Value> {
        let mut parts: Vec<(Value, usize)> = Vec::new();
        for index in &self.list {
            if index.tensor.dtype == DType::Bool {
                let mask = call.read(index.tensor, DType::Bool)?;
                let rows = call.node("NonZero", &[&mask], DType::I64);
                for i in 0..index.n_axes {
                    let row = call.constant(i64_as_f64(i), DType::I64);
                    parts.push((gathered(call, &rows, 0, &row), x.dims()[index.axis + i]));
                }
            } else {
                let places = call.read(index.tensor, DType::I64)?;
                parts.push((places, x.dims()[index.axis]));
            }
        }
        let mut row: Option<Value> = None;
        let mut is_beyond: Option<Value> = None;
        for (places, n) in parts {
            let extent = call.constant_dims(&[n]);
            let extent = extent.reshaped(&[]);
            let places = places.less(0.0).choose(&places + &extent, &places);
            let is_out = places.less(0.0) | places.greater_or_equal(&extent);
            // An index beyond one axis could otherwise be a valid flat index of another element.
            is_beyond = Some(match is_beyond {
                None => is_out,
                Some(before) => &before | &is_out,
            });
            row = Some(match row {
                None => places,
                Some(before) => &before * &extent + &places,
            });
        }
        let (Some(row), Some(is_beyond)) = (row, is_beyond) else {
            return Err(Refusal::invalid("`indices` has no index"));
        };
        Ok(is_beyond.choose(NOWHERE, &row))
    }

    /// The shape of the indices, unless a mask makes it depend on values.
    fn place_dims(&self) -> Composed<Vec<usize>> {
        let mut dims = Vec::new();
        for index in &self.list {
            dims = broadcast(&dims, index.tensor.dims())
                .ok_or_else(|| Refusal::invalid("`indices` do not broadcast"))?;
        }
        Ok(dims)
    }
}

fn i64_as_f64(n: usize) -> f64 {
    // Numbers of axes are small.
    u32::try_from(n).map_or(f64::NAN, f64::from)
}

/// The tensor as a matrix: a row for each combination of the indexed axes.
fn combined(
    call: &OperatorCall<'_>,
    value: &Value,
    x: &TensorArgument,
    indices: &Indices<'_>,
) -> Value {
    let value = transposed(call, value, &indices.order(x.n_axes()));
    let n_rows: usize = indices.axes.iter().map(|&axis| x.dims()[axis]).product();
    let n_columns = x.n_elements().checked_div(n_rows).unwrap_or(0);
    value.reshaped(&[n_rows, n_columns])
}

/// The shapes of the axes before and after the indexed ones.
fn other_dims(x: &TensorArgument, indices: &Indices<'_>) -> (Vec<usize>, Vec<usize>) {
    let others = (0..x.n_axes()).filter(|axis| !indices.axes.contains(axis));
    let mut before: Vec<usize> = others.map(|axis| x.dims()[axis]).collect();
    let behind = before.split_off(indices.n_before().min(before.len()));
    (before, behind)
}

fn index(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    let indices = Indices::read(call, x)?;
    let (before, behind) = other_dims(x, &indices);
    let n_places = indices.n_place_axes;
    if !indices.has_mask {
        let dims = [&before[..], &indices.place_dims()?, &behind].concat();
        call.expect_shape(out, &dims)?;
    } else if out.n_axes() != before.len() + n_places + behind.len() {
        return Err(Refusal::invalid(format!(
            "`out` is {out}; expected another number of axes"
        )));
    }
    refuse_if!(
        x.is_empty() && !out.is_empty(),
        "`self` is {x}, which has no element to take"
    );
    let value = call.read_raw(x)?;
    let value = combined(call, &value, x, &indices);
    let places = indices.places(call, x)?;
    let result = gathered(call, &value, 0, &places);
    // The indices' axes come first here, then the other axes as one.
    let shape = call.node("Shape", &[&places], DType::I64);
    // The sizes of the other axes are known, those of the indices may not be.
    let others = [&before[..], &behind].concat();
    let others = call.constant_dims(&others);
    let dims = joined(call, &[shape, others], 0);
    let result = result.reshaped_by(&dims);
    let n_before = before.len();
    let mut order: Vec<usize> = (n_places..n_places + n_before).collect();
    order.extend(0..n_places);
    order.extend(n_places + n_before..out.n_axes());
    let result = if order.is_empty() {
        result
    } else {
        transposed(call, &result, &order)
    };
    call.write_raw(out, &result)
}

fn put(call: &OperatorCall<'_>) -> Composed {
    let (x, values) = (call.tensor("selfRef")?, call.tensor("values")?);
    expect_same_dtype(call, values, x)?;
    let indices = Indices::read(call, x)?;
    let (before, behind) = other_dims(x, &indices);
    let n_places = indices.n_place_axes;
    let accumulates = call.flag("accumulate")?;
    let elements = if accumulates {
        Elements::Numbers(x.dtype)
    } else {
        Elements::Bits(x.dtype)
    };
    let value = elements.read(call, x)?;
    if x.is_empty() || (!indices.has_mask && indices.place_dims()?.contains(&0)) {
        elements.write(call, x, &value)?;
        return Ok(());
    }
    let matrix = combined(call, &value, x, &indices);
    let places = indices.places(call, x)?;
    // The number of elements that a mask selects is known only when the graph runs.
    let shape = call.node("Shape", &[&places], DType::I64);
    let source = elements.read(call, values)?;
    // The values are broadcast to the indexed shape, then transposed to the order of the matrix.
    let (n_before, n_behind) = (before.len(), behind.len());
    let before_dims = call.constant_dims(&before);
    let behind_dims = call.constant_dims(&behind);
    let dims = joined(call, &[before_dims, shape, behind_dims], 0);
    let mut source = source.expanded_by(&dims);
    let n = n_before + n_places + n_behind;
    if n > 0 {
        let mut order: Vec<usize> = (n_before..n_before + n_places).collect();
        order.extend(0..n_before);
        order.extend(n_before + n_places..n);
        source = transposed(call, &source, &order);
    }
    // A row of the matrix holds all elements of one index.
    let n_columns: usize = before.iter().chain(&behind).product();
    let columns = call.constant_ints(&[-1, as_int(n_columns)]);
    let source = source.reshaped_by(&columns);
    let column = call.constant_ints(&[-1, 1]);
    let all = call.node("Shape", &[&source], DType::I64);
    let places = places.reshaped_by(&column).expanded_by(&all);
    let mut attributes = axis_attribute(0);
    if accumulates {
        attributes.push(("reduction", OperatorAttribute::Text("add".to_owned())));
    }
    let inputs = [&matrix, &places, &source];
    let result = call.node_with("ScatterElements", &inputs, attributes, matrix.dtype);
    let order = indices.order(x.n_axes());
    let dims: Vec<usize> = order.iter().map(|&axis| x.dims()[axis]).collect();
    let result = result.reshaped(&dims);
    let mut back = vec![0; order.len()];
    for (at, &axis) in order.iter().enumerate() {
        back[axis] = at;
    }
    elements.write(call, x, transposed(call, &result, &back))
}
