//! The order within each layer.

use super::edges::Neighbors;

/// Dummies allowed per node. Beyond that, the longest edges run along the side of the graph.
const DUMMIES_PER_NODE: usize = 8;
const N_SWEEPS: usize = 4;

/// The nodes, and the dummies of long edges, in their layers.
///
/// A vertex is a node (a number below `n_nodes`) or a dummy. All edges of a producer share one
/// trunk of dummies, one per layer crossed, numbered consecutively.
#[derive(Debug)]
pub(super) struct Layering {
    pub(super) n_nodes: usize,
    /// The layer of each vertex.
    pub(super) ranks: Vec<u32>,
    /// The vertices of each layer from left to right.
    pub(super) layers: Vec<Vec<u32>>,
    /// For each vertex its neighbours in the layer above.
    pub(super) above: Neighbors,
    /// For each vertex its neighbours in the layer below.
    pub(super) below: Neighbors,
    /// The first dummy of each node's trunk.
    pub(super) trunks: Vec<u32>,
    /// For each edge, whether it runs along the side, without dummies.
    pub(super) is_aside: Vec<bool>,
}

impl Layering {
    /// Puts nodes into layers by their `ranks`, in input order.
    pub(super) fn new(node_ranks: &[u32], edges: &[(u32, u32)]) -> Self {
        let n_nodes = node_ranks.len();
        let is_aside = edges_aside(node_ranks, edges);
        let span = |edge: (u32, u32)| node_ranks[edge.1 as usize] - node_ranks[edge.0 as usize];
        // All edges of a node share its trunk, which ends above the last consumer.
        let mut lengths = vec![0u32; n_nodes];
        for (idx, &edge) in edges.iter().enumerate() {
            if !is_aside[idx] {
                let length = &mut lengths[edge.0 as usize];
                *length = (*length).max(span(edge) - 1);
            }
        }
        let mut ranks = node_ranks.to_vec();
        let mut trunks = vec![0u32; n_nodes];
        let mut links: Vec<(u32, u32)> = Vec::with_capacity(edges.len());
        let n_layers = node_ranks.iter().max().map_or(0, |rank| *rank as usize + 1);
        let mut layers = vec![Vec::new(); n_layers];
        for node in 0..n_nodes {
            layers[node_ranks[node] as usize].push(node as u32);
            // Dummies are numbered after the nodes, consecutively within a trunk.
            trunks[node] = ranks.len() as u32;
            let mut previous = node as u32;
            for step in 1..=lengths[node] {
                let dummy = ranks.len() as u32;
                ranks.push(node_ranks[node] + step);
                layers[(node_ranks[node] + step) as usize].push(dummy);
                links.push((previous, dummy));
                previous = dummy;
            }
        }
        for (idx, &edge) in edges.iter().enumerate() {
            if !is_aside[idx] {
                // The edge leaves the trunk one layer above its consumer.
                links.push((trunk_vertex(edge.0, span(edge) - 1, &trunks), edge.1));
            }
        }
        let n_vertices = ranks.len();
        Self {
            n_nodes,
            ranks,
            layers,
            above: Neighbors::new(n_vertices, links.iter().map(|link| (link.1, link.0))),
            below: Neighbors::new(n_vertices, links.iter().copied()),
            trunks,
            is_aside,
        }
    }

    /// Whether a vertex is part of a long edge.
    pub(super) fn is_dummy(&self, vertex: u32) -> bool {
        vertex as usize >= self.n_nodes
    }

    /// Returns the vertex of `node`'s trunk that is `steps` layers below it.
    pub(super) fn trunk_vertex(&self, node: u32, steps: u32) -> u32 {
        trunk_vertex(node, steps, &self.trunks)
    }

    /// Reduces crossings by sorting each layer by the mean position of its neighbours.
    pub(super) fn sort_layers(&mut self) {
        let mut places = vec![0f64; self.ranks.len()];
        for layer in &self.layers {
            note_places(layer, &mut places);
        }
        // Reused between layers, because there may be a hundred thousand.
        let mut keyed: Vec<(f64, u32)> = Vec::new();
        for sweep in 0..N_SWEEPS {
            let is_downward = sweep % 2 == 0;
            let neighbors = if is_downward {
                &self.above
            } else {
                &self.below
            };
            for step in 0..self.layers.len() {
                let rank = if is_downward {
                    step
                } else {
                    self.layers.len() - 1 - step
                };
                let layer = &mut self.layers[rank];
                // Most layers of a deep model have one node.
                if layer.len() < 2 {
                    continue;
                }
                keyed.clear();
                keyed.extend(layer.iter().map(|vertex| {
                    (
                        mean_place(neighbors.neighbours(*vertex), &places)
                            .unwrap_or(places[*vertex as usize]),
                        *vertex,
                    )
                }));
                // Stable, so that execution order breaks ties.
                keyed.sort_by(|left, right| left.0.total_cmp(&right.0));
                for (place, (_, vertex)) in layer.iter_mut().zip(&keyed) {
                    *place = *vertex;
                }
                note_places(layer, &mut places);
            }
        }
    }
}

/// Positions relative to the layer's width, so that layers of different lengths are comparable.
fn note_places(layer: &[u32], places: &mut [f64]) {
    let n = layer.len() as f64;
    for (idx, vertex) in layer.iter().enumerate() {
        places[*vertex as usize] = (idx as f64 + 0.5) / n;
    }
}

fn mean_place(neighbors: &[u32], places: &[f64]) -> Option<f64> {
    if neighbors.is_empty() {
        return None;
    }
    let sum: f64 = neighbors
        .iter()
        .map(|vertex| places[*vertex as usize])
        .sum();
    Some(sum / neighbors.len() as f64)
}

fn trunk_vertex(node: u32, steps: u32, trunks: &[u32]) -> u32 {
    if steps == 0 {
        node
    } else {
        trunks[node as usize] + steps - 1
    }
}

/// Marks the longest edges once the sum of all spans exceeds the bound. Spans of edges on a shared
/// trunk are counted separately, because each route traverses the whole trunk above its consumer.
fn edges_aside(ranks: &[u32], edges: &[(u32, u32)]) -> Vec<bool> {
    let mut spans: Vec<(u32, u32)> = edges
        .iter()
        .enumerate()
        .map(|(idx, edge)| (ranks[edge.1 as usize] - ranks[edge.0 as usize], idx as u32))
        .filter(|(span, _)| *span > 1)
        .collect();
    // Short edges keep their dummies; the long ones would use up the bound.
    spans.sort_unstable();
    let mut left = ranks.len().saturating_mul(DUMMIES_PER_NODE);
    let mut is_aside = vec![false; edges.len()];
    for (span, idx) in spans {
        let n_dummies = span as usize - 1;
        is_aside[idx as usize] = n_dummies > left;
        left = left.saturating_sub(n_dummies);
    }
    is_aside
}
