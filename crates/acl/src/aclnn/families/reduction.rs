//! Reductions: sums, extremes and others.
//!
//! Sums of floats of any dtype are computed in double precision and rounded once.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, as_float};
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
            aclnnReduceSum = ReduceSum("aclnn_reduce_sum.h", "the sum over dims, or over all elements if there are none") by sum
                (self_: Tensor, dims: IntArray, keepDims: Flag, dtype: DataType, out: Out);
            aclnnReduceNansum = ReduceNansum("aclnn_reduce_nansum.h", "the sum over dim of what is not NaN") by sum_without_nan
                (self_: Tensor, dim: IntArray, keepDim: Flag, dtype: DataType, out: Out);
            aclnnMean = ReduceMean("aclnn_mean.h", "the mean over dim; of integers it is cut towards 0") by mean
                (self_: Tensor, dim: IntArray, keepDim: Flag, dtype: DataType, out: Out);
            aclnnMeanV2 = ReduceMean("aclnn_mean.h", "the mean over dim; of integers it is cut towards 0") by mean
                (self_: Tensor, dim: IntArray, keepDim: Flag, noopWithEmptyAxes: Flag, out: Out);
            aclnnAmax = ReduceMax("aclnn_amax.h", "the largest element along dim; NaN if one is") by largest
                (self_: Tensor, dim: IntArray, keepDim: Flag, out: Out);
            aclnnAmin = ReduceMin("aclnn_amin.h", "the smallest element along dim; NaN if one is") by smallest
                (self_: Tensor, dim: IntArray, keepDim: Flag, out: Out);
            aclnnAminmax = Aminmax("aclnn_aminmax.h", "both extremes along dim") by extremes
                (self_: Tensor, dim: IntArray, keepDim: Flag, minOut: Out, maxOut: Out);
            aclnnAminmaxAll = Aminmax("aclnn_aminmax_all.h", "both extremes of all elements") by extremes
                (self_: Tensor, minOut: Out, maxOut: Out);
            aclnnAminmaxDim = Aminmax("aclnn_aminmax_dim.h", "both extremes along dim") by extremes
                (self_: Tensor, dim: Int, keepDim: Flag, minOut: Out, maxOut: Out);
            aclnnMax = ReduceMax("aclnn_max.h", "the largest of all elements") by largest
                (self_: Tensor, out: Out);
            aclnnMin = ReduceMin("aclnn_min.h", "the smallest of all elements") by smallest
                (self_: Tensor, out: Out);
            aclnnMaxDim = ArgMaxWithValue("aclnn_max_dim.h", "the largest element along dim, and where it is first") by largest_with_place
                (self_: Tensor, dim: Int, keepdim: Flag, out: Out, indices: Out);
            aclnnMinDim = ArgMinWithValue("aclnn_min_dim.h", "the smallest element along dim, and where it is first") by smallest_with_place
                (self_: Tensor, dim: Int, keepdim: Flag, out: Out, indices: Out);
            aclnnArgMax = ArgMax("aclnn_argmax.h", "where the largest element along dim is first") by place_of_largest
                (self_: Tensor, dim: Int, keepdim: Flag, out: Out);
            aclnnArgMin = ArgMin("aclnn_argmin.h", "where the smallest element along dim is first") by place_of_smallest
                (self_: Tensor, dim: Int, keepdim: Flag, out: Out);
            aclnnProd = ReduceProd("aclnn_prod.h", "the product of all elements") by product
                (self_: Tensor, dtype: DataType, out: Out);
            aclnnProdDim = ReduceProd("aclnn_prod.h", "the product along dim") by product
                (self_: Tensor, dim: Int, keepDim: Flag, dtype: DataType, out: Out);
            aclnnAll = ReduceAll("aclnn_all.h", "whether all elements along dim are other than 0") by all
                (self_: Tensor, dim: IntArray, keepdim: Flag, out: Out);
            aclnnAny = ReduceAny("aclnn_any.h", "whether an element along dim is other than 0") by any
                (self_: Tensor, dim: IntArray, keepdim: Flag, out: Out);
            aclnnCumsum = Cumsum("aclnn_cumsum.h", "the sums of the elements along dim up to each") by running_sum
                (self_: Tensor, dim: Int, dtype: DataType, out: Out);
            aclnnCumsumV2 = Cumsum("aclnn_cumsum.h", "the same, without the element itself or from the end") by running_sum
                (self_: Tensor, dim: Int, exclusive: Flag, reverse: Flag, out: Out);
            aclnnVar = ReduceVar("aclnn_var.h", "the variance over dim") by variance
                (self_: Tensor, dim: OptionalIntArray, unbiased: Flag, keepdim: Flag, out: Out);
            aclnnVarCorrection = ReduceVar("aclnn_var.h", "the variance over dim, divided by n - correction") by variance
                (self_: Tensor, dim: OptionalIntArray, correction: Int, keepdim: Flag, out: Out);
            aclnnVarMean = ReduceVar("aclnn_var_mean.h", "variance and mean over dim") by variance
                (self_: Tensor, dim: OptionalIntArray, correction: Int, keepdim: Flag, varOut: Out, meanOut: Out);
            aclnnStd = ReduceStd("aclnn_std.h", "the standard deviation over dim") by deviation
                (self_: Tensor, dim: OptionalIntArray, correction: Int, keepdim: Flag, out: Out);
            aclnnStdMeanCorrection = ReduceStd("aclnn_std_mean_correction.h", "standard deviation and mean over dim") by deviation
                (self_: Tensor, dim: OptionalIntArray, correction: Int, keepdim: Flag, stdOut: Out, meanOut: Out);
            aclnnNorm = LpNorm("aclnn_norm.h", "the norm of order pScalar over dim") by norm
                (self_: Tensor, pScalar: OptionalScalar, dim: OptionalIntArray, keepdim: Flag, out: Out);
            aclnnLogSumExp = ReduceLogSumExp("aclnn_logsumexp.h", "the logarithm of the sum over dim of e to the power of self") by log_sum_exp
                (self_: Tensor, dim: IntArray, keepDim: Flag, out: Out);
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
    fn read(&self, call: &mut OperatorCall<'_>, via: DType) -> Composed<Value> {
        let wide = wide_type(via);
        let value = call.read_as(self.x, via, wide)?;
        if self.x.n_axes() > 0 {
            return Ok(value);
        }
        // Otherwise engines have no axis to reduce.
        let one = call.constant_ints(&[1]);
        Ok(call.node("Reshape", &[&value, &one], wide))
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
    fn reduce(
        &self,
        call: &mut OperatorCall<'_>,
        op: &'static str,
        value: &Value,
    ) -> Composed<Value> {
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
    fn write(
        &self,
        call: &mut OperatorCall<'_>,
        out: &str,
        value: &Value,
        dtype: DType,
    ) -> Composed {
        let out = self.out(call, out, dtype)?;
        // Keeping the axes simplifies intermediate steps; here they are finally dropped or not.
        let dims = call.constant_dims(out.dims());
        let shaped = call.node("Reshape", &[value, &dims], value.dtype);
        call.write(out, &shaped, dtype);
        Ok(())
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
        call: &mut OperatorCall<'_>,
        out: &str,
        dtype: DType,
        number: f64,
    ) -> Composed<bool> {
        if !self.x.is_empty() {
            return Ok(false);
        }
        let out = self.out(call, out, dtype)?;
        call.fill(out, ScalarNumber::Float(number));
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
    if !is_number(dtype) {
        let text = format!("`dtype` is {dtype}; expected booleans, integers or floats");
        return Err(Refusal::invalid(text));
    }
    Ok(dtype)
}

fn sum(call: &mut OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = named_type(call, reduction.x)?;
    if reduction.is_of_nothing(call, "out", dtype, 0.0)? {
        return Ok(());
    }
    let value = reduction.read(call, dtype)?;
    let result = reduction.reduce(call, "ReduceSum", &value)?;
    reduction.write(call, "out", &result, dtype)
}

fn sum_without_nan(call: &mut OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = named_type(call, reduction.x)?;
    if reduction.is_of_nothing(call, "out", dtype, 0.0)? {
        return Ok(());
    }
    let mut value = reduction.read(call, dtype)?;
    if is_float(dtype) {
        let zero = call.constant(0.0, value.dtype);
        let is_nan = call.is_nan(&value);
        value = call.node("Where", &[&is_nan, &zero, &value], value.dtype);
    }
    let result = reduction.reduce(call, "ReduceSum", &value)?;
    reduction.write(call, "out", &result, dtype)
}

fn mean(call: &mut OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = named_type(call, reduction.x)?;
    if dtype == DType::Bool {
        let text = "the mean has the type bool; expected an integer or a float";
        return Err(Refusal::invalid(text));
    }
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
fn mean_of_integers(
    call: &mut OperatorCall<'_>,
    reduction: &Reduction<'_>,
    dtype: DType,
) -> Composed {
    // Floats would be truncated before the addition.
    if !can_cast(reduction.x.dtype, dtype) {
        let text = format!(
            "`self` is {}, `dtype` {dtype}; expected a float",
            reduction.x.dtype
        );
        return Err(Refusal::invalid(text));
    }
    refuse_nothing(reduction)?;
    if reduction.dims.contains(&0) {
        let out = reduction.out(call, "out", dtype)?;
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let value = reduction.read(call, dtype)?;
    let sum = reduction.reduce(call, "ReduceSum", &value)?;
    let n = i64::try_from(reduction.n_elements()).unwrap_or(i64::MAX);
    let n = call.constant_ints(&[n]);
    // Both engines divide integers like C.
    let result = call.node("Div", &[&sum, &n], DType::I64);
    reduction.write(call, "out", &result, dtype)
}

fn mean_of(call: &mut OperatorCall<'_>, reduction: &Reduction<'_>, x: &Value) -> Composed<Value> {
    let sum = reduction.reduce(call, "ReduceSum", x)?;
    let n = count(call, reduction.n_elements())?;
    Ok(call.node("Div", &[&sum, &n], x.dtype))
}

#[expect(clippy::cast_precision_loss, reason = "no tensor has so many elements")]
fn count(call: &mut OperatorCall<'_>, n: usize) -> Composed<Value> {
    Ok(call.constant(n as f64, DType::F64))
}

/// An extreme, or NaN if an element is NaN: engines differ there.
fn extreme(
    call: &mut OperatorCall<'_>,
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
    let nan = call.constant(f64::NAN, x.dtype);
    Ok(call.node("Where", &[&has_nan, &nan, &found], x.dtype))
}

fn has_nan(call: &mut OperatorCall<'_>, reduction: &Reduction<'_>, x: &Value) -> Composed<Value> {
    let is_nan = call.is_nan(x);
    // Engines find extremes of numbers, but not of booleans.
    let counted = call.cast(&is_nan, DType::I64);
    let n_nan = reduction.reduce(call, "ReduceMax", &counted)?;
    let zero = call.constant(0.0, DType::I64);
    Ok(call.node("Greater", &[&n_nan, &zero], DType::Bool))
}

fn refuse_nothing(reduction: &Reduction<'_>) -> Composed {
    if reduction.n_elements() == 0 {
        let text = "`self` has no elements along the axes; expected one to choose";
        return Err(Refusal::invalid(text));
    }
    Ok(())
}

fn write_extreme(call: &mut OperatorCall<'_>, op: &'static str, out: &str) -> Composed {
    let reduction = Reduction::new(call)?;
    refuse_nothing(&reduction)?;
    let dtype = reduction.x.dtype;
    let value = reduction.read(call, dtype)?;
    let result = extreme(call, &reduction, op, &value)?;
    reduction.write(call, out, &result, dtype)
}

fn largest(call: &mut OperatorCall<'_>) -> Composed {
    write_extreme(call, "ReduceMax", "out")
}

fn smallest(call: &mut OperatorCall<'_>) -> Composed {
    write_extreme(call, "ReduceMin", "out")
}

fn extremes(call: &mut OperatorCall<'_>) -> Composed {
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
    call: &mut OperatorCall<'_>,
    reduction: &Reduction<'_>,
    axis: i64,
    op: &'static str,
    x: &Value,
) -> Composed<Value> {
    let attributes = || {
        vec![
            ("axis", OperatorAttribute::Int(axis)),
            ("keepdims", OperatorAttribute::Int(1)),
        ]
    };
    if is_float(x.dtype) {
        let is_nan = call.is_nan(x);
        // The first index of the largest mark is that of the first NaN.
        let marked = call.cast(&is_nan, DType::F32);
        let of_nan = call.node_with("ArgMax", &[&marked], attributes(), DType::I64);
        let has_nan = has_nan(call, reduction, x)?;
        let found = call.node_with(op, &[x], attributes(), DType::I64);
        return Ok(call.node("Where", &[&has_nan, &of_nan, &found], DType::I64));
    }
    // Engines lack it for int64. The mark of an extreme is 1.
    let reduce = if op == "ArgMax" {
        "ReduceMax"
    } else {
        "ReduceMin"
    };
    let found = reduction.reduce(call, reduce, x)?;
    let is_extreme = call.node("Equal", &[x, &found], DType::Bool);
    let marked = call.cast(&is_extreme, DType::F32);
    Ok(call.node_with("ArgMax", &[&marked], attributes(), DType::I64))
}

fn write_place(call: &mut OperatorCall<'_>, op: &'static str) -> Composed {
    let (axis, reduction) = along_axis(call)?;
    let value = reduction.read(call, reduction.x.dtype)?;
    let places = places(call, &reduction, axis, op, &value)?;
    reduction.write(call, "out", &places, DType::I64)
}

fn place_of_largest(call: &mut OperatorCall<'_>) -> Composed {
    write_place(call, "ArgMax")
}

fn place_of_smallest(call: &mut OperatorCall<'_>) -> Composed {
    write_place(call, "ArgMin")
}

fn write_with_place(
    call: &mut OperatorCall<'_>,
    op: &'static str,
    reduce: &'static str,
) -> Composed {
    let (axis, reduction) = along_axis(call)?;
    let dtype = reduction.x.dtype;
    let value = reduction.read(call, dtype)?;
    let result = extreme(call, &reduction, reduce, &value)?;
    reduction.write(call, "out", &result, dtype)?;
    let places = places(call, &reduction, axis, op, &value)?;
    reduction.write(call, "indices", &places, DType::I64)
}

fn largest_with_place(call: &mut OperatorCall<'_>) -> Composed {
    write_with_place(call, "ArgMax", "ReduceMax")
}

fn smallest_with_place(call: &mut OperatorCall<'_>) -> Composed {
    write_with_place(call, "ArgMin", "ReduceMin")
}

fn product(call: &mut OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = named_type(call, reduction.x)?;
    if reduction.is_of_nothing(call, "out", dtype, 1.0)? {
        return Ok(());
    }
    let mut value = reduction.read(call, dtype)?;
    if compute_type(dtype) == DType::F32 {
        // Engines lack it for double precision.
        value = call.cast(&value, DType::F32);
    }
    let result = reduction.reduce(call, "ReduceProd", &value)?;
    reduction.write(call, "out", &result, dtype)
}

fn write_truth(call: &mut OperatorCall<'_>, op: &'static str, of_nothing: f64) -> Composed {
    let reduction = Reduction::new(call)?;
    if reduction.is_of_nothing(call, "out", DType::Bool, of_nothing)? {
        return Ok(());
    }
    // Truth values are read as 0 and 1, whose extremes are the result.
    let value = reduction.read(call, DType::Bool)?;
    let result = reduction.reduce(call, op, &value)?;
    reduction.write(call, "out", &result, DType::Bool)
}

fn all(call: &mut OperatorCall<'_>) -> Composed {
    write_truth(call, "ReduceMin", 1.0)
}

fn any(call: &mut OperatorCall<'_>) -> Composed {
    write_truth(call, "ReduceMax", 0.0)
}

fn running_sum(call: &mut OperatorCall<'_>) -> Composed {
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
        let one = call.constant_ints(&[1]);
        value = call.node("Reshape", &[&value, &one], wide);
    }
    let axis = call.constant(f64::from(u32::try_from(axis).unwrap_or(0)), DType::I64);
    let sums = call.node_with("CumSum", &[&value, &axis], attributes, wide);
    let dims = call.constant_dims(x.dims());
    let result = call.node("Reshape", &[&sums, &dims], wide);
    call.write(out, &result, dtype);
    Ok(())
}

/// The mean, and the corrected variance.
fn mean_and_variance(
    call: &mut OperatorCall<'_>,
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
    let distance = call.node("Sub", &[&value, &mean], DType::F64);
    let square = call.node("Mul", &[&distance, &distance], DType::F64);
    let sum = reduction.reduce(call, "ReduceSum", &square)?;
    // A correction down to zero yields infinity or NaN, as in PyTorch.
    let n = i64::try_from(reduction.n_elements()).unwrap_or(i64::MAX);
    let n = usize::try_from(n.saturating_sub(correction)).unwrap_or(0);
    let n = count(call, n)?;
    Ok((mean, call.node("Div", &[&sum, &n], DType::F64)))
}

fn write_variance(call: &mut OperatorCall<'_>, is_root: bool) -> Composed {
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
        result = call.node("Sqrt", &[&result], DType::F64);
    }
    reduction.write(call, out, &result, dtype)?;
    if call.has("meanOut") {
        reduction.write(call, "meanOut", &mean, dtype)?;
    }
    Ok(())
}

fn variance(call: &mut OperatorCall<'_>) -> Composed {
    write_variance(call, false)
}

fn deviation(call: &mut OperatorCall<'_>) -> Composed {
    write_variance(call, true)
}

fn norm(call: &mut OperatorCall<'_>) -> Composed {
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
    let size = call.node("Abs", &[&value], DType::F64);
    let result = if order.is_infinite() {
        let op = if order > 0.0 {
            "ReduceMax"
        } else {
            "ReduceMin"
        };
        extreme(call, &reduction, op, &size)?
    } else if order == 0.0 {
        let zero = call.constant(0.0, DType::F64);
        let is_zero = call.node("Equal", &[&size, &zero], DType::Bool);
        let is_other = call.node("Not", &[&is_zero], DType::Bool);
        let counted = call.cast(&is_other, DType::F64);
        reduction.reduce(call, "ReduceSum", &counted)?
    } else if order == 1.0 {
        reduction.reduce(call, "ReduceSum", &size)?
    } else if order == 2.0 {
        let square = call.node("Mul", &[&size, &size], DType::F64);
        let sum = reduction.reduce(call, "ReduceSum", &square)?;
        call.node("Sqrt", &[&sum], DType::F64)
    } else {
        let exponent = call.number_value(ScalarNumber::Float(order), DType::F64)?;
        let inverse = call.number_value(ScalarNumber::Float(1.0 / order), DType::F64)?;
        let power = call.node("Pow", &[&size, &exponent], DType::F64);
        let sum = reduction.reduce(call, "ReduceSum", &power)?;
        call.node("Pow", &[&sum, &inverse], DType::F64)
    };
    reduction.write(call, "out", &result, dtype)
}

fn log_sum_exp(call: &mut OperatorCall<'_>) -> Composed {
    let reduction = Reduction::new(call)?;
    let dtype = as_float(reduction.x.dtype);
    if reduction.is_of_nothing(call, "out", dtype, f64::NEG_INFINITY)? {
        return Ok(());
    }
    let value = reduction.read(call, dtype)?;
    let largest = reduction.reduce(call, "ReduceMax", &value)?;
    // The difference of infinities would be NaN.
    let zero = call.constant(0.0, DType::F64);
    let difference = call.node("Sub", &[&largest, &largest], DType::F64);
    let is_finite = call.node("Equal", &[&difference, &zero], DType::Bool);
    let shift = call.node("Where", &[&is_finite, &largest, &zero], DType::F64);
    let shifted = call.node("Sub", &[&value, &shift], DType::F64);
    let power = call.node("Exp", &[&shifted], DType::F64);
    let sum = reduction.reduce(call, "ReduceSum", &power)?;
    let log = call.node("Log", &[&sum], DType::F64);
    let result = call.node("Add", &[&log, &shift], DType::F64);
    reduction.write(call, "out", &result, dtype)
}
