//! `Scan`, which tract can only run in a typed graph.
//!
//! The node is taken out of the un-typed graph before that is planned and gets a typed graph of its
//! own for each set of input types and shapes it meets.

use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::ops::scan::InferenceScan;
use tract_onnx::tract_hir::ops::unimpl::UnimplementedOp;

/// Different sets of input types and shapes that are remembered.
const N_PLANS_MAX: usize = 8;

type Facts = Vec<(DatumType, TVec<usize>)>;

/// A `Scan` node's operator with its plans.
pub(super) struct ScanNode {
    op: Box<dyn InferenceOp>,
    n_outputs: usize,
    plans: Vec<(Facts, Arc<TypedSimplePlan>)>,
}

/// Takes the operators of all `Scan` nodes out of `model`; returns them with their node ids.
pub(super) fn take_out(model: &mut InferenceModel) -> Vec<(usize, ScanNode)> {
    let mut taken = Vec::new();
    for node in model.nodes_mut() {
        if node.op_is::<InferenceScan>() {
            let n_outputs = node.outputs.len();
            let placeholder = UnimplementedOp::new(n_outputs, "Scan", "taken out");
            let op = std::mem::replace(&mut node.op, Box::new(placeholder));
            taken.push((
                node.id,
                ScanNode {
                    op,
                    n_outputs,
                    plans: Vec::new(),
                },
            ));
        }
    }
    taken
}

impl ScanNode {
    /// Evaluates the node.
    pub(super) fn eval(&mut self, inputs: &TVec<TValue>) -> TractResult<TVec<TValue>> {
        let facts: Facts = inputs
            .iter()
            .map(|value| (value.datum_type(), value.shape().into()))
            .collect();
        if let Some((_, plan)) = self.plans.iter().find(|(known, _)| *known == facts) {
            return plan.run(inputs.clone());
        }
        let plan = self.plan(&facts)?;
        if self.plans.len() == N_PLANS_MAX {
            self.plans.remove(0);
        }
        self.plans.push((facts, plan.clone()));
        plan.run(inputs.clone())
    }

    fn plan(&self, facts: &Facts) -> TractResult<Arc<TypedSimplePlan>> {
        let mut model = InferenceModel::default();
        let mut sources = Vec::with_capacity(facts.len());
        for (i, (datum_type, shape)) in facts.iter().enumerate() {
            let fact = InferenceFact::dt_shape(*datum_type, shape.as_slice());
            sources.push(model.add_source(format!("source-{i}"), fact)?);
        }
        let outputs = tvec![InferenceFact::default(); self.n_outputs];
        let id = model.add_node("scan", self.op.clone(), outputs)?;
        for (i, source) in sources.into_iter().enumerate() {
            model.add_edge(source, InletId::new(id, i))?;
        }
        let outputs: Vec<_> = (0..self.n_outputs)
            .map(|slot| OutletId::new(id, slot))
            .collect();
        model.select_output_outlets(&outputs)?;
        SimplePlan::new(model.into_typed()?.into_decluttered()?)
    }
}
