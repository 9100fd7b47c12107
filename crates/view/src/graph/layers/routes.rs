//! Vertical positions, and the routes of edges through the channels between layers.

use super::order::Layering;
use super::{LAYER_GAP, NODE_GAP, NodeSize, Point};

const N_TRACKS_MAX: usize = 24;
const TRACK_GAP: f64 = 8.0;
const N_LANES_MAX: usize = 32;

/// Corners of nodes and routes of distinct edges.
pub(super) struct Drawing {
    pub(super) corners: Vec<Point>,
    pub(super) routes: Vec<Vec<Point>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Draws a horizontally placed layering.
pub(super) fn draw(
    layering: &Layering,
    sizes: &[NodeSize],
    centers: &[f64],
    edges: &[(u32, u32)],
) -> Drawing {
    let nodes = centers.iter().zip(sizes);
    let right_of_nodes = nodes
        .map(|(x, size)| x + size.width / 2.0)
        .fold(0.0, f64::max);
    // Trunks may be right of all nodes.
    let right = centers.iter().copied().fold(right_of_nodes, f64::max);
    let lanes = Lanes::new(layering, edges, right + NODE_GAP / 2.0);
    let mut channels = Channels::new(layering, centers, &lanes);
    let tops = channels.place_layers(layering, sizes);
    let corners = sizes.iter().enumerate().map(|(node, size)| {
        let x = centers[node] - size.width / 2.0;
        Point::new(x, tops[layering.ranks[node] as usize])
    });
    let corners: Vec<Point> = corners.collect();
    let bottoms = corners
        .iter()
        .zip(sizes)
        .map(|(corner, size)| corner.y + size.height);
    let height = bottoms.fold(0.0, f64::max);
    let routes = edges.iter().enumerate().map(|(idx, &(from, to))| {
        let (from_idx, to_idx) = (from as usize, to as usize);
        let start_y = corners[from_idx].y + sizes[from_idx].height;
        let mut points = vec![Point::new(centers[from_idx], start_y)];
        // Down to the channel, over to the lane, along it, and back above the consumer.
        if layering.is_aside[idx] {
            let lane = lanes.of_node[from_idx];
            let (leaving, entering) = (channels.leaving[from_idx], channels.entering[to_idx]);
            points.push(Point::new(centers[from_idx], leaving));
            points.push(Point::new(lane, leaving));
            points.push(Point::new(lane, entering));
            points.push(Point::new(centers[to_idx], entering));
        } else {
            add_bends(
                layering,
                centers,
                &channels.leaving,
                (from, to),
                &mut points,
            );
        }
        points.push(Point::new(centers[to_idx], corners[to_idx].y));
        points
    });
    Drawing {
        routes: routes.collect(),
        width: lanes.right.unwrap_or(right),
        corners,
        height,
    }
}

/// Adds the bends of an edge along its producer's trunk.
fn add_bends(
    layering: &Layering,
    centers: &[f64],
    leaving: &[f64],
    (from, to): (u32, u32),
    points: &mut Vec<Point>,
) {
    let n_steps = layering.ranks[to as usize] - layering.ranks[from as usize];
    for step in 0..n_steps {
        let vertex = layering.trunk_vertex(from, step) as usize;
        let is_last = step + 1 == n_steps;
        let next = if is_last {
            to
        } else {
            layering.trunk_vertex(from, step + 1)
        };
        let (x, next_x) = (centers[vertex], centers[next as usize]);
        // A straight continuation has no bend.
        if x != next_x {
            points.push(Point::new(x, leaving[vertex]));
            points.push(Point::new(next_x, leaving[vertex]));
        }
    }
}

/// Vertical lines right of the graph, for edges too long for dummies.
struct Lanes {
    /// The lane of each node with such edges, otherwise zero.
    of_node: Vec<f64>,
    /// The rightmost line that enters each node from a lane, otherwise zero.
    entering: Vec<f64>,
    right: Option<f64>,
}

impl Lanes {
    fn new(layering: &Layering, edges: &[(u32, u32)], left: f64) -> Self {
        let mut spans: Vec<(u32, u32, u32)> = Vec::new();
        let mut of_node = vec![0.0; layering.n_nodes];
        let mut entering: Vec<f64> = vec![0.0; layering.n_nodes];
        let aside = edges
            .iter()
            .zip(&layering.is_aside)
            .filter(|(_, is_aside)| **is_aside);
        for (&(from, to), _) in aside.clone() {
            let end = layering.ranks[to as usize];
            // Edges are sorted by producer.
            match spans.last_mut() {
                Some(span) if span.2 == from => span.1 = span.1.max(end),
                _ => spans.push((layering.ranks[from as usize], end, from)),
            }
        }
        // Lanes are assigned in order of their start.
        spans.sort_unstable();
        let mut tracks = Tracks::new(N_LANES_MAX);
        for (start, end, node) in spans {
            let lane = tracks.assign(f64::from(start), f64::from(end));
            of_node[node as usize] = (left + lane as f64 * TRACK_GAP).round();
        }
        for (&(from, to), _) in aside {
            let x = &mut entering[to as usize];
            *x = x.max(of_node[from as usize]);
        }
        let right = of_node.iter().copied().fold(0.0, f64::max);
        Self {
            of_node,
            entering,
            right: (right > 0.0).then_some(right),
        }
    }
}

/// Parallel tracks, assigned so that intervals on one track do not overlap.
struct Tracks {
    ends: Vec<f64>,
    n_max: usize,
    n_taken: usize,
}

impl Tracks {
    fn new(n_max: usize) -> Self {
        Self {
            ends: Vec::new(),
            n_max,
            n_taken: 0,
        }
    }

    /// Assigns a track to an interval; intervals come sorted by their start. Beyond the maximum,
    /// tracks are reused in turn, and intervals may overlap.
    fn assign(&mut self, start: f64, end: f64) -> usize {
        self.n_taken += 1;
        let free = self.ends.iter().position(|taken| *taken < start);
        let track = match free {
            Some(track) => track,
            None if self.ends.len() < self.n_max => {
                self.ends.push(end);
                self.ends.len() - 1
            }
            // Coinciding lines are better than a graph of unlimited width.
            None => self.n_taken % self.n_max,
        };
        self.ends[track] = self.ends[track].max(end);
        track
    }
}

/// The horizontal tracks between layers.
struct Channels {
    /// For each vertex the track on which its edges leave; a height after `place_layers`.
    leaving: Vec<f64>,
    /// For each node the track on which edges arrive from a lane.
    entering: Vec<f64>,
    n_tracks: Vec<usize>,
}

#[derive(Clone, Copy)]
enum End {
    Leaving(u32),
    Entering(u32),
}

impl Channels {
    fn new(layering: &Layering, centers: &[f64], lanes: &Lanes) -> Self {
        let mut channels = Self {
            leaving: vec![0.0; centers.len()],
            entering: vec![0.0; layering.n_nodes],
            n_tracks: Vec::with_capacity(layering.layers.len()),
        };
        let mut lines: Vec<(f64, f64, End)> = Vec::new();
        for (rank, layer) in layering.layers.iter().enumerate() {
            lines.clear();
            for &vertex in layer {
                let x = centers[vertex as usize];
                let lane = lanes.of_node.get(vertex as usize).copied().unwrap_or(0.0);
                let ends = layering
                    .below
                    .neighbours(vertex)
                    .iter()
                    .map(|next| centers[*next as usize]);
                let (low, high) = ends.fold((x, x.max(lane)), |(low, high), end| {
                    (low.min(end), high.max(end))
                });
                // A straight line needs no track.
                if low < high {
                    lines.push((low, high, End::Leaving(vertex)));
                }
            }
            for &vertex in layering.layers.get(rank + 1).into_iter().flatten() {
                let lane = lanes.entering.get(vertex as usize).copied().unwrap_or(0.0);
                if lane > 0.0 {
                    lines.push((centers[vertex as usize], lane, End::Entering(vertex)));
                }
            }
            // From left to right, so that tracks are assigned in order of interval starts.
            lines.sort_by(|left, right| left.0.total_cmp(&right.0));
            let mut tracks = Tracks::new(N_TRACKS_MAX);
            for &(low, high, end) in &lines {
                let track = tracks.assign(low, high) as f64;
                match end {
                    End::Leaving(vertex) => channels.leaving[vertex as usize] = track,
                    End::Entering(node) => channels.entering[node as usize] = track,
                }
            }
            channels.n_tracks.push(tracks.ends.len());
        }
        channels
    }

    /// Converts tracks to heights, and returns the top of each layer.
    fn place_layers(&mut self, layering: &Layering, sizes: &[NodeSize]) -> Vec<f64> {
        let mut tops = Vec::with_capacity(layering.layers.len());
        let mut y = 0.0;
        for (rank, layer) in layering.layers.iter().enumerate() {
            tops.push(y);
            let heights = layer
                .iter()
                .filter_map(|vertex| sizes.get(*vertex as usize));
            y += heights.map(|size| size.height).fold(0.0, f64::max);
            // Tracks share the gap evenly, and many of them widen it.
            let n_lines = self.n_tracks[rank] as f64 + 1.0;
            let gap = (n_lines * TRACK_GAP).max(LAYER_GAP);
            for &vertex in layer {
                let line = &mut self.leaving[vertex as usize];
                *line = (y + gap * (*line + 1.0) / n_lines).round();
            }
            for &vertex in layering.layers.get(rank + 1).into_iter().flatten() {
                if let Some(line) = self.entering.get_mut(vertex as usize) {
                    *line = (y + gap * (*line + 1.0) / n_lines).round();
                }
            }
            y += gap;
        }
        tops
    }
}
