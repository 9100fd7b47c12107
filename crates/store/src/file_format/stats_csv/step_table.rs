//! One table for a whole step, a row for each tensor: what [`encode`](super::encode) puts into a
//! file for each operator costs a file for each operator.
//!
//! A form of our own. Five columns say which operator it is, the rest are named as in the vendor's
//! tables. The numbers are those of [`opscope_tensor::stats`], in which NaN takes no part.

use std::fmt::Write;
use std::path::Path;

use opscope_tensor::{Stats, Tensor, TensorObserver};

use super::number::general;
use super::{DESCRIPTION, FORMAT_NAME, StatsTable, names, parse, shape_text};
use crate::record::Record;
use crate::{FormatError, StoreError, regular_file};

/// The name of the file in the directory of a step.
pub const FILE_NAME: &str = "statistics.csv";
/// Text that every header line begins with.
const OPERATOR: &str = "Op Type,Op Name,Task ID,Stream ID,Timestamp,";
const N_OPERATOR_CELLS: usize = 5;
const STATISTICS: &str =
    "Max Value,Min Value,Avg Value,l2norm,Count,Nan Count,Negative Inf Count,Positive Inf Count";
/// The cells of a tensor without numbers.
const NO_NUMBERS: &str = "NA,NA,NA,NA";
/// Maximum size of a file.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The rows of one execution of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorTable {
    /// The operator's type.
    pub op_type: String,
    /// Its name.
    pub op_name: String,
    /// Its task.
    pub task_id: u32,
    /// Its stream.
    pub stream_id: u32,
    /// Microseconds since 1970-01-01 UTC.
    pub timestamp: u64,
    /// The table that a file of the operator's own would hold.
    pub table: StatsTable,
}

/// The first line.
pub fn header() -> String {
    format!("{OPERATOR}{DESCRIPTION},{STATISTICS}\n")
}

/// Computes what a row says about the elements of `tensor` and leaves it in the tensor's memo.
pub fn reduce(tensor: TensorObserver<'_>) {
    let _ = tensor.stats();
}

/// The lines of `record`: inputs, then outputs.
pub fn rows(record: &Record, task_id: u32, stream_id: u32) -> String {
    let operator = &record.operator;
    let (op_type, op_name) = (cell(&operator.op_type), cell(&operator.op_name));
    let subject = format!(
        "{op_type},{op_name},{task_id},{stream_id},{}",
        record.timestamp_us
    );
    let mut text = String::new();
    for (side, tensors) in [("Input", &record.inputs), ("Output", &record.outputs)] {
        for (index, (_, tensor)) in tensors.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{subject},{side},{index},");
            row(&mut text, tensor);
        }
    }
    text
}

fn row(text: &mut String, tensor: &Tensor) {
    let (dtype, layout) = (names::dtype(tensor.dtype()), names::layout(tensor.layout()));
    let (n_bytes, shape) = (tensor.n_bytes(), shape_text(tensor.shape()));
    let _ = write!(text, "{n_bytes},{dtype},{layout},{shape},");
    let counts = match tensor.stats() {
        Ok(stats) if stats.counts.n_elements > 0 => {
            push_numbers(text, stats);
            [
                stats.counts.n_nan,
                stats.counts.n_neg_inf,
                stats.counts.n_pos_inf,
            ]
        }
        _ => {
            text.push_str(NO_NUMBERS);
            let counts = tensor.non_finite();
            [counts.n_nan, counts.n_neg_inf, counts.n_pos_inf]
        }
    };
    let n_elements = tensor.shape().n_elements();
    let [n_nan, n_neg_inf, n_pos_inf] = counts;
    let _ = writeln!(text, ",{n_elements},{n_nan},{n_neg_inf},{n_pos_inf}");
}

fn push_numbers(text: &mut String, stats: &Stats) {
    let values = [stats.max, stats.min, stats.mean, stats.l2];
    for (i, value) in values.into_iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(&general(value));
    }
}

/// A name as a cell: no cell is quoted, so what would end it is replaced.
fn cell(name: &str) -> String {
    name.chars()
        .map(|c| if c == ',' || c.is_control() { '_' } else { c })
        .collect()
}

/// The operators of a file in order of execution.
///
/// # Errors
/// [`StoreError`] if it cannot be read, is too large, or holds something else.
pub fn read_file(path: &Path) -> Result<Vec<OperatorTable>, StoreError> {
    let bytes = regular_file::read(path, FILE_BYTES_MAX).map_err(StoreError::io("read", path))?;
    operators(&String::from_utf8_lossy(&bytes)).map_err(StoreError::corrupt(FORMAT_NAME, path))
}

/// The same of the text of a file.
///
/// # Errors
/// [`FormatError`] if the first line is another, or a row does not say which operator it is of.
pub fn operators(text: &str) -> Result<Vec<OperatorTable>, FormatError> {
    let whole = parse::rows_after(text, &format!("{OPERATOR}{DESCRIPTION}"))?;
    let columns = whole.columns[N_OPERATOR_CELLS..].to_vec();
    let mut operators: Vec<OperatorTable> = Vec::new();
    for mut cells in whole.rows {
        let rest = cells.split_off(N_OPERATOR_CELLS);
        let Some(mut operator) = operator(&cells) else {
            let found = format!("`{}`", cells.join(","));
            return Err(FormatError::new(0, "the numbers of an operator", found));
        };
        // The rows of an execution are written as one text, so they always follow each other.
        if let Some(last) = operators
            .last_mut()
            .filter(|last| last.is_run_of(&operator))
        {
            last.table.rows.push(rest);
            continue;
        }
        operator.table = StatsTable {
            columns: columns.clone(),
            rows: vec![rest],
        };
        operators.push(operator);
    }
    // Rows come as writers finish them.
    operators.sort_by_key(|operator| operator.timestamp);
    Ok(operators)
}

fn operator(cells: &[String]) -> Option<OperatorTable> {
    let [op_type, op_name, task_id, stream_id, timestamp] = cells else {
        return None;
    };
    Some(OperatorTable {
        op_type: op_type.clone(),
        op_name: op_name.clone(),
        task_id: task_id.parse().ok()?,
        stream_id: stream_id.parse().ok()?,
        timestamp: timestamp.parse().ok()?,
        table: StatsTable::default(),
    })
}

impl OperatorTable {
    /// Whether both are of the same execution.
    fn is_run_of(&self, other: &OperatorTable) -> bool {
        self.timestamp == other.timestamp
            && (self.task_id, self.stream_id) == (other.task_id, other.stream_id)
            && self.op_name == other.op_name
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use opscope_tensor::{DType, Shape};

    use super::*;
    use crate::record::{ModelId, Operator, SlotSide};

    fn tensor(values: &[f32]) -> Tensor {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
    }

    fn record(op_name: &str, timestamp_us: u64, values: &[f32]) -> Record {
        Record {
            model: Arc::new(ModelId::default()),
            operator: Arc::new(Operator {
                op_type: "aten_add".to_owned(),
                op_name: op_name.to_owned(),
                ..Operator::default()
            }),
            step: 0,
            timestamp_us,
            inputs: vec![(0, tensor(&[0.0, f32::INFINITY]))],
            outputs: vec![(0, tensor(values))],
        }
    }

    #[test]
    fn what_is_written_is_read_in_order_of_execution() {
        let late = rows(&record("a,b", 9, &[3.0, f32::NAN, 4.0]), 7, 1);
        let early = rows(&record("c", 5, &[]), 2, 0);
        let found = operators(&format!("{}{late}{early}", header())).unwrap();
        let [first, second] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((first.op_name.as_str(), first.task_id), ("c", 2));
        assert_eq!((second.op_name.as_str(), second.stream_id), ("a_b", 1));
        let subject = second.table.subject(1).unwrap();
        assert_eq!((subject.side, subject.shape), (SlotSide::Output, vec![3]));
        let cells: Vec<_> = second.table.statistics(1).map(|(_, cell)| cell).collect();
        assert_eq!(cells, ["4", "3", "3.5", "5", "3", "1", "0", "0"]);
        let of_input: Vec<_> = second.table.statistics(0).map(|(_, cell)| cell).collect();
        assert_eq!(of_input, ["inf", "0", "inf", "inf", "2", "0", "0", "1"]);
        let of_nothing: Vec<_> = first.table.statistics(1).map(|(_, cell)| cell).collect();
        assert_eq!(of_nothing, ["NA", "NA", "NA", "NA", "0", "0", "0", "0"]);
    }

    #[test]
    fn damaged_rows_are_errors() {
        let good = rows(&record("c", 5, &[1.0]), 2, 0);
        for bad in [
            good.replace(",2,0,5,", ",2,x,5,"),
            good.replacen("aten", ",", 1),
        ] {
            assert!(operators(&format!("{}{bad}", header())).is_err(), "{bad}");
        }
        assert!(operators("Op Type,other\n").is_err());
    }
}
