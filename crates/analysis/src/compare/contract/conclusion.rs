//! The verdict on the whole, from the saved result.

mod compared;

use opscope_store::record::SlotSide;

use self::compared::{is_nothing_but_nan, too_little, uncompared};
use super::state::{judge_other, judge_output, slot_of};
use super::{evidence, hidden};
use crate::compare::attribution::kinds::is_in_place;
use crate::compare::attribution::{absorbed, is_doubtful};
use crate::compare::certainty::cuts_otherwise;
use crate::compare::result::{
    Cause, Comparison, Conclusion, Contract, ContractValue, DivergencePoint, Evidence, MetricId,
    OperatorResult, OutputSource, PairingEvidence, PartingOperator, QuantisedLoss, RuleName, Skip,
    SkipReason, SlotKey, SlotResult, ValueState, VerdictLevel, WiringChange,
};
use crate::compare::verdict::value_of;
use crate::compare::verdict_options::VerdictOptions;
use crate::compare::weight_effect;

/// Maximum number of names in a list.
const N_NAMES_MAX: usize = 3;
/// Of more operators than this, one with a loss is no place.
const N_OF_LOSS_MAX: usize = 8;

/// Judges the whole again. Levels, causes and the summary of the slots must exist; their objections
/// to a good comparison become notes.
pub(crate) fn conclude(comparison: &mut Comparison, judging: &VerdictOptions) {
    let mut contract = std::mem::take(&mut comparison.contract);
    contract.limit = judging.limit;
    judge_values(&mut contract, comparison, judging);
    // A result can be rejudged, so start from nothing.
    contract.missing = Vec::new();
    contract.inside = None;
    let slots = comparison.summary.slots;
    contract.n_inside = [
        slots[VerdictLevel::Warn as usize],
        slots[VerdictLevel::Fail as usize],
    ];
    let conclusion = if contract.is_known() {
        by_outputs(&mut contract, comparison, judging)
    } else {
        by_slots(&mut contract, comparison)
    };
    // Values agree, and the next inputs may show what a short dtype cannot hold.
    let conclusion = match conclusion {
        Conclusion::Pass if !contract.islands.is_empty() => Conclusion::Warn,
        other => other,
    };
    // Unreadable files only spoil a good verdict.
    contract.conclusion = with_damage(conclusion, &mut contract, comparison);
    if judging.is_strict && contract.conclusion.is_good() {
        contract.conclusion = strictly(&mut contract, comparison);
    }
    comparison.summary.level = match contract.conclusion {
        Conclusion::Pass => VerdictLevel::Pass,
        Conclusion::Warn | Conclusion::QuantisedWithin => VerdictLevel::Warn,
        Conclusion::Fail | Conclusion::Quantised => VerdictLevel::Fail,
        Conclusion::Incomplete => VerdictLevel::Skip,
    };
    // Quantising makes every value differ, which accuses no operator.
    let accuses = !contract.conclusion.is_good() && contract.conclusion != Conclusion::Quantised;
    let evidence = place_of(&contract, comparison);
    let hidden = hidden::by_statistics(&contract, comparison);
    let hidden = hidden.filter(|_| contract.conclusion == Conclusion::Warn);
    if contract.is_known() && !accuses {
        note_inside(&mut contract, comparison);
        comparison.summary.first_divergence = hidden.or(comparison.summary.first_divergence.take());
    }
    if let Some(point) = evidence {
        comparison.summary.first_divergence = Some(point.clone());
        comparison.summary.first_failure = Some(point);
    }
    let has_islands = contract.conclusion == Conclusion::Warn;
    if let Some(first) = contract.islands.first().filter(|_| has_islands) {
        comparison.summary.first_divergence = Some(DivergencePoint {
            operator: first.operator,
            slot: SlotKey {
                side: SlotSide::Output,
                index: 0,
            },
            cause: Cause::Own,
            name: first.name.clone(),
            ..DivergencePoint::default()
        });
    }
    comparison.contract = contract;
}

/// The place that the verdict names by separate evidence, if any.
fn place_of(contract: &Contract, comparison: &Comparison) -> Option<DivergencePoint> {
    match (contract.conclusion, contract.loss.as_deref()) {
        // Misread codes are not a cost of quantising, whatever golden does.
        (Conclusion::Quantised, Some(loss)) if loss.codes.is_some() => {
            Some(point_of(loss, contract.is_quantised))
        }
        // Unless it is known from a golden side with the same operators.
        (Conclusion::Fail, Some(loss)) if loss.codes.is_some() && !is_of_weight(comparison) => {
            Some(point_of(loss, contract.is_quantised))
        }
        // Kernels of integers round otherwise than floats between quantisers, here and there.
        (Conclusion::Fail, loss) if contract.has_quantised && is_vague(comparison) => {
            let vague = comparison.summary.headline().map(|point| DivergencePoint {
                cause: Cause::Unknown,
                ..point.clone()
            });
            let loss = loss.filter(|loss| loss.others.len() <= N_OF_LOSS_MAX);
            loss.map(|loss| point_of(loss, true)).or(vague)
        }
        (Conclusion::Fail, _) if !comparison.has_place_by(first_step_apart(contract)) => {
            let before = contract.before_output.as_deref().map(before_output);
            before
                .or_else(|| excused_output(contract, comparison))
                .or_else(|| first_up_to(first_step_apart(contract)?, comparison))
        }
        (Conclusion::Quantised, loss) => {
            evidence::first(comparison).or_else(|| loss.map(|loss| point_of(loss, true)))
        }
        _ => None,
    }
}

/// The first slot that fails, up to a step.
fn first_up_to(step: u64, comparison: &Comparison) -> Option<DivergencePoint> {
    let is_early = |operator: &&OperatorResult| {
        let name = operator.target.last();
        name.and_then(|name| name.step)
            .is_some_and(|own| own <= step)
    };
    comparison
        .operators
        .iter()
        .filter(is_early)
        .find_map(|operator| {
            let mut slots = operator.slots.iter();
            let failing = slots.find(|slot| slot.level == VerdictLevel::Fail)?;
            Some(DivergencePoint {
                operator: operator.index,
                slot: failing.slot,
                cause: Cause::Unknown,
                ..DivergencePoint::default()
            })
        })
}

/// The step of the first output that differs.
fn first_step_apart(contract: &Contract) -> Option<u64> {
    let mut outputs = contract.outputs.iter();
    outputs
        .find(|value| value.state == ValueState::Differ)?
        .step()
}

/// Whether nothing that was compared differs at the place that values tell, or why is unknown.
fn is_vague(comparison: &Comparison) -> bool {
    comparison.summary.headline().is_some_and(|point| {
        let operator = comparison.operators.get(point.operator);
        let mut slots = operator.iter().flat_map(|operator| &operator.slots);
        let mut partings = comparison.partings.iter();
        // A graph tells of an operator that golden lacks, whatever its neighbours make.
        let is_inserted = partings.any(|parting| {
            parting.change == Some(WiringChange::Inserted)
                && point.name.as_ref() == Some(&parting.name)
        });
        point.cause == Cause::Unknown
            || point.cause == Cause::Own
                && !is_inserted
                && !slots.any(|slot| slot.level >= VerdictLevel::Warn)
    })
}

/// The operators that one side alone has before an output that differs, where none inside does.
fn before_output(parting: &PartingOperator) -> DivergencePoint {
    DivergencePoint {
        operator: parting.operator,
        slot: parting.slot,
        cause: parting.cause,
        name: Some(parting.name.clone()),
        ..DivergencePoint::default()
    }
}

/// The operator that makes an output which differs, though all that is computed from it agrees.
fn excused_output(contract: &Contract, comparison: &Comparison) -> Option<DivergencePoint> {
    let apart = contract.outputs.iter();
    let apart = apart.filter(|value| value.state == ValueState::Differ);
    let mut makers = apart.filter_map(|value| value.operators[0].as_ref());
    makers.find_map(|name| {
        let mut operators = comparison.operators.iter();
        let operator = operators.find(|operator| operator.target.last() == Some(name))?;
        let mut slots = operator.slots.iter();
        let slot = slots.find(|slot| slot.is_output() && slot.agreement.is_some())?;
        Some(DivergencePoint {
            operator: operator.index,
            slot: slot.slot,
            cause: Cause::Unknown,
            ..DivergencePoint::default()
        })
    })
}

fn point_of(loss: &QuantisedLoss, is_quantised: bool) -> DivergencePoint {
    DivergencePoint {
        operator: loss.operator,
        slot: loss.slot,
        cause: match loss.codes {
            Some(_) if loss.behind.is_finite() || !is_quantised => Cause::Own,
            _ => Cause::Unknown,
        },
        name: Some(loss.name.clone()),
        ..DivergencePoint::default()
    }
}

/// Sets the state of every input, output and weight.
fn judge_values(contract: &mut Contract, comparison: &Comparison, judging: &VerdictOptions) {
    let mut outputs = std::mem::take(&mut contract.outputs);
    for value in &mut outputs {
        judge_output(value, contract, comparison, &judging.thresholds);
        if value.state == ValueState::NotCompared && is_allowed(value, comparison, judging) {
            value.state = ValueState::Allowed;
        }
    }
    contract.outputs = outputs;
    for value in contract.inputs.iter_mut().chain(&mut contract.weights) {
        judge_other(value, comparison, &judging.thresholds);
    }
}

fn is_allowed(value: &ContractValue, comparison: &Comparison, judging: &VerdictOptions) -> bool {
    let mut operators = value.operators.iter().flatten();
    operators.any(|operator| {
        let alone = Skip {
            operator: Some(operator.clone()),
            ..Skip::default()
        };
        let mut skips = comparison.skips.iter();
        judging.allowed.iter().any(|pattern| pattern.allows(&alone))
            || skips.any(|skip| skip.is_allowed && skip.operator.as_ref() == Some(operator))
    })
}

/// The verdict where the outputs are known.
fn by_outputs(
    contract: &mut Contract,
    comparison: &Comparison,
    judging: &VerdictOptions,
) -> Conclusion {
    // In the order of outputs, so that the headline names the first that differs.
    let first_bad = contract.outputs.iter().find(|value| value.state.is_bad());
    // If all outputs agree, a padded batch may correspond to one without padding. What no operator
    // reads need not be all that a caller gets, and excuses no operator that is at fault itself.
    let is_unlisted = contract.known_by == [OutputSource::Unread; 2];
    let accuses =
        is_unlisted && !updates_shared(contract, comparison) && accuses(contract, comparison);
    let mut states = contract.outputs.iter().map(|value| value.state);
    if (accuses || states.any(|state| state != ValueState::Agree))
        && let Some(message) = other_shape(comparison).filter(|_| contract.inputs.is_empty())
    {
        contract.missing.push(message);
        return Conclusion::Incomplete;
    }
    if let Some(bad) = first_bad {
        if let Some(message) = other_inputs(contract, bad.rank(), comparison) {
            contract.missing.push(message);
            return Conclusion::Incomplete;
        }
        return apart(contract, comparison, judging);
    }
    // Replicas have to agree with each other whatever golden has.
    if has_replicas_apart(comparison) || accuses {
        return Conclusion::Fail;
    }
    let nan = "the outputs are nothing but NaN on both sides";
    let nan = is_nothing_but_nan(contract, comparison).then(|| nan.to_owned());
    if let Some(message) = uncompared(contract, comparison).or(nan) {
        contract.missing.push(message);
        // An inner difference is evidence unless the outputs contradict it, or quantising makes
        // every value differ.
        let mut states = contract.outputs.iter().map(|value| value.state);
        let is_wrong = slots_level(comparison) == VerdictLevel::Fail
            && states.any(|state| state != ValueState::Agree);
        return if is_wrong && !contract.is_quantised && !is_of_guess(comparison) {
            Conclusion::Fail
        } else {
            Conclusion::Incomplete
        };
    }
    let mut states = contract.outputs.iter().map(|value| value.state);
    let is_wrong = slots_level(comparison) == VerdictLevel::Fail && !has_grown(comparison);
    if is_wrong && states.any(|state| state == ValueState::Warn) {
        // It shows in an output, though not by much.
        return apart(contract, comparison, judging);
    }
    by_weights(contract, comparison).unwrap_or_else(|| {
        let is_noted =
            |value: &ContractValue| matches!(value.state, ValueState::Warn | ValueState::Extra);
        let hides = || hidden::by_statistics(contract, comparison).is_some();
        if contract.outputs.iter().any(is_noted) || hides() {
            Conclusion::Warn
        } else {
            Conclusion::Pass
        }
    })
}

/// Inputs of a rank that are not the same on both sides from the first step on, in words. Inputs
/// that differ later are a finding: the data, or a result that comes back as an input.
fn other_inputs(contract: &Contract, rank: Option<u32>, comparison: &Comparison) -> Option<String> {
    let of_rank = contract.inputs.iter().filter(|value| value.rank() == rank);
    let first = of_rank.clone().map(ContractValue::step).min()?;
    let other: Vec<String> = of_rank
        .filter(|value| value.state.is_bad() && value.step() == first)
        .map(|value| {
            let shapes = slot_of(value, comparison).map(shapes_in_words);
            format!("`{}`{}", value.name, shapes.unwrap_or_default())
        })
        .collect();
    (!other.is_empty()).then(|| format!("other inputs: {}", list(&other)))
}

/// An input of the model of another shape, in words, where no graph lists the inputs: the first
/// slot that differs, which no operator produces and which is not a parameter.
fn other_shape(comparison: &Comparison) -> Option<String> {
    let first = comparison.summary.first_failure.as_ref()?;
    let operator = &comparison.operators[first.operator];
    let slot = operator.slots.iter().find(|slot| {
        let [target, golden] = [&slot.target, &slot.golden];
        // Another form of the same tensor is not another input, nor is a number in its place.
        let is_other = slot.evidence == Evidence::Shape
            && target.shape.len() == golden.shape.len()
            && target.n_elements() != golden.n_elements();
        slot.slot == first.slot && !slot.is_output() && is_other && slot.parameter.is_none()
    })?;
    let name = operator.target.first()?;
    (first.cause == Cause::Outside).then(|| {
        let shapes = shapes_in_words(slot);
        format!("other inputs: `{}` reads{shapes}", name.op_name)
    })
}

/// Whether the first slot that fails is a weight.
fn is_of_weight(comparison: &Comparison) -> bool {
    let first = comparison.summary.first_failure.as_ref();
    first.is_some_and(|first| first.cause == Cause::Outside)
}

/// Whether outputs are parameters that ranks update together: how they share the work up to there is
/// theirs.
fn updates_shared(contract: &Contract, comparison: &Comparison) -> bool {
    let mut makers = contract
        .outputs
        .iter()
        .flat_map(|value| value.operators.iter().flatten());
    let mut slots = comparison
        .operators
        .iter()
        .flat_map(|operator| &operator.slots);
    makers.any(|maker| is_in_place(&maker.op_type)) && slots.any(|slot| slot.ranks.is_some())
}

/// Whether the first slot that fails is one of an operator at fault, or of a weight or input, and
/// something that differs, or that is unknown, was computed from it. A later step may read it.
fn accuses(contract: &Contract, comparison: &Comparison) -> bool {
    let operators = &comparison.operators;
    let first = comparison.summary.first_failure.as_ref();
    let Some(first) = first.filter(|first| first.cause.accuses()) else {
        return false;
    };
    let mut outputs = contract.outputs.iter();
    let is_near =
        outputs.any(|value| slot_of(value, comparison).is_some_and(absorbed::is_only_near));
    let is_made_up_for = |value: &ContractValue| {
        let reader = value.pair.map(|[reader, _]| reader);
        !is_near && reader.is_some_and(|row| weight_effect::is_made_up_for(operators, row))
    };
    let mut weights = contract.weights.iter().filter(|value| value.state.is_bad());
    let operator = &operators[first.operator];
    // Equal outputs show that it is another way to the same.
    let is_another_way = is_doubtful(operator) || cuts_otherwise(comparison, operator);
    let has_state = weights.any(|value| !is_made_up_for(value));
    (is_near || !is_another_way) && (has_state || absorbed::leads_on(operators)[first.operator])
}

/// Whether the first failure is at an operator that was matched by its type and place among others
/// alone, and may be another one's: where a dump lacks operators, their neighbours take their place.
fn is_of_guess(comparison: &Comparison) -> bool {
    let first = comparison.summary.first_failure.as_ref();
    first.is_some_and(|first| {
        let operator = &comparison.operators[first.operator];
        let is_guessed = matches!(
            operator.how,
            PairingEvidence::Order | PairingEvidence::Fuzzy
        );
        let skips = comparison.skips.iter();
        let mut missing = skips.filter(|skip| skip.reason == SkipReason::Missing);
        is_guessed && first.cause != Cause::Own && missing.any(|skip| skip.slot.is_none())
    })
}

/// Whether the first failure is a small difference that grew, without a culprit.
fn has_grown(comparison: &Comparison) -> bool {
    let first = comparison.summary.first_failure.as_ref();
    first.is_some_and(|first| matches!(first.cause, Cause::Gradual | Cause::Inherited))
}

/// Whether replicas of the target's ranks are apart by more than two runs may be.
fn has_replicas_apart(comparison: &Comparison) -> bool {
    let mut slots = comparison
        .operators
        .iter()
        .flat_map(|operator| &operator.slots);
    slots.any(|slot| {
        // Whether ranks should have the same is known from notes alone.
        let is_known = slot.ranks.as_ref().is_some_and(|ranks| !ranks.is_inferred);
        let mut rules = slot.rules.iter().filter(|_| is_known);
        rules.any(|rule| rule.metric == RuleName::Replicas && rule.level == VerdictLevel::Fail)
    })
}

/// The verdict where outputs differ.
fn apart(contract: &Contract, comparison: &Comparison, judging: &VerdictOptions) -> Conclusion {
    // Limits that were set for such a model separate an error from the cost of quantization.
    let is_by_distance = judging.limit.is_some() || judging.thresholds.are_default();
    if contract.is_quantised && is_by_distance {
        by_distance(contract, comparison)
    } else {
        Conclusion::Fail
    }
}

/// The verdict on a quantised model whose outputs differ.
fn by_distance(contract: &Contract, comparison: &Comparison) -> Conclusion {
    let is_apart =
        |value: &ContractValue| value.state != ValueState::Differ && value.state.is_bad();
    if contract.outputs.iter().any(is_apart) {
        return Conclusion::Fail;
    }
    let distance = contract.distance(comparison);
    // Without a limit, the acceptable distance of such a model is unknown.
    match (contract.limit, distance) {
        (Some(limit), Some(distance)) if distance <= limit => Conclusion::QuantisedWithin,
        _ => Conclusion::Quantised,
    }
}

/// The verdict on weights that differ although the outputs agree, if there is one.
fn by_weights(contract: &Contract, comparison: &Comparison) -> Option<Conclusion> {
    let mut weights = contract.weights.iter();
    if weights.any(|value| contract.is_broken_weight(value, comparison)) {
        return Some(Conclusion::Fail);
    }
    // Another graph may hold the same weights in another form.
    let is_found =
        contract.is_same_graph && contract.weights.iter().any(|value| value.state.is_bad());
    is_found.then_some(Conclusion::Warn)
}

/// The verdict where the outputs are not known: every slot counts.
fn by_slots(contract: &mut Contract, comparison: &Comparison) -> Conclusion {
    let level = slots_level(comparison);
    // Misread codes are an error in themselves.
    let mut loss = contract.loss.iter();
    let is_misread = loss.any(|loss| loss.codes.is_some());
    if level == VerdictLevel::Fail && contract.is_quantised && !is_misread {
        let message = "no output is known, and quantising makes every value differ";
        contract.missing.push(message.to_owned());
        return Conclusion::Incomplete;
    }
    if level == VerdictLevel::Fail && is_of_guess(comparison) {
        let message = "no output is known, and what differs was matched by type and order alone";
        contract.missing.push(message.to_owned());
        return Conclusion::Incomplete;
    }
    if level == VerdictLevel::Fail {
        return Conclusion::Fail;
    }
    if level == VerdictLevel::Skip {
        contract.missing.push("nothing was compared".to_owned());
        return Conclusion::Incomplete;
    }
    let alone: Vec<String> = contract
        .last_alone
        .iter()
        .map(|name| format!("`{}`", name.op_name))
        .collect();
    let last = (!alone.is_empty()).then(|| {
        format!(
            "without a partner: {}, the last operator of its side",
            list(&alone)
        )
    });
    // A user who allows every gap has seen them.
    let has_gaps = open_skips(comparison).next().is_some();
    if let Some(message) = last
        .or_else(|| too_little(contract, comparison))
        .filter(|_| has_gaps)
    {
        contract.missing.push(message);
        return Conclusion::Incomplete;
    }
    if level == VerdictLevel::Warn {
        Conclusion::Warn
    } else {
        Conclusion::Pass
    }
}

/// Skips that are not allowed.
fn open_skips(comparison: &Comparison) -> impl Iterator<Item = &Skip> {
    let skips = comparison.skips.iter();
    skips.filter(|skip| !(skip.is_allowed || skip.reason.is_expected()))
}

/// Downgrades a good verdict if files could not be read.
fn with_damage(
    conclusion: Conclusion,
    contract: &mut Contract,
    comparison: &Comparison,
) -> Conclusion {
    let damaged = open_skips(comparison).filter(|skip| skip.reason == SkipReason::Damaged);
    let n = damaged.count();
    if n == 0 || !conclusion.is_good() {
        return conclusion;
    }
    let things = if n == 1 { "thing" } else { "things" };
    let message = format!("{n} {things} could not be read");
    contract.missing.push(message);
    Conclusion::Incomplete
}

/// The verdict of `--strict` on what is good by its outputs.
fn strictly(contract: &mut Contract, comparison: &Comparison) -> Conclusion {
    if slots_level(comparison) == VerdictLevel::Fail {
        return Conclusion::Fail;
    }
    let n = open_skips(comparison).count();
    if n == 0 {
        return contract.conclusion;
    }
    let things = if n == 1 { "thing was" } else { "things were" };
    contract.missing.push(format!("{n} {things} not compared"));
    Conclusion::Incomplete
}

/// The worst level of all slots that were judged.
fn slots_level(comparison: &Comparison) -> VerdictLevel {
    let n = comparison.summary.slots;
    let levels = [VerdictLevel::Fail, VerdictLevel::Warn, VerdictLevel::Pass];
    let mut levels = levels.into_iter();
    levels
        .find(|level| n[*level as usize] > 0)
        .unwrap_or(VerdictLevel::Skip)
}

/// Makes notes of what the summary names, as nothing of it decides.
fn note_inside(contract: &mut Contract, comparison: &mut Comparison) {
    let summary = &mut comparison.summary;
    let failure = summary.first_failure.take();
    // A warning on an output has a cause inside, unless quantising is all of it.
    let is_by_output = contract.conclusion != Conclusion::Quantised
        && (contract.outputs.iter()).any(|value| value.state == ValueState::Warn);
    let divergence = if is_by_output {
        summary.first_divergence.clone()
    } else {
        summary.first_by_rank.clear();
        summary.first_divergence.take()
    };
    contract.inside = failure.or(divergence);
    if let Some(steps) = summary.steps.as_mut().filter(|_| !is_by_output) {
        steps.first = None;
    }
}

/// The shapes of both sides where they differ: ` [4, 10] against [2, 10]`.
fn shapes_in_words(slot: &SlotResult) -> String {
    let [target, golden] = [&slot.target.shape, &slot.golden.shape];
    if target == golden {
        String::new()
    } else {
        format!(" {target:?} against {golden:?}")
    }
}

/// The first names of a list.
pub(super) fn list(names: &[String]) -> String {
    let shown = names.iter().take(N_NAMES_MAX).cloned();
    let shown = shown.collect::<Vec<String>>().join(", ");
    match names.len().saturating_sub(N_NAMES_MAX) {
        0 => shown,
        n => format!("{shown} and {n} more"),
    }
}

impl Contract {
    /// The largest relative distance of outputs that were measured.
    pub fn distance(&self, comparison: &Comparison) -> Option<f64> {
        let slots = self
            .outputs
            .iter()
            .filter_map(|value| slot_of(value, comparison));
        let distances = slots.filter_map(|slot| {
            let metrics = [MetricId::RelL2, MetricId::StatisticRel];
            metrics
                .into_iter()
                .find_map(|metric| value_of(slot, metric))
        });
        distances.reduce(f64::max)
    }

    /// Whether a weight is NaN or infinite on one side alone, in one dtype: no input has to show it.
    pub fn is_broken_weight(&self, value: &ContractValue, comparison: &Comparison) -> bool {
        slot_of(value, comparison).is_some_and(|slot| {
            let n = value_of(slot, MetricId::NonFiniteMismatches);
            slot.target.dtype == slot.golden.dtype && n.is_some_and(|n| n > 0.0)
        })
    }
}
