//! The graph of a single side.

use serde_json::{Value, json};

use super::OpenGraph;
use super::boxes::{SideBox, is_any, line};
use crate::graph::groups::{BoxKind, GraphBox, OperatorNode, lay_out_groups};
use crate::graph::in_step::StepMember;

pub(super) fn answer(shown: &OpenGraph<'_>, side: usize) -> Value {
    let graph = shown.graph;
    let (members, firsts) = members(shown, side);
    let operators = members.iter().map(|member| OperatorNode {
        scopes: graph.nodes[member.node as usize].scopes.clone(),
        ..OperatorNode::default()
    });
    let operators: Vec<OperatorNode> = operators.collect();
    let index = |member: &StepMember| firsts[member.node as usize] + member.place;
    let edges = graph.edges[side].iter();
    let edges: Vec<(u32, u32)> = edges.map(|(from, to)| (index(from), index(to))).collect();
    let layout = lay_out_groups(&operators, &edges, shown.open);
    let way = shown.way(side);
    let key = |at: u32| {
        layout
            .boxes
            .get(at as usize)
            .map(|found| found.key.as_str())
    };
    // Groups list nodes, which carry the verdicts.
    let nodes_of = |found: &GraphBox| {
        let operators = found.operators.iter();
        let nodes = operators.filter_map(|&at| Some(members.get(at as usize)?.node));
        let mut nodes: Vec<u32> = nodes.collect();
        nodes.dedup();
        nodes
    };
    let boxes = layout.boxes.iter().map(|found| {
        let single = found
            .operators
            .first()
            .filter(|_| found.kind == BoxKind::Operator);
        let of_nodes = GraphBox {
            operators: nodes_of(found),
            ..found.clone()
        };
        let side_box = SideBox {
            side,
            shown: &of_nodes,
            member: single.and_then(|&at| members.get(at as usize).copied()),
            parent: found.parent.and_then(key),
        };
        shown.to_json(&side_box, &way)
    });
    let boxes: Vec<Value> = boxes.collect();
    let edges = layout.edges.iter().map(|edge| {
        let ends = [edge.from, edge.to].map(|end| layout.boxes.get(end as usize));
        let is_on_way = ends
            .iter()
            .all(|end| end.is_some_and(|found| is_any(&nodes_of(found), &way)));
        line([edge.from, edge.to].map(key), is_on_way, &edge.points)
    });
    // If a closed group hides the operator, this is the group's box.
    let center = shown.center.and_then(|id| graph.node_of(id));
    let center = center.filter(|&at| !graph.nodes[at].members[side].is_empty());
    let selected = center.and_then(|at| layout.box_of_operator.get(firsts[at] as usize));
    json!({
        "side": crate::answers::coverage::side_name(super::members::SIDES[side]),
        "width": layout.width,
        "height": layout.height,
        "selected": selected.and_then(|&at| key(at)),
        "edges": edges.collect::<Vec<_>>(),
        "boxes": boxes,
        "step": null,
    })
}

/// A side's operators, each with its own box even if the other side fuses several; and the index of
/// each node's first operator.
fn members(shown: &OpenGraph<'_>, side: usize) -> (Vec<StepMember>, Vec<u32>) {
    let nodes = &shown.graph.nodes;
    let mut members: Vec<StepMember> = Vec::new();
    let mut firsts: Vec<u32> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        firsts.push(members.len() as u32);
        members.extend((0..node.members[side].len()).map(|place| StepMember {
            node: at as u32,
            place: place as u32,
        }));
    }
    (members, firsts)
}
