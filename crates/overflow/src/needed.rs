//! The magnitude that an infinite result would have in a wider dtype, recomputed in doubles.

use opscope_tensor::convert::dtype::{DecodedElements, decode};
use opscope_tensor::{Numbers, TensorView, largest_finite};

use super::non_finite::non_finite_elements;
use super::walk::broadcast_strides;

/// Maximum number of products and other operations for one operator.
const N_OPERATIONS_MAX: usize = 1 << 22;
/// Maximum size of an operand.
const N_BYTES_MAX: usize = 256 << 20;
/// Operators that are recomputed, as ONNX and PyTorch name them, in lower case.
const RECOMPUTED: [&str; 22] = [
    "add", "addmm", "baddbmm", "bmm", "cast", "castlike", "cosh", "div", "exp", "exp2", "expm1",
    "gemm", "linear", "matmul", "mm", "mul", "pow", "rsub", "sinh", "sub", "sum", "tocopy",
];

/// One execution of an operator, with everything that it read.
pub struct InfiniteResult<'a, 't> {
    /// Its type, as captured or as in the names of files: `Pow`, `aten.pow.Tensor_Scalar`,
    /// `aten_pow_Tensor_Scalar`.
    pub op_type: &'a str,
    /// The text of an attribute; scalar arguments of PyTorch are `argument.1` and so on.
    pub attribute: &'a dyn Fn(&str) -> Option<&'a str>,
    /// The tensors that it read, in order.
    pub inputs: &'t [TensorView<'t>],
    /// The result with infinities.
    pub output: TensorView<'t>,
}

/// An operand: a tensor, or a scalar argument.
struct Operand<'a> {
    dims: Vec<usize>,
    content: OperandContent<'a>,
}

enum OperandContent<'a> {
    Elements(DecodedElements<'a>),
    Scalar(f64),
}

impl InfiniteResult<'_, '_> {
    /// The largest finite magnitude among the recomputed elements that are infinite in the output.
    ///
    /// `None` if the operator is not one that is recomputed here, or if no element exceeds the
    /// dtype: 1 / 0 is infinite in every dtype. Infinite if the doubles lack some of the magnitudes.
    pub fn needed(&self) -> Option<f64> {
        let word = word_of(self.op_type)?;
        let largest = largest_finite(self.output.dtype)?;
        let dims = self.output.shape.dims();
        let bad = non_finite_elements(self.output);
        let results = match word {
            "matmul" | "mm" | "bmm" | "gemm" | "addmm" | "baddbmm" | "linear" => {
                self.products(word, dims, &bad)?
            }
            _ => self.elementwise(word, dims, &bad)?,
        };
        let mut magnitudes = results.iter().map(|value| value.abs());
        let needed = magnitudes.clone();
        let needed = needed.filter(|value| value.is_finite() && *value > largest);
        // Next to these, an infinity is a number beyond the doubles.
        let is_beyond_all = magnitudes.any(f64::is_infinite);
        let needed = needed.reduce(f64::max);
        needed.map(|needed| if is_beyond_all { f64::INFINITY } else { needed })
    }

    fn number(&self, attribute: &str) -> Option<f64> {
        (self.attribute)(attribute)?.parse().ok()
    }

    /// Tensors and scalar arguments by position.
    fn operands(&self) -> Option<Vec<Operand<'_>>> {
        // Records hold tensors only; the positions between them belong to scalar arguments, which are
        // attributes.
        let mut tensors = self.inputs.iter();
        let mut operands = Vec::new();
        loop {
            let scalar = self.number(&format!("argument.{}", operands.len()));
            let next = match scalar {
                Some(value) => Operand {
                    dims: Vec::new(),
                    content: OperandContent::Scalar(value),
                },
                None => match tensors.next() {
                    Some(tensor) => operand(*tensor)?,
                    None => return Some(operands),
                },
            };
            operands.push(next);
        }
    }

    fn elementwise(&self, word: &str, dims: &[usize], bad: &[usize]) -> Option<Vec<f64>> {
        let operands = self.operands()?;
        // PyTorch's sum is of one tensor, and its axes are unknown here.
        let is_of_one = word == "sum" && operands.len() < 2;
        if operands.is_empty() || is_of_one || operands.iter().any(|own| !own.fits(dims)) {
            return None;
        }
        let alpha = self.number("alpha").unwrap_or(1.0);
        // The first ones suffice: a model that overflows this often is not rescued by a digit.
        let bad = bad.iter().take(N_OPERATIONS_MAX);
        bad.map(|&at| {
            let mut values = operands.iter().map(|own| own.at(dims, at));
            let a = values.next()??;
            if word == "sum" {
                return values.try_fold(a, |sum, value| Some(sum + value?));
            }
            // Unary operators have none, and any other lacks it only if it is unknown.
            let b = values.next().flatten();
            Some(match word {
                "add" => a + alpha * b?,
                "sub" => a - alpha * b?,
                "rsub" => b? - alpha * a,
                "mul" => a * b?,
                "div" => a / b?,
                "pow" => a.powf(b?),
                "exp" => a.exp(),
                "exp2" => a.exp2(),
                "expm1" => a.exp_m1(),
                "cosh" => a.cosh(),
                "sinh" => a.sinh(),
                _ => a,
            })
        })
        .collect()
    }

    /// Sums of products, plus what is added to them.
    fn products(&self, word: &str, dims: &[usize], bad: &[usize]) -> Option<Vec<f64>> {
        let operands = self.operands()?;
        let is_set = |name| self.number(name).is_some_and(|value| value != 0.0);
        let ([a, b], added, [is_a_turned, is_b_turned]) = match word {
            "gemm" => ([0, 1], 2, [is_set("transA"), is_set("transB")]),
            "addmm" | "baddbmm" => ([1, 2], 0, [false, false]),
            "linear" => ([0, 1], 2, [false, true]),
            _ => ([0, 1], usize::MAX, [false, false]),
        };
        let (a, b) = (operands.get(a)?, operands.get(b)?);
        let added = operands.get(added);
        let [alpha, beta] = ["alpha", "beta"].map(|name| self.number(name).unwrap_or(1.0));
        let (&[rows, columns], batch) = dims
            .split_last_chunk::<2>()
            .map(|(batch, last)| (last, batch))?;
        let (a, k) = a.as_matrices(batch, is_a_turned, rows)?;
        // Columns of the second factor are rows of its transpose.
        let (b, other_k) = b.as_matrices(batch, !is_b_turned, columns)?;
        if k != other_k || added.is_some_and(|own| !own.fits(dims)) {
            return None;
        }
        let bad = bad.iter().take(N_OPERATIONS_MAX / k.max(1));
        bad.map(|&at| {
            let (nth, inner) = (at / (rows * columns), at % (rows * columns));
            let (row, column) = (inner / columns, inner % columns);
            let sum = (0..k).try_fold(0.0, |sum, i| {
                Some(sum + a.get(nth, row, i)? * b.get(nth, column, i)?)
            })?;
            let rest = match added {
                Some(added) => beta * added.at(dims, at)?,
                None => 0.0,
            };
            Some(alpha * sum + rest)
        })
        .collect()
    }
}

/// Matrices whose rows are multiplied with those of the other factor.
struct Matrices<'a> {
    factor: &'a Operand<'a>,
    /// Elements from one matrix, row and element of a row to the next.
    strides: [usize; 3],
}

impl Matrices<'_> {
    fn get(&self, nth: usize, row: usize, element: usize) -> Option<f64> {
        let [matrix, of_row, of_element] = self.strides;
        self.factor
            .value(nth * matrix + row * of_row + element * of_element)
    }
}

impl Operand<'_> {
    fn value(&self, at: usize) -> Option<f64> {
        match &self.content {
            OperandContent::Scalar(value) => Some(*value),
            OperandContent::Elements(elements) => {
                Numbers::new(elements.dtype, &elements.bytes)?.get(at)
            }
        }
    }

    fn fits(&self, dims: &[usize]) -> bool {
        self.dims.len() <= dims.len()
            && (self.dims.iter().rev().zip(dims.iter().rev()))
                .all(|(own, dim)| own == dim || *own == 1)
    }

    /// The element that is broadcast to a place of the result.
    fn at(&self, dims: &[usize], at: usize) -> Option<f64> {
        let strides = broadcast_strides(&self.dims, dims.len());
        let (mut rest, mut own) = (at, 0);
        for (&dim, stride) in dims.iter().zip(strides).rev() {
            own += rest % dim * stride;
            rest /= dim;
        }
        self.value(own)
    }

    /// The factor as matrices with `n_rows` rows, and the length of these.
    fn as_matrices(
        &self,
        batch: &[usize],
        is_turned: bool,
        n_rows: usize,
    ) -> Option<(Matrices<'_>, usize)> {
        let (&[m, k], own_batch) = self
            .dims
            .split_last_chunk::<2>()
            .map(|(batch, last)| (last, batch))?;
        let (own_rows, length) = if is_turned { (k, m) } else { (m, k) };
        // Batches that are broadcast in parts are left alone.
        if own_rows != n_rows || !(own_batch == batch || own_batch.is_empty()) {
            return None;
        }
        // A factor without a batch is the same for every matrix of the other one.
        let matrix = if own_batch.is_empty() { 0 } else { m * k };
        let [of_row, of_element] = if is_turned { [1, k] } else { [k, 1] };
        let strides = [matrix, of_row, of_element];
        Some((
            Matrices {
                factor: self,
                strides,
            },
            length,
        ))
    }
}

fn operand(tensor: TensorView<'_>) -> Option<Operand<'_>> {
    // Larger tensors may take another copy in a wider dtype.
    if tensor.bytes.len() > N_BYTES_MAX {
        return None;
    }
    let decoded = decode(tensor.dtype, tensor.shape, tensor.bytes).ok()?;
    Numbers::new(decoded.dtype, &decoded.bytes)?;
    Some(Operand {
        dims: decoded.shape.dims().to_vec(),
        content: OperandContent::Elements(decoded),
    })
}

/// The operator's word, of a name as captured or as in the names of files; none if it is not
/// recomputed.
fn word_of(op_type: &str) -> Option<&'static str> {
    let name = op_type.to_ascii_lowercase().replace('.', "_");
    // Names of files have underscores in place of the dots of PyTorch's types.
    let torch = name.strip_prefix("aten_");
    let name = torch
        .unwrap_or(&name)
        .trim_start_matches('_')
        .replacen("to_copy", "tocopy", 1);
    RECOMPUTED.into_iter().find(|word| {
        let rest = name.strip_prefix(word);
        // `mul__tensor` is in place; the overload of `add_rms_norm` would be `rms`.
        let rest = rest.map(|rest| rest.trim_start_matches('_'));
        let overloads = ["", "default", "tensor", "scalar", "out"];
        rest.is_some_and(|rest| {
            let first = rest.split('_').next().unwrap_or_default();
            overloads.contains(&first) && (torch.is_some() || rest.is_empty())
        })
    })
}

#[cfg(test)]
mod tests {
    use half::f16;
    use opscope_tensor::{DType, Shape};

    use super::*;

    fn check(
        op_type: &str,
        attributes: &[(&str, &str)],
        inputs: &[(&[usize], &[f64])],
        expected: Option<f64>,
    ) {
        let tensors: Vec<(Shape, Vec<u8>)> = inputs
            .iter()
            .map(|(dims, values)| half(dims, values))
            .collect();
        let views: Vec<TensorView<'_>> = tensors.iter().map(view).collect();
        // As if each element had overflowed: only those with a finite result count.
        let dims = inputs
            .iter()
            .map(|(dims, _)| *dims)
            .max_by_key(|dims| (dims.len(), dims.iter().product::<usize>()))
            .unwrap();
        let n = dims.iter().product();
        let output = half(dims, &vec![f64::INFINITY; n]);
        let attribute = |name: &str| {
            let mut all = attributes.iter();
            all.find(|(known, _)| *known == name).map(|(_, text)| *text)
        };
        let result = InfiniteResult {
            op_type,
            attribute: &attribute,
            inputs: &views,
            output: view(&output),
        };
        assert_eq!(result.needed(), expected, "{op_type}");
    }

    fn half(dims: &[usize], values: &[f64]) -> (Shape, Vec<u8>) {
        let bytes = values
            .iter()
            .flat_map(|value| f16::from_f64(*value).to_le_bytes());
        (Shape::new(dims).unwrap(), bytes.collect())
    }

    fn view((shape, bytes): &(Shape, Vec<u8>)) -> TensorView<'_> {
        TensorView::new(DType::F16, shape, bytes)
    }

    #[test]
    fn results_are_recomputed() {
        let none: &[(&str, &str)] = &[];
        let scalar = [("argument.1", "2")];
        let pair: (&[usize], &[f64]) = (&[2], &[300.0, 400.0]);
        let two: (&[usize], &[f64]) = (&[], &[2.0]);
        check("Pow", none, &[pair, two], Some(160_000.0));
        check("aten.pow.Tensor_Scalar", &scalar, &[pair], Some(160_000.0));
        check("aten_pow_Tensor_Scalar", &scalar, &[pair], Some(160_000.0));
        check("Mul", none, &[pair, (&[1], &[300.0])], Some(120_000.0));
        check("aten_mul__Tensor", none, &[pair, pair], Some(160_000.0));
        check(
            "Sum",
            none,
            &[(&[1], &[60_000.0]), (&[1], &[60_000.0])],
            Some(120_000.0),
        );
        let exponents: (&[usize], &[f64]) = (&[2], &[12.0, 800.0]);
        check("Exp", none, &[exponents], Some(f64::INFINITY));
        // A pole, a result that fits, and operators that are left alone.
        check("Div", none, &[(&[1], &[1.0]), (&[1], &[0.0])], None);
        check("Pow", none, &[(&[1], &[0.0]), (&[], &[-1.0])], None);
        check("Add", none, &[(&[1], &[1.0]), (&[1], &[1.0])], None);
        check("aten_add_rms_norm_default", none, &[pair, pair], None);
        check("Softmax", none, &[pair], None);
    }

    #[test]
    fn products_are_summed() {
        let none: &[(&str, &str)] = &[];
        let a: (&[usize], &[f64]) = (&[2, 2], &[300.0, 1.0, 2.0, 400.0]);
        let b: (&[usize], &[f64]) = (&[2, 2], &[200.0, 0.0, 3.0, 500.0]);
        let c: (&[usize], &[f64]) = (&[2], &[0.0, 7.0]);
        check("MatMul", none, &[a, b], Some(200_000.0));
        check("aten.mm.default", none, &[a, b], Some(200_000.0));
        check("aten_addmm_default", none, &[c, a, b], Some(200_007.0));
        check("Gemm", &[("transB", "1")], &[a, b, c], Some(200_013.0));
        check("aten.linear.default", none, &[a, b, c], Some(200_013.0));
    }
}
