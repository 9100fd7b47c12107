//! Rows of statistics as numbers.

use std::cmp::Ordering;

use opscope_store::record::SlotSide;

use opscope_tensor::{ElementCounts, Stats};

use super::StatsRow;
use crate::sink::spool::{SharedValues, StoredRow};

/// Numbers of a row in addition to its statistics: step, operator, type and shape, side, position,
/// and whether there are statistics.
const N_PLACE_WORDS: usize = 6;
const N_STATS_WORDS: usize = N_COUNTS + 7;
const N_COUNTS: usize = ElementCounts::NAMES.len();

impl StoredRow for StatsRow {
    const N_WORDS: usize = N_PLACE_WORDS + N_STATS_WORDS;

    fn to_words(&self, common: &mut SharedValues) -> Vec<u64> {
        let place: [u64; N_PLACE_WORDS] = [
            self.step,
            common.operator(&self.operator),
            common.r#type(self.dtype, &self.shape),
            u64::from(self.side == SlotSide::Output),
            self.index as u64,
            self.stats.is_some().into(),
        ];
        let stats = self.stats.as_ref();
        let stats = stats.map_or([0; N_STATS_WORDS], words_of_stats);
        place.into_iter().chain(stats).collect()
    }

    fn from_words(words: &[u64], common: &SharedValues) -> Option<StatsRow> {
        let (place, stats) = words.split_first_chunk::<N_PLACE_WORDS>()?;
        let [step, operator, kind, side, index, has_stats] = *place;
        let (dtype, shape) = common.type_of(kind)?;
        Some(StatsRow {
            step,
            operator: common.operator_of(operator)?,
            side: if side == 1 {
                SlotSide::Output
            } else {
                SlotSide::Input
            },
            index: usize::try_from(index).ok()?,
            dtype,
            shape,
            stats: match has_stats {
                1 => Some(stats_of_words(stats.try_into().ok()?)),
                _ => None,
            },
        })
    }

    /// By step, task, name, side and position: a task may have additional records.
    fn compare(&self, other: &StatsRow) -> Ordering {
        place(self).cmp(&place(other))
    }
}

fn place(row: &StatsRow) -> (u64, u32, &str, SlotSide, usize) {
    let operator = &row.operator;
    (
        row.step,
        operator.task_id,
        &operator.op_name,
        row.side,
        row.index,
    )
}

fn words_of_stats(stats: &Stats) -> [u64; N_STATS_WORDS] {
    let numbers = [
        stats.min, stats.max, stats.sum, stats.mean, stats.std, stats.l1, stats.l2,
    ];
    let mut words = [0; N_STATS_WORDS];
    let (counts, bits) = words.split_at_mut(N_COUNTS);
    counts.copy_from_slice(&stats.counts.to_array());
    bits.copy_from_slice(&numbers.map(f64::to_bits));
    words
}

fn stats_of_words(words: [u64; N_STATS_WORDS]) -> Stats {
    let counts = std::array::from_fn(|i| words[i]);
    let [min, max, sum, mean, std, l1, l2] =
        std::array::from_fn(|i| f64::from_bits(words[N_COUNTS + i]));
    Stats {
        counts: ElementCounts::from_array(counts),
        min,
        max,
        sum,
        mean,
        std,
        l1,
        l2,
    }
}
