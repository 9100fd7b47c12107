//! Products of matrices (`aclblas`), which run as the single operator `GEMM`.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_store::memory_bytes;

use crate::data::{DataBuffer, TensorDesc};
use crate::data_type::{FORMAT_ND, data_type_size};
use crate::handle::Handle;
use crate::operator::RunnableOperator;
use crate::status::INVALID_PARAM;
use crate::{AclProcess, Answer, Status};

/// The operator that the vendor's library runs.
const OP_TYPE: &str = "GEMM";
/// `aclTransType`: as it is, transposed, and in blocks; the fourth is transposed in blocks.
const AS_IT_IS: i32 = 0;
const TRANSPOSED: i32 = 1;
const IN_BLOCKS: i32 = 2;
/// The only leading dimension: rows lie one after the other.
const WITHOUT_GAPS: i32 = -1;
/// `ACL_COMPUTE_HIGH_PRECISION`, the only way of computing.
const HIGH_PRECISION: i32 = 0;
/// Bytes behind the address of a factor, whatever its type.
const N_FACTOR_BYTES: usize = 4;

/// The description of `c = alpha * a b + beta * c`. `a` has `m` rows and `k` columns after
/// transposing, `b` has `k` rows and `n` columns, `c` has `m` rows and `n` columns; rows lie one
/// after the other.
#[derive(Clone, Copy, Debug)]
pub struct MatrixProduct {
    /// Numbers of `aclTransType` for `a`, `b` and `c`.
    pub trans: [i32; 3],
    /// `m`, `n` and `k`.
    pub extents: [i32; 3],
    /// Numbers of `aclDataType` of `a`, `b` and `c`; `alpha` and `beta` have that of `c`.
    pub data_types: [i32; 3],
    /// A number of `aclComputeType`.
    pub compute_type: i32,
}

/// The addresses that a product reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct MatrixProductData {
    /// The factor of the product.
    pub alpha: usize,
    /// The matrix on the left.
    pub a: usize,
    /// The matrix on the right.
    pub b: usize,
    /// The factor of what `c` holds.
    pub beta: usize,
    /// The matrix that is added, and where the result goes.
    pub c: usize,
    /// The leading dimensions of `a`, `b` and `c`.
    pub leading: [i32; 3],
}

impl AclProcess {
    /// `aclblasGemmEx` and its like. Numbers of float16 are computed in float32 and rounded once;
    /// products of int8 that go into int32 are exact, and wrap around. `c` is read also where
    /// `beta` is 0. The product is dumped as the single operator `GEMM`.
    ///
    /// # Errors
    /// `INVALID_PARAM`, reported, for null, extents below 1, a leading dimension other than -1 and
    /// numbers that are in no enumeration; `API_NOT_SUPPORT`, reported, for matrices in blocks;
    /// otherwise as for [`AclProcess::execute_op`].
    pub fn multiply_matrices(
        &self,
        function: &str,
        product: &MatrixProduct,
        data: &MatrixProductData,
        stream: Handle,
    ) -> Answer {
        let MatrixProductData {
            alpha,
            a,
            b,
            beta,
            c,
            leading,
        } = *data;
        let named = [
            ("alpha", alpha),
            ("beta", beta),
            ("matrixA", a),
            ("matrixB", b),
            ("matrixC", c),
        ];
        if let Some((name, _)) = named.iter().find(|(_, address)| *address == 0) {
            return Err(self.null_argument(function, name));
        }
        // In the order of the vendor's checks, so that a program with several mistakes gets the same
        // code first.
        self.check_product(function, product)?;
        if leading.iter().any(|&one| one != WITHOUT_GAPS) {
            let reason = "the only leading dimension is -1: rows lie one after the other";
            return Err(self.refuse_product("lda, ldb, ldc", &leading, reason));
        }
        self.check_stream(stream)?;
        let prepared = self.prepare_product(product)?;
        let n_max = usize::try_from(memory_bytes()).unwrap_or(usize::MAX);
        let matrix = |i: usize, address| {
            let size = prepared.inputs[i].n_bytes().ok_or(INVALID_PARAM)?;
            // Nothing tells where the program's memory ends, but no matrix is larger than all of it.
            self.check_count(size, n_max)?;
            Ok(DataBuffer { address, size })
        };
        // Numbers of float16 take two of the four bytes; the vendor's library reads four as well.
        let factor = |address| DataBuffer {
            address,
            size: N_FACTOR_BYTES,
        };
        let (a, b, c) = (matrix(0, a)?, matrix(1, b)?, matrix(2, c)?);
        // What is added is read before the result is written over it.
        let buffers = vec![a, b, c, factor(alpha), factor(beta)];
        self.run_on_buffers(&prepared, buffers, &[(0, c)])
    }

    /// `aclblasCreateHandleForGemmEx` and its like: an operator for
    /// [`AclProcess::execute_op_handle`], which reads `a`, `b`, `c`, `alpha` and `beta`, and writes
    /// `c`.
    ///
    /// # Errors
    /// As for [`AclProcess::multiply_matrices`].
    pub fn create_product_handle(&self, function: &str, product: &MatrixProduct) -> Answer<Handle> {
        self.check_product(function, product)?;
        let prepared = self.prepare_product(product)?;
        let handle = self.handles.next();
        Ok(self.objects().op_handles.insert(handle, prepared.into()))
    }

    fn check_product(&self, function: &str, product: &MatrixProduct) -> Answer {
        if product.extents.iter().any(|&extent| extent <= 0) {
            return Err(self.refuse_product("m, n, k", &product.extents, "they must be 1 or more"));
        }
        let [a, b, c] = product.trans;
        let is_known = [a, b]
            .iter()
            .all(|trans| (AS_IT_IS..=IN_BLOCKS).contains(trans));
        if !is_known || !matches!(c, AS_IT_IS | IN_BLOCKS) {
            let reason = "expected ACL_TRANS_N or ACL_TRANS_T, for c ACL_TRANS_N";
            return Err(self.refuse_product("transA, transB, transC", &product.trans, reason));
        }
        if product.compute_type != HIGH_PRECISION {
            let reason = "expected ACL_COMPUTE_HIGH_PRECISION";
            return Err(self.refuse_product("type", &[product.compute_type], reason));
        }
        if product.trans.contains(&IN_BLOCKS) {
            let advice = "no engine of the CPU computes with matrices in blocks; pass ACL_TRANS_N \
                          or ACL_TRANS_T, and the rows one after the other";
            return Err(self.refuse_function(function, advice));
        }
        Ok(())
    }

    fn refuse_product(&self, parameter: &str, found: &[i32], reason: &str) -> Status {
        let found = format!("{found:?}");
        self.refuse(INVALID_PARAM, "EH0001", &[&found, parameter, reason])
    }

    fn prepare_product(&self, product: &MatrixProduct) -> Answer<RunnableOperator> {
        let [m, n, k] = product.extents.map(i64::from);
        let [trans_a, trans_b, _] = product.trans.map(|trans| trans == TRANSPOSED);
        let [type_a, type_b, type_c] = product.data_types;
        let matrix = |data_type, rows, columns, is_transposed| {
            let dims = if is_transposed {
                [columns, rows]
            } else {
                [rows, columns]
            };
            TensorDesc::new(data_type, &dims, FORMAT_ND)
        };
        let c = matrix(type_c, m, n, false);
        let factor = TensorDesc::new(type_c, &[], FORMAT_ND);
        let inputs = vec![
            matrix(type_a, m, k, trans_a),
            matrix(type_b, k, n, trans_b),
            c.clone(),
            factor.clone(),
            factor,
        ];
        // A wider type would be read beyond the four bytes that there are.
        if data_type_size(type_c) > N_FACTOR_BYTES {
            let reason = "expected float16, float32 or int32";
            return Err(self.refuse_product("dataTypeC", &[type_c], reason));
        }
        let attributes = [("transpose_a", trans_a), ("transpose_b", trans_b)];
        let attributes = attributes
            .map(|(name, is_set)| (name.to_owned(), OperatorAttribute::Int(is_set.into())));
        self.prepare_described(OP_TYPE, inputs, vec![c], attributes.into())
    }
}
