//! The tensor that `-op` lists, and how much of it.

use std::path::Path;

use opscope_store::decimal::is_digits;
use opscope_store::record::SlotSide;

use crate::compare::dump::ComparedFile;
use crate::compare::stop::CompareStop;
use crate::failure::ErrorCode;
use crate::options::CompareOptions;

const N_LINES: i64 = 1_000_000;
const N_LINES_MIN: i64 = 10_000;
const N_TOP_MAX: i64 = 10_000;

/// The tensor to list, and how much of it.
pub(crate) struct TensorChoice {
    pub(super) op_name: String,
    pub(super) side: SlotSide,
    pub(super) index: usize,
    pub(super) n_top: i64,
    pub(super) is_summary_only: bool,
    pub(super) n_lines_max: usize,
}

impl TensorChoice {
    /// Reads the tensor and the amount from the options.
    pub(crate) fn new(
        op_name: &str,
        options: &CompareOptions,
    ) -> Result<TensorChoice, CompareStop> {
        let n_lines = options.n_lines_max.unwrap_or(N_LINES);
        if !(N_LINES_MIN..=N_LINES).contains(&n_lines) {
            let message = format!(
                "The --max_line argument index ({n_lines}) is out of range {N_LINES_MIN} - \
                 {N_LINES}. Please check the index."
            );
            return Err(CompareStop::coded(ErrorCode::InvalidParameter, message));
        }
        let (side, index) = match (
            non_empty(&options.output_index),
            non_empty(&options.input_index),
        ) {
            (Some(index), _) => (SlotSide::Output, index),
            (None, Some(index)) => (SlotSide::Input, index),
            (None, None) => (SlotSide::Output, "0".to_owned()),
        };
        if !is_digits(&index) {
            let message = format!(
                "The detail index '{index}' is invalid. It only supports 'natural number'."
            );
            return Err(CompareStop::coded(ErrorCode::InvalidParameter, message));
        }
        Ok(TensorChoice {
            op_name: op_name.to_owned(),
            side,
            index: index.parse().unwrap_or(usize::MAX),
            n_top: options.n_top,
            is_summary_only: options.ignores_details,
            n_lines_max: n_lines as usize,
        })
    }

    /// Checks the name and the number of elements.
    pub(crate) fn check(&self) -> Result<(), CompareStop> {
        crate::paths::check_text(Path::new(&self.op_name))?;
        if !(1..=N_TOP_MAX).contains(&self.n_top) {
            let message = format!(
                "The top n index ({}) is out of range [1, {N_TOP_MAX}]. Please check the index.",
                self.n_top
            );
            return Err(CompareStop::coded(ErrorCode::IndexOutOfBounds, message));
        }
        Ok(())
    }

    pub(super) fn check_index(&self, dump: &ComparedFile) -> Result<(), CompareStop> {
        let n = dump.side(self.side).len();
        if self.index < n {
            return Ok(());
        }
        let message = format!(
            "[{}] The {} index ({}) is out of range [0, {n}). Please check the index.",
            self.op_name,
            self.side.name(),
            self.index
        );
        Err(CompareStop::coded(ErrorCode::IndexOutOfBounds, message))
    }

    /// `op_output_0`.
    pub(super) fn prefix(&self) -> String {
        format!("{}{}", self.op_name.replace('/', "_"), self.slot())
    }

    /// `_output_0`.
    pub(super) fn slot(&self) -> String {
        format!("_{}_{}", self.side.name(), self.index)
    }
}

/// The value of an option, unless it is empty.
fn non_empty(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}
