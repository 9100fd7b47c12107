//! Matrix and vector products.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::object::{ScalarNumber, ScalarValue};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{compute_type, is_float};
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::broadcast;

/// Calls a macro with the rows of products of matrices and vectors.
#[macro_export]
macro_rules! aclnn_matmul {
    ($rows:ident) => {
        $rows! { "products of matrices and vectors";
            MatMulV3("aclnn_matmul.h", "self @ mat2, of one to six axes") by matmul():
                aclnnMatmul(self_: Tensor, mat2: Tensor, out: Out, cubeMathType: Int8);
            MatMulV3("aclnn_mm.h", "self @ mat2, of two axes") by plain_product(["self", "mat2"], [2, 2]):
                aclnnMm(self_: Tensor, mat2: Tensor, out: Out, cubeMathType: Int8);
            BatchMatMulV3("aclnn_batch_matmul.h", "self @ mat2, of three axes") by plain_product(["self", "mat2"], [3, 3]):
                aclnnBatchMatMul(self_: Tensor, mat2: Tensor, out: Out, cubeMathType: Int8);
            Mv("aclnn_mv.h", "self @ vec, a matrix and a vector") by plain_product(["self", "vec"], [2, 1]):
                aclnnMv(self_: Tensor, vec: Tensor, out: Out, cubeMathType: Int8);
            Dot("aclnn_dot.h", "the inner product of two vectors") by dot():
                aclnnDot(self_: Tensor, tensor: Tensor, out: Out);
            Ger("aclnn_ger.h", "the outer product of two vectors") by outer_product():
                aclnnGer(self_: Tensor, vec2: Tensor, out: Out);
            Addmm("aclnn_addmm.h", "beta * self + alpha * (mat1 @ mat2)") by add_matrix_product():
                aclnnAddmm(self_: Tensor, mat1: Tensor, mat2: Tensor, beta: Scalar, alpha: Scalar, out: Out, cubeMathType: Int8),
                aclnnInplaceAddmm(selfRef: Inplace, mat1: Tensor, mat2: Tensor, beta: Scalar, alpha: Scalar, cubeMathType: Int8);
            Addbmm("aclnn_addbmm.h", "beta * self + alpha * the sum of batch1 @ batch2 over the first axis") by add_sum_of_products():
                aclnnAddbmm(self_: Tensor, batch1: Tensor, batch2: Tensor, beta: Scalar, alpha: Scalar, out: Out, cubeMathType: Int8),
                aclnnInplaceAddbmm(selfRef: Inplace, batch1: Tensor, batch2: Tensor, beta: Scalar, alpha: Scalar, cubeMathType: Int8);
            Baddbmm("aclnn_baddbmm.h", "beta * self + alpha * (batch1 @ batch2)") by add_batch_product():
                aclnnBaddbmm(self_: Tensor, batch1: Tensor, batch2: Tensor, beta: Scalar, alpha: Scalar, out: Out, cubeMathType: Int8),
                aclnnInplaceBaddbmm(selfRef: Inplace, batch1: Tensor, batch2: Tensor, beta: Scalar, alpha: Scalar, cubeMathType: Int8);
            Addmv("aclnn_addmv.h", "beta * self + alpha * (mat @ vec)") by add_named_product(["mat", "vec"], [2, 1], false):
                aclnnAddmv(self_: Tensor, mat: Tensor, vec: Tensor, alpha: Scalar, beta: Scalar, out: Out, cubeMathType: Int8);
            Addr("aclnn_addr.h", "betaOptional * self + alphaOptional * the outer product of vec1 and vec2; without them 1") by add_outer_product():
                aclnnAddr(self_: Tensor, vec1: Tensor, vec2: Tensor, betaOptional: OptionalScalar, alphaOptional: OptionalScalar, out: Out),
                aclnnInplaceAddr(selfRef: Inplace, vec1: Tensor, vec2: Tensor, betaOptional: OptionalScalar, alphaOptional: OptionalScalar);
            Gemm("aclnn_gemm.h", "alpha * (A @ B) + beta * C, A and B transposed where transA and transB are not 0") by gemm():
                aclnnGemm(A: Tensor, B: Tensor, C: Tensor, alpha: Float, beta: Float, transA: Int, transB: Int, out: Out, cubeMathType: Int8);
        }
    };
}
aclnn_matmul!(operator_rows);

/// The modes of the matrix unit. They trade precision for speed on a device, but not here.
pub(super) fn expect_mode(call: &OperatorCall<'_>) -> Composed {
    let mode = call.int("cubeMathType")?;
    if (0..=4).contains(&mode) {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "`cubeMathType` is {mode}; expected 0 to 4"
    )))
}

fn expect_axes(call: &OperatorCall<'_>, tensor: &TensorArgument, n: usize) -> Composed {
    if tensor.n_axes() == n {
        return Ok(());
    }
    let (name, found) = (call.name(tensor), tensor.n_axes());
    Err(Refusal::invalid(format!(
        "`{name}` has {found} axes; expected {n}"
    )))
}

/// A product that is not in the graph yet.
struct Product<'a> {
    first: &'a TensorArgument,
    second: &'a TensorArgument,
    /// Whether each matrix is transposed.
    is_transposed: [bool; 2],
    /// The shape of the result.
    dims: Vec<usize>,
    /// Whether the sum is empty, so that the result is 0.
    is_zero: bool,
}

impl<'a> Product<'a> {
    /// The product of matrices on the last two axes; one axis is a vector.
    fn new(
        call: &OperatorCall<'_>,
        first: &'a TensorArgument,
        second: &'a TensorArgument,
        is_transposed: [bool; 2],
    ) -> Composed<Product<'a>> {
        // The shapes before multiplication; only the values need a transpose node.
        let (mut a, mut b) = (first.dims().to_vec(), second.dims().to_vec());
        // Only products of matrices have transposed operands, so reversing the axes suffices.
        if is_transposed[0] {
            a.reverse();
        }
        if is_transposed[1] {
            b.reverse();
        }
        let dims = product_dims(&a, &b).ok_or_else(|| {
            let (one, other) = (call.name(first), call.name(second));
            Refusal::invalid(format!(
                "`{one}` of shape {a:?} cannot be multiplied with `{other}` of shape {b:?}"
            ))
        })?;
        // Engines differ in products with an empty sum, which are 0.
        let is_zero = a.last() == Some(&0);
        Ok(Product {
            first,
            second,
            is_transposed,
            dims,
            is_zero,
        })
    }

    fn value(&self, call: &OperatorCall<'_>, dtype: DType) -> Composed<Value> {
        let mut factors = Vec::with_capacity(2);
        for (factor, is_transposed) in [self.first, self.second].iter().zip(self.is_transposed) {
            let mut value = call.read(factor, dtype)?;
            if is_transposed {
                let order = vec![("perm", OperatorAttribute::Ints(vec![1, 0]))];
                value = call.node_with("Transpose", &[&value], order, dtype);
            }
            factors.push(value);
        }
        let factors: Vec<&Value> = factors.iter().collect();
        if self.second.n_axes() > 1 {
            return Ok(call.node("MatMul", &factors, dtype));
        }
        // Engines lack products of two vectors, and of integers.
        let products = call.node("Mul", &factors, dtype);
        let axes = call.constant_ints(&[-1]);
        let drops_axes = vec![("keepdims", OperatorAttribute::Int(0))];
        Ok(call.node_with("ReduceSum", &[&products, &axes], drops_axes, dtype))
    }
}

/// The shape of a product; `None` if the shapes are incompatible.
fn product_dims(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let (&k, rows) = a.split_last()?;
    let (rows, batch) = rows
        .split_last()
        .map_or((None, rows), |(n, batch)| (Some(*n), batch));
    let (columns, other_batch, other_k) = match b {
        [] => return None,
        [k] => (None, &[][..], *k),
        [batch @ .., k, n] => (Some(*n), batch, *k),
    };
    if k != other_k {
        return None;
    }
    // The leading axes are batches, which are broadcast.
    let mut dims = broadcast(batch, other_batch)?;
    dims.extend(rows);
    dims.extend(columns);
    Some(dims)
}

/// Stores a product unchanged.
fn write_product(call: &OperatorCall<'_>, product: &Product<'_>) -> Composed {
    let out = call.tensor("out")?;
    call.expect_shape(out, &product.dims)?;
    let dtype = call.promote(&[product.first, product.second], &[])?;
    call.expect_cast(out, dtype)?;
    if product.is_zero {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let value = product.value(call, compute_type(dtype))?;
    call.write(out, &value, dtype)
}

fn plain_product(call: &OperatorCall<'_>, names: [&str; 2], n_axes: [usize; 2]) -> Composed {
    let (a, b) = (call.tensor(names[0])?, call.tensor(names[1])?);
    expect_mode(call)?;
    for (tensor, n) in [(a, n_axes[0]), (b, n_axes[1])] {
        expect_axes(call, tensor, n)?;
        call.expect_float(tensor)?;
    }
    let product = Product::new(call, a, b, [false; 2])?;
    write_product(call, &product)
}

fn matmul(call: &OperatorCall<'_>) -> Composed {
    let (a, b) = (call.tensor("self")?, call.tensor("mat2")?);
    for tensor in [a, b] {
        if !(1..=6).contains(&tensor.n_axes()) {
            let (name, n) = (call.name(tensor), tensor.n_axes());
            let text = format!("`{name}` has {n} axes; expected 1 to 6");
            return Err(Refusal::invalid(text));
        }
    }
    plain_product(call, ["self", "mat2"], [a.n_axes(), b.n_axes()])
}

fn expect_no_booleans(call: &OperatorCall<'_>, tensors: &[&TensorArgument]) -> Composed {
    for tensor in tensors {
        call.expect_dtype(tensor, |dtype| dtype != DType::Bool, "integers or floats")?;
    }
    Ok(())
}

fn dot(call: &OperatorCall<'_>) -> Composed {
    let (a, b) = (call.tensor("self")?, call.tensor("tensor")?);
    expect_no_booleans(call, &[a, b])?;
    for tensor in [a, b] {
        expect_axes(call, tensor, 1)?;
    }
    let product = Product::new(call, a, b, [false; 2])?;
    write_product(call, &product)
}

/// The outer product of two vectors, an element-wise product with broadcasting.
fn outer(
    call: &OperatorCall<'_>,
    a: &TensorArgument,
    b: &TensorArgument,
    dtype: DType,
) -> Composed<Value> {
    let column = call.constant_ints(&[1]);
    let first = call.read(a, dtype)?;
    // Every engine multiplies integers element by element, but not as matrices.
    let first = call.node("Unsqueeze", &[&first, &column], dtype);
    let second = call.read(b, dtype)?;
    Ok(&first * &second)
}

fn outer_product(call: &OperatorCall<'_>) -> Composed {
    let (a, b) = (call.tensor("self")?, call.tensor("vec2")?);
    let out = call.tensor("out")?;
    expect_no_booleans(call, &[a, b])?;
    for tensor in [a, b] {
        expect_axes(call, tensor, 1)?;
    }
    call.expect_shape(out, &[a.n_elements(), b.n_elements()])?;
    let dtype = call.promote(&[a, b], &[])?;
    call.expect_cast(out, dtype)?;
    let result = outer(call, a, b, compute_type(dtype))?;
    call.write(out, &result, dtype)
}

/// The factor of a term. Integer operands require an integer.
fn factor(scalar: &ScalarValue, name: &str, dtype: DType) -> Composed<ScalarNumber> {
    refuse_if!(
        scalar.is_float() && !is_float(dtype),
        "`{name}` is a float, but the operands are {dtype}"
    );
    Ok(scalar.number)
}

fn is_zero(number: ScalarNumber) -> bool {
    matches!(number, ScalarNumber::Int(0)) || number == ScalarNumber::Float(0.0)
}

/// A term: a value and its factor.
struct Term {
    value: Value,
    factor: ScalarNumber,
}

impl Term {
    fn product(&self, call: &OperatorCall<'_>) -> Composed<Value> {
        let dtype = self.value.dtype;
        let factor = call.number_value(self.factor, dtype)?;
        Ok(&self.value * &factor)
    }
}

/// Stores the sum of two optional terms in the shape `dims`.
fn write_sum(
    call: &OperatorCall<'_>,
    terms: [Option<Term>; 2],
    dims: &[usize],
    dtype: DType,
) -> Composed {
    let out = call.tensor("out")?;
    let [addend, product] = terms;
    let sum = match (addend, product) {
        (None, None) => {
            return call.fill(out, ScalarNumber::Int(0));
        }
        (Some(addend), Some(product)) => {
            let (addend, product) = (addend.product(call)?, product.product(call)?);
            &addend + &product
        }
        (Some(term), None) | (None, Some(term)) => {
            let product = term.product(call)?;
            // A single term may need broadcasting to the shape of the result.
            product.expanded(dims)
        }
    };
    call.write(out, &sum, dtype)
}

/// Checks the addend of a product, and returns the dtype of the sum.
fn expect_addend(
    call: &OperatorCall<'_>,
    addend: &TensorArgument,
    factors: [&TensorArgument; 2],
    dims: &[usize],
) -> Composed<DType> {
    let out = call.tensor("out")?;
    call.expect_shape(out, dims)?;
    if broadcast(addend.dims(), dims).is_none_or(|whole| whole != dims) {
        let (name, found) = (call.name(addend), addend.dims());
        return Err(Refusal::invalid(format!(
            "`{name}` of shape {found:?} does not broadcast to {dims:?}"
        )));
    }
    expect_no_booleans(call, &[addend, factors[0], factors[1]])?;
    // The scalars do not affect the dtype, which is that of the tensors.
    let dtype = call.promote(&[addend, factors[0], factors[1]], &[])?;
    call.expect_cast(out, dtype)?;
    Ok(dtype)
}

/// `beta · addend + alpha · product`; a term with factor 0 is not read.
fn add_product(
    call: &OperatorCall<'_>,
    addend: &TensorArgument,
    product: &Product<'_>,
    [beta, alpha]: [&ScalarValue; 2],
    sums_batches: bool,
) -> Composed {
    let dims = &product.dims[usize::from(sums_batches)..];
    let dtype = expect_addend(call, addend, [product.first, product.second], dims)?;
    let beta = factor(beta, "beta", dtype)?;
    let alpha = factor(alpha, "alpha", dtype)?;
    let compute = compute_type(dtype);
    // A sum over no products is 0.
    let has_batches = !sums_batches || product.dims[0] > 0;
    let mut terms = [None, None];
    // Not read if the factor is 0, as uninitialised memory may hold NaN.
    if !is_zero(beta) {
        let value = call.read(addend, compute)?;
        terms[0] = Some(Term {
            value,
            factor: beta,
        });
    }
    if has_batches && !product.is_zero && !is_zero(alpha) {
        let mut value = product.value(call, compute)?;
        if sums_batches {
            let axes = call.constant_ints(&[0]);
            let drops_axes = vec![("keepdims", OperatorAttribute::Int(0))];
            value = call.node_with("ReduceSum", &[&value, &axes], drops_axes, compute);
        }
        terms[1] = Some(Term {
            value,
            factor: alpha,
        });
    }
    write_sum(call, terms, dims, dtype)
}

fn add_named_product(
    call: &OperatorCall<'_>,
    names: [&str; 2],
    n_axes: [usize; 2],
    sums_batches: bool,
) -> Composed {
    let addend = call.tensor("self")?;
    let (a, b) = (call.tensor(names[0])?, call.tensor(names[1])?);
    expect_mode(call)?;
    expect_axes(call, a, n_axes[0])?;
    expect_axes(call, b, n_axes[1])?;
    let product = Product::new(call, a, b, [false; 2])?;
    let numbers = [call.scalar("beta")?, call.scalar("alpha")?];
    add_product(call, addend, &product, numbers, sums_batches)
}

fn expect_floats(call: &OperatorCall<'_>, names: &[&str]) -> Composed {
    for name in names {
        call.expect_float(call.tensor(name)?)?;
    }
    Ok(())
}

fn add_matrix_product(call: &OperatorCall<'_>) -> Composed {
    expect_floats(call, &["self", "mat1", "mat2"])?;
    add_named_product(call, ["mat1", "mat2"], [2, 2], false)
}

fn add_batch_product(call: &OperatorCall<'_>) -> Composed {
    expect_floats(call, &["self", "batch1", "batch2"])?;
    add_named_product(call, ["batch1", "batch2"], [3, 3], false)
}

fn add_sum_of_products(call: &OperatorCall<'_>) -> Composed {
    expect_floats(call, &["self", "batch1", "batch2"])?;
    add_named_product(call, ["batch1", "batch2"], [3, 3], true)
}

fn add_outer_product(call: &OperatorCall<'_>) -> Composed {
    let addend = call.tensor("self")?;
    let (a, b) = (call.tensor("vec1")?, call.tensor("vec2")?);
    for tensor in [a, b] {
        expect_axes(call, tensor, 1)?;
    }
    let dims = [a.n_elements(), b.n_elements()];
    let dtype = expect_addend(call, addend, [a, b], &dims)?;
    let compute = compute_type(dtype);
    // Both factors are optional, unlike those of the other sums.
    let mut numbers = [ScalarNumber::Int(1); 2];
    for (number, name) in numbers.iter_mut().zip(["betaOptional", "alphaOptional"]) {
        if let Some(scalar) = call.optional_scalar(name)? {
            *number = factor(scalar, name, dtype)?;
        }
    }
    let [beta, alpha] = numbers;
    let mut terms = [None, None];
    if !is_zero(beta) {
        let value = call.read(addend, compute)?;
        terms[0] = Some(Term {
            value,
            factor: beta,
        });
    }
    // The product counts even with factor 0, because infinite elements turn it into NaN.
    let value = outer(call, a, b, compute)?;
    terms[1] = Some(Term {
        value,
        factor: alpha,
    });
    write_sum(call, terms, &dims, dtype)
}

fn gemm(call: &OperatorCall<'_>) -> Composed {
    expect_floats(call, &["A", "B", "C"])?;
    expect_mode(call)?;
    let (a, b, addend) = (call.tensor("A")?, call.tensor("B")?, call.tensor("C")?);
    for tensor in [a, b] {
        expect_axes(call, tensor, 2)?;
    }
    let is_transposed = [call.flag("transA")?, call.flag("transB")?];
    let product = Product::new(call, a, b, is_transposed)?;
    let mut numbers = Vec::with_capacity(2);
    for name in ["beta", "alpha"] {
        numbers.push(ScalarValue {
            dtype: DType::F32,
            number: ScalarNumber::Float(call.number(name)?),
        });
    }
    add_product(call, addend, &product, [&numbers[0], &numbers[1]], false)
}
