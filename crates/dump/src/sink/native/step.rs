//! The rows of one step, until they are its table.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, GrowingFile};
use opscope_store::file_bytes::FileBytes;
use opscope_store::record::ModelId;
use opscope_store::slot_table::{N_GROUP_ROWS, SlotRow, TableWriter, compression_of, journal};
use opscope_store::tree::native::NativeTree;

use super::lock;

/// How often another name is tried for the rows of a step that is executed again.
const N_NAME_ATTEMPTS: u64 = 1000;
/// zstd's level for tables. A step may be as short as a few milliseconds.
const LEVEL: i32 = 1;

/// The rows of a step that is not over.
pub(super) struct StepRows {
    creator: Arc<Creator>,
    table: PathBuf,
    /// `None` if nothing is written, only counted.
    journal: Option<GrowingFile>,
    state: Mutex<JournalState>,
}

#[derive(Default)]
struct JournalState {
    /// Bytes of the journal.
    n_bytes: u64,
    n_rows: usize,
    /// The record of each frame: its time, and where it is.
    frames: Vec<(u64, Range<u64>)>,
    /// All rows, if there is no journal.
    rows: Vec<Vec<SlotRow>>,
}

impl StepRows {
    /// Begins the rows of a step. A repeated step, already dumped before, gets a separate journal
    /// and table.
    pub(super) fn create(
        creator: &Arc<Creator>,
        tree: &NativeTree,
        model: &ModelId,
        step: u64,
    ) -> Result<StepRows, StoreError> {
        let is_pretending = creator.pretended(1).is_some();
        let new = |table, journal, n_bytes| StepRows {
            creator: creator.clone(),
            table,
            journal,
            state: Mutex::new(JournalState {
                n_bytes,
                ..JournalState::default()
            }),
        };
        for attempt in 0..N_NAME_ATTEMPTS {
            let [table, path] = [tree.table(model, step), tree.journal(model, step)]
                .map(|path| numbered(&path, attempt));
            // A table without a journal is a step that was finished before.
            if creator.exists(&table) {
                continue;
            }
            // A rehearsal writes nothing, and counts the rows in memory.
            if is_pretending {
                return Ok(new(table, None, 0));
            }
            if let Some(file) = creator.create_growing(&path)? {
                // Another process may have finished a step of this name after the first check. Now
                // that we own the journal no other process can.
                if creator.exists(&table) {
                    remove(&path)?;
                    continue;
                }
                creator.write_at(&file, 0, &[journal::MAGIC])?;
                return Ok(new(table, Some(file), journal::MAGIC.len() as u64));
            }
        }
        let path = tree.journal(model, step);
        let text = "other runs of the step take the name again and again";
        Err(StoreError::io("create", &path)(io::Error::other(text)))
    }

    /// Adds a frame for the rows of each record, all with one call. They are in the file when this
    /// returns.
    pub(super) fn append(&self, records: &mut [Vec<SlotRow>]) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        let mut frames = Vec::with_capacity(records.len());
        let mut state = None;
        if let Some(journal) = &self.journal {
            for rows in records.iter_mut().filter(|rows| !rows.is_empty()) {
                let start = bytes.len() as u64;
                let encoded = journal::encode(rows, &mut bytes);
                encoded.map_err(StoreError::io("write", journal.path()))?;
                frames.push((time(rows), start..bytes.len() as u64));
            }
            // Written in order: frames after a missing one could not be found.
            let state = state.insert(lock(&self.state));
            self.creator.write_at(journal, state.n_bytes, &[&bytes])?;
        }
        let mut state = state.unwrap_or_else(|| lock(&self.state));
        let base = state.n_bytes;
        state.n_rows += records.iter().map(Vec::len).sum::<usize>();
        let placed = frames
            .into_iter()
            .map(|(time, range)| (time, base + range.start..base + range.end));
        state.frames.extend(placed);
        state.n_bytes += bytes.len() as u64;
        if self.journal.is_none() {
            state.rows.extend(records.iter_mut().map(std::mem::take));
        }
        Ok(())
    }

    /// Writes the table, removes the journal, and returns the table and its size. If the table
    /// cannot be written the journal stays.
    pub(super) fn finish(&self) -> Result<(PathBuf, u64), StoreError> {
        let mut state = std::mem::take(&mut *lock(&self.state));
        // Threads report in any order; time is that of execution.
        state.frames.sort_by_key(|(time, _)| *time);
        state.rows.sort_by_key(|rows| time(rows));
        let bytes = self.journal.as_ref().map(|journal| {
            let opened = FileBytes::open_in_dump(journal.path());
            opened.map_err(StoreError::io("read", journal.path()))
        });
        let bytes = bytes.transpose()?;
        let bytes = bytes.as_ref().map(AsRef::as_ref).unwrap_or_default();
        let mut n_bytes = 0;
        self.creator.create_with(&self.table, |file| {
            n_bytes = write_table(file, &mut state, bytes)?;
            Ok(())
        })?;
        // Only now: killed in between, both are there and readers take the table.
        if let Some(journal) = &self.journal {
            remove(journal.path())?;
        }
        Ok((self.table.clone(), n_bytes))
    }

    /// Removes the journal of a step that is removed.
    pub(super) fn discard(&self) -> Result<(), StoreError> {
        *lock(&self.state) = JournalState::default();
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        remove(journal.path())
    }
}

fn remove(journal: &Path) -> Result<(), StoreError> {
    std::fs::remove_file(journal).map_err(StoreError::io("remove", journal))
}

/// `step-3.rows`, `step-3.1.rows`, …
fn numbered(path: &Path, attempt: u64) -> PathBuf {
    if attempt == 0 {
        return path.to_owned();
    }
    let suffix = path.extension().unwrap_or_default().to_string_lossy();
    path.with_extension(format!("{attempt}.{suffix}"))
}

fn time(rows: &[SlotRow]) -> u64 {
    let time = rows.first().and_then(|row| row.time_us);
    time.and_then(|time| u64::try_from(time).ok())
        .unwrap_or(u64::MAX)
}

/// Writes the rows of all frames in their order; returns the size of the table.
fn write_table(file: &mut File, state: &mut JournalState, journal: &[u8]) -> io::Result<u64> {
    let mut out = CountedWrite {
        out: BufWriter::new(file),
        n_bytes: 0,
    };
    let level = compression_of(state.n_rows, LEVEL);
    let mut writer = TableWriter::new(&mut out, Vec::new(), level)?;
    let mut calls: HashMap<(Option<i64>, Arc<str>), i64> = HashMap::new();
    let mut rows: Vec<SlotRow> = Vec::new();
    let n_records = state.frames.len() + state.rows.len();
    for position in 0..n_records {
        let from = rows.len();
        match state.frames.get(position) {
            Some((_, range)) => {
                let frame = journal.get(range.start as usize..range.end as usize);
                let read = journal::decode_frame(frame.unwrap_or_default());
                rows.extend(read.map_err(io::Error::other)?);
            }
            None => rows.append(&mut state.rows[position - state.frames.len()]),
        }
        let Some(first) = rows.get(from) else {
            continue;
        };
        let operator = (first.task, first.op_name.clone().unwrap_or_default());
        // The first call is number 0.
        let call = calls.entry(operator).or_insert(-1);
        *call += 1;
        for row in &mut rows[from..] {
            row.position = i64::try_from(position).ok();
            row.call = Some(*call);
        }
        if rows.len() >= N_GROUP_ROWS {
            writer.write_group(&mut rows)?;
            rows.clear();
        }
    }
    writer.write_group(&mut rows)?;
    writer.finish()?;
    out.out.flush()?;
    Ok(out.n_bytes)
}

/// Counts the bytes that pass through it. The library flushes after every column, which would take
/// dozens of system calls for a small table, so only the end is flushed.
struct CountedWrite<W> {
    out: W,
    n_bytes: u64,
}

impl<W: Write> Write for CountedWrite<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.n_bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
