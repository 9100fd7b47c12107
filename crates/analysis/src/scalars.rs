//! Single-element outputs, such as a loss, over the steps of a dump.

use std::collections::{BTreeSet, HashMap};

use opscope_store::SharedText;
use opscope_store::reader::ExecutionKind;
use opscope_store::record::SlotSide;
use opscope_tensor::convert::dtype::decode;
use opscope_tensor::{DType, Numbers};

use crate::compare::side::{ComparedDump, ExecutionSlot};
use crate::elements::LastFile;
use crate::statistics_of;

/// Titles of the minimum and the maximum, which equal the value of a single element.
const EXTREMES: [[&str; 2]; 2] = [["min value", "min"], ["max value", "max"]];

/// An output with one element in every execution of its operator, in at least two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarOutput {
    /// The operator's type.
    pub op_type: SharedText,
    /// The operator's name.
    pub op_name: SharedText,
    /// Index of the output.
    pub output: u32,
    /// Element type.
    pub dtype: DType,
    /// Its executions, as indices into [`ComparedDump::runs`], in the dump's order.
    pub runs: Vec<usize>,
}

/// The scalar outputs, in the order in which their operators first ran.
pub fn scalar_outputs(dump: &ComparedDump) -> Vec<ScalarOutput> {
    let mut known: HashMap<(&str, &str, u32), usize> = HashMap::new();
    let mut found: Vec<Option<ScalarOutput>> = Vec::new();
    for (index, run) in dump.runs.iter().enumerate() {
        // Single-element weights and constants are not results.
        if run.kind != ExecutionKind::Operator || run.place.step.is_none() {
            continue;
        }
        for slot in run
            .slots
            .iter()
            .filter(|slot| slot.side == SlotSide::Output)
        {
            let key = (run.op_type.as_str(), run.op_name.as_str(), slot.index);
            let place = *known.entry(key).or_insert_with(|| {
                found.push(new_scalar(run.op_type.clone(), run.op_name.clone(), slot));
                found.len() - 1
            });
            // An output with more elements in another step is not a scalar.
            let scalar = dtype_of_scalar(slot).and_then(|_| found[place].take());
            found[place] = scalar.map(|mut scalar| {
                scalar.runs.push(index);
                scalar
            });
        }
    }
    let mut scalars: Vec<ScalarOutput> = found.into_iter().flatten().collect();
    scalars.retain(|scalar| {
        let steps = scalar.runs.iter().map(|&run| dump.runs[run].place.step);
        steps.flatten().collect::<BTreeSet<u64>>().len() > 1
    });
    scalars
}

fn new_scalar(
    op_type: SharedText,
    op_name: SharedText,
    slot: &ExecutionSlot,
) -> Option<ScalarOutput> {
    Some(ScalarOutput {
        op_type,
        op_name,
        output: slot.index,
        dtype: dtype_of_scalar(slot)?,
        runs: Vec::new(),
    })
}

/// The element type of a slot with one numeric element; booleans do not count.
fn dtype_of_scalar(slot: &ExecutionSlot) -> Option<DType> {
    let dtype = slot.dtype.filter(|dtype| *dtype != DType::Bool)?;
    (slot.n_elements() == Some(1)).then_some(dtype)
}

/// The scalar to show by default: of the last operator whose name contains `loss`, else of the last
/// whose type does, else of the last, the first output. The scale of a loss is not a loss, and a
/// loss operator returns its loss before its weights.
pub fn default_scalar(scalars: &[ScalarOutput]) -> Option<usize> {
    let by_name = scalars.iter().rfind(|scalar| is_loss(&scalar.op_name));
    let by_type = scalars.iter().rfind(|scalar| is_loss(&scalar.op_type));
    let chosen = by_name.or(by_type).or(scalars.last())?;
    let outputs = scalars
        .iter()
        .enumerate()
        .filter(|(_, scalar)| scalar.op_type == chosen.op_type && scalar.op_name == chosen.op_name);
    outputs
        .min_by_key(|(_, scalar)| scalar.output)
        .map(|(place, _)| place)
}

fn is_loss(text: &SharedText) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("loss") && !text.contains("scale")
}

/// The value of a single-element slot, from its element or else from its statistics; `None` if
/// neither is known. Integers beyond 2^53 are rounded.
pub fn scalar_value(slot: &ExecutionSlot, file: &mut LastFile) -> Option<f64> {
    let read = slot.with_elements(file, |view| {
        let decoded = decode(view.dtype, view.shape, view.bytes).ok()?;
        Numbers::new(decoded.dtype, &decoded.bytes)?.get(0)
    });
    read.ok().flatten().or_else(|| value_of_statistics(slot))
}

/// The value of minimum and maximum, if they are equal.
fn value_of_statistics(slot: &ExecutionSlot) -> Option<f64> {
    let [min, max] = EXTREMES.map(|titles| {
        let mut statistics = slot.statistics.iter();
        let (_, text) = statistics.find(|(title, _)| {
            let title = title.trim().to_lowercase();
            titles.contains(&title.as_str())
        })?;
        text.as_ref()?.trim().parse::<f64>().ok()
    });
    // For a NaN some tools omit the extremes, or write infinities.
    if statistics_of(slot).counts[0] == Some(1) {
        return Some(f64::NAN);
    }
    let (min, max) = (min?, max?);
    (min == max || min.is_nan() && max.is_nan()).then_some(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_loss_is_shown_first() {
        let scalar = |op_type: &str, op_name: &str| ScalarOutput {
            op_type: op_type.into(),
            op_name: op_name.into(),
            output: 0,
            dtype: DType::F32,
            runs: vec![0, 1],
        };
        let check = |names: &[(&str, &str)], expected| {
            let scalars: Vec<_> = names
                .iter()
                .map(|(kind, name)| scalar(kind, name))
                .collect();
            assert_eq!(default_scalar(&scalars), expected, "{names:?}");
        };
        check(&[], None);
        check(&[("Sum", "a"), ("Sum", "b")], Some(1));
        check(
            &[("Sum", "loss_box"), ("Add", "Loss"), ("Mul", "grad")],
            Some(1),
        );
        check(&[("Sum", "loss"), ("Mul", "loss_scale")], Some(0));
        check(&[("nll_loss", "x"), ("Mul", "grad")], Some(0));
        check(
            &[("nll_loss", "x"), ("Sum", "loss"), ("nll_loss", "y")],
            Some(1),
        );
    }

    #[test]
    fn the_loss_is_the_first_output_of_its_operator() {
        let output = |output| ScalarOutput {
            op_type: "nll_loss".into(),
            op_name: "head".into(),
            output,
            dtype: DType::F32,
            runs: vec![0, 1],
        };
        assert_eq!(default_scalar(&[output(0), output(1)]), Some(0));
        assert_eq!(default_scalar(&[output(1), output(0)]), Some(1));
    }
}
