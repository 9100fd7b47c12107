//! The findings of experiments, in words.

use super::{attribute, changes, in_full, number, plain};
use crate::compare::result::{
    Comparison, ExperimentOutcome, Experiments, HealedCause, OperatorName, SlotResult, WiringChange,
};

/// Maximum number of causes and operators that are listed.
const N_LISTED_MAX: usize = 8;

/// The fault of the operator that experiments have proven to be the first cause; none if
/// nothing is proven.
pub(super) fn first_cause(comparison: &Comparison) -> Option<String> {
    let experiments = comparison.experiments.as_deref()?;
    let cause = experiments.causes.first()?;
    (experiments.outcome == ExperimentOutcome::Proven && cause.index.is_some())
        .then(|| why(comparison, cause))
}

/// The fault of an operator.
fn why(comparison: &Comparison, cause: &HealedCause) -> String {
    match cause.change {
        Some(WiringChange::Missing) => {
            return "the target has no such operator".to_owned() + &with(cause);
        }
        Some(WiringChange::Inserted) => {
            return "the golden side has no such operator".to_owned() + &with(cause);
        }
        Some(WiringChange::Overwrites | WiringChange::ReadsInner | WiringChange::NotShown)
        | None => {}
    }
    let mut parts = Vec::new();
    if let Some(golden) = &cause.golden_type {
        parts.push(format!("it is {golden} on the golden side{}", with(cause)));
    }
    parts.extend(cause.attributes.iter().map(attribute));
    for (input, target, golden) in &cause.weights {
        parts.push(match (target, golden) {
            (Some(target), Some(golden)) => {
                let operator = cause
                    .index
                    .and_then(|index| comparison.operators.get(index));
                let slots = operator.map_or(&[][..], |operator| &operator.slots);
                let is_it =
                    |slot: &&SlotResult| !slot.is_output() && slot.slot.index as usize == *input;
                let other = (target != golden).then_some(golden.as_str());
                let difference = changes::weight_difference(slots.iter().find(is_it), other);
                format!("the weight {} {difference}", quoted(target))
            }
            (Some(target), None) => {
                format!("input.{input} is the weight {} here alone", quoted(target))
            }
            (None, Some(golden)) => {
                format!(
                    "input.{input} is the weight {} on the golden side alone",
                    quoted(golden)
                )
            }
            (None, None) => continue,
        });
    }
    if cause.others.is_empty() || cause.golden_type.is_some() {
        parts.extend(cause.wiring.iter().map(|(input, target, golden)| {
            format!(
                "input.{input} reads {}, on the golden side {}",
                value(target),
                value(golden)
            )
        }));
    } else {
        parts.push(format!(
            "the golden side has other operators here{}",
            with(cause)
        ));
    }
    for (domain, target, golden) in &cause.operator_sets {
        let set = if domain.is_empty() {
            "opset".to_owned()
        } else {
            format!("opset of {}", quoted(domain))
        };
        parts.push(format!("{set} {target} here, {golden} on the golden side"));
    }
    parts.extend(of_model(cause));
    if let Some(output) = &cause.output {
        parts.push(format!(
            "the output {} is a different value",
            quoted(output)
        ));
    }
    parts.join(", ")
}

/// Differences that belong to no input and no attribute.
fn of_model(cause: &HealedCause) -> Vec<String> {
    let mut parts = Vec::new();
    for name in &cause.captured {
        parts.push(format!("{}, which its body reads, differs", quoted(name)));
    }
    for name in &cause.functions {
        parts.push(format!("the model defines {} otherwise", quoted(name)));
    }
    if !cause.exchanged.is_empty() {
        let outputs: Vec<_> = cause.exchanged.iter().map(|name| quoted(name)).collect();
        parts.push(format!(
            "its outputs {} are exchanged or replaced",
            outputs.join(", ")
        ));
    }
    parts
}

fn with(cause: &HealedCause) -> String {
    if cause.others.is_empty() {
        return String::new();
    }
    format!(", together with {}", list(&cause.others))
}

fn list(names: &[OperatorName]) -> String {
    let shown = names.iter().take(N_LISTED_MAX).map(in_full);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(N_LISTED_MAX) {
        0 => shown,
        n => format!("{shown} and {n} more"),
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", plain(name))
}

fn value(name: &str) -> String {
    if name.is_empty() {
        "nothing".to_owned()
    } else {
        quoted(name)
    }
}

/// The findings of experiments, a line each.
pub fn lines(comparison: &Comparison) -> Vec<String> {
    let Some(experiments) = comparison.experiments.as_deref() else {
        return Vec::new();
    };
    let runs = match experiments.n_runs {
        0 => String::new(),
        1 => format!(" (1 run by {})", experiments.engine),
        n => format!(" ({n} runs by {})", experiments.engine),
    };
    // The first cause is in the verdict itself.
    let mut lines = vec![finding(experiments) + &runs];
    let further = experiments.causes.iter().enumerate();
    let further =
        further.filter(|(nth, cause)| *nth > 0 || cause.index.is_none() || !is_proven(experiments));
    lines.extend(further.take(N_LISTED_MAX).map(|(_, cause)| {
        format!(
            "  also {}: {}",
            in_full(&cause.operator),
            why(comparison, cause)
        )
    }));
    let n_more = experiments.causes.len().saturating_sub(N_LISTED_MAX + 1);
    if n_more > 0 {
        lines.push(format!("  and {n_more} more"));
    }
    match experiments.agrees_elsewhere {
        Some(true) => {
            lines.push("  the same holds with the inputs in the opposite order".to_owned());
        }
        Some(false) => lines.push(
            "  with the inputs in the opposite order the healed outputs differ from golden's"
                .to_owned(),
        ),
        None => {}
    }
    if let Some(path) = &experiments.repaired {
        lines.push(format!("  the healed model: {}", plain(path)));
    }
    lines
}

fn is_proven(experiments: &Experiments) -> bool {
    experiments.outcome == ExperimentOutcome::Proven
}

fn finding(experiments: &Experiments) -> String {
    let distances = format!(
        "rel_l2 {} before, {} after",
        number(experiments.before),
        number(experiments.after)
    );
    let n = experiments.causes.len();
    match &experiments.outcome {
        ExperimentOutcome::Proven => {
            let what = match experiments.causes.first() {
                Some(cause) if n == 1 => at(cause),
                _ => format!("at these {n} places together, and with no fewer,"),
            };
            format!("proven: with golden's definition {what} all outputs agree: {distances}")
        }
        ExperimentOutcome::Within => format!(
            "experiments: with golden's definition at {n} places all outputs agree: {distances}; \
             there were no runs left to find the fewest"
        ),
        ExperimentOutcome::Elsewhere if experiments.n_differences == 0 => {
            "experiments: both models define everything alike: what differs is how it is computed"
                .to_owned()
        }
        ExperimentOutcome::Elsewhere => format!(
            "experiments: with golden's definition at all {} places that may matter, outputs still \
             differ",
            experiments.n_candidates
        ),
        ExperimentOutcome::Inconclusive(reason) => {
            format!("experiments: inconclusive: {}", plain(reason))
        }
    }
}

/// Where a cause was healed.
fn at(cause: &HealedCause) -> String {
    let name = in_full(&cause.operator);
    match cause.change {
        Some(WiringChange::Missing) => format!("({name} put in)"),
        Some(WiringChange::Inserted) => format!("({name} left out)"),
        None if !cause.functions.is_empty() => "of the model's own operators".to_owned(),
        None if !cause.operator_sets.is_empty() => "of the operator sets".to_owned(),
        Some(WiringChange::Overwrites | WiringChange::ReadsInner | WiringChange::NotShown)
        | None => format!("of {name}"),
    }
}
