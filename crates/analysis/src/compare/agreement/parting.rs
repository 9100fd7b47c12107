//! Operators at which both sides diverge.
//!
//! Such an operator of the target only reads values that the golden side has too, and produces one
//! that it lacks. Later differences may come from it, so nothing else is accused.

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;

use super::ComparedValues;
use super::folding::share_most;
use super::readers::GoldenReaders;
use super::region::{LearnedRegions, RegionCulprit};
use super::shifted::{ExtraOperators, shifted};
use super::values::{IDLE_TYPES, ValueIndex, is_one_of};
use crate::compare::attribution::kinds::has_body;
use crate::compare::matching::{SlotRef, is_same_type, is_view};
use crate::compare::side::{ComparedDump, OperatorExecution};
use crate::compare::whole;

/// An operator of the target at which the sides part, and the golden side's that reads the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartingPair {
    pub(super) target: usize,
    pub(super) golden: Option<usize>,
    /// Other operators of the target that are the same operator of the golden side, and may be at
    /// fault as well.
    pub(super) others: Vec<usize>,
    /// Whether they read weights that have most elements in common.
    pub(super) shares_weight: bool,
    /// Whether it is known which operators of the target are the golden side's.
    pub(super) is_learned: bool,
    /// Operators that one side has before them and the other lacks.
    pub(super) extra: Option<ExtraOperators>,
}

impl PartingPair {
    pub(super) fn new(target: usize, golden: Option<usize>, others: Vec<usize>) -> PartingPair {
        PartingPair {
            target,
            golden,
            others,
            shares_weight: false,
            is_learned: false,
            extra: None,
        }
    }

    /// Operators before which one side has others.
    fn behind(runs: [usize; 2], extra: ExtraOperators) -> PartingPair {
        PartingPair {
            extra: Some(extra),
            ..PartingPair::new(runs[0], Some(runs[1]), Vec::new())
        }
    }
}

/// Maximum number of weight pairs that are checked for a partial change.
const N_WEIGHT_PAIRS_MAX: usize = 256;
/// Types of operators that round their input to separate steps, or convert its layout.
const FORMATTING_TYPES: [&str; 4] = [
    "QuantizeLinear",
    "DequantizeLinear",
    "ReorderInput",
    "ReorderOutput",
];
/// Maximum number of preceding operators that are checked for such an operator.
const N_IDLE_MAX: usize = 64;

/// Whether an execution only cuts or joins what ranks have in parts.
fn moves_parts(dumps: [&ComparedDump; 2], side: usize, run: usize) -> bool {
    dumps.iter().any(|dump| dump.is_whole) && whole::moves_parts(dumps[side], run)
}

/// Whether one of two executions cuts or joins what one process has whole: nothing takes its place
/// there but one of its type.
fn joins_ranks(dumps: [&ComparedDump; 2], [target, golden]: [usize; 2]) -> bool {
    !is_same_type(&dumps[0].runs[target], &dumps[1].runs[golden])
        && (moves_parts(dumps, 0, target) || moves_parts(dumps, 1, golden))
}

/// Brings together operators at which both sides part: that read the same values and make others.
/// Of those that are together already, by one of several outputs, `anchored` has the golden side's.
pub(super) fn frontier(
    values: &ComparedValues,
    dumps: [&ComparedDump; 2],
    (anchored, is_taken): (&HashMap<usize, usize>, &mut [HashSet<usize>; 2]),
    regions: &LearnedRegions,
) -> Vec<PartingPair> {
    // These make another value, though not one that the other side computes.
    let [targets, goldens] = [0, 1].map(|i| {
        let mut parts = values.sides[i].frontier(&values.equals[i], &values.is_rejoined[i], i == 0);
        parts.retain(|(run, _)| {
            let run = &dumps[i].runs[*run];
            // A body may read any value around its operator.
            !is_one_of(&FORMATTING_TYPES, run) && !has_body(&run.op_type)
        });
        parts
    });
    let golden_readers = GoldenReaders::new(goldens);
    let live = values.sides[0].live();
    // Where what reads a value may not be shown, nothing is known to be unread.
    let shows_all = !dumps[0].shows_some_calls;
    let is_live = |run: &usize| !shows_all || live.contains(run);
    let (mut parting, mut alone) = (Vec::new(), Vec::new());
    let (mut targets, unread): (Vec<_>, Vec<_>) =
        targets.into_iter().partition(|(run, _)| is_live(run));
    targets.extend(unread);
    if !shows_all {
        retain_shown(values, &mut targets);
    }
    for (target, inputs) in targets {
        if let Some(&golden) = anchored.get(&target) {
            // A mean agrees where what is normalised by it does not.
            let is_one_type = is_same_type(&dumps[0].runs[target], &dumps[1].runs[golden]);
            if is_one_type && golden_readers.contains(golden) {
                parting.push(PartingPair::new(target, Some(golden), Vec::new()));
            }
            continue;
        }
        let golden = golden_readers
            .nearest(values, dumps, (target, &inputs), &is_taken[1])
            .or_else(|| fused_counterpart(dumps, target))
            .filter(|golden| !is_taken[1].contains(golden))
            .filter(|golden| !joins_ranks(dumps, [target, *golden]));
        let Some(golden) = golden else {
            let is_other = is_taken[0].contains(&target) || moves_parts(dumps, 0, target);
            let is_alone = !is_other && values.shows_readers(&inputs);
            alone.extend(is_alone.then_some(target));
            continue;
        };
        let idle = idle_before(values, dumps, target, &inputs);
        let idle = idle.filter(|run| !is_taken[0].contains(run));
        if idle.is_none()
            && let Some((runs, extra)) = shifted(values, dumps, [target, golden], is_taken)
        {
            let pair = values.without_effect(dumps, (target, &inputs), &extra);
            let pair = pair.unwrap_or_else(|| PartingPair::behind(runs, extra));
            is_taken[0].insert(pair.target);
            is_taken[1].extend(pair.golden);
            parting.push(pair);
            continue;
        }
        let culprit = match idle {
            Some(run) => Some(RegionCulprit::alone(run)),
            None => regions.culprit(values, dumps, [target, golden]),
        };
        let is_learned = culprit.is_some();
        let RegionCulprit { run, others } = culprit.unwrap_or(RegionCulprit::alone(target));
        if is_taken[0].insert(run) {
            is_taken[1].insert(golden);
            parting.push(PartingPair {
                is_learned,
                ..PartingPair::new(run, Some(golden), others)
            });
        }
    }
    leave_unread(dumps, &mut parting, alone, is_live);
    parting.extend(changed_weights(values, dumps, &parting));
    leave_constants(values, dumps, &mut parting);
    parting.sort_unstable();
    parting
}

/// Prefers operators whose results are read, and adds those without a counterpart.
///
/// An unread value has no effect: an operator whose input was replaced has lost its reader, and the
/// reader has lost its match.
fn leave_unread(
    dumps: [&ComparedDump; 2],
    parting: &mut Vec<PartingPair>,
    alone: Vec<usize>,
    is_live: impl Fn(&usize) -> bool,
) {
    let is_read = |pair: &PartingPair| is_live(&pair.target) || is_namesake(dumps, pair);
    if !alone.iter().any(&is_live) && !parting.iter().any(is_read) {
        return;
    }
    let (read, unread): (Vec<_>, Vec<_>) = parting.drain(..).partition(is_read);
    let mut left = unread.into_iter().map(|pair| pair.golden);
    parting.extend(read);
    let alone = alone.into_iter().filter(is_live);
    parting.extend(alone.map(|target| PartingPair::new(target, left.next().flatten(), Vec::new())));
}

/// Programs make tables and masks in many ways, so that other values of these tell little where
/// computed values diverge as well.
fn leave_constants(
    values: &ComparedValues,
    dumps: [&ComparedDump; 2],
    parting: &mut Vec<PartingPair>,
) {
    let is_constant = |pair: &PartingPair| {
        values.makes_constants(pair.target)
            || pair.golden.is_none() && values.makes_equal_numbers(pair.target)
    };
    if parting
        .iter()
        .any(|pair| pair.golden.is_some() && !is_constant(pair))
    {
        parting.retain(|pair| !is_constant(pair) || values.has_like_outputs(dumps, pair));
    }
}

/// Keeps the operators of the target of which all inputs are known: what else they read may be the
/// work of one that is not shown. That is a value from nowhere which the golden side has not, and
/// for which it has no other such value of as many elements, as it has for a changed weight.
fn retain_shown(values: &ComparedValues, targets: &mut Vec<(usize, Vec<ValueIndex>)>) {
    let n_elements = |side: usize, value: ValueIndex| {
        let of = &values.sides[side].values[value.0];
        of.stats.counts.n_elements
    };
    let goldens = (0..values.sides[1].values.len()).map(ValueIndex);
    let golden_lengths: HashSet<u64> = goldens
        .filter(|value| values.is_outside_orphan(1, *value))
        .map(|value| n_elements(1, value))
        .collect();
    targets.retain(|(run, _)| {
        values.sides[0].inputs_of(*run).all(|value| {
            !values.is_outside_orphan(0, value) || golden_lengths.contains(&n_elements(0, value))
        })
    });
}

/// Inputs that are tensors. MindSpore shows attributes as inputs of one element.
pub(super) fn n_inputs(run: &OperatorExecution) -> usize {
    let inputs = run.slots.iter().filter(|slot| slot.side == SlotSide::Input);
    inputs
        .filter(|slot| slot.shape.iter().flatten().any(|dim| *dim > 1))
        .count()
}

/// Whether an operator has its own name and type on the golden side.
fn is_namesake(dumps: [&ComparedDump; 2], pair: &PartingPair) -> bool {
    let target = &dumps[0].runs[pair.target];
    pair.golden.is_some_and(|golden| {
        let golden = &dumps[1].runs[golden];
        golden.op_name == target.op_name && is_same_type(target, golden)
    })
}

/// Operators that read a weight of which a part was changed. After a normalization the change may
/// have no effect, and then values never diverge.
fn changed_weights(
    values: &ComparedValues,
    dumps: [&ComparedDump; 2],
    known: &[PartingPair],
) -> Vec<PartingPair> {
    let [targets, goldens] = [0, 1].map(|side| {
        let all = values.sides[side].values.iter().enumerate();
        all.filter(move |(i, _)| values.is_outside_orphan(side, ValueIndex(*i)))
    });
    let mut of_length: HashMap<u64, Vec<SlotRef>> = HashMap::new();
    for (_, of) in goldens {
        let n = of.stats.counts.n_elements;
        of_length.entry(n).or_default().push(of.first);
    }
    // Where everything is another weight, such as that of another training, no pair is found,
    // however many are tried.
    let mut n_left = N_WEIGHT_PAIRS_MAX;
    let changed = targets.filter_map(|(_, of)| {
        let goldens = of_length.get(&of.stats.counts.n_elements)?;
        let goldens = &goldens[..goldens.len().min(n_left)];
        n_left -= goldens.len();
        let mut goldens = goldens.iter();
        let golden = goldens.find(|at| share_most(dumps[0].slot(of.first), dumps[1].slot(**at)))?;
        Some(PartingPair {
            target: values.reader_behind_views(dumps, 0, of.first.run),
            golden: Some(values.reader_behind_views(dumps, 1, golden.run)),
            others: Vec::new(),
            shares_weight: true,
            is_learned: true,
            extra: None,
        })
    });
    changed
        .filter(|pair| known.iter().all(|other| other.target != pair.target))
        .collect()
}

/// The golden operator into which an engine fused an operator and others. It may therefore read
/// more than the values at which both sides diverge, and these in another layout.
fn fused_counterpart(dumps: [&ComparedDump; 2], target: usize) -> Option<usize> {
    let (target, golden) = (&dumps[0].runs[target], &dumps[1].runs);
    let mut runs = golden.iter().enumerate().filter(|(_, run)| {
        let mut names = run.original_names.iter();
        run.place.step == target.place.step && names.any(|name| target.op_name == *name)
    });
    runs.next().map(|(run, _)| run)
}

/// The preceding operator that passes on one of the inputs and is declared a no-op. If the golden
/// side computes something from that input, the no-op has replaced the computation.
fn idle_before(
    values: &ComparedValues,
    dumps: [&ComparedDump; 2],
    reader: usize,
    inputs: &[ValueIndex],
) -> Option<usize> {
    // PyTorch clones a value on both sides. Only a clone more than on the golden side is a
    // replacement.
    (0..reader).rev().take(N_IDLE_MAX).find(|run| {
        let handed = values.handed_on(0, dumps[0], *run, inputs);
        handed.is_some_and(|value| {
            let golden =
                values.equals[0][value.0].map_or(0, |golden| values.n_idle(1, dumps[1], golden));
            values.n_idle(0, dumps[0], value) > golden
        })
    })
}

impl ComparedValues {
    /// The value that a declared no-op passes on.
    fn handed_on(
        &self,
        side: usize,
        dump: &ComparedDump,
        run: usize,
        values: &[ValueIndex],
    ) -> Option<ValueIndex> {
        let own = &self.sides[side];
        let outputs = own.outputs.get(&run).into_iter().flatten().copied();
        let mut handed = outputs.filter(|value| own.reads(run, *value) && values.contains(value));
        handed
            .next()
            .filter(|_| is_one_of(&IDLE_TYPES, &dump.runs[run]))
    }

    /// The target's operator of the type of one that it seems to lack, if its output is an input of
    /// its own that `reader` reads: multiplied by a weight of ones, for example.
    fn without_effect(
        &self,
        dumps: [&ComparedDump; 2],
        (reader, inputs): (usize, &[ValueIndex]),
        extra: &ExtraOperators,
    ) -> Option<PartingPair> {
        let (1, &[golden]) = (extra.side, &extra.runs[..]) else {
            return None;
        };
        let own = &self.sides[0];
        let runs = own.outputs.iter().filter(|(run, outputs)| {
            let mut outputs = outputs.iter();
            **run < reader
                && is_same_type(&dumps[0].runs[**run], &dumps[1].runs[golden])
                && outputs.any(|value| inputs.contains(value) && own.reads(**run, *value))
        });
        let target = runs.map(|(&run, _)| run).max()?;
        Some(PartingPair {
            is_learned: true,
            ..PartingPair::new(target, Some(golden), Vec::new())
        })
    }

    /// The operator that computes with the value that an operator passes on in another shape, or
    /// itself.
    fn reader_behind_views(&self, dumps: [&ComparedDump; 2], side: usize, mut run: usize) -> usize {
        let own = &self.sides[side];
        while is_view(&dumps[side].runs[run]) {
            let made = own.outputs.get(&run).into_iter().flatten();
            let readers = made.flat_map(|value| own.values[value.0].readers.iter().copied());
            // Each step leads to an operator that ran later.
            match readers.filter(|reader| *reader > run).min() {
                Some(reader) => run = reader,
                None => break,
            }
        }
        run
    }

    /// Whether all that an operator makes is one integer or boolean, zero or one. Another operator may
    /// make that too, and then what reads the one says nothing of the other.
    fn makes_equal_numbers(&self, target: usize) -> bool {
        let mut outputs = self.sides[0].outputs.get(&target).into_iter().flatten();
        outputs.all(|value| {
            let of = &self.sides[0].values[value.0];
            let number = of.stats.min;
            let is_plain = of.is_integer || number == 0.0 || number == 1.0;
            is_plain && number == of.stats.max
        })
    }

    fn makes_constants(&self, target: usize) -> bool {
        let mut outputs = self.sides[0].outputs.get(&target).into_iter().flatten();
        outputs.all(|value| self.sides[0].values[value.0].is_constant)
    }

    /// Whether the golden operator is of the same type and makes as many elements.
    fn has_like_outputs(&self, dumps: [&ComparedDump; 2], pair: &PartingPair) -> bool {
        pair.golden.is_some_and(|golden| {
            is_same_type(&dumps[0].runs[pair.target], &dumps[1].runs[golden])
                && self.n_made(0, pair.target) == self.n_made(1, golden)
        })
    }

    /// The number of elements that an operator makes.
    pub(super) fn n_made(&self, side: usize, run: usize) -> u64 {
        let outputs = self.sides[side].outputs.get(&run).into_iter().flatten();
        let values = outputs.map(|value| &self.sides[side].values[value.0]);
        values.map(|of| of.stats.counts.n_elements).sum()
    }

    /// How many operators that say that they do nothing hand a value on.
    fn n_idle(&self, side: usize, dump: &ComparedDump, value: ValueIndex) -> usize {
        // Readers of a value are those that make something else of it, and these do not.
        let runs = self.sides[side].outputs.keys();
        runs.filter(|run| self.handed_on(side, dump, **run, &[value]).is_some())
            .count()
    }

    /// Whether both operators are likely the same, though a side lacks some: by name, by most of a
    /// weight, or as they are of one type and read the same value.
    pub(super) fn is_proven(&self, dumps: [&ComparedDump; 2], pair: &PartingPair) -> bool {
        let Some(golden) = pair.golden else {
            return false;
        };
        let runs = [&dumps[0].runs[pair.target], &dumps[1].runs[golden]];
        let computes = is_same_type(runs[0], runs[1]) && !is_view(runs[0]);
        pair.shares_weight
            || is_namesake(dumps, pair)
            || computes && self.reads_same([pair.target, golden])
    }

    fn reads_same(&self, [target, golden]: [usize; 2]) -> bool {
        let mut inputs = self.sides[0].inputs_of(target);
        inputs.any(|value| {
            let found = self.equals[0][value.0];
            found.is_some_and(|found| self.sides[1].reads(golden, found))
        })
    }

    /// Whether the golden dump shows a computation from a value that an operator reads. A partial
    /// dump, or one without inputs, does not: what follows a value there may be correct.
    fn shows_readers(&self, inputs: &[ValueIndex]) -> bool {
        let golden = &self.sides[1];
        if inputs.is_empty() {
            return golden.has_inputs();
        }
        let mut found = inputs.iter().filter_map(|value| self.equals[0][value.0]);
        found.any(|value| !golden.values[value.0].readers.is_empty())
    }
}
