//! Products, distances and norms of vectors.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, arithmetic_type};
use crate::aclnn::families::movement::{
    axis_in, expanded, expect_same_dtype, picked, reshaped, transposed,
};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::promotion::compute_type;
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::{axes, broadcast, reduced};

/// Calls a macro with the rows of operators on vectors.
#[macro_export]
macro_rules! aclnn_vectors {
    ($rows:ident) => {
        $rows! { "vectors";
            aclnnLinalgCross = Cross("aclnn_linalg_cross.h", "the cross products of vectors along axis dim") by cross
                (self_: Tensor, other: Tensor, dim: Int, out: Out);
            aclnnCdist = Cdist("aclnn_cdist.h", "the distances, in the norm p, of the rows of x1 and x2") by distances
                (x1: Tensor, x2: Tensor, p: Float, compute_mode: Int, out: Out);
            aclnnLinalgVectorNorm = LpNormV2("aclnn_linalg_vector_norm.h", "the norm ord along dims, or of all elements") by norm
                (self_: Tensor, ord: Scalar, dims: OptionalIntArray, keepDims: Flag, dtype: DataType, out: Out);
            aclnnEinsum = Einsum("aclnn_einsum.h", "the sum of products that equation describes") by einsum
                (tensors: TensorList, equation: Text, output: Out);
        }
    };
}
aclnn_vectors!(operator_rows);

fn cross(call: &mut OperatorCall<'_>) -> Composed {
    let (x, other, out) = (
        call.tensor("self")?,
        call.tensor("other")?,
        call.tensor("out")?,
    );
    call.broadcast(&[Side::Tensor(x), Side::Tensor(other)], out)?;
    expect_same_dtype(call, other, x)?;
    expect_same_dtype(call, out, x)?;
    let axis = axis_in("dim", call.int("dim")?, out.n_axes())?;
    if out.dims().get(axis) != Some(&3) {
        return Err(Refusal::invalid(format!(
            "`out` is {out}; expected 3 entries on axis {axis}"
        )));
    }
    let compute = arithmetic_type(x.dtype);
    let (a, b) = (call.read(x, compute)?, call.read(other, compute)?);
    let (a, b) = (
        expanded(call, &a, out.dims())?,
        expanded(call, &b, out.dims())?,
    );
    // Component i is computed from the next two components in cyclic order.
    let (next, last) = ([1, 2, 0], [2, 0, 1]);
    let first = product(call, [&a, &b], axis, [&next, &last])?;
    let second = product(call, [&a, &b], axis, [&last, &next])?;
    let result = call.node("Sub", &[&first, &second], compute);
    call.write(out, &result, x.dtype);
    Ok(())
}

/// Products of the entries of two values at indices of an axis.
fn product(
    call: &mut OperatorCall<'_>,
    [a, b]: [&Value; 2],
    axis: usize,
    [a_places, b_places]: [&[i64]; 2],
) -> Composed<Value> {
    let (a, b) = (
        picked(call, a, axis, a_places)?,
        picked(call, b, axis, b_places)?,
    );
    Ok(call.node("Mul", &[&a, &b], a.dtype))
}

fn distances(call: &mut OperatorCall<'_>) -> Composed {
    let (x1, x2, out) = (call.tensor("x1")?, call.tensor("x2")?, call.tensor("out")?);
    call.expect_float(x1)?;
    expect_same_dtype(call, x2, x1)?;
    expect_same_dtype(call, out, x1)?;
    let (&[ref outer1 @ .., n1, n], &[ref outer2 @ .., n2, other_n]) = (x1.dims(), x2.dims())
    else {
        let text = format!("`x1` is {x1} and `x2` {x2}; expected rows of vectors");
        return Err(Refusal::invalid(text));
    };
    let outer = broadcast(outer1, outer2)
        .filter(|_| n == other_n)
        .ok_or_else(|| {
            Refusal::invalid(format!(
                "`x1` is {x1} and `x2` {x2}; expected vectors of one length"
            ))
        })?;
    call.expect_shape(out, &[&outer[..], &[n1, n2]].concat())?;
    let p = call.number("p")?;
    if p.is_nan() || p < 0.0 {
        return Err(Refusal::invalid(format!("`p` is {p}; expected 0 or more")));
    }
    // Vectors without entries are all equal.
    if n == 0 {
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let compute = compute_type(x1.dtype);
    let (a, b) = (call.read(x1, compute)?, call.read(x2, compute)?);
    let a = reshaped(call, &a, &[outer1, &[n1, 1, n]].concat())?;
    let b = reshaped(call, &b, &[outer2, &[1, n2, n]].concat())?;
    let difference = call.node("Sub", &[&a, &b], compute);
    let result = norm_along(call, &difference, p, &[-1], false)?;
    call.write(out, &result, x1.dtype);
    Ok(())
}

/// The norm of a value along non-empty axes.
fn norm_along(
    call: &mut OperatorCall<'_>,
    value: &Value,
    order: f64,
    axes: &[i64],
    keeps_axes: bool,
) -> Composed<Value> {
    let dtype = value.dtype;
    let size = call.node("Abs", &[value], dtype);
    // There are no infinite powers; their limits are the extremes.
    if order.is_infinite() {
        let op = if order > 0.0 {
            "ReduceMax"
        } else {
            "ReduceMin"
        };
        return extreme(call, &size, op, axes, keeps_axes);
    }
    let axes = call.constant_ints(axes);
    let keepdims = vec![("keepdims", OperatorAttribute::Int(keeps_axes.into()))];
    let power = call.constant(order, dtype);
    // Common norms without powers, which would add rounding errors.
    let terms = if order == 0.0 {
        let zero = call.constant(0.0, dtype);
        let is_zero = call.node("Equal", &[&size, &zero], DType::Bool);
        let is_other = call.node("Not", &[&is_zero], DType::Bool);
        call.cast(&is_other, dtype)
    } else if order == 1.0 {
        size
    } else if order == 2.0 {
        call.node("Mul", &[&size, &size], dtype)
    } else {
        call.node("Pow", &[&size, &power], dtype)
    };
    let sum = call.node_with("ReduceSum", &[&terms, &axes], keepdims, dtype);
    if order == 0.0 || order == 1.0 {
        return Ok(sum);
    }
    if order == 2.0 {
        return Ok(call.node("Sqrt", &[&sum], dtype));
    }
    let root = call.constant(1.0 / order, dtype);
    Ok(call.node("Pow", &[&sum, &root], dtype))
}

/// The largest or smallest number along axes; NaN if any is NaN.
fn extreme(
    call: &mut OperatorCall<'_>,
    value: &Value,
    op: &'static str,
    axes: &[i64],
    keeps_axes: bool,
) -> Composed<Value> {
    let keepdims = OperatorAttribute::Int(keeps_axes.into());
    let list = OperatorAttribute::Ints(axes.to_vec());
    let attributes = vec![("axes", list), ("keepdims", keepdims.clone())];
    let result = call.node_with(op, &[value], attributes, value.dtype);
    let is_nan = call.is_nan(value);
    let is_nan = call.cast(&is_nan, DType::I64);
    let axes = call.constant_ints(axes);
    let count = call.node_with(
        "ReduceSum",
        &[&is_nan, &axes],
        vec![("keepdims", keepdims)],
        DType::I64,
    );
    let zero = call.constant(0.0, DType::I64);
    let has_nan = call.node("Greater", &[&count, &zero], DType::Bool);
    let nan = call.constant(f64::NAN, value.dtype);
    Ok(call.node("Where", &[&has_nan, &nan, &result], value.dtype))
}

fn norm(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let order = call.scalar("ord")?.as_f64();
    let dtype = call.dtype("dtype")?;
    call.expect_float(x)?;
    if out.dtype != dtype {
        let found = out.dtype;
        return Err(Refusal::invalid(format!(
            "`out` is {found}; expected {dtype}"
        )));
    }
    call.expect_float(out)?;
    if order.is_nan() {
        return Err(Refusal::invalid("`ord` is NaN; expected a number"));
    }
    let n_axes = x.n_axes();
    let listed = call.optional_ints("dims")?.unwrap_or_default();
    let all: Vec<usize> = (0..n_axes).collect();
    let along = if listed.is_empty() {
        Some(all)
    } else {
        axes(listed, n_axes)
    };
    let along = along.ok_or_else(|| {
        Refusal::invalid(format!(
            "`dims` is {listed:?}; expected axes of {n_axes}, each once"
        ))
    })?;
    let keeps_axes = call.flag("keepDims")?;
    call.expect_shape(out, &reduced(x.dims(), &along, keeps_axes))?;
    if x.is_empty() && !out.is_empty() {
        // For empty tensors PyTorch defines only the norms that are sums.
        if order < 0.0 || order.is_infinite() {
            return Err(Refusal::invalid(format!(
                "`self` is {x}, which has no norm {order}"
            )));
        }
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let compute = compute_type(dtype);
    let value = call.read_as(x, dtype, compute)?;
    let (value, along) = if n_axes == 0 {
        (reshaped(call, &value, &[1])?, vec![0])
    } else {
        (
            value,
            along
                .iter()
                .map(|&axis| super::movement::as_int(axis))
                .collect(),
        )
    };
    let result = norm_along(call, &value, order, &along, keeps_axes)?;
    let result = reshaped(call, &result, out.dims())?;
    call.write(out, &result, dtype);
    Ok(())
}

/// The letters of an equation's terms, and of its result.
fn einsum_terms(equation: &str) -> Option<(Vec<Vec<char>>, Vec<char>)> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = equation.split_once("->")?;
    let letters = |term: &str| {
        let term: Vec<char> = term.chars().collect();
        let is_fine = term
            .iter()
            .enumerate()
            .all(|(i, c)| c.is_ascii_alphabetic() && !term[..i].contains(c));
        is_fine.then_some(term)
    };
    let terms: Option<Vec<Vec<char>>> = left.split(',').map(letters).collect();
    Some((terms?, letters(right)?))
}

fn einsum(call: &mut OperatorCall<'_>) -> Composed {
    let (tensors, out) = (call.tensors("tensors")?, call.tensor("output")?);
    let equation = call.text("equation")?;
    let (terms, result) = einsum_terms(&equation)
        .filter(|(terms, _)| terms.len() == tensors.len())
        .ok_or_else(|| {
            Refusal::invalid(format!(
                "`equation` is `{equation}`; expected a term of different letters for each tensor, \
                 and `->` with that of the result"
            ))
        })?;
    let mut extents: Vec<(char, usize)> = Vec::new();
    for (term, tensor) in terms.iter().zip(tensors) {
        expect_same_dtype(call, tensor, out)?;
        let mismatch = || Refusal::invalid(format!("`tensors` has {tensor} for `{equation}`"));
        if term.len() != tensor.n_axes() || tensor.is_empty() {
            return Err(mismatch());
        }
        for (&letter, &n) in term.iter().zip(tensor.dims()) {
            match extents.iter().find(|(known, _)| *known == letter) {
                Some(&(_, known)) if known != n => return Err(mismatch()),
                Some(_) => {}
                None => extents.push((letter, n)),
            }
        }
    }
    // Letters outside of all terms have no size.
    let find = |letter: &char| extents.iter().find(|(known, _)| known == letter);
    let dims: Option<Vec<usize>> = result.iter().map(|c| find(c).map(|&(_, n)| n)).collect();
    let dims = dims.ok_or_else(|| {
        Refusal::invalid(format!(
            "`equation` is `{equation}`, whose result has an unknown letter"
        ))
    })?;
    call.expect_shape(out, &dims)?;
    let compute = arithmetic_type(out.dtype);
    // Letters of the result come first, then the summed ones.
    let summed = extents
        .iter()
        .filter(|(letter, _)| !result.contains(letter));
    let n_summed = summed.clone().count();
    let order: Vec<char> = result
        .iter()
        .copied()
        .chain(summed.map(|entry| entry.0))
        .collect();
    let mut product: Option<Value> = None;
    for (term, tensor) in terms.iter().zip(tensors) {
        let value = call.read(tensor, compute)?;
        let value = spread_term(call, &value, term, tensor.dims(), &order)?;
        product = Some(match product {
            None => value,
            Some(before) => call.node("Mul", &[&before, &value], compute),
        });
    }
    let mut value = product.ok_or_else(|| Refusal::invalid("`tensors` is empty"))?;
    let whole: Vec<usize> = order
        .iter()
        .filter_map(|c| find(c).map(|&(_, n)| n))
        .collect();
    value = expanded(call, &value, &whole)?;
    if n_summed > 0 {
        let axes: Vec<usize> = (result.len()..order.len()).collect();
        let axes = call.constant_dims(&axes);
        let keepdims = vec![("keepdims", OperatorAttribute::Int(0))];
        value = call.node_with("ReduceSum", &[&value, &axes], keepdims, compute);
    }
    call.write(out, &value, out.dtype);
    Ok(())
}

/// A term's value with an axis for each letter of `order`, of size 1 for missing letters.
fn spread_term(
    call: &mut OperatorCall<'_>,
    value: &Value,
    term: &[char],
    dims: &[usize],
    order: &[char],
) -> Composed<Value> {
    let place = |letter: &char| term.iter().position(|known| known == letter);
    let axes: Vec<usize> = order.iter().filter_map(place).collect();
    let value = if axes.is_empty() {
        value.clone()
    } else {
        transposed(call, value, &axes)
    };
    let along: Vec<usize> = order
        .iter()
        .map(|letter| place(letter).map_or(1, |axis| dims[axis]))
        .collect();
    reshaped(call, &value, &along)
}
