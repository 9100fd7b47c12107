//! Matrix products of integers.

use opscope_store::record::Record;

use super::OutputOverflow;
use super::contract::{I32, ProductSum, always_fits, centred, zeros};
use super::integers::{IntegerBounds, IntegerTensor};
use super::operators::{is_set, text};
use super::walk::{OperandWalk, broadcast_dims, broadcast_strides};

/// `MatMul` of integers, accumulated in the dtype of the operands.
pub(super) fn matmul(record: &Record) -> Option<OutputOverflow> {
    let (a, b) = (
        IntegerTensor::input(record, 0)?,
        IntegerTensor::input(record, 1)?,
    );
    product(
        record,
        a.bounds,
        (a.dims, &a.to_wide()),
        (b.dims, &b.to_wide()),
    )
}

/// `MatMulInteger`, accumulated in 32 bits.
pub(super) fn matmul_integer(record: &Record) -> Option<OutputOverflow> {
    quantised(record, [0, 2], [1, 3])
}

/// `QLinearMatMul`, accumulated in 32 bits before requantisation.
pub(super) fn qlinear_matmul(record: &Record) -> Option<OutputOverflow> {
    quantised(record, [0, 2], [3, 5])
}

/// The product of two factors; `a` and `b` hold the positions of their elements and zero points
/// among the inputs.
fn quantised(record: &Record, a: [usize; 2], b: [usize; 2]) -> Option<OutputOverflow> {
    let [a, zero_a] = a.map(|index| IntegerTensor::input(record, index));
    let [b, zero_b] = b.map(|index| IntegerTensor::input(record, index));
    let (a, b) = (a?, b?);
    let magnitudes = [
        a.magnitude_around(zero_a.as_ref()),
        b.magnitude_around(zero_b.as_ref()),
    ];
    if always_fits(I32, *a.dims.last()?, &magnitudes, 0) {
        return None;
    }
    // A list of zero points has one for each row of the first factor, or for each column of the
    // second.
    let rows = zero_a.as_ref().map_or(vec![], |zero| match zero.dims {
        [n] if *n > 1 => vec![*n, 1],
        dims => dims.to_vec(),
    });
    let columns = zero_b.as_ref().map_or(vec![], |zero| zero.dims.to_vec());
    let centred_a = centred(&a, zero_a.as_ref(), &rows)?;
    let centred_b = centred(&b, zero_b.as_ref(), &columns)?;
    product(record, I32, (a.dims, &centred_a), (b.dims, &centred_b))
}

/// A matrix product as numpy defines it for any number of axes.
fn product(
    record: &Record,
    bounds: IntegerBounds,
    (a_dims, a): (&[usize], &[i128]),
    (b_dims, b): (&[usize], &[i128]),
) -> Option<OutputOverflow> {
    let (a_batch, [m, k]) = match a_dims {
        // numpy treats a vector on the left as a row, and on the right as a column.
        [k] => (&[][..], [1, *k]),
        [batch @ .., m, k] => (batch, [*m, *k]),
        [] => return None,
    };
    let (b_batch, [b_k, n]) = match b_dims {
        [k] => (&[][..], [*k, 1]),
        [batch @ .., k, n] => (batch, [*k, *n]),
        [] => return None,
    };
    if k != b_k {
        return None;
    }
    let batch = broadcast_dims(&[a_batch, b_batch])?;
    let matrices = [(a_batch, m * k), (b_batch, k * n), (&batch[..], m * n)];
    let [strides_a, strides_b, strides_to] = matrices.map(|(dims, size)| {
        let strides = broadcast_strides(dims, batch.len()).into_iter();
        strides.map(|stride| stride * size).collect::<Vec<usize>>()
    });
    let batches = (0..batch.len()).map(|axis| {
        let strides = vec![strides_a[axis], strides_b[axis], strides_to[axis]];
        (batch[axis], strides)
    });
    // Columns are the innermost loop: the memory order of the second factor and of the result.
    let matrix = [(m, vec![k, 0, n]), (k, vec![1, n, 0]), (n, vec![0, 1, 1])];
    let results = zeros(record, &[&batch[..], &[m, n]].concat())?;
    let contraction = ProductSum {
        bounds,
        walk: OperandWalk::new(3, batches.chain(matrix)),
        results,
    };
    contraction.place(&[a, b])
}

/// `Gemm` of integers: integer factors and a bias.
pub(super) fn gemm(record: &Record) -> Option<OutputOverflow> {
    let (a, b) = (
        IntegerTensor::input(record, 0)?,
        IntegerTensor::input(record, 1)?,
    );
    let operator = &record.operator;
    let ([a_rows, a_columns], [b_rows, b_columns]) = (a.dims, b.dims) else {
        return None;
    };
    let (m, k, a_strides) = if is_set(operator, "transA") {
        (*a_columns, *a_rows, [1, *a_columns])
    } else {
        (*a_rows, *a_columns, [*a_columns, 1])
    };
    let (b_k, n, b_strides) = if is_set(operator, "transB") {
        (*b_columns, *b_rows, [1, *b_columns])
    } else {
        (*b_rows, *b_columns, [*b_columns, 1])
    };
    // A fractional scale leads out of integer arithmetic and its accumulator.
    let scales = ["alpha", "beta"].map(|name| text(operator, name).map_or(Ok(1.0), str::parse));
    let [Ok(alpha), Ok(beta)]: [Result<f32, _>; 2] = scales else {
        return None;
    };
    if [alpha, beta]
        .iter()
        .any(|scale| scale.fract() != 0.0 || scale.abs() >= 1e9)
    {
        return None;
    }
    let (alpha, beta) = (alpha as i128, beta as i128);
    if k != b_k {
        return None;
    }
    let c = IntegerTensor::input(record, 2);
    let magnitudes = [a.magnitude_max(), b.magnitude_max(), alpha.unsigned_abs()];
    let bias = c.as_ref().map_or(0, IntegerTensor::magnitude_max) * beta.unsigned_abs();
    if always_fits(a.bounds, k, &magnitudes, bias) {
        return None;
    }
    let mut scaled = a.to_wide();
    // The accumulator holds products already scaled by `alpha`, and it is what overflows.
    scaled.iter_mut().for_each(|value| *value *= alpha);
    let mut results = zeros(record, &[m, n])?;
    if let Some(c) = c {
        let bias = c.to_wide();
        let mut start = 0;
        OperandWalk::broadcast(&[&[m, n], c.dims])?.each_run(|len, offsets, strides| {
            for i in 0..len {
                if let Some(result) = results.get_mut(start + i) {
                    *result = bias[offsets[1] + i * strides[1]] * beta;
                }
            }
            start += len;
        });
    }
    let axes = [
        (m, vec![a_strides[0], 0, n]),
        (k, vec![a_strides[1], b_strides[0], 0]),
        (n, vec![0, b_strides[1], 1]),
    ];
    let contraction = ProductSum {
        bounds: a.bounds,
        walk: OperandWalk::new(3, axes),
        results,
    };
    contraction.place(&[&scaled, &b.to_wide()])
}
