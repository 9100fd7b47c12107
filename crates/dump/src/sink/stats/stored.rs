//! Rows of statistics as numbers.

use std::cmp::Ordering;

use opscope_store::record::SlotSide;
use opscope_tensor::Stats;

use super::StatsRow;
use crate::sink::spool::{SharedValues, StoredRow};

/// Numbers of a row beside its statistics: step, operator, type and shape, side, position, and whether there are
/// statistics.
const N_PLACE_WORDS: usize = 6;
const N_STATS_WORDS: usize = 17;

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

    /// By step, task, name, side and position: under one task there may be records beside the operator's own.
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
    [
        stats.n_elements,
        stats.n_nan,
        stats.n_pos_inf,
        stats.n_neg_inf,
        stats.n_zero,
        stats.n_neg_zero,
        stats.n_positive,
        stats.n_negative,
        stats.n_subnormal,
        stats.n_saturated,
        stats.min.to_bits(),
        stats.max.to_bits(),
        stats.sum.to_bits(),
        stats.mean.to_bits(),
        stats.std.to_bits(),
        stats.l1.to_bits(),
        stats.l2.to_bits(),
    ]
}

fn stats_of_words(words: [u64; N_STATS_WORDS]) -> Stats {
    let [
        n_elements,
        n_nan,
        n_pos_inf,
        n_neg_inf,
        n_zero,
        n_neg_zero,
        ..,
    ] = words;
    let [.., min, max, sum, mean, std, l1, l2] = words.map(f64::from_bits);
    let [
        ..,
        n_positive,
        n_negative,
        n_subnormal,
        n_saturated,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
    ] = words;
    Stats {
        n_elements,
        n_nan,
        n_pos_inf,
        n_neg_inf,
        n_zero,
        n_neg_zero,
        n_positive,
        n_negative,
        n_subnormal,
        n_saturated,
        min,
        max,
        sum,
        mean,
        std,
        l1,
        l2,
    }
}
