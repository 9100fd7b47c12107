//! Which tensor a row of a statistics file is about.

use opscope_tensor::{DType, Layout};

use super::{StatsTable, names};
use crate::record::SlotSide;

/// Cells before the statistics.
const N_CELLS: usize = 6;

/// The tensor that a row describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsSubject {
    /// Input or output.
    pub side: SlotSide,
    /// Position among the inputs or outputs of the operator.
    pub index: u32,
    /// Bytes of the tensor.
    pub n_bytes: u64,
    /// Its dtype; none where the file does not name it.
    pub dtype: Option<DType>,
    /// Its layout; none where the file does not name it.
    pub layout: Option<Layout>,
    /// Dimensions.
    pub shape: Vec<u64>,
}

impl StatsTable {
    /// Returns the subject of a row; `None` if there is no such row, or it does not name its
    /// subject.
    pub fn subject(&self, row: usize) -> Option<StatsSubject> {
        let [side, index, n_bytes, dtype, layout, shape] = self.rows.get(row)?.get(..N_CELLS)?
        else {
            return None;
        };
        let side = match side.as_str() {
            "Input" => SlotSide::Input,
            "Output" => SlotSide::Output,
            _ => return None,
        };
        let dims: Option<Vec<u64>> = match shape.as_str() {
            "-" | "" => Some(Vec::new()),
            dims => dims.split('x').map(|dim| dim.parse().ok()).collect(),
        };
        Some(StatsSubject {
            side,
            index: index.parse().ok()?,
            n_bytes: n_bytes.parse().ok()?,
            dtype: DType::ALL
                .iter()
                .copied()
                // `UNKNOW` covers several dtypes, so it identifies none of them.
                .find(|&known| names::is_distinct(known) && names::dtype(known) == dtype),
            layout: Layout::ALL
                .iter()
                .copied()
                .find(|known| *known != Layout::Max && known.name() == layout),
            shape: dims?,
        })
    }

    /// The titles after the description of the tensor, each with the cell of a row.
    pub fn statistics(&self, row: usize) -> impl Iterator<Item = (&str, &str)> {
        let cells = self.rows.get(row).into_iter().flatten();
        let columns = self.columns.iter().map(String::as_str);
        columns.zip(cells.map(String::as_str)).skip(N_CELLS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_format::stats_csv::{DESCRIPTION, parse};

    #[test]
    fn rows_say_what_they_are_about() {
        let rows = "Input,0,48,DT_FLOAT,NCHW,1x3x2x2,9\nOutput,1,2,DT_BF16,ND,-,8\n\
                    Output,2,0,UNKNOW,-,0,\nWorkspace,0,0,-,-,-,1\nInput,0,1,-,-,2x?,1\n";
        let table = parse(&format!("{DESCRIPTION},Max Value\n{rows}")).unwrap();
        let first = table.subject(0).unwrap();
        assert_eq!(
            (first.side, first.index, first.n_bytes),
            (SlotSide::Input, 0, 48)
        );
        assert_eq!(
            (first.dtype, first.layout),
            (Some(DType::F32), Some(Layout::Nchw))
        );
        assert_eq!(first.shape, [1, 3, 2, 2]);
        let second = table.subject(1).unwrap();
        assert_eq!((second.dtype, second.shape), (Some(DType::BF16), vec![]));
        let third = table.subject(2).unwrap();
        assert_eq!(
            (third.dtype, third.layout, third.shape),
            (None, None, vec![0])
        );
        assert_eq!(
            (table.subject(3), table.subject(4), table.subject(5)),
            (None, None, None)
        );
        assert_eq!(
            table.statistics(1).collect::<Vec<_>>(),
            [("Max Value", "8")]
        );
    }
}
