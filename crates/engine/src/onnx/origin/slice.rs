//! The original operators between values.

use std::collections::{BTreeSet, HashSet};

use super::pairing::GraphPairing;
use super::source::{Class, OriginalGraph, OriginalModel};
use crate::onnx::proto;

/// Types that a fused operator repeats where others need their result too.
const REPEATED: [&str; 11] = [
    "Cast",
    "DequantizeLinear",
    "Expand",
    "Flatten",
    "Identity",
    "QuantizeLinear",
    "Reshape",
    "Slice",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];
/// How many of them in a row.
const N_REPEATED_MAX: usize = 8;
/// Types whose result does not depend on the elements of their input.
const SHAPE_ONLY: [&str; 2] = ["Shape", "Size"];

/// The effect of some operators of the executed graph, in terms of the original one.
pub(super) struct GraphSlice<'a, 'g> {
    source: &'a OriginalModel<'g>,
    body: &'a OriginalGraph<'g>,
    pairing: &'a GraphPairing<'a, 'g>,
    /// The values that they read.
    reads: HashSet<Class>,
    /// The values that they compute.
    results: Vec<Class>,
    /// Original operators that one of them is, unchanged.
    twins: HashSet<usize>,
}

impl<'a, 'g> GraphSlice<'a, 'g> {
    /// The slice of these nodes of the executed graph.
    pub(super) fn new(
        source: &'a OriginalModel<'g>,
        body: &'a OriginalGraph<'g>,
        pairing: &'a GraphPairing<'a, 'g>,
        members: &[usize],
    ) -> GraphSlice<'a, 'g> {
        let mut reads = HashSet::new();
        let mut results = Vec::new();
        for &member in members {
            let node = &pairing.nodes[member];
            for name in &node.reads {
                let is_inside = pairing
                    .producers
                    .get(name)
                    .is_some_and(|p| members.contains(p));
                if !is_inside && !pairing.constants.contains(name) {
                    reads.extend(pairing.classes.get(name));
                }
            }
            let outputs = node.proto.output.iter();
            results.extend(outputs.filter_map(|name| pairing.classes.get(name.as_str())));
        }
        GraphSlice {
            source,
            body,
            pairing,
            reads,
            results,
            twins: members.iter().filter_map(|&m| pairing.twins[m]).collect(),
        }
    }

    /// Positions of the original operators; empty if the way back from the results passes a value
    /// that is not read.
    pub(super) fn positions(&self) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut seen: HashSet<(Class, bool)> = HashSet::new();
        let mut next: Vec<(Class, bool)> =
            self.results.iter().map(|&class| (class, false)).collect();
        let results: HashSet<Class> = self.results.iter().copied().collect();
        while let Some((class, is_shape)) = next.pop() {
            // The way back ends at what the executed operators read.
            if self.reads.contains(&class) || !seen.insert((class, is_shape)) {
                continue;
            }
            let producers: Vec<usize> = self.source.producers[class]
                .iter()
                .map(|(node, _)| *node)
                .filter(|node| self.body.nodes.contains(node))
                .collect();
            if producers.is_empty() {
                if !self.source.is_constant[class] && !is_shape && self.body.given.contains(&class)
                {
                    // Then the operators compute the value from something else than is known, and a
                    // wrong answer is worse than none.
                    return BTreeSet::new();
                }
                continue;
            }
            // A value that another operator of the executed graph computes is no work of these.
            let is_elsewhere = !results.contains(&class) && self.pairing.computed.contains(&class);
            if is_elsewhere && !self.source.is_constant[class] && !self.is_repeated(class, 0) {
                if !is_shape {
                    return BTreeSet::new();
                }
                continue;
            }
            self.take(&producers, &mut found);
            for &producer in &producers {
                let node = &self.source.nodes[producer];
                let is_shape = is_shape || SHAPE_ONLY.contains(&node.proto.op_type.as_str());
                next.extend(node.reads.iter().map(|&read| (read, is_shape)));
            }
        }
        found
    }

    /// Whether a value that others compute is computed here once more.
    fn is_repeated(&self, class: Class, depth: usize) -> bool {
        let Some(node) = self.source.producer(class) else {
            return false;
        };
        depth < N_REPEATED_MAX
            && REPEATED.contains(&node.proto.op_type.as_str())
            && node.reads.iter().all(|&read| {
                self.reads.contains(&read)
                    || self.source.is_constant[read]
                    || self.is_repeated(read, depth + 1)
            })
    }

    /// Adds the operators that compute one value. An operator that another node of the executed
    /// graph repeats unchanged belongs to that node.
    fn take(&self, producers: &[usize], found: &mut BTreeSet<usize>) {
        let mut taken: Vec<usize> = producers.to_vec();
        taken.retain(|node| self.twins.contains(node) || !self.pairing.twin_of.contains_key(node));
        if taken.is_empty() {
            taken.extend(producers.first());
        }
        for position in taken {
            let node = &self.source.nodes[position];
            if !node.is_constant_node {
                found.insert(position);
            }
            self.take_branch(position, found);
        }
    }

    /// Of an `If` that was decided beforehand, the operators of the branch that is taken.
    fn take_branch(&self, position: usize, found: &mut BTreeSet<usize>) {
        let node = &self.source.nodes[position];
        if node.proto.op_type != "If" || self.twins.contains(&position) {
            return;
        }
        let condition = node.inputs.first().copied().flatten();
        let condition = condition.and_then(|class| self.source.conditions.get(&class));
        let Some(condition) = condition else {
            return;
        };
        let wanted = if *condition {
            "then_branch"
        } else {
            "else_branch"
        };
        let Some((_, branch)) = node.bodies.iter().find(|(name, _)| *name == wanted) else {
            return;
        };
        let inner = branch
            .nodes
            .iter()
            .filter(|&&i| !self.source.nodes[i].is_constant_node);
        found.extend(inner.filter(|&&i| !proto::node_name(self.source.nodes[i].proto).is_empty()));
    }
}
