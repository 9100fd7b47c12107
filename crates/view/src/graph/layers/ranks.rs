//! The layer of each node.

use super::edges::Neighbors;

/// Assigns layers by the longest path from a source. A node without producers moves down to just
/// above its nearest consumer, so that constants are next to their use.
pub(super) fn assign(n: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    let consumers = Neighbors::new(n, edges.iter().copied());
    let mut n_waiting = vec![0u32; n];
    for edge in edges {
        n_waiting[edge.1 as usize] += 1;
    }
    let mut ready: Vec<u32> = (0..n as u32)
        .filter(|node| n_waiting[*node as usize] == 0)
        .collect();
    // Sources come first; nodes that become ready are appended.
    let n_sources = ready.len();
    let mut ranks = vec![0u32; n];
    let mut next = 0;
    while let Some(&node) = ready.get(next) {
        next += 1;
        let below = ranks[node as usize] + 1;
        for &consumer in consumers.neighbours(node) {
            let consumer = consumer as usize;
            ranks[consumer] = ranks[consumer].max(below);
            n_waiting[consumer] -= 1;
            if n_waiting[consumer] == 0 {
                ready.push(consumer as u32);
            }
        }
    }
    // Otherwise all weights would be in the first layer, with lines across the whole graph.
    for &source in &ready[..n_sources] {
        let nearest = consumers
            .neighbours(source)
            .iter()
            .map(|node| ranks[*node as usize])
            .min();
        if let Some(nearest) = nearest {
            ranks[source as usize] = nearest - 1;
        }
    }
    ranks
}
