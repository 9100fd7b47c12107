//! Values that bodies read from the graph around them.

use std::collections::{HashMap, HashSet};

use crate::onnx::proto::{bodies, bodies_mut};
use crate::onnx::schema::{GraphProto, NodeProto};

/// The names of what a node reads, in its bodies too. Inputs that are left out have none.
pub(super) fn read_by(node: &NodeProto) -> Vec<String> {
    let mut names: Vec<String> = node.input.clone();
    names.extend(read_by_bodies(node));
    names.retain(|name| !name.is_empty());
    names
}

/// The names of what the bodies of a node read from around it.
pub(super) fn read_by_bodies(node: &NodeProto) -> Vec<String> {
    let mut names = Vec::new();
    for body in bodies(node) {
        add_captured(body, &HashSet::new(), &mut names);
    }
    names
}

fn add_captured(graph: &GraphProto, outer: &HashSet<String>, names: &mut Vec<String>) {
    let mut known = outer.clone();
    known.extend(own_names(graph));
    let outputs = graph.output.iter().map(|value| &value.name);
    let inputs = graph.node.iter().flat_map(|node| &node.input);
    names.extend(
        inputs
            .chain(outputs)
            .filter(|name| !known.contains(*name))
            .cloned(),
    );
    for body in graph.node.iter().flat_map(bodies) {
        add_captured(body, &known, names);
    }
}

/// Names that a graph itself defines.
fn own_names(graph: &GraphProto) -> impl Iterator<Item = String> + '_ {
    let inputs = graph.input.iter().map(|value| &value.name);
    let weights = graph.initializer.iter().map(|tensor| &tensor.name);
    let made = graph.node.iter().flat_map(|node| &node.output);
    inputs.chain(weights).chain(made).cloned()
}

/// Renames the outer values that the bodies of a node read.
pub(super) fn rename(node: &mut NodeProto, names: &HashMap<String, String>) {
    for body in bodies_mut(node) {
        rename_in(body, names);
    }
}

fn rename_in(graph: &mut GraphProto, names: &HashMap<String, String>) {
    let own: HashSet<String> = own_names(graph).collect();
    let mut names = names.clone();
    names.retain(|name, _| !own.contains(name));
    let outputs = graph.output.iter_mut();
    rename_values(outputs.map(|value| &mut value.name), &names);
    for node in &mut graph.node {
        rename_values(&mut node.input, &names);
        rename(node, &names);
    }
}

pub(super) fn rename_values<'a>(
    values: impl IntoIterator<Item = &'a mut String>,
    names: &HashMap<String, String>,
) {
    for value in values {
        if let Some(other) = names.get(value) {
            value.clone_from(other);
        }
    }
}
