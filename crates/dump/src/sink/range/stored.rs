//! Rows of what tensors would lose, as numbers.

use std::cmp::Ordering;

use opscope_store::record::SlotSide;
use opscope_tensor::{LargestElement, RangeLoss, Shape};

use super::RangeRow;
use crate::sink::spool::{SharedValues, StoredRow};

impl StoredRow for RangeRow {
    const N_WORDS: usize = 15;

    fn to_words(&self, common: &mut SharedValues) -> Vec<u64> {
        let loss = &self.loss;
        let largest = loss.largest.map(|largest| (largest.value, largest.index));
        let (value, index) = largest.unwrap_or_default();
        vec![
            self.step,
            common.operator(&self.operator),
            u64::from(self.side == SlotSide::Output),
            self.index as u64,
            common.r#type(self.dtype, &self.shape),
            // A dtype alone has no number in the spool, so the number of its scalar is used.
            common.r#type(self.target, &Shape::scalar()),
            self.target_idx as u64,
            loss.n_elements,
            loss.n_non_finite,
            loss.n_overflow,
            loss.n_underflow,
            loss.n_subnormal,
            largest.is_some().into(),
            value.to_bits(),
            index as u64,
        ]
    }

    fn from_words(words: &[u64], common: &SharedValues) -> Option<RangeRow> {
        let words: &[u64; Self::N_WORDS] = words.try_into().ok()?;
        let [
            step,
            operator,
            side,
            index,
            kind,
            target,
            target_idx,
            counts @ ..,
        ] = *words;
        let [
            n_elements,
            n_non_finite,
            n_overflow,
            n_underflow,
            n_subnormal,
            largest @ ..,
        ] = counts;
        let [has_largest, value, largest_index] = largest;
        // Names and types are stored once; the row has their numbers.
        let (dtype, shape) = common.type_of(kind)?;
        let largest = LargestElement {
            value: f64::from_bits(value),
            index: usize::try_from(largest_index).ok()?,
        };
        Some(RangeRow {
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
            target: common.type_of(target)?.0,
            loss: RangeLoss {
                n_elements,
                n_non_finite,
                n_overflow,
                n_underflow,
                n_subnormal,
                largest: (has_largest == 1).then_some(largest),
            },
            target_idx: usize::try_from(target_idx).ok()?,
        })
    }

    fn compare(&self, other: &RangeRow) -> Ordering {
        let [own, other] = [self, other].map(|row| {
            let task_id = row.operator.task_id;
            (row.step, task_id, row.side, row.index, row.target_idx)
        });
        own.cmp(&other)
    }
}
