//! Executing an un-typed plan, node by node, under a tap.
//!
//! This file and `scan.rs` need each other, because the two things do: a graph has `Scan` nodes,
//! and the body of a `Scan` node is a graph.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use opscope_capture::{Probe, Tap};
use opscope_store::record::Operator;
use opscope_tensor::Tensor as OurTensor;
use tract_linalg::multithread::Executor;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_core::plan;
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::ops::scan::InferenceScan;

use super::error::{NAME, chain, quietly};
use super::observation::{Observation, RoundedConstants};
use super::scan::{self, ScanNode};
use super::shared_cache::{SharedCache, SharedCaches};
use super::{extents, value};
use crate::onnx::rounded_weights::{self, RoundedWeight};
use crate::onnx::schema::{GraphProto, NodeProto};
use crate::onnx::{layout, proto};
use crate::{EngineError, LoadOptions, guard};

/// Nodes of a graph from which on nodes alike share their plans, and values are computed in the
/// order in which they are asked for. What tract does to save memory takes time, and memory, that
/// grow with the square of their number.
pub(super) const N_NODES_LARGE: usize = 10_000;

type InferencePlan = SimplePlan<InferenceFact, Box<dyn InferenceOp>>;

/// A graph of the model: the main one, or a branch inside it.
pub(super) struct TractGraph {
    plan: Arc<InferencePlan>,
    /// By tract node id; `None` for sources and constants.
    nodes: Vec<Option<TractNode>>,
}

struct TractNode {
    operator: Arc<Operator>,
    /// Positions of the present inputs among those of the ONNX node.
    input_positions: Vec<usize>,
    /// Positions of the present outputs, likewise.
    output_positions: Vec<usize>,
    /// Outputs up to the last one that another node or the caller reads.
    n_outputs_read: usize,
    /// For each input, whether it is a constant of the model.
    is_constant: Vec<bool>,
    /// The inputs that are rounded together with the node's results, by their index here.
    weights: Vec<(usize, RoundedWeight)>,
    rounded_constants: RoundedConstants,
    cache: SharedCache,
    branches: Option<IfBranches>,
    scan: Option<ScanNode>,
}

/// The two bodies of an `If`, each with the positions of its inputs among the node's.
struct IfBranches {
    then_branch: (TractGraph, Vec<usize>),
    else_branch: (TractGraph, Vec<usize>),
}

/// Carries our error through the engine's.
#[derive(Debug)]
struct CarriedError(EngineError);

impl fmt::Display for CarriedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for CarriedError {}

impl TractGraph {
    /// Plans `model` and appends its operators, in order of execution, to `operators`.
    pub(super) fn new(
        model: InferenceModel,
        proto: &GraphProto,
        options: &LoadOptions,
        opsets: &[(String, i64)],
        operators: &mut Vec<Arc<Operator>>,
    ) -> TractResult<TractGraph> {
        // Nodes are identified by address: neither names nor outputs of nodes need be unique over
        // all bodies.
        let ids = proto::numbered(proto).map(|(task_id, node)| (std::ptr::from_ref(node), task_id));
        let task_ids = TaskIds {
            ids: ids.collect(),
            opsets: opsets.to_vec(),
            weights: rounded_weights::find(proto),
        };
        let mut executor = None;
        // One thread needs no executor, and operators then run on the caller's own.
        if options.n_threads > 1 {
            let name = guard::ENGINE_THREAD;
            executor = Some(Executor::multithread_with_name(options.n_threads, name));
        }
        let options = RunOptions {
            executor,
            ..RunOptions::default()
        };
        TractGraph::build(model, proto, &task_ids, &options, operators)
    }

    fn build(
        mut model: InferenceModel,
        proto: &GraphProto,
        task_ids: &TaskIds,
        options: &RunOptions,
        operators: &mut Vec<Arc<Operator>>,
    ) -> TractResult<TractGraph> {
        for i in 0..model.inputs.len() {
            // The declared shape may have dynamic dimensions; the actual shape counts.
            let fact = model.input_fact(i)?.datum_type.concretize();
            let fact = fact.map_or_else(InferenceFact::default, InferenceFact::dt);
            model.set_input_fact(i, fact)?;
        }
        // Taken out before planning, because the planner cannot handle them in an un-typed graph.
        let scans: HashMap<_, _> = scan::take_out(&mut model).into_iter().collect();
        // A graph of very many nodes stays in memory as long as the model does.
        model.nodes.shrink_to_fit();
        let is_large = model.nodes.len() >= N_NODES_LARGE;
        let plan_options = RunOptions {
            skip_order_opt_ram: is_large,
            ..options.clone()
        };
        let plan = SimplePlan::new_with_options(model, &plan_options)?;
        let model = plan.model();
        let mut caches = SharedCaches::new(is_large);
        let results: HashSet<OutletId> = model.outputs.iter().copied().collect();
        let by_value = nodes_by_value(model);
        let mut proto_of: HashMap<usize, &NodeProto> = HashMap::new();
        for node in &proto.node {
            // The labels of values are those of the file, while tract may name a node otherwise.
            let first = node.output.iter().find(|name| !name.is_empty());
            if let Some(&id) = first.and_then(|name| by_value.get(name.as_str())) {
                proto_of.insert(id, node);
            }
        }
        let mut nodes: Vec<Option<TractNode>> = model.nodes().iter().map(|_| None).collect();
        // Operators are listed in the order in which they will run.
        for &id in plan.order_without_consts() {
            let Some(node_proto) = proto_of.get(&id) else {
                continue;
            };
            let task_id = task_ids
                .ids
                .get(&std::ptr::from_ref(*node_proto))
                .copied()
                .unwrap_or(0);
            let mut operator = proto::operator(node_proto, task_id);
            operator.set_defaults(&task_ids.opsets);
            let operator = Arc::new(operator);
            operators.push(operator.clone());
            let node = model.node(id);
            let input_positions = present(&operator.inputs);
            nodes[id] = Some(TractNode {
                weights: task_ids.weights_of(task_id, &input_positions),
                rounded_constants: RoundedConstants::default(),
                input_positions,
                output_positions: present(&operator.outputs),
                n_outputs_read: n_outputs_read(&results, node),
                is_constant: node
                    .inputs
                    .iter()
                    .map(|inlet| model.node(inlet.node).op_is::<Const>())
                    .collect(),
                cache: caches.of_node(model, node, node_proto),
                branches: IfBranches::build(node, node_proto, task_ids, options, operators)?,
                scan: match scans.get(&id) {
                    Some(scan) => build_scan(scan, node, node_proto, task_ids, options)?,
                    None => None,
                },
                operator,
            });
        }
        Ok(TractGraph { plan, nodes })
    }

    /// Executes the graph once.
    pub(super) fn run(
        &self,
        inputs: TVec<TValue>,
        observation: Observation<'_>,
    ) -> Result<TVec<TValue>, EngineError> {
        let fail = |reason| EngineError::Engine {
            engine: NAME,
            reason,
        };
        let result = guard::catch(|| {
            let mut state = SimpleState::new(&self.plan)?;
            state.run_plan_with_eval(inputs, |context, op_state, tract_node, inputs| {
                let interpret = |inputs| {
                    let outputs = plan::eval(context, op_state, tract_node, inputs)?;
                    outputs.into_iter().map(value::without_symbols).collect()
                };
                // Nodes that the loader added are no operators of the file and are not shown.
                let Some(node) = &self.nodes[tract_node.id] else {
                    return interpret(inputs);
                };
                let inputs = node.round_weights(observation, inputs);
                node.run(observation.tap, &inputs, || {
                    let outputs = node.eval(observation, tract_node, &inputs, interpret)?;
                    let positions = &node.output_positions;
                    Ok(observation.take_results(&node.operator, positions, outputs))
                })
                .map_err(|error| TractError::new(CarriedError(error)))
            })
        });
        result
            .map_err(fail)?
            .map_err(|error| match error.downcast::<CarriedError>() {
                Ok(CarriedError(error)) => error,
                Err(error) => fail(chain(&error)),
            })
    }
}

impl TractNode {
    /// The inputs, with the node's weights rounded if its results are.
    fn round_weights(&self, observation: Observation<'_>, inputs: TVec<TValue>) -> TVec<TValue> {
        let task_id = self.operator.task_id;
        match observation.rounding {
            Some(rounding) if !self.weights.is_empty() && rounding.rounds(task_id) => self
                .rounded_constants
                .replace(rounding, task_id, &self.weights, inputs),
            _ => inputs,
        }
    }

    /// Shows the operator to the tap around its evaluation.
    fn run(
        &self,
        tap: Option<&Tap>,
        inputs: &TVec<TValue>,
        eval: impl FnOnce() -> Result<TVec<TValue>, EngineError>,
    ) -> Result<TVec<TValue>, EngineError> {
        let Some(tap) = tap else { return eval() };
        if tap.is_stopped() {
            return Err(EngineError::Stopped);
        }
        let Some(mut probe) = tap.open(&self.operator) else {
            return eval();
        };
        // Turning a value into a tensor is costly, and skipped for a side that is not kept.
        if probe.wants_inputs() {
            self.show(
                &mut probe,
                false,
                &self.input_positions,
                inputs,
                |probe: &mut Probe, i, tensor| probe.input(i, tensor),
            );
        }
        let outputs = match eval() {
            Ok(outputs) => outputs,
            Err(error) => {
                if let EngineError::Operator { reason, .. } = &error {
                    probe.fail(reason);
                }
                return Err(error);
            }
        };
        if probe.wants_outputs() {
            self.show(
                &mut probe,
                true,
                &self.output_positions,
                &outputs,
                |probe: &mut Probe, i, tensor| probe.output(i, tensor),
            );
        }
        probe.submit();
        Ok(outputs)
    }

    fn show(
        &self,
        probe: &mut Probe,
        is_output: bool,
        positions: &[usize],
        values: &TVec<TValue>,
        show: impl Fn(&mut Probe, usize, OurTensor),
    ) {
        for (&position, value) in positions.iter().zip(values) {
            // A value without bytes stays away; the probe counts it as dropped.
            if let Some(tensor) = value::to_tensor(value) {
                let n_axes = tensor.shape().n_axes();
                let op_type = &self.operator.op_type;
                let layout = layout::layout_of(op_type, is_output, position, n_axes);
                show(probe, position, tensor.with_layout(layout));
            }
        }
    }

    /// Evaluates by branch, by compiled plan or by interpreter, whichever the node has.
    fn eval(
        &self,
        observation: Observation<'_>,
        tract_node: &InferenceNode,
        inputs: &TVec<TValue>,
        interpret: impl FnOnce(TVec<TValue>) -> TractResult<TVec<TValue>>,
    ) -> Result<TVec<TValue>, EngineError> {
        if let Some(branches) = &self.branches {
            return branches
                .run(observation, inputs)
                .unwrap_or_else(|reason| Err(self.fail(reason)));
        }
        if let Some(scan) = &self.scan {
            let result = quietly(|| scan.eval(inputs, observation));
            return result.unwrap_or_else(|reason| Err(self.fail(reason)));
        }
        let result = quietly(|| {
            let op_type = &self.operator.op_type;
            extents::check(op_type, inputs)?;
            let compiled = (self.cache.lock()).eval(tract_node, op_type, &self.is_constant, inputs);
            match compiled? {
                Some(outputs) => outputs.into_iter().map(value::without_symbols).collect(),
                None => interpret(inputs.clone()),
            }
        });
        let outputs = result.map_err(|reason| self.fail(reason))?;
        // An operator may return fewer outputs than the file names, if the others have no readers.
        if outputs.len() < self.n_outputs_read {
            let (n, wanted) = (outputs.len(), self.n_outputs_read);
            return Err(self.fail(format!("the engine returned {n} of {wanted} outputs")));
        }
        Ok(outputs)
    }

    fn fail(&self, reason: String) -> EngineError {
        EngineError::Operator {
            op_type: self.operator.op_type.clone(),
            op_name: self.operator.op_name.clone(),
            reason,
        }
    }
}

impl IfBranches {
    fn build(
        node: &InferenceNode,
        proto: &NodeProto,
        task_ids: &TaskIds,
        options: &RunOptions,
        operators: &mut Vec<Arc<Operator>>,
    ) -> TractResult<Option<IfBranches>> {
        let Some(op) = node.op_as::<tract_onnx::ops::logic::If>() else {
            return Ok(None);
        };
        let (Some(then_proto), Some(else_proto)) = (
            body_proto(proto, "then_branch"),
            body_proto(proto, "else_branch"),
        ) else {
            return Ok(None);
        };
        // The node's inputs after the condition are the outer values that the two bodies read,
        // sorted by name.
        let bodies = [&op.then_body, &op.else_body];
        let [then_names, else_names] = bodies.map(|body| {
            let nodes = body.inputs.iter().map(|outlet| body.node(outlet.node));
            nodes.map(|node| node.name.as_str()).collect::<Vec<_>>()
        });
        let mut outer = [then_names.as_slice(), &else_names].concat();
        outer.sort();
        outer.dedup();
        let [then_positions, else_positions] = [then_names, else_names].map(|names| {
            let positions = names.iter().map(|name| outer.binary_search(name));
            positions.map(|at| at.unwrap_or(0) + 1).collect()
        });
        let [then_body, else_body] = bodies.map(InferenceModel::clone);
        let then_graph = TractGraph::build(then_body, then_proto, task_ids, options, operators)?;
        let else_graph = TractGraph::build(else_body, else_proto, task_ids, options, operators)?;
        Ok(Some(IfBranches {
            then_branch: (then_graph, then_positions),
            else_branch: (else_graph, else_positions),
        }))
    }

    /// Runs the branch that the condition picks; the outer error is about the condition.
    fn run(
        &self,
        observation: Observation<'_>,
        inputs: &TVec<TValue>,
    ) -> Result<Result<TVec<TValue>, EngineError>, String> {
        let is_then = quietly(|| inputs[0].cast_to_scalar::<bool>())?;
        let (graph, positions) = if is_then {
            &self.then_branch
        } else {
            &self.else_branch
        };
        let inputs = positions
            .iter()
            .map(|&i| inputs.get(i).cloned())
            .collect::<Option<TVec<_>>>();
        Ok(graph.run(inputs.ok_or("an outer value is missing")?, observation))
    }
}

fn build_scan(
    scan: &InferenceScan,
    node: &InferenceNode,
    proto: &NodeProto,
    task_ids: &TaskIds,
    options: &RunOptions,
) -> TractResult<Option<ScanNode>> {
    let Some(body_proto) = body_proto(proto, "body") else {
        return Ok(None);
    };
    // What happens inside is not shown.
    let hidden = &mut Vec::new();
    let body = TractGraph::build(scan.body.clone(), body_proto, task_ids, options, hidden)?;
    Ok(Some(ScanNode::new(scan, body, node.outputs.len())))
}

fn body_proto<'a>(node: &'a NodeProto, name: &str) -> Option<&'a GraphProto> {
    let attr = node.attribute.iter().find(|attr| attr.name == name);
    attr.and_then(|attr| attr.g.as_ref())
}

/// Facts in the file other than the nodes themselves.
struct TaskIds {
    /// The number of each node.
    ids: HashMap<*const NodeProto, u32>,
    /// Versions of the operator sets, by domain.
    opsets: Vec<(String, i64)>,
    /// The weights of each operator.
    weights: HashMap<u32, Vec<RoundedWeight>>,
}

impl TaskIds {
    /// The weights of an operator, by their index among its present inputs.
    fn weights_of(&self, task_id: u32, input_positions: &[usize]) -> Vec<(usize, RoundedWeight)> {
        let weights = self.weights.get(&task_id).into_iter().flatten();
        let indexed = weights.filter_map(|weight| {
            let mut positions = input_positions.iter();
            let index = positions.position(|position| *position == weight.position)?;
            Some((index, weight.clone()))
        });
        indexed.collect()
    }
}

/// Which tract node produces each named value.
fn nodes_by_value(model: &InferenceModel) -> HashMap<&str, usize> {
    let mut by_value = HashMap::new();
    for node in model.nodes() {
        for slot in 0..node.outputs.len() {
            if let Some(label) = model.outlet_label(OutletId::new(node.id, slot)) {
                by_value.insert(label, node.id);
            }
        }
    }
    by_value
}

fn n_outputs_read(results: &HashSet<OutletId>, node: &InferenceNode) -> usize {
    (0..node.outputs.len())
        .rev()
        .find(|slot| {
            !node.outputs[*slot].successors.is_empty()
                || results.contains(&OutletId::new(node.id, *slot))
        })
        .map_or(0, |slot| slot + 1)
}

fn present(names: &[String]) -> Vec<usize> {
    (0..names.len()).filter(|&i| !names[i].is_empty()).collect()
}
