//! Matrix products (`aclblas`), run as the single operator `GEMM`.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_store::memory_bytes;

use crate::data::{DataBuffer, TensorDesc};
use crate::data_type::{FORMAT_ND, data_type_size};
use crate::handle::Handle;
use crate::operator::RunnableOperator;
use crate::status::INVALID_PARAM;
use crate::{AclProcess, Answer, Status};

/// The operator in the vendor's library.
const OP_TYPE: &str = "GEMM";
/// `aclTransType`: not transposed, transposed, and in blocks; the fourth is transposed blocks.
const AS_IT_IS: i32 = 0;
const TRANSPOSED: i32 = 1;
const IN_BLOCKS: i32 = 2;
/// The only leading dimension: rows without gaps.
const WITHOUT_GAPS: i32 = -1;
/// `ACL_COMPUTE_HIGH_PRECISION`, the only mode.
const HIGH_PRECISION: i32 = 0;
/// Bytes at the address of a factor, whatever its type.
const N_FACTOR_BYTES: usize = 4;

/// The description of `c = alpha * a b + beta * c`. After transposition `a` is `m`×`k` and `b` is
/// `k`×`n`; `c` is `m`×`n`. Rows have no gaps.
#[derive(Clone, Copy, Debug)]
pub struct MatrixProduct {
    /// Numbers of `aclTransType` for `a`, `b` and `c`.
    pub trans: [i32; 3],
    /// `m`, `n` and `k`.
    pub extents: [i32; 3],
    /// `aclDataType`s of `a`, `b` and `c`; `alpha` and `beta` have that of `c`.
    pub data_types: [i32; 3],
    /// The `aclComputeType`.
    pub compute_type: i32,
}

/// The addresses that a product reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct MatrixProductData {
    /// The address of the factor of the product.
    pub alpha: usize,
    /// The left matrix.
    pub a: usize,
    /// The right matrix.
    pub b: usize,
    /// The factor of `c`.
    pub beta: usize,
    /// The matrix that is added and overwritten.
    pub c: usize,
    /// The leading dimensions of `a`, `b` and `c`.
    pub leading: [i32; 3],
}

impl AclProcess {
    /// `aclblasGemmEx` and so on. float16 is computed in float32 and rounded once; int8 products
    /// are exact in int32, and wrap around. `c` is read even if `beta` is 0. The product is dumped
    /// as the single operator `GEMM`.
    ///
    /// # Errors
    /// `INVALID_PARAM`, reported, for null, dimensions below 1, a leading dimension other than -1
    /// and unknown enumeration values; `API_NOT_SUPPORT`, reported, for matrices in blocks;
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
        // The vendor's order of checks, so that a program with several mistakes gets the same code.
        self.check_product(function, product)?;
        if leading.iter().any(|&stride| stride != WITHOUT_GAPS) {
            let reason = "the only leading dimension is -1: rows without gaps";
            return Err(self.refuse_product("lda, ldb, ldc", &leading, reason));
        }
        self.check_stream(stream)?;
        let prepared = self.prepare_product(product)?;
        let n_max = usize::try_from(memory_bytes()).unwrap_or(usize::MAX);
        let matrix = |i: usize, address| {
            let size = prepared.inputs[i].n_bytes().ok_or(INVALID_PARAM)?;
            // The size of the program's memory is unknown, but no matrix is larger than all of it.
            self.check_count(size, n_max)?;
            Ok(DataBuffer { address, size })
        };
        // A float16 uses two of the four bytes; the vendor's library reads four as well.
        let [alpha, beta] = [alpha, beta].map(|address| DataBuffer {
            address,
            size: N_FACTOR_BYTES,
        });
        let (a, b, c) = (matrix(0, a)?, matrix(1, b)?, matrix(2, c)?);
        // The addend is read before it is overwritten by the result.
        let buffers = vec![a, b, c, alpha, beta];
        self.run_on_buffers(&prepared, buffers, &[(0, c)])
    }

    /// `aclblasCreateHandleForGemmEx` and so on: an operator for [`AclProcess::execute_op_handle`],
    /// which reads `a`, `b`, `c`, `alpha` and `beta`, and writes `c`.
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
        let dims_a = if trans_a { [k, m] } else { [m, k] };
        let dims_b = if trans_b { [n, k] } else { [k, n] };
        let c = TensorDesc::new(type_c, &[m, n], FORMAT_ND);
        let factor = TensorDesc::new(type_c, &[], FORMAT_ND);
        let inputs = vec![
            TensorDesc::new(type_a, &dims_a, FORMAT_ND),
            TensorDesc::new(type_b, &dims_b, FORMAT_ND),
            c.clone(),
            factor.clone(),
            factor,
        ];
        // A wider type would be read beyond the four bytes of a factor.
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
