//! The causes in a result, derived from the differences that were healed.

use std::collections::HashSet;

use opscope_analysis::compare::result::{
    AttributeDifference, Cause, Comparison, HealedCause, OperatorName, OperatorResult,
    VerdictLevel, WiringChange,
};
use opscope_engine::onnx::{DefinitionDifference, DifferentPart, ModelPair, NodeLabel};

/// The causes of the healed differences.
///
/// # Errors
/// Text of [`ModelPair::changes`].
pub(super) fn find(
    pair: &ModelPair,
    chosen: &[usize],
    comparison: &Comparison,
) -> Result<Vec<HealedCause>, String> {
    // The original target may have operators without readers, and an output that one difference
    // leaves unread may be read again once the others are healed.
    let unread = names(&pair.changes(&[])?.removed);
    let gone = names(&pair.changes(chosen)?.removed);
    let mut causes: Vec<HealedCause> = Vec::new();
    let mut taken: Vec<NodeLabel> = Vec::new();
    let mut exchanged = pair.exchanged_outputs(chosen);
    for &index in chosen {
        let mut all = exchanged.iter();
        if let Some(at) = all.position(|all| all.differences.contains(&index)) {
            // The first of its differences stands for all.
            if exchanged[at].differences[0] == index {
                let outputs = std::mem::take(&mut exchanged[at].outputs);
                let reader = pair.differences()[index].target.as_ref();
                causes.push(exchange(
                    &exchanged[at].operator,
                    reader,
                    outputs,
                    comparison,
                ));
            }
            continue;
        }
        let changes = pair.changes(&[index])?;
        let mut removed = changes.removed;
        removed.retain(|label| gone.contains(&label.op_name) && !unread.contains(&label.op_name));
        let difference = &pair.differences()[index];
        taken.extend(difference.golden.iter().chain(&changes.added).cloned());
        // Two swapped inputs are two differences of one operator.
        let next = cause(
            (difference, pair.is_made_from(difference)),
            changes.added,
            removed,
            comparison,
        );
        match causes.iter_mut().find(|known| {
            known.operator == next.operator && known.change.is_none() && next.change.is_none()
        }) {
            Some(known) => merge(known, next),
            None => causes.push(next),
        }
    }
    // A fused operator has the attributes of the operators that it replaces.
    for cause in causes
        .iter_mut()
        .filter(|cause| cause.golden_type.is_some())
    {
        for label in &taken {
            let shared = pair.shared_attributes_apart(&cause.operator.op_name, &label.op_name);
            cause
                .attributes
                .extend(shared.into_iter().map(as_difference));
        }
    }
    Ok(causes)
}

fn as_difference((name, [target, golden]): (String, [Option<String>; 2])) -> AttributeDifference {
    AttributeDifference {
        name,
        argument: None,
        target,
        golden,
    }
}

/// Merges differences at the same operator.
fn merge(known: &mut HealedCause, next: HealedCause) {
    // A weight comes from outside, other differences do not.
    if known.cause != next.cause {
        known.cause = Cause::Own;
    }
    known.golden_type = known.golden_type.take().or(next.golden_type);
    known.output = known.output.take().or(next.output);
    known.attributes.extend(next.attributes);
    known.captured.extend(next.captured);
    known.weights.extend(next.weights);
    known.wiring.extend(next.wiring);
    known.others.extend(next.others);
}

/// Operators all of whose outputs were compared and agree.
pub(super) struct OperatorsWithoutEffect<'a>(HashSet<(&'a str, &'a str)>);

/// Operators of the target whose definition does not matter for these inputs.
pub(super) fn without_effect(comparison: &Comparison) -> OperatorsWithoutEffect<'_> {
    let mut agreeing = HashSet::new();
    let mut others = HashSet::new();
    for operator in &comparison.operators {
        let Some(name) = operator.target.last() else {
            continue;
        };
        let mut outputs = operator
            .slots
            .iter()
            .filter(|slot| slot.is_output())
            .peekable();
        let is_compared = outputs.peek().is_some();
        let agrees = is_compared && outputs.all(|slot| slot.level == VerdictLevel::Pass);
        let set = if agrees { &mut agreeing } else { &mut others };
        set.insert((&*name.op_type, &*name.op_name));
    }
    // An operator must agree in every step, as inputs may expose it only later.
    agreeing.retain(|name| !others.contains(name));
    OperatorsWithoutEffect(agreeing)
}

impl OperatorsWithoutEffect<'_> {
    pub(super) fn contains(&self, difference: &DefinitionDifference) -> bool {
        // Results, functions and operator sets belong to no operator.
        let readers = difference.readers.iter();
        !difference.parts.iter().any(is_of_model)
            && readers.chain(&difference.target).all(|label| {
                self.0
                    .contains(&(label.op_type.as_str(), label.op_name.as_str()))
            })
    }
}

/// Whether a difference belongs to the model rather than to an operator.
fn is_of_model(part: &DifferentPart) -> bool {
    matches!(
        part,
        DifferentPart::Result { .. }
            | DifferentPart::OperatorSet { .. }
            | DifferentPart::Functions(_)
    )
}

fn names(labels: &[NodeLabel]) -> HashSet<String> {
    labels.iter().map(|label| label.op_name.clone()).collect()
}

/// `is_lost` is whether golden's operators are missing in the target and replaced by other
/// operators.
fn cause(
    (difference, is_lost): (&DefinitionDifference, bool),
    added: Vec<NodeLabel>,
    mut removed: Vec<NodeLabel>,
    comparison: &Comparison,
) -> HealedCause {
    let mut cause = HealedCause::default();
    // Everything at one place, of whatever kind.
    for part in &difference.parts {
        add_part(&mut cause, part);
    }
    cause.cause = if is_weight_alone(&cause) {
        Cause::Outside
    } else {
        Cause::Own
    };
    if difference.target.is_none() && difference.golden.is_none() {
        // The values show which of the operators it changes.
        let first = comparison.summary.headline().map(|first| first.operator);
        let operator = first.and_then(|first| comparison.operators.get(first));
        let name = operator.and_then(|operator| operator.target.last());
        cause.index = operator.map(|operator| operator.index);
        cause.operator = name.cloned().unwrap_or_default();
        return cause;
    }
    let is_wiring = difference.parts.iter().all(is_of_values);
    // The last operator is nearest to the reader.
    removed.reverse();
    let here = difference.target.clone().unwrap_or_default();
    let (own, others, change) = match (added.is_empty(), removed.is_empty()) {
        _ if !is_wiring => {
            // A fused operator corresponds to several on the other side.
            removed.retain(|label| *label != here);
            let others = if cause.golden_type.is_some() {
                [removed, added].concat()
            } else {
                Vec::new()
            };
            (here.clone(), others, None)
        }
        // Views on the path to another value are not the cause.
        (false, true) if !is_lost => (here.clone(), Vec::new(), None),
        (false, true) => (
            added[0].clone(),
            added[1..].to_vec(),
            Some(WiringChange::Missing),
        ),
        (true, false) => (
            removed[0].clone(),
            removed[1..].to_vec(),
            Some(WiringChange::Inserted),
        ),
        (false, false) => (
            removed[0].clone(),
            [&removed[1..], &added[..]].concat(),
            None,
        ),
        (true, true) => (here.clone(), Vec::new(), None),
    };
    // Golden's operator may be in no pair; the comparison then lists the target's operator.
    let found = listed(comparison, &own).or_else(|| listed(comparison, &here));
    // Neither may be in a pair. A weight is shown by the slot that reads it, and there is none.
    let nearest = comparison
        .summary
        .headline()
        .filter(|_| cause.weights.is_empty());
    let found = found.or_else(|| comparison.operators.get(nearest?.operator));
    cause.index = found.map(|operator| operator.index);
    cause.operator = name(comparison, &own);
    cause.others = others.iter().map(|label| name(comparison, label)).collect();
    cause.change = change;
    cause
}

/// Outputs of an operator in each other's places, or replaced.
fn exchange(
    operator: &NodeLabel,
    reader: Option<&NodeLabel>,
    outputs: Vec<String>,
    comparison: &Comparison,
) -> HealedCause {
    let mut known = [Some(operator), reader].into_iter().flatten();
    let found = known.find_map(|label| listed(comparison, label));
    HealedCause {
        operator: name(comparison, operator),
        index: found.map(|operator| operator.index),
        cause: Cause::Own,
        exchanged: outputs,
        ..HealedCause::default()
    }
}

fn add_part(cause: &mut HealedCause, part: &DifferentPart) {
    match part.clone() {
        DifferentPart::Type { golden, .. } => cause.golden_type = Some(golden),
        DifferentPart::Attribute {
            name,
            target,
            golden,
        } => cause.attributes.push(AttributeDifference {
            name,
            argument: None,
            target,
            golden,
        }),
        DifferentPart::Weight {
            input,
            target,
            golden,
        } => cause.weights.push((input, target, golden)),
        DifferentPart::Wiring {
            input,
            target,
            golden,
        } => cause.wiring.push((input, target, golden)),
        DifferentPart::OperatorSet {
            domain,
            target,
            golden,
        } => cause.operator_sets.push((domain, target, golden)),
        DifferentPart::Captured(name) => cause.captured.push(name),
        DifferentPart::Functions(names) => cause.functions = names,
        DifferentPart::Result { golden, .. } => cause.output = Some(golden),
    }
}

fn is_of_values(part: &DifferentPart) -> bool {
    matches!(
        part,
        DifferentPart::Wiring { .. } | DifferentPart::Result { .. }
    )
}

/// Whether nothing differs but weights that both sides have.
fn is_weight_alone(cause: &HealedCause) -> bool {
    !cause.weights.is_empty()
        && cause
            .weights
            .iter()
            .all(|(_, target, golden)| target.is_some() && golden.is_some())
        && cause.attributes.is_empty()
        && cause.golden_type.is_none()
        && cause.wiring.is_empty()
        && cause.captured.is_empty()
}

/// The compared operator with a name, on either side.
fn listed<'a>(comparison: &'a Comparison, label: &NodeLabel) -> Option<&'a OperatorResult> {
    comparison.operators.iter().find(|operator| {
        let mut names = operator.target.iter().chain(&operator.golden);
        names.any(|name| is_named(name, label))
    })
}

fn is_named(name: &OperatorName, label: &NodeLabel) -> bool {
    *name.op_name == *label.op_name && *name.op_type == *label.op_type
}

fn name(comparison: &Comparison, label: &NodeLabel) -> OperatorName {
    let operators = comparison.operators.iter();
    let mut names = operators.flat_map(|operator| operator.target.iter().chain(&operator.golden));
    let found = names.find(|name| is_named(name, label)).cloned();
    found.unwrap_or_else(|| OperatorName {
        op_type: label.op_type.as_str().into(),
        op_name: label.op_name.as_str().into(),
        ..OperatorName::default()
    })
}
