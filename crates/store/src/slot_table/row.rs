//! One row.

use std::collections::HashSet;
use std::sync::Arc;

use opscope_tensor::{ElementCounts, Stats};

use super::{N_COUNTS, NUMBER_NAMES};

/// A tensor of an operator's execution, as a row of a table. Cells are empty if the dump does not
/// contain the fact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotRow {
    /// The directory of the run, where a dump has several.
    pub run: Option<Arc<str>>,
    /// The rank.
    pub rank: Option<i64>,
    /// The device.
    pub device: Option<i64>,
    /// The model.
    pub model: Option<Arc<str>>,
    /// The name of the model's graph.
    pub graph: Option<Arc<str>>,
    /// Which load of the model.
    pub load: Option<i64>,
    /// Which execution of the model.
    pub step: Option<i64>,
    /// The operator's place in the order of execution of its step, counted from 0.
    pub position: Option<i64>,
    /// Which execution of the operator in its step, counted from 0.
    pub call: Option<i64>,
    /// `operator`, `parameter`, `constant` or `overflow_record`.
    pub kind: Option<Arc<str>>,
    /// The operator's type.
    pub op_type: Option<Arc<str>>,
    /// The operator's name.
    pub op_name: Option<Arc<str>>,
    /// Path of the module that calls it.
    pub module: Option<Arc<str>>,
    /// File, line and function of the call.
    pub source: Option<Arc<str>>,
    /// The collective that the operator is.
    pub collective: Option<Arc<str>>,
    /// The ranks of it, in the order of their group.
    pub group_ranks: Option<Arc<str>>,
    /// The task.
    pub task: Option<i64>,
    /// The stream.
    pub stream: Option<i64>,
    /// When the operator ended, in microseconds since 1970-01-01 UTC.
    pub time_us: Option<i64>,
    /// `input` or `output`.
    pub side: Option<Arc<str>>,
    /// Position among the inputs or outputs.
    pub slot: Option<i64>,
    /// The name of the value.
    pub value: Option<Arc<str>>,
    /// The dtype that the tensor had.
    pub dtype: Option<Arc<str>>,
    /// The dtype that the file has, if it is another one.
    pub stored_dtype: Option<Arc<str>>,
    /// The meaning of the axes.
    pub layout: Option<Arc<str>>,
    /// Dimensions.
    pub shape: Option<Arc<[i64]>>,
    /// The part of a distributed tensor that it is.
    pub placement: Option<Arc<str>>,
    /// Number of elements.
    pub n_elements: Option<i64>,
    /// Bytes of the elements.
    pub n_bytes: Option<i64>,
    /// xxh3-128 of the elements, as hexadecimal digits.
    pub digest: Option<Arc<str>>,
    /// The file that holds the elements, or the statistics of a dump without elements; below the
    /// directory of the run.
    pub file: Option<Arc<str>>,
    /// The format of that file.
    pub file_format: Option<Arc<str>>,
    /// Position of the tensor in a file of several.
    pub file_slot: Option<i64>,
    /// Where the elements begin in that file.
    pub offset: Option<i64>,
    /// Statistics of the elements.
    pub statistics: StatisticsCells,
}

/// The statistics of a row; each may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StatisticsCells {
    /// Counts in the order of [`ElementCounts::NAMES`] without the first.
    pub counts: [Option<i64>; N_COUNTS],
    /// Minimum, maximum, sum, mean, standard deviation, sum of magnitudes and Euclidean norm.
    pub numbers: [Option<f64>; NUMBER_NAMES.len()],
}

impl From<&Stats> for StatisticsCells {
    fn from(stats: &Stats) -> StatisticsCells {
        let counts = stats.counts.to_array();
        StatisticsCells {
            counts: std::array::from_fn(|i| i64::try_from(counts[i + 1]).ok()),
            numbers: [
                stats.min, stats.max, stats.sum, stats.mean, stats.std, stats.l1, stats.l2,
            ]
            .map(Some),
        }
    }
}

impl SlotRow {
    /// The statistics; `None` unless all of them are known.
    pub fn stats(&self) -> Option<Stats> {
        let n_elements = u64::try_from(self.n_elements?).ok()?;
        let mut counts = [n_elements; N_COUNTS + 1];
        for (count, cell) in counts[1..].iter_mut().zip(self.statistics.counts) {
            *count = u64::try_from(cell?).ok()?;
        }
        let mut numbers = [0.0; NUMBER_NAMES.len()];
        for (number, cell) in numbers.iter_mut().zip(self.statistics.numbers) {
            *number = cell?;
        }
        // In the order of `NUMBER_NAMES`.
        let [min, max, sum, mean, std, l1, l2] = numbers;
        Some(Stats {
            counts: ElementCounts::from_array(counts),
            min,
            max,
            sum,
            mean,
            std,
            l1,
            l2,
        })
    }
}

/// Texts that came before, so that equal ones are kept once. Most columns have few.
#[derive(Default)]
pub(super) struct KnownTexts {
    last: Option<Arc<str>>,
    known: HashSet<Arc<str>>,
}

/// More texts than these are hardly repeated.
const N_KNOWN_MAX: usize = 1 << 16;

impl KnownTexts {
    pub(super) fn share(&mut self, text: &str) -> Arc<str> {
        // Rows of one execution repeat most of their cells.
        if let Some(last) = self.last.as_ref().filter(|last| ***last == *text) {
            return last.clone();
        }
        let shared = match self.known.get(text) {
            Some(known) => known.clone(),
            None => {
                let new: Arc<str> = text.into();
                if self.known.len() < N_KNOWN_MAX {
                    self.known.insert(new.clone());
                }
                new
            }
        };
        self.last = Some(shared.clone());
        shared
    }
}
