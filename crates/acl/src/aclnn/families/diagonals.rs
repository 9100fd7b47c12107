//! Diagonals and triangles of matrices.

use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value};
use crate::aclnn::families::movement::{
    Elements, as_int, counted, expect_same_dtype, picked, reshaped,
};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::is_float;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of diagonals and triangles.
#[macro_export]
macro_rules! aclnn_diagonals {
    ($rows:ident) => {
        $rows! { "diagonals and triangles";
            aclnnTril = Tril("aclnn_tril.h", "self with 0 above a diagonal of each matrix") by lower_triangle
                (self_: Tensor, diagonal: Int, out: Out);
            aclnnInplaceTril = Tril("aclnn_tril.h", "self with 0 above a diagonal of each matrix") by lower_triangle
                (selfRef: Inplace, diagonal: Int);
            aclnnTriu = Triu("aclnn_triu.h", "self with 0 below a diagonal of each matrix") by upper_triangle
                (self_: Tensor, diagonal: Int, out: Out);
            aclnnInplaceTriu = Triu("aclnn_triu.h", "self with 0 below a diagonal of each matrix") by upper_triangle
                (selfRef: Inplace, diagonal: Int);
            aclnnDiag = Diag("aclnn_diag.h", "a matrix with self on a diagonal, or a diagonal of a matrix") by diagonal
                (self_: Tensor, diagonal: Int, out: Out);
            aclnnDiagFlat = DiagFlat("aclnn_diag_flat.h", "a matrix with the elements of self on a diagonal") by diagonal_matrix
                (self_: Tensor, diagonal: Int, out: Out);
            aclnnInplaceFillDiagonal = FillDiagonal("aclnn_fill_diagonal.h", "fillValue on the diagonal; with wrap, below a tall matrix's square again") by fill_diagonal
                (selfRef: Inplace, fillValue: Scalar, wrap: Flag);
            aclnnTrace = Trace("aclnn_trace.h", "the sum of a matrix's diagonal") by trace
                (self_: Tensor, out: Out);
        }
    };
}
aclnn_diagonals!(operator_rows);

/// Rows and columns of the last two axes.
fn matrix(x: &TensorArgument) -> Composed<[usize; 2]> {
    match *x.dims() {
        [.., rows, columns] => Ok([rows, columns]),
        _ => Err(Refusal::invalid(format!(
            "`self` is {x}; expected a matrix"
        ))),
    }
}

/// Row numbers as a column and column numbers as a row, which broadcast to a matrix.
fn positions(call: &mut OperatorCall<'_>, [rows, columns]: [usize; 2]) -> Composed<[Value; 2]> {
    let all_rows = counted(call, rows)?;
    let all_rows = reshaped(call, &all_rows, &[rows, 1])?;
    Ok([all_rows, counted(call, columns)?])
}

/// The number of a diagonal, clamped: beyond the corners all are the same.
fn clipped_diagonal(call: &OperatorCall<'_>, [rows, columns]: [usize; 2]) -> Composed<i64> {
    let number = call.int("diagonal")?;
    Ok(number.clamp(-as_int(rows) - 1, as_int(columns) + 1))
}

fn triangle(call: &mut OperatorCall<'_>, outside: &'static str) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    call.expect_shape(out, x.dims())?;
    let extents = matrix(x)?;
    // Row numbers and the diagonal's number are added, which must not overflow.
    let offset = clipped_diagonal(call, extents)?;
    let [rows, columns] = positions(call, extents)?;
    let offset = call.constant_ints(&[offset]);
    let on_diagonal = call.node("Add", &[&rows, &offset], DType::I64);
    let is_outside = call.node(outside, &[&columns, &on_diagonal], DType::Bool);
    let value = call.read_raw(x)?;
    // The bits of 0 are 0 in every dtype.
    let zero = call.constant(0.0, value.dtype);
    let result = call.node("Where", &[&is_outside, &zero, &value], value.dtype);
    call.write_raw(out, &result);
    Ok(())
}

fn lower_triangle(call: &mut OperatorCall<'_>) -> Composed {
    triangle(call, "Greater")
}

fn upper_triangle(call: &mut OperatorCall<'_>) -> Composed {
    triangle(call, "Less")
}

fn diagonal(call: &mut OperatorCall<'_>) -> Composed {
    let x = call.tensor("self")?;
    match *x.dims() {
        [_] => diagonal_matrix(call),
        [rows, columns] => diagonal_elements(call, [rows, columns]),
        _ => Err(Refusal::invalid(format!(
            "`self` is {x}; expected one or two axes"
        ))),
    }
}

fn diagonal_elements(call: &mut OperatorCall<'_>, [rows, columns]: [usize; 2]) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    let offset = call.int("diagonal")?;
    let (m, n) = (as_int(rows), as_int(columns));
    if !(-m..=n).contains(&offset) {
        return Err(Refusal::invalid(format!(
            "`diagonal` is {offset}; expected one of a matrix of {rows} rows and {columns} columns"
        )));
    }
    // In the flattened matrix the diagonal has every (n + 1)th element.
    let first = if offset < 0 { -offset * n } else { offset };
    let count = if offset < 0 {
        n.min(m + offset)
    } else {
        m.min(n - offset)
    };
    let places: Vec<i64> = (0..count).map(|i| first + i * (n + 1)).collect();
    call.expect_shape(out, &[places.len()])?;
    let value = call.read_raw(x)?;
    let value = reshaped(call, &value, &[rows * columns])?;
    let value = picked(call, &value, 0, &places)?;
    call.write_raw(out, &value);
    Ok(())
}

fn diagonal_matrix(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    let offset = call.int("diagonal")?;
    let n = x.n_elements();
    let too_far = || Refusal::invalid(format!("`diagonal` is {offset}, too far for any matrix"));
    let distance = usize::try_from(offset.unsigned_abs()).ok();
    let size = distance.and_then(|distance| n.checked_add(distance));
    let size = size.ok_or_else(too_far)?;
    call.expect_shape(out, &[size, size])?;
    if n == 0 {
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let value = call.read_raw(x)?;
    let value = reshaped(call, &value, &[n])?;
    let pads = call.constant_dims(&[0, size - n]);
    let padded = call.node("Pad", &[&value, &pads], value.dtype);
    // Above the main diagonal element i is in row i, below it in column i.
    let along = if offset < 0 { [1, size] } else { [size, 1] };
    let padded = reshaped(call, &padded, &along)?;
    let [rows, columns] = positions(call, [size, size])?;
    let offset = call.constant_ints(&[offset]);
    let on_diagonal = call.node("Add", &[&rows, &offset], DType::I64);
    let is_there = call.node("Equal", &[&columns, &on_diagonal], DType::Bool);
    let zero = call.constant(0.0, value.dtype);
    let result = call.node("Where", &[&is_there, &padded, &zero], value.dtype);
    call.write_raw(out, &result);
    Ok(())
}

fn fill_diagonal(call: &mut OperatorCall<'_>) -> Composed {
    let (x, number) = (call.tensor("selfRef")?, call.scalar("fillValue")?);
    let &[rows, columns] = x.dims() else {
        return Err(Refusal::invalid(format!(
            "`selfRef` is {x}; expected a matrix"
        )));
    };
    // A wrapped diagonal skips a row below each square. A wide matrix ends before the diagonal
    // could wrap.
    let period = if call.flag("wrap")? {
        columns + 1
    } else {
        rows.max(1)
    };
    let places: Vec<i64> = (0..rows).map(|row| as_int(row % period)).collect();
    let on_diagonal = call.constant_ints(&places);
    let on_diagonal = reshaped(call, &on_diagonal, &[rows, 1])?;
    let all_columns = counted(call, columns)?;
    let is_there = call.node("Equal", &[&all_columns, &on_diagonal], DType::Bool);
    let elements = Elements::Bits(x.dtype);
    let filled = elements.side(call, Side::Scalar(number))?;
    let value = elements.read(call, x)?;
    let result = call.node("Where", &[&is_there, &filled, &value], value.dtype);
    elements.write(call, x, &result);
    Ok(())
}

fn trace(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let &[rows, columns] = x.dims() else {
        return Err(Refusal::invalid(format!(
            "`self` is {x}; expected a matrix"
        )));
    };
    call.expect_shape(out, &[])?;
    let dtype = if is_float(x.dtype) {
        x.dtype
    } else {
        DType::I64
    };
    call.expect_cast(out, dtype)?;
    // An empty sum is 0, which not all engines return.
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let compute = crate::aclnn::promotion::compute_type(dtype);
    let value = call.read(x, compute)?;
    let value = reshaped(call, &value, &[rows * columns])?;
    let places: Vec<i64> = (0..rows.min(columns))
        .map(|i| as_int(i * (columns + 1)))
        .collect();
    let value = picked(call, &value, 0, &places)?;
    let axes = call.constant_ints(&[0]);
    let keepdims = opscope_engine::single_operator::OperatorAttribute::Int(0);
    let sum = call.node_with(
        "ReduceSum",
        &[&value, &axes],
        vec![("keepdims", keepdims)],
        compute,
    );
    call.write(out, &sum, dtype);
    Ok(())
}
