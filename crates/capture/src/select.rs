//! Matching a plan against a loaded model.

mod exclude;
mod graph_view;
mod kernels;
mod parameters;
mod quantised;
mod ranges;
mod selected;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use opscope_store::record::{ModelId, Operator, SlotSide};

use self::exclude::ModelExclusions;
pub use self::graph_view::GraphView;
pub use self::selected::{GraphInput, SelectedOperators, SelectedSlots, WatchRole};
use crate::{FloatView, ModelSelection, OperatorSelection, Plan, Purpose, SlotSides};

/// The type of a record that holds a graph input.
const GRAPH_INPUT_TYPE: &str = "Data";
/// How the types of operators begin that talk to other devices.
const COLLECTIVE_PREFIX: &str = "Hcom";

/// Matches `plan` against a model with these operators, in order of execution. `graph_inputs` are
/// the names of the values that a caller of the model provides.
///
/// Operators that produce nothing are never kept, except by [`Purpose::Failures`].
pub fn select(
    plan: &Plan,
    model: &ModelId,
    operators: &[Arc<Operator>],
    graph_inputs: &[String],
) -> SelectedOperators {
    let graph = GraphView {
        operators,
        inputs: graph_inputs,
        ..GraphView::default()
    };
    select_marked(plan, model, graph, &[])
}

/// [`select`] with the known constants and the marks of operators, of which later ones take
/// precedence.
pub(crate) fn select_marked(
    plan: &Plan,
    model: &ModelId,
    graph: GraphView<'_>,
    marks: &[(String, bool)],
) -> SelectedOperators {
    let GraphView {
        operators,
        inputs: graph_inputs,
        ..
    } = graph;
    let Some(rule) = rule_for(&plan.models, model) else {
        return SelectedOperators::default();
    };
    let mut unmatched = Vec::new();
    let mut is_selected = matching(rule, operators, &mut unmatched);
    // The order matters from here on: rules add to names and ranges, quantising adds neighbours of
    // what both chose, and exclusions take away from all.
    let mut chosen = kernels::KernelMatches::new(rule, marks);
    chosen.mark(operators, &mut is_selected);
    let quantising = quantised::bring(plan, graph, &mut is_selected);
    let parameters = parameters::parameters_read(plan, graph, &mut chosen);
    // Only now are the marks known that are about parameters.
    unmatched.extend(chosen.unmatched_marks(operators));
    let is_watched = watched(plan, rule, operators, &mut unmatched);
    let exclusions = ModelExclusions::new(plan, rule, model);
    exclusions.add_unmatched(operators, graph_inputs, &mut unmatched);
    let graph_inputs = graph_inputs_kept(plan, graph_inputs);
    let tells_failures = matches!(plan.purpose, Purpose::Failures(_));
    let mut kept = HashMap::new();
    for (i, operator) in operators.iter().enumerate() {
        let role = match (plan.purpose, is_watched[i]) {
            (Purpose::Watch, true) => WatchRole::Watched,
            (Purpose::Watch, false) => WatchRole::Suspect {
                is_collective: operator.op_type.starts_with(COLLECTIVE_PREFIX),
            },
            _ => WatchRole::None,
        };
        let is_kept = (is_selected[i] || is_watched[i])
            && (tells_failures || !is_without_outputs(operator))
            && !exclusions.whole(operator);
        let mut entry = SelectedSlots::default();
        if is_kept {
            let task_id = &operator.task_id;
            let has_both = graph.both_sides.contains(task_id) || quantising.contains(task_id);
            entry = keep(plan, operator, (role, has_both), &exclusions, &graph_inputs);
        }
        // An operator that is not kept itself may be the only one to read a weight.
        entry.parameters = parameters::read_by(operator, &parameters, graph);
        // A failure is reported even for an operator without tensors.
        let has_use = entry.n_slots() > 0 || role != WatchRole::None || tells_failures;
        if (is_kept && has_use) || !entry.parameters.is_empty() {
            kept.insert(operator.task_id, entry);
        }
    }
    let has_views = quantised::add_views(plan, graph, &exclusions, &mut kept);
    let mut said = HashSet::new();
    // A name may be listed, and end a range too.
    unmatched.retain(|name| said.insert(name.clone()));
    SelectedOperators {
        kept: (kept.into_iter())
            .map(|(task_id, entry)| (task_id, Arc::new(entry)))
            .collect(),
        has_views,
        unmatched,
        unused_rules: chosen.unused(),
        is_unmarked: chosen.is_unmarked() && !is_selected.contains(&true),
        is_every: rule.is_every(),
        is_model_matched: true,
    }
}

fn keep(
    plan: &Plan,
    operator: &Operator,
    (role, has_both): (WatchRole, bool),
    exclusions: &ModelExclusions<'_>,
    graph_inputs: &BTreeSet<&str>,
) -> SelectedSlots {
    let sides = match (plan.purpose, role) {
        (Purpose::Values, _) if has_both => Some(SlotSides::Both),
        (Purpose::Values, _) => Some(plan.sides),
        (Purpose::Overflow | Purpose::NonFinite | Purpose::Failures(_), _) => Some(SlotSides::Both),
        (Purpose::Watch, WatchRole::Watched) => Some(SlotSides::Outputs),
        (Purpose::Watch, _) => None,
    };
    let positions = |side, names: &[String]| -> Vec<usize> {
        let present = names
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty());
        present
            .map(|(i, _)| i)
            .filter(|&i| !exclusions.slot(operator, side, i))
            .collect()
    };
    let mut kept = SelectedSlots {
        role,
        ..SelectedSlots::default()
    };
    if sides.is_some_and(SlotSides::inputs) {
        kept.inputs = positions(SlotSide::Input, &operator.inputs);
    }
    if sides.is_some_and(SlotSides::outputs) {
        kept.outputs = positions(SlotSide::Output, &operator.outputs);
    }
    let mut seen = HashSet::new();
    for (position, name) in operator.inputs.iter().enumerate() {
        // An operator such as `Mul(x, x)` reads one value twice; one record of it is enough.
        if graph_inputs.contains(name.as_str()) && seen.insert(name) {
            let operator = Operator {
                task_id: operator.task_id,
                op_type: GRAPH_INPUT_TYPE.to_owned(),
                op_name: name.clone(),
                outputs: vec![name.clone()],
                ..Operator::default()
            };
            if !exclusions.whole(&operator) && !exclusions.slot(&operator, SlotSide::Output, 0) {
                let operator = Arc::new(operator);
                kept.graph_inputs.push(GraphInput { position, operator });
            }
        }
    }
    kept
}

impl SelectedSlots {
    /// Number of tensors in the operator's own record and in those of graph inputs; parameters do
    /// not count, they are offered at the end of the step, nor do views, which not every execution
    /// shows.
    pub fn n_slots(&self) -> u64 {
        (self.inputs.len() + self.outputs.len() + self.graph_inputs.len()) as u64
    }
    /// Positions on one side that an engine is to show, whatever for, in order.
    pub fn positions(&self, side: SlotSide) -> Vec<usize> {
        let beside = self.graph_inputs.iter().chain(&self.parameters);
        let mut positions: Vec<usize> = match side {
            SlotSide::Input => {
                let beside = beside.map(|input| input.position);
                self.inputs.iter().copied().chain(beside).collect()
            }
            SlotSide::Output => self.outputs.clone(),
        };
        let places = self.views.iter().flat_map(FloatView::places);
        positions.extend(places.filter(|(of, _)| *of == side).map(|(_, i)| i));
        positions.sort_unstable();
        positions.dedup();
        positions
    }
}

/// Which graph inputs have separate records.
fn graph_inputs_kept<'a>(plan: &Plan, names: &'a [String]) -> BTreeSet<&'a str> {
    let are_kept = plan.purpose == Purpose::Values && plan.has_graph_inputs && plan.sides.outputs();
    let names = names.iter().filter(|name| are_kept && !name.is_empty());
    names.map(String::as_str).collect()
}

fn is_without_outputs(operator: &Operator) -> bool {
    operator.outputs.iter().all(String::is_empty)
}

/// For each operator, whether the rule names it or a range holds it.
fn matching(
    rule: &OperatorSelection,
    operators: &[Arc<Operator>],
    unmatched: &mut Vec<String>,
) -> Vec<bool> {
    // No names, no ranges and no rules mean every operator.
    if rule.is_every() {
        return vec![true; operators.len()];
    }
    let names = rule.names.as_deref().unwrap_or_default();
    let mut is_selected = by_name(names, operators, unmatched);
    for range in &rule.ranges {
        ranges::mark(range, operators, &mut is_selected);
    }
    let ranges = rule.ranges.iter();
    let ends = ranges.flat_map(|range| [range.begin.clone(), range.end.clone()]);
    let ends: Vec<String> = ends.collect();
    let known: HashSet<&str> = operators.iter().map(|op| op.op_name.as_str()).collect();
    unmatched.extend(
        ends.into_iter()
            .filter(|name| !known.contains(name.as_str())),
    );
    is_selected
}

/// For each operator, whether it is watched.
fn watched(
    plan: &Plan,
    rule: &OperatorSelection,
    operators: &[Arc<Operator>],
    unmatched: &mut Vec<String>,
) -> Vec<bool> {
    if plan.purpose != Purpose::Watch {
        return vec![false; operators.len()];
    }
    by_name(&rule.watched, operators, unmatched)
}

/// For each operator, whether its name or that of an operator it was fused from is listed.
fn by_name(
    names: &[String],
    operators: &[Arc<Operator>],
    unmatched: &mut Vec<String>,
) -> Vec<bool> {
    let wanted: HashSet<&str> = names.iter().map(String::as_str).collect();
    let mut found = HashSet::new();
    let mut is_named = Vec::with_capacity(operators.len());
    for operator in operators {
        let own = std::iter::once(&operator.op_name).chain(&operator.original_names);
        let hits: Vec<&str> = own
            .map(String::as_str)
            .filter(|name| wanted.contains(name))
            .collect();
        is_named.push(!hits.is_empty());
        found.extend(hits);
    }
    let missing = names.iter().filter(|name| !found.contains(name.as_str()));
    unmatched.extend(missing.cloned());
    is_named
}

fn rule_for<'a>(models: &'a ModelSelection, model: &ModelId) -> Option<&'a OperatorSelection> {
    let named = |rules: &'a [(String, OperatorSelection)], wanted: &str| {
        rules
            .iter()
            .rev()
            .find(|(name, _)| !wanted.is_empty() && name == wanted)
            .map(|(_, rule)| rule)
    };
    match models {
        ModelSelection::None => None,
        ModelSelection::Every(rule) => Some(rule),
        ModelSelection::Named(rules) => {
            named(rules, &model.file_stem).or_else(|| named(rules, &model.graph_name))
        }
    }
}

#[cfg(test)]
mod tests;
