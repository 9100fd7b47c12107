//! Bringing nodes into an order in which every value is produced before it is read.
//!
//! ONNX asks files for such an order, and not every tool keeps to it: ONNX Runtime's own quantiser
//! appends nodes at the end.

use std::collections::{HashMap, HashSet};

use super::{bodies, bodies_mut};
use crate::onnx::schema::{GraphProto, NodeProto};

/// Warning about a file that was sorted.
pub(crate) const WARNING: &str =
    "nodes of the model were not in an order in which they can run, and have been sorted";

/// Sorts the nodes of a graph and of the bodies inside it, as far as that is possible, and says
/// whether any were out of order. Nodes that can run keep their order.
pub(super) fn sort(graph: &mut GraphProto) -> bool {
    let mut was_unsorted = false;
    for node in &mut graph.node {
        for body in bodies_mut(node) {
            was_unsorted |= sort(body);
        }
    }
    // Nearly every file is, and is left as it is.
    if is_sorted(graph) {
        return was_unsorted;
    }
    let order = order(&graph.node);
    let mut nodes: Vec<Option<NodeProto>> = graph.node.drain(..).map(Some).collect();
    graph.node = order.into_iter().filter_map(|i| nodes[i].take()).collect();
    true
}

fn is_sorted(graph: &GraphProto) -> bool {
    let outputs = graph.node.iter().flat_map(|node| &node.output);
    let mut later: HashSet<&str> = outputs.map(String::as_str).collect();
    graph.node.iter().all(|node| {
        let is_ready = !reads(node).iter().any(|name| later.contains(name));
        for output in &node.output {
            later.remove(output.as_str());
        }
        is_ready
    })
}

/// The positions of nodes in an order in which they can run; nodes of a cycle come last.
fn order(nodes: &[NodeProto]) -> Vec<usize> {
    let mut maker: HashMap<&str, usize> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            maker.entry(output).or_insert(i);
        }
    }
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    // How many makers of its inputs each node still waits for.
    let mut n_open = vec![0_usize; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        let read = reads(node);
        let makers: HashSet<usize> = read
            .iter()
            .filter_map(|name| maker.get(name).copied())
            .collect();
        n_open[i] = makers.len();
        for made in makers {
            readers[made].push(i);
        }
    }
    let mut ready: std::collections::BTreeSet<usize> =
        (0..nodes.len()).filter(|&i| n_open[i] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(next) = ready.pop_first() {
        order.push(next);
        for &reader in &readers[next] {
            n_open[reader] -= 1;
            if n_open[reader] == 0 {
                ready.insert(reader);
            }
        }
    }
    // A cycle never becomes ready; the check of the graph reports the missing value.
    let is_placed: HashSet<usize> = order.iter().copied().collect();
    order.extend((0..nodes.len()).filter(|i| !is_placed.contains(i)));
    order
}

/// Names of everything that a node reads, also in its bodies; some are values of the bodies alone.
fn reads(node: &NodeProto) -> HashSet<&str> {
    let mut read: HashSet<&str> = node.input.iter().map(String::as_str).collect();
    // Bodies read values of the graphs around them by name.
    for body in bodies(node) {
        let made: HashSet<&str> = body
            .node
            .iter()
            .flat_map(|node| &node.output)
            .map(String::as_str)
            .collect();
        let inner = body.node.iter().flat_map(reads);
        read.extend(inner.filter(|name| !made.contains(name)));
        let results = body.output.iter().map(|value| value.name.as_str());
        read.extend(results.filter(|name| !made.contains(name)));
    }
    // An input that is left out has no name.
    read.remove("");
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(input: &str, output: &str) -> NodeProto {
        NodeProto {
            input: vec![input.to_owned()],
            output: vec![output.to_owned()],
            ..NodeProto::default()
        }
    }

    fn outputs(graph: &GraphProto) -> Vec<&str> {
        graph
            .node
            .iter()
            .map(|node| node.output[0].as_str())
            .collect()
    }

    #[test]
    fn nodes_that_can_run_keep_their_order() {
        let mut graph = GraphProto {
            node: vec![
                node("b", "c"),
                node("x", "d"),
                node("a", "b"),
                node("x", "a"),
            ],
            ..GraphProto::default()
        };
        assert!(sort(&mut graph));
        assert_eq!(outputs(&graph), ["d", "a", "b", "c"]);
        assert!(!sort(&mut graph));
        // Nothing can be done about a cycle, which is refused later.
        graph.node = vec![node("b", "a"), node("a", "b"), node("x", "c")];
        assert!(sort(&mut graph));
        assert_eq!(outputs(&graph), ["c", "a", "b"]);
    }
}
