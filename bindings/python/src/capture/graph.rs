//! A graph that belongs to a session.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use opscope_capture::{GraphView, KernelSelection, ModelSelection, Plan, Purpose};
use opscope_store::record::graph::TensorType;
use opscope_store::record::{ModelId, Operator};
use pyo3::prelude::*;

use super::description::{BodyDescription, OperatorDescription, ValueDescription};
use super::element_type;
use super::parts::{GraphParts, ValuePart};
use super::run::RunningGraph;
use super::shared::{TorchSessionState, tidy};
use super::taps::{Home, TapPool};

/// A graph that belongs to a session.
#[pyclass(name = "Graph", frozen, module = "opscope._native.capture")]
pub(super) struct SessionGraph {
    shared: Arc<TorchSessionState>,
    parts: Arc<GraphParts>,
    /// Values written at the end of a step, by number.
    parameters: Vec<usize>,
    unused_rules: Vec<String>,
    is_marking: bool,
    tells_failures: bool,
    taps: Home,
}

/// Facts about a graph in addition to its operators.
pub(super) struct GraphFacts {
    constants: Vec<String>,
    types: Vec<(String, TensorType)>,
    /// Values passed to bodies, by number.
    carried: HashSet<usize>,
}

impl GraphFacts {
    /// Ignores `types` with unsupported dtypes.
    pub(super) fn new(
        values: &[ValueDescription],
        constants: &[usize],
        types: Vec<(usize, String, Vec<i64>)>,
        carried: Vec<usize>,
    ) -> GraphFacts {
        let name = |value: usize| values.get(value).map(|value| value.name.clone());
        let types = types.into_iter().filter_map(|(value, dtype, shape)| {
            let dtype = element_type::from_torch(&dtype)?.stored;
            Some((name(value)?, TensorType { dtype, shape }))
        });
        GraphFacts {
            constants: constants.iter().filter_map(|&value| name(value)).collect(),
            types: types.collect(),
            carried: carried.into_iter().collect(),
        }
    }
}

impl GraphFacts {
    /// The operators that read a value passed to a body, with its name; sorted.
    fn carried_reads(
        &self,
        named: &[Arc<Operator>],
        described: &[OperatorDescription],
    ) -> Vec<(u32, String)> {
        let mut reads = Vec::new();
        for (operator, described) in named.iter().zip(described) {
            let pairs = operator.inputs.iter().zip(&described.inputs);
            let carried = pairs.filter(|(_, value)| self.carried.contains(value));
            reads.extend(carried.map(|(name, _)| (operator.task_id, name.clone())));
        }
        reads.sort_unstable();
        reads.dedup();
        reads
    }
}

/// Operators, values, and graphs inside operators.
type Described<'a> = (
    &'a [OperatorDescription],
    Vec<ValueDescription>,
    Vec<BodyDescription>,
);

impl SessionGraph {
    pub(super) fn attach(
        shared: &Arc<TorchSessionState>,
        session: &opscope_capture::CaptureSession,
        model: ModelId,
        (operators, values, bodies): Described<'_>,
        beside: &GraphFacts,
    ) -> PyResult<SessionGraph> {
        let named: Vec<Arc<Operator>> = operators
            .iter()
            .enumerate()
            .map(|(task_id, operator)| operator.named(task_id, &values))
            .collect::<PyResult<_>>()?;
        let inputs: Vec<String> = values
            .iter()
            .filter(|value| value.is_input)
            .map(|value| value.name.clone())
            .collect();
        let with_both = (named.iter().zip(operators)).filter(|(_, one)| one.has_both_sides);
        let both_sides: Vec<u32> = with_both.map(|(operator, _)| operator.task_id).collect();
        let carried = beside.carried_reads(&named, operators);
        let view = GraphView {
            operators: &named,
            inputs: &inputs,
            constants: &beside.constants,
            types: &beside.types,
            both_sides: &both_sides,
            carried: &carried,
            ..GraphView::default()
        };
        let name = model.graph_name.clone();
        let model = Arc::new(model);
        let (tap, selected) = session.attach_graph(&model, view);
        shared.asked.note(&model, Some(&selected));
        let mut parts = GraphParts {
            operators: Vec::with_capacity(named.len()),
            values: values.into_iter().map(ValuePart::new).collect(),
            bodies: Vec::new(),
            name,
        };
        let mut parameters = Vec::new();
        for (operator, described) in named.into_iter().zip(operators) {
            let kept = selected.kept.get(&operator.task_id);
            let read = kept.iter().flat_map(|kept| &kept.parameters);
            parameters.extend(read.map(|read| described.inputs[read.position]));
            parts.add(
                operator,
                described,
                // Python has additional rules, for example about modules, that the plan does not
                // contain.
                kept.filter(|_| described.is_selected).map(|kept| &**kept),
            );
        }
        parts.find_last_uses();
        parameters.sort_unstable();
        parameters.dedup();
        parts.add_bodies(bodies)?;
        shared.n_graphs.fetch_add(1, Ordering::Relaxed);
        Ok(SessionGraph {
            shared: shared.clone(),
            parts: Arc::new(parts),
            parameters,
            unused_rules: selected.unused_rules,
            is_marking: is_marking(tap.plan()),
            tells_failures: matches!(tap.plan().purpose, Purpose::Failures(_)),
            taps: Arc::new(TapPool::new(tap)),
        })
    }
}

/// Whether operators are selected by marks.
fn is_marking(plan: &Plan) -> bool {
    let kernels = match &plan.models {
        ModelSelection::Every(operators) => operators.kernels.as_ref(),
        ModelSelection::None | ModelSelection::Named(_) => None,
    };
    kernels == Some(&KernelSelection::Marked)
}

#[pymethods]
impl SessionGraph {
    /// Whether its operators are selected by marks.
    #[getter]
    fn is_marking(&self) -> bool {
        self.is_marking
    }

    /// Numbers of the operators after which results must be passed, because a record needs them.
    #[getter]
    fn tapped(&self) -> Vec<usize> {
        let values = &self.parts.values;
        let operators = self.parts.operators.iter().enumerate();
        let tapped = operators.filter(|(_, part)| {
            let (mut outputs, mut hidden) = (part.outputs.iter().flatten(), part.hidden.iter());
            part.is_kept
                || outputs.any(|&value| values[value].is_wanted)
                || hidden.any(|&body| self.parts.is_body_kept(body))
        });
        tapped.map(|(i, _)| i).collect()
    }

    /// Numbers of the values in records.
    #[getter]
    fn wanted(&self) -> Vec<usize> {
        let values = self.parts.values.iter().enumerate();
        values
            .filter(|(_, value)| value.is_wanted)
            .map(|(i, _)| i)
            .collect()
    }

    /// Numbers of the values that are written at the end of a step.
    #[getter]
    fn parameters(&self) -> Vec<usize> {
        self.parameters.clone()
    }

    /// Texts of the rules that match nothing in the graph.
    #[getter]
    fn unused_rules(&self) -> Vec<String> {
        self.unused_rules.clone()
    }

    /// Whether only failing operators are wanted.
    #[getter]
    fn tells_failures(&self) -> bool {
        self.tells_failures
    }

    /// Begins an execution; `None` if it is not recorded.
    fn begin_step(&self, py: Python<'_>, step: u64) -> Option<RunningGraph> {
        if self.shared.is_over() {
            return None;
        }
        tidy(py, &self.shared);
        let executions = &self.shared.executions;
        let index = executions.count();
        let mut tap = self.taps.take();
        tap.begin_step(step);
        if !tap.is_active() {
            self.taps.put_back(tap);
            return None;
        }
        let position = executions.begin(index, &self.parts.name, step);
        let (shared, parts) = (self.shared.clone(), self.parts.clone());
        Some(RunningGraph::new(
            shared,
            parts,
            (tap, self.taps.clone()),
            position,
        ))
    }
}
