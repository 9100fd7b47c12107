//! A graph without unused values, in an executable order.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::captured::read_by;
use crate::onnx::schema::{GraphProto, NodeProto};

/// Removes nodes and weights that no result depends on, and returns the nodes. Inputs stay, but for
/// those that are weights.
pub(super) fn remove_unread(graph: &mut GraphProto) -> Vec<NodeProto> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        makers.extend(node.output.iter().map(|name| (name.as_str(), index)));
    }
    let mut read: HashSet<String> = HashSet::new();
    let mut kept: HashSet<usize> = HashSet::new();
    // Backwards from the results.
    let mut open: Vec<String> = graph
        .output
        .iter()
        .map(|value| value.name.clone())
        .collect();
    while let Some(name) = open.pop() {
        let maker = makers.get(name.as_str()).copied();
        read.insert(name);
        if let Some(maker) = maker.filter(|&maker| kept.insert(maker)) {
            open.extend(read_by(&graph.node[maker]));
        }
    }
    let nodes = std::mem::take(&mut graph.node).into_iter().enumerate();
    let (of_results, unread): (Vec<_>, Vec<_>) = nodes.partition(|(index, _)| kept.contains(index));
    graph.node = of_results.into_iter().map(|(_, node)| node).collect();
    let weights = graph.initializer.iter().map(|tensor| &tensor.name);
    let gone: HashSet<String> = weights
        .filter(|name| !read.contains(*name))
        .cloned()
        .collect();
    graph
        .initializer
        .retain(|tensor| !gone.contains(&tensor.name));
    // Old files list weights among the inputs, which would be without a value now.
    graph.input.retain(|value| !gone.contains(&value.name));
    unread.into_iter().map(|(_, node)| node).collect()
}

/// Brings nodes into an order in which each comes after what it reads, the present one where there
/// is a choice.
///
/// # Errors
/// The name of an output in a circle.
pub(super) fn sort(nodes: Vec<NodeProto>) -> Result<Vec<NodeProto>, String> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let outputs = node.output.iter().filter(|name| !name.is_empty());
        makers.extend(outputs.map(|name| (name.as_str(), index)));
    }
    let before: Vec<BTreeSet<usize>> = (nodes.iter())
        .map(|node| {
            let names = read_by(node).into_iter();
            names
                .filter_map(|name| makers.get(name.as_str()).copied())
                .collect()
        })
        .collect();
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (index, of_node) in before.iter().enumerate() {
        of_node.iter().for_each(|&maker| readers[maker].push(index));
    }
    let mut n_open: Vec<usize> = before.iter().map(BTreeSet::len).collect();
    let mut ready: BTreeSet<usize> = (0..nodes.len()).filter(|&node| n_open[node] == 0).collect();
    let mut order: Vec<usize> = Vec::new();
    while let Some(next) = ready.pop_first() {
        order.push(next);
        for &reader in &readers[next] {
            n_open[reader] -= 1;
            if n_open[reader] == 0 {
                ready.insert(reader);
            }
        }
    }
    if order.len() < nodes.len() {
        let open = n_open.iter().position(|&n| n > 0).unwrap_or_default();
        let output = nodes[open].output.first().cloned();
        return Err(output.unwrap_or_default());
    }
    // Nodes may be large, as constants in attributes are, and are moved.
    let mut nodes: Vec<Option<NodeProto>> = nodes.into_iter().map(Some).collect();
    Ok(order
        .into_iter()
        .filter_map(|index| nodes[index].take())
        .collect())
}
