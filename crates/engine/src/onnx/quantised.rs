//! Where the nodes of a graph have quantised values.
//!
//! Of each operator that quantises, dequantises or computes with integers in place of floats: which
//! of its inputs and outputs are quantised, and which others hold their scale and zero point.

mod operators;

use std::collections::HashMap;

use opscope_capture::QuantisedPlace;

use self::operators::slots;
use super::proto;
use super::schema::GraphProto;

/// The quantised values of a graph and of the bodies inside it, in the order of the nodes in the
/// file. Tasks count like those of operators: the nodes of a body follow the node that it belongs
/// to.
pub(super) fn find(graph: &GraphProto) -> Vec<QuantisedPlace> {
    let mut finder = QuantisedFinder::default();
    finder.look_at(graph);
    finder.found
}

#[derive(Default)]
struct QuantisedFinder<'a> {
    found: Vec<QuantisedPlace>,
    n_tasks: u32,
    n_values: u32,
    /// Numbers of the values that are known, by name; the innermost graph comes last. Two branches
    /// may give different values the same name.
    scopes: Vec<HashMap<&'a str, u32>>,
}

impl<'a> QuantisedFinder<'a> {
    fn look_at(&mut self, graph: &'a GraphProto) {
        self.scopes.push(HashMap::new());
        for input in &graph.input {
            self.declare(&input.name);
        }
        for weight in &graph.initializer {
            self.declare(&weight.name);
        }
        for node in &graph.node {
            let task_id = self.n_tasks;
            self.n_tasks += 1;
            // Inputs are numbered first: an output in a body may have the name of an outer value
            // that the node reads.
            let read: Vec<u32> = node.input.iter().map(|name| self.number(name)).collect();
            let given: Vec<u32> = node.output.iter().map(|name| self.declare(name)).collect();
            self.found.extend(slots(node, task_id, &read, &given));
            // Bodies come after the node's own outputs, because tasks count in that order.
            for body in proto::bodies(node) {
                self.look_at(body);
            }
        }
        self.scopes.pop();
    }

    /// Numbers a value of the innermost graph; an input that has a weight of the same name is one
    /// value.
    fn declare(&mut self, name: &'a str) -> u32 {
        let n_values = &mut self.n_values;
        match self.scopes.last_mut() {
            Some(scope) => *scope.entry(name).or_insert_with(|| {
                *n_values += 1;
                *n_values
            }),
            None => 0,
        }
    }

    /// The number of a value that a node of the innermost graph reads.
    fn number(&mut self, name: &'a str) -> u32 {
        let known = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        known.copied().unwrap_or_else(|| self.declare(name))
    }
}

#[cfg(test)]
mod tests;
