//! A compiled plan for each node.
//!
//! tract's un-typed interpreter wires a node anew at every evaluation. Here the wiring is optimised
//! once for the dtypes and shapes that a node meets, and kept. Inputs that are constants of the model
//! become constants of the small plan, so that weights are packed once; small integer inputs (axes,
//! shapes, …) do so only where the node cannot be wired without knowing them.

use std::sync::Arc;

use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;

/// Different plans that are built for one node. A node that meets more dtypes, shapes or pinned
/// values than that (as in generating text, token by token) goes on without.
const N_PLANS_MAX: usize = 8;
/// Largest integer input that is pinned.
const N_PINNED_ELEMENTS_MAX: usize = 64;

type State = SimpleState<TypedFact, Box<dyn TypedOp>>;

/// The plans of one node.
#[derive(Default)]
pub(super) struct NodeCache {
    plans: Vec<CompiledNode>,
    is_off: bool,
}

struct CompiledNode {
    key: Vec<InputKey>,
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
    /// Evaluates the node through its plan; `None` if it has none, and the interpreter is to do it.
    ///
    /// `is_constant` says which inputs are constants of the model.
    pub(super) fn eval(
        &mut self,
        node: &InferenceNode,
        is_constant: &[bool],
        inputs: &TVec<TValue>,
    ) -> TractResult<Option<TVec<TValue>>> {
        let Some(op) = node.op_as::<Box<dyn Expansion>>() else {
            return Ok(None);
        };
        if self.is_off {
            return Ok(None);
        }
        let admits = |plan: &CompiledNode| {
            plan.key.len() == inputs.len() && plan.key.iter().zip(inputs).all(|(k, v)| k.admits(v))
        };
        let index = match self.plans.iter().position(admits) {
            Some(index) => index,
            None if self.plans.len() == N_PLANS_MAX => {
                self.is_off = true;
                self.plans.clear();
                return Ok(None);
            }
            None => match compile(op.as_ref(), &node.name, is_constant, inputs) {
                Some(plan) => {
                    self.plans.push(plan);
                    self.plans.len() - 1
                }
                None => {
                    self.is_off = true;
                    return Ok(None);
                }
            },
        };
        let plan = &mut self.plans[index];
        let variable = plan
            .variable_inputs
            .iter()
            .map(|&i| inputs[i].clone())
            .collect();
        plan.state.run(variable).map(Some)
    }
}

/// Wires and optimises one node, with as few inputs pinned as it can do with.
fn compile(
    op: &dyn Expansion,
    name: &str,
    is_constant: &[bool],
    inputs: &TVec<TValue>,
) -> Option<CompiledNode> {
    let key = |is_pinning: bool| -> Vec<InputKey> {
        inputs
            .iter()
            .zip(is_constant)
            .map(
                |(value, &is_constant)| match value.clone().into_arc_tensor() {
                    tensor if is_constant => InputKey::Constant(tensor),
                    tensor if is_pinning && is_pinnable(&tensor) => InputKey::Pinned(tensor),
                    tensor => InputKey::Variable(tensor.datum_type(), tensor.shape().into()),
                },
            )
            .collect()
    };
    build(op, name, key(false))
        .or_else(|_| build(op, name, key(true)))
        .ok()
}

fn build(op: &dyn Expansion, name: &str, key: Vec<InputKey>) -> TractResult<CompiledNode> {
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
    let outputs = op.wire(name, &mut model, &wires)?;
    for &output in &outputs {
        // A shape that depends on a value which is not built in would be worked out at every run.
        if model.outlet_fact(output)?.shape.as_concrete().is_none() {
            bail!("the shape of an output is not known");
        }
    }
    model.select_output_outlets(&outputs)?;
    let state = SimplePlan::new(model.into_optimized()?)?.spawn()?;
    Ok(CompiledNode {
        key,
        state,
        variable_inputs,
    })
}

fn is_pinnable(tensor: &Tensor) -> bool {
    let datum_type = tensor.datum_type();
    let is_integer =
        datum_type.is_integer() || matches!(datum_type, DatumType::Bool | DatumType::TDim);
    is_integer && tensor.volume() <= N_PINNED_ELEMENTS_MAX
}
