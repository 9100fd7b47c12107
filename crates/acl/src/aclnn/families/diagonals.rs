//! Diagonals and triangles of matrices.

use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, refuse_if};
use crate::aclnn::families::movement::{Elements, as_int, counted, expect_same_dtype, picked};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::is_float;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of diagonals and triangles.
#[macro_export]
macro_rules! aclnn_diagonals {
    ($rows:ident) => {
        $rows! { "diagonals and triangles";
            Tril("aclnn_tril.h", "self with 0 above a diagonal of each matrix") by triangle("Greater"):
                aclnnTril(self_: Tensor, diagonal: Int, out: Out),
                aclnnInplaceTril(selfRef: Inplace, diagonal: Int);
            Triu("aclnn_triu.h", "self with 0 below a diagonal of each matrix") by triangle("Less"):
                aclnnTriu(self_: Tensor, diagonal: Int, out: Out),
                aclnnInplaceTriu(selfRef: Inplace, diagonal: Int);
            Diag("aclnn_diag.h", "a matrix with self on a diagonal, or a diagonal of a matrix") by diagonal():
                aclnnDiag(self_: Tensor, diagonal: Int, out: Out);
            DiagFlat("aclnn_diag_flat.h", "a matrix with the elements of self on a diagonal") by diagonal_matrix():
                aclnnDiagFlat(self_: Tensor, diagonal: Int, out: Out);
            FillDiagonal("aclnn_fill_diagonal.h", "fillValue on the diagonal; with wrap, below a tall matrix's square again") by fill_diagonal():
                aclnnInplaceFillDiagonal(selfRef: Inplace, fillValue: Scalar, wrap: Flag);
            Trace("aclnn_trace.h", "the sum of a matrix's diagonal") by trace():
                aclnnTrace(self_: Tensor, out: Out);
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
fn positions(call: &OperatorCall<'_>, [rows, columns]: [usize; 2]) -> Composed<[Value; 2]> {
    let all_rows = counted(call, rows)?;
    let all_rows = all_rows.reshaped(&[rows, 1]);
    Ok([all_rows, counted(call, columns)?])
}

/// The number of a diagonal, clamped: beyond the corners all are the same.
fn clipped_diagonal(call: &OperatorCall<'_>, [rows, columns]: [usize; 2]) -> Composed<i64> {
    let number = call.int("diagonal")?;
    Ok(number.clamp(-as_int(rows) - 1, as_int(columns) + 1))
}

fn triangle(call: &OperatorCall<'_>, outside: &'static str) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    call.expect_shape(out, x.dims())?;
    let extents = matrix(x)?;
    // Row numbers and the diagonal's number are added, which must not overflow.
    let offset = clipped_diagonal(call, extents)?;
    let [rows, columns] = positions(call, extents)?;
    let offset = call.constant_ints(&[offset]);
    let on_diagonal = &rows + &offset;
    let is_outside = call.node(outside, &[&columns, &on_diagonal], DType::Bool);
    let value = call.read_raw(x)?;
    // The bits of 0 are 0 in every dtype.
    call.write_raw(out, is_outside.choose(0.0, &value))
}

fn diagonal(call: &OperatorCall<'_>) -> Composed {
    let x = call.tensor("self")?;
    match *x.dims() {
        [_] => diagonal_matrix(call),
        [rows, columns] => diagonal_elements(call, [rows, columns]),
        _ => Err(Refusal::invalid(format!(
            "`self` is {x}; expected one or two axes"
        ))),
    }
}

fn diagonal_elements(call: &OperatorCall<'_>, [rows, columns]: [usize; 2]) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    let offset = call.int("diagonal")?;
    let (m, n) = (as_int(rows), as_int(columns));
    refuse_if!(
        !(-m..=n).contains(&offset),
        "`diagonal` is {offset}; expected one of a matrix of {rows} rows and {columns} columns"
    );
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
    let value = value.reshaped(&[rows * columns]);
    call.write_raw(out, picked(call, &value, 0, &places))
}

fn diagonal_matrix(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    expect_same_dtype(call, out, x)?;
    let offset = call.int("diagonal")?;
    let n = x.n_elements();
    let distance = usize::try_from(offset.unsigned_abs()).ok();
    let size = distance.and_then(|distance| n.checked_add(distance));
    let size = size.ok_or_else(|| {
        Refusal::invalid(format!("`diagonal` is {offset}, too far for any matrix"))
    })?;
    call.expect_shape(out, &[size, size])?;
    if n == 0 {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let value = call.read_raw(x)?;
    let value = value.reshaped(&[n]);
    let pads = call.constant_dims(&[0, size - n]);
    let padded = call.node("Pad", &[&value, &pads], value.dtype);
    // Above the main diagonal element i is in row i, below it in column i.
    let along = if offset < 0 { [1, size] } else { [size, 1] };
    let padded = padded.reshaped(&along);
    let [rows, columns] = positions(call, [size, size])?;
    let offset = call.constant_ints(&[offset]);
    call.write_raw(out, columns.equal(&rows + &offset).choose(&padded, 0.0))
}

fn fill_diagonal(call: &OperatorCall<'_>) -> Composed {
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
    let on_diagonal = on_diagonal.reshaped(&[rows, 1]);
    let all_columns = counted(call, columns)?;
    let elements = Elements::Bits(x.dtype);
    let filled = elements.side(call, Side::Scalar(number))?;
    let value = elements.read(call, x)?;
    elements.write(
        call,
        x,
        all_columns.equal(&on_diagonal).choose(&filled, &value),
    )
}

fn trace(call: &OperatorCall<'_>) -> Composed {
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
        return call.fill(out, ScalarNumber::Int(0));
    }
    let compute = crate::aclnn::promotion::compute_type(dtype);
    let value = call.read(x, compute)?;
    let value = value.reshaped(&[rows * columns]);
    let places: Vec<i64> = (0..rows.min(columns))
        .map(|i| as_int(i * (columns + 1)))
        .collect();
    let value = picked(call, &value, 0, &places);
    let axes = call.constant_ints(&[0]);
    let keepdims = opscope_engine::single_operator::OperatorAttribute::Int(0);
    let sum = call.node_with(
        "ReduceSum",
        &[&value, &axes],
        vec![("keepdims", keepdims)],
        compute,
    );
    call.write(out, &sum, dtype)
}
