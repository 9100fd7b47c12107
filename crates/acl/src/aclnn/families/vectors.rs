//! Products, distances and norms of vectors.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{
    Composed, OperatorCall, Refusal, Side, Value, arithmetic_type, refuse_if,
};
use crate::aclnn::families::movement::{axis_in, expect_same_dtype, picked, transposed};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::promotion::compute_type;
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::{axes, broadcast, reduced};

/// Calls a macro with the rows of operators on vectors.
#[macro_export]
macro_rules! aclnn_vectors {
    ($rows:ident) => {
        $rows! { "vectors";
            Cross("aclnn_linalg_cross.h", "the cross products of vectors along axis dim") by cross():
                aclnnLinalgCross(self_: Tensor, other: Tensor, dim: Int, out: Out);
            Cdist("aclnn_cdist.h", "the distances, in the norm p, of the rows of x1 and x2") by distances():
                aclnnCdist(x1: Tensor, x2: Tensor, p: Float, compute_mode: Int, out: Out);
            LpNormV2("aclnn_linalg_vector_norm.h", "the norm ord along dims, or of all elements") by norm():
                aclnnLinalgVectorNorm(self_: Tensor, ord: Scalar, dims: OptionalIntArray, keepDims: Flag, dtype: DataType, out: Out);
            Einsum("aclnn_einsum.h", "the sum of products that equation describes") by einsum():
                aclnnEinsum(tensors: TensorList, equation: Text, output: Out);
        }
    };
}
aclnn_vectors!(operator_rows);

fn cross(call: &OperatorCall<'_>) -> Composed {
    let (x, other, out) = (
        call.tensor("self")?,
        call.tensor("other")?,
        call.tensor("out")?,
    );
    call.broadcast(&[Side::Tensor(x), Side::Tensor(other)], out)?;
    expect_same_dtype(call, other, x)?;
    expect_same_dtype(call, out, x)?;
    let axis = axis_in("dim", call.int("dim")?, out.n_axes())?;
    refuse_if!(
        out.dims().get(axis) != Some(&3),
        "`out` is {out}; expected 3 entries on axis {axis}"
    );
    let compute = arithmetic_type(x.dtype);
    let (a, b) = (call.read(x, compute)?, call.read(other, compute)?);
    let (a, b) = (a.expanded(out.dims()), b.expanded(out.dims()));
    // Component i is computed from the next two components in cyclic order.
    let (next, last) = ([1, 2, 0], [2, 0, 1]);
    let first = product(call, [&a, &b], axis, [&next, &last]);
    let second = product(call, [&a, &b], axis, [&last, &next]);
    call.write(out, &first - &second, x.dtype)
}

/// Products of the entries of two values at indices of an axis.
fn product(
    call: &OperatorCall<'_>,
    [a, b]: [&Value; 2],
    axis: usize,
    [a_places, b_places]: [&[i64]; 2],
) -> Value {
    let (a, b) = (
        picked(call, a, axis, a_places),
        picked(call, b, axis, b_places),
    );
    &a * &b
}

fn distances(call: &OperatorCall<'_>) -> Composed {
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
    refuse_if!(p.is_nan() || p < 0.0, "`p` is {p}; expected 0 or more");
    // Vectors without entries are all equal.
    if n == 0 {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let compute = compute_type(x1.dtype);
    let (a, b) = (call.read(x1, compute)?, call.read(x2, compute)?);
    let a = a.reshaped(&[outer1, &[n1, 1, n]].concat());
    let b = b.reshaped(&[outer2, &[1, n2, n]].concat());
    let difference = &a - &b;
    call.write(
        out,
        norm_along(call, &difference, p, &[-1], false),
        x1.dtype,
    )
}

/// The norm of a value along non-empty axes.
fn norm_along(
    call: &OperatorCall<'_>,
    value: &Value,
    order: f64,
    axes: &[i64],
    keeps_axes: bool,
) -> Value {
    let dtype = value.dtype;
    let size = value.abs();
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
    // Common norms without powers, which would add rounding errors.
    let terms = if order == 0.0 {
        (!size.equal(0.0)).cast(dtype)
    } else if order == 1.0 {
        size
    } else if order == 2.0 {
        &size * &size
    } else {
        size.pow(order)
    };
    let sum = call.node_with("ReduceSum", &[&terms, &axes], keepdims, dtype);
    if order == 0.0 || order == 1.0 {
        return sum;
    }
    if order == 2.0 {
        return sum.sqrt();
    }
    sum.pow(1.0 / order)
}

/// The largest or smallest number along axes; NaN if any is NaN.
fn extreme(
    call: &OperatorCall<'_>,
    value: &Value,
    op: &'static str,
    axes: &[i64],
    keeps_axes: bool,
) -> Value {
    let keepdims = OperatorAttribute::Int(keeps_axes.into());
    let list = OperatorAttribute::Ints(axes.to_vec());
    let attributes = vec![("axes", list), ("keepdims", keepdims.clone())];
    let result = call.node_with(op, &[value], attributes, value.dtype);
    let is_nan = value.is_nan().cast(DType::I64);
    let axes = call.constant_ints(axes);
    let count = call.node_with(
        "ReduceSum",
        &[&is_nan, &axes],
        vec![("keepdims", keepdims)],
        DType::I64,
    );
    count.greater(0.0).choose(f64::NAN, &result)
}

fn norm(call: &OperatorCall<'_>) -> Composed {
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
    refuse_if!(order.is_nan(), "`ord` is NaN; expected a number");
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
        refuse_if!(
            order < 0.0 || order.is_infinite(),
            "`self` is {x}, which has no norm {order}"
        );
        return call.fill(out, ScalarNumber::Int(0));
    }
    let compute = compute_type(dtype);
    let value = call.read_as(x, dtype, compute)?;
    let (value, along) = if n_axes == 0 {
        (value.reshaped(&[1]), vec![0])
    } else {
        (
            value,
            along
                .iter()
                .map(|&axis| super::movement::as_int(axis))
                .collect(),
        )
    };
    let result = norm_along(call, &value, order, &along, keeps_axes);
    call.write(out, result.reshaped(out.dims()), dtype)
}

/// The letters of an equation's terms, and of its result.
fn einsum_terms(equation: &str) -> Option<(Vec<Vec<char>>, Vec<char>)> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = equation.split_once("->")?;
    let terms: Option<Vec<Vec<char>>> = left.split(',').map(different_letters).collect();
    Some((terms?, different_letters(right)?))
}

fn different_letters(term: &str) -> Option<Vec<char>> {
    let term: Vec<char> = term.chars().collect();
    let mut letters = term.iter().enumerate();
    let is_fine = letters.all(|(i, c)| c.is_ascii_alphabetic() && !term[..i].contains(c));
    is_fine.then_some(term)
}

fn einsum(call: &OperatorCall<'_>) -> Composed {
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
        let value = spread_term(call, &value, term, tensor.dims(), &order);
        product = Some(match product {
            None => value,
            Some(before) => &before * &value,
        });
    }
    let mut value = product.ok_or_else(|| Refusal::invalid("`tensors` is empty"))?;
    let whole: Vec<usize> = order
        .iter()
        .filter_map(|c| find(c).map(|&(_, n)| n))
        .collect();
    value = value.expanded(&whole);
    if n_summed > 0 {
        let axes: Vec<usize> = (result.len()..order.len()).collect();
        let axes = call.constant_dims(&axes);
        let keepdims = vec![("keepdims", OperatorAttribute::Int(0))];
        value = call.node_with("ReduceSum", &[&value, &axes], keepdims, compute);
    }
    call.write(out, &value, out.dtype)
}

/// A term's value with an axis for each letter of `order`, of size 1 for missing letters.
fn spread_term(
    call: &OperatorCall<'_>,
    value: &Value,
    term: &[char],
    dims: &[usize],
    order: &[char],
) -> Value {
    let places = order
        .iter()
        .map(|letter| term.iter().position(|known| known == letter));
    let axes: Vec<usize> = places.clone().flatten().collect();
    let value = if axes.is_empty() {
        value.clone()
    } else {
        transposed(call, value, &axes)
    };
    let along = places.map(|axis| axis.map_or(1, |axis| dims[axis]));
    value.reshaped(&along.collect::<Vec<usize>>())
}
