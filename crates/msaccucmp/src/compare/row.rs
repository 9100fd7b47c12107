//! Rows of the result.

use super::algorithms::Algorithms;
use super::metrics::NAN;

/// Column of the tensor's name if the golden side has no addresses. Slices are looked up by it.
const TENSOR_COLUMN: usize = 7;

/// Properties shared by all rows.
pub(super) struct RowForm<'a> {
    pub(super) algorithms: &'a Algorithms,
    /// Whether the sides hold arrays, which have no addresses.
    pub(super) mine_has_arrays: bool,
    pub(super) golden_has_arrays: bool,
    pub(super) finds_overflow: bool,
    pub(super) has_sequence: bool,
}

/// One tensor's part of a row.
#[derive(Clone, Debug)]
pub(super) struct TensorResult {
    pub(super) id: String,
    pub(super) op_type: String,
    pub(super) dims: Vec<usize>,
    pub(super) my_dtype: String,
    pub(super) golden_dtype: String,
    pub(super) my_address: String,
    pub(super) golden_address: String,
    /// None if it was not checked.
    pub(super) overflow: Option<&'static str>,
    pub(super) texts: Vec<String>,
    pub(super) reasons: Vec<String>,
    pub(super) is_ffts: bool,
}

/// The operator's part of a row.
pub(super) struct RowOperator<'a> {
    pub(super) index: usize,
    pub(super) op_type: &'a str,
    pub(super) mine: &'a str,
    pub(super) golden: &'a str,
    pub(super) sequence: i64,
}

/// Rows of one operator.
#[derive(Clone, Debug, Default)]
pub(super) struct OperatorRows {
    pub(super) op_name: String,
    pub(super) rows: Vec<Vec<String>>,
    /// Indices of the inputs and outputs of merged slices.
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    pub(super) is_ffts: bool,
}

impl RowForm<'_> {
    /// The header.
    pub(super) fn header(&self) -> Vec<String> {
        let mut header = vec!["Index"];
        if self.has_sequence {
            header.push("OpSequence");
        }
        header.extend(["OpType", "NPUDump", "DataType"]);
        if !self.mine_has_arrays {
            header.push("Address");
        }
        header.extend(["GroundTruth", "DataType"]);
        if !self.golden_has_arrays {
            header.push("Address");
        }
        header.extend(["TensorIndex", "Shape"]);
        if self.finds_overflow {
            header.push("OverFlow");
        }
        header.extend(self.algorithms.titles());
        header.push("CompareFailReason");
        header.into_iter().map(str::to_owned).collect()
    }

    /// The rows of an operator: one for each tensor, or one without results.
    pub(super) fn rows(
        &self,
        op_name: &str,
        subject: &RowOperator<'_>,
        tensors: Option<&[TensorResult]>,
        reasons: &[String],
    ) -> OperatorRows {
        let mut result = OperatorRows {
            op_name: op_name.to_owned(),
            ..OperatorRows::default()
        };
        let tensors = tensors.unwrap_or_default();
        for tensor in tensors {
            let mut row = self.start(
                subject,
                &tensor.op_type,
                [&tensor.my_dtype, &tensor.my_address],
                [&tensor.golden_dtype, &tensor.golden_address],
            );
            let dims: Vec<String> = tensor.dims.iter().map(usize::to_string).collect();
            row.push(tensor.id.clone());
            row.push(format!("[{}]", dims.join(",")));
            row.extend(tensor.overflow.map(str::to_owned));
            row.extend(tensor.texts.iter().cloned());
            row.push(tensor.reasons.join(","));
            if tensor.is_ffts {
                result.is_ffts = true;
                // The column has the tensor's name only without golden addresses; with them the row
                // counts as neither.
                let id = row.get(TENSOR_COLUMN).map_or("", String::as_str);
                if id.contains(":input:") {
                    result.inputs.push(result.rows.len());
                } else if id.contains(":output:") {
                    result.outputs.push(result.rows.len());
                }
            }
            self.add_sequence(&mut row, subject);
            result.rows.push(row);
        }
        // Every operator has a row, so that its reason is reported.
        if tensors.is_empty() {
            let mut row = self.start(subject, subject.op_type, [NAN, NAN], [NAN, NAN]);
            row.extend([NAN, NAN].map(str::to_owned));
            if self.finds_overflow {
                row.push(NAN.to_owned());
            }
            row.extend(self.algorithms.none());
            row.push(reasons.join(","));
            self.add_sequence(&mut row, subject);
            result.rows.push(row);
        }
        result
    }

    fn start(
        &self,
        subject: &RowOperator<'_>,
        op_type: &str,
        mine: [&str; 2],
        golden: [&str; 2],
    ) -> Vec<String> {
        let index = subject.index.to_string();
        let mut row = vec![&*index, op_type, subject.mine, mine[0]];
        if !self.mine_has_arrays {
            row.push(mine[1]);
        }
        row.extend([subject.golden, golden[0]]);
        if !self.golden_has_arrays {
            row.push(golden[1]);
        }
        row.into_iter().map(str::to_owned).collect()
    }

    fn add_sequence(&self, row: &mut Vec<String>, subject: &RowOperator<'_>) {
        if self.has_sequence {
            row.insert(1, subject.sequence.to_string());
        }
    }
}

impl OperatorRows {
    /// The text in the lookup column of slices.
    pub(super) fn tensor_of(&self, row: usize) -> Option<&str> {
        self.rows.get(row)?.get(TENSOR_COLUMN).map(String::as_str)
    }

    /// Replaces a row's results by those of another.
    pub(super) fn replace_results(&mut self, row: usize, other: &[String]) {
        // The tensor's name and all before it stay.
        let start = TENSOR_COLUMN + 1;
        if let Some(row) = self.rows.get_mut(row) {
            row.truncate(start);
            row.extend_from_slice(other.get(start..).unwrap_or_default());
        }
    }
}
