//! Matrix-matrix and matrix-vector products.
//!
//! All are [`MatrixProduct`]s; functions with a type in their name have fixed types, and a vector
//! is a matrix with one column.

use opscope_acl::{Handle, MatrixProduct, MatrixProductData};

use crate::border::process;
use crate::pointer::OutPointer;
use crate::table::{codes, results};

/// Numbers of `aclDataType` for `a`, `b` and `c`.
const HALVES: [i32; 3] = [1, 1, 1];
const BYTES: [i32; 3] = [2, 2, 3];
/// Neither of two vectors is transposed.
const VECTOR: i32 = 0;

/// Functions that multiply at once, and those that create a handle: `name, name of the other(types)
/// matrices;` or `… vectors;` Types in parentheses are parameters.
macro_rules! products {
    // A row's last word selects one of the arms below.
    ($($multiply:ident, $create:ident($types:expr) $shape:ident;)+) => {$(
        products!($shape $multiply, $create, $types);
    )+};
    (matrices $multiply:ident, $create:ident, $types:expr) => {
        codes! {
            $multiply(
                trans_a: i32, trans_b: i32, trans_c: i32, m: i32, n: i32, k: i32,
                alpha: usize, a: usize, lda: i32, b: usize, ldb: i32, beta: usize, c: usize, ldc: i32,
                compute_type: i32, stream: Handle,
            ) => process().multiply_matrices(
                stringify!($multiply),
                &MatrixProduct {
                    trans: [trans_a, trans_b, trans_c],
                    extents: [m, n, k],
                    data_types: $types,
                    compute_type,
                },
                &MatrixProductData { alpha, a, b, beta, c, leading: [lda, ldb, ldc] },
                stream,
            );
        }
        results! {
            $create(
                trans_a: i32, trans_b: i32, trans_c: i32, m: i32, n: i32, k: i32,
                compute_type: i32, handle: OutPointer<Handle>,
            ) => handle = process().create_product_handle(
                FUNCTION,
                &MatrixProduct {
                    trans: [trans_a, trans_b, trans_c],
                    extents: [m, n, k],
                    data_types: $types,
                    compute_type,
                },
            )?;
        }
    };
    // A vector is never transposed: it would become a row, and the shapes would not match.
    (vectors $multiply:ident, $create:ident, $types:expr) => {
        codes! {
            $multiply(
                trans_a: i32, m: i32, n: i32,
                alpha: usize, a: usize, lda: i32, x: usize, incx: i32, beta: usize, y: usize, incy: i32,
                compute_type: i32, stream: Handle,
            ) => process().multiply_matrices(
                stringify!($multiply),
                &MatrixProduct {
                    trans: [trans_a, VECTOR, VECTOR],
                    extents: [m, 1, n],
                    data_types: $types,
                    compute_type,
                },
                &MatrixProductData { alpha, a, b: x, beta, c: y, leading: [lda, incx, incy] },
                stream,
            );
        }
        results! {
            $create(
                trans_a: i32, m: i32, n: i32, compute_type: i32, handle: OutPointer<Handle>,
            ) => handle = process().create_product_handle(
                FUNCTION,
                &MatrixProduct {
                    trans: [trans_a, VECTOR, VECTOR],
                    extents: [m, 1, n],
                    data_types: $types,
                    compute_type,
                },
            )?;
        }
    };
}

products! {
    aclblasHgemm, aclblasCreateHandleForHgemm(HALVES) matrices;
    aclblasS8gemm, aclblasCreateHandleForS8gemm(BYTES) matrices;
    aclblasHgemv, aclblasCreateHandleForHgemv(HALVES) vectors;
    aclblasS8gemv, aclblasCreateHandleForS8gemv(BYTES) vectors;
}

// The types of these two are parameters between the addresses, which the rows above cannot express.
codes! {
    aclblasGemmEx(
        trans_a: i32, trans_b: i32, trans_c: i32, m: i32, n: i32, k: i32,
        alpha: usize, a: usize, lda: i32, type_a: i32, b: usize, ldb: i32, type_b: i32,
        beta: usize, c: usize, ldc: i32, type_c: i32, compute_type: i32, stream: Handle,
    ) => process().multiply_matrices(
        "aclblasGemmEx",
        &MatrixProduct {
            trans: [trans_a, trans_b, trans_c],
            extents: [m, n, k],
            data_types: [type_a, type_b, type_c],
            compute_type,
        },
        &MatrixProductData { alpha, a, b, beta, c, leading: [lda, ldb, ldc] },
        stream,
    );
    aclblasGemvEx(
        trans_a: i32, m: i32, n: i32,
        alpha: usize, a: usize, lda: i32, type_a: i32, x: usize, incx: i32, type_x: i32,
        beta: usize, y: usize, incy: i32, type_y: i32, compute_type: i32, stream: Handle,
    ) => process().multiply_matrices(
        "aclblasGemvEx",
        &MatrixProduct {
            trans: [trans_a, VECTOR, VECTOR],
            extents: [m, 1, n],
            data_types: [type_a, type_x, type_y],
            compute_type,
        },
        &MatrixProductData { alpha, a, b: x, beta, c: y, leading: [lda, incx, incy] },
        stream,
    );
}

results! {
    aclblasCreateHandleForGemmEx(
        trans_a: i32, trans_b: i32, trans_c: i32, m: i32, n: i32, k: i32,
        type_a: i32, type_b: i32, type_c: i32, compute_type: i32, handle: OutPointer<Handle>,
    ) => handle = process().create_product_handle(
        FUNCTION,
        &MatrixProduct {
            trans: [trans_a, trans_b, trans_c],
            extents: [m, n, k],
            data_types: [type_a, type_b, type_c],
            compute_type,
        },
    )?;
    aclblasCreateHandleForGemvEx(
        trans_a: i32, m: i32, n: i32, type_a: i32, type_x: i32, type_y: i32,
        compute_type: i32, handle: OutPointer<Handle>,
    ) => handle = process().create_product_handle(
        FUNCTION,
        &MatrixProduct {
            trans: [trans_a, VECTOR, VECTOR],
            extents: [m, 1, n],
            data_types: [type_a, type_x, type_y],
            compute_type,
        },
    )?;
}
