//! Boxes and lines as the page receives them.

use opscope_analysis::compare::report::words;
use opscope_analysis::compare::result::{PairingEvidence, VerdictLevel};
use serde_json::{Value, json};

use super::members::{SIDES, ShownMember, ShownNode};
use super::{OpenGraph, short_name};
use crate::answers::{coverage, operators, trace};
use crate::graph::groups::{BoxKind, GraphBox};
use crate::graph::in_step::StepMember;
use crate::graph::layers::Point;

/// A box of one side; its `operators` are nodes.
pub(super) struct SideBox<'a> {
    pub(super) side: usize,
    pub(super) shown: &'a GraphBox,
    /// The operator, unless the box is a group.
    pub(super) member: Option<StepMember>,
    /// The key of the parent box.
    pub(super) parent: Option<&'a str>,
}

impl OpenGraph<'_> {
    /// The box as JSON. `way` contains for each node whether it is on the path from the culprit.
    pub(super) fn to_json(&self, found: &SideBox<'_>, way: &[bool]) -> Value {
        let SideBox { side, shown, .. } = *found;
        let nodes: Vec<&ShownNode<'_>> = self.nodes_of(&shown.operators).collect();
        let level = nodes
            .iter()
            .map(|node| node.level())
            .max_by_key(|level| trace::severity(*level));
        // Counts operators rather than pairs, because this is one side.
        let n: usize = nodes.iter().map(|node| node.members[side].len()).sum();
        let failed = nodes
            .iter()
            .filter(|node| node.level() == VerdictLevel::Fail);
        let n_fail: usize = failed.map(|node| node.members[side].len()).sum();
        let mut json = json!({
            "key": shown.key,
            "side": coverage::side_name(SIDES[side]),
            "kind": "group",
            "id": null,
            "label": shown.label,
            "op_type": "",
            "path": shown.path,
            "parent": found.parent,
            "is_open": shown.kind == BoxKind::OpenGroup,
            "x": shown.x, "y": shown.y, "width": shown.width, "height": shown.height,
            "status": words::level(level.unwrap_or(VerdictLevel::Skip)),
            "at_fault": nodes.iter().any(|node| node.is_at_fault()),
            "n": n,
            "n_fail": n_fail,
            "entry": null,
            "on_way": is_any(&shown.operators, way),
            "by_hand": nodes.iter().any(|node| is_by_hand(node)),
            "only": self.runs.golden.is_some() && nodes.iter().all(|node| node.is_alone()),
        });
        let node = found
            .member
            .and_then(|at| self.graph.nodes.get(at.node as usize));
        let member = found
            .member
            .zip(node)
            .and_then(|(at, node)| node.members[side].get(at.place as usize));
        if let (Some(node), Some(member)) = (node, member) {
            add_operator(&mut json, node, member);
            // A differing weight is the target's fault; golden is the reference.
            let facts = node
                .facts
                .as_ref()
                .filter(|_| side == 0 && member.reason.is_none());
            json["entry"] = facts
                .and_then(|facts| operators::entry(self.runs, facts))
                .into();
        }
        json
    }

    /// The nodes of these numbers.
    pub(super) fn nodes_of<'n>(
        &'n self,
        places: &'n [u32],
    ) -> impl Iterator<Item = &'n ShownNode<'n>> {
        places
            .iter()
            .filter_map(|&at| self.graph.nodes.get(at as usize))
    }
}

/// A line between boxes as JSON.
pub(super) fn line([from, to]: [Option<&str>; 2], is_on_way: bool, points: &[Point]) -> Value {
    let points: Vec<[f64; 2]> = points.iter().map(|point| [point.x, point.y]).collect();
    json!({ "from": from, "to": to, "on_way": is_on_way, "points": points })
}

fn is_by_hand(node: &ShownNode<'_>) -> bool {
    let operator = node.facts.as_ref().and_then(|facts| facts.compared);
    operator.is_some_and(|operator| operator.how == PairingEvidence::Mapping)
}

fn add_operator(json: &mut Value, node: &ShownNode<'_>, member: &ShownMember<'_>) {
    let id = node.id();
    let facts = node.facts.as_ref().filter(|_| member.reason.is_none());
    json["kind"] = "op".into();
    // Only matched operators have a pair number.
    json["id"] = facts.map(|facts| facts.id).into();
    json["inside"] = id.filter(|_| member.reason.is_some()).into();
    json["reason"] = member.reason.map(|reason| reason.name()).into();
    let types = node.members.iter().flatten().map(|member| member.op_type);
    let types: Vec<&str> = types.collect();
    json["label"] = short_name(member.op_name, &types).into();
    json["op_type"] = member.op_type.into();
    json["op_name"] = member.op_name.into();
    json["call"] = member.call.into();
    json["run"] = member.number.into();
}

/// Whether any of the nodes is marked.
pub(super) fn is_any(nodes: &[u32], marked: &[bool]) -> bool {
    let mut nodes = nodes.iter();
    nodes.any(|&at| marked.get(at as usize).copied().unwrap_or(false))
}
