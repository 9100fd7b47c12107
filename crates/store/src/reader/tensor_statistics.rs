//! The statistics that a dump has of a tensor.

use std::ops::Deref;
use std::sync::Arc;

use crate::SharedText;

/// The title of a column, and the text in it; none where the cell is empty.
pub type StatisticCell = (SharedText, Option<SharedText>);

/// Statistics and digests in the order of their columns. Copies share their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorStatistics(Option<Arc<[StatisticCell]>>);

impl Deref for TensorStatistics {
    type Target = [StatisticCell];

    fn deref(&self) -> &[StatisticCell] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<'a> IntoIterator for &'a TensorStatistics {
    type Item = &'a StatisticCell;
    type IntoIter = std::slice::Iter<'a, StatisticCell>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Vec<StatisticCell>> for TensorStatistics {
    fn from(cells: Vec<StatisticCell>) -> TensorStatistics {
        // Most tensors have none, which take no memory.
        TensorStatistics((!cells.is_empty()).then(|| cells.into()))
    }
}

impl FromIterator<(String, Option<String>)> for TensorStatistics {
    fn from_iter<I: IntoIterator<Item = (String, Option<String>)>>(cells: I) -> TensorStatistics {
        let cells = cells.into_iter();
        let cells = cells.map(|(title, text)| (title.into(), text.map(Into::into)));
        cells.collect::<Vec<_>>().into()
    }
}
