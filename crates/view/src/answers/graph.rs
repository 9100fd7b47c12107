//! The layout of one execution's graph: of one side, or of both in step.

mod boxes;
mod in_step;
mod members;
mod nodes;
mod one_side;
mod pairs;
mod scopes;

use opscope_analysis::compare::result::VerdictLevel;
use serde_json::Value;

use super::{AnswerError, Query, number};
use crate::viewed::ViewedRuns;
use members::ShownNode;
use nodes::{ShownGraph, paths};

pub(super) fn answer(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let culprit = culprit(runs);
    let center = match query.get("op") {
        Some(text) => Some(number(text, "op")?),
        None => culprit.or((runs.n_operators() > 0).then_some(0)),
    };
    let graph = ShownGraph::new(runs, center)?;
    let open: Vec<String> = match query.get("open") {
        Some(text) => text
            .split(',')
            .map(|path| path.replace("%2C", ","))
            .collect(),
        None => center.map(|id| graph.around(id)).unwrap_or_default(),
    };
    let shown = OpenGraph {
        runs,
        graph: &graph,
        open: &open,
        center,
        culprit: culprit.and_then(|id| graph.node_of(id)),
    };
    let side = query.get("side").map_or("target", String::as_str);
    let is_known = ["target", "golden", "both"].contains(&side);
    // A single dump has no other side, and an empty graph would look like a dump without operators.
    if !is_known || (side != "target" && runs.golden.is_none()) {
        return Err(AnswerError::Query(format!(
            "`side`: there is no side `{side}`"
        )));
    }
    Ok(match side {
        "both" => in_step::answer(&shown),
        "golden" => one_side::answer(&shown, 1),
        _ => one_side::answer(&shown, 0),
    })
}

/// A graph with its display state.
struct OpenGraph<'a> {
    runs: &'a ViewedRuns,
    graph: &'a ShownGraph<'a>,
    /// Paths of the open groups.
    open: &'a [String],
    /// The selected operator.
    center: Option<usize>,
    /// The culprit's node.
    culprit: Option<usize>,
}

impl OpenGraph<'_> {
    /// The culprit, and the nodes after it that differ or are not finite because of it.
    fn way(&self, side: usize) -> Vec<bool> {
        let mut is_on_way = vec![false; self.graph.nodes.len()];
        let Some(culprit) = self.culprit else {
            return is_on_way;
        };
        let edges = self.graph.edges[side].iter();
        let mut edges: Vec<(u32, u32)> = edges.map(|(from, to)| (from.node, to.node)).collect();
        edges.sort_unstable();
        let hands_on = self.hands_on(&edges);
        let mut ahead = vec![culprit as u32];
        // Operators that pass are not on the path, even if a value goes through them.
        while let Some(at) = ahead.pop() {
            if std::mem::replace(&mut is_on_way[at as usize], true) {
                continue;
            }
            let readers = linked(&edges, at);
            ahead.extend(readers.filter(|&next| hands_on[next as usize]));
        }
        is_on_way
    }

    /// The nodes that may propagate the fault: differing ones, and unmatched ones that lead to a
    /// differing one. Unmatched operators were not compared.
    fn hands_on(&self, edges: &[(u32, u32)]) -> Vec<bool> {
        let nodes = &self.graph.nodes;
        let levels = nodes.iter().map(ShownNode::level);
        let mut hands_on: Vec<bool> = levels.map(VerdictLevel::is_apart).collect();
        let mut back: Vec<(u32, u32)> = edges.iter().map(|&(from, to)| (to, from)).collect();
        back.sort_unstable();
        let bad = (0..nodes.len() as u32).filter(|&at| hands_on[at as usize]);
        let mut ahead: Vec<u32> = bad.collect();
        while let Some(at) = ahead.pop() {
            for from in linked(&back, at) {
                let is_unknown = nodes[from as usize].facts.is_none();
                if is_unknown && !std::mem::replace(&mut hands_on[from as usize], true) {
                    ahead.push(from);
                }
            }
        }
        hands_on
    }
}

/// The second ends of the sorted edges that begin at `node`.
fn linked(edges: &[(u32, u32)], node: u32) -> impl Iterator<Item = u32> {
    let first = edges.partition_point(|edge| edge.0 < node);
    let linked = edges[first..].iter().take_while(move |edge| edge.0 == node);
    linked.map(|edge| edge.1)
}

/// The operators of one rank and step with their enclosing groups, outermost first.
///
/// # Errors
///
/// [`AnswerError`] if the operator does not exist, or the graph is too large.
pub(crate) fn groups_around(
    runs: &ViewedRuns,
    center: usize,
) -> Result<Vec<(usize, Vec<String>)>, AnswerError> {
    let graph = ShownGraph::new(runs, Some(center))?;
    // Unmatched operators have no number by which to request them.
    let nodes = graph.nodes.iter().filter_map(|node| {
        let facts = node.facts.as_ref()?;
        Some((facts.id, paths(&node.scopes)))
    });
    Ok(nodes.collect())
}

/// The operator that the verdict names, or the first faulty one.
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

/// The last component of a name that is more specific than the operator's type, or the types that
/// it replaces.
fn short_name<'n>(name: &'n str, op_types: &[&str]) -> &'n str {
    let parts = name.split('/').rev().filter(|part| !part.is_empty());
    // Optimisers append their own name to the operator's.
    let mut parts = parts.skip_while(|part| part.ends_with("Fusion"));
    match (parts.next(), parts.next()) {
        (Some(last), Some(before)) if op_types.contains(&last) => before,
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
            ("/attn/v/MatMul/MatMulAddFusion", "MatMul", "v"),
            ("/attn/MatMul/MatMulScaleFusion/", "MatMul", "attn"),
            ("/attn/MatMul_1/MatMulScaleFusion", "MatMul", "MatMul_1"),
            ("Fusion", "MatMul", "Fusion"),
        ] {
            assert_eq!(short_name(name, &["Gemm", op_type]), expected, "{name}");
        }
    }
}
