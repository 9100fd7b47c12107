//! Operators composed of the engine's operators, where the engine's implementation is wrong.

use std::fmt::Debug;

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::{AttributeProto, NodeProto};
use tract_onnx::prelude::*;
use tract_onnx::tract_core::broadcast::multi_broadcast;
use tract_onnx::tract_hir::internal::*;

use super::wiring::{NodeWiring, WiredOutlets};

/// The types of results.
pub(super) enum ResultType {
    /// The first has the type of the first input.
    OfFirstInput,
    /// Each has the type of the first input.
    EachOfFirstInput,
    /// The first has this type.
    Fixed(DatumType),
}

/// The shape of a result, as far as it follows from the shapes of the inputs.
pub(super) enum ResultShape {
    /// Any.
    Open,
    /// The shape of the first input.
    OfFirstInput,
    /// A shape with as many axes as the first input has.
    OfSameRank,
    /// The shape that two inputs are broadcast to.
    Broadcast,
}

/// How an operator is composed of others.
pub(super) trait Composition: Clone + Debug + Send + Sync + 'static {
    /// The operator's type, if the composition is of a single operator.
    const OP_TYPE: &'static str = "";

    /// The types of the outputs.
    const RESULT_TYPE: ResultType = ResultType::OfFirstInput;

    /// The shape of the first output.
    const RESULT_SHAPE: ResultShape = ResultShape::OfFirstInput;

    /// Reads the operator from a node of the file.
    fn from_node(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self>;

    /// The operator's type.
    fn op_type(&self) -> StaticName {
        Self::OP_TYPE.into()
    }

    /// Outputs that the operator has.
    fn n_outputs(&self) -> usize {
        1
    }

    /// Relates types and shapes of inputs and outputs, by default as [`Composition::RESULT_TYPE`]
    /// and [`Composition::RESULT_SHAPE`] say.
    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        match Self::RESULT_TYPE {
            ResultType::OfFirstInput => {
                solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)?;
            }
            ResultType::EachOfFirstInput => {
                for output in outputs {
                    solver.equals(&inputs[0].datum_type, &output.datum_type)?;
                }
            }
            ResultType::Fixed(datum_type) => {
                solver.equals(&outputs[0].datum_type, datum_type)?;
            }
        }
        match Self::RESULT_SHAPE {
            ResultShape::Open => Ok(()),
            ResultShape::OfFirstInput => solver.equals(&inputs[0].shape, &outputs[0].shape),
            ResultShape::OfSameRank => solver.equals(&inputs[0].rank, &outputs[0].rank),
            ResultShape::Broadcast => {
                solver.given_2(&inputs[0].shape, &inputs[1].shape, move |solver, a, b| {
                    solver.equals(&outputs[0].shape, multi_broadcast(&[&*a, &*b])?)
                })
            }
        }
    }

    /// Wires the parts, and returns the operator's outputs.
    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets;
}

/// The result that the engine's loader asks for.
pub(super) type Built = TractResult<(Box<dyn InferenceOp>, Vec<String>)>;

/// Makes an operator of a node; with it come the outer values that its bodies read.
pub(super) type Builder = fn(&ParsingContext<'_>, &NodeProto) -> Built;

/// The [`Builder`] of a composition.
pub(super) fn build<C: Composition>(context: &ParsingContext<'_>, node: &NodeProto) -> Built {
    Ok((expand(CompositionOp(C::from_node(context, node)?)), vec![]))
}

/// The engine's own builder of an operator.
pub(super) fn builder_of_engine(op_type: &str) -> TractResult<Builder> {
    // A fresh registry: the one that models are loaded with has our builders in it.
    let builder = onnx().op_register.0.get(op_type).copied();
    builder.with_context(|| format!("the engine has no operator `{op_type}`"))
}

/// An attribute that is a float.
pub(super) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Float as i32,
        f: value,
        ..AttributeProto::default()
    }
}

/// An attribute that is an integer.
pub(super) fn integer(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Int as i32,
        i: value,
        ..AttributeProto::default()
    }
}

#[derive(Clone, Debug)]
struct CompositionOp<C>(C);

impl<C: Composition> Expansion for CompositionOp<C> {
    fn name(&self) -> StaticName {
        self.0.op_type()
    }

    fn nboutputs(&self) -> TractResult<usize> {
        Ok(self.0.n_outputs())
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        self.0.rules(solver, inputs, outputs)
    }

    fn wire(&self, prefix: &str, model: &mut TypedModel, inputs: &[OutletId]) -> WiredOutlets {
        self.0.wire(&mut NodeWiring::new(model, prefix), inputs)
    }
}

/// An operator of the engine, as a part of another one.
#[derive(Clone, Debug)]
pub(super) struct EnginePart(Box<dyn InferenceOp>);

impl EnginePart {
    /// Lets the engine build the operator of a node.
    pub(super) fn new(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<EnginePart> {
        let (op, outer_values) = builder_of_engine(&node.op_type)?(context, node)?;
        ensure!(outer_values.is_empty(), "the operator reads outer values");
        Ok(EnginePart(op))
    }

    /// Wires the part under a separate name.
    pub(super) fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let expansion = self.0.as_op().downcast_ref::<Box<dyn Expansion>>();
        // Only an expansion can be wired with known shapes, and all operators that are parts of
        // others are such.
        let expansion = expansion.context("the engine builds this operator in another way")?;
        // tract refuses two nodes of one name.
        let name = wiring.next_name();
        expansion.wire(&name, wiring.model, inputs)
    }
}
