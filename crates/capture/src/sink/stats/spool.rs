//! Rows that wait in a file: sorted stretches of them, which are read together in order.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use opscope_store::record::{Operator, Side};
use opscope_tensor::{DType, Shape, Stats};

use super::{SinkError, StatsRow};

/// Bytes that are read of a stretch at once.
const N_READ_BYTES: usize = 16 << 10;
/// Numbers of a row that are 64 bits each: step, operator, type and shape, side, position, and whether there are
/// statistics.
const N_PLACE_NUMBERS: usize = 6;
/// Numbers of statistics.
const N_STATS_NUMBERS: usize = 17;
const N_ROW_BYTES: usize = 8 * (N_PLACE_NUMBERS + N_STATS_NUMBERS);

/// Sorted rows in a file. What many rows have in common stays in memory once.
#[derive(Default)]
pub(super) struct Spool {
    file: Option<File>,
    /// Where stretches begin and end, in bytes.
    stretches: Vec<(u64, u64)>,
    operators: Numbered<OperatorKey>,
    types: Numbered<(DType, Shape)>,
}

/// Values that are known by number.
struct Numbered<T> {
    values: Vec<T>,
    numbers: HashMap<T, u64>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered {
            values: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Numbered<T> {
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

/// An operator, by what rows say of it.
#[derive(Clone)]
struct OperatorKey(Arc<Operator>);

impl OperatorKey {
    fn key(&self) -> (u32, &str, &str) {
        (self.0.task_id, &self.0.op_name, &self.0.op_type)
    }
}

impl PartialEq for OperatorKey {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for OperatorKey {}

impl std::hash::Hash for OperatorKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Spool {
    /// Adds rows that are sorted.
    pub(super) fn append(&mut self, rows: &[StatsRow]) -> Result<(), SinkError> {
        let start = self.stretches.last().map_or(0, |(_, end)| *end);
        let file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile().map_err(cannot("create"))?,
        };
        let result = self.write(&file, start, rows);
        self.file = Some(file);
        let end = result.map_err(cannot("write"))?;
        self.stretches.push((start, end));
        Ok(())
    }

    fn write(&mut self, file: &File, start: u64, rows: &[StatsRow]) -> io::Result<u64> {
        let mut out = BufWriter::new(file);
        out.seek(SeekFrom::Start(start))?;
        for row in rows {
            out.write_all(&self.encode(row))?;
        }
        out.flush()?;
        Ok(start + (rows.len() * N_ROW_BYTES) as u64)
    }

    fn encode(&mut self, row: &StatsRow) -> Vec<u8> {
        let place: [u64; N_PLACE_NUMBERS] = [
            row.step,
            self.operators.number(OperatorKey(row.operator.clone())),
            self.types.number((row.dtype, row.shape.clone())),
            u64::from(row.side == Side::Output),
            row.index as u64,
            row.stats.is_some().into(),
        ];
        let stats = row
            .stats
            .as_ref()
            .map_or([0; N_STATS_NUMBERS], numbers_of_stats);
        let numbers = place.into_iter().chain(stats);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    /// `None` for bytes that are not ours.
    fn decode(&self, bytes: &[u8; N_ROW_BYTES]) -> Option<StatsRow> {
        let (words, _) = bytes.as_chunks::<8>();
        let numbers: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (place, stats) = numbers.split_first_chunk::<N_PLACE_NUMBERS>()?;
        let [step, operator, kind, side, index, has_stats] = *place;
        let (dtype, shape) = self.types.get(kind)?.clone();
        Some(StatsRow {
            step,
            operator: self.operators.get(operator)?.0.clone(),
            side: if side == 1 { Side::Output } else { Side::Input },
            index: usize::try_from(index).ok()?,
            dtype,
            shape,
            stats: match has_stats {
                1 => Some(stats_of_numbers(stats.try_into().ok()?)),
                _ => None,
            },
        })
    }
}

fn numbers_of_stats(stats: &Stats) -> [u64; N_STATS_NUMBERS] {
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

fn stats_of_numbers(numbers: [u64; N_STATS_NUMBERS]) -> Stats {
    let [
        n_elements,
        n_nan,
        n_pos_inf,
        n_neg_inf,
        n_zero,
        n_neg_zero,
        ..,
    ] = numbers;
    let [.., min, max, sum, mean, std, l1, l2] = numbers.map(f64::from_bits);
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
    ] = numbers;
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

/// Rows by step, task, name, side and position.
pub struct StatsRows {
    rows: Vec<StatsRow>,
    spool: Spool,
}

impl StatsRows {
    /// Rows in memory, which are sorted, and rows in a file.
    pub(super) fn new(rows: Vec<StatsRow>, spool: Spool) -> StatsRows {
        StatsRows { rows, spool }
    }

    /// The rows in order. They may be read again and again.
    ///
    /// # Errors
    /// [`SinkError`] if a file that holds some of them cannot be read.
    pub fn iter(&self) -> Result<StoredRows<'_>, SinkError> {
        let n = self.spool.stretches.len();
        let mut rows = StoredRows {
            all: self,
            sources: (self.spool.stretches.iter())
                .map(|&(start, end)| Stretch::new(self.spool.file.as_ref(), start, end))
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
pub struct StoredRows<'a> {
    all: &'a StatsRows,
    sources: Vec<Option<Stretch<'a>>>,
    n_taken_of_memory: usize,
    /// The next row of each source.
    next: BinaryHeap<Reverse<NextRow>>,
}

impl StoredRows<'_> {
    /// Lines up the next row of a source; the last source is the memory.
    fn advance(&mut self, source: usize) -> Result<(), SinkError> {
        let row = match self.sources.get_mut(source) {
            Some(None) => None,
            Some(Some(stretch)) => match stretch.next().map_err(cannot("read"))? {
                Some(bytes) => {
                    let row = self.all.spool.decode(&bytes);
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

impl Iterator for StoredRows<'_> {
    type Item = Result<StatsRow, SinkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse(NextRow { row, source }) = self.next.pop()?;
        Some(self.advance(source).map(|()| row))
    }
}

/// A sorted part of a file.
struct Stretch<'a> {
    rows: BufReader<Section<'a>>,
}

impl<'a> Stretch<'a> {
    fn new(file: Option<&'a File>, start: u64, end: u64) -> Option<Stretch<'a>> {
        let section = Section {
            file: file?,
            start,
            end,
        };
        Some(Stretch {
            rows: BufReader::with_capacity(N_READ_BYTES, section),
        })
    }

    fn next(&mut self) -> io::Result<Option<[u8; N_ROW_BYTES]>> {
        let section = self.rows.get_ref();
        if section.start == section.end && self.rows.buffer().is_empty() {
            return Ok(None);
        }
        let mut bytes = [0; N_ROW_BYTES];
        self.rows.read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }
}

/// What is left to read of a part of a file.
struct Section<'a> {
    file: &'a File,
    start: u64,
    end: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_left = usize::try_from(self.end - self.start).unwrap_or(usize::MAX);
        let n_wanted = buffer.len().min(n_left);
        let n = self.file.read_at(&mut buffer[..n_wanted], self.start)?;
        self.start += n as u64;
        Ok(n)
    }
}

/// A row that is the next one of its source; of rows at one place that of the source that was stored first comes first.
struct NextRow {
    row: StatsRow,
    source: usize,
}

impl NextRow {
    fn order(&self, other: &NextRow) -> Ordering {
        let place = place(&self.row).cmp(&place(&other.row));
        place.then(self.source.cmp(&other.source))
    }
}

impl PartialEq for NextRow {
    fn eq(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }
}

impl Eq for NextRow {}

impl PartialOrd for NextRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NextRow {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order(other)
    }
}

/// Sorts rows by step, task, name, side and position: under one task there may be records beside the operator's own.
pub(super) fn sort(rows: &mut [StatsRow]) {
    rows.sort_by(|a, b| place(a).cmp(&place(b)));
}

fn place(row: &StatsRow) -> (u64, u32, &str, Side, usize) {
    let operator = &row.operator;
    (
        row.step,
        operator.task_id,
        &operator.op_name,
        row.side,
        row.index,
    )
}

fn cannot(what: &'static str) -> impl Fn(io::Error) -> SinkError {
    move |error| {
        let dir = std::env::temp_dir();
        let dir = dir.display();
        SinkError::Other(format!(
            "cannot {what} the temporary file in `{dir}` that holds statistics of earlier steps: {error}"
        ))
    }
}
