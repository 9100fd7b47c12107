//! Edges without self-loops, repetitions and cycles.

/// Neighbours of each node, in one array.
#[derive(Debug)]
pub(super) struct Neighbors {
    starts: Vec<u32>,
    entries: Vec<u32>,
}

impl Neighbors {
    /// Builds the lists from (node, neighbour) entries, in the given order for each node.
    pub(super) fn new(n: usize, entries: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0u32; n + 1];
        for (node, _) in entries.clone() {
            starts[node as usize + 1] += 1;
        }
        for node in 0..n {
            starts[node + 1] += starts[node];
        }
        // Counting first puts all lists into one array, without a vector per node.
        let mut next = starts.clone();
        let mut targets = vec![0u32; starts[n] as usize];
        for (node, neighbor) in entries {
            let place = &mut next[node as usize];
            targets[*place as usize] = neighbor;
            *place += 1;
        }
        Self {
            starts,
            entries: targets,
        }
    }

    /// Returns the neighbours of `node`.
    pub(super) fn neighbours(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.entries[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// The distinct edges of a graph, reversed where needed to break cycles.
#[derive(Debug)]
pub(super) struct AcyclicEdges {
    /// Distinct edges from producer to consumer, sorted.
    pub(super) edges: Vec<(u32, u32)>,
    /// For each input edge its index in `edges` and whether it was reversed.
    pub(super) of_input: Vec<Option<(u32, bool)>>,
}

impl AcyclicEdges {
    /// Drops self-loops and edges of nodes from `n` on, and reverses edges that close a cycle.
    pub(super) fn new(n: usize, input: &[(u32, u32)]) -> Self {
        let is_valid =
            |(from, to): (u32, u32)| from != to && (from as usize) < n && (to as usize) < n;
        let closing = closing_edges(n, input, &is_valid);
        let mut turned: Vec<(u32, u32, usize)> = Vec::with_capacity(input.len());
        for (idx, &(from, to)) in input.iter().enumerate() {
            if !is_valid((from, to)) {
                continue;
            }
            if closing[idx] {
                turned.push((to, from, idx));
            } else {
                turned.push((from, to, idx));
            }
        }
        // Sorting makes equal edges adjacent and the result independent of the input order.
        turned.sort_unstable();
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(turned.len());
        let mut of_input = vec![None; input.len()];
        for (from, to, idx) in turned {
            if edges.last() != Some(&(from, to)) {
                edges.push((from, to));
            }
            of_input[idx] = Some((edges.len() as u32 - 1, closing[idx]));
        }
        Self { edges, of_input }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Never,
    Running,
    Over,
}

/// Marks the back edges of a depth-first search.
fn closing_edges(
    n: usize,
    input: &[(u32, u32)],
    is_valid: &impl Fn((u32, u32)) -> bool,
) -> Vec<bool> {
    let valid = input
        .iter()
        .enumerate()
        .filter(|(_, edge)| is_valid(**edge));
    let outgoing = Neighbors::new(n, valid.clone().map(|(idx, edge)| (edge.0, idx as u32)));
    let mut has_producer = vec![false; n];
    for (_, edge) in valid {
        has_producer[edge.1 as usize] = true;
    }
    let sources = (0..n as u32).filter(|node| !has_producer[*node as usize]);
    let mut visits = vec![Visit::Never; n];
    let mut closing = vec![false; input.len()];
    let mut path: Vec<(u32, usize)> = Vec::new();
    // A cycle without incoming edges has no source; the second range visits it.
    for start in sources.chain(0..n as u32) {
        if visits[start as usize] != Visit::Never {
            continue;
        }
        visits[start as usize] = Visit::Running;
        path.push((start, 0));
        // An explicit stack: recursion would overflow the thread's stack in a deep model.
        while let Some((node, next)) = path.last_mut() {
            let Some(&edge) = outgoing.neighbours(*node).get(*next) else {
                visits[*node as usize] = Visit::Over;
                path.pop();
                continue;
            };
            *next += 1;
            let target = input[edge as usize].1;
            match visits[target as usize] {
                Visit::Never => {
                    visits[target as usize] = Visit::Running;
                    path.push((target, 0));
                }
                // The node is on the path, so this is a back edge.
                Visit::Running => closing[edge as usize] = true,
                Visit::Over => {}
            }
        }
    }
    closing
}
