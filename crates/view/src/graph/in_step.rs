//! Two graphs side by side on common rows.
//!
//! Matched operators are one node of one graph, which is laid out once. Each side then draws its
//! part of every node at the same height, so that the sides stay aligned.

mod edges;
mod rows;
#[cfg(test)]
mod tests;

use crate::graph::groups::{
    BOX_HEIGHT, BoxKind, GraphBox, GraphLayout, OperatorNode, lay_out_boxes,
};
use crate::graph::layers::Point;

/// The space between both graphs.
pub const SPINE_WIDTH: f64 = 104.0;
/// The vertical space between boxes of one node.
pub const STACK_GAP: f64 = 10.0;
/// The width of operators and closed groups; both sides together must fit a screen.
pub const STEP_BOX_WIDTH: f64 = 132.0;
/// The space next to each graph, for lines around boxes.
const MARGIN: f64 = 12.0;

/// A set of matched operators of both sides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepNode {
    /// The enclosing groups, outermost first, the same on both sides.
    pub scopes: Vec<String>,
    /// The number of target and golden operators: zero if unmatched, several if fused on the other
    /// side.
    pub n_members: [u32; 2],
}

/// An operator of a side: its node, and its position within the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepMember {
    /// Index of the node.
    pub node: u32,
    /// Position in execution order, from 0.
    pub place: u32,
}

/// Dataflow edges between operators of a side.
pub type StepEdges = Vec<(StepMember, StepMember)>;

/// A visible operator or group of a side.
#[derive(Debug, Clone, PartialEq)]
pub struct StepBox {
    /// 0 for the target, 1 for the golden side.
    pub side: usize,
    /// Its position. [`GraphBox::parent`] is an index of [`StepLayout::boxes`], and
    /// [`GraphBox::operators`] are nodes.
    pub shown: GraphBox,
    /// The operator, unless the box is a group.
    pub member: Option<StepMember>,
}

/// The edges from one visible box to another of the same side.
#[derive(Debug, Clone, PartialEq)]
pub struct StepEdge {
    /// 0 for the target, 1 for the golden side.
    pub side: usize,
    /// The producer, an index of [`StepLayout::boxes`].
    pub from: u32,
    /// The consumer.
    pub to: u32,
    /// The corners of the line.
    pub points: Vec<Point>,
}

/// Boxes at the same height, which share a mark between both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRow {
    /// The vertical centre.
    pub y: f64,
    /// Its nodes and closed groups from left to right.
    pub leaves: Vec<StepLeaf>,
}

/// A node or a closed group.
#[derive(Debug, Clone, PartialEq)]
pub struct StepLeaf {
    /// Its nodes.
    pub nodes: Vec<u32>,
    /// Its first box on each side, an index of [`StepLayout::boxes`].
    pub boxes: [Option<u32>; 2],
}

/// Positions of both graphs.
#[derive(Debug, Clone, PartialEq)]
pub struct StepLayout {
    /// Visible boxes, parents before children, and those of the target before their counterparts.
    pub boxes: Vec<StepBox>,
    /// Edges by side.
    pub edges: Vec<StepEdge>,
    /// Rows from top to bottom.
    pub rows: Vec<StepRow>,
    /// The horizontal middle of each graph.
    pub centers: [f64; 2],
    /// The horizontal middle of the space between them.
    pub spine: f64,
    /// The total width.
    pub width: f64,
    /// The total height.
    pub height: f64,
}

/// Lays out both sides of `nodes`, which are in execution order.
///
/// `open` lists the paths of open groups, as in [`groups`](super::groups::lay_out_groups); a group
/// is open on both sides or neither. Edges of nonexistent operators are ignored.
pub fn lay_out_in_step(nodes: &[StepNode], edges: &[StepEdges; 2], open: &[String]) -> StepLayout {
    let is_known = |member: &StepMember, side: usize| {
        let node = nodes.get(member.node as usize);
        node.is_some_and(|node| member.place < node.n_members[side])
    };
    let edges = [0, 1].map(|side| {
        let mut known: StepEdges = edges[side].clone();
        known.retain(|(from, to)| from != to && is_known(from, side) && is_known(to, side));
        known.sort_unstable();
        known.dedup();
        known
    });
    let skeleton = skeleton(nodes, &edges, open);
    let offsets = [MARGIN, 3.0 * MARGIN + skeleton.width + SPINE_WIDTH];
    let sides = SideBoxes::new(nodes, &skeleton, offsets);
    let edges = edges::draw(nodes, &skeleton, &sides, &edges);
    let rows = rows::find(&skeleton, &sides);
    StepLayout {
        edges,
        rows,
        centers: offsets.map(|offset| offset + skeleton.width / 2.0),
        spine: skeleton.width + 2.0 * MARGIN + SPINE_WIDTH / 2.0,
        width: offsets[1] + skeleton.width + MARGIN,
        height: skeleton.height,
        boxes: sides.boxes,
    }
}

/// The layout of the nodes, each as high as the side with more operators requires.
fn skeleton(nodes: &[StepNode], edges: &[StepEdges; 2], open: &[String]) -> GraphLayout {
    let mut between: Vec<(u32, u32)> = edges
        .iter()
        .flatten()
        .map(|(from, to)| (from.node, to.node))
        .filter(|(from, to)| from != to)
        .collect();
    between.sort_unstable();
    between.dedup();
    let operators = nodes.iter().map(|node| {
        let n = node.n_members.iter().copied().max().unwrap_or(1);
        OperatorNode {
            scopes: node.scopes.clone(),
            width: None,
            height: Some(stack_height(n)),
        }
    });
    let operators: Vec<OperatorNode> = operators.collect();
    lay_out_boxes(&operators, &between, open, STEP_BOX_WIDTH)
}

fn stack_height(n: u32) -> f64 {
    let n = f64::from(n.max(1));
    n * BOX_HEIGHT + (n - 1.0) * STACK_GAP
}

/// The boxes of both sides, and the index of the first for each box of the skeleton.
struct SideBoxes {
    boxes: Vec<StepBox>,
    /// For each side and box of the skeleton, its first box.
    firsts: [Vec<Option<u32>>; 2],
    offsets: [f64; 2],
}

impl SideBoxes {
    fn new(nodes: &[StepNode], skeleton: &GraphLayout, offsets: [f64; 2]) -> SideBoxes {
        let n = skeleton.boxes.len();
        let mut sides = SideBoxes {
            boxes: Vec::with_capacity(2 * n),
            firsts: [vec![None; n], vec![None; n]],
            offsets,
        };
        for (at, shown) in skeleton.boxes.iter().enumerate() {
            for side in [0, 1] {
                sides.add(nodes, (at, shown), side);
            }
        }
        sides
    }

    /// Adds a side's part of a skeleton box.
    fn add(&mut self, nodes: &[StepNode], (at, shown): (usize, &GraphBox), side: usize) {
        let members = shown.operators.iter().filter_map(|&node| {
            let n = nodes.get(node as usize)?.n_members[side];
            (n > 0).then_some((node, n))
        });
        let members: Vec<(u32, u32)> = members.collect();
        let Some(&(node, n)) = members.first() else {
            return;
        };
        self.firsts[side][at] = Some(self.boxes.len() as u32);
        let parent = shown
            .parent
            .and_then(|parent| self.firsts[side][parent as usize]);
        let word = ["target", "golden"][side];
        let mut new_box = GraphBox {
            key: format!("{word}:{}", shown.key),
            parent,
            x: shown.x + self.offsets[side],
            operators: members.iter().map(|(node, _)| *node).collect(),
            ..shown.clone()
        };
        if shown.kind != BoxKind::Operator {
            self.boxes.push(StepBox {
                side,
                shown: new_box,
                member: None,
            });
            return;
        }
        // In a fused pair, the side with fewer operators has taller boxes.
        let pitch = (shown.height + STACK_GAP) / f64::from(n);
        for place in 0..n {
            let top = (pitch * f64::from(place)).round();
            let bottom = (pitch * f64::from(place + 1) - STACK_GAP).round();
            (new_box.y, new_box.height) = (shown.y + top, bottom - top);
            new_box.key = format!("{word}:{}.{place}", shown.key);
            self.boxes.push(StepBox {
                side,
                shown: new_box.clone(),
                member: Some(StepMember { node, place }),
            });
        }
    }

    /// The index of an operator's box, given its skeleton box.
    fn index(&self, skeleton: &GraphLayout, member: StepMember, side: usize) -> Option<u32> {
        let at = *skeleton.box_of_operator.get(member.node as usize)?;
        let first = self.firsts[side].get(at as usize).copied().flatten()?;
        let is_operator = skeleton.boxes.get(at as usize)?.kind == BoxKind::Operator;
        Some(if is_operator {
            first + member.place
        } else {
            first
        })
    }
}
