//! Rows that wait in a file: sorted sections, which are merged when read.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use opscope_capture::SinkError;
use opscope_store::record::Operator;
use opscope_tensor::{DType, Shape};

/// Number of bytes of a section that are read at once.
const N_READ_BYTES: usize = 16 << 10;
/// Maximum number of rows in memory while more follow; the others wait in a file without a name.
pub(super) const N_IN_MEMORY_MAX: usize = 1 << 16;
const N_WORD_BYTES: usize = 8;

/// A row that can wait in a file.
pub trait StoredRow: Clone {
    /// Number of 64-bit numbers in it.
    const N_WORDS: usize;

    /// The numbers; some may refer to values in `common`.
    fn to_words(&self, common: &mut SharedValues) -> Vec<u64>;

    /// The row with these numbers; `None` if they do not form a row.
    fn from_words(words: &[u64], common: &SharedValues) -> Option<Self>;

    /// The order of two rows.
    fn compare(&self, other: &Self) -> Ordering;
}

/// Values that many rows share, by number.
#[derive(Default)]
pub struct SharedValues {
    operators: NumberedValues<SpooledOperator>,
    types: NumberedValues<(DType, Shape)>,
}

impl SharedValues {
    /// The number of an operator; rows store its task, name and type, and the names of its values.
    pub(super) fn operator(&mut self, operator: &Arc<Operator>) -> u64 {
        self.operators.number(SpooledOperator(operator.clone()))
    }

    pub(super) fn operator_of(&self, number: u64) -> Option<Arc<Operator>> {
        Some(self.operators.get(number)?.0.clone())
    }

    /// The number of a type and shape.
    pub(super) fn r#type(&mut self, dtype: DType, shape: &Shape) -> u64 {
        self.types.number((dtype, shape.clone()))
    }

    pub(super) fn type_of(&self, number: u64) -> Option<(DType, Shape)> {
        self.types.get(number).cloned()
    }
}

/// Sorted rows in a file. Values shared by many rows stay in memory once.
pub(super) struct Spool {
    file: Option<File>,
    /// The beginning and end of each section, in bytes.
    stretches: Vec<(u64, u64)>,
    common: SharedValues,
}

/// Rows on their way to a file: few of them are in memory.
pub(super) struct RowSpooler<R> {
    rows: Vec<R>,
    spool: Spool,
}

impl<R> Default for RowSpooler<R> {
    fn default() -> Self {
        RowSpooler {
            rows: Vec::new(),
            spool: Spool {
                file: None,
                stretches: Vec::new(),
                common: SharedValues::default(),
            },
        }
    }
}

impl<R: StoredRow> RowSpooler<R> {
    /// Adds rows. If about `n_max` are in memory already, these go to the file first.
    ///
    /// # Errors
    /// [`SinkError`] if they cannot be written; then they stay, and nothing is added.
    pub(super) fn add(&mut self, rows: Vec<R>, n_max: usize) -> Result<(), SinkError> {
        if self.rows.len() >= n_max.max(1) {
            sort(&mut self.rows);
            self.spool.append(&self.rows)?;
            self.rows.clear();
        }
        self.rows.extend(rows);
        Ok(())
    }

    /// All rows.
    pub(super) fn finish(self) -> SpooledRows<R> {
        let RowSpooler { mut rows, spool } = self;
        sort(&mut rows);
        SpooledRows { rows, spool }
    }

    /// Number of rows in memory.
    #[cfg(test)]
    pub(super) fn n_in_memory(&self) -> usize {
        self.rows.len()
    }
}

/// Values by number.
struct NumberedValues<T> {
    values: Vec<T>,
    numbers: HashMap<T, u64>,
}

impl<T> Default for NumberedValues<T> {
    fn default() -> Self {
        NumberedValues {
            values: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> NumberedValues<T> {
    fn number(&mut self, value: T) -> u64 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = self.values.len() as u64;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }

    fn get(&self, number: u64) -> Option<&T> {
        self.values.get(usize::try_from(number).ok()?)
    }
}

/// An operator, by the values in its rows.
#[derive(Clone)]
struct SpooledOperator(Arc<Operator>);

impl PartialEq for SpooledOperator {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.0, &*other.0);
        // Nearly all rows of an operator share it, which spares the comparison of names. Attributes
        // are excluded: rows do not contain them, and they may hold whole tensors.
        std::ptr::eq(a, b)
            || (a.task_id, &a.op_name, &a.op_type) == (b.task_id, &b.op_name, &b.op_type)
                && (&a.inputs, &a.outputs) == (&b.inputs, &b.outputs)
    }
}

impl Eq for SpooledOperator {}

impl std::hash::Hash for SpooledOperator {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // Task and name distinguish nearly all operators; hashing the names of all values for every
        // row would take longer than the rare comparison.
        (self.0.task_id, &self.0.op_name).hash(state);
    }
}

impl Spool {
    /// Adds sorted rows.
    fn append<R: StoredRow>(&mut self, rows: &[R]) -> Result<(), SinkError> {
        let start = self.stretches.last().map_or(0, |(_, end)| *end);
        let file = match self.file.take() {
            Some(file) => file,
            // A file without a name disappears with the process, even if that is killed.
            None => tempfile::tempfile().map_err(cannot("create"))?,
        };
        let result = self.write(&file, start, rows);
        // Put back before the error is checked, because the earlier sections are still in it.
        self.file = Some(file);
        let end = result.map_err(cannot("write"))?;
        self.stretches.push((start, end));
        Ok(())
    }

    fn write<R: StoredRow>(&mut self, file: &File, start: u64, rows: &[R]) -> io::Result<u64> {
        let mut out = BufWriter::new(file);
        // A failed write may have left bytes after the last section; they are overwritten.
        out.seek(SeekFrom::Start(start))?;
        for row in rows {
            for word in row.to_words(&mut self.common) {
                out.write_all(&word.to_le_bytes())?;
            }
        }
        out.flush()?;
        Ok(start + (rows.len() * R::N_WORDS * N_WORD_BYTES) as u64)
    }

    /// `None` for bytes that are not ours.
    fn decode<R: StoredRow>(&self, bytes: &[u8]) -> Option<R> {
        let (words, _) = bytes.as_chunks::<N_WORD_BYTES>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        R::from_words(&words, &self.common)
    }
}

/// Rows in order, in memory and in a file.
pub struct SpooledRows<R> {
    rows: Vec<R>,
    spool: Spool,
}

impl<R: StoredRow> SpooledRows<R> {
    /// The rows in order. They may be read again and again.
    ///
    /// # Errors
    /// [`SinkError`] if a file that holds some of them cannot be read.
    pub fn iter(&self) -> Result<StoredRows<'_, R>, SinkError> {
        let n = self.spool.stretches.len();
        let mut rows = StoredRows {
            all: self,
            sources: (self.spool.stretches.iter())
                .map(|&(start, end)| {
                    SortedStretch::new(self.spool.file.as_ref(), (start, end), R::N_WORDS)
                })
                .collect(),
            n_taken_of_memory: 0,
            next: BinaryHeap::with_capacity(n + 1),
        };
        for source in 0..=n {
            rows.advance(source)?;
        }
        Ok(rows)
    }
}

/// Rows on their way out of memory and a file.
pub struct StoredRows<'a, R> {
    all: &'a SpooledRows<R>,
    sources: Vec<Option<SortedStretch<'a>>>,
    n_taken_of_memory: usize,
    /// The next row of each source.
    next: BinaryHeap<Reverse<NextRow<R>>>,
}

impl<R: StoredRow> StoredRows<'_, R> {
    /// Queues the next row of a source; the last source is the memory.
    fn advance(&mut self, source: usize) -> Result<(), SinkError> {
        let row = match self.sources.get_mut(source) {
            Some(None) => None,
            Some(Some(stretch)) => match stretch.next().map_err(cannot("read"))? {
                Some(bytes) => {
                    let row = self.all.spool.decode(bytes);
                    Some(row.ok_or_else(|| cannot("read")(io::ErrorKind::InvalidData.into()))?)
                }
                None => None,
            },
            None => {
                let row = self.all.rows.get(self.n_taken_of_memory).cloned();
                self.n_taken_of_memory += 1;
                row
            }
        };
        self.next
            .extend(row.map(|row| Reverse(NextRow { row, source })));
        Ok(())
    }
}

impl<R: StoredRow> Iterator for StoredRows<'_, R> {
    type Item = Result<R, SinkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse(NextRow { row, source }) = self.next.pop()?;
        Some(self.advance(source).map(|()| row))
    }
}

/// A sorted part of a file.
struct SortedStretch<'a> {
    rows: BufReader<StretchReader<'a>>,
    row: Vec<u8>,
}

impl<'a> SortedStretch<'a> {
    fn new(
        file: Option<&'a File>,
        (start, end): (u64, u64),
        n_words: usize,
    ) -> Option<SortedStretch<'a>> {
        let section = StretchReader {
            file: file?,
            start,
            end,
        };
        Some(SortedStretch {
            rows: BufReader::with_capacity(N_READ_BYTES, section),
            row: vec![0; n_words * N_WORD_BYTES],
        })
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let section = self.rows.get_ref();
        // Checked before reading, so that a file that ends within a row is an error and not the end
        // of the rows.
        if section.start == section.end && self.rows.buffer().is_empty() {
            return Ok(None);
        }
        self.rows.read_exact(&mut self.row)?;
        Ok(Some(&self.row))
    }
}

/// The rest, still to be read, of a part of a file.
struct StretchReader<'a> {
    file: &'a File,
    start: u64,
    end: u64,
}

impl Read for StretchReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_left = usize::try_from(self.end - self.start).unwrap_or(usize::MAX);
        let n_wanted = buffer.len().min(n_left);
        // All sections are read from one file concurrently, so none may depend on the file's
        // position.
        let n = self.file.read_at(&mut buffer[..n_wanted], self.start)?;
        self.start += n as u64;
        Ok(n)
    }
}

/// The next row of a source; among equal rows, that of the earliest source comes first.
struct NextRow<R> {
    row: R,
    source: usize,
}

impl<R: StoredRow> PartialEq for NextRow<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<R: StoredRow> Eq for NextRow<R> {}

impl<R: StoredRow> PartialOrd for NextRow<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: StoredRow> Ord for NextRow<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = self.row.compare(&other.row);
        place.then(self.source.cmp(&other.source))
    }
}

fn sort<R: StoredRow>(rows: &mut [R]) {
    // The sort is stable: equal rows keep their order of arrival, within and between sections.
    rows.sort_by(R::compare);
}

fn cannot(what: &'static str) -> impl Fn(io::Error) -> SinkError {
    move |error| {
        let dir = std::env::temp_dir();
        let dir = dir.display();
        SinkError::Other(format!(
            "cannot {what} the temporary file in `{dir}` that holds rows of earlier steps: {error}"
        ))
    }
}
