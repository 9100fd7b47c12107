//! Layout of operators in nested groups, some of which are open.
//!
//! Every open group is laid out separately and then is one node of its parent, so opening a group
//! never reorders its surroundings.

mod lines;
mod scopes;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::HashMap;

use crate::graph::layers::{LayeredLayout, NodeSize, Point, lay_out};
pub use scopes::scopes;
use tree::{Child, GroupTree};

/// The width of an operator without a wider label, and of a closed group.
pub const BOX_WIDTH: f64 = 182.0;
/// The height of an operator and of a closed group.
pub const BOX_HEIGHT: f64 = 24.0;
/// The height of an open group's head.
pub const HEAD_HEIGHT: f64 = 24.0;
/// The space between an open group's outline and its children.
pub const PADDING: f64 = 12.0;

/// An operator to lay out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperatorNode {
    /// The enclosing groups, outermost first, see [`scopes()`].
    pub scopes: Vec<String>,
    /// Its width in pixels; [`BOX_WIDTH`] if missing or not a valid length.
    pub width: Option<f64>,
    /// Its height in pixels, likewise [`BOX_HEIGHT`].
    pub height: Option<f64>,
}

/// The content of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxKind {
    /// One operator.
    Operator,
    /// A group drawn as one box.
    ClosedGroup,
    /// A group drawn as a box around its children.
    OpenGroup,
}

/// A visible operator or group.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphBox {
    /// Stable key of the box: `op:` and the operator's index, or `group:` and the path.
    pub key: String,
    /// The content of the box.
    pub kind: BoxKind,
    /// The box around this one, an index of [`GraphLayout::boxes`]; parents precede children.
    pub parent: Option<u32>,
    /// The scopes of a group joined by `/`; empty for operators.
    pub path: String,
    /// A group's name without its parents; empty for operators.
    pub label: String,
    /// The left edge.
    pub x: f64,
    /// The top edge.
    pub y: f64,
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// The operators inside, in execution order.
    pub operators: Vec<u32>,
}

/// All edges from one visible box to another.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxEdge {
    /// The producer, an index of [`GraphLayout::boxes`].
    pub from: u32,
    /// The consumer, an index of [`GraphLayout::boxes`].
    pub to: u32,
    /// The corners of the line from the bottom of `from` to the top of `to`; for an upward line
    /// between groups that feed each other, from the top of `from` to the bottom of `to`.
    pub points: Vec<Point>,
}

/// Positions of boxes and edges.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphLayout {
    /// Visible boxes, parents before children.
    pub boxes: Vec<GraphBox>,
    /// One edge for each pair of visible boxes, sorted by the boxes.
    pub edges: Vec<BoxEdge>,
    /// For each operator, the innermost visible box that contains it.
    pub box_of_operator: Vec<u32>,
    /// The total width.
    pub width: f64,
    /// The total height.
    pub height: f64,
}

/// Lays out operators in execution order with their edges from producer to consumer.
///
/// `open` lists the paths of open groups; unknown paths are ignored, and a group shows its children
/// only if its parents are open too. Edges of nonexistent operators are ignored. Operators without
/// an edge at their level form one column, in order.
pub fn lay_out_groups(
    operators: &[OperatorNode],
    edges: &[(u32, u32)],
    open: &[String],
) -> GraphLayout {
    lay_out_boxes(operators, edges, open, BOX_WIDTH)
}

/// Like [`lay_out_groups`], with another width than [`BOX_WIDTH`].
pub(crate) fn lay_out_boxes(
    operators: &[OperatorNode],
    edges: &[(u32, u32)],
    open: &[String],
    box_width: f64,
) -> GraphLayout {
    let n = operators.len();
    let edges: Vec<(u32, u32)> = edges
        .iter()
        .copied()
        .filter(|edge| (edge.0 as usize) < n && (edge.1 as usize) < n && edge.0 != edge.1)
        .collect();
    // Edges to unknown nodes and self-loops do not affect the drawing.
    let tree = GroupTree::new(operators, &edges, open);
    let mut level_edges: HashMap<u32, Vec<(Child, Child)>> = HashMap::new();
    for &(from, to) in &edges {
        // Each edge belongs to the innermost level that contains both ends.
        if let Some(meeting) = tree.meeting(from, to) {
            level_edges
                .entry(meeting.group)
                .or_default()
                .push((meeting.from, meeting.to));
        }
    }
    let mut levels = Levels {
        tree: &tree,
        operators,
        box_width,
        edges: level_edges,
        of_group: HashMap::new(),
        group_of_box: HashMap::new(),
    };
    // Computes sizes from the inside out, then positions from the outside in.
    levels.lay_out_group(tree::ROOT);
    let mut layout = GraphLayout {
        boxes: Vec::new(),
        edges: Vec::new(),
        box_of_operator: vec![0; n],
        width: 0.0,
        height: 0.0,
    };
    if let Some(root) = levels.of_group.get(&tree::ROOT) {
        (layout.width, layout.height) = (root.layout.width, root.layout.height);
    }
    levels.add_boxes(tree::ROOT, None, Point { x: 0.0, y: 0.0 }, &mut layout);
    layout.edges = lines::draw(&levels, &layout, &edges);
    layout
}

/// The contents of an open group.
struct Level {
    children: Vec<Child>,
    place_of: HashMap<Child, u32>,
    layout: LayeredLayout,
    /// The index in the routes of `layout` of an edge between two children.
    edge_of: HashMap<(Child, Child), u32>,
    /// The absolute position of the children's top left corner.
    origin: Point,
    /// The boxes of the children, ascending.
    boxes: Vec<u32>,
}

struct Levels<'a> {
    tree: &'a GroupTree,
    operators: &'a [OperatorNode],
    box_width: f64,
    edges: HashMap<u32, Vec<(Child, Child)>>,
    of_group: HashMap<u32, Level>,
    /// The group of each box that is an open group.
    group_of_box: HashMap<u32, u32>,
}

impl Levels<'_> {
    /// Lays out an open group and its descendants; returns the total size of its children.
    fn lay_out_group(&mut self, group: u32) -> NodeSize {
        let tree = self.tree;
        let children = tree.children(group).to_vec();
        let sizes: Vec<NodeSize> = children
            .iter()
            .map(|child| self.child_size(*child))
            .collect();
        let place_of: HashMap<Child, u32> = children
            .iter()
            .enumerate()
            .map(|(place, child)| (*child, place as u32))
            .collect();
        let mut pairs = self.edges.remove(&group).unwrap_or_default();
        pairs.sort_unstable();
        pairs.dedup();
        let edge_of = pairs
            .iter()
            .enumerate()
            .map(|(idx, pair)| (*pair, idx as u32))
            .collect();
        let mut edges: Vec<(u32, u32)> = pairs
            .iter()
            .map(|(from, to)| (place_of[from], place_of[to]))
            .collect();
        // These edges are not drawn; they only keep the order.
        add_column(children.len(), &mut edges);
        let layout = lay_out(&sizes, &edges);
        let size = NodeSize {
            width: layout.width,
            height: layout.height,
        };
        let level = Level {
            children,
            place_of,
            layout,
            edge_of,
            origin: Point { x: 0.0, y: 0.0 },
            boxes: Vec::new(),
        };
        self.of_group.insert(group, level);
        size
    }

    fn child_size(&mut self, child: Child) -> NodeSize {
        match child {
            Child::Group(group) if self.tree.is_open(group) => {
                let inner = self.lay_out_group(group);
                NodeSize {
                    width: (inner.width + 2.0 * PADDING).max(self.box_width + 2.0 * PADDING),
                    height: inner.height + HEAD_HEIGHT + 2.0 * PADDING,
                }
            }
            Child::Group(_) => NodeSize {
                width: self.box_width,
                height: BOX_HEIGHT,
            },
            Child::Operator(idx) => {
                let node = &self.operators[idx as usize];
                // Whole pixels keep outlines sharp.
                let length = |given: Option<f64>, or: f64| {
                    let given = given.filter(|length| length.is_finite() && *length >= 1.0);
                    given.map_or(or, f64::ceil)
                };
                NodeSize {
                    width: length(node.width, self.box_width),
                    height: length(node.height, BOX_HEIGHT),
                }
            }
        }
    }

    /// Adds the boxes of an open group whose children begin at `origin`.
    fn add_boxes(
        &mut self,
        group: u32,
        group_box: Option<u32>,
        origin: Point,
        layout: &mut GraphLayout,
    ) {
        let Some(mut level) = self.of_group.remove(&group) else {
            return;
        };
        level.origin = origin;
        for (place, &child) in level.children.iter().enumerate() {
            let idx = layout.boxes.len() as u32;
            level.boxes.push(idx);
            let corner = level.layout.corners[place];
            let at = Point::new(origin.x + corner.x, origin.y + corner.y);
            let mut new_box = self.new_box(child, group_box, at);
            match child {
                Child::Operator(operator) => layout.box_of_operator[operator as usize] = idx,
                Child::Group(inner) if self.tree.is_open(inner) => {
                    let inside = self.of_group.get(&inner);
                    let size = inside.map_or((0.0, 0.0), |level| {
                        (level.layout.width, level.layout.height)
                    });
                    new_box.width = (size.0 + 2.0 * PADDING).max(self.box_width + 2.0 * PADDING);
                    new_box.height = size.1 + HEAD_HEIGHT + 2.0 * PADDING;
                    let inner_origin = Point::new(
                        at.x + ((new_box.width - size.0) / 2.0).floor(),
                        at.y + HEAD_HEIGHT + PADDING,
                    );
                    layout.boxes.push(new_box);
                    // Parents precede their children because the page draws in this order.
                    self.group_of_box.insert(idx, inner);
                    self.add_boxes(inner, Some(idx), inner_origin, layout);
                    continue;
                }
                Child::Group(_) => {
                    for &operator in &new_box.operators {
                        layout.box_of_operator[operator as usize] = idx;
                    }
                }
            }
            layout.boxes.push(new_box);
        }
        // Lines are drawn later and need the level again.
        self.of_group.insert(group, level);
    }

    fn new_box(&mut self, child: Child, parent: Option<u32>, at: Point) -> GraphBox {
        let tree = self.tree;
        let (key, kind, path, label, operators) = match child {
            Child::Operator(idx) => {
                let key = format!("op:{idx}");
                (
                    key,
                    BoxKind::Operator,
                    String::new(),
                    String::new(),
                    vec![idx],
                )
            }
            Child::Group(group) => {
                let path = tree.path(group);
                let is_open = tree.is_open(group);
                let kind = if is_open {
                    BoxKind::OpenGroup
                } else {
                    BoxKind::ClosedGroup
                };
                let label = tree.label(group);
                (
                    format!("group:{path}"),
                    kind,
                    path,
                    label,
                    tree.operators(group),
                )
            }
        };
        let size = match child {
            Child::Operator(_) => self.child_size(child),
            // An open group's size is known after its contents are laid out.
            Child::Group(_) => NodeSize {
                width: self.box_width,
                height: BOX_HEIGHT,
            },
        };
        GraphBox {
            key,
            kind,
            parent,
            path,
            label,
            x: at.x,
            y: at.y,
            width: size.width,
            height: size.height,
            operators,
        }
    }
}

/// Chains children without edges in their order, so that they form a column instead of an endless
/// row.
fn add_column(n: usize, edges: &mut Vec<(u32, u32)>) {
    let mut is_joined = vec![false; n];
    for edge in &*edges {
        is_joined[edge.0 as usize] = true;
        is_joined[edge.1 as usize] = true;
    }
    let lone: Vec<u32> = (0..n as u32)
        .filter(|place| !is_joined[*place as usize])
        .collect();
    edges.extend(lone.windows(2).map(|pair| (pair[0], pair[1])));
}
