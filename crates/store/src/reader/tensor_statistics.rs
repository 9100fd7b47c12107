//! The statistics that a dump has of a tensor. Dumps without elements have them for every tensor,
//! and large ones have millions of tensors.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use opscope_tensor::Stats;

use crate::slot_table::{SlotRow, StatisticsCells};

/// Titles of statistics, as MindSpore's tables have them; a NaN is the extreme, as there.
pub(super) const TITLES: [&str; 10] = [
    "Max Value",
    "Min Value",
    "Avg Value",
    "L2Norm Value",
    "Negative Zero Count",
    "Positive Zero Count",
    "Zero Count",
    "NaN Count",
    "Negative Inf Count",
    "Positive Inf Count",
];
/// The title of the digest.
pub(super) const DIGEST_TITLE: &str = "XXH3";

/// The title of a column, and the text in it; none where the cell is empty.
pub type StatisticCell<'a> = (&'a str, Option<Cow<'a, str>>);

/// Statistics and digests in the order of their columns. Copies share their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorStatistics(Option<Arc<StoredStatistics>>);

/// Numbers take a fifth of the memory of their texts, and are kept if a dump has them.
#[derive(Debug, PartialEq, Eq)]
enum StoredStatistics {
    Numbers(RowNumbers),
    Texts(Box<TableTexts>),
}

/// Statistics and digest of a row of the native form.
#[derive(Debug)]
struct RowNumbers {
    stats: Option<Stats>,
    digest: Option<Arc<str>>,
}

/// The cells of a row of a table.
#[derive(Debug, PartialEq, Eq)]
struct TableTexts {
    titles: Arc<[Box<str>]>,
    /// All cells, one behind the other.
    texts: Box<str>,
    /// Where each cell ends in them; [`EMPTY`] of an empty one.
    ends: Box<[usize]>,
}

/// No text is so long.
const EMPTY: usize = usize::MAX;

impl TensorStatistics {
    /// The statistics of a row of the native form, as far as all of them are known, and its digest.
    pub(super) fn from_row(row: &SlotRow) -> TensorStatistics {
        let numbers = RowNumbers {
            stats: row.stats(),
            digest: row.digest.clone(),
        };
        // Most tensors of a dump of elements have none, which take no memory.
        let is_known = numbers.stats.is_some() || numbers.digest.is_some();
        TensorStatistics(is_known.then(|| Arc::new(StoredStatistics::Numbers(numbers))))
    }

    /// Whether these are the statistics of a row that has a digest alone.
    pub(super) fn is_digest_of(&self, row: &SlotRow) -> bool {
        match self.0.as_deref() {
            Some(StoredStatistics::Numbers(known)) => {
                known.stats.is_none() && row.stats().is_none() && known.digest == row.digest
            }
            _ => false,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Titles and texts. Numbers have as many digits as bring them back.
    pub fn iter(&self) -> impl Iterator<Item = StatisticCell<'_>> {
        let (numbers, texts) = match self.0.as_deref() {
            Some(StoredStatistics::Numbers(numbers)) => (Some(numbers.cells()), None),
            Some(StoredStatistics::Texts(texts)) => (None, Some(texts.cells())),
            None => (None, None),
        };
        // One of them is there, and both have to be of one type.
        let texts = texts.into_iter().flatten();
        numbers.into_iter().flatten().chain(texts)
    }

    /// The numbers, where the dump has them as such and not as texts.
    pub fn numbers(&self) -> Option<StatisticsCells> {
        match self.0.as_deref() {
            Some(StoredStatistics::Numbers(known)) => {
                known.stats.as_ref().map(StatisticsCells::from)
            }
            _ => None,
        }
    }
}

impl PartialEq for RowNumbers {
    fn eq(&self, other: &RowNumbers) -> bool {
        // A mean that is NaN equals itself.
        let [own, other_bits] = [self, other].map(|numbers| {
            let stats = numbers.stats.as_ref()?;
            let cells = StatisticsCells::from(stats);
            let numbers = cells.numbers.map(|number| number.map(f64::to_bits));
            Some((stats.counts.to_array(), numbers))
        });
        self.digest == other.digest && own == other_bits
    }
}

impl Eq for RowNumbers {}

impl RowNumbers {
    fn cells(&self) -> impl Iterator<Item = StatisticCell<'_>> {
        let digest = self.digest.as_deref();
        let digest = digest.map(|digest| (DIGEST_TITLE, Some(Cow::Borrowed(digest))));
        let texts = self.stats.as_ref().map(texts);
        let texts = texts.map(|texts| texts.map(|text| Some(Cow::Owned(text))));
        let texts = TITLES.into_iter().zip(texts.into_iter().flatten());
        texts.chain(digest)
    }
}

/// Statistics in the order of [`TITLES`].
fn texts(stats: &Stats) -> [String; TITLES.len()] {
    let counts = &stats.counts;
    [
        format!("{:?}", stats.max_or_nan()),
        format!("{:?}", stats.min_or_nan()),
        format!("{:?}", stats.mean_or_nan()),
        format!("{:?}", stats.l2),
        counts.n_negative.to_string(),
        counts.n_positive().to_string(),
        counts.n_zero.to_string(),
        counts.n_nan.to_string(),
        counts.n_neg_inf.to_string(),
        counts.n_pos_inf.to_string(),
    ]
}

impl TableTexts {
    fn cells(&self) -> impl Iterator<Item = StatisticCell<'_>> {
        let mut start = 0;
        let texts = self.ends.iter().map(move |&end| {
            let text = self.texts.get(start..end)?;
            start = end;
            Some(Cow::Borrowed(text))
        });
        self.titles.iter().map(AsRef::as_ref).zip(texts)
    }
}

thread_local! {
    /// The titles of the row before: all rows of a table have the same.
    static LAST_TITLES: RefCell<Arc<[Box<str>]>> = RefCell::new(Arc::default());
}

impl FromIterator<(String, Option<String>)> for TensorStatistics {
    fn from_iter<I: IntoIterator<Item = (String, Option<String>)>>(cells: I) -> TensorStatistics {
        let (titles, cells): (Vec<String>, Vec<Option<String>>) = cells.into_iter().unzip();
        if titles.is_empty() {
            return TensorStatistics::default();
        }
        let mut texts = String::new();
        let ends = cells.into_iter().map(|cell| match cell {
            Some(cell) => {
                texts.push_str(&cell);
                texts.len()
            }
            None => EMPTY,
        });
        let ends = ends.collect();
        let titles = LAST_TITLES.with_borrow_mut(|last| {
            if !last.iter().map(AsRef::as_ref).eq(titles.iter()) {
                *last = titles.into_iter().map(String::into_boxed_str).collect();
            }
            last.clone()
        });
        // Room that the text grew into is given back: there are millions of these.
        let texts = texts.into_boxed_str();
        let table = TableTexts {
            titles,
            texts,
            ends,
        };
        TensorStatistics(Some(Arc::new(StoredStatistics::Texts(Box::new(table)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_of(statistics: &TensorStatistics) -> Vec<(String, Option<String>)> {
        let cells = statistics.iter();
        let cells = cells.map(|(title, text)| (title.to_owned(), text.map(Cow::into_owned)));
        cells.collect()
    }

    #[test]
    fn cells_come_back() {
        let cell = |title: &str, text: Option<&str>| (title.to_owned(), text.map(str::to_owned));
        for cells in [
            vec![],
            vec![cell("Max Value", Some("1.5"))],
            vec![cell("a", None), cell("b", Some("")), cell("c", Some("é"))],
            vec![cell("a", Some("x")), cell("b", None), cell("c", Some("y"))],
            vec![cell("a", None)],
        ] {
            let statistics: TensorStatistics = cells.iter().cloned().collect();
            assert_eq!(texts_of(&statistics), cells);
            assert_eq!(statistics.is_empty(), cells.is_empty());
            assert_eq!(statistics.numbers(), None);
        }
    }

    #[test]
    fn rows_have_numbers_and_their_texts() {
        let row = SlotRow {
            n_elements: Some(6),
            digest: Some("ab12".into()),
            statistics: StatisticsCells {
                counts: [0; 8].map(Some),
                numbers: [-1.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6].map(Some),
            },
            ..SlotRow::default()
        };
        let statistics = TensorStatistics::from_row(&row);
        assert_eq!(statistics.numbers(), Some(row.statistics));
        let texts = texts_of(&statistics);
        let [first, .., last] = &texts[..] else {
            panic!("{texts:?}");
        };
        assert_eq!(texts.len(), TITLES.len() + 1);
        assert_eq!(first, &("Max Value".to_owned(), Some("0.1".to_owned())));
        assert_eq!(last, &("XXH3".to_owned(), Some("ab12".to_owned())));
        assert!(!statistics.is_digest_of(&row));

        // A number that is missing leaves the digest alone.
        let row = SlotRow {
            n_elements: None,
            ..row
        };
        let statistics = TensorStatistics::from_row(&row);
        assert_eq!(texts_of(&statistics), std::slice::from_ref(last));
        assert!(statistics.is_digest_of(&row));
        assert!(TensorStatistics::from_row(&SlotRow::default()).is_empty());
    }
}
