//! Findings on the operators at which both sides diverge.

use std::collections::{BTreeMap, HashMap};

use opscope_store::record::SlotSide;

use super::parting::n_inputs;
use super::region;
use super::shifted::ExtraOperators;
use super::values::{DumpValue, ValueIndex};
use super::{ComparedValues, is_agreed_output};
use crate::compare::attribution::cause::computes_otherwise;
use crate::compare::attribution::kinds::{is_additive, plain_type};
use crate::compare::matching::{
    MatchedDumps, RunPair, SlotRef, is_same_type, is_view, may_be_fused,
};
use crate::compare::result::{
    Cause, MetricId, OperatorName, OperatorResult, PairingEvidence, PartingOperator, SlotKey,
    SlotResult, VerdictLevel, WiringChange,
};
use crate::compare::side::ComparedDump;

/// Relative distance of the norms of two weights that are equal but for rounding.
const SAME_NORM: f64 = 1e-5;
/// Relative distance of the same number in two dtypes.
const SAME_NUMBER: f64 = 1e-3;
/// Where operators of PyTorch have a number in place of a second tensor.
const OPERAND: &str = "argument.1";

/// A finding at an operator before which one side has operators that the other lacks.
fn with_extra(
    sides: MatchedDumps<'_>,
    found: PartingOperator,
    extra: &ExtraOperators,
) -> PartingOperator {
    let (dump, change) = match extra.side {
        0 => (sides.target, WiringChange::Inserted),
        _ => (sides.golden, WiringChange::Missing),
    };
    let runs = extra.runs.iter();
    let mut names = runs.map(|run| OperatorName::for_execution(&dump.runs[*run]));
    let Some(name) = names.next() else {
        return found;
    };
    PartingOperator {
        name,
        slot: SlotKey {
            side: SlotSide::Output,
            index: 0,
        },
        cause: Cause::Own,
        others: names.collect(),
        change: Some(change),
        rewired: Vec::new(),
        ..found
    }
}

impl ComparedValues {
    /// The operators at which both sides diverge, in execution order, with the known facts about
    /// each.
    pub(super) fn parting_operators(
        &self,
        sides: MatchedDumps<'_>,
        operators: &[OperatorResult],
    ) -> Vec<PartingOperator> {
        let pairs = sides.matching.pairs.iter().enumerate();
        let mut of_run: [BTreeMap<usize, usize>; 2] = [BTreeMap::new(), BTreeMap::new()];
        for (operator, pair) in pairs {
            let RunPair { target, golden, .. } = pair;
            for (of_run, runs) in of_run.iter_mut().zip([target, golden]) {
                of_run.extend(runs.iter().map(|&run| (run, operator)));
            }
        }
        let fused = self.fused_regions(sides, &of_run);
        let parting = self.parting.iter();
        let parting = parting.filter(|pair| {
            let mut regions = fused.iter().filter(|(start, _)| **start != pair.target);
            let is_inner = regions.any(|(_, region)| region.contains(&pair.target));
            let is_paired = pair.golden.is_some();
            !is_inner && (is_paired || !self.leads_to_sound(operators, &of_run[0], pair.target))
        });
        let found = parting.filter_map(|pair| {
            // Of a region of the target that is one operator of golden's any may be at fault.
            let region = fused.get(&pair.target);
            let region = region.filter(|_| pair.others.is_empty());
            let (target, others) = match region.and_then(|region| region.split_first()) {
                Some((first, rest)) => (*first, rest),
                None => (pair.target, &pair.others[..]),
            };
            let runs = (target, pair.golden);
            let found = self.parting_operator(sides, operators, &of_run, (runs, others))?;
            Some(match &pair.extra {
                Some(extra) if found.cause != Cause::Outside => with_extra(sides, found, extra),
                _ => found,
            })
        });
        found.collect()
    }

    fn parting_operator(
        &self,
        sides: MatchedDumps<'_>,
        operators: &[OperatorResult],
        of_run: &[BTreeMap<usize, usize>; 2],
        ((target, golden), others): ((usize, Option<usize>), &[usize]),
    ) -> Option<PartingOperator> {
        let partner = golden.and_then(|golden| of_run[1].get(&golden));
        let runs = golden.map(|golden| [target, golden]);
        let outside = runs.and_then(|runs| self.changed_outside(sides, runs));
        let outside = outside.map(|place| self.before_views(sides.target, place));
        let target = outside.map_or(target, |place| place.run);
        // A value that could not be assembled is missing on one side, and may be the same.
        let hides = self.hides_parts(0, sides.target, target)
            || golden.is_some_and(|golden| self.hides_parts(1, sides.golden, golden));
        if outside.is_none() && hides {
            return None;
        }
        let paired = of_run[0].get(&target);
        if outside.is_none() && paired.is_some_and(|&own| gives_the_same(&operators[own])) {
            return None;
        }
        // What an engine made of several operators may have the value in blocks of channels.
        let is_opaque = paired.is_some_and(|&own| {
            let of_fusion = operators[own].how == PairingEvidence::Fusion;
            of_fusion && !operators[own].slots.iter().any(SlotResult::is_output)
        });
        if outside.is_none() && is_opaque {
            return None;
        }
        let own = paired.or(partner).copied();
        // An operator that vanished from the other side's graph precedes the next one that
        // remains.
        let next = of_run[0].range(target..).next();
        let operator = own.or(next.map(|(_, &operator)| operator))?;
        let slot = outside
            .map(|place| sides.target.slot(place).key())
            .or_else(|| self.new_output(sides.target, target))?;
        let shown = golden.or_else(|| sides.matching.pairs[own?].golden.first().copied());
        let cause = match (outside, operators.get(operator)?.cause) {
            (Some(_), _) => Cause::Outside,
            // The golden side has not shown the value, so it may or may not be the same there.
            (None, _)
                if self.reads_unseen(sides, target, shown)
                    || !own.is_some_and(|own| operators[own].has_other_size())
                        && self.reads_computed_extents(sides, target, shown) =>
            {
                Cause::Unknown
            }
            (None, Some(Cause::Gradual))
                if own.is_some_and(|own| !computes_otherwise(&operators[own])) =>
            {
                Cause::Gradual
            }
            (None, _) => Cause::Own,
        };
        let number_maker = golden
            .filter(|_| cause == Cause::Own)
            .and_then(|golden| self.maker_of_other_number(sides, [target, golden]));
        let named = number_maker.unwrap_or(target);
        Some(PartingOperator {
            operator,
            name: OperatorName::for_execution(&sides.target.runs[named]),
            slot,
            cause,
            parameter: outside.and_then(|place| sides.target.parameter_of(place)),
            others: others
                .iter()
                .filter(|_| outside.is_none())
                .map(|run| OperatorName::for_execution(&sides.target.runs[*run]))
                .collect(),
            change: None,
            rewired: shown
                .map(|golden| self.rewired(sides, [target, golden]))
                .unwrap_or_default(),
        })
    }

    /// The operator of the target that computes the second operand, if golden's operator, one of
    /// PyTorch, has another number there as an argument.
    fn maker_of_other_number(
        &self,
        sides: MatchedDumps<'_>,
        [target, golden]: [usize; 2],
    ) -> Option<usize> {
        let given = sides.golden.attributes_of(golden)?.given;
        let expected: f64 = given.get(OPERAND)?.parse().ok()?;
        let mut inputs = sides.target.inputs_of(target);
        let operand = inputs.find(|input| sides.target.slot(*input).index == 1)?;
        let value = &self.sides[0].values[self.sides[0].value_of(operand)?.0];
        let is_number = value.stats.counts.n_elements == 1 && !value.is_integer;
        let maker = sides.target.producer_of(operand).filter(|_| is_number)?;
        let number = value.stats.min;
        let is_other = (number - expected).abs() > SAME_NUMBER * number.abs().max(expected.abs());
        let is_one_type = is_same_type(&sides.target.runs[target], &sides.golden.runs[golden]);
        (is_other && is_one_type).then_some(maker.run)
    }

    /// Whether what an operator without a partner computes ends in one that agrees with its own. The
    /// same values may be computed once more in another place, where they are wrong.
    fn leads_to_sound(
        &self,
        operators: &[OperatorResult],
        of_run: &BTreeMap<usize, usize>,
        start: usize,
    ) -> bool {
        let side = &self.sides[0];
        let mut run = start;
        while !of_run.contains_key(&run) {
            let outputs = side.outputs.get(&run).into_iter().flatten();
            let readers = outputs.flat_map(|value| side.values[value.0].readers.iter().copied());
            // Each step leads to an operator that ran later.
            match readers.filter(|reader| *reader > run).min() {
                Some(reader) => run = reader,
                None => return false,
            }
        }
        run != start && operators[of_run[&run]].slots.iter().any(is_agreed_output)
    }

    /// The regions of the target that are one operator of golden's, by where they begin.
    fn fused_regions(
        &self,
        sides: MatchedDumps<'_>,
        of_run: &[BTreeMap<usize, usize>; 2],
    ) -> HashMap<usize, Vec<usize>> {
        let unknown = self.parting.iter().filter(|pair| !pair.is_learned);
        let regions = unknown.filter_map(|pair| {
            let golden = pair.golden.or_else(|| {
                let read = self.sides[0].inputs_of(pair.target);
                let equal = read.filter_map(|value| self.equals[0][value.0]);
                let readers = equal.flat_map(|value| &self.sides[1].values[value.0].readers);
                let mut readers = readers.copied();
                readers.find(|&run| !is_view(&sides.golden.runs[run]))
            })?;
            let runs = [pair.target, golden];
            let [a, b] = [&sides.target.runs[runs[0]], &sides.golden.runs[runs[1]]];
            if is_same_type(a, b) || !may_be_fused(&b.op_type) {
                return None;
            }
            let region = region::of_fused(self, sides.target, runs, |golden| {
                let operator = *of_run[1].get(&golden)?;
                sides.matching.pairs[operator].target.first().copied()
            });
            (region.len() > 1).then_some((pair.target, region))
        });
        regions.collect()
    }

    /// Whether an operator reads something from outside of which the other dump shows nothing, as
    /// it has no inputs of the operator's partner, or not all.
    fn reads_unseen(&self, sides: MatchedDumps<'_>, target: usize, golden: Option<usize>) -> bool {
        let dumps = [sides.target, sides.golden];
        let runs = [Some(target), golden];
        [0, 1].into_iter().any(|i| {
            let (own, other) = (&self.sides[i], &self.sides[1 - i]);
            let Some(run) = runs[i] else {
                return false;
            };
            let is_shown = match runs[1 - i] {
                Some(partner) => {
                    let [reader, partner_run] = [&dumps[i].runs[run], &dumps[1 - i].runs[partner]];
                    // MindSpore leaves out what the body of a loop reads from outside.
                    let is_part = is_same_type(reader, partner_run)
                        && dumps[1 - i].description_of(partner).is_none()
                        && n_inputs(partner_run) < n_inputs(reader);
                    !is_part && other.inputs_of(partner).next().is_some()
                }
                None => {
                    (0..dumps[1 - i].runs.len()).any(|run| other.inputs_of(run).next().is_some())
                }
            };
            !is_shown
                && own.inputs_of(run).any(|value| {
                    let of = &own.values[value.0];
                    // A number or two are somewhere in any dump.
                    of.is_outside
                        && !of.is_extents
                        && (!of.is_distinctive() || self.is_orphan(i, value))
                })
        })
    }

    /// Whether an operator reads a shape or an index that the target computes and golden's does not
    /// read, as where exporters write the same slice in other ways. Whether it is right is unknown.
    fn reads_computed_extents(
        &self,
        sides: MatchedDumps<'_>,
        target: usize,
        golden: Option<usize>,
    ) -> bool {
        let extents = |side: usize, value: ValueIndex| {
            let of = &self.sides[side].values[value.0];
            let stats = &of.stats;
            of.is_extents
                .then_some((stats.counts.n_elements, stats.min, stats.max))
        };
        let read: Vec<_> = golden
            .into_iter()
            .flat_map(|run| self.sides[1].inputs_of(run))
            .filter_map(|value| extents(1, value))
            .collect();
        sides.target.inputs_of(target).any(|slot| {
            let value = self.sides[0].value_of(slot);
            let own = value.and_then(|value| extents(0, value));
            own.is_some_and(|own| !read.contains(&own)) && sides.target.producer_of(slot).is_some()
        })
    }

    /// The first output that the golden side does not come to.
    fn new_output(&self, dump: &ComparedDump, run: usize) -> Option<SlotKey> {
        let slots = dump.runs[run].slots.iter().enumerate();
        let mut outputs = slots.filter(|(_, slot)| slot.side == SlotSide::Output);
        let first = outputs.clone().next();
        let found = outputs.find(|&(slot, _)| {
            let value = self.sides[0].value_of(SlotRef { run, slot });
            value.is_some_and(|value| !self.is_rejoined[0][value.0])
        });
        found.or(first).map(|(_, slot)| slot.key())
    }

    /// Whether an input or output is in parts of several ranks of which no value was made: they do
    /// not fit together, or are too large for it.
    fn hides_parts(&self, side: usize, dump: &ComparedDump, run: usize) -> bool {
        let mut slots = dump.runs[run].slots.iter().enumerate();
        slots.any(|(at, slot)| {
            let is_in_parts = slot.whole().is_some() || slot.parts_problem().is_some();
            let value = self.sides[side].value_of(SlotRef { run, slot: at });
            is_in_parts && value.is_none()
        })
    }

    /// An input from outside that the golden side has nowhere, where the golden operator reads such
    /// a one as well.
    fn changed_outside(
        &self,
        sides: MatchedDumps<'_>,
        [target, golden]: [usize; 2],
    ) -> Option<SlotRef> {
        let dumps = [sides.target, sides.golden];
        // The golden side may add a bias in a separate operator.
        let made = self.sides[1].outputs.get(&golden).into_iter().flatten();
        let inner = made.filter(|value| self.equals[1][value.0].is_none());
        let next = inner.flat_map(|value| &self.sides[1].values[value.0].readers);
        let next = next.filter(|run| {
            is_additive(&sides.golden.runs[**run].op_type)
                && !is_additive(&sides.golden.runs[golden].op_type)
                && n_inputs(&sides.target.runs[target]) > n_inputs(&sides.golden.runs[golden])
        });
        let of_golden: Vec<&DumpValue> = std::iter::once(&golden)
            .chain(next)
            .flat_map(|run| self.sides[1].inputs_of(*run))
            .filter(|value| self.equals[1][value.0].is_none())
            .map(|value| &self.sides[1].values[value.0])
            .filter(|of| of.is_outside && !of.is_extents)
            .collect();
        let has_size = |n: u64| of_golden.iter().any(|of| of.stats.counts.n_elements == n);
        // A folded weight has no direct counterpart.
        let is_norm_behind = !self.norms_behind(sides.golden, 1, golden).is_empty();
        let mut inputs = sides.target.inputs_of(target);
        inputs.find(|&place| {
            let value = self.sides[0].value_of(place);
            value.is_some_and(|value| {
                let n = self.sides[0].values[value.0].stats.counts.n_elements;
                self.is_outside_orphan(0, value)
                    && (has_size(n) || is_norm_behind)
                    && !self.is_folded(dumps, 0, place, golden)
                    && !self.is_scaled(place, &of_golden, sides.target)
            })
        })
    }

    /// Whether a weight times the number by which the target multiplies its operator's output is one
    /// of golden's, in any order: an optimiser multiplies it in.
    fn is_scaled(&self, place: SlotRef, golden: &[&DumpValue], target: &ComparedDump) -> bool {
        let side = &self.sides[0];
        let Some(own) = side
            .value_of(place)
            .map(|value| &side.values[value.0].stats)
        else {
            return false;
        };
        let made = side.outputs.get(&place.run).into_iter().flatten();
        let readers = made.flat_map(|value| &side.values[value.0].readers);
        let products = readers.filter(|run| plain_type(&target.runs[**run].op_type) == "mul");
        let read = products.flat_map(|run| side.inputs_of(*run));
        let factors = read.map(|value| &side.values[value.0]);
        let mut factors = factors.filter(|of| of.is_outside && of.stats.min == of.stats.max);
        let is_near = |a: f64, b: f64| (a - b).abs() <= SAME_NORM * a.abs().max(b.abs());
        factors.any(|factor| {
            let scaled = own.l2 * factor.stats.max.abs();
            golden.iter().any(|of| is_near(of.stats.l2, scaled))
        })
    }

    /// The slot at which a value from outside came in, before operators turned it.
    fn before_views(&self, dump: &ComparedDump, mut place: SlotRef) -> SlotRef {
        let side = &self.sides[0];
        // Each step leads to an operator that ran before.
        while let Some(value) = side.value_of(place) {
            let first = side.first_slot(value);
            let origin = dump.inputs_of(first.run).find(|slot| {
                let read = side.value_of(*slot);
                read.is_some_and(|read| read != value && self.is_orphan(0, read))
            });
            match origin.filter(|_| first.run < place.run) {
                Some(slot) => place = slot,
                None => break,
            }
        }
        place
    }
}

/// Whether all outputs of an operator exactly equal its partner's. Zeros and small numbers are too
/// common to count as values, so the golden side may seem to lack them.
fn gives_the_same(operator: &OperatorResult) -> bool {
    let mut outputs = operator.outputs();
    outputs.clone().next().is_some()
        && outputs.all(|slot| {
            let is_equal = slot.metrics.get(MetricId::MaxAbs) == Some(0.0);
            slot.level == VerdictLevel::Pass && slot.agreement.is_none() && is_equal
        })
}
