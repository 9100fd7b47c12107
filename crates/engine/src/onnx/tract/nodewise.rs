//! A compiled plan for each node.
//!
//! tract's un-typed interpreter wires a node anew at every evaluation. Here the wiring is optimised
//! once for the dtypes and shapes that a node meets, and kept. Weights of products become constants
//! of the small plan, so that they are packed once; other inputs (axes, shapes, …) do so only where
//! the node cannot be wired without knowing them. For tract rewrites constant expressions, and not
//! always correctly: it takes zero times NaN for zero.
//!
//! Arithmetic on float16 is done in float32 and rounded once at the end, as ONNX Runtime does it on
//! a CPU: that is nearer to the true value, and faster where the CPU has no float16 arithmetic.

use std::sync::Arc;

use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::cast::cast;
use tract_onnx::tract_hir::internal::*;

use super::error::chain;
use super::non_finite::NonFiniteCorrection;
use super::repeatable::RepeatablePlan;
use super::wiring::{WiredOutlets, add_constant};

/// Different plans that are kept for one node. A node that meets more dtypes, shapes or pinned
/// values than that (as in generating text, token by token) builds a plan again; without plans it
/// would give other last digits.
const N_PLANS_MAX: usize = 8;
/// Nodes that share their plans count up to this number.
const N_SHARING_MAX: usize = 8;
/// Largest integer input that is pinned.
const N_PINNED_ELEMENTS_MAX: usize = 64;

/// Operators whose constant inputs are built into their plans.
const WEIGHTED: &[&str] = &[
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "Einsum",
    "GRU",
    "GatherBlockQuantized",
    "Gemm",
    "LSTM",
    "MatMul",
    "MatMulInteger",
    "MatMulNBits",
    "QLinearConv",
    "QLinearMatMul",
    "RNN",
];

/// Operators whose plans are executed as they are wired. tract's optimiser divides by multiplying
/// with the reciprocal, which is off in the last digit, and infinite or zero where the quotient is
/// neither.
const AS_WIRED: &[&str] = &["Div"];
/// Likewise for float64: the optimiser puts one operator that works in float32 in the place of
/// several.
const AS_WIRED_IN_DOUBLE: &[&str] = &["InstanceNormalization"];

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
    "GlobalLpPool",
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

/// Operators that tract computes in float32, whatever the type of their inputs is.
const SINGLE: &[&str] = &["GridSample", "Resize"];

/// The plans of one node, the one that was used last at the end.
#[derive(Default)]
pub(super) struct NodeCache {
    plans: Vec<CompiledNode>,
    /// Nodes that share it, not counting the first one.
    n_sharing: usize,
}

struct CompiledNode {
    key: Vec<InputKey>,
    correction: Option<NonFiniteCorrection>,
    /// Or why such inputs have no plan.
    plan: Result<RepeatablePlan, String>,
}

/// The values of an input that a plan was built for; a plan has such a key for each input.
#[derive(Clone)]
enum InputKey {
    /// This constant of the model.
    Constant(Arc<Tensor>),
    /// A value that was built in.
    Pinned(Arc<Tensor>),
    /// Any value of this type and shape.
    Variable(DatumType, TVec<usize>),
}

impl InputKey {
    fn admits(&self, value: &TValue) -> bool {
        match self {
            // Nodes that share plans may have others.
            InputKey::Constant(tensor) => Arc::ptr_eq(tensor, &value.clone().into_arc_tensor()),
            // Compared by content, because computed values are new tensors at every run.
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
    /// Which of the two it is depends on the node and its inputs alone, not on what was executed
    /// before. `is_constant` says which inputs are constants of the model.
    pub(super) fn eval(
        &mut self,
        node: &InferenceNode,
        op_type: &str,
        is_constant: &[bool],
        inputs: &TVec<TValue>,
    ) -> TractResult<Option<TVec<TValue>>> {
        // Refused at the run and not at the load: the file need not say which type arrives.
        if SINGLE.contains(&op_type) && inputs[0].datum_type() == DatumType::F64 {
            bail!("the engine computes it in float32, and the values are float64");
        }
        let target = CompiledOperator {
            op_type,
            expansion: node.op_as::<Box<dyn Expansion>>().map(AsRef::as_ref),
            correction: NonFiniteCorrection::needed(op_type, inputs),
        };
        // Operators that are not expansions have only the form that the interpreter runs.
        if target.expansion.is_none() && target.correction.is_none() {
            return Ok(None);
        }
        match self.find_or_compile(&target, is_constant, inputs) {
            CompiledNode {
                key,
                plan: Ok(plan),
                ..
            } => plan.run(variable(key, inputs)).map(Some),
            // The interpreter would get this wrong.
            CompiledNode {
                correction: Some(_),
                plan: Err(reason),
                ..
            } => bail!("{reason}"),
            _ => Ok(None),
        }
    }

    fn find_or_compile(
        &mut self,
        target: &CompiledOperator<'_>,
        is_constant: &[bool],
        inputs: &TVec<TValue>,
    ) -> &mut CompiledNode {
        let compiled = match self.plans.iter().position(|plan: &CompiledNode| {
            plan.correction == target.correction
                && plan.key.len() == inputs.len()
                && plan.key.iter().zip(inputs).all(|(k, v)| k.admits(v))
        }) {
            // The plan goes to the end, so that the one that was unused for longest is the first to
            // go.
            Some(index) => self.plans.remove(index),
            None => compile(target, is_constant, inputs),
        };
        if self.plans.len() >= N_PLANS_MAX * (1 + self.n_sharing).min(N_SHARING_MAX) {
            self.plans.remove(0);
        }
        self.plans.reserve_exact(1);
        self.plans.push_mut(compiled)
    }
}

/// The values that are not built into a plan.
fn variable(key: &[InputKey], inputs: &TVec<TValue>) -> TVec<TValue> {
    let pairs = key.iter().zip(inputs);
    let variable = pairs.filter(|(key, _)| matches!(key, InputKey::Variable(..)));
    variable.map(|(_, value)| value.clone()).collect()
}

/// The operator that is compiled.
struct CompiledOperator<'a> {
    op_type: &'a str,
    expansion: Option<&'a dyn Expansion>,
    correction: Option<NonFiniteCorrection>,
}

impl CompiledOperator<'_> {
    fn wire(&self, model: &mut TypedModel, inputs: &[OutletId]) -> WiredOutlets {
        let expansion = || self.expansion.context("the operator cannot be wired");
        match self.correction {
            Some(correction) => correction.wire(model, inputs, &|model, name, inputs| {
                expansion()?.wire(name, model, inputs)
            }),
            None => expansion()?.wire("node", model, inputs),
        }
    }
}

/// Wires and optimises one node, with as few inputs built in as it can do with.
fn compile(
    target: &CompiledOperator<'_>,
    is_constant: &[bool],
    inputs: &TVec<TValue>,
) -> CompiledNode {
    // Folding would take an input for a result that differs from it in the sign of a zero.
    let is_all_constant = is_constant.iter().all(|&is_constant| is_constant)
        && !inputs.iter().any(|value| has_float_zero(value));
    let is_weighted = is_all_constant || is_weighted(target.op_type);
    let build = |building_in: InlinedInputs| {
        let values = inputs.iter().map(|value| value.clone().into_arc_tensor());
        let pairs = values.zip(is_constant);
        let key = pairs.map(|(tensor, &is_constant)| match building_in {
            _ if is_constant && is_weighted => InputKey::Constant(tensor),
            InlinedInputs::Constants if is_constant => InputKey::Constant(tensor),
            InlinedInputs::Constants | InlinedInputs::Integers if is_pinnable(&tensor) => {
                InputKey::Pinned(tensor)
            }
            _ => InputKey::Variable(tensor.datum_type(), tensor.shape().into()),
        });
        let key: Vec<InputKey> = key.collect();
        CompiledNode {
            plan: build(target, &key).map_err(|error| chain(&error)),
            correction: target.correction,
            key,
        }
    };
    let mut compiled = build(InlinedInputs::Weights);
    // Each step makes more inputs constant than the one before. Constants may be rewritten, so as
    // few as possible are used.
    for more in [InlinedInputs::Integers, InlinedInputs::Constants] {
        if compiled.plan.is_err() {
            compiled = build(more);
        }
    }
    compiled
}

/// The inputs that become a part of a plan.
#[derive(Clone, Copy)]
enum InlinedInputs {
    /// Constants of operators that have weights.
    Weights,
    /// Small integers, constant or not, as well.
    Integers,
    /// All constants as well.
    Constants,
}

fn build(target: &CompiledOperator<'_>, key: &[InputKey]) -> TractResult<RepeatablePlan> {
    let mut model = TypedModel::default();
    let mut wires: TVec<OutletId> = tvec!();
    for (i, input) in key.iter().enumerate() {
        wires.push(match input {
            InputKey::Constant(tensor) | InputKey::Pinned(tensor) => {
                add_constant(&mut model, format!("const-{i}"), tensor.clone())?
            }
            InputKey::Variable(datum_type, shape) => {
                let fact = TypedFact::dt_shape(*datum_type, shape.as_slice());
                model.add_source(format!("source-{i}"), fact)?
            }
        });
    }
    let is_widened = WIDENED.contains(&target.op_type) && has_only_float16(&model, &wires)?;
    let (narrow, wide) = (DatumType::F16, DatumType::F32);
    // All casts are at the borders of the node: inside it nothing is rounded to float16.
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
    let first = wires.first().map(|&wire| model.outlet_fact(wire));
    let is_double = first
        .transpose()?
        .is_some_and(|fact| fact.datum_type == DatumType::F64);
    let is_as_wired = AS_WIRED.contains(&target.op_type)
        || (is_double && AS_WIRED_IN_DOUBLE.contains(&target.op_type));
    if !is_as_wired {
        // The optimiser packs weights and fuses small steps, which is where the speed comes from.
        model = model.into_optimized()?;
    }
    model.nodes.shrink_to_fit();
    RepeatablePlan::new(model)
}

/// Whether all floats are of this type, so that those of the outputs are, too.
fn has_only_float16(model: &TypedModel, wires: &[OutletId]) -> TractResult<bool> {
    let mut has_any = false;
    for &wire in wires {
        let datum_type = model.outlet_fact(wire)?.datum_type;
        if datum_type.is_float() && datum_type != DatumType::F16 {
            return Ok(false);
        }
        has_any |= datum_type == DatumType::F16;
    }
    Ok(has_any)
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

/// Whether the constants that an operator of this type reads are built into its plans.
pub(super) fn is_weighted(op_type: &str) -> bool {
    WEIGHTED.contains(&op_type)
}

fn has_float_zero(tensor: &Tensor) -> bool {
    fn has_zero<T: Datum + PartialEq + Default>(tensor: &Tensor) -> bool {
        let elements = tensor
            .try_as_plain_ram()
            .and_then(|plain| plain.as_slice::<T>());
        elements.is_ok_and(|elements| elements.contains(&T::default()))
    }
    has_zero::<f16>(tensor) || has_zero::<f32>(tensor) || has_zero::<f64>(tensor)
}

fn is_pinnable(tensor: &Tensor) -> bool {
    let datum_type = tensor.datum_type();
    let is_integer =
        datum_type.is_integer() || matches!(datum_type, DatumType::Bool | DatumType::TDim);
    is_integer && tensor.volume() <= N_PINNED_ELEMENTS_MAX
}
