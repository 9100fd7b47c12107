//! One table for each step, in place of a file for each operator.

use std::path::Path;

use opscope_capture::{SinkError, WrittenFiles};
use opscope_store::file_format::stats_csv::step_table;
use opscope_store::record::Record;
use opscope_store::tree::acl::{stream_id, task_id};

use super::AclSink;
use super::outlet::Outlet;
use crate::sink::ledger::FileOrigin;

/// Number of operators whose rows are appended together, if that many arrive soon.
pub(super) const N_AT_ONCE: usize = 64;

impl AclSink {
    /// Appends the rows of records, with one call for consecutive records of a step. Failed ones
    /// are left to [`AclSink::write_row`], which returns the reason.
    pub(super) fn append_together(&self, records: &[&Record]) {
        let wanted: Vec<&Record> = (records.iter().copied())
            .filter(|record| record.n_bytes() > 0)
            .collect();
        for of_step in wanted.chunk_by(|a, b| a.step == b.step && (a.model == b.model)) {
            let [first, ..] = of_step else {
                continue;
            };
            let texts: Vec<String> = of_step.iter().map(|record| rows(record)).collect();
            let Ok(mut written) = self.append(first, &texts.concat()) else {
                continue;
            };
            let mut appended = super::lock(&self.appended);
            for record in of_step {
                appended.insert(record.timestamp_us, written);
                // One call has written the rows of all, so the first record answers for the bytes.
                written = WrittenFiles::default();
            }
        }
    }

    pub(super) fn write_row(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        match super::lock(&self.appended).remove(&record.timestamp_us) {
            Some(written) => Ok(written),
            None => self.append(record, &rows(record)),
        }
    }

    /// Appends to the table of the step that `record` is of.
    fn append(&self, record: &Record, rows: &str) -> Result<WrittenFiles, SinkError> {
        let Outlet::Files { creator, mapping } = &self.outlet else {
            let text = "rows cannot be appended to what a function was handed";
            return Err(SinkError::Other(text.to_owned()));
        };
        let dir = self.tree.step_dir(&record.model, record.step);
        if let Some(run) = self.run.get() {
            run.note_file(&dir);
        }
        creator.create_dir(&dir)?;
        let path = dir.join(step_table::FILE_NAME);
        // One writer at a time: a table is begun once.
        let guard = super::lock(mapping);
        let header = step_table::header();
        let is_new = creator.append(&path, &header, rows)?;
        drop(guard);
        let (n_header_bytes, origin) = if is_new {
            (header.len(), FileOrigin::New)
        } else {
            (0, FileOrigin::Appended)
        };
        let n_bytes = (n_header_bytes + rows.len()) as u64;
        self.note_rows(&dir, record.step, (&path, n_bytes, origin))?;
        Ok(WrittenFiles {
            n_files: is_new.into(),
            n_bytes,
            ..WrittenFiles::default()
        })
    }

    fn note_rows(
        &self,
        dir: &Path,
        step: u64,
        (path, n_bytes, origin): (&Path, u64, FileOrigin),
    ) -> Result<(), SinkError> {
        let key = (dir.to_owned(), step);
        Ok(self.ledger.note(&key, path, n_bytes, origin)?)
    }
}

fn rows(record: &Record) -> String {
    step_table::rows(record, task_id(record), stream_id(&record.model))
}
