//! Finds operators between quantisation and dequantisation, which have no original to compare with.

use std::collections::HashMap;

use opscope_store::decimal::is_digits;

use super::{DeviceOperator, ModelRules};

const QUANT: [&str; 5] = [
    "_quant_layer",
    "/AscendQuant",
    "/AscendWeightQuant",
    ".quant",
    ".weight_quant",
];
const DEQUANT: [&str; 6] = [
    "_dequant_layer",
    "_anti_quant_layer",
    "/AscendDequant",
    "/AntiQuant",
    ".dequant",
    ".anti_quant",
];
const QUANTISED: &str = "DT_INT8";
const RESTORED: &str = "DT_FLOAT16";

/// The position of an output relative to quantisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputPlace {
    Outside,
    Inside,
    Opening,
    Closing,
}

/// Marks the operators, in the order of `id`.
pub(super) fn mark(rule: &mut ModelRules) {
    let mut places: HashMap<String, Vec<OutputPlace>> = HashMap::new();
    for &op in &rule.sequence {
        let is_inside = reads_inside(&rule.ops[op], &places);
        let [quantises, restores] = classes(&rule.ops[op]);
        let outputs = rule.ops[op].outputs.iter();
        let own: Vec<OutputPlace> = outputs
            .map(|&output| match rule.outputs[output].dtype.as_str() {
                QUANTISED if quantises => OutputPlace::Opening,
                RESTORED if restores => OutputPlace::Closing,
                _ if is_inside => OutputPlace::Inside,
                _ => OutputPlace::Outside,
            })
            .collect();
        let is_closing = own.iter().all(|&place| place == OutputPlace::Closing);
        rule.ops[op].is_filtered = is_inside && !is_closing;
        places.insert(rule.ops[op].name.clone(), own);
    }
}

fn reads_inside(op: &DeviceOperator, places: &HashMap<String, Vec<OutputPlace>>) -> bool {
    op.inputs.iter().any(|input| {
        let Some((name, index)) = input.rsplit_once(':') else {
            return false;
        };
        let index = is_digits(index)
            .then(|| index.parse::<usize>().ok())
            .flatten();
        let place = index.and_then(|index| places.get(name)?.get(index));
        matches!(place, Some(OutputPlace::Opening | OutputPlace::Inside))
    })
}

/// Whether an operator quantises, and whether it dequantises, by its name or its originals'.
fn classes(op: &DeviceOperator) -> [bool; 2] {
    let originals = op.originals.concat();
    [&QUANT[..], &DEQUANT].map(|marks| {
        let mut marks = marks.iter();
        marks.any(|mark| op.name.contains(mark) || originals.contains(mark))
    })
}
