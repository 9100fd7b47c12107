//! Faults of a quantised model that quantising does not explain.
//!
//! Quantising makes every value differ, so that no value accuses an operator. Another attribute,
//! another weight that is no quantised one, or an input that reads another value do.

use crate::compare::matching::{is_one_type, is_view_type};
use crate::compare::result::{
    Cause, Comparison, DivergencePoint, Evidence, MetricId, OperatorResult, PairingEvidence,
    PartingOperator, SlotResult, VerdictLevel, WiringChange,
};
use crate::compare::verdict::{is_float_name, value_of};

/// Operators that quantising adds, in addition to those that their type shows.
const ADDED: [&str; 8] = [
    "Add",
    "Cast",
    "Div",
    "Mul",
    "Reshape",
    "Sub",
    "Transpose",
    "Identity",
];

/// Steps of 8 bits by which a weight is off that was not only quantised.
const N_STEPS: f64 = 4.0;

/// Minimum cosine of a weight with one that is only scaled, and quantised to 8 bits.
const SAME_DIRECTION_MIN: f64 = 0.999;
/// The part that rounding to codes leaves of a difference that is the same everywhere.
const NEARLY_ALL: f64 = 0.9;

/// The first place with evidence of a fault.
pub(super) fn first(comparison: &Comparison) -> Option<DivergencePoint> {
    let of_wires = comparison.partings.iter();
    let of_wires = of_wires.filter(|one| is_of_wires(one, comparison));
    let of_wires = of_wires.map(|parting| DivergencePoint {
        operator: parting.operator,
        slot: parting.slot,
        cause: parting.cause,
        name: Some(parting.name.clone()).filter(|name| {
            let operator = comparison.operators.get(parting.operator);
            operator.is_none_or(|operator| !operator.target.contains(name))
        }),
        ..DivergencePoint::default()
    });
    let operators = comparison.operators.iter();
    let of_definitions = operators.filter_map(|operator| {
        let (slot, cause) = definition(operator)?;
        Some(DivergencePoint {
            operator: operator.index,
            slot: slot.slot,
            cause,
            ..DivergencePoint::default()
        })
    });
    of_wires
        .chain(of_definitions)
        .min_by_key(|point| point.operator)
}

fn is_of_wires(parting: &PartingOperator, comparison: &Comparison) -> bool {
    let of_codes = |op_type: &str| {
        let mut parts = ["Quant", "quant", "Integer", "QLinear", "Cast"].iter();
        parts.any(|part| op_type.contains(part))
    };
    let is_quantising = |op_type: &str| ADDED.contains(&op_type) || of_codes(op_type);
    let mut members = std::iter::once(&parting.name).chain(&parting.others);
    match parting.change {
        // Operators that quantising adds make codes or read them.
        Some(WiringChange::Inserted) => {
            !is_view_type(&parting.name.op_type) && members.all(|name| !of_codes(&name.op_type))
        }
        Some(WiringChange::Missing | WiringChange::Overwrites | WiringChange::NotShown) => false,
        Some(WiringChange::ReadsInner) => !is_quantising(&parting.name.op_type),
        None => {
            let operator = comparison.operators.get(parting.operator);
            let is_namesake = operator.is_some_and(|operator| {
                operator.how == PairingEvidence::Name && operator.target.contains(&parting.name)
            });
            let op_type = &*parting.name.op_type;
            let may_be_added = is_quantising(op_type) && (of_codes(op_type) || !is_namesake);
            !parting.rewired.is_empty() && !may_be_added
        }
    }
}

/// The slot by which an operator shows that it is defined otherwise.
fn definition(operator: &OperatorResult) -> Option<(&SlotResult, Cause)> {
    let mut outputs = operator.outputs();
    let output = outputs.find(|slot| slot.level == VerdictLevel::Fail)?;
    let types = operator.target.last().zip(operator.golden.last());
    let is_same_type =
        types.is_some_and(|(target, golden)| is_one_type(&target.op_type, &golden.op_type));
    if is_same_type && !operator.attributes.is_empty() {
        return Some((output, Cause::Own));
    }
    let mut inputs = operator.inputs();
    let weight = inputs.find(|slot| {
        let is_float = [&slot.target, &slot.golden].map(|side| is_float_name(&side.dtype));
        // A weight that went through 8 bits is half a step off.
        let distance = value_of(slot, MetricId::ScaledMaxAbs);
        distance.is_some_and(|distance| distance > N_STEPS / 127.0)
            && slot.is_outside
            && is_float == [true, true]
            && slot.parameter.is_some()
            && slot.evidence == Evidence::Tensor
            && (operator.is_certain
                || is_of_one_factor(slot)
                || is_of_one_offset(slot)
                || is_mostly_the_same(slot))
    });
    weight.map(|slot| (slot, Cause::Outside))
}

/// Whether all elements are multiplied by one number, as by another scale. A norm that was folded
/// into a weight has one for each channel.
fn is_of_one_factor(slot: &SlotResult) -> bool {
    let cosine = value_of(slot, MetricId::Cosine);
    cosine.is_some_and(|cosine| cosine >= SAME_DIRECTION_MIN)
}

/// Whether most elements are the same bit for bit, which quantising leaves of none.
fn is_mostly_the_same(slot: &SlotResult) -> bool {
    let counts = [MetricId::EqualCount, MetricId::Count].map(|metric| value_of(slot, metric));
    matches!(counts, [Some(same), Some(all)] if 2.0 * same > all)
}

/// Whether one number is added to all elements, as by another zero point.
fn is_of_one_offset(slot: &SlotResult) -> bool {
    let distances = [MetricId::MaxAbs, MetricId::MeanAbs].map(|metric| value_of(slot, metric));
    let [Some(largest), Some(mean)] = distances else {
        return false;
    };
    let means = [MetricId::TargetMean, MetricId::GoldenMean].map(|metric| value_of(slot, metric));
    let offset = match means {
        [Some(target), Some(golden)] => (target - golden).abs(),
        _ => 0.0,
    };
    mean >= NEARLY_ALL * largest && offset >= NEARLY_ALL * mean
}
