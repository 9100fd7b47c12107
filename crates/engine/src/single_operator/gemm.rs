//! Ascend's `GEMM`, which reads its factors as values where ONNX has them as attributes: a graph of
//! several ONNX operators computes it.
//!
//! `y = alpha * a' b' + beta * c`, with `a'` and `b'` transposed where the attributes say so.
//! Floating-point numbers are computed in float32 and rounded once, at the end; products of int8
//! are summed in int32, exactly, and wrap around.

use opscope_tensor::DType;

use super::graph::{GraphNode, OperatorGraph};
use super::operator::{Operand, OperatorAttribute, OperatorError, SingleOperator};
use crate::onnx_dtype::code;

/// The type's name, which ONNX spells otherwise.
pub(super) const GEMM: &str = "GEMM";

/// `a`, `b`, `c`, `alpha` and `beta`.
const N_INPUTS: usize = 5;

/// Types of `a` and `b`, and of everything else, that go together.
const TYPES: &[(DType, DType)] = &[
    (DType::F16, DType::F16),
    (DType::F16, DType::F32),
    (DType::F32, DType::F32),
    (DType::I8, DType::F32),
    (DType::I8, DType::I32),
];

/// Composes the operator; the description's inputs and output are those of the graph.
///
/// # Errors
/// [`OperatorError::Inexpressible`] for another number of operands, types that do not go together,
/// and constants.
pub(super) fn compose(operator: &SingleOperator) -> Result<OperatorGraph, OperatorError> {
    let inputs: Vec<Operand> = operator.inputs.iter().flatten().cloned().collect();
    let outputs: Vec<Operand> = operator.outputs.iter().flatten().cloned().collect();
    let (N_INPUTS, [output]) = (inputs.len(), &outputs[..]) else {
        let reason = "it reads a, b, c, alpha and beta, and has one output";
        return Err(operator.inexpressible(reason));
    };
    if inputs.iter().any(|input| input.constant.is_some()) {
        return Err(operator.inexpressible("none of its inputs can be a constant"));
    }
    // ONNX's own `Gemm` would round float16 after the product and again after the sum.
    let (factor, sum) = (inputs[0].dtype, output.dtype);
    let are_alike = inputs[..2].iter().all(|operand| operand.dtype == factor)
        && inputs[2..].iter().all(|operand| operand.dtype == sum);
    if !are_alike || !TYPES.contains(&(factor, sum)) {
        return Err(operator.inexpressible(format!(
            "a and b of {factor} do not go with {sum}: expected a and b of float16 with float16 \
             or float32, float32 with float32, or int8 with float32 or int32, and c, alpha, beta \
             and the output of one type"
        )));
    }
    // The type that sums are computed in.
    let wide = if sum == DType::I32 {
        DType::I32
    } else {
        DType::F32
    };
    let mut nodes = Nodes(Vec::new());
    let [a, b, c, alpha, beta] = [0, 1, 2, 3, 4].map(|i: usize| inputs[i].name.clone());
    let product = if factor == DType::I8 {
        let a = nodes.transposed(a, is_set(operator, "transpose_a"));
        let b = nodes.transposed(b, is_set(operator, "transpose_b"));
        // Without zero points, which ONNX takes for 0, so that plain integers are multiplied.
        let product = nodes.add("MatMulInteger", &[&a, &b], Vec::new());
        nodes.cast(product, DType::I32, wide)
    } else {
        let a = nodes.cast(a, factor, wide);
        let b = nodes.cast(b, factor, wide);
        let a = nodes.transposed(a, is_set(operator, "transpose_a"));
        let b = nodes.transposed(b, is_set(operator, "transpose_b"));
        nodes.add("MatMul", &[&a, &b], Vec::new())
    };
    let [c, alpha, beta] = [c, alpha, beta].map(|name| nodes.cast(name, sum, wide));
    // Factors are values and not constants: a handle runs with other ones each time.
    let scaled = nodes.add("Mul", &[&product, &alpha], Vec::new());
    let added = nodes.add("Mul", &[&c, &beta], Vec::new());
    let total = nodes.add("Add", &[&scaled, &added], Vec::new());
    let total = nodes.cast(total, wide, sum);
    // The last node may be a `Cast` or not, so a node that only names the result is simpler.
    nodes.end(total, &output.name);
    Ok(OperatorGraph {
        opset: operator.opset,
        inputs,
        constants: Vec::new(),
        nodes: nodes.0,
        outputs,
    })
}

fn is_set(operator: &SingleOperator, key: &str) -> bool {
    let wanted = OperatorAttribute::Int(1);
    let mut attributes = operator.attributes.iter();
    attributes.any(|(name, value)| name == key && *value == wanted)
}

/// Nodes in order of execution. Values go by the number of the node that makes them.
struct Nodes(Vec<GraphNode>);

impl Nodes {
    fn add(
        &mut self,
        op_type: &'static str,
        inputs: &[&str],
        attributes: Vec<(&'static str, OperatorAttribute)>,
    ) -> String {
        let name = format!("step{}", self.0.len());
        self.0.push(GraphNode {
            op_type,
            inputs: inputs.iter().map(|&input| input.to_owned()).collect(),
            outputs: vec![name.clone()],
            attributes,
        });
        name
    }

    fn cast(&mut self, value: String, from: DType, to: DType) -> String {
        if from == to {
            return value;
        }
        let number = code(to).unwrap_or_default().cast_signed();
        let to = vec![("to", OperatorAttribute::Int(number))];
        self.add("Cast", &[&value], to)
    }

    fn transposed(&mut self, value: String, is_transposed: bool) -> String {
        if !is_transposed {
            return value;
        }
        let order = vec![("perm", OperatorAttribute::Ints(vec![1, 0]))];
        self.add("Transpose", &[&value], order)
    }

    /// Gives a value the output's name.
    fn end(&mut self, value: String, output: &str) {
        self.0.push(GraphNode {
            op_type: "Identity",
            inputs: vec![value],
            outputs: vec![output.to_owned()],
            attributes: Vec::new(),
        });
    }
}
