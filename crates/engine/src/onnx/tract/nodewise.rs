//! A compiled plan for each node.
//!
//! tract's un-typed interpreter wires a node anew at every evaluation. Here the wiring is optimised
//! once for the dtypes and shapes that a node meets, and kept. Inputs that are constants of the model
//! become constants of the small plan, so that weights are packed once; small integer inputs (axes,
//! shapes, …) do so only where the node cannot be wired without knowing them.
//!
//! Arithmetic on float16 is done in float32 and rounded once at the end, as ONNX Runtime does it on
//! a CPU: that is nearer to the true value, and faster where the CPU has no float16 arithmetic.

use std::sync::Arc;

use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::cast::cast;
use tract_onnx::tract_hir::internal::*;

use super::non_finite::Correction;

/// Different plans that are built for one node. Nodes that share their plans have room for more of them. A node that meets more dtypes, shapes or pinned
/// values than that (as in generating text, token by token) goes on without.
const N_PLANS_MAX: usize = 8;
/// Nodes that share their plans count up to this number.
const N_SHARING_MAX: usize = 8;
/// Largest integer input that is pinned.
const N_PINNED_ELEMENTS_MAX: usize = 64;

/// Operators whose result is rounded more than once if they work in float16. (One addition,
/// multiplication or division is exact before its only rounding either way.)
const WIDENED: &[&str] = &[
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "Celu",
    "Conv",
    "ConvTranspose",
    "Cos",
    "Einsum",
    "Elu",
    "Erf",
    "Exp",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "InstanceNormalization",
    "LRN",
    "LayerNormalization",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "MatMul",
    "Mean",
    "Mish",
    "Pow",
    "RMSNormalization",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMean",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Selu",
    "Sigmoid",
    "SimplifiedLayerNormalization",
    "Sin",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sum",
    "Swish",
    "Tanh",
];

type State = SimpleState<TypedFact, Box<dyn TypedOp>>;

/// The plans of one node.
#[derive(Default)]
pub(super) struct NodeCache {
    plans: Vec<CompiledNode>,
    /// Nodes that share it, beside the first one.
    n_sharing: usize,
    is_off: bool,
}

struct CompiledNode {
    key: Vec<InputKey>,
    correction: Option<Correction>,
    state: State,
    variable_inputs: Vec<usize>,
}

/// What a plan was built for, one for each input.
#[derive(Clone)]
enum InputKey {
    /// A constant of the model: always the same.
    Constant(Arc<Tensor>),
    /// A value that was built in.
    Pinned(Arc<Tensor>),
    /// Any value of this type and shape.
    Variable(DatumType, TVec<usize>),
}

impl InputKey {
    fn admits(&self, value: &TValue) -> bool {
        match self {
            InputKey::Constant(_) => true,
            InputKey::Pinned(tensor) => **tensor == **value,
            InputKey::Variable(datum_type, shape) => {
                *datum_type == value.datum_type() && shape[..] == *value.shape()
            }
        }
    }
}

impl NodeCache {
    /// Says that one more node has its plans here.
    pub(super) fn share(&mut self) {
        self.n_sharing += 1;
    }

    /// Evaluates the node through its plan; `None` if it has none, and the interpreter is to do it.
    ///
    /// `is_constant` says which inputs are constants of the model.
    pub(super) fn eval(
        &mut self,
        node: &InferenceNode,
        op_type: &str,
        is_constant: &[bool],
        inputs: &TVec<TValue>,
    ) -> TractResult<Option<TVec<TValue>>> {
        let expansion = node.op_as::<Box<dyn Expansion>>().map(AsRef::as_ref);
        let correction = Correction::needed(op_type, inputs);
        let target = Target {
            op_type,
            expansion,
            correction,
        };
        let Some(index) = self.find_or_compile(&target, is_constant, inputs) else {
            return match correction {
                // The interpreter would get this wrong, so it is worth a plan for this time only.
                Some(_) => compile(&target, is_constant, inputs)?.run(inputs).map(Some),
                None => Ok(None),
            };
        };
        self.plans[index].run(inputs).map(Some)
    }

    /// The position of the plan for these inputs; `None` if the node goes without plans.
    fn find_or_compile(
        &mut self,
        target: &Target<'_>,
        is_constant: &[bool],
        inputs: &TVec<TValue>,
    ) -> Option<usize> {
        if self.is_off || (target.expansion.is_none() && target.correction.is_none()) {
            return None;
        }
        let admits = |plan: &CompiledNode| {
            plan.correction == target.correction
                && plan.key.len() == inputs.len()
                && plan.key.iter().zip(inputs).all(|(k, v)| k.admits(v))
        };
        if let Some(index) = self.plans.iter().position(admits) {
            return Some(index);
        }
        let n_plans_max = N_PLANS_MAX * (1 + self.n_sharing).min(N_SHARING_MAX);
        let has_room = self.plans.len() < n_plans_max;
        match compile(target, is_constant, inputs) {
            Ok(plan) if has_room => {
                self.plans.reserve_exact(1);
                self.plans.push(plan);
            }
            _ => {
                self.is_off = true;
                self.plans.clear();
                return None;
            }
        }
        Some(self.plans.len() - 1)
    }
}

impl CompiledNode {
    fn run(&mut self, inputs: &TVec<TValue>) -> TractResult<TVec<TValue>> {
        self.state.run(
            self.variable_inputs
                .iter()
                .map(|&i| inputs[i].clone())
                .collect(),
        )
    }
}

/// What is compiled.
struct Target<'a> {
    op_type: &'a str,
    expansion: Option<&'a dyn Expansion>,
    correction: Option<Correction>,
}

impl Target<'_> {
    fn wire(&self, model: &mut TypedModel, inputs: &[OutletId]) -> TractResult<TVec<OutletId>> {
        let wire = |model: &mut TypedModel, name: &str, inputs: &[OutletId]| match self.expansion {
            Some(expansion) => expansion.wire(name, model, inputs),
            None => bail!("the operator cannot be wired"),
        };
        match self.correction {
            Some(correction) => correction.wire(model, inputs, &wire),
            None => wire(model, "node", inputs),
        }
    }
}

/// Wires and optimises one node, with as few inputs pinned as it can do with.
fn compile(
    target: &Target<'_>,
    is_constant: &[bool],
    inputs: &TVec<TValue>,
) -> TractResult<CompiledNode> {
    let key = |is_pinning: bool| -> Vec<InputKey> {
        let values = inputs.iter().map(|value| value.clone().into_arc_tensor());
        values
            .zip(is_constant)
            .map(|(tensor, &is_constant)| match tensor {
                tensor if is_constant => InputKey::Constant(tensor),
                tensor if is_pinning && is_pinnable(&tensor) => InputKey::Pinned(tensor),
                tensor => InputKey::Variable(tensor.datum_type(), tensor.shape().into()),
            })
            .collect()
    };
    build(target, key(false)).or_else(|_| build(target, key(true)))
}

fn build(target: &Target<'_>, key: Vec<InputKey>) -> TractResult<CompiledNode> {
    let mut model = TypedModel::default();
    let mut wires: TVec<OutletId> = tvec!();
    let mut variable_inputs = Vec::new();
    for (i, input) in key.iter().enumerate() {
        wires.push(match input {
            InputKey::Constant(tensor) | InputKey::Pinned(tensor) => {
                model.add_const(format!("const-{i}"), tensor.clone())?
            }
            InputKey::Variable(datum_type, shape) => {
                variable_inputs.push(i);
                let fact = TypedFact::dt_shape(*datum_type, shape.as_slice());
                model.add_source(format!("source-{i}"), fact)?
            }
        });
    }
    let is_widened = WIDENED.contains(&target.op_type) && has_float16(&model, &wires)?;
    let (narrow, wide) = (DatumType::F16, DatumType::F32);
    if is_widened {
        recast(&mut model, "widen", &mut wires, narrow, wide)?;
    }
    let mut outputs = target.wire(&mut model, &wires)?;
    if is_widened {
        recast(&mut model, "narrow", &mut outputs, wide, narrow)?;
    }
    for &output in &outputs {
        // A shape that depends on a value which is not built in would be worked out at every run.
        if model.outlet_fact(output)?.shape.as_concrete().is_none() {
            bail!("the shape of an output is not known");
        }
    }
    model.select_output_outlets(&outputs)?;
    let mut model = model.into_optimized()?;
    model.nodes.shrink_to_fit();
    let state = SimplePlan::new(model)?.spawn()?;
    Ok(CompiledNode {
        key,
        correction: target.correction,
        state,
        variable_inputs,
    })
}

fn has_float16(model: &TypedModel, wires: &[OutletId]) -> TractResult<bool> {
    for &wire in wires {
        if model.outlet_fact(wire)?.datum_type == DatumType::F16 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Casts those of `wires` that are of one type to another.
fn recast(
    model: &mut TypedModel,
    name: &str,
    wires: &mut TVec<OutletId>,
    from: DatumType,
    to: DatumType,
) -> TractResult<()> {
    for (i, wire) in wires.iter_mut().enumerate() {
        if model.outlet_fact(*wire)?.datum_type == from {
            *wire = model.wire_node(format!("{name}-{i}"), cast(to), &[*wire])?[0];
        }
    }
    Ok(())
}

fn is_pinnable(tensor: &Tensor) -> bool {
    let datum_type = tensor.datum_type();
    let is_integer =
        datum_type.is_integer() || matches!(datum_type, DatumType::Bool | DatumType::TDim);
    is_integer && tensor.volume() <= N_PINNED_ELEMENTS_MAX
}
