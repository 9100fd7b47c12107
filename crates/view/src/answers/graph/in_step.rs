//! Both graphs side by side, with a mark for each row between them.

use opscope_analysis::compare::report::words;
use opscope_analysis::compare::result::{MetricId, VerdictLevel};
use serde_json::{Value, json};

use super::OpenGraph;
use super::boxes::{SideBox, is_any, line};
use super::members::ShownNode;
use super::pairs;
use crate::answers::trace;
use crate::graph::in_step::{StepLayout, StepLeaf, StepNode, StepRow, lay_out_in_step};
use crate::json::{known, slot};

pub(super) fn answer(shown: &OpenGraph<'_>) -> Value {
    let graph = shown.graph;
    let nodes = graph.nodes.iter().map(|node| StepNode {
        scopes: node.scopes.clone(),
        n_members: [0, 1].map(|side: usize| node.members[side].len() as u32),
    });
    let nodes: Vec<StepNode> = nodes.collect();
    let layout = lay_out_in_step(&nodes, &graph.edges, shown.open);
    // Only the target can be faulty.
    let ways = [shown.way(0), vec![false; nodes.len()]];
    let key = |at: u32| {
        layout
            .boxes
            .get(at as usize)
            .map(|found| found.shown.key.as_str())
    };
    let boxes = layout.boxes.iter().map(|found| {
        let side_box = SideBox {
            side: found.side,
            shown: &found.shown,
            member: found.member,
            parent: found.shown.parent.and_then(key),
        };
        shown.to_json(&side_box, &ways[found.side])
    });
    let boxes: Vec<Value> = boxes.collect();
    let edges = layout.edges.iter().map(|edge| {
        let ends = [edge.from, edge.to].map(|end| layout.boxes.get(end as usize));
        let is_on_way = ends
            .iter()
            .all(|end| end.is_some_and(|found| is_any(&found.shown.operators, &ways[edge.side])));
        line([edge.from, edge.to].map(key), is_on_way, &edge.points)
    });
    let marks: Vec<Value> = layout
        .rows
        .iter()
        .map(|row| mark(shown, row, &layout))
        .collect();
    json!({
        "side": "both",
        "width": layout.width,
        "height": layout.height,
        "selected": selected(shown, &layout),
        "edges": edges.collect::<Vec<_>>(),
        "boxes": boxes,
        "step": {
            "spine": layout.spine,
            "centers": layout.centers,
            "marks": marks,
            "pairs": pairs::counts(shown),
            "mapping": pairs::mapping(shown.runs),
        },
    })
}

/// The target's box of the selected operator, or of the closed group that it is in.
fn selected<'a>(shown: &OpenGraph<'_>, layout: &'a StepLayout) -> Option<&'a str> {
    let node = shown.graph.node_of(shown.center?)? as u32;
    let mut leaves = layout.rows.iter().flat_map(|row| &row.leaves);
    let leaf = leaves.find(|leaf| leaf.nodes.contains(&node))?;
    let at = leaf.boxes.iter().flatten().next()?;
    let found = layout.boxes.get(*at as usize)?;
    Some(found.shown.key.as_str())
}

/// The mark of a row: that of its worst box, or unmatched if nothing in it has a match.
fn mark(shown: &OpenGraph<'_>, row: &StepRow, layout: &StepLayout) -> Value {
    // The first of equals, so that the page stays stable.
    let worst = row.leaves.iter().rev().max_by_key(|leaf| {
        let pairs = shown.nodes_of(&leaf.nodes).filter(|node| !node.is_alone());
        let levels = pairs.map(|node| rank(node.level()));
        let is_at_fault = shown.nodes_of(&leaf.nodes).any(ShownNode::is_at_fault);
        (is_at_fault, levels.max())
    });
    let Some(leaf) = worst else {
        return Value::Null;
    };
    let pairs = shown.nodes_of(&leaf.nodes).filter(|node| !node.is_alone());
    let pairs: Vec<&ShownNode<'_>> = pairs.collect();
    let levels: Vec<VerdictLevel> = pairs.iter().map(|pair| pair.level()).collect();
    let level = levels.iter().copied().max_by_key(|level| rank(*level));
    let n_operators: [usize; 2] = [0, 1].map(|side| {
        let nodes = shown.nodes_of(&leaf.nodes);
        nodes.map(|node| node.members[side].len()).sum()
    });
    let kind = match level {
        None if n_operators[1] == 0 => "target_only",
        None if n_operators[0] == 0 => "golden_only",
        // Both sides have unmatched operators here.
        None => "no_partner",
        Some(VerdictLevel::Pass) => "agrees",
        Some(VerdictLevel::Warn | VerdictLevel::Fail) => "differs",
        Some(VerdictLevel::Skip) => "not_compared",
    };
    let (value, slot) = error(&pairs);
    let keys = leaf.boxes.map(|at| {
        let found = at.and_then(|at| layout.boxes.get(at as usize));
        found.map(|found| found.shown.key.as_str())
    });
    json!({
        "y": row.y,
        "kind": kind,
        "status": words::level(level.unwrap_or(VerdictLevel::Skip)),
        "value": known(value),
        "slot": slot,
        "at_fault": shown.nodes_of(&leaf.nodes).any(ShownNode::is_at_fault),
        "is_fused": pairs.iter().any(|pair| pair.is_fused()),
        "n": n_operators,
        "keys": keys,
        "reason": reason(shown, leaf),
        "n_boxes": row.leaves.len(),
    })
}

/// The weight of a verdict in a mark. Uncompared operators must not look like agreement.
fn rank(level: VerdictLevel) -> u8 {
    match level {
        VerdictLevel::Pass => 0,
        VerdictLevel::Skip => 1,
        other => trace::severity(other),
    }
}

/// The largest output error, or else that of a differing slot, with its name.
fn error(pairs: &[&ShownNode<'_>]) -> (Option<f64>, Option<String>) {
    let facts = pairs.iter().filter_map(|node| node.facts.as_ref());
    let outputs = facts.clone().filter_map(|facts| facts.errors()[0]);
    let largest = outputs.reduce(|a, b| if b.is_nan() || b > a { b } else { a });
    if largest.is_some() {
        return (largest, None);
    }
    let operators = facts.filter_map(|facts| facts.compared);
    let slots = operators.flat_map(|operator| &operator.slots);
    let slots = slots.filter(|slot| slot.level != VerdictLevel::Pass);
    let errors = slots.filter_map(|found| Some((found.metrics.get(MetricId::RelL2)?, found.slot)));
    let largest = errors.reduce(|a, b| if b.0.is_nan() || b.0 > a.0 { b } else { a });
    let (value, key) = largest.unzip();
    (value, key.map(slot))
}

/// Why an operator is unmatched.
fn reason(shown: &OpenGraph<'_>, leaf: &StepLeaf) -> Option<&'static str> {
    let [node] = leaf.nodes.as_slice() else {
        return None;
    };
    let node = shown.graph.nodes.get(*node as usize)?;
    let mut members = node.members.iter().flatten();
    members.next()?.reason.map(|reason| reason.name())
}
