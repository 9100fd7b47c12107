//! Elements scattered to indices, optionally with a reduction.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, refuse_if};
use crate::aclnn::families::indexing::read_places;
use crate::aclnn::families::movement::{
    Elements, as_int, axis_attribute, axis_of, constant_of, counted, expect_same_dtype, joined,
    sliced, transposed,
};
use crate::aclnn::promotion::is_float;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of operators that put elements into places.
#[macro_export]
macro_rules! aclnn_scattering {
    ($rows:ident) => {
        $rows! { "elements put into places";
            ScatterElements("aclnn_scatter.h", "self with src at the places of index in axis dim; reduce 0 replaces, 1 adds, 2 multiplies") by scatter():
                aclnnScatter(self_: Tensor, dim: Int, index: Tensor, src: Tensor, reduce: Int, out: Out),
                aclnnInplaceScatter(selfRef: Inplace, dim: Int, index: Tensor, src: Tensor, reduce: Int);
            ScatterElements("aclnn_scatter.h", "self with value at the places of index in axis dim; reduce 0 replaces, 1 adds, 2 multiplies") by scatter():
                aclnnScatterValue(self_: Tensor, dim: Int, index: Tensor, value: Scalar, reduce: Int, out: Out),
                aclnnInplaceScatterValue(selfRef: Inplace, dim: Int, index: Tensor, value: Scalar, reduce: Int);
            ScatterElements("aclnn_scatter_add.h", "self plus src at the places of index in axis dim") by scatter():
                aclnnScatterAdd(self_: Tensor, dim: Int, index: Tensor, src: Tensor, out: Out);
            ScatterElements("aclnn_scatter_reduce.h", "as aclnnScatter; reduce 3 takes the largest, 4 the smallest, 5 the mean; self counts if includeSelf says so") by scatter():
                aclnnScatterReduce(self_: Tensor, dim: Int, index: Tensor, src: Tensor, reduce: Int, includeSelf: Flag, out: Out),
                aclnnInplaceScatterReduce(selfRef: Inplace, dim: Int, index: Tensor, src: Tensor, reduce: Int, includeSelf: Flag);
            ScatterNdUpdate("aclnn_scatter_nd.h", "data with updates at the places whose coordinates are the last axis of indices") by scatter_parts():
                aclnnScatterNd(data: Tensor, indices: Tensor, updates: Tensor, out: Out);
            ScatterNdUpdate("aclnn_scatter_nd_update.h", "varRef with updates at the places whose coordinates are the last axis of indices") by scatter_parts():
                aclnnScatterNdUpdate(varRef: Inplace, indices: Tensor, updates: Tensor);
            Scatter("aclnn_scatter_update.h", "data with batch i of updates from place indices[i] of axis on") by update_batches():
                aclnnInplaceScatterUpdate(data: Inplace, indices: Tensor, updates: Tensor, axis: Int);
        }
    };
}
aclnn_scattering!(operator_rows);

/// How values at the same index are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduction {
    Replace,
    Add,
    Multiply,
    Largest,
    Smallest,
    Mean,
}

impl Reduction {
    fn read(call: &OperatorCall<'_>) -> Composed<Reduction> {
        use Reduction::{Add, Largest, Mean, Multiply, Replace, Smallest};
        if !call.has("reduce") {
            return Ok(Add);
        }
        let number = call.int("reduce")?;
        let all = [Replace, Add, Multiply, Largest, Smallest, Mean];
        // Only the functions with `includeSelf` have the last three.
        let n = if call.has("includeSelf") {
            all.len()
        } else {
            3
        };
        let found = usize::try_from(number).ok().and_then(|at| all[..n].get(at));
        found.copied().ok_or_else(|| {
            let last = n - 1;
            Refusal::invalid(format!("`reduce` is {number}; expected 0 to {last}"))
        })
    }

    /// ONNX's name.
    fn name(self) -> &'static str {
        match self {
            Reduction::Replace => "none",
            Reduction::Add | Reduction::Mean => "add",
            Reduction::Multiply => "mul",
            Reduction::Largest => "max",
            Reduction::Smallest => "min",
        }
    }

    /// The neutral element for dtype `dtype`.
    fn neutral(self, dtype: DType) -> f64 {
        let largest = if is_float(dtype) { f64::INFINITY } else { 1e19 };
        match self {
            Reduction::Replace | Reduction::Add | Reduction::Mean => 0.0,
            Reduction::Multiply => 1.0,
            Reduction::Largest => -largest,
            Reduction::Smallest => largest,
        }
    }
}

/// The operator set whose scatters support maximum and minimum.
const COMPARING_OPSET: i64 = 18;

/// `value` with `source` at indices of an axis.
pub(super) fn scattered(
    call: &OperatorCall<'_>,
    [value, places, source]: [&Value; 3],
    axis: usize,
    reduction: Reduction,
) -> Value {
    let mut attributes = axis_attribute(axis);
    if reduction != Reduction::Replace {
        let name = OperatorAttribute::Text(reduction.name().to_owned());
        attributes.push(("reduction", name));
    }
    if matches!(reduction, Reduction::Largest | Reduction::Smallest) {
        call.use_opset(COMPARING_OPSET);
    }
    call.node_with(
        "ScatterElements",
        &[value, places, source],
        attributes,
        value.dtype,
    )
}

fn scatter(call: &OperatorCall<'_>) -> Composed {
    let (x, index, out) = (
        call.tensor("self")?,
        call.tensor("index")?,
        call.tensor("out")?,
    );
    let axis = axis_of(call, "dim", x)?;
    call.expect_shape(out, x.dims())?;
    expect_same_dtype(call, out, x)?;
    let source = call.side(if call.has("src") { "src" } else { "value" })?;
    let room = match source {
        Side::Tensor(tensor) => {
            expect_same_dtype(call, tensor, x)?;
            tensor.dims()
        }
        Side::Scalar(_) => index.dims(),
    };
    // Elements of the source beyond the index are ignored, as in PyTorch.
    let fits = [index.n_axes(), room.len()] == [x.n_axes(); 2]
        && (0..x.n_axes()).all(|i| {
            let n = index.dims()[i];
            n <= room[i] && (i == axis || n <= x.dims()[i])
        });
    if !fits {
        let found = index.dims();
        return Err(Refusal::invalid(format!(
            "`index` has the shape {found:?}; expected no more than `src` has, and than `self` \
             has but for axis {axis}"
        )));
    }
    let reduction = Reduction::read(call)?;
    let elements = if reduction == Reduction::Replace {
        Elements::Bits(x.dtype)
    } else {
        Elements::Numbers(x.dtype)
    };
    let mut value = elements.read(call, x)?;
    // Engines differ for empty indices, and nothing changes.
    if index.is_empty() {
        elements.write(call, out, &value)?;
        return Ok(());
    }
    // A tensor without axes has one index.
    let dims = if x.n_axes() == 0 { &[1] } else { index.dims() };
    let mut source = elements.side(call, source)?;
    if x.n_axes() == 0 {
        value = value.reshaped(&[1]);
    }
    source = match call.has("src") {
        true if x.n_axes() > 0 => cut(call, &source, room, dims),
        _ => source.expanded(dims),
    };
    let places = read_places(call, index)?;
    let places = places.reshaped(dims);
    // Only one function has the flag; the others include the existing values.
    let includes_self = !call.has("includeSelf") || call.flag("includeSelf")?;
    let scatter = Scattering {
        axis,
        reduction,
        includes_self,
        places,
        n_axes: x.n_axes().max(1),
    };
    let whole = if x.n_axes() == 0 { &[1] } else { x.dims() };
    let result = scatter.reduce(call, &value, &source, whole, dims)?;
    elements.write(call, out, result.reshaped(x.dims()))
}

/// The first entries of each axis, up to `dims`.
fn cut(call: &OperatorCall<'_>, value: &Value, room: &[usize], dims: &[usize]) -> Value {
    let mut value = value.clone();
    for (axis, (&n, &most)) in dims.iter().zip(room).enumerate() {
        if n < most {
            value = sliced(call, &value, axis, [0, as_int(n), 1]);
        }
    }
    value
}

/// The destination of values, and their reduction.
struct Scattering {
    axis: usize,
    reduction: Reduction,
    includes_self: bool,
    places: Value,
    n_axes: usize,
}

impl Scattering {
    /// `value`, of shape `whole`, with `source`, of shape `dims`, scattered into it.
    fn reduce(
        &self,
        call: &OperatorCall<'_>,
        value: &Value,
        source: &Value,
        whole: &[usize],
        dims: &[usize],
    ) -> Composed<Value> {
        debug_assert_eq!(self.n_axes, whole.len());
        let dtype = value.dtype;
        let mut start = value.clone();
        let replaces = self.reduction == Reduction::Replace;
        if !self.includes_self && !replaces {
            let count = self.count(call, whole, dims)?;
            start = count
                .greater(0.0)
                .choose(self.reduction.neutral(dtype), value);
        }
        let result = scattered(
            call,
            [&start, &self.places, source],
            self.axis,
            self.reduction,
        );
        match self.reduction {
            Reduction::Mean => self.mean(call, &result, whole, dims),
            Reduction::Largest | Reduction::Smallest if is_float(dtype) => {
                self.with_nan(call, &result, &start, source)
            }
            _ => Ok(result),
        }
    }

    /// Number of values at each index.
    fn count(&self, call: &OperatorCall<'_>, whole: &[usize], dims: &[usize]) -> Composed<Value> {
        let zeros = constant_of(call, 0.0, DType::I64, whole);
        let ones = constant_of(call, 1.0, DType::I64, dims);
        let into = [&zeros, &self.places, &ones];
        Ok(scattered(call, into, self.axis, Reduction::Add))
    }

    /// Sums divided by their numbers of values; those of integers are rounded down.
    fn mean(
        &self,
        call: &OperatorCall<'_>,
        sum: &Value,
        whole: &[usize],
        dims: &[usize],
    ) -> Composed<Value> {
        let dtype = sum.dtype;
        let count = self.count(call, whole, dims)?;
        let one = call.constant(1.0, DType::I64);
        // Self counts once if included; without values it is the sum.
        let count = if self.includes_self {
            &count + &one
        } else {
            call.node("Max", &[&count, &one], DType::I64)
        };
        let count = count.cast(dtype);
        if is_float(dtype) {
            return Ok(sum / &count);
        }
        // The remainder has the divisor's sign, so the rest divides evenly.
        let rest = call.node("Mod", &[sum, &count], dtype);
        Ok((sum - &rest) / &count)
    }

    /// The largest or smallest values, but NaN if any value is NaN: engines ignore it.
    fn with_nan(
        &self,
        call: &OperatorCall<'_>,
        result: &Value,
        start: &Value,
        source: &Value,
    ) -> Composed<Value> {
        // Counted at the same indices: one NaN among the values is enough.
        let from_start = start.is_nan().cast(DType::I64);
        let from_source = source.is_nan().cast(DType::I64);
        let into = [&from_start, &self.places, &from_source];
        let count = scattered(call, into, self.axis, Reduction::Add);
        Ok(count.greater(0.0).choose(f64::NAN, result))
    }
}

fn scatter_parts(call: &OperatorCall<'_>) -> Composed {
    let x = call.tensor(if call.has("data") { "data" } else { "varRef" })?;
    let out = if call.has("out") {
        call.tensor("out")?
    } else {
        x
    };
    let (indices, updates) = (call.tensor("indices")?, call.tensor("updates")?);
    expect_same_dtype(call, out, x)?;
    expect_same_dtype(call, updates, x)?;
    call.expect_shape(out, x.dims())?;
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
    call.expect_shape(updates, &dims)?;
    let mut value = call.read_raw(x)?;
    // Without updates the tensor stays the same.
    if !updates.is_empty() {
        let places = read_places(call, indices)?;
        let source = call.read_raw(updates)?;
        value = call.node("ScatterND", &[&value, &places, &source], value.dtype);
    }
    call.write_raw(out, &value)
}

fn update_batches(call: &OperatorCall<'_>) -> Composed {
    let (x, indices) = (call.tensor("data")?, call.tensor("indices")?);
    let updates = call.tensor("updates")?;
    expect_same_dtype(call, updates, x)?;
    let axis = axis_of(call, "axis", x)?;
    refuse_if!(
        axis == 0 || x.n_axes() < 2,
        "`axis` is the first one; expected another"
    );
    refuse_if!(
        x.is_empty() || updates.is_empty() || indices.is_empty(),
        "a tensor is empty; expected elements"
    );
    let mut dims = x.dims().to_vec();
    if updates.n_axes() == x.n_axes() {
        (dims[0], dims[axis]) = (updates.dims()[0], updates.dims()[axis]);
    }
    call.expect_shape(updates, &dims)?;
    let n = dims[0];
    let is_pairs = indices.dims() == [n, 2];
    refuse_if!(
        !is_pairs && indices.dims() != [n] && !(indices.n_axes() == 0 && n == 1),
        "`indices` is {indices}; expected {n} places, or pairs of a batch and a place"
    );
    let n_entries = dims[axis];
    let places = read_places(call, indices)?;
    let (batches, starts) = if is_pairs {
        let batches = sliced(call, &places, 1, [0, 1, 1]);
        (batches, sliced(call, &places, 1, [1, 2, 1]))
    } else {
        let batches = counted(call, n)?;
        let batches = batches.reshaped(&[n, 1]);
        (batches, places.reshaped(&[n, 1]))
    };
    // Entry j of batch i goes to index indices[i] + j of the axis, which comes after the batches
    // here.
    let steps = counted(call, n_entries)?;
    let starts = &starts + &steps;
    let batches = batches.expanded(&[n, n_entries]);
    let batches = batches.reshaped(&[n, n_entries, 1]);
    let starts = starts.reshaped(&[n, n_entries, 1]);
    let places = joined(call, &[batches, starts], 2);
    // ONNX's coordinates address the first axes, so the axis moves after the batches.
    let mut order: Vec<usize> = (0..x.n_axes()).filter(|&i| i != axis).collect();
    order.insert(1, axis);
    let value = call.read_raw(x)?;
    let value = transposed(call, &value, &order);
    let source = call.read_raw(updates)?;
    let source = transposed(call, &source, &order);
    let result = call.node("ScatterND", &[&value, &places, &source], value.dtype);
    let mut back: Vec<usize> = (0..x.n_axes()).filter(|&i| i != 1).collect();
    back.insert(axis, 1);
    call.write_raw(x, transposed(call, &result, &back))
}
