//! Losses that the tensors of a run would have in narrower dtypes, added up.

use opscope_capture::SinkError;
use opscope_tensor::DType;

use super::{RangeRow, RangeRows};

/// The losses that a run would have in narrower dtypes.
pub struct RangeReport {
    /// The requested dtypes, with the totals of each.
    pub totals: Vec<(DType, RangeTotal)>,
    /// Every tensor that is wider than one of them, in order of execution.
    pub rows: RangeRows,
}

/// Totals for one dtype.
#[derive(Default)]
pub struct RangeTotal {
    /// Tensors that are wider.
    pub n_tensors: u64,
    /// Those of them with elements beyond the range.
    pub n_overflow: u64,
    /// Those of them with elements that would become 0.
    pub n_underflow: u64,
    /// Those of them with elements that would become subnormal.
    pub n_subnormal: u64,
    /// The first tensor that would overflow.
    pub first_overflow: Option<RangeRow>,
    /// Losses of the tensors that would not overflow.
    pub of_small: SmallLosses,
}

/// Losses of the tensors without elements beyond the range.
#[derive(Default)]
pub struct SmallLosses {
    /// Tensors that would lose values or digits.
    pub n_tensors: u64,
    /// Elements that would become 0.
    pub n_underflow: u64,
    /// Elements that would become subnormal.
    pub n_subnormal: u64,
}

impl RangeTotal {
    fn add(&mut self, row: &RangeRow) {
        let loss = &row.loss;
        self.n_tensors += 1;
        self.n_overflow += u64::from(loss.n_overflow > 0);
        self.n_underflow += u64::from(loss.n_underflow > 0);
        self.n_subnormal += u64::from(loss.n_subnormal > 0);
        // Rows come in the order of execution, so the first that is added is the earliest.
        if loss.n_overflow > 0 && self.first_overflow.is_none() {
            self.first_overflow = Some(row.clone());
        }
        if loss.n_overflow == 0 {
            let small = &mut self.of_small;
            small.n_tensors += u64::from(loss.n_underflow + loss.n_subnormal > 0);
            small.n_underflow += loss.n_underflow;
            small.n_subnormal += loss.n_subnormal;
        }
    }
}

impl RangeReport {
    /// Adds up `rows` by dtype.
    pub(super) fn new(targets: &[DType], rows: RangeRows) -> Result<RangeReport, SinkError> {
        let totals = targets
            .iter()
            .map(|target| (*target, RangeTotal::default()));
        let mut totals: Vec<(DType, RangeTotal)> = totals.collect();
        for row in rows.iter()? {
            let row = row?;
            let total = totals.iter_mut().find(|(target, _)| *target == row.target);
            if let Some((_, total)) = total {
                total.add(&row);
            }
        }
        Ok(RangeReport { totals, rows })
    }

    /// Whether anything would overflow.
    pub fn has_overflow(&self) -> bool {
        self.totals.iter().any(|(_, total)| total.n_overflow > 0)
    }
}
