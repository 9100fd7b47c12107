//! The graph of one execution of the model, laid out.

use std::collections::HashMap;

use opscope_analysis::compare::report::words;
use opscope_analysis::compare::result::VerdictLevel;
use serde_json::{Value, json};

use super::{AnswerError, Query, number_or, operators, trace};
use crate::graph::groups::{BoxKind, GraphBox, GraphLayout, OperatorNode, lay_out_groups, scopes};
use crate::viewed::{OperatorFacts, ShownSide, ViewedRuns};

/// Most operators of a graph that is laid out.
const N_OPERATORS_MAX: usize = 200_000;

pub(super) fn answer(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let center: usize = number_or(query, "op", culprit(runs).unwrap_or(0))?;
    let graph = ShownGraph::new(runs, center)?;
    let open: Vec<String> = match query.get("open") {
        Some(text) => text
            .split(',')
            .map(|path| path.replace("%2C", ","))
            .collect(),
        None => graph.around(center),
    };
    let layout = lay_out_groups(&graph.nodes, &graph.edges, &open);
    let way = graph.way(culprit(runs));
    let boxes = layout
        .boxes
        .iter()
        .map(|shown| graph.shown(shown, &layout, &way));
    let boxes: Vec<Value> = boxes.collect();
    // Where the operator is hidden in a closed group, that is the box that stands for it.
    let place = graph.facts.iter().position(|facts| facts.id == center);
    let selected = place.and_then(|at| layout.box_of_operator.get(at));
    let selected = selected.and_then(|&at| layout.boxes.get(at as usize));
    let edges = layout.edges.iter().map(|edge| {
        let ends = [edge.from, edge.to].map(|end| layout.boxes.get(end as usize));
        let is_on_way = ends.iter().flatten().count() == 2
            && ends.iter().flatten().all(|shown| is_any(shown, &way));
        let [from, to] = ends.map(|end| end.map_or("", |shown| shown.key.as_str()));
        let points: Vec<[f64; 2]> = edge.points.iter().map(|point| [point.x, point.y]).collect();
        json!({ "from": from, "to": to, "on_way": is_on_way, "points": points })
    });
    Ok(json!({
        "width": layout.width,
        "height": layout.height,
        "selected": selected.map(|shown| shown.key.as_str()),
        "boxes": boxes,
        "edges": edges.collect::<Vec<_>>(),
    }))
}

/// The operators of one rank and step with the groups around each, from the outside.
///
/// # Errors
/// [`AnswerError`] if there is no such operator, or the graph is too large.
pub(crate) fn groups_around(
    runs: &ViewedRuns,
    center: usize,
) -> Result<Vec<(usize, Vec<String>)>, AnswerError> {
    let graph = ShownGraph::new(runs, center)?;
    let nodes = graph.facts.iter().zip(&graph.nodes);
    Ok(nodes
        .map(|(facts, node)| (facts.id, paths(&node.scopes)))
        .collect())
}

/// The operator that the verdict names, or the first that is at fault.
fn culprit(runs: &ViewedRuns) -> Option<usize> {
    let named = runs
        .comparison()
        .and_then(|comparison| comparison.summary.headline());
    let named = named.map(|first| first.operator);
    named.or_else(|| {
        let mut all = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
        all.find(|facts| facts.is_at_fault).map(|facts| facts.id)
    })
}

/// The operators of one rank and step.
struct ShownGraph<'a> {
    runs: &'a ViewedRuns,
    /// By their place in the graph.
    facts: Vec<OperatorFacts<'a>>,
    nodes: Vec<OperatorNode>,
    /// From producer to consumer, as places in the graph.
    edges: Vec<(u32, u32)>,
}

impl<'a> ShownGraph<'a> {
    /// The graph that an operator is in.
    fn new(runs: &'a ViewedRuns, center: usize) -> Result<ShownGraph<'a>, AnswerError> {
        let missing = || AnswerError::Missing(format!("there is no operator {center}"));
        let place = runs.facts(center).map(|facts| (facts.rank, facts.step));
        let place = place.ok_or_else(missing)?;
        let all = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
        // Steps and ranks would stand side by side and hide each other.
        let facts: Vec<OperatorFacts<'a>> = all
            .filter(|facts| (facts.rank, facts.step) == place)
            .collect();
        if facts.len() > N_OPERATORS_MAX {
            let text = format!(
                "a graph of {} operators is too large to be drawn",
                facts.len()
            );
            return Err(AnswerError::Missing(text));
        }
        let nodes = facts.iter().map(|facts| {
            let run = runs.executions(facts.id, ShownSide::Target).last().copied();
            let origin = run.map(|run| runs.target.dump.module_and_source(run));
            let [module, _] = origin.unwrap_or_default();
            OperatorNode {
                scopes: scopes(facts.op_name, module.as_deref()),
                width: None,
            }
        });
        Ok(ShownGraph {
            runs,
            nodes: nodes.collect(),
            edges: edges(runs, &facts),
            facts,
        })
    }

    /// The groups around an operator, from the outside.
    fn around(&self, id: usize) -> Vec<String> {
        let at = self.facts.iter().position(|facts| facts.id == id);
        let node = at.and_then(|at| self.nodes.get(at));
        node.map(|node| paths(&node.scopes)).unwrap_or_default()
    }

    /// The culprit, and the operators behind it that differ or are not finite because of it.
    fn way(&self, culprit: Option<usize>) -> Vec<bool> {
        let mut is_on_way = vec![false; self.facts.len()];
        let Some(start) = self
            .facts
            .iter()
            .position(|facts| Some(facts.id) == culprit)
        else {
            return is_on_way;
        };
        let mut readers: HashMap<u32, Vec<u32>> = HashMap::new();
        for &(from, to) in &self.edges {
            readers.entry(from).or_default().push(to);
        }
        let mut ahead = vec![start as u32];
        // Operators that pass are no part of the way, even where a value goes through them.
        while let Some(at) = ahead.pop() {
            if std::mem::replace(&mut is_on_way[at as usize], true) {
                continue;
            }
            let next = readers.get(&at).into_iter().flatten().copied();
            let is_bad = |at: &u32| {
                let level = self.facts[*at as usize].level;
                matches!(level, VerdictLevel::Warn | VerdictLevel::Fail)
            };
            ahead.extend(next.filter(is_bad));
        }
        is_on_way
    }

    fn shown(&self, shown: &GraphBox, layout: &GraphLayout, way: &[bool]) -> Value {
        let inside = || {
            shown
                .operators
                .iter()
                .filter_map(|&at| self.facts.get(at as usize))
        };
        let worst = inside()
            .map(|facts| facts.level)
            .max_by_key(|level| trace::severity(*level));
        let n_fail = inside()
            .filter(|facts| facts.level == VerdictLevel::Fail)
            .count();
        let single = match shown.kind {
            BoxKind::Operator => inside().next(),
            BoxKind::ClosedGroup | BoxKind::OpenGroup => None,
        };
        let parent = shown
            .parent
            .and_then(|parent| layout.boxes.get(parent as usize));
        let (label, op_type) = match single {
            Some(facts) => (short_name(facts.op_name, facts.op_type), facts.op_type),
            None => (shown.label.as_str(), ""),
        };
        let entry = single.and_then(|facts| operators::entry(self.runs, facts));
        json!({
            "key": shown.key,
            "kind": if single.is_some() { "op" } else { "group" },
            "id": single.map(|facts| facts.id),
            "label": label,
            "op_type": op_type,
            "path": shown.path,
            "parent": parent.map(|parent| parent.key.as_str()),
            "is_open": shown.kind == BoxKind::OpenGroup,
            "x": shown.x, "y": shown.y, "width": shown.width, "height": shown.height,
            "status": words::level(worst.unwrap_or_default()),
            "at_fault": inside().any(|facts| facts.is_at_fault),
            "n": shown.operators.len(),
            "n_fail": n_fail,
            "entry": entry,
            "on_way": is_any(shown, way),
        })
    }
}

/// The paths of groups, each within the one before it.
fn paths(scopes: &[String]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::with_capacity(scopes.len());
    for scope in scopes {
        let path = match paths.last() {
            Some(outer) => format!("{outer}/{scope}"),
            None => scope.clone(),
        };
        paths.push(path);
    }
    paths
}

fn is_any(shown: &GraphBox, way: &[bool]) -> bool {
    let mut operators = shown.operators.iter();
    operators.any(|&at| way.get(at as usize).copied().unwrap_or(false))
}

/// Values that go from one operator of the graph to another.
fn edges(runs: &ViewedRuns, facts: &[OperatorFacts<'_>]) -> Vec<(u32, u32)> {
    let places = facts.iter().enumerate();
    let places: HashMap<usize, u32> = places.map(|(at, facts)| (facts.id, at as u32)).collect();
    let mut edges = Vec::new();
    for (at, facts) in facts.iter().enumerate() {
        for run in runs.executions(facts.id, ShownSide::Target) {
            let producers = runs.target.links.producers(run);
            let producers = producers.filter_map(|(_, made_by)| runs.operator_of(made_by));
            let producers = producers.filter_map(|id| places.get(&id).copied());
            // A value that stays within a fused operator is no edge.
            let at = at as u32;
            edges.extend(producers.filter(|from| *from != at).map(|from| (from, at)));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The last part of a name; the one before it if the last is only the type.
fn short_name<'n>(name: &'n str, op_type: &str) -> &'n str {
    let mut parts = name.split('/').rev().filter(|part| !part.is_empty());
    match (parts.next(), parts.next()) {
        (Some(last), Some(before)) if last == op_type => before,
        (Some(last), _) => last,
        (None, _) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn names_are_shortened_to_what_tells() {
        for (name, op_type, expected) in [
            ("/layer2/layer2.1/conv1/Conv", "Conv", "conv1"),
            ("/layer2/layer2.1/Add", "Add", "layer2.1"),
            ("/layer2/relu_1/Relu", "Relu", "relu_1"),
            ("/heal/Where_1", "Where", "Where_1"),
            ("Conv", "Conv", "Conv"),
            ("linear", "aten.linear", "linear"),
            ("", "Add", ""),
        ] {
            assert_eq!(short_name(name, op_type), expected, "{name}");
        }
    }
}
