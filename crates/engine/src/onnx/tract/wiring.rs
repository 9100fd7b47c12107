//! Pieces that corrected operators are wired from.

use tract_onnx::prelude::*;
use tract_onnx::tract_core::broadcast::multi_broadcast;
use tract_onnx::tract_core::ops::binary::{BinMiniOp, TypedBinOp};
use tract_onnx::tract_core::ops::change_axes::wire_with_rank_broadcast;
use tract_onnx::tract_hir::internal::*;

/// A graph under construction for one node; names of its parts begin with the node's.
pub(super) struct Wiring<'a> {
    pub(super) model: &'a mut TypedModel,
    prefix: &'a str,
    n_wires: usize,
}

impl Wiring<'_> {
    /// Starts at what a node reads.
    pub(super) fn new<'a>(model: &'a mut TypedModel, prefix: &'a str) -> Wiring<'a> {
        Wiring {
            model,
            prefix,
            n_wires: 0,
        }
    }

    /// The one output of an operator of the engine, its inputs brought to the same number of axes.
    pub(super) fn wire(
        &mut self,
        op: impl Into<Box<dyn TypedOp>>,
        inputs: &[OutletId],
    ) -> TractResult<OutletId> {
        let name = self.name();
        Ok(wire_with_rank_broadcast(name, self.model, op, inputs)?[0])
    }

    /// The one output of an operator that takes its inputs as they are.
    pub(super) fn wire_as_is(
        &mut self,
        op: impl Into<Box<dyn TypedOp>>,
        inputs: &[OutletId],
    ) -> TractResult<OutletId> {
        let name = self.name();
        Ok(self.model.wire_node(name, op, inputs)?[0])
    }

    /// A comparison, element by element.
    pub(super) fn compare(
        &mut self,
        op: Box<dyn BinMiniOp>,
        a: OutletId,
        b: OutletId,
    ) -> TractResult<OutletId> {
        self.wire(TypedBinOp(op, None), &[a, b])
    }

    /// The extents of a value.
    pub(super) fn dims(&self, wire: OutletId) -> TractResult<TVec<usize>> {
        let shape = &self.model.outlet_fact(wire)?.shape;
        let dims = shape
            .as_concrete()
            .context("the shape of an input is not known")?;
        Ok(dims.into())
    }

    /// A number of the type of `like`.
    pub(super) fn number(&mut self, value: f32, like: OutletId) -> TractResult<OutletId> {
        let datum_type = self.model.outlet_fact(like)?.datum_type;
        let tensor = tensor0(value).cast_to_dt(datum_type)?.into_owned();
        self.constant(tensor)
    }

    /// A constant.
    pub(super) fn constant(&mut self, tensor: Tensor) -> TractResult<OutletId> {
        let name = self.name();
        self.model.add_const(name, tensor)
    }

    fn name(&mut self) -> String {
        self.n_wires += 1;
        format!("{}.{}", self.prefix, self.n_wires)
    }
}

/// Says that an output has the type of the first input, and the shape that all inputs broadcast to.
pub(super) fn rules_of_broadcast<'r, 'p: 'r, 's: 'r>(
    solver: &mut Solver<'r>,
    inputs: &'p [TensorProxy],
    outputs: &'p [TensorProxy],
) -> InferenceResult {
    solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)?;
    solver.given_2(&inputs[0].shape, &inputs[1].shape, move |solver, a, b| {
        solver.equals(&outputs[0].shape, multi_broadcast(&[&*a, &*b])?)
    })
}
