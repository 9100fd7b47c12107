//! Pieces that corrected operators are wired from.

use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::binary::{BinMiniOp, TypedBinOp};
use tract_onnx::tract_core::ops::cast::cast;
use tract_onnx::tract_core::ops::change_axes::wire_with_rank_broadcast;
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_core::ops::logic::Iff;
use tract_onnx::tract_hir::internal::*;

/// The outputs of a wired operator.
pub(super) type WiredOutlets = TractResult<TVec<OutletId>>;

/// A graph under construction for one node; names of its parts begin with the node's.
pub(super) struct NodeWiring<'a> {
    pub(super) model: &'a mut TypedModel,
    prefix: &'a str,
    n_wires: usize,
}

impl NodeWiring<'_> {
    /// Starts at what a node reads.
    pub(super) fn new<'a>(model: &'a mut TypedModel, prefix: &'a str) -> NodeWiring<'a> {
        NodeWiring {
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
        let name = self.next_name();
        // tract's operators want inputs of equally many axes, while ONNX broadcasts any.
        Ok(wire_with_rank_broadcast(name, self.model, op, inputs)?[0])
    }

    /// The one output of an operator that takes its inputs as they are.
    pub(super) fn wire_as_is(
        &mut self,
        op: impl Into<Box<dyn TypedOp>>,
        inputs: &[OutletId],
    ) -> TractResult<OutletId> {
        let name = self.next_name();
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

    /// `a` where a condition holds, and `b` elsewhere.
    pub(super) fn select(
        &mut self,
        condition: OutletId,
        a: OutletId,
        b: OutletId,
    ) -> TractResult<OutletId> {
        self.wire(Iff, &[condition, a, b])
    }

    /// The value in another type.
    pub(super) fn cast(&mut self, wire: OutletId, to: DatumType) -> TractResult<OutletId> {
        if self.datum_type(wire)? == to {
            return Ok(wire);
        }
        self.wire_as_is(cast(to), &[wire])
    }

    /// The dimensions of a value.
    pub(super) fn dims(&self, wire: OutletId) -> TractResult<TVec<usize>> {
        let shape = &self.model.outlet_fact(wire)?.shape;
        let dims = shape
            .as_concrete()
            .context("the shape of an input is not known")?;
        Ok(dims.into())
    }

    /// The type of a value's elements.
    pub(super) fn datum_type(&self, wire: OutletId) -> TractResult<DatumType> {
        Ok(self.model.outlet_fact(wire)?.datum_type)
    }

    /// A number of the type of `like`.
    pub(super) fn number(
        &mut self,
        value: impl Into<f64>,
        like: OutletId,
    ) -> TractResult<OutletId> {
        let datum_type = self.datum_type(like)?;
        // From float64, so that a factor is rounded to the type of the data once.
        let tensor = tensor0(value.into()).cast_to_dt(datum_type)?.into_owned();
        self.constant(tensor)
    }

    /// A constant.
    pub(super) fn constant(&mut self, tensor: Tensor) -> TractResult<OutletId> {
        let name = self.next_name();
        add_constant(self.model, name, tensor.into_arc_tensor())
    }

    /// A name that no other part has.
    pub(super) fn next_name(&mut self) -> String {
        self.n_wires += 1;
        format!("{}.{}", self.prefix, self.n_wires)
    }
}

/// Adds a constant with a separate node. The engine's way to add one reuses another constant that
/// compares as equal, and so a zero for a negative zero.
pub(super) fn add_constant(
    model: &mut TypedModel,
    name: impl Into<String>,
    tensor: Arc<Tensor>,
) -> TractResult<OutletId> {
    let fact = TypedFact::try_from(tensor.clone())?;
    let id = model.add_node(name, Const::new(tensor)?, tvec!(fact))?;
    Ok(id.into())
}
