//! Horizontal positions: straight chains first, then no overlaps.

use super::order::Layering;
use super::{NODE_GAP, NodeSize};

const EDGE_GAP: f64 = 12.0;
const N_SWEEPS: usize = 5;

/// Returns the horizontal centre of each vertex; the leftmost edge is at zero.
pub(super) fn place(layering: &Layering, sizes: &[NodeSize]) -> Vec<f64> {
    let half_widths: Vec<f64> = (0..layering.ranks.len())
        .map(|vertex| sizes.get(vertex).map_or(0.0, |size| size.width / 2.0))
        .collect();
    let mut columns = Columns {
        layering,
        centers: vec![0.0; half_widths.len()],
        half_widths,
        is_spine: vec![false; layering.n_nodes],
        blocks: Vec::new(),
        wishes: Vec::new(),
    };
    columns.find_spine();
    columns.pack();
    // Alternates down and up, so that both neighbouring layers have an effect.
    for sweep in 0..N_SWEEPS {
        columns.align(sweep % 2 == 0);
    }
    columns.straighten();
    columns.shift_to_zero();
    columns.centers
}

/// Neighbours in a layer that touch and move together.
struct Block {
    weighted_sum: f64,
    weight: f64,
    n: usize,
}

struct Columns<'a> {
    layering: &'a Layering,
    centers: Vec<f64>,
    half_widths: Vec<f64>,
    /// Nodes that are alone in their layer, ignoring constants.
    is_spine: Vec<bool>,
    blocks: Vec<Block>,
    wishes: Vec<f64>,
}

impl Columns<'_> {
    fn distance(&self, left: u32, right: u32) -> f64 {
        let is_edge = self.layering.is_dummy(left) || self.layering.is_dummy(right);
        let gap = if is_edge { EDGE_GAP } else { NODE_GAP };
        self.half_widths[left as usize] + self.half_widths[right as usize] + gap
    }

    fn find_spine(&mut self) {
        for layer in &self.layering.layers {
            let mut nodes = layer
                .iter()
                .filter(|vertex| self.importance(**vertex) == Importance::Node);
            // Exactly one.
            if let (Some(&node), None) = (nodes.next(), nodes.next()) {
                self.is_spine[node as usize] = true;
            }
        }
    }

    /// Places each layer side by side, centred on zero.
    fn pack(&mut self) {
        for layer in &self.layering.layers {
            let mut x = 0.0;
            for (idx, &vertex) in layer.iter().enumerate() {
                if idx > 0 {
                    x += self.distance(layer[idx - 1], vertex);
                }
                self.centers[vertex as usize] = x;
            }
            for &vertex in layer {
                self.centers[vertex as usize] -= x / 2.0;
            }
        }
    }

    fn align(&mut self, is_downward: bool) {
        let n_layers = self.layering.layers.len();
        for step in 0..n_layers {
            let rank = if is_downward {
                step
            } else {
                n_layers - 1 - step
            };
            self.align_layer(&self.layering.layers[rank], is_downward);
        }
    }

    /// Moves a layer's vertices as close to their neighbours as the order allows: weighted least
    /// squares by pooling adjacent violators.
    fn align_layer(&mut self, layer: &[u32], is_downward: bool) {
        self.blocks.clear();
        let mut offset = 0.0;
        for (idx, &vertex) in layer.iter().enumerate() {
            if idx > 0 {
                offset += self.distance(layer[idx - 1], vertex);
            }
            let (wish, weight) = self.wish(vertex, is_downward);
            let mut block = Block {
                weighted_sum: (wish - offset) * weight,
                weight,
                n: 1,
            };
            while let Some(last) = self.blocks.last() {
                // These blocks do not overlap.
                if last.weighted_sum / last.weight <= block.weighted_sum / block.weight {
                    break;
                }
                // Overlapping blocks merge at their weighted mean position.
                block.weighted_sum += last.weighted_sum;
                block.weight += last.weight;
                block.n += last.n;
                self.blocks.pop();
            }
            self.blocks.push(block);
        }
        let mut vertices = layer.iter();
        let mut previous = None;
        let mut offset = 0.0;
        for block in &self.blocks {
            // Offsets were subtracted from the desired positions, so all members of a block share
            // one position.
            let base = block.weighted_sum / block.weight;
            for &vertex in vertices.by_ref().take(block.n) {
                offset += previous.map_or(0.0, |left| self.distance(left, vertex));
                self.centers[vertex as usize] = base + offset;
                previous = Some(vertex);
            }
        }
    }

    /// Returns a vertex's desired position and its weight.
    fn wish(&mut self, vertex: u32, is_downward: bool) -> (f64, f64) {
        // Without a common axis, each block of a deep model would drift further to one side.
        if self.is_spine.get(vertex as usize) == Some(&true) {
            return (0.0, 100.0);
        }
        let layering = self.layering;
        let neighbors = if is_downward {
            &layering.above
        } else {
            &layering.below
        };
        let best = neighbors
            .neighbours(vertex)
            .iter()
            .map(|other| self.importance(*other))
            .max();
        let Some(best) = best else {
            // It stays unless others need the space.
            return (self.centers[vertex as usize], 0.01);
        };
        self.wishes.clear();
        for &other in neighbors.neighbours(vertex) {
            if self.importance(other) == best {
                self.wishes.push(self.centers[other as usize]);
            }
        }
        // The median is robust against one distant neighbour.
        self.wishes.sort_by(f64::total_cmp);
        let middle = self.wishes.len() / 2;
        let median = if self.wishes.len() % 2 == 1 {
            self.wishes[middle]
        } else {
            f64::midpoint(self.wishes[middle - 1], self.wishes[middle])
        };
        // A bend at the start of a long edge is free; later bends spoil its line.
        let weight = match (layering.is_dummy(vertex), best) {
            (true, Importance::Edge) => 8.0,
            (true, _) => 0.5,
            (false, _) if self.importance(vertex) == Importance::Constant => 0.01,
            (false, _) => 2.0,
        };
        (median, weight)
    }

    /// Nodes with consumers are aligned first, so that the main path is straight.
    fn importance(&self, vertex: u32) -> Importance {
        if self.layering.is_dummy(vertex) {
            Importance::Edge
        } else if self.layering.above.neighbours(vertex).is_empty()
            && self.layering.ranks[vertex as usize] > 0
        {
            Importance::Constant
        } else {
            Importance::Node
        }
    }

    /// Straightens chains as far as their layers leave space.
    fn straighten(&mut self) {
        let n = self.centers.len();
        let mut places = vec![0u32; n];
        for layer in &self.layering.layers {
            for (idx, vertex) in layer.iter().enumerate() {
                places[*vertex as usize] = idx as u32;
            }
        }
        let mut is_done = vec![false; n];
        let mut chain: Vec<u32> = Vec::new();
        for layer in &self.layering.layers {
            for &start in layer {
                let mut next = Some(start).filter(|vertex| !is_done[*vertex as usize]);
                let mut room = (f64::NEG_INFINITY, f64::INFINITY);
                while let Some(vertex) = next {
                    let (low, high) = self.room(vertex, places[vertex as usize] as usize);
                    let narrower = (room.0.max(low), room.1.min(high));
                    // No position fits both: the chain ends here, and a new one begins.
                    if narrower.0 > narrower.1 {
                        self.set_chain(&chain, room);
                        chain.clear();
                        room = self.room(vertex, places[vertex as usize] as usize);
                    } else {
                        room = narrower;
                    }
                    chain.push(vertex);
                    is_done[vertex as usize] = true;
                    next = self
                        .successor(vertex)
                        .filter(|vertex| !is_done[*vertex as usize]);
                }
                self.set_chain(&chain, room);
                chain.clear();
            }
        }
    }

    fn set_chain(&mut self, chain: &[u32], room: (f64, f64)) {
        let Some(&middle) = chain.get(chain.len() / 2) else {
            return;
        };
        // Rounding may have made the space of a single vertex slightly negative.
        let x = self.centers[middle as usize].min(room.1).max(room.0);
        for &vertex in chain {
            self.centers[vertex as usize] = x;
        }
    }

    fn room(&self, vertex: u32, place: usize) -> (f64, f64) {
        let layer = &self.layering.layers[self.layering.ranks[vertex as usize] as usize];
        let low = place.checked_sub(1).map_or(f64::NEG_INFINITY, |left| {
            self.centers[layer[left] as usize] + self.distance(layer[left], vertex)
        });
        let high = layer.get(place + 1).map_or(f64::INFINITY, |&right| {
            self.centers[right as usize] - self.distance(vertex, right)
        });
        (low, high.max(low))
    }

    /// Returns the vertex below that continues a chain.
    fn successor(&self, vertex: u32) -> Option<u32> {
        let below = self.only_important(self.layering.below.neighbours(vertex))?;
        // The choice must be mutual, or two chains would claim the vertex.
        let above = self.only_important(self.layering.above.neighbours(below))?;
        let is_same_kind = self.layering.is_dummy(vertex) == self.layering.is_dummy(below);
        (above == vertex && is_same_kind).then_some(below)
    }

    fn only_important(&self, neighbors: &[u32]) -> Option<u32> {
        let best = neighbors
            .iter()
            .map(|vertex| self.importance(*vertex))
            .max()?;
        let mut important = neighbors
            .iter()
            .filter(|vertex| self.importance(**vertex) == best);
        let only = important.next()?;
        important.next().is_none().then_some(*only)
    }

    fn shift_to_zero(&mut self) {
        let edges = self.centers.iter().zip(&self.half_widths);
        let left = edges
            .map(|(center, half)| center - half)
            .fold(f64::INFINITY, f64::min);
        for center in &mut self.centers {
            // Whole pixels keep lines sharp.
            *center = (*center - left).round();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Importance {
    Constant,
    Edge,
    Node,
}
