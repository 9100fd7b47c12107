//! Finds where a quantized model loses most.
//!
//! Quantization changes every value, so float limits do not apply. Two things are significant:
//! codes that are read with other parameters than they were written with, and the operator that
//! adds most to the error of its inputs.

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;
use opscope_tensor::{ElementKind, Stats, digest_and_stats};

use super::ContractOptions;
use crate::compare::attribution::distance::slot_distance;
use crate::compare::matching::{MatchedDumps, SlotPair, SlotRef, is_same_type};
use crate::compare::measure::{MeasureOptions, measure_pair};
use crate::compare::result::{
    CodesParameter, Comparison, Contract, MetricId, OperatorName, OperatorResult, OtherCodes,
    QuantisedLoss, SlotKey, SlotResult,
};
use crate::compare::side::{ComparedDump, ExecutionSlot};
use crate::compare::statistics::table_stats;
use crate::compare::verdict::{is_float_name, value_of};
use crate::elements::LastFile;

/// Maximum number of operators between a value that was compared and the next one.
const N_MEMBERS_MAX: usize = 64;
/// The relative error of rounding to 8 bits; smaller errors are indistinguishable.
const ROUNDING: f64 = 0.01;
/// Minimum ratio of the distance of an output to that of its operator's inputs.
const GROWTH_MIN: f64 = 1.5;
/// The parts of the outputs' distance, and of a loss, that have to be there all the way between
/// them.
const CARRIED_OF_END: f64 = 0.25;
const CARRIED_OF_LOSS: f64 = 0.05;
/// The minimum distance of unrelated values.
const UNRELATED: f64 = 2.0;
/// From this distance before the codes on, their contribution is unknown.
const UNSURE_MIN: f64 = 0.2;
/// The minimum size of a loss, as a part of the outputs' distance: most of it.
const LOSS_OF_END: f64 = 0.7;
/// The least that codes which are read otherwise add to the distance before them, as errors that
/// know nothing of each other add up.
const ADDED_MIN: f64 = 0.02;
/// Operators that turn an absolute change of the input into a relative change of the output.
const EXPONENTIALS: [&str; 3] = ["Exp", "LogSoftmax", "Softmax"];

/// The place with the strongest evidence: parameters that do not match, else the largest growth.
pub(super) fn find(
    contract: &Contract,
    comparison: &Comparison,
    sides: MatchedDumps<'_>,
    options: ContractOptions<'_>,
) -> Option<QuantisedLoss> {
    let walk = Walk::new(comparison, sides);
    walk.other_codes(options.measure).or_else(|| {
        let at_end = contract.distance(comparison).unwrap_or(0.0);
        let loss = walk.largest_growth(at_end)?;
        Some(walk.without_quantisers(loss, options.measure))
    })
}

/// The target's graph with the known distances of its values.
struct Walk<'a> {
    target: &'a ComparedDump,
    sides: MatchedDumps<'a>,
    operators: &'a [OperatorResult],
    /// Distances of float outputs.
    apart: HashMap<SlotRef, f64>,
    /// The index in the list of each execution of the target.
    of_run: HashMap<usize, usize>,
}

/// Operators between compared values and a value that an operator of the list reads.
struct Region {
    members: Vec<usize>,
    /// The largest distance of the values before them.
    before: f64,
}

impl<'a> Walk<'a> {
    fn new(comparison: &'a Comparison, sides: MatchedDumps<'a>) -> Walk<'a> {
        let mut walk = Walk {
            target: sides.target,
            sides,
            operators: &comparison.operators,
            apart: HashMap::new(),
            of_run: HashMap::new(),
        };
        let pairs = sides.matching.pairs.iter().zip(&comparison.operators);
        for (pair, operator) in pairs {
            let runs = pair.target.iter().map(|&run| (run, operator.index));
            walk.of_run.extend(runs);
            let slots = pair.slots.iter().zip(&operator.slots);
            let outputs = slots.filter(|(_, slot)| slot.is_output() && is_of_floats(slot));
            let outputs = outputs.map(|(places, slot)| (places.target, slot_distance(slot)));
            walk.apart.extend(outputs);
        }
        walk
    }

    /// Inputs of an operator of the list that are of floats on both sides, and their places.
    fn inputs(
        &self,
        operator: &'a OperatorResult,
    ) -> impl Iterator<Item = (SlotRef, &'a SlotResult)> {
        let slots = self.sides.matching.pairs[operator.index].slots.iter();
        let slots = slots.zip(&operator.slots);
        let inputs = slots.filter(|(_, slot)| !slot.is_output() && is_of_floats(slot));
        inputs.map(|(places, slot)| (places.target, slot))
    }

    /// The operators between compared values and the given ones.
    fn region_before(&self, mut open: Vec<SlotRef>) -> Option<Region> {
        let mut region = Region {
            members: Vec::new(),
            before: 0.0,
        };
        while let Some(made) = open.pop() {
            if let Some(distance) = self.apart.get(&made) {
                region.before = region.before.max(*distance);
            } else if !region.members.contains(&made.run) && !self.is_constant(made.run) {
                if region.members.len() == N_MEMBERS_MAX {
                    return None;
                }
                region.members.push(made.run);
                open.extend(self.read_by(made.run));
            }
        }
        Some(region)
    }

    /// Whether an execution reads only constants, such as one that reshapes a bias.
    fn is_constant(&self, run: usize) -> bool {
        self.target
            .inputs_of(run)
            .all(|slot| self.target.is_constant(slot))
    }

    /// The values that an execution reads, as they were made.
    fn read_by(&self, run: usize) -> impl Iterator<Item = SlotRef> {
        self.target
            .inputs_of(run)
            .filter_map(|slot| self.target.producer_of(slot))
    }

    /// The operator that adds most to the error of its inputs, if one stands out.
    fn largest_growth(&self, at_end: f64) -> Option<QuantisedLoss> {
        let inputs = (self.operators.iter()).flat_map(|one| {
            let inputs = self.inputs(one);
            inputs.filter_map(|(place, slot)| self.before_input(one, place, slot))
        });
        let read = self.largest_read();
        let outputs = (self.operators.iter()).filter_map(|one| self.of_output(one, &read));
        let carried = self.carried();
        let growth = |loss: &QuantisedLoss| loss.behind / (loss.before + ROUNDING);
        let losses = inputs.chain(outputs).filter(|loss| loss.behind.is_finite());
        let losses =
            losses.filter(|loss| growth(loss) >= GROWTH_MIN && loss.behind >= at_end * LOSS_OF_END);
        // A loss of one operator fades where its output is added to others, though not at once. A
        // value that agrees again before it reaches an output is not a loss: its real partner is
        // another one.
        let losses = losses.filter(|loss| {
            let least = carried[loss.operator];
            let loss = loss.behind.min(UNRELATED);
            least >= at_end * CARRIED_OF_END && least >= loss * CARRIED_OF_LOSS
        });
        // The first of equal ones, so that the result does not depend on threads and maps.
        losses.reduce(|most, next| {
            if growth(&next) > growth(&most) {
                next
            } else {
                most
            }
        })
    }

    /// A loss without the quantisers whose own rounding is less than half of it, where another
    /// operator is left.
    fn without_quantisers(
        &self,
        loss: QuantisedLoss,
        measure: MeasureOptions<'_>,
    ) -> QuantisedLoss {
        let both = MatchedDumps {
            golden: self.target,
            reference: None,
            ..self.sides
        };
        // Both sides of the measurement are values of the target: those written as codes, and those
        // read from them.
        let mut names: Vec<OperatorName> = vec![loss.name.clone()];
        names.extend(loss.others.iter().cloned());
        let reader = self.operators[loss.operator].target.last();
        let runs = self.target.runs.iter().enumerate();
        let named = runs.filter(|(_, run)| run.op_type.as_str() == "DequantizeLinear");
        let named: Vec<usize> = named
            .map(|(run, _)| run)
            .filter(|&run| names.contains(&self.name(run)))
            .collect();
        for dequantiser in named {
            let codes = self.target.inputs_of(dequantiser).next();
            let written = codes.and_then(|codes| self.target.producer_of(codes));
            let values = written.and_then(|written| self.target.inputs_of(written.run).next());
            let slots = self.target.runs[dequantiser].slots.iter();
            let output = slots
                .map(|slot| slot.side)
                .position(|side| side == SlotSide::Output);
            let (Some(written), Some(values), Some(slot)) = (written, values, output) else {
                continue;
            };
            let output = SlotRef {
                run: dequantiser,
                slot,
            };
            let result = measure_pair(both, SlotPair::plain(output, values), measure);
            if result.is_ok_and(|rounded| 2.0 * slot_distance(&rounded) < loss.behind) {
                let quantisers = [self.name(dequantiser), self.name(written.run)];
                names.retain(|name| !quantisers.contains(name));
            }
        }
        let is_narrower = names.len() <= loss.others.len();
        match names.iter().position(|name| Some(name) != reader) {
            Some(first) if is_narrower => {
                let name = names.remove(first);
                QuantisedLoss {
                    name,
                    others: names,
                    ..loss
                }
            }
            _ => loss,
        }
    }

    /// By operator, the smallest distance on the way to an output, on the way where it is largest.
    fn carried(&self) -> Vec<f64> {
        // Readers come later in the list, so that from its end each is known before its makers are.
        let mut carried = vec![f64::INFINITY; self.operators.len()];
        for operator in self.operators.iter().rev() {
            let outputs = operator.outputs();
            let own = outputs.filter(|slot| is_of_floats(slot)).map(slot_distance);
            let own = own.reduce(f64::max).unwrap_or(f64::INFINITY);
            let next = operator.readers.iter().map(|[_, reader]| carried[*reader]);
            carried[operator.index] = own.min(next.reduce(f64::max).unwrap_or(own));
        }
        carried
    }

    /// The growth between values that were compared and an input.
    fn before_input(
        &self,
        operator: &OperatorResult,
        place: SlotRef,
        slot: &SlotResult,
    ) -> Option<QuantisedLoss> {
        // A value computed from constants is a weight.
        let made = self.target.producer_of(place);
        let made = made.filter(|made| !self.is_constant(made.run))?;
        let Region { members, before } = self.region_before(vec![made])?;
        let behind = slot_distance(slot);
        if behind < GROWTH_MIN * (before + ROUNDING) {
            return None;
        }
        let reader = operator.target.last()?;
        let mut names = members.iter().map(|&run| self.name(run));
        let first = names.next();
        // The reader may read the wrong one of several uncompared values.
        let others = first.iter().map(|_| reader.clone()).chain(names);
        Some(QuantisedLoss {
            operator: operator.index,
            // An input with a larger distance than the value that it should read reads another one.
            slot: first.as_ref().map_or(slot.slot, |_| OUTPUT),
            others: others.collect(),
            name: first.unwrap_or_else(|| reader.clone()),
            before,
            behind,
            codes: None,
        })
    }

    /// Whether both sides have one operator of the same type, and all that golden's reads is compared.
    fn is_alike(&self, operator: &OperatorResult) -> bool {
        let pair = &self.sides.matching.pairs[operator.index];
        let ([target], [golden]) = (&pair.target[..], &pair.golden[..]) else {
            return false;
        };
        let dump = self.sides.golden;
        let compared = operator.inputs();
        is_same_type(&self.target.runs[*target], &dump.runs[*golden])
            && compared.count() == dump.inputs_of(*golden).count()
    }

    /// By output, the largest distance at which an operator of the list reads it.
    fn largest_read(&self) -> HashMap<SlotRef, f64> {
        let mut read = HashMap::new();
        for operator in self.operators {
            for (place, slot) in self.inputs(operator) {
                if let Some(made) = self.target.producer_of(place) {
                    let largest: &mut f64 = read.entry(made).or_default();
                    *largest = largest.max(slot_distance(slot));
                }
            }
        }
        read
    }

    /// The growth from an operator's inputs to its output.
    fn of_output(
        &self,
        operator: &OperatorResult,
        read: &HashMap<SlotRef, f64>,
    ) -> Option<QuantisedLoss> {
        let name = operator.target.last()?;
        let pair = &self.sides.matching.pairs[operator.index];
        let mut slots = pair.slots.iter().zip(&operator.slots);
        let (place, output) = slots.find(|(_, slot)| slot.is_output() && is_of_floats(slot))?;
        // Its readers must show the difference too; else its partner produces another value.
        let is_seen = match read.get(&place.target) {
            Some(seen) => 2.0 * seen >= slot_distance(output),
            None => operator.is_certain || self.is_alike(operator),
        };
        if !is_seen {
            return None;
        }
        let (before, others) = if self.has_known_inputs(operator) {
            let is_exponential = EXPONENTIALS.contains(&name.op_type.as_str());
            let read = self.inputs(operator).map(|(_, slot)| {
                let absolute = value_of(slot, MetricId::MaxAbs).filter(|_| is_exponential);
                slot_distance(slot).max(absolute.unwrap_or(0.0))
            });
            (read.fold(0.0, f64::max), Vec::new())
        } else {
            let region = self.region_before(self.read_by(place.target.run).collect())?;
            let members = region.members.into_iter().map(|run| self.name(run));
            (region.before, members.collect())
        };
        Some(QuantisedLoss {
            operator: operator.index,
            name: name.clone(),
            slot: output.slot,
            others,
            before,
            behind: slot_distance(output),
            codes: None,
        })
    }

    fn name(&self, run: usize) -> OperatorName {
        OperatorName::for_execution(&self.target.runs[run])
    }

    /// Whether everything that an operator reads was compared, or is a constant.
    fn has_known_inputs(&self, operator: &OperatorResult) -> bool {
        let pair = &self.sides.matching.pairs[operator.index];
        let compared: Vec<SlotRef> = self.inputs(operator).map(|(place, _)| place).collect();
        let mut inputs = (pair.target.iter()).flat_map(|&run| self.target.inputs_of(run));
        inputs.all(|slot| compared.contains(&slot) || self.target.producer_of(slot).is_none())
    }

    /// A dequantizer that reads codes with other parameters than they were written with: one whose
    /// output shows it, else one whose output was not compared.
    fn other_codes(&self, measure: MeasureOptions<'_>) -> Option<QuantisedLoss> {
        let runs = self.target.runs.iter().enumerate();
        let readers = runs.filter(|(_, run)| run.op_type.as_str() == "DequantizeLinear");
        let mut regions: Option<HashMap<usize, (usize, [f64; 2])>> = None;
        let mut unmeasured = None;
        // Parameters are constants, and the same in every step.
        let mut seen = HashSet::new();
        for (reader, run) in readers {
            if !seen.insert((run.place.rank, &run.op_name)) {
                continue;
            }
            let Some((writer, parameter)) = self.mismatch(reader, measure) else {
                continue;
            };
            let regions = regions.get_or_insert_with(|| self.readers_of_regions());
            let measured = regions
                .get(&reader)
                .filter(|(_, [before, _])| *before < UNSURE_MIN);
            let (operator, [before, behind]) = match measured {
                Some(measured) => *measured,
                None => (self.first_after(reader)?, [0.0, f64::INFINITY]),
            };
            // A factor that the graph multiplied into a scale has no effect afterwards.
            if behind < before.hypot(ADDED_MIN) {
                continue;
            }
            let [wrong, other] = if self.is_writer_wrong([reader, writer], parameter) {
                [writer, reader]
            } else {
                [reader, writer]
            };
            let loss = QuantisedLoss {
                operator,
                name: self.name(wrong),
                others: Vec::new(),
                slot: SlotKey {
                    side: SlotSide::Input,
                    index: parameter.index(),
                },
                before,
                behind,
                codes: Some(OtherCodes {
                    other: self.name(other),
                    parameter,
                }),
            };
            if measured.is_some() {
                return Some(loss);
            }
            unmeasured.get_or_insert(loss);
        }
        unmeasured
    }

    /// The operator whose codes a dequantiser reads with another parameter, which golden does not.
    fn mismatch(
        &self,
        reader: usize,
        measure: MeasureOptions<'_>,
    ) -> Option<(usize, CodesParameter)> {
        let codes = self.target.inputs_of(reader).next()?;
        let writer = self.target.producer_of(codes)?.run;
        // Constants that were quantised beforehand have no writer; their values are weights.
        let is_writer = self.target.runs[writer].op_type.as_str() == "QuantizeLinear";
        let parameter = is_writer.then(|| self.other_parameter([reader, writer], measure))??;
        (!self.is_in_golden([reader, writer])).then_some((writer, parameter))
    }

    /// The first operator of the list that the target ran after an execution, or the last one; none
    /// if nothing was compared.
    fn first_after(&self, run: usize) -> Option<usize> {
        let after = self.of_run.iter().filter(|(own, _)| **own >= run).min();
        let last = self.operators.len().checked_sub(1);
        after.map(|(_, operator)| *operator).or(last)
    }

    /// By operator without a compared output, the first of the list that reads its result, and the
    /// distances before and after it.
    fn readers_of_regions(&self) -> HashMap<usize, (usize, [f64; 2])> {
        let mut readers = HashMap::new();
        for operator in self.operators {
            for (place, slot) in self.inputs(operator) {
                let made = self.target.producer_of(place);
                let Some(region) = made.and_then(|made| self.region_before(vec![made])) else {
                    continue;
                };
                let distances = [region.before, slot_distance(slot)];
                for member in region.members {
                    readers.entry(member).or_insert((operator.index, distances));
                }
            }
        }
        readers
    }

    /// The parameter of which a dequantiser has another value than the quantiser before it.
    fn other_parameter(
        &self,
        runs: [usize; 2],
        measure: MeasureOptions<'_>,
    ) -> Option<CodesParameter> {
        let both = MatchedDumps {
            golden: self.target,
            reference: None,
            ..self.sides
        };
        let parameters = [CodesParameter::Scale, CodesParameter::ZeroPoint];
        parameters.into_iter().find(|parameter| {
            let [Some(read), Some(written)] = runs.map(|run| self.slot(run, parameter.index()))
            else {
                return false;
            };
            let result = measure_pair(both, SlotPair::plain(read, written), measure);
            result.is_ok_and(|slot| slot.evidence.is_measured() && slot_distance(&slot) > 0.0)
        })
    }

    /// Whether both have a partner with the same parameters, so that the golden side does the same.
    fn is_in_golden(&self, runs: [usize; 2]) -> bool {
        let parameters = [CodesParameter::Scale, CodesParameter::ZeroPoint];
        runs.into_iter().all(|run| {
            let Some(operator) = self.of_run.get(&run).map(|&index| &self.operators[index]) else {
                return false;
            };
            parameters.iter().all(|parameter| {
                let mut slots = operator.inputs();
                let slot = slots.find(|slot| slot.slot.index == parameter.index());
                match slot {
                    Some(slot) => slot_distance(slot) == 0.0,
                    None => self.slot(run, parameter.index()).is_none(),
                }
            })
        })
    }

    /// Whether the quantiser's parameter is farther than the dequantiser's from what the range of its
    /// values asks for.
    fn is_writer_wrong(&self, runs: [usize; 2], parameter: CodesParameter) -> bool {
        let [read, written] = runs.map(|run| {
            let slot = self.slot(run, parameter.index())?;
            Some(self.stats(slot)?.mean)
        });
        let (Some(read), Some(written)) = (read, written) else {
            return false;
        };
        let expected = self.expected(runs[1], parameter).unwrap_or_default();
        let [written, read] = [written, read].map(|value| {
            let distances = expected.iter().map(|expected| match parameter {
                CodesParameter::Scale => (value / expected).ln().abs(),
                CodesParameter::ZeroPoint => (value - expected).abs(),
            });
            distances.fold(f64::INFINITY, f64::min)
        });
        written > read
    }

    /// The parameters that use all codes for the values that a quantiser reads: of a range of its
    /// own, and of one that is the same on both sides of zero.
    fn expected(&self, writer: usize, parameter: CodesParameter) -> Option<[f64; 2]> {
        // A range without zero is widened to it, as quantisers do: padding has to have a code.
        let values = self.stats(self.slot(writer, 0)?)?;
        let [low, high] = [values.min.min(0.0), values.max.max(0.0)];
        let mut slots = self.target.runs[writer].slots.iter();
        let dtype = slots.find(|slot| slot.side == SlotSide::Output)?.dtype?;
        let n_codes = 2.0_f64.powi(i32::try_from(dtype.bits()?).ok()?);
        let lowest = match dtype.kind() {
            ElementKind::Signed => -n_codes / 2.0,
            _ => 0.0,
        };
        let scale = (high - low) / (n_codes - 1.0);
        Some(match parameter {
            CodesParameter::Scale => [scale, 2.0 * high.max(-low) / (n_codes - 1.0)],
            CodesParameter::ZeroPoint => [lowest - low / scale, lowest + n_codes / 2.0],
        })
    }

    fn slot(&self, run: usize, index: u32) -> Option<SlotRef> {
        let slot = self.target.runs[run]
            .slots
            .iter()
            .position(|slot| slot.side == SlotSide::Input && slot.index == index)?;
        Some(SlotRef { run, slot })
    }

    fn stats(&self, at: SlotRef) -> Option<Stats> {
        let slot: &ExecutionSlot = self.target.slot(at);
        if !slot.has_elements {
            return table_stats(slot);
        }
        let read = slot.with_elements(&mut LastFile::default(), |view| {
            digest_and_stats(view).1.ok().map(|computed| computed.stats)
        });
        read.ok()?
    }
}

const OUTPUT: SlotKey = SlotKey {
    side: SlotSide::Output,
    index: 0,
};

fn is_of_floats(slot: &SlotResult) -> bool {
    slot.evidence.is_measured()
        && [&slot.target, &slot.golden].map(|side| is_float_name(&side.dtype)) == [true, true]
}
