//! Why an operator's outputs are apart.

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;

use super::kinds::{
    ErrorGrowth, has_body, is_contracting, is_in_place, is_source, manner, moves_elements,
    plain_type,
};
use super::{distance, slots};
use crate::compare::flow::ResultSource;
use crate::compare::result::{
    Cause, Comparison, Evidence, OperatorName, OperatorResult, PairingEvidence, SkipReason,
    SlotResult, VerdictLevel,
};
use crate::compare::verdict::rounded;

/// Outputs this many times as far apart as the inputs are not explained by them.
pub(super) const AMPLIFICATION_MAX: f64 = 10.0;
/// The same of operators that make small errors large.
const STEEP_AMPLIFICATION_MAX: f64 = 1000.0;
/// Numbers of this distance, relative to the larger one, do not explain anything.
const SAME_NUMBER: f64 = 1e-3;
/// Inputs that are farther apart than this can lead anywhere.
const INPUTS_MAX: f64 = 0.1;

/// Types of operators that put elements into another order, in lower case.
const REORDERING: [&str; 3] = ["transpose", "permute", "t"];
/// Types of operators that put elements of several inputs together.
const JOINING: [&str; 5] = ["concat", "concatv2", "concatd", "cat", "stack"];

/// Of each operator, whether it has inputs that were not compared, or not in their order.
pub(super) fn has_hidden_inputs(comparison: &Comparison) -> Vec<bool> {
    let reasons = [SkipReason::MissingSlot, SkipReason::InsideFusion];
    let [missing, inner]: [HashSet<&OperatorName>; 2] = reasons.map(|reason| {
        let skips = comparison.skips.iter().filter(|skip| {
            let is_input = skip.slot.is_some_and(|slot| slot.side == SlotSide::Input);
            is_input && skip.reason == reason
        });
        skips.filter_map(|skip| skip.operator.as_ref()).collect()
    });
    let n_operators = comparison.operators.len();
    let mut reads_reordered = vec![false; n_operators];
    // Statistics of what is computed from such values show no more than their own.
    let mut reads_changed = vec![false; n_operators];
    for (operator, i) in comparison.operators.iter().zip(0..) {
        let is_changed =
            agrees_by_statistics(operator) && (reads_changed[i] || is_defined_otherwise(operator));
        if !(is_changed || reorders(operator)) {
            continue;
        }
        for &[_, reader] in operator.readers.iter().filter(|[_, to]| *to < n_operators) {
            reads_reordered[reader] = true;
            reads_changed[reader] |= is_changed;
        }
    }
    let operators = comparison.operators.iter().zip(reads_reordered);
    operators
        .map(|(operator, reads_reordered)| {
            let is_hidden =
                |slot: &SlotResult| !slot.is_output() && slot.level == VerdictLevel::Skip;
            let mut names = operator.target.iter().chain(&operator.golden);
            // Only a group of operators has values inside. What one operator reads and the other
            // graph does not know, such as a value in blocks of channels, is an input.
            let is_alone = operator.target.len() == 1 && operator.golden.len() == 1;
            let is_skipped =
                |name: &OperatorName| missing.contains(name) || is_alone && inner.contains(name);
            let is_any = operator.slots.iter().any(is_hidden) || !operator.hidden_inputs.is_empty();
            // The body may read values around the operator, which no dump lists as its inputs.
            let has_body = operator
                .target
                .last()
                .is_some_and(|name| has_body(&name.op_type));
            let is_moved = moves_what_differs(operator);
            is_any || reads_reordered || has_body || is_moved || names.any(is_skipped)
        })
        .collect()
}

/// Whether an operator reorders elements of which only statistics are known: these are the same in
/// every order.
fn reorders(operator: &OperatorResult) -> bool {
    let mut outputs = slots(operator, true);
    let is_reordering = operator.target.last().is_some_and(|name| {
        let name = plain_type(&name.op_type);
        REORDERING.contains(&name.as_str())
    });
    let is_known = outputs.any(|slot| slot.evidence == Evidence::Statistics);
    is_known && (is_reordering || exchanges_parts(operator))
}

/// Whether an operator moves elements as golden's does: if what it makes differs, so does what it
/// reads, whatever the statistics of that are.
fn moves_what_differs(operator: &OperatorResult) -> bool {
    let target = operator.target.last();
    let mut inputs = slots(operator, false);
    operator.is_certain
        && target.is_some_and(|name| moves_elements(&name.op_type))
        && inputs.any(|slot| slot.evidence == Evidence::Statistics)
        && !is_defined_otherwise(operator)
}

/// Whether an operator has other attributes than golden's, or another weight.
fn is_defined_otherwise(operator: &OperatorResult) -> bool {
    !operator.attributes.is_empty()
        || slots(operator, false).any(|slot| slot.is_outside && slot.is_apart())
}

/// Whether an operator joins parts that differ to a value of the same statistics, as it does where
/// they are exchanged.
pub(in crate::compare) fn exchanges_parts(operator: &OperatorResult) -> bool {
    let joins = operator.target.last().is_some_and(|name| {
        let name = plain_type(&name.op_type);
        JOINING.contains(&name.as_str())
    });
    joins && agrees_by_statistics(operator) && slots(operator, false).any(SlotResult::is_apart)
}

/// Whether nothing but statistics shows that an operator makes what its partner makes.
fn agrees_by_statistics(operator: &OperatorResult) -> bool {
    let first = slots(operator, true).next();
    first.is_some_and(|slot| slot.evidence == Evidence::Statistics && !slot.is_apart())
}

/// By operator of which golden shows no input, the outputs that it reads; none if one of them is not
/// known, as a weight is not, or golden has an operator between that the target lacks.
pub(super) fn makers_of_unshown(comparison: &Comparison) -> Vec<Option<Vec<&SlotResult>>> {
    let operators = &comparison.operators;
    let mut n_hidden: HashMap<&OperatorName, usize> = HashMap::new();
    let mut has_gap = vec![false; operators.len()];
    for skip in &comparison.skips {
        match (skip.slot, skip.before, &skip.operator) {
            (Some(slot), _, Some(name)) if slot.side == SlotSide::Input => {
                *n_hidden.entry(name).or_default() += 1;
            }
            (None, Some(before), _) if before < operators.len() => has_gap[before] = true,
            _ => {}
        }
    }
    let mut makers: Vec<Vec<&SlotResult>> = vec![Vec::new(); operators.len()];
    for operator in operators {
        for &[slot, reader] in &operator.readers {
            if let Some(makers) = makers.get_mut(reader) {
                makers.extend(operator.slots.get(slot));
            }
        }
    }
    let all = operators.iter().zip(makers).zip(has_gap);
    all.map(|((operator, makers), has_gap)| {
        let [target] = &operator.target[..] else {
            return None;
        };
        let is_all = !makers.is_empty() && n_hidden.get(target) == Some(&makers.len());
        let is_named = operator.how == PairingEvidence::Name && !has_body(&target.op_type);
        (is_all && is_named && !has_gap).then_some(makers)
    })
    .collect()
}

/// The cause, if any output is apart. `makers` are the outputs that it reads where golden shows no
/// inputs. `source` returns the source of an input, by its position among the slots.
pub(super) fn find_cause(
    operator: &OperatorResult,
    has_hidden: bool,
    makers: Option<Vec<&SlotResult>>,
    source: impl Fn(usize) -> ResultSource,
) -> Option<Cause> {
    let mut worst = slots(operator, true).filter(|slot| slot.is_apart());
    worst.next()?;
    let op_type = type_of(operator);
    let inputs = operator.slots.iter().enumerate();
    let inputs: Vec<(usize, &SlotResult)> = inputs
        .filter(|(_, slot)| !slot.is_output() && slot.level != VerdictLevel::Skip)
        .collect();
    if inputs.is_empty() && !has_hidden && is_source(op_type) {
        return Some(Cause::Outside);
    }
    // A value that an operator changed in place is no longer its input.
    let (changed, inputs): (Vec<_>, Vec<_>) = inputs
        .into_iter()
        .partition(|(k, slot)| slot.is_apart() && source(*k).is_own_output);
    let inputs: Vec<&SlotResult> = inputs.into_iter().map(|(_, slot)| slot).collect();
    // According to its type it writes to no input, so it may have passed on a wrong one: both
    // result in the same numbers.
    if !changed.is_empty() && !is_in_place(op_type) {
        return Some(Cause::Unknown);
    }
    if inputs.is_empty() {
        // Golden shows results alone, and those agree that the operator reads.
        let is_own = makers.is_some_and(|makers| {
            let all_pass = makers
                .iter()
                .all(|slot| slot.level == VerdictLevel::Pass && slot.evidence == Evidence::Tensor);
            all_pass && !is_explained(operator, &makers, op_type)
        });
        return Some(if is_own { Cause::Own } else { Cause::Unknown });
    }
    let rounded = rounded(op_type, &operator.slots);
    let mut slots = operator.slots.iter().enumerate();
    let is_rounded =
        slots.all(|(k, slot)| !slot.is_output() || !slot.is_apart() || rounded.contains(&k));
    let differ_by_rank = operator
        .outputs()
        .any(|slot| slot.is_apart() && has_replicas(slot))
        && !inputs.iter().any(|slot| has_replicas(slot));
    let is_amplified = differ_by_rank || !is_rounded && !is_explained(operator, &inputs, op_type);
    if inputs.iter().any(|slot| slot.is_apart()) {
        let farthest = inputs
            .iter()
            .map(|slot| distance::slot_distance(slot))
            .fold(0.0, f64::max);
        // Of inputs that are apart, an operator that is steep or has steps may make anything.
        let is_even = matches!(manner(op_type), ErrorGrowth::Even | ErrorGrowth::Additive);
        let is_own = is_amplified && is_even && farthest < INPUTS_MAX && !has_hidden;
        return Some(if is_own { Cause::Own } else { Cause::Inherited });
    }
    Some(
        match (is_amplified || computes_otherwise(operator), has_hidden) {
            (false, _) => Cause::Gradual,
            (true, true) => Cause::Unknown,
            (true, false) => Cause::Own,
        },
    )
}

/// Whether an operator has a number that golden's has otherwise, which explains more than small
/// differences of its inputs. Another dtype, or an axis counted from the end, does not.
pub(in crate::compare) fn computes_otherwise(operator: &OperatorResult) -> bool {
    let n_axes = operator.outputs().map(|slot| slot.target.shape.len());
    let n_axes = n_axes.max().unwrap_or(0) as f64;
    let numbers = |text: &str| -> Option<Vec<f64>> {
        let all = text.trim_matches(['[', ']', '(', ')']).split(',');
        all.map(|number| number.trim().parse().ok()).collect()
    };
    let mut attributes = operator.attributes.iter();
    attributes.any(|attribute| {
        let both = [&attribute.target, &attribute.golden];
        let [Some(target), Some(golden)] = both.map(|text| numbers(text.as_ref()?)) else {
            return false;
        };
        let name = attribute.name.as_str();
        let of_axes = ["axis", "axes", "dim"]
            .iter()
            .any(|end| name.ends_with(end));
        let is_same = |(t, g): (&f64, &f64)| {
            let is_near = (t - g).abs() <= SAME_NUMBER * t.abs().max(g.abs());
            is_near || of_axes && (t - g).abs() == n_axes
        };
        let of_dtype = name == "to" || name.ends_with("type");
        let is_same = target.len() == golden.len() && target.iter().zip(&golden).all(is_same);
        !of_dtype && !is_same
    })
}

/// Whether ranks that should have the same do not.
fn has_replicas(slot: &SlotResult) -> bool {
    let ranks = slot.ranks.as_ref();
    ranks.is_some_and(|ranks| !ranks.replicas.is_empty())
}

fn type_of(operator: &OperatorResult) -> &str {
    // Of a fused group the last operator makes what is compared.
    let name = operator.target.last().or(operator.golden.last());
    name.map_or("", |name| name.op_type.as_str())
}

/// Whether the distances of the inputs may have made those of the outputs.
fn is_explained(operator: &OperatorResult, inputs: &[&SlotResult], op_type: &str) -> bool {
    let farthest = inputs
        .iter()
        .map(|slot| distance::slot_distance(slot))
        .fold(0.0, f64::max);
    if farthest == 0.0 {
        return false;
    }
    // The size of one integer step is unknown.
    let mut integers = inputs.iter().filter(|slot| !distance::is_float(slot));
    if integers.any(|slot| distance::slot_distance(slot) > 0.0) {
        return true;
    }
    let mut apart = slots(operator, true).filter(|slot| slot.is_apart());
    // Of those it is known that they differ, and not how far.
    if apart
        .clone()
        .any(|slot| !distance::is_float(slot) || slot.evidence == Evidence::Digest)
    {
        return true;
    }
    let outputs = apart
        .clone()
        .map(distance::slot_distance)
        .fold(0.0, f64::max);
    // The large values of a mask dominate the norm of an input, so that other differences do not
    // show in a relative distance.
    if is_contracting(op_type) && inputs.iter().all(|slot| slot.absolute_distance().is_some()) {
        return is_absolutely_explained(operator, inputs);
    }
    let is_even = outputs <= AMPLIFICATION_MAX * farthest;
    match manner(op_type) {
        ErrorGrowth::Stepped => true,
        // The mean that a normalisation saves is a sum, and may be next to nothing.
        ErrorGrowth::Steep if apart.all(|slot| slot.slot.index > 0) => {
            outputs <= STEEP_AMPLIFICATION_MAX * farthest
                || is_absolutely_explained(operator, inputs)
        }
        ErrorGrowth::Steep => outputs <= STEEP_AMPLIFICATION_MAX * farthest,
        ErrorGrowth::Even | ErrorGrowth::Picking => is_even,
        ErrorGrowth::Additive => is_even || is_absolutely_explained(operator, inputs),
    }
}

/// Whether the outputs are not much farther apart than the inputs, in units of their elements.
fn is_absolutely_explained(operator: &OperatorResult, inputs: &[&SlotResult]) -> bool {
    let mut apart = slots(operator, true).filter(|slot| slot.is_apart());
    let of_inputs: Option<f64> = inputs.iter().map(|slot| slot.absolute_distance()).sum();
    of_inputs.is_some_and(|of_inputs| {
        apart.all(|slot| {
            // The absolute distance leaves NaN and infinities out, and would be small where they
            // are all that differs.
            let is_finite = distance::slot_distance(slot).is_finite();
            let known = slot.absolute_distance().filter(|_| is_finite);
            known.is_some_and(|found| found <= AMPLIFICATION_MAX * of_inputs)
        })
    })
}
