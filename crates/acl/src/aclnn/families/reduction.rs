//! Reductions: sums, extremes and others.
//!
//! Sums of floats of any dtype are computed in double precision and rounded once.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, as_float, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{can_cast, compute_type, is_float, is_number};
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::{axes, axis, reduced};

/// Calls a macro with the rows of reductions.
#[macro_export]
macro_rules! aclnn_reduction {
    ($rows:ident) => {
        $rows! { "reductions";
            ReduceSum("aclnn_reduce_sum.h", "the sum over dims, or over all elements if there are none") by sum():
                aclnnReduceSum(self_: Tensor, dims: IntArray, keepDims: Flag, dtype: DataType, out: Out);
            ReduceNansum("aclnn_reduce_nansum.h", "the sum over dim of what is not NaN") by sum_without_nan():
                aclnnReduceNansum(self_: Tensor, dim: IntArray, keepDim: Flag, dtype: DataType, out: Out);
            ReduceMean("aclnn_mean.h", "the mean over dim; of integers it is cut towards 0") by mean():
                aclnnMean(self_: Tensor, dim: IntArray, keepDim: Flag, dtype: DataType, out: Out),
                aclnnMeanV2(self_: Tensor, dim: IntArray, keepDim: Flag, noopWithEmptyAxes: Flag, out: Out);
            ReduceMax("aclnn_amax.h", "the largest element along dim; NaN if one is") by largest():
                aclnnAmax(self_: Tensor, dim: IntArray, keepDim: Flag, out: Out);
            ReduceMin("aclnn_amin.h", "the smallest element along dim; NaN if one is") by write_extreme("ReduceMin", "out"):
                aclnnAmin(self_: Tensor, dim: IntArray, keepDim: Flag, out: Out);
            Aminmax("aclnn_aminmax.h", "both extremes along dim") by extremes():
                aclnnAminmax(self_: Tensor, dim: IntArray, keepDim: Flag, minOut: Out, maxOut: Out);
            Aminmax("aclnn_aminmax_all.h", "both extremes of all elements") by extremes():
                aclnnAminmaxAll(self_: Tensor, minOut: Out, maxOut: Out);
            Aminmax("aclnn_aminmax_dim.h", "both extremes along dim") by extremes():
                aclnnAminmaxDim(self_: Tensor, dim: Int, keepDim: Flag, minOut: Out, maxOut: Out);
            ReduceMax("aclnn_max.h", "the largest of all elements") by largest():
                aclnnMax(self_: Tensor, out: Out);
            ReduceMin("aclnn_min.h", "the smallest of all elements") by write_extreme("ReduceMin", "out"):
                aclnnMin(self_: Tensor, out: Out);
            ArgMaxWithValue("aclnn_max_dim.h", "the largest element along dim, and where it is first") by write_with_place("ArgMax", "ReduceMax"):
                aclnnMaxDim(self_: Tensor, dim: Int, keepdim: Flag, out: Out, indices: Out);
            ArgMinWithValue("aclnn_min_dim.h", "the smallest element along dim, and where it is first") by write_with_place("ArgMin", "ReduceMin"):
                aclnnMinDim(self_: Tensor, dim: Int, keepdim: Flag, out: Out, indices: Out);
            ArgMax("aclnn_argmax.h", "where the largest element along dim is first") by write_place("ArgMax"):
                aclnnArgMax(self_: Tensor, dim: Int, keepdim: Flag, out: Out);
            ArgMin("aclnn_argmin.h", "where the smallest element along dim is first") by write_place("ArgMin"):
                aclnnArgMin(self_: Tensor, dim: Int, keepdim: Flag, out: Out);
            ReduceProd("aclnn_prod.h", "the product of all elements") by product():
                aclnnProd(self_: Tensor, dtype: DataType, out: Out);
            ReduceProd("aclnn_prod.h", "the product along dim") by product():
                aclnnProdDim(self_: Tensor, dim: Int, keepDim: Flag, dtype: DataType, out: Out);
            ReduceAll("aclnn_all.h", "whether all elements along dim are other than 0") by all():
                aclnnAll(self_: Tensor, dim: IntArray, keepdim: Flag, out: Out);
            ReduceAny("aclnn_any.h", "whether an element along dim is other than 0") by write_truth("ReduceMax", 0.0):
                aclnnAny(self_: Tensor, dim: IntArray, keepdim: Flag, out: Out);
            Cumsum("aclnn_cumsum.h", "the sums of the elements along dim up to each") by running_sum():
                aclnnCumsum(self_: Tensor, dim: Int, dtype: DataType, out: Out);
            Cumsum("aclnn_cumsum.h", "the same, without the element itself or from the end") by running_sum():
                aclnnCumsumV2(self_: Tensor, dim: Int, exclusive: Flag, reverse: Flag, out: Out);
            ReduceVar("aclnn_var.h", "the variance over dim") by variance():
                aclnnVar(self_: Tensor, dim: OptionalIntArray, unbiased: Flag, keepdim: Flag, out: Out);
            ReduceVar("aclnn_var.h", "the variance over dim, divided by n - correction") by variance():
                aclnnVarCorrection(self_: Tensor, dim: OptionalIntArray, correction: Int, keepdim: Flag, out: Out);
            ReduceVar("aclnn_var_mean.h", "variance and mean over dim") by variance():
                aclnnVarMean(self_: Tensor, dim: OptionalIntArray, correction: Int, keepdim: Flag, varOut: Out, meanOut: Out);
            ReduceStd("aclnn_std.h", "the standard deviation over dim") by write_variance(true):
                aclnnStd(self_: Tensor, dim: OptionalIntArray, correction: Int, keepdim: Flag, out: Out);
            ReduceStd("aclnn_std_mean_correction.h", "standard deviation and mean over dim") by write_variance(true):
                aclnnStdMeanCorrection(self_: Tensor, dim: OptionalIntArray, correction: Int, keepdim: Flag, stdOut: Out, meanOut: Out);
            LpNorm("aclnn_norm.h", "the norm of order pScalar over dim") by norm():
                aclnnNorm(self_: Tensor, pScalar: OptionalScalar, dim: OptionalIntArray, keepdim: Flag, out: Out);
            ReduceLogSumExp("aclnn_logsumexp.h", "the logarithm of the sum over dim of e to the power of self") by log_sum_exp():
                aclnnLogSumExp(self_: Tensor, dim: IntArray, keepDim: Flag, out: Out);
        }
    };
}
aclnn_reduction!(operator_rows);

/// A tensor, the axes to reduce, and the shape of the output.
struct Reduction<'a> {
    x: &'a TensorArgument,
    axes: Vec<usize>,
    dims: Vec<usize>,
}

impl<'a> Reduction<'a> {
    /// The reduction in the arguments. Without axes all are reduced.
    fn new(call: &OperatorCall<'a>) -> Composed<Reduction<'a>> {
        let x = call.tensor("self")?;
        call.expect_dtype(x, is_number, "booleans, integers or floats")?;
        let name = if call.has("dims") { "dims" } else { "dim" };
        let numbers = call.axis_numbers(name)?;
        let mut chosen = axes(&numbers, x.n_axes()).ok_or_else(|| {
            let n = x.n_axes();
            Refusal::invalid(format!(
                "`{name}` is {numbers:?}; expected different axes of a tensor that has {n}"
            ))
        })?;
        // The vendor's empty list means all axes, unless the operator has a flag against that.
        let is_noop = call.has("noopWithEmptyAxes") && call.flag("noopWithEmptyAxes")?;
        if numbers.is_empty() && !is_noop {
            chosen = (0..x.n_axes()).collect();
        }
        let mut keeps_axes = false;
        for name in ["keepDims", "keepDim", "keepdim"] {
            keeps_axes |= call.has(name) && call.flag(name)?;
        }
        let dims = reduced(x.dims(), &chosen, keeps_axes);
        Ok(Reduction {
            x,
            axes: chosen,
            dims,
        })
    }

    /// Number of elements per result.
    fn n_elements(&self) -> usize {
        let extents = self
            .axes
            .iter()
            .map(|&axis| self.x.dims().get(axis).copied());
        extents.map(|n| n.unwrap_or(1)).product()
    }

    /// The elements, with at least one axis. Floats become double precision.
    fn read(&self, call: &OperatorCall<'_>, via: DType) -> Composed<Value> {
        let wide = wide_type(via);
        let value = call.read_as(self.x, via, wide)?;
        if self.x.n_axes() > 0 {
            return Ok(value);
        }
        // Otherwise engines have no axis to reduce.
        Ok(value.reshaped(&[1]))
    }

    fn axis_numbers(&self) -> Vec<i64> {
        if self.x.n_axes() == 0 {
            return vec![0];
        }
        self.axes
            .iter()
            .map(|&axis| axis.cast_signed() as i64)
            .collect()
    }

    /// Reduces a value from [`Reduction::read`], keeping the axes with size 1.
    fn reduce(&self, call: &OperatorCall<'_>, op: &'static str, value: &Value) -> Composed<Value> {
        let numbers = self.axis_numbers();
        if numbers.is_empty() {
            return Ok(value.clone());
        }
        let keeps = ("keepdims", OperatorAttribute::Int(1));
        if op == "ReduceSum" {
            // In this operator set only `ReduceSum` takes axes as an input.
            let numbers = call.constant_ints(&numbers);
            return Ok(call.node_with(op, &[value, &numbers], vec![keeps], value.dtype));
        }
        let numbers = ("axes", OperatorAttribute::Ints(numbers));
        Ok(call.node_with(op, &[value], vec![numbers, keeps], value.dtype))
    }

    /// Stores a reduced value of dtype `dtype`.
    fn write(&self, call: &OperatorCall<'_>, out: &str, value: &Value, dtype: DType) -> Composed {
        let out = self.out(call, out, dtype)?;
        // Keeping the axes simplifies intermediate steps; here they are finally dropped or not.
        call.write(out, value.reshaped(out.dims()), dtype)
    }

    fn out<'b>(
        &self,
        call: &OperatorCall<'b>,
        out: &str,
        dtype: DType,
    ) -> Composed<&'b TensorArgument> {
        let out = call.tensor(out)?;
        // The vendor's programs give results of full reductions one axis.
        let is_of_all = !call.has("dim") && !call.has("dims");
        if !(is_of_all && out.dims() == [1]) {
            call.expect_shape(out, &self.dims)?;
        }
        call.expect_cast(out, dtype)?;
        Ok(out)
    }

    /// Whether results are reductions of nothing: such an output is filled with `number`.
    fn is_of_nothing(
        &self,
        call: &OperatorCall<'_>,
        out: &str,
        dtype: DType,
        number: f64,
    ) -> Composed<bool> {
        if !self.x.is_empty() {
            return Ok(false);
        }
        let out = self.out(call, out, dtype)?;
        call.fill(out, ScalarNumber::Float(number))?;
        Ok(true)
    }
}

/// The dtype of sums.
fn wide_type(dtype: DType) -> DType {
    if is_float(dtype) {
        DType::F64
    } else {
        DType::I64
    }
}

/// `ACL_DT_UNDEFINED`.
const UNDEFINED_TYPE: i64 = -1;

/// The dtype in `dtype`, or that of the tensor.
fn named_type(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<DType> {
    // The vendor's number for "undefined" selects the tensor's dtype.
    if !call.has("dtype") || call.int("dtype")? == UNDEFINED_TYPE {
        return Ok(x.dtype);
    }
    let dtype = call.dtype("dtype")?;
    refuse_if!(
        !is_number(dtype),
        "`dtype` is {dtype}; expected booleans, integers or floats"
    );
    Ok(dtype)
}

fn sum(call: &OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = named_type(call, reduction.x)?;
    if reduction.is_of_nothing(call, "out", dtype, 0.0)? {
        return Ok(());
    }
    let value = reduction.read(call, dtype)?;
    let result = reduction.reduce(call, "ReduceSum", &value)?;
    reduction.write(call, "out", &result, dtype)
}

fn sum_without_nan(call: &OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = named_type(call, reduction.x)?;
    if reduction.is_of_nothing(call, "out", dtype, 0.0)? {
        return Ok(());
    }
    let mut value = reduction.read(call, dtype)?;
    if is_float(dtype) {
        value = value.is_nan().choose(0.0, &value);
    }
    let result = reduction.reduce(call, "ReduceSum", &value)?;
    reduction.write(call, "out", &result, dtype)
}

fn mean(call: &OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = named_type(call, reduction.x)?;
    refuse_if!(
        dtype == DType::Bool,
        "the mean has the type bool; expected an integer or a float"
    );
    if !is_float(dtype) {
        return mean_of_integers(call, &reduction, dtype);
    }
    if reduction.is_of_nothing(call, "out", dtype, f64::NAN)? {
        return Ok(());
    }
    let value = reduction.read(call, dtype)?;
    let result = mean_of(call, &reduction, &value)?;
    reduction.write(call, "out", &result, dtype)
}

/// The mean of integers, truncated like the vendor's. PyTorch has none.
fn mean_of_integers(call: &OperatorCall<'_>, reduction: &Reduction<'_>, dtype: DType) -> Composed {
    // Floats would be truncated before the addition.
    refuse_if!(
        !can_cast(reduction.x.dtype, dtype),
        "`self` is {}, `dtype` {dtype}; expected a float",
        reduction.x.dtype
    );
    refuse_nothing(reduction)?;
    if reduction.dims.contains(&0) {
        let out = reduction.out(call, "out", dtype)?;
        return call.fill(out, ScalarNumber::Int(0));
    }
    let value = reduction.read(call, dtype)?;
    let sum = reduction.reduce(call, "ReduceSum", &value)?;
    let n = i64::try_from(reduction.n_elements()).unwrap_or(i64::MAX);
    let n = call.constant_ints(&[n]);
    // Both engines divide integers like C.
    reduction.write(call, "out", &(&sum / &n), dtype)
}

fn mean_of(call: &OperatorCall<'_>, reduction: &Reduction<'_>, x: &Value) -> Composed<Value> {
    let sum = reduction.reduce(call, "ReduceSum", x)?;
    let n = count(call, reduction.n_elements());
    Ok(&sum / &n)
}

#[expect(clippy::cast_precision_loss, reason = "no tensor has so many elements")]
fn count(call: &OperatorCall<'_>, n: usize) -> Value {
    call.constant(n as f64, DType::F64)
}

/// An extreme, or NaN if an element is NaN: engines differ there.
fn extreme(
    call: &OperatorCall<'_>,
    reduction: &Reduction<'_>,
    op: &'static str,
    x: &Value,
) -> Composed<Value> {
    let found = reduction.reduce(call, op, x)?;
    if !is_float(x.dtype) {
        return Ok(found);
    }
    let has_nan = has_nan(call, reduction, x)?;
    // The result of an engine that ignored a NaN must not be returned.
    Ok(has_nan.choose(f64::NAN, &found))
}

fn has_nan(call: &OperatorCall<'_>, reduction: &Reduction<'_>, x: &Value) -> Composed<Value> {
    // Engines find extremes of numbers, but not of booleans.
    let counted = x.is_nan().cast(DType::I64);
    let n_nan = reduction.reduce(call, "ReduceMax", &counted)?;
    Ok(n_nan.greater(0.0))
}

fn refuse_nothing(reduction: &Reduction<'_>) -> Composed {
    refuse_if!(
        reduction.n_elements() == 0,
        "`self` has no elements along the axes; expected one to choose"
    );
    Ok(())
}

fn write_extreme(call: &OperatorCall<'_>, op: &'static str, out: &str) -> Composed {
    let reduction = Reduction::new(call)?;
    refuse_nothing(&reduction)?;
    let dtype = reduction.x.dtype;
    let value = reduction.read(call, dtype)?;
    let result = extreme(call, &reduction, op, &value)?;
    reduction.write(call, out, &result, dtype)
}

fn largest(call: &OperatorCall<'_>) -> Composed {
    write_extreme(call, "ReduceMax", "out")
}

fn extremes(call: &OperatorCall<'_>) -> Composed {
    write_extreme(call, "ReduceMin", "minOut")?;
    write_extreme(call, "ReduceMax", "maxOut")
}

/// The axis of `dim`, and the reduction along it.
fn along_axis<'a>(call: &OperatorCall<'a>) -> Composed<(i64, Reduction<'a>)> {
    let reduction = Reduction::new(call)?;
    refuse_nothing(&reduction)?;
    let axis = reduction.axis_numbers().first().copied().unwrap_or(0);
    Ok((axis, reduction))
}

/// The indices of the extremes along an axis, as int64: the first of equal ones, with NaN above
/// all.
fn places(
    call: &OperatorCall<'_>,
    reduction: &Reduction<'_>,
    axis: i64,
    op: &'static str,
    x: &Value,
) -> Composed<Value> {
    let attributes = vec![
        ("axis", OperatorAttribute::Int(axis)),
        ("keepdims", OperatorAttribute::Int(1)),
    ];
    if is_float(x.dtype) {
        // The first index of the largest mark is that of the first NaN.
        let marked = x.is_nan().cast(DType::F32);
        let of_nan = call.node_with("ArgMax", &[&marked], attributes.clone(), DType::I64);
        let has_nan = has_nan(call, reduction, x)?;
        let found = call.node_with(op, &[x], attributes, DType::I64);
        return Ok(has_nan.choose(&of_nan, &found));
    }
    // Engines lack it for int64. The mark of an extreme is 1.
    let reduce = if op == "ArgMax" {
        "ReduceMax"
    } else {
        "ReduceMin"
    };
    let found = reduction.reduce(call, reduce, x)?;
    let marked = x.equal(&found).cast(DType::F32);
    Ok(call.node_with("ArgMax", &[&marked], attributes, DType::I64))
}

fn write_place(call: &OperatorCall<'_>, op: &'static str) -> Composed {
    let (axis, reduction) = along_axis(call)?;
    let value = reduction.read(call, reduction.x.dtype)?;
    let places = places(call, &reduction, axis, op, &value)?;
    reduction.write(call, "out", &places, DType::I64)
}

fn write_with_place(call: &OperatorCall<'_>, op: &'static str, reduce: &'static str) -> Composed {
    let (axis, reduction) = along_axis(call)?;
    let dtype = reduction.x.dtype;
    let value = reduction.read(call, dtype)?;
    let result = extreme(call, &reduction, reduce, &value)?;
    reduction.write(call, "out", &result, dtype)?;
    let places = places(call, &reduction, axis, op, &value)?;
    reduction.write(call, "indices", &places, DType::I64)
}

fn product(call: &OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = named_type(call, reduction.x)?;
    if reduction.is_of_nothing(call, "out", dtype, 1.0)? {
        return Ok(());
    }
    let mut value = reduction.read(call, dtype)?;
    if compute_type(dtype) == DType::F32 {
        // Engines lack it for double precision.
        value = value.cast(DType::F32);
    }
    let result = reduction.reduce(call, "ReduceProd", &value)?;
    reduction.write(call, "out", &result, dtype)
}

fn write_truth(call: &OperatorCall<'_>, op: &'static str, of_nothing: f64) -> Composed {
    let reduction = Reduction::new(call)?;
    if reduction.is_of_nothing(call, "out", DType::Bool, of_nothing)? {
        return Ok(());
    }
    // Truth values are read as 0 and 1, whose extremes are the result.
    let value = reduction.read(call, DType::Bool)?;
    let result = reduction.reduce(call, op, &value)?;
    reduction.write(call, "out", &result, DType::Bool)
}

fn all(call: &OperatorCall<'_>) -> Composed {
    write_truth(call, "ReduceMin", 1.0)
}

fn running_sum(call: &OperatorCall<'_>) -> Composed {
    let (x, out, dim) = (call.tensor("self")?, call.tensor("out")?, call.int("dim")?);
    let axis = axis(dim, x.n_axes()).ok_or_else(|| {
        let n = x.n_axes();
        Refusal::invalid(format!(
            "`dim` is {dim}; expected an axis of a tensor that has {n}"
        ))
    })?;
    let dtype = named_type(call, x)?;
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, dtype)?;
    // ONNX's names are the vendor's.
    let mut attributes = Vec::new();
    for name in ["exclusive", "reverse"] {
        if call.has(name) && call.flag(name)? {
            attributes.push((name, OperatorAttribute::Int(1)));
        }
    }
    let wide = wide_type(dtype);
    let mut value = call.read_as(x, dtype, wide)?;
    if x.n_axes() == 0 {
        value = value.reshaped(&[1]);
    }
    let axis = call.constant(f64::from(u32::try_from(axis).unwrap_or(0)), DType::I64);
    let sums = call.node_with("CumSum", &[&value, &axis], attributes, wide);
    call.write(out, sums.reshaped(x.dims()), dtype)
}

/// The mean, and the corrected variance.
fn mean_and_variance(
    call: &OperatorCall<'_>,
    reduction: &Reduction<'_>,
) -> Composed<(Value, Value)> {
    let correction = if call.has("correction") {
        call.int("correction")?
    } else {
        call.flag("unbiased")?.into()
    };
    let value = reduction.read(call, reduction.x.dtype)?;
    let mean = mean_of(call, reduction, &value)?;
    // Squares of distances, since the difference of two large sums would lose digits.
    let distance = &value - &mean;
    let square = &distance * &distance;
    let sum = reduction.reduce(call, "ReduceSum", &square)?;
    // A correction down to zero yields infinity or NaN, as in PyTorch.
    let n = i64::try_from(reduction.n_elements()).unwrap_or(i64::MAX);
    let n = usize::try_from(n.saturating_sub(correction)).unwrap_or(0);
    let n = count(call, n);
    Ok((mean, &sum / &n))
}

fn write_variance(call: &OperatorCall<'_>, is_root: bool) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = reduction.x.dtype;
    call.expect_float(reduction.x)?;
    let out = ["varOut", "stdOut"]
        .into_iter()
        .find(|name| call.has(name))
        .unwrap_or("out");
    if reduction.is_of_nothing(call, out, dtype, f64::NAN)? {
        if call.has("meanOut") {
            reduction.is_of_nothing(call, "meanOut", dtype, f64::NAN)?;
        }
        return Ok(());
    }
    let (mean, mut result) = mean_and_variance(call, &reduction)?;
    if is_root {
        result = result.sqrt();
    }
    reduction.write(call, out, &result, dtype)?;
    if call.has("meanOut") {
        reduction.write(call, "meanOut", &mean, dtype)?;
    }
    Ok(())
}

fn variance(call: &OperatorCall<'_>) -> Composed {
    write_variance(call, false)
}

fn norm(call: &OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = reduction.x.dtype;
    call.expect_float(reduction.x)?;
    let order = call
        .optional_scalar("pScalar")?
        .map_or(2.0, |order| order.as_f64());
    if reduction.is_of_nothing(call, "out", dtype, 0.0)? {
        return Ok(());
    }
    // The extreme orders are limits, beyond the reach of powers.
    let value = reduction.read(call, dtype)?;
    let size = value.abs();
    let result = if order.is_infinite() {
        let op = if order > 0.0 {
            "ReduceMax"
        } else {
            "ReduceMin"
        };
        extreme(call, &reduction, op, &size)?
    } else if order == 0.0 {
        let counted = (!size.equal(0.0)).cast(DType::F64);
        reduction.reduce(call, "ReduceSum", &counted)?
    } else if order == 1.0 {
        reduction.reduce(call, "ReduceSum", &size)?
    } else if order == 2.0 {
        let square = &size * &size;
        let sum = reduction.reduce(call, "ReduceSum", &square)?;
        sum.sqrt()
    } else {
        let exponent = call.number_value(ScalarNumber::Float(order), DType::F64)?;
        let inverse = call.number_value(ScalarNumber::Float(1.0 / order), DType::F64)?;
        let power = size.pow(&exponent);
        let sum = reduction.reduce(call, "ReduceSum", &power)?;
        sum.pow(&inverse)
    };
    reduction.write(call, "out", &result, dtype)
}

#[expect(clippy::eq_op, reason = "a difference of infinities is NaN")]
fn log_sum_exp(call: &OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = as_float(reduction.x.dtype);
    if reduction.is_of_nothing(call, "out", dtype, f64::NEG_INFINITY)? {
        return Ok(());
    }
    let value = reduction.read(call, dtype)?;
    let largest = reduction.reduce(call, "ReduceMax", &value)?;
    // The difference of infinities would be NaN.
    let shift = (&largest - &largest).equal(0.0).choose(&largest, 0.0);
    let power = (&value - &shift).exp();
    let sum = reduction.reduce(call, "ReduceSum", &power)?;
    reduction.write(call, "out", &(sum.log() + &shift), dtype)
}
