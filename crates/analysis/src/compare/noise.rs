//! Updates of parameters whose gradients are nothing but rounding.
//!
//! The gradient of a bias that has no effect, such as that of attention's keys, is a sum of terms
//! that cancel. What is left is the rounding of the sum, in another order another number, and
//! optimizers that divide a gradient by its size make a whole step of it. Two sound runs differ in
//! all of that.

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;

use super::attribution::kinds::plain_type;
use super::matching::{MatchedDumps, SlotRef, has_elements_of_input, is_view, updated_parameters};
use super::result::{Comparison, MetricId, SlotAgreement, SlotResult, VerdictLevel};
use super::side::ComparedDump;
use super::verdict::{sum_rounding, value_of};

/// The phase that updates parameters.
const OPTIMIZER: &str = "optimizer";
/// Types that make a gradient smaller, or keep its size.
const SCALING: [&str; 4] = ["div", "div_", "detach", "clone"];

/// Types whose results are rounding if an operand is nothing else.
const MULTIPLYING: [&str; 6] = ["mul", "mul_", "pow", "square", "neg", "sum"];

/// Excuses slots that differ because of such gradients alone.
pub(super) fn note(comparison: &mut Comparison, sides: MatchedDumps<'_>) {
    let golden = sides.golden;
    if !(0..golden.runs.len()).any(|run| golden.phase_of(run) == Some(OPTIMIZER)) {
        return;
    }
    let pairs = sides.matching.pairs.iter().enumerate();
    let operators: HashMap<usize, usize> = pairs
        .filter_map(|(i, pair)| Some((*pair.golden.last()?, i)))
        .collect();
    let all: Vec<usize> = (0..golden.runs.len()).collect();
    let mut search = NoiseSearch {
        comparison,
        golden,
        owners: updated_parameters(golden, &all).into_iter().collect(),
        operators,
        floors: HashMap::new(),
        is_noise: HashSet::new(),
        states: HashSet::new(),
        parameters: HashSet::new(),
    };
    let found: Vec<[usize; 2]> = (0..golden.runs.len())
        .flat_map(|run| search.excused(run))
        .collect();
    for [operator, slot] in found {
        let slot = &mut comparison.operators[operator].slots[slot];
        slot.change_rare(|rare| {
            rare.agreement.get_or_insert(SlotAgreement::Rounding);
        });
    }
}

struct NoiseSearch<'a> {
    comparison: &'a Comparison,
    golden: &'a ComparedDump,
    /// By execution, the parameter that it helps to update.
    owners: HashMap<usize, String>,
    /// By golden's execution, the operator of the result.
    operators: HashMap<usize, usize>,
    /// By execution, up to which distance its results are nothing but rounding.
    floors: HashMap<usize, f64>,
    /// Executions whose results are no larger than that.
    is_noise: HashSet<usize>,
    /// Optimizer state that holds noise, by the operator that writes it.
    states: HashSet<[String; 2]>,
    /// Parameters that were updated by noise.
    parameters: HashSet<String>,
}

impl NoiseSearch<'_> {
    /// Slots of the result that differ by noise, of an execution.
    fn excused(&mut self, run: usize) -> Vec<[usize; 2]> {
        let execution = &self.golden.runs[run];
        let inputs = self.golden.inputs_of(run);
        let of_inputs = inputs
            .map(|slot| self.floor(slot))
            .fold(0.0, |a: f64, b| a.max(b));
        let operator = self.operators.get(&run).copied();
        if self.golden.phase_of(run) == Some(OPTIMIZER) {
            return operator.map_or(Vec::new(), |operator| self.update(run, operator, of_inputs));
        }
        let slots = operator.map_or(&[][..], |operator| {
            &self.comparison.operators[operator].slots[..]
        });
        let own = sum_rounding(&execution.op_type, slots).unwrap_or(0.0);
        let name = plain_type(&execution.op_type);
        let is_passed_on = is_view(execution)
            || has_elements_of_input(execution)
            || SCALING.contains(&&*name)
            || execution.collective.is_some();
        let size = slots.iter().filter(|slot| slot.is_output()).map(size);
        let size = size.fold(0.0, f64::max);
        let floor = if MULTIPLYING.contains(&&*name) && self.reads_noise(run) {
            size
        } else {
            own.max(if is_passed_on { of_inputs } else { 0.0 })
        };
        if floor > 0.0 {
            self.floors.insert(run, floor);
            if size <= floor {
                self.is_noise.insert(run);
            }
        }
        let found = slots.iter().enumerate().filter_map(|(k, slot)| {
            let is_noise = if slot.is_output() {
                is_within(slot, floor)
            } else {
                let at = self.slot_of(run, slot);
                let read = at.map_or(0.0, |at| self.floor(at));
                let name = at.and_then(|at| self.golden.parameter_of(at));
                let is_updated = name.is_some_and(|name| self.parameters.contains(&name));
                is_within(slot, read) || is_updated && is_like_finite(slot)
            };
            (is_noise && differs(slot)).then_some(k)
        });
        found.filter_map(|k| Some([operator?, k])).collect()
    }

    /// The same of an operator of the optimizer: all that differs among its inputs has to be noise.
    fn update(&mut self, run: usize, operator: usize, of_inputs: f64) -> Vec<[usize; 2]> {
        let execution = &self.golden.runs[run];
        let slots = &self.comparison.operators[operator].slots;
        let key = [&execution.op_type, &execution.op_name].map(ToString::to_string);
        let inputs = slots.iter().filter(|slot| !slot.is_output());
        let owner = self.owners.get(&run);
        let is_known = owner.is_some_and(|name| self.parameters.contains(name));
        let has_state = is_known || self.states.contains(&key);
        let has_noise = of_inputs > 0.0 || has_state;
        let differing: Vec<&SlotResult> = inputs.filter(|slot| differs(slot)).collect();
        let is_noise = differing.iter().all(|slot| {
            let floor = self.slot_of(run, slot).map_or(0.0, |at| self.floor(at));
            slot.slot.index == 0 && has_state && is_like_finite(slot) || is_within(slot, floor)
        });
        if !has_noise || differing.is_empty() || !is_noise {
            return Vec::new();
        }
        // Divided by its size, noise becomes a whole step.
        self.floors.insert(run, f64::INFINITY);
        self.states.insert(key);
        self.parameters.extend(owner.cloned());
        let slots = slots.iter().enumerate();
        let differing = slots.filter(|(_, slot)| differs(slot) && is_like_finite(slot));
        differing.map(|(k, _)| [operator, k]).collect()
    }

    fn reads_noise(&self, run: usize) -> bool {
        let mut made = self.golden.inputs_of(run);
        made.any(|slot| {
            let made = self.golden.producer_of(slot);
            made.is_some_and(|made| self.is_noise.contains(&made.run))
        })
    }

    /// Up to which distance an input is nothing but rounding.
    fn floor(&self, input: SlotRef) -> f64 {
        let made = self.golden.producer_of(input);
        let floor = made.and_then(|made| self.floors.get(&made.run));
        floor.copied().unwrap_or(0.0)
    }

    fn slot_of(&self, run: usize, slot: &SlotResult) -> Option<SlotRef> {
        let mut slots = self.golden.runs[run].slots.iter();
        let at = slots.position(|own| own.side == SlotSide::Input && own.key() == slot.slot)?;
        Some(SlotRef { run, slot: at })
    }
}

/// The norms of both sides together: the largest distance that tensors of this size may have.
fn size(slot: &SlotResult) -> f64 {
    let norms = [MetricId::TargetL2Norm, MetricId::GoldenL2Norm];
    let norms = norms.map(|norm| value_of(slot, norm).unwrap_or(f64::INFINITY));
    norms.into_iter().sum()
}

fn differs(slot: &SlotResult) -> bool {
    slot.level >= VerdictLevel::Warn
}

fn is_within(slot: &SlotResult, floor: f64) -> bool {
    floor > 0.0 && is_like_finite(slot) && slot.absolute_distance().is_some_and(|of| of <= floor)
}

/// Whether no NaN or infinity of one side is missing on the other: rounding makes none, and they are
/// left out of distances.
fn is_like_finite(slot: &SlotResult) -> bool {
    value_of(slot, MetricId::NonFiniteMismatches) == Some(0.0)
}
