//! Finds problems in the numbers of a single dump: where NaN and infinities begin, and how close
//! the other values are to the limit of their dtype.

mod kept;
mod progress;

use opscope_store::record::SlotSide;
use opscope_store::slot_table::StatisticsCells;
use opscope_tensor::distribution::finite_range;
use opscope_tensor::{DType, Numbers, largest_finite};

use crate::compare::side::{ComparedDump, ExecutionSlot};
use crate::elements::{ElementsAccess, LastFile, NumpyArray};
use crate::error_chain::chain;
use crate::slot_statistics::{has_counts, statistics_of};

pub use kept::{keep, kept};
pub use progress::SurveyProgress;

/// An operator is near the limit if its outputs have at most this many powers of two of headroom.
pub const NEAR_EDGE: i32 = 4;
/// Substrings of operator types that move, select or fill in values.
const CHOOSING: [&str; 14] = [
    "cat", "clamp", "clip", "constant", "copy", "fill", "full", "gather", "index", "pad",
    "scatter", "tri", "where", "select",
];
/// The executions of a dump, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DumpSurvey {
    /// One per entry of [`ComparedDump::runs`]; blank for those that are not surveyed yet.
    pub executions: Vec<SurveyedExecution>,
    /// Number of surveyed executions, from the first on.
    pub n_surveyed: usize,
    /// Tensors whose elements could not be read.
    pub problems: Vec<String>,
}

/// The numbers of an execution, if known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SurveyedExecution {
    /// The largest magnitude among the finite elements of its outputs.
    pub max_abs: Option<f64>,
    /// Whole powers of two between that and the largest number of the output's floating-point
    /// dtype.
    pub headroom: Option<i32>,
    /// Number of NaN in its outputs.
    pub n_nan: Option<u64>,
    /// Number of infinities in its outputs.
    pub n_inf: Option<u64>,
    /// Whether both counts are lower bounds: the dump has no counts, and other statistics imply
    /// them.
    pub is_least: bool,
    /// Number of elements of its outputs.
    pub n_elements: Option<u64>,
    /// Its role in the spread of NaN and infinities.
    pub role: Option<SpreadRole>,
}

/// The role of an execution in the spread of NaN and infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpreadRole {
    /// All inputs are finite, and the outputs contain NaN.
    MakesNan,
    /// All inputs are finite, and the outputs contain infinities but no NaN.
    MakesInf,
    /// The inputs contain infinities but no NaN, the outputs contain NaN.
    TurnsInfToNan,
    /// Inherited from its inputs.
    HandsOn,
    /// Infinities without NaN that may be intentional, such as attention masks: only negative ones,
    /// or from an operator that does no arithmetic. Never reported as a cause.
    MayBeMask,
    /// Not all inputs are known.
    Unknown,
}

/// NaN, infinities, elements and magnitudes of several tensors; a sum is known if all terms are.
#[derive(Clone, Copy, Debug)]
struct Totals {
    n_nan: Option<u64>,
    n_inf: Option<u64>,
    is_least: bool,
    n_elements: Option<u64>,
    max_abs: Option<f64>,
    headroom: Option<i32>,
    /// Whether no infinity is known to be positive.
    is_negative_only: bool,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals {
            n_nan: Some(0),
            n_inf: Some(0),
            is_least: false,
            n_elements: Some(0),
            max_abs: None,
            headroom: None,
            is_negative_only: true,
        }
    }
}

impl Totals {
    fn add(&mut self, slot: &ExecutionSlot, cells: &StatisticsCells, magnitude: Option<f64>) {
        let [nan, pos_inf, neg_inf, ..] = cells.counts.map(|n| n.and_then(|n| n.try_into().ok()));
        self.n_nan = sum(self.n_nan, nan);
        self.n_inf = sum(self.n_inf, sum(pos_inf, neg_inf));
        let has_any = [nan, pos_inf, neg_inf]
            .into_iter()
            .flatten()
            .any(|n: u64| n > 0);
        self.is_least |= has_any && !slot.has_elements && !has_counts(slot);
        self.is_negative_only &= pos_inf == Some(0);
        self.n_elements = sum(self.n_elements, slot.n_elements());
        let Some(magnitude) = magnitude else {
            return;
        };
        self.max_abs = Some(self.max_abs.map_or(magnitude, |known| known.max(magnitude)));
        if let Some(headroom) = slot.dtype.and_then(|dtype| headroom(dtype, magnitude)) {
            self.headroom = Some(self.headroom.map_or(headroom, |known| known.min(headroom)));
        }
    }

    fn is_finite(&self) -> Option<bool> {
        match (self.n_nan, self.n_inf) {
            (Some(0), Some(0)) => Some(true),
            (Some(n), _) | (_, Some(n)) if n > 0 => Some(false),
            _ => None,
        }
    }
}

/// Whole powers of two between a magnitude and the limit of a dtype.
fn headroom(dtype: DType, magnitude: f64) -> Option<i32> {
    // Zeros have unlimited headroom.
    if magnitude == 0.0 {
        return None;
    }
    let powers = largest_finite(dtype)?.log2() - magnitude.log2();
    Some(powers.floor() as i32)
}

/// Surveys a dump. Existing statistics are used; for tensors with elements only, they are computed
/// on `n_threads` threads.
pub fn survey(dump: &ComparedDump, n_threads: usize) -> DumpSurvey {
    let mut progress = SurveyProgress::new(dump);
    while !progress.is_done() {
        progress.advance(dump, n_threads);
    }
    progress.into_survey()
}

/// Whether the graph next to the dump has more inputs of an operator than the dump.
fn lacks_inputs(dump: &ComparedDump, run: usize) -> bool {
    let Some((_, graph, operator)) = dump.description_of(run) else {
        return false;
    };
    let described = graph.operators.get(operator);
    let n_described = described.map_or(0, |operator| operator.inputs.iter().flatten().count());
    let slots = dump.runs[run].slots.iter();
    let n_shown = slots.filter(|slot| slot.side == SlotSide::Input).count();
    n_shown < n_described
}

/// Totals of inputs and outputs.
fn totals(
    dump: &ComparedDump,
    run: usize,
    file: &mut LastFile,
    problems: &mut Vec<String>,
) -> [Totals; 2] {
    let mut totals = [Totals::default(), Totals::default()];
    let run = &dump.runs[run];
    for slot in &run.slots {
        let is_output = slot.side == SlotSide::Output;
        let mut cells = statistics_of(slot);
        // If the counts are only lower bounds, read the elements.
        let is_exact = has_counts(slot) || cells.counts[..3].iter().all(|n| *n == Some(0));
        let is_known = cells.counts[..3].iter().all(Option::is_some) && is_exact;
        if !is_known && slot.has_elements {
            match slot.element_numbers(file, false) {
                Ok((_, Ok(stats))) => cells = StatisticsCells::from(&stats),
                // Text has no numbers, and that is not a problem.
                Ok((_, Err(_))) => cells.counts = cells.counts.map(|_| Some(0)),
                Err(error) => {
                    let key = slot.key();
                    problems.push(format!("`{}` {key}: {}", run.op_name, chain(&error)));
                }
            }
        }
        let mut magnitude = magnitude(&cells);
        if magnitude.is_none() && is_output && slot.has_elements && slot.problem.is_none() {
            let record = slot.elements_record();
            let elements = NumpyArray::decoded(&record, None, ElementsAccess::Read).ok();
            magnitude = elements.and_then(|elements| largest_magnitude(&elements));
        }
        totals[usize::from(is_output)].add(slot, &cells, magnitude);
    }
    totals
}

/// Numbers of NaN and of infinite elements, from the dump's statistics or else its elements; `None`
/// if neither can be read.
pub fn non_finite(slot: &ExecutionSlot) -> Option<[u64; 2]> {
    non_finite_counts(&statistics_of(slot)).or_else(|| {
        let read = slot.has_elements.then(|| {
            let numbers = slot.element_numbers(&mut LastFile::default(), false);
            numbers.ok()?.1.ok()
        });
        non_finite_counts(&StatisticsCells::from(&read.flatten()?))
    })
}

fn non_finite_counts(cells: &StatisticsCells) -> Option<[u64; 2]> {
    let [nan, pos_inf, neg_inf, ..] = cells.counts.map(|n| n.and_then(|n| n.try_into().ok()));
    Some([nan?, sum(pos_inf, neg_inf)?])
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a?.checked_add(b?)
}

/// The largest magnitude according to statistics. `None` if an extreme is infinite, which hides the
/// finite elements.
fn magnitude(cells: &StatisticsCells) -> Option<f64> {
    let [min, max, ..] = cells.numbers;
    let (min, max) = (min?, max?);
    (min.is_finite() && max.is_finite()).then(|| min.abs().max(max.abs()))
}

/// The largest magnitude of elements.
fn largest_magnitude(elements: &NumpyArray) -> Option<f64> {
    let numbers = Numbers::new(elements.dtype, elements.bytes())?;
    let (low, high) = finite_range(numbers)?;
    Some(low.abs().max(high.abs()))
}

fn surveyed(inputs: &Totals, outputs: &Totals, is_all_known: bool) -> SurveyedExecution {
    let has_nan = outputs.n_nan.is_some_and(|n| n > 0);
    let role = (outputs.is_finite() == Some(false)).then(|| match inputs.is_finite() {
        Some(true) if is_all_known && has_nan => SpreadRole::MakesNan,
        Some(true) if is_all_known => SpreadRole::MakesInf,
        Some(false) if has_nan && inputs.n_nan == Some(0) && is_all_known => {
            SpreadRole::TurnsInfToNan
        }
        Some(false) => SpreadRole::HandsOn,
        _ => SpreadRole::Unknown,
    });
    SurveyedExecution {
        max_abs: outputs.max_abs,
        headroom: outputs.headroom,
        n_nan: outputs.n_nan,
        n_inf: outputs.n_inf,
        is_least: outputs.is_least,
        n_elements: outputs.n_elements,
        role,
    }
}

/// Reclassifies possible masks. `docs/non-finite.md` has the rules of a capture, which sees the
/// graph; a survey exempts everything that these rules might.
fn with_masks(found: SurveyedExecution, outputs: &Totals, op_type: &str) -> SurveyedExecution {
    let op_type = op_type.to_ascii_lowercase();
    let is_choosing = CHOOSING.iter().any(|part| op_type.contains(part));
    match found.role {
        Some(SpreadRole::MakesInf) if outputs.is_negative_only || is_choosing => {
            SurveyedExecution {
                role: Some(SpreadRole::MayBeMask),
                ..found
            }
        }
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_from_what_is_known() {
        let totals = |n_nan, n_inf| Totals {
            n_nan,
            n_inf,
            ..Totals::default()
        };
        let check = |inputs: (_, _), outputs: (_, _), is_all_known, expected| {
            let inputs_totals = totals(inputs.0, inputs.1);
            let found = surveyed(&inputs_totals, &totals(outputs.0, outputs.1), is_all_known);
            assert_eq!(
                found.role, expected,
                "{inputs:?} {outputs:?} {is_all_known}"
            );
        };
        let none = (Some(0), Some(0));
        check(none, none, true, None);
        check(none, (Some(2), Some(0)), true, Some(SpreadRole::MakesNan));
        check(none, (Some(2), Some(1)), true, Some(SpreadRole::MakesNan));
        check(none, (Some(0), Some(1)), true, Some(SpreadRole::MakesInf));
        // A missing input may have contained it.
        check(none, (Some(0), Some(1)), false, Some(SpreadRole::Unknown));
        check(
            (None, None),
            (Some(1), Some(0)),
            true,
            Some(SpreadRole::Unknown),
        );
        check(
            (Some(1), None),
            (Some(1), None),
            true,
            Some(SpreadRole::HandsOn),
        );
        let inf = (Some(0), Some(3));
        check(
            inf,
            (Some(3), Some(0)),
            true,
            Some(SpreadRole::TurnsInfToNan),
        );
        check(inf, (Some(3), Some(0)), false, Some(SpreadRole::HandsOn));
        check(inf, inf, true, Some(SpreadRole::HandsOn));
        check(inf, none, true, None);
        check(none, (None, None), true, None);
    }

    #[test]
    fn masks_accuse_nobody() {
        let check = |is_negative_only, op_type: &str, expected| {
            let outputs = Totals {
                n_inf: Some(2),
                is_negative_only,
                ..Totals::default()
            };
            let found = surveyed(&Totals::default(), &outputs, true);
            let role = with_masks(found, &outputs, op_type).role;
            assert_eq!(role, Some(expected), "{op_type}");
        };
        check(true, "Log", SpreadRole::MayBeMask);
        check(false, "aten_masked_fill_Scalar", SpreadRole::MayBeMask);
        check(false, "Where", SpreadRole::MayBeMask);
        check(false, "Exp", SpreadRole::MakesInf);
        check(false, "MatMul", SpreadRole::MakesInf);
    }

    #[test]
    fn headroom_counts_powers_of_two() {
        let check = |dtype, magnitude, expected| {
            assert_eq!(headroom(dtype, magnitude), expected, "{dtype} {magnitude}");
        };
        check(DType::F16, 65504.0, Some(0));
        check(DType::F16, 32752.0, Some(1));
        check(DType::F16, 32753.0, Some(0));
        check(DType::F16, 0.0, None);
        check(DType::F32, 1.0, Some(127));
        check(DType::I32, 1.0, None);
    }
}
