//! Pass, warn or fail: the meaning of metrics.
//!
//! A verdict is a function of saved numbers and thresholds, so a result can be rejudged without
//! reading a tensor again. `docs/compare.md` has the rules and the reason for every default.

mod bounds;
mod defaults;
mod derived;
mod exactness;
mod glob;
mod known_limits;
mod thresholds;
mod tolerance;

use std::collections::HashSet;

use opscope_store::SharedText;
use opscope_tensor::DType;
use opscope_tensor::difference::TensorDifference;
use thin_vec::{ThinVec, thin_vec};

use super::attribution::kinds::{is_additive, is_sum};
use super::evidence::{Evidence, RuleName};
use super::flow::ValueFlow;
use super::metric::MetricId;
use super::result::{
    Comparison, Metrics, OperatorResult, RuleHit, SlotAgreement, SlotResult, TensorSummary,
    VerdictLevel,
};
use super::side::ExecutionSlot;

use known_limits::KnownLimits;

pub use bounds::{Limits, MetricBounds};
pub use exactness::dtype_of;
pub(super) use exactness::{coarser, unit};
pub(super) use glob::is_match;
pub use thresholds::{PRESET_EXACT, PRESET_INT8, Thresholds, ThresholdsError, YardstickUse};
pub(super) use tolerance::element_tolerance;

/// How many times the absolute errors of its inputs a sum may have.
const CANCELLATION_MAX: f64 = 4.0;
/// Norms of the same elements are as close as this, relative to themselves.
const SAME_NORM: f64 = 1e-9;

/// Judges every slot again, and each operator by its outputs.
pub fn judge(comparison: &mut Comparison, thresholds: &Thresholds) {
    let flow = ValueFlow::trace(comparison);
    judge_along(comparison, thresholds, &flow);
}

/// [`judge`] where it is known already where inputs come from.
pub(super) fn judge_along(comparison: &mut Comparison, thresholds: &Thresholds, flow: &ValueFlow) {
    let exactness = exactness::judge_exactness(comparison, flow);
    let mut limits = KnownLimits::new(thresholds);
    let mut softened: HashSet<(usize, usize)> = HashSet::new();
    let mut exactness = exactness.into_iter();
    for (i, operator) in comparison.operators.iter_mut().enumerate() {
        let dtypes: Vec<Option<DType>> = exactness.by_ref().take(operator.slots.len()).collect();
        let (op_type, op_name) = names_of(operator);
        let is_judged = limits.is_judged(&op_type, &op_name);
        // Of the softened inputs how far each is off.
        let mut handed_on: Vec<f64> = Vec::new();
        for (k, (slot, dtype)) in operator.slots.iter_mut().zip(dtypes).enumerate() {
            let own = dtype_of(slot);
            let other = dtype.filter(|_| dtype != own);
            slot.change_rare(|rare| rare.judged_as = other.map(|dtype| dtype.name().into()));
            let limits = limits.bounds(dtype, &op_type, &op_name);
            judge_slot(slot, limits, thresholds);
            respect_agreement(slot);
            judge_replicas(slot, thresholds);
            let source = flow.source(i, k);
            // The very same pair is no worse as an input than it was as an output.
            let maker = source.target.filter(|_| source.is_same);
            if maker.is_some_and(|at| softened.contains(&(at.operator, at.slot))) {
                soften(slot);
                softened.insert((i, k));
                handed_on.extend(slot.absolute_distance());
            }
            // Outputs that agree anyway pass, such as those of a `Dropout` that passes its input
            // on.
            if !is_judged && slot.is_output() && slot.level > VerdictLevel::Pass {
                set_aside(slot);
            }
        }
        let mut excused = Vec::new();
        if is_additive(&op_type) && !thresholds.is_exact {
            excused = cancelled(&operator.slots);
        }
        if !thresholds.is_exact {
            excused.extend(
                rounded(&op_type, &operator.slots)
                    .into_iter()
                    .filter(|k| operator.slots[*k].level == VerdictLevel::Fail),
            );
        }
        excused.extend(passed_on(&operator.slots, &handed_on));
        for &k in &excused {
            soften(&mut operator.slots[k]);
        }
        softened.extend(excused.into_iter().map(|k| (i, k)));
        operator.level = level_of(operator);
    }
}

/// Withdraws the verdict on a difference that is not evidence of a fault.
fn respect_agreement(slot: &mut SlotResult) {
    let level = match slot.agreement {
        Some(SlotAgreement::Downstream) if slot.is_apart() => VerdictLevel::Skip,
        Some(_) if slot.is_apart() => VerdictLevel::Pass,
        _ => return,
    };
    slot.level = level;
    slot.rules = thin_vec![RuleHit {
        metric: RuleName::Agreement,
        level,
        ..RuleHit::default()
    }];
}

/// Adds the verdict on replicas that are not the same: a failure where they are as far apart as two
/// runs must not be, else a warning.
fn judge_replicas(slot: &mut SlotResult, thresholds: &Thresholds) {
    let Some(ranks) = slot.ranks.as_deref() else {
        return;
    };
    let hits: Vec<RuleHit> = ranks
        .replicas
        .iter()
        .map(|replicas| {
            let apart = SlotResult {
                slot: slot.slot,
                target: slot.target.clone(),
                golden: slot.target.clone(),
                evidence: Evidence::Tensor,
                metrics: replicas.metrics.clone(),
                ..SlotResult::default()
            };
            RuleHit {
                metric: RuleName::Replicas,
                value: replicas.apart.len() as f64,
                threshold: 0.0,
                level: is_within(apart, thresholds).max(VerdictLevel::Warn),
            }
        })
        .collect();
    // Of what was not compared there are no replicas either.
    if let Some(level) = hits.iter().map(|hit| hit.level).max() {
        slot.level = slot.level.max(level);
        slot.rules.extend(hits);
    }
}

/// Judges a slot whose agreement with other values counts for nothing, by the dtype that it was
/// judged by before. `op_type` and `op_name` are those of its operator.
pub(super) fn judge_alone(
    slot: &mut SlotResult,
    (op_type, op_name): (&str, &str),
    thresholds: &Thresholds,
) {
    let dtype = slot.judged_as.as_ref().and_then(|name| name.parse().ok());
    let limits = thresholds.bounds(dtype.or_else(|| dtype_of(slot)), op_type, op_name);
    judge_slot(slot, &limits, thresholds);
    if slot.level > VerdictLevel::Pass && !thresholds.is_judged(op_type, op_name) {
        set_aside(slot);
    }
}

/// The level of a slot alone, regardless of its operator.
pub(super) fn is_within(mut slot: SlotResult, thresholds: &Thresholds) -> VerdictLevel {
    let limits = thresholds.bounds(dtype_of(&slot), "", "");
    judge_slot(&mut slot, &limits, thresholds);
    slot.level
}

/// The level of an output from its difference to a golden slot, without excuses from its operator's
/// inputs. `dtype` is the output's, and `names` are the operator's type and name.
pub fn level_of_difference(
    (golden, dtype): (&ExecutionSlot, DType),
    found: &TensorDifference,
    names: (&str, &str),
    thresholds: &Thresholds,
) -> VerdictLevel {
    let mut slot = SlotResult {
        slot: golden.key(),
        target: TensorSummary {
            dtype: dtype.name().into(),
            ..TensorSummary::default()
        }
        .into(),
        golden: golden.summary().clone(),
        evidence: Evidence::Tensor,
        metrics: Metrics::from_difference(found),
        ..SlotResult::default()
    };
    // Of two float dtypes, the coarser one limits the precision of the output.
    let limits = thresholds.bounds(dtype_of(&slot), names.0, names.1);
    judge_slot(&mut slot, &limits, thresholds);
    slot.level
}

/// Takes the verdict off an output that has no value on which two runs must agree.
fn set_aside(slot: &mut SlotResult) {
    slot.level = VerdictLevel::Skip;
    slot.rules = thin_vec![RuleHit {
        metric: RuleName::NotJudged,
        level: VerdictLevel::Skip,
        ..RuleHit::default()
    }];
}

/// The failed outputs of a sum or difference that are no farther off than its inputs are, which
/// pass: large values that cancel leave their errors behind, and nothing is wrong but the network's
/// choice.
fn cancelled(slots: &[SlotResult]) -> Vec<usize> {
    let mut inputs = slots.iter().filter(|slot| !slot.is_output());
    let distances = inputs.clone().map(SlotResult::absolute_distance);
    if !inputs.all(|slot| slot.level == VerdictLevel::Pass && slot.agreement.is_none()) {
        return Vec::new();
    }
    let Some(of_inputs) = distances.sum::<Option<f64>>() else {
        return Vec::new();
    };
    let limit = CANCELLATION_MAX * of_inputs;
    outputs_without_bad(slots, |slot| {
        slot.level == VerdictLevel::Fail && slot.absolute_distance().is_some_and(|of| of <= limit)
    })
}

/// The outputs for which `is_it` holds and that have NaN and infinities where golden's have: these
/// have no part in a distance, and no small distance excuses them.
fn outputs_without_bad(slots: &[SlotResult], is_it: impl Fn(&SlotResult) -> bool) -> Vec<usize> {
    let outputs = (0..slots.len()).filter(|&k| {
        let is_sound = value_of(&slots[k], MetricId::NonFiniteMismatches) == Some(0.0);
        slots[k].is_output() && is_sound && is_it(&slots[k])
    });
    outputs.collect()
}

/// The outputs of a sum of many elements that are no farther off than another order of the additions
/// may make them.
pub(super) fn rounded(op_type: &str, slots: &[SlotResult]) -> Vec<usize> {
    let Some(limit) = sum_rounding(op_type, slots) else {
        return Vec::new();
    };
    outputs_without_bad(slots, |slot| {
        slot.absolute_distance().is_some_and(|of| of <= limit)
    })
}

/// By how much the order of its additions changes a sum, as a norm; none unless its terms agree.
/// Terms that cancel leave nothing else.
pub(super) fn sum_rounding(op_type: &str, slots: &[SlotResult]) -> Option<f64> {
    // The axes are an input of integers.
    let mut inputs = slots
        .iter()
        .filter(|slot| !slot.is_output() && is_float_slot(slot));
    let (terms, None) = (inputs.next()?, inputs.next()) else {
        return None;
    };
    let output = slots.iter().find(|slot| slot.is_output())?;
    let is_like = terms.level == VerdictLevel::Pass && terms.agreement.is_none();
    if !is_sum(op_type) || !is_like {
        return None;
    }
    // The error of a sum of k terms grows with their norm and the root of k.
    let [n_terms, n_outputs] = [terms, output].map(|slot| slot.golden.n_elements().max(1) as f64);
    let k = n_terms / n_outputs;
    let norm = value_of(terms, MetricId::GoldenL2Norm)?;
    let limit = CANCELLATION_MAX * unit(dtype_of(terms)?)? * k.sqrt() * norm;
    (k > 1.0).then_some(limit)
}

/// The outputs that are as far off as an input which cancellation has left so: the operator hands
/// its elements on, as views and copies do.
fn passed_on(slots: &[SlotResult], handed_on: &[f64]) -> Vec<usize> {
    outputs_without_bad(slots, |slot| {
        let distance = slot.absolute_distance();
        let is_same = distance.is_some_and(|distance| {
            // A transposed tensor has the same differences, added up in another order.
            let mut known = handed_on.iter();
            known.any(|known| (distance - known).abs() <= SAME_NORM * known)
        });
        // What agreement set aside is handed on all the same.
        let is_judged = slot.level == VerdictLevel::Fail || slot.agreement.is_some();
        is_judged && is_same
    })
}

/// Makes a warning of a failure.
fn soften(slot: &mut SlotResult) {
    if slot.level == VerdictLevel::Fail {
        slot.level = VerdictLevel::Warn;
        slot.rules
            .iter_mut()
            .for_each(|rule| rule.level = VerdictLevel::Warn);
    }
}

/// A metric of a slot that is saved, or one that follows from those.
pub(super) fn value_of(slot: &SlotResult, metric: MetricId) -> Option<f64> {
    derived::value(&slot.metrics, metric)
}

/// The same of metrics alone.
pub(super) fn value_in(metrics: &Metrics, metric: MetricId) -> Option<f64> {
    derived::value(metrics, metric)
}

/// Whether a slot is judged by limits of floats.
pub(super) fn is_float_slot(slot: &SlotResult) -> bool {
    dtype_of(slot).is_none_or(exactness::is_float)
}

/// Whether a dtype of this name is one of floats; one that is unknown counts for one.
pub(super) fn is_float_name(dtype: &str) -> bool {
    dtype.parse().map_or(true, exactness::is_float)
}

/// Type and name by which thresholds are chosen: the target's last operator.
fn names_of(operator: &OperatorResult) -> (SharedText, SharedText) {
    let name = operator.target.last().or(operator.golden.last());
    name.map(|name| (name.op_type.clone(), name.op_name.clone()))
        .unwrap_or_default()
}

/// The worst of the outputs; of the inputs if no output was judged.
fn level_of(operator: &OperatorResult) -> VerdictLevel {
    let slots = operator.slots.iter();
    // `Skip` sorts after `Fail`, and would hide it.
    let judged = slots.filter(|slot| slot.level != VerdictLevel::Skip);
    let worst = judged.max_by_key(|slot| (slot.is_output(), slot.level));
    worst.map_or(VerdictLevel::Skip, |slot| slot.level)
}

fn judge_slot(slot: &mut SlotResult, limits: &[(MetricId, MetricBounds)], thresholds: &Thresholds) {
    let is_measured = slot.evidence.is_measured();
    slot.rules = match slot.evidence {
        Evidence::Tensor | Evidence::Statistics | Evidence::Digest => {
            hits(slot, limits, thresholds)
        }
        Evidence::Shape => thin_vec![RuleHit {
            metric: RuleName::Shape,
            level: VerdictLevel::Fail,
            ..RuleHit::default()
        }],
        Evidence::None | Evidence::Reason(_) => ThinVec::new(),
    };
    slot.level = match (is_measured, slot.rules.iter().map(|rule| rule.level).max()) {
        (_, Some(level)) => level,
        (true, None) => VerdictLevel::Pass,
        (false, None) => VerdictLevel::Skip,
    };
}

fn hits(
    slot: &SlotResult,
    limits: &[(MetricId, MetricBounds)],
    thresholds: &Thresholds,
) -> ThinVec<RuleHit> {
    let mut hits = ThinVec::new();
    let is_nothing = !thresholds.is_exact && derived::is_nothing(slot, thresholds.atol);
    for &(metric, bounds) in limits {
        let value = derived::value(&slot.metrics, metric)
            .filter(|_| (metric.counts_elements() || !is_nothing) && is_asked(slot, metric));
        let Some(value) = value else {
            continue;
        };
        let natural = slot.yardstick.as_deref();
        let natural = natural.and_then(|natural| derived::value(natural, metric));
        let mut bounds = [
            (bounds.fail, VerdictLevel::Fail),
            (bounds.warn, VerdictLevel::Warn),
        ]
        .into_iter();
        hits.extend(bounds.find_map(|(bound, level)| {
            let threshold = thresholds.with_yardstick(metric, bound?, natural);
            derived::is_beyond(metric, value, threshold).then_some(RuleHit {
                metric: RuleName::Metric(metric),
                value,
                threshold,
                level,
            })
        }));
    }
    hits
}

/// Whether a metric says anything about a slot. Signs do where more than rounding is between both.
/// Floats that agree to within a rounding have other digests, so those count where there is nothing
/// else.
fn is_asked(slot: &SlotResult, metric: MetricId) -> bool {
    if metric == MetricId::SignFlipShare {
        return !derived::is_rounding(slot);
    }
    metric != MetricId::DigestMismatch || slot.evidence == Evidence::Digest || !is_float_slot(slot)
}
