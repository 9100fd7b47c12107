//! Positions of taps in a model, as the library sorts it. No library is needed.

use std::collections::{BTreeSet, HashMap};

use prost::Message;

use super::build::{FLOAT, bytes, graph, model, node, value};
use crate::onnx::ort::{rewrite, with_taps};
use crate::onnx::schema::{GraphProto, ModelProto, NodeProto};

/// A chain of so many operators with a tap behind each.
fn tapped_chain(n: usize) -> GraphProto {
    let names: Vec<String> = (0..=n).map(|i| format!("v{i}")).collect();
    let nodes: Vec<NodeProto> = names
        .windows(2)
        .map(|pair| node("Relu", &[&pair[0]], &[&pair[1]]))
        .collect();
    let (input, output) = (value("v0", FLOAT, 1), value(&names[n], FLOAT, 1));
    let chain = model(graph(&[input], &[], &nodes, &[output]));
    let tapped = with_taps(&bytes(&chain)).unwrap();
    ModelProto::decode(&*tapped).unwrap().graph.unwrap()
}

/// The nodes that each node reads from.
fn read_nodes(graph: &GraphProto) -> Vec<BTreeSet<usize>> {
    let mut given_by = HashMap::new();
    for (i, node) in graph.node.iter().enumerate() {
        given_by.extend(node.output.iter().map(|name| (name, i)));
    }
    let of = |node: &NodeProto| -> BTreeSet<usize> {
        let inputs = node.input.iter();
        inputs
            .filter_map(|name| given_by.get(name).copied())
            .collect()
    };
    graph.node.iter().map(of).collect()
}

/// The most nodes that are ready at once where the one that comes first in the file is always
/// taken.
fn n_ready_max(graph: &GraphProto) -> usize {
    let read = read_nodes(graph);
    let mut n_missing: Vec<usize> = read.iter().map(BTreeSet::len).collect();
    let mut readers = vec![Vec::new(); read.len()];
    for (i, nodes) in read.iter().enumerate() {
        nodes.iter().for_each(|&node| readers[node].push(i));
    }
    let mut ready: BTreeSet<usize> = (0..read.len()).filter(|&i| n_missing[i] == 0).collect();
    let (mut n_max, mut n_done) = (0, 0);
    while let Some(next) = ready.pop_first() {
        n_max = n_max.max(ready.len() + 1);
        n_done += 1;
        for &reader in &readers[next] {
            n_missing[reader] -= 1;
            if n_missing[reader] == 0 {
                ready.insert(reader);
            }
        }
    }
    assert_eq!(n_done, read.len());
    n_max
}

/// The nodes in the order in which the library runs them: back from those without readers, the last
/// one in the file first, and likewise among a node's inputs.
fn run_order(graph: &GraphProto) -> Vec<usize> {
    let read = read_nodes(graph);
    let is_read: BTreeSet<usize> = read.iter().flatten().copied().collect();
    let unread = (0..read.len()).filter(|node| !is_read.contains(node));
    let mut stack: Vec<(usize, bool)> = unread.map(|node| (node, false)).collect();
    let mut seen = vec![false; read.len()];
    let mut order = Vec::new();
    while let Some((node, is_done)) = stack.pop() {
        if is_done {
            order.push(node);
        } else if !std::mem::replace(&mut seen[node], true) {
            stack.push((node, true));
            stack.extend(read[node].iter().map(|&inner| (inner, false)));
        }
    }
    order
}

#[test]
fn few_nodes_are_ready_at_once_however_many_there_are() {
    for n in [1, 31, 32, 33, 64, 65, 100, 1000, 4000] {
        let n_ready = n_ready_max(&tapped_chain(n));
        assert!(n_ready <= 34, "{n_ready} of {n}");
    }
}

#[test]
fn each_tap_runs_right_behind_its_operator() {
    for n in [1, 31, 32, 33, 64, 65, 100, 1000] {
        let graph = tapped_chain(n);
        let order = run_order(&graph);
        let kinds = order.iter().map(|&i| graph.node[i].op_type.as_str());
        let expected = ["Relu", rewrite::TAP].into_iter().cycle().take(2 * n);
        assert!(kinds.eq(expected), "{n}");
        let operators: Vec<usize> = order.iter().copied().step_by(2).collect();
        assert!(operators.is_sorted(), "{n}");
    }
}
