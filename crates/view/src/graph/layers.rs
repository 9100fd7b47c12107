//! Layered layout of a directed graph, running downward.
//!
//! Nodes are in layers, and edges run through the channels between layers as orthogonal lines. Long
//! edges of one producer share a trunk of dummies. Time and memory are linear in the graph, except
//! for sorting within layers.

mod columns;
mod edges;
mod order;
mod ranks;
mod routes;
#[cfg(test)]
mod tests;

use edges::AcyclicEdges;
use order::Layering;

/// The vertical distance between layers without additional tracks for edges.
pub const LAYER_GAP: f64 = 20.0;
/// The horizontal distance between neighbours in a layer.
pub const NODE_GAP: f64 = 24.0;

/// The size of a node in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeSize {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
}

/// A position in pixels; `y` grows downward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Distance from the left edge.
    pub x: f64,
    /// Distance from the top edge.
    pub y: f64,
}

impl Point {
    pub(crate) fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }
}

/// Positions of a graph's nodes and edges.
#[derive(Debug, Clone, PartialEq)]
pub struct LayeredLayout {
    /// The top left corner of each node.
    pub corners: Vec<Point>,
    /// The layer of each node, counted from the top.
    pub ranks: Vec<u32>,
    /// The number of layers.
    pub n_layers: u32,
    /// For each input edge its corners, from the bottom of the producer to the top of the consumer.
    /// An edge that closes a cycle starts at the top of its producer, which is below its consumer.
    /// Empty for self-loops and for edges of nonexistent nodes.
    pub routes: Vec<Vec<Point>>,
    /// The total width.
    pub width: f64,
    /// The total height.
    pub height: f64,
}

/// Lays out a directed graph; the order of `nodes` breaks all ties.
///
/// Negative or non-finite sizes count as zero. Cycles are broken at the edge that a depth-first
/// search finds last. Repeated edges get the same route.
pub fn lay_out(nodes: &[NodeSize], edges: &[(u32, u32)]) -> LayeredLayout {
    let sizes: Vec<NodeSize> = nodes.iter().map(|size| checked_size(*size)).collect();
    let acyclic = AcyclicEdges::new(sizes.len(), edges);
    // The four stages of a layered drawing: layers, order within them, columns, lines.
    let ranks = ranks::assign(sizes.len(), &acyclic.edges);
    let mut layering = Layering::new(&ranks, &acyclic.edges);
    layering.sort_layers();
    let centers = columns::place(&layering, &sizes);
    let drawing = routes::draw(&layering, &sizes, &centers, &acyclic.edges);
    let routes = acyclic
        .of_input
        .iter()
        .map(|edge| {
            let Some((idx, is_reversed)) = *edge else {
                return Vec::new();
            };
            let mut route = drawing.routes[idx as usize].clone();
            // It was drawn from its consumer, which is above.
            if is_reversed {
                route.reverse();
            }
            route
        })
        .collect();
    LayeredLayout {
        corners: drawing.corners,
        n_layers: layering.layers.len() as u32,
        ranks,
        routes,
        width: drawing.width,
        height: drawing.height,
    }
}

fn checked_size(size: NodeSize) -> NodeSize {
    let checked = |length: f64| {
        if length.is_finite() {
            length.max(0.0)
        } else {
            0.0
        }
    };
    NodeSize {
        width: checked(size.width),
        height: checked(size.height),
    }
}
