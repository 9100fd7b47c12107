//! Operators on quantised values.
//!
//! An operator between `DequantizeLinear` and `QuantizeLinear` becomes one with quantised inputs
//! and outputs, and keeps its name. Values of the type int8 may become uint8.

use super::GraphPairing;
use crate::onnx::origin::source::Class;

const QUANTIZE: &str = "QuantizeLinear";
const DEQUANTIZE: &str = "DequantizeLinear";
/// Prefixes of the names of types on quantised values.
const PREFIXES: [&str; 2] = ["QLinear", "Q"];
/// The prefix of the names of types whose images have the channels last.
const CHANNELS_LAST: &str = "Nhwc";
/// Activations that may be between an operator and `QuantizeLinear`.
const ACTIVATIONS: [&str; 2] = ["Relu", "Clip"];

impl<'g> GraphPairing<'_, 'g> {
    /// Identifies the quantised value next to a known one.
    pub(super) fn propagate_quantised(&mut self, index: usize) {
        let node = self.nodes[index].proto;
        let (Some(input), [output]) = (node.input.first(), &node.output[..]) else {
            return;
        };
        let [before, after] = [input, output].map(|name| self.classes.get(name.as_str()).copied());
        match (node.op_type.as_str(), before, after) {
            (DEQUANTIZE, None, Some(after)) if !self.constants.contains(input.as_str()) => {
                let producer = self.source.producer(after);
                let producer = producer.filter(|node| node.proto.op_type == DEQUANTIZE);
                if let Some(class) =
                    producer.and_then(|node| node.inputs.first().copied().flatten())
                {
                    self.insert(input, class);
                }
            }
            (QUANTIZE, Some(before), None) => {
                if let Some(class) = self.quantised(before) {
                    self.insert(output, class);
                }
            }
            _ => {}
        }
    }

    /// Returns the value that a value is quantised to, if there is only one way.
    fn quantised(&self, class: Class) -> Option<Class> {
        self.next(class, |node| {
            self.source.nodes[node].proto.op_type == QUANTIZE
        })
    }

    /// Returns the result of an operator that kept its name: the same as before in another layout,
    /// or the value that it is quantised to.
    pub(super) fn kept_result(&self, index: usize) -> Option<Class> {
        let node = self.nodes[index].proto;
        let original = &self.source.nodes[self.first_namesake(index)?];
        let op_type = node
            .op_type
            .strip_prefix(CHANNELS_LAST)
            .unwrap_or(&node.op_type);
        let mut plain = PREFIXES
            .iter()
            .filter_map(|prefix| op_type.strip_prefix(prefix));
        let is_same = op_type == original.proto.op_type;
        let [name] = &original.proto.output[..] else {
            return None;
        };
        if !is_same && !plain.any(|plain| plain == original.proto.op_type) {
            return None;
        }
        let mut class = *self.body.classes.get(name.as_str())?;
        let before = original.inputs.first().copied().flatten();
        let producer = before.and_then(|before| self.source.producer(before));
        let is_dequantised = producer.is_some_and(|node| node.proto.op_type == DEQUANTIZE);
        let read = node
            .input
            .first()
            .and_then(|name| self.classes.get(name.as_str()).copied());
        // An operator that reads the dequantised value itself was left as it was.
        if is_same && !(is_dequantised && read != before) {
            return Some(class);
        }
        // An activation without other readers may have been fused into the operator as well.
        if let [reader] = self.source.consumers[class][..] {
            let activation = &self.source.nodes[reader].proto;
            if ACTIVATIONS.contains(&activation.op_type.as_str()) {
                class = *self.body.classes.get(activation.output.first()?.as_str())?;
            }
        }
        self.quantised(class)
    }
}
