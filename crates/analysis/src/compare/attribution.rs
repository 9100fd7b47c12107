//! Whose fault is it?
//!
//! Operators are looked at in the order of execution. One whose inputs agree and whose output does not is at
//! fault itself; one whose inputs part already may only pass on what it got.

use super::result::{
    Cause, Comparison, Divergence, Level, NonFiniteRole, OperatorResult, OwnError, SlotResult,
    Summary,
};
use super::verdict::is_output_slot;

/// An output this many times farther away than the inputs is not explained by them.
const AMPLIFICATION_MAX: f64 = 10.0;

/// Fills in errors, roles and the summary. Levels have to be there.
pub fn attribute(comparison: &mut Comparison, n_ranked: usize) {
    for operator in &mut comparison.operators {
        operator.error = own_error(operator);
    }
    non_finite(&mut comparison.operators);
    comparison.summary = Summary {
        n_bytes: comparison.summary.n_bytes,
        target_coverage: comparison.summary.target_coverage,
        golden_coverage: comparison.summary.golden_coverage,
        ..summary(comparison, n_ranked)
    };
}

fn slots(operator: &OperatorResult, is_output: bool) -> impl Iterator<Item = &SlotResult> {
    let slots = operator.slots.iter();
    slots.filter(move |slot| is_output_slot(slot) == is_output && slot.level != Level::Skip)
}

/// How far apart a slot is, for ranking: what cannot be measured is infinitely far.
fn distance(slot: &SlotResult) -> f64 {
    let has_mismatch = ["n_nan_mismatches", "n_inf_mismatches"];
    if has_mismatch
        .iter()
        .any(|name| slot.metrics.get(name) > Some(0.0))
        || slot.evidence == "shape"
    {
        return f64::INFINITY;
    }
    let share = || {
        let (n, n_equal) = (slot.metrics.get("n")?, slot.metrics.get("n_equal")?);
        (n > 0.0).then(|| (n - n_equal) / n)
    };
    let largest = || {
        let all = slot
            .metrics
            .0
            .iter()
            .filter(|(name, _)| name.ends_with("_rel"));
        all.map(|(_, value)| *value).reduce(f64::max)
    };
    let found = slot.metrics.get("rel_l2").or_else(share).or_else(largest);
    found.unwrap_or(if slot.level == Level::Fail {
        f64::INFINITY
    } else {
        0.0
    })
}

fn own_error(operator: &OperatorResult) -> Option<OwnError> {
    let largest = |is_output| slots(operator, is_output).map(distance).reduce(f64::max);
    let outputs = largest(true)?;
    let of_inputs = largest(false);
    let inputs = of_inputs.unwrap_or(0.0);
    let added = match (outputs.is_finite(), inputs.is_finite()) {
        (_, false) => 0.0,
        (false, true) => f64::INFINITY,
        // Errors that know nothing of each other add up as squares.
        (true, true) => (outputs * outputs - inputs * inputs).max(0.0).sqrt(),
    };
    Some(OwnError {
        inputs,
        outputs,
        added,
        has_inputs: of_inputs.is_some(),
    })
}

/// Why a failing or warned output is as it is.
pub fn cause_of(operator: &OperatorResult) -> Cause {
    let input_level = slots(operator, false).map(|slot| slot.level).max();
    let error = operator.error.unwrap_or_default();
    match input_level {
        None => Cause::Unknown,
        Some(Level::Pass) if error.outputs > AMPLIFICATION_MAX * error.inputs => Cause::Own,
        Some(Level::Pass) => Cause::Gradual,
        Some(_) if error.inputs.is_finite() && error.outputs > AMPLIFICATION_MAX * error.inputs => {
            Cause::Own
        }
        Some(_) => Cause::Inherited,
    }
}

fn non_finite(operators: &mut [OperatorResult]) {
    // The last operator before this one that is known to have made or passed on something bad.
    let mut carriers: Vec<usize> = Vec::new();
    for i in 0..operators.len() {
        let has_bad = |is_output| slots(&operators[i], is_output).any(is_bad);
        let (inputs, outputs) = (has_bad(false), has_bad(true));
        let role = match (inputs, outputs) {
            (false, true) => Some(NonFiniteRole::Producer),
            (true, true) => Some(NonFiniteRole::Propagator {
                from: carriers
                    .iter()
                    .rev()
                    .copied()
                    .find(|&from| is_fed(&operators[from], &operators[i])),
            }),
            (true, false) if slots(&operators[i], true).next().is_some() => {
                Some(NonFiniteRole::Absorber)
            }
            _ => None,
        };
        if outputs {
            carriers.push(i);
        }
        operators[i].non_finite = role;
    }
}

/// Whether the target has a NaN or an infinity where the golden side has none.
fn is_bad(slot: &SlotResult) -> bool {
    slot.metrics.get("first_bad").is_some()
}

/// Whether an output of one operator may be an input of the other: same rank, model and step, and an output
/// with bad values of the same extents.
fn is_fed(from: &OperatorResult, to: &OperatorResult) -> bool {
    let place = |operator: &OperatorResult| {
        let name = operator.target.last().cloned().unwrap_or_default();
        (name.rank, name.model, name.step)
    };
    let outputs = || slots(from, true).filter(|slot| is_bad(slot));
    let inputs = || slots(to, false).filter(|slot| is_bad(slot));
    let is_same = |a: &SlotResult, b: &SlotResult| {
        let numbers = [
            "target_n_nan",
            "target_n_positive_inf",
            "target_n_negative_inf",
            "first_bad",
        ];
        a.target.shape == b.target.shape
            && numbers
                .iter()
                .all(|name| a.metrics.get(name) == b.metrics.get(name))
    };
    place(from) == place(to) && outputs().any(|a| inputs().any(|b| is_same(a, b)))
}

fn summary(comparison: &Comparison, n_ranked: usize) -> Summary {
    let operators = &comparison.operators;
    let mut summary = Summary::default();
    for operator in operators {
        summary.operators[operator.level as usize] += 1;
        for slot in &operator.slots {
            summary.slots[slot.level as usize] += 1;
        }
    }
    let levels = operators
        .iter()
        .flat_map(|operator| operator.slots.iter().map(|slot| slot.level));
    let worst = levels.filter(|level| *level != Level::Skip).max();
    summary.level = worst.unwrap_or(Level::Skip);
    summary.first_divergence = first(operators, Level::Warn);
    summary.first_failure = first(operators, Level::Fail);
    let is_producer =
        |operator: &&OperatorResult| operator.non_finite == Some(NonFiniteRole::Producer);
    summary.first_non_finite = operators
        .iter()
        .find(is_producer)
        .map(|operator| operator.index);
    let mut ranking: Vec<&OperatorResult> = operators
        .iter()
        .filter(|operator| operator.level >= Level::Warn && operator.level != Level::Skip)
        .filter(|operator| operator.error.is_some_and(|error| error.added > 0.0))
        .collect();
    let added = |operator: &OperatorResult| operator.error.map_or(0.0, |error| error.added);
    ranking.sort_by(|a, b| added(b).total_cmp(&added(a)).then(a.index.cmp(&b.index)));
    summary.ranking = ranking
        .into_iter()
        .take(n_ranked)
        .map(|operator| operator.index)
        .collect();
    summary
}

/// The first slot, in the order of execution, that reaches a level. An input that does so before any output has,
/// comes from outside: a weight, an input of the model, or an operator that was not compared.
fn first(operators: &[OperatorResult], level: Level) -> Option<Divergence> {
    for operator in operators {
        let reaches = |slot: &&SlotResult| slot.level >= level && slot.level != Level::Skip;
        if let Some(slot) = slots(operator, false).find(reaches) {
            return Some(Divergence {
                operator: operator.index,
                slot: slot.slot.clone(),
                cause: Cause::Outside,
            });
        }
        if let Some(slot) = slots(operator, true).find(reaches) {
            return Some(Divergence {
                operator: operator.index,
                slot: slot.slot.clone(),
                cause: cause_of(operator),
            });
        }
    }
    None
}
