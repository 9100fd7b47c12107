//! Operators on channels in blocks.
//!
//! ONNX Runtime names them after their output as it was when it brought in the blocks,
//! `conv1_out_nchwc`. After that an addition and an activation may have been put into a
//! convolution.

use super::{CAST_PREFIXES, GraphPairing, unnumbered};
use crate::onnx::origin::source::Class;

/// The set of operators that ONNX Runtime has for channels in blocks.
const DOMAIN: &str = "com.microsoft.nchwc";
/// Suffixes that it puts behind the names of outputs.
const SUFFIXES: [&str; 2] = ["_bn_nchwc", "_nchwc"];
/// Where a convolution has what is added to its result.
const ADDED_INPUT: usize = 3;
/// How far the operator that gave the type is before the output.
const N_INSIDE_MAX: usize = 8;
/// Types before a convolution that go into it.
const BEFORE: [&str; 5] = ["Pad", "Identity", "Dropout", "Cast", "Transpose"];

impl GraphPairing<'_, '_> {
    /// The original value that a node on blocked channels computes.
    pub(super) fn blocked_result(&self, index: usize) -> Option<Class> {
        let node = self.nodes[index].proto;
        let mut class = self.named_result(index)?;
        if node.op_type != "Conv" {
            return Some(class);
        }
        if let Some(added) = node.input.get(ADDED_INPUT).filter(|name| !name.is_empty()) {
            let added = self.classes.get(added.as_str()).copied();
            // The sum was fused into the convolution after it got its name, so the name is that of
            // the value before.
            class = self.next(class, |position| {
                let next = &self.source.nodes[position];
                let is_sum = ["Add", "Sum"].contains(&next.proto.op_type.as_str());
                is_sum && added.is_none_or(|added| next.reads.contains(&added))
            })?;
        }
        let activation = node.attribute.iter().find(|a| a.name == "activation");
        let activation = activation.and_then(|a| std::str::from_utf8(a.s()).ok());
        let Some(activation) = activation.filter(|name| !name.is_empty()) else {
            return Some(class);
        };
        let nodes = &self.source.nodes;
        match self.source.producers[class].first() {
            Some((producer, _)) if nodes[*producer].proto.op_type == activation => Some(class),
            _ => self.next(class, |at| nodes[at].proto.op_type == activation),
        }
    }

    /// The only value that an operator of a kind computes from another value.
    pub(super) fn next(&self, class: Class, is_it: impl Fn(usize) -> bool) -> Option<Class> {
        let mut readers = self.source.consumers[class]
            .iter()
            .copied()
            .filter(|&i| is_it(i));
        let reader = readers.next().filter(|_| readers.next().is_none())?;
        let output = self.source.nodes[reader].proto.output.first()?;
        self.body.classes.get(output.as_str()).copied()
    }

    /// The value that the node's name has.
    fn named_result(&self, index: usize) -> Option<Class> {
        let node = self.nodes[index].proto;
        if node.domain != DOMAIN {
            return None;
        }
        let name = unnumbered(&node.name);
        let prefixes = CAST_PREFIXES
            .iter()
            .filter_map(|prefix| name.strip_prefix(prefix));
        let mut names = prefixes.chain([name]).flat_map(|name| {
            let named = SUFFIXES
                .iter()
                .filter_map(move |suffix| name.strip_suffix(suffix));
            named.collect::<Vec<_>>()
        });
        names.find_map(|name| self.body.classes.get(name).copied())
    }

    /// The original value that a node on blocked channels reads first: the input of the operator
    /// that gave it its type.
    pub(super) fn blocked_input(&self, index: usize) -> Option<Class> {
        let node = self.nodes[index].proto;
        let mut class = self.named_result(index)?;
        // The way back is bounded: it only has to pass what was fused into one operator.
        for _ in 0..N_INSIDE_MAX {
            let producer = self.source.producer(class)?;
            let mut inputs = producer.inputs.iter().copied().flatten();
            if producer.proto.op_type != node.op_type {
                class = inputs.find(|&input| !self.source.is_constant[input])?;
                continue;
            }
            class = inputs.next()?;
            while let Some(before) = self.source.producer(class) {
                let is_inside = BEFORE.contains(&before.proto.op_type.as_str());
                match before
                    .inputs
                    .first()
                    .copied()
                    .flatten()
                    .filter(|_| is_inside)
                {
                    Some(input) => class = input,
                    None => break,
                }
            }
            return Some(class);
        }
        None
    }
}
