//! The last form of a record where no other file can be written: over the first one.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::file_format::run_json::{self, RunRecord};

/// Bytes of blanks at the end of a record while the run is at work: counters and findings come to
/// less.
const ROOM_BYTES: usize = 4096;

/// The text of a record with space for the additional text at its end.
pub(super) fn with_room(mut text: String) -> String {
    text.extend(std::iter::repeat_n(' ', ROOM_BYTES));
    text
}

/// Writes `record` over the file at `path`, which keeps its length, so that it works on a full
/// disk. If both do not fit, the end of the run replaces the text of the configuration.
pub(super) fn write(path: &Path, record: &RunRecord) -> io::Result<()> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(path)?;
    let n_bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut text = run_json::encode(record);
    if text.len() > n_bytes {
        let mut record = record.clone();
        if let Some(configuration) = &mut record.configuration {
            configuration.text = None;
        }
        text = run_json::encode(&record);
    }
    let n_blanks = n_bytes
        .checked_sub(text.len())
        .ok_or(io::ErrorKind::StorageFull)?;
    text.extend(std::iter::repeat_n(' ', n_blanks));
    file.write_all_at(text.as_bytes(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_format::run_json::RunState;
    use crate::run_file::read;

    #[test]
    fn a_record_ends_where_it_began() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        let mut record = RunRecord {
            version: run_json::VERSION,
            id: "1-2-3-4-5".to_owned(),
            ..RunRecord::default()
        };
        std::fs::write(&path, with_room(run_json::encode(&record))).unwrap();
        let n_bytes = std::fs::metadata(&path).unwrap().len();
        record.state = RunState::Failed;
        record.first_error = Some("no space".to_owned());
        write(&path, &record).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), n_bytes);
        assert_eq!(read(&path).unwrap(), record);
        // Shorter than before: nothing of the old text is left.
        record.first_error = None;
        write(&path, &record).unwrap();
        assert_eq!(read(&path).unwrap(), record);
        record.command = "x".repeat(2 * ROOM_BYTES);
        assert!(write(&path, &record).is_err());
    }
}
