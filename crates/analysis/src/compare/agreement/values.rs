//! The values of one side, and the operators that produce and read them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Stats};

use super::reading::{FewElements, SlotValues, read_values};
use crate::compare::attribution::kinds::{is_source, is_telling};
use crate::compare::matching::{SlotRef, is_view};
use crate::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution};
use crate::compare::verdict::{coarser, unit};

/// Maximum number of elements of a tensor that contains a shape.
const N_EXTENTS_MAX: u64 = 8;
/// Maximum distance of sums of the same elements in two orders, relative to their size.
const ORDER_ERROR_MAX: f64 = 1e-9;
/// The same for numbers with six digits.
const PRINTED_ERROR_MAX: f64 = 1e-5;
/// With fewer elements than this, equality is too often a coincidence.
const N_ELEMENTS_MIN: u64 = 2;

/// Types of operators that convert their input to another dtype.
pub(crate) const CAST_TYPES: [&str; 4] = [
    "Cast",
    "CastLike",
    "aten__to_copy_default",
    "prims_convert_element_type_default",
];

/// Types of operators that pass their input on.
pub(super) const IDLE_TYPES: [&str; 3] = ["Identity", "aten_alias_default", "aten_clone_default"];

/// Types of operators that repeat the elements of an input.
const REPEATING_TYPES: [&str; 4] = [
    "Expand",
    "Tile",
    "aten_expand_default",
    "aten_repeat_default",
];

/// Types of operators that return an element to the program as a number.
const NUMBER_TYPES: [&str; 3] = [
    "aten__local_scalar_dense_default",
    "aten_is_nonzero_default",
    "aten_item_default",
];

/// Types of operators that produce the same value from no input.
const FILLING_TYPES: [&str; 7] = [
    "ConstantOfShape",
    "aten_zeros_default",
    "aten_ones_default",
    "aten_full_default",
    "aten_arange_default",
    "aten_arange_start",
    "aten_arange_start_step",
];

/// The type of operators that make floats of codes.
const DEQUANTIZING: &str = "DequantizeLinear";

/// A value of a side, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ValueIndex(pub(super) usize);

/// A value: the common content of all slots with the same elements.
pub(super) struct DumpValue {
    /// Its statistics, which do not depend on the order of elements.
    pub(super) stats: Stats,
    /// Its elements, if they are few.
    pub(super) elements: Option<Arc<FewElements>>,
    /// The first slot with it.
    pub(super) first: SlotRef,
    /// Operators that read it and produce another value.
    pub(super) readers: Vec<usize>,
    /// The number of operators that produce it from others.
    pub(super) n_makers: usize,
    /// Whether zeros were counted, which tables do not do.
    pub(super) has_counts: bool,
    /// Maximum distance of the statistics of two values that are equal except for rounding,
    /// relative to their size.
    rounding: f64,
    /// The coarsest float dtype that it passed through, among those that determine limits.
    pub(super) coarsest: DType,
    /// Whether it is a shape or an index rather than data: a few integers.
    pub(super) is_extents: bool,
    pub(super) is_integer: bool,
    /// Whether it comes from outside: no operator produces it, or only one that rearranges such a
    /// value.
    pub(super) is_outside: bool,
    /// Whether it depends on no input of the model and on no weight, such as a table of positions.
    pub(super) is_constant: bool,
}

impl DumpValue {
    /// Whether agreement with another value cannot be a coincidence.
    pub(super) fn is_distinctive(&self) -> bool {
        self.stats.counts.n_elements >= N_ELEMENTS_MIN
            && (self.stats.min < self.stats.max || self.stats.has_non_finite())
    }

    /// Whether the model computes it, and agreement with another value is no coincidence.
    pub(super) fn is_computed(&self) -> bool {
        !self.is_outside && self.is_distinctive()
    }

    /// Whether both may have the same elements in another order, as a weight that is stored
    /// transposed, or in blocks of channels that are filled up with zeros.
    pub(super) fn is_permutation_of(&self, other: &DumpValue) -> bool {
        let (a, b) = (&self.stats, &other.stats);
        let error_max = self.rounding.max(other.rounding);
        let is_near = |a: f64, b: f64| a == b || (a - b).abs() <= error_max * a.abs().max(b.abs());
        // Tables have no sums, and some no norms.
        let is_near_or_unknown = |a: f64, b: f64| is_near(a, b) || a.is_nan() || b.is_nan();
        let has_one_length = a.counts.n_elements == b.counts.n_elements;
        let is_counted = self.has_counts && other.has_counts;
        let [n_a, n_b] = [a, b].map(|s| s.counts.n_elements - s.counts.n_zero);
        let is_filled = is_counted && n_a == n_b;
        // Zeros may be the extremes of what they fill up.
        let with_zero = |extreme: f64, other: f64| {
            if has_one_length || extreme * other < 0.0 {
                extreme
            } else {
                0.0
            }
        };
        let largest = a.max.abs().max(a.min.abs());
        (has_one_length || is_filled)
            && a.counts.n_nan == b.counts.n_nan
            && is_near(with_zero(a.min, a.max), with_zero(b.min, b.max))
            && is_near(with_zero(a.max, a.min), with_zero(b.max, b.min))
            && is_near_or_unknown(a.l1, b.l1)
            && is_near_or_unknown(a.l2, b.l2)
            && if has_one_length {
                (a.mean - b.mean).abs() <= error_max * largest
            } else {
                (a.sum - b.sum).abs() <= error_max * a.l1.max(b.l1)
            }
    }
}

/// Elements by dtype, number and digest; for statistics, the digest of their texts.
type ElementsKey = (Option<DType>, u64, [u8; 16]);

/// The values of one place of a side.
pub(super) struct SideValues {
    pub(super) values: Vec<DumpValue>,
    of_slot: HashMap<SlotRef, ValueIndex>,
    /// The elements of each value, by dtype, number and digest.
    keys: HashMap<ElementsKey, ValueIndex>,
    /// The values that each operator reads, and those that it produces.
    inputs: HashMap<usize, HashSet<ValueIndex>>,
    pub(super) outputs: HashMap<usize, Vec<ValueIndex>>,
}

impl SideValues {
    /// Reads all elements of the operators of both sides, or their statistics. Slots with neither
    /// have no value.
    pub(super) fn collect(
        dumps: [&ComparedDump; 2],
        runs: [&Vec<usize>; 2],
        unseen: &[HashSet<SlotRef>; 2],
        n_threads: usize,
    ) -> [SideValues; 2] {
        let mut read = read_values(dumps, runs, n_threads).into_iter();
        [0, 1].map(|i| {
            let read = read.next().unwrap_or_default();
            SideValues::new(dumps[i], runs[i], read, &unseen[i])
        })
    }

    /// The values of a side; `read` are those of the slots of each of `runs`.
    fn new(
        side: &ComparedDump,
        runs: &[usize],
        read: Vec<SlotValues>,
        unseen: &HashSet<SlotRef>,
    ) -> SideValues {
        let slots = runs.iter().zip(read).flat_map(|(&run, read)| {
            let slots = read.into_iter().enumerate();
            slots.map(move |(slot, read)| (SlotRef { run, slot }, read))
        });
        let mut found = SideValues {
            values: Vec::new(),
            of_slot: HashMap::new(),
            keys: HashMap::new(),
            inputs: HashMap::new(),
            outputs: HashMap::new(),
        };
        for (at, read) in slots {
            let Some(read) = read else {
                continue;
            };
            let stats = read.stats;
            let key = (read.dtype, stats.counts.n_elements, read.digest);
            let dtype = read.dtype.unwrap_or(DType::F32);
            let value = *found.keys.entry(key).or_insert_with(|| {
                found.values.push(DumpValue {
                    stats,
                    elements: read.elements.clone(),
                    first: at,
                    readers: Vec::new(),
                    n_makers: 0,
                    has_counts: side.slot(at).has_elements,
                    rounding: rounding(side.slot(at), dtype),
                    coarsest: dtype,
                    is_integer: is_integer(dtype),
                    is_extents: is_integer(dtype) && stats.counts.n_elements <= N_EXTENTS_MAX,
                    is_outside: !side.is_unseen(at) && !unseen.contains(&at),
                    is_constant: false,
                });
                ValueIndex(found.values.len() - 1)
            });
            found.of_slot.insert(at, value);
            match side.slot(at).side {
                SlotSide::Input => {
                    found.inputs.entry(at.run).or_default().insert(value);
                }
                SlotSide::Output => found.outputs.entry(at.run).or_default().push(value),
            }
        }
        found.tell_outside(side);
        found.tell_readers();
        found.tell_coarsest(side);
        found
    }

    fn tell_readers(&mut self) {
        let found = self;
        for (run, outputs) in &found.outputs {
            let inputs = found.inputs.get(run);
            for output in outputs {
                let is_passed_on = inputs.is_some_and(|inputs| inputs.contains(output));
                found.values[output.0].n_makers += usize::from(!is_passed_on);
            }
        }
        for (&run, inputs) in &found.inputs {
            let outputs = found.outputs.get(&run);
            for value in inputs {
                if outputs.is_some_and(|outputs| outputs.iter().any(|output| output != value)) {
                    found.values[value.0].readers.push(run);
                }
            }
        }
    }

    /// Separates outside values from those that the model computes.
    fn tell_outside(&mut self, side: &ComparedDump) {
        let mut runs: Vec<usize> = self.outputs.keys().copied().collect();
        runs.sort_unstable();
        for run in runs {
            let inputs = self.inputs.get(&run);
            let turns_outside = inputs.is_some_and(|inputs| {
                (is_view(&side.runs[run]) || is_one_of(&REPEATING_TYPES, &side.runs[run]))
                    && inputs.iter().all(|input| {
                        let of = &self.values[input.0];
                        of.is_outside || of.is_extents
                    })
                    && inputs.iter().any(|input| !self.values[input.0].is_extents)
            });
            let is_constant = inputs.is_none()
                && (is_source(&side.runs[run].op_type)
                    || is_one_of(&FILLING_TYPES, &side.runs[run]));
            let is_fixed = is_constant
                || inputs.is_some_and(|inputs| {
                    let mut inputs = inputs.iter().map(|input| &self.values[input.0]);
                    inputs.all(|of| of.is_constant || of.is_extents)
                });
            for output in &self.outputs[&run] {
                self.values[output.0].is_constant |= is_fixed;
                // A value that was read before any operator produced it keeps its origin.
                let is_given = inputs.is_some_and(|inputs| inputs.contains(output));
                let was_shown = self.values[output.0].first.run < run;
                if !(turns_outside || is_constant || is_given || was_shown) {
                    self.values[output.0].is_outside = false;
                }
            }
        }
    }

    /// Records the dtypes that values passed through. A value that is rounded and widened again at
    /// once is not used in the intermediate dtype, so that rounding is not a property of the
    /// network.
    fn tell_coarsest(&mut self, side: &ComparedDump) {
        let mut runs: Vec<usize> = self.outputs.keys().copied().collect();
        runs.sort_unstable();
        for run in runs {
            let inputs = self.inputs.get(&run).into_iter().flatten();
            let computed = inputs.filter(|value| !self.values[value.0].is_outside);
            let inherited = computed
                .map(|value| self.values[value.0].coarsest)
                .filter(|dtype| unit(*dtype).is_some())
                .reduce(coarser);
            for output in &self.outputs[&run] {
                let of = &self.values[output.0];
                let Some(inherited) = inherited.filter(|_| unit(of.coarsest).is_some()) else {
                    continue;
                };
                let mut readers = of.readers.iter();
                let is_only_widened = is_one_of(&CAST_TYPES, &side.runs[run])
                    && !of.readers.is_empty()
                    && readers.all(|reader| is_one_of(&CAST_TYPES, &side.runs[*reader]));
                self.values[output.0].coarsest = if is_only_widened {
                    inherited
                } else {
                    coarser(of.coarsest, inherited)
                };
            }
        }
    }

    /// Counts dequantized floats as known if the other side has the quantized values and computes
    /// with them.
    pub(super) fn follow_formats(
        &self,
        dumps: [&ComparedDump; 2],
        side: usize,
        is_known: &mut [bool],
    ) {
        let (own, other) = (dumps[side], dumps[1 - side]);
        let n_dequantizing = |dump: &ComparedDump| {
            let runs = dump.runs.iter();
            runs.filter(|run| run.op_type == DEQUANTIZING).count()
        };
        // Where the other side has as many, they are operators like others.
        if n_dequantizing(own) <= n_dequantizing(other) {
            return;
        }
        for (&run, outputs) in &self.outputs {
            let described = &own.runs[run];
            if described.op_type != DEQUANTIZING {
                continue;
            }
            let first = described
                .slots
                .iter()
                .position(|slot| slot.side == SlotSide::Input);
            let quantised = first.and_then(|slot| self.value_of(SlotRef { run, slot }));
            let is_from_known =
                quantised.is_some_and(|value| is_known[value.0] || self.values[value.0].is_outside);
            for output in outputs.iter().filter(|_| is_from_known) {
                is_known[output.0] = true;
            }
        }
    }

    /// The operators at which both sides diverge: they only read values that the other side has,
    /// and produce one that it lacks. With the computed values that they read, in execution order.
    pub(super) fn frontier(
        &self,
        equals: &[Option<ValueIndex>],
        is_rejoined: &[bool],
        may_be_inner: bool,
    ) -> Vec<(usize, Vec<ValueIndex>)> {
        let mut runs: Vec<usize> = self.outputs.keys().copied().collect();
        runs.sort_unstable();
        // Results that a parting operator computes are not right, though they are the same everywhere.
        let mut made: HashSet<ValueIndex> = HashSet::new();
        let parts = runs.into_iter().filter_map(|run| {
            let mut inputs: Vec<ValueIndex> = self
                .inputs
                .get(&run)
                .into_iter()
                .flatten()
                .copied()
                .collect();
            inputs.sort_unstable();
            let outputs = &self.outputs[&run];
            let is_found = outputs
                .iter()
                .any(|value| self.values[value.0].is_distinctive() && equals[value.0].is_some());
            let is_part = inputs.iter().all(|value| {
                let of = &self.values[value.0];
                let is_plain = !of.is_distinctive() && !made.contains(value);
                of.is_outside || is_rejoined[value.0] || is_plain
            }) && outputs.iter().any(|value| {
                let of = &self.values[value.0];
                // Operators of one framework return more than another's, such as a mean, and no
                // operator reads it.
                let is_aside = is_found && of.readers.is_empty();
                !of.is_outside && !of.is_extents && !is_rejoined[value.0] && !is_aside
            });
            let mut computed = inputs
                .iter()
                .filter(|value| self.values[value.0].is_computed());
            let is_inner = may_be_inner && computed.any(|value| equals[value.0].is_none());
            inputs.retain(|value| equals[value.0].is_some());
            // Without a common value the sides cannot diverge.
            let is_part = is_part && (is_inner || !inputs.is_empty());
            if is_part {
                let computed = outputs.iter().filter(|value| {
                    let of = &self.values[value.0];
                    !of.is_outside && !of.is_constant && !of.is_extents
                });
                made.extend(computed);
            }
            is_part.then_some((run, inputs))
        });
        parts.collect()
    }

    /// The operators that the last output depends on, its producer included.
    pub(super) fn live(&self) -> HashSet<usize> {
        let mut makers: HashMap<ValueIndex, Vec<usize>> = HashMap::new();
        for (&run, outputs) in &self.outputs {
            for &output in outputs {
                makers.entry(output).or_default().push(run);
            }
        }
        let mut live: HashSet<usize> = self.outputs.keys().max().copied().into_iter().collect();
        let mut open: Vec<usize> = live.iter().copied().collect();
        while let Some(run) = open.pop() {
            for value in self.inputs_of(run) {
                // Removed, because many operators may read a value that many produce.
                for maker in makers.remove(&value).into_iter().flatten() {
                    if live.insert(maker) {
                        open.push(maker);
                    }
                }
            }
        }
        live
    }

    /// The value of a slot.
    pub(super) fn value_of(&self, slot: SlotRef) -> Option<ValueIndex> {
        self.of_slot.get(&slot).copied()
    }

    /// Whether an operator reads a value.
    pub(super) fn reads(&self, run: usize, value: ValueIndex) -> bool {
        let inputs = self.inputs.get(&run);
        inputs.is_some_and(|inputs| inputs.contains(&value))
    }

    /// Whether the dump contains the inputs of any operator.
    pub(super) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// The values that an operator reads, in no order.
    pub(super) fn inputs_of(&self, run: usize) -> impl Iterator<Item = ValueIndex> {
        self.inputs.get(&run).into_iter().flatten().copied()
    }

    /// All slots with a value.
    pub(super) fn slots(&self) -> impl Iterator<Item = (SlotRef, ValueIndex)> {
        self.of_slot.iter().map(|(slot, value)| (*slot, *value))
    }

    /// For each value, the one of another side with identical elements.
    pub(super) fn identical(&self, other: &SideValues) -> Vec<Option<ValueIndex>> {
        let mut found = vec![None; self.values.len()];
        for (key, value) in &self.keys {
            found[value.0] = other.keys.get(key).copied();
        }
        found
    }

    /// The first slot with a value.
    pub(super) fn first_slot(&self, value: ValueIndex) -> SlotRef {
        self.values[value.0].first
    }

    /// Of each value, whether the other side has it, or everything that was computed from it, or
    /// something by ways that a wrong value could not have gone: its other readers are wrong then.
    /// These are added to `is_told`.
    pub(super) fn rejoined(
        &self,
        side: &ComparedDump,
        equals: &[Option<ValueIndex>],
        is_told: &mut [bool],
    ) -> Vec<bool> {
        // Exporters compute shapes that other graphs have as attributes; their consumers decide.
        let values = self.values.iter().zip(equals);
        let mut known: Vec<Option<bool>> = values
            .map(|(value, equal)| {
                let is_empty = value.stats.counts.n_elements == 0;
                (equal.is_some() || value.is_extents || is_empty).then_some(true)
            })
            .collect();
        // A value is decided after everything computed from it, so values are visited from the last
        // one back. The outputs of an in-place operator have been removed from its own readers.
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(self.values[i].first));
        let steers = self.steering(side, &order);
        for i in order {
            if known[i].is_some() {
                continue;
            }
            let readers = &self.values[i].readers;
            // Every tensor has a shape, whatever it contains.
            let readers = readers.iter().filter(|run| {
                let mut outputs = self.outputs[run].iter();
                outputs.any(|output| {
                    let of = &self.values[output.0];
                    !of.is_extents && of.stats.counts.n_elements > 0
                })
            });
            let mut readers = readers.peekable();
            // Where one reader is right, another may read the value in place of a different one; and
            // what is NaN is not right, whatever comes of it.
            let counts = &self.values[i].stats.counts;
            let is_good = counts.n_nan == 0 && counts.n_pos_inf == 0;
            is_told[i] |= self.values[i].n_makers == 1
                && is_good
                && readers.clone().any(|run| {
                    let mut outputs = self.outputs[run].iter();
                    is_telling(&side.runs[*run].op_type)
                        && outputs.all(|output| output.0 != i && is_told[output.0])
                });
            let is_made = readers.peek().is_some()
                && readers.all(|run| {
                    let mut outputs = self.outputs[run].iter().enumerate();
                    outputs.all(|(n, output)| {
                        let of = &self.values[output.0];
                        // Positions of maxima, which some graphs return as well and no operator
                        // reads.
                        let is_aside = n > 0 && of.is_integer && of.readers.is_empty();
                        output.0 == i || is_aside || known[output.0] == Some(true)
                    })
                });
            let is_rejoined = is_told[i] || is_made || steers[i];
            known[i] = Some(is_rejoined);
        }
        known.into_iter().map(|is| is == Some(true)).collect()
    }
}

impl SideValues {
    /// Whether each value is used only outside of tensors: the program reads it, or a result of it,
    /// as a number, to decide which operators to run. These are judged separately.
    fn steering(&self, side: &ComparedDump, in_reverse: &[usize]) -> Vec<bool> {
        let takers = self.inputs.iter();
        let takers = takers.filter(|(run, _)| is_one_of(&NUMBER_TYPES, &side.runs[**run]));
        let numbers: HashSet<ValueIndex> = takers.flat_map(|(_, values)| values).copied().collect();
        let mut steers = vec![false; self.values.len()];
        for &i in in_reverse {
            let readers = &self.values[i].readers;
            // Operators without outputs do not count as readers.
            let is_taken = numbers.contains(&ValueIndex(i)) || !readers.is_empty();
            steers[i] = is_taken
                && readers.iter().all(|run| {
                    // In place, an operator makes what it reads.
                    let mut outputs = self.outputs[run].iter();
                    outputs.all(|output| output.0 == i || steers[output.0])
                });
        }
        steers
    }
}

fn rounding(slot: &ExecutionSlot, dtype: DType) -> f64 {
    let printed = if slot.has_elements {
        ORDER_ERROR_MAX
    } else {
        PRINTED_ERROR_MAX
    };
    match unit(dtype) {
        // Weights of float32 are identical on both sides.
        Some(unit) if unit > PRINTED_ERROR_MAX => unit,
        _ => printed,
    }
}

pub(crate) fn is_one_of(op_types: &[&str], run: &OperatorExecution) -> bool {
    op_types
        .iter()
        .any(|op_type| run.op_type.eq_ignore_ascii_case(op_type))
}

fn is_integer(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, I8 | U8 | I16 | U16 | I32 | U32 | I64 | U64)
}
