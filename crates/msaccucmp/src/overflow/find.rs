//! Finds the records and the dumps of the operators.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use opscope_analysis::overflow::{is_same_part, order};
use opscope_store::decimal::is_digits;
use opscope_store::dump::read_mapping;
use opscope_store::file_format::op_debug;
use opscope_store::tree::acl::DumpFileName;

use super::record::SummaryRecord;
use crate::failure::ToolFailure;

/// Maximum directory depth that the reference searches.
const DEPTH_MAX: usize = 30;
/// A file with overflow records.
pub(super) struct DebugFile {
    pub(super) path: PathBuf,
    pub(super) name: String,
    /// Digits.
    pub(super) timestamp: String,
}

/// The dump of an operator.
pub(super) struct TaskDumpFile {
    pub(super) path: PathBuf,
    pub(super) op_type: String,
}

/// The files with records below `dir`, earliest first. Of files with the same name the last one
/// counts.
pub(super) fn debug_files(dir: &Path) -> Result<Vec<DebugFile>, ToolFailure> {
    let mut found: Vec<DebugFile> = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    // The reference reads only the table of the given directory, not those of subdirectories.
    let mapped = read_mapping(dir)
        .into_iter()
        .map(|(short, real)| (real, dir.join(short)));
    let mapped: Vec<(String, PathBuf)> = mapped.filter(|(_, path)| path.is_file()).collect();
    for (name, path) in files_below(dir).into_iter().chain(mapped) {
        let Some((stream_id, timestamp)) = parse_debug_name(&name) else {
            continue;
        };
        if stream_id.is_none() {
            return Err(no_stream(&name));
        }
        let file = DebugFile {
            path,
            name: name.clone(),
            timestamp,
        };
        match by_name.get(&name) {
            Some(&i) => found[i] = file,
            None => {
                by_name.insert(name, found.len());
                found.push(file);
            }
        }
    }
    found.sort_by_key(|file| order(&file.timestamp));
    Ok(found)
}

/// The earliest dump of the task named by a record, in the directories around the record's file.
pub(super) fn operator(
    file: &DebugFile,
    record: &SummaryRecord,
) -> Result<Option<TaskDumpFile>, ToolFailure> {
    let dir = file.path.parent().unwrap_or(Path::new("."));
    let mut earliest: Option<((usize, String), TaskDumpFile)> = None;
    for (name, path) in files_below(dir) {
        let Some(parsed) = DumpFileName::parse(&name) else {
            continue;
        };
        // This precedes the filters because one such name anywhere in the tree ends the reference's
        // run, whatever its task.
        let Some(stream_id) = parsed.stream_id else {
            return Err(no_stream(&name));
        };
        let is_record = name.starts_with(op_debug::FILE_NAME_PREFIX);
        let is_task =
            (u64::from(parsed.task_id), u64::from(stream_id)) == (record.task_id, record.stream_id);
        let sub_task = parsed.sub_task;
        let is_part = is_same_part(record.context_id, sub_task.map(|s| s.context_id))
            && is_same_part(record.thread_id, sub_task.map(|s| s.thread_id));
        if is_record || !is_task || !is_part {
            continue;
        }
        let key = order(&parsed.timestamp);
        if earliest
            .as_ref()
            .is_none_or(|(earliest, _)| key < *earliest)
        {
            let op_type = parsed.op_type;
            earliest = Some((key, TaskDumpFile { path, op_type }));
        }
    }
    Ok(earliest.map(|(_, file)| file))
}

/// Names and paths of the files below `dir`; files of a directory precede deeper ones.
fn files_below(dir: &Path) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    let mut dirs = vec![(dir.to_owned(), 1)];
    while let Some((dir, depth)) = dirs.pop() {
        let mut below = Vec::new();
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            // This does not follow links: linked directories are never entered, so link cycles end.
            // A link to a file still counts.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below.push((path, depth + 1));
            } else if path.is_file() {
                files.push((entry.file_name().to_string_lossy().into_owned(), path));
            }
        }
        if depth < DEPTH_MAX {
            // The stack pops its last entry first; reversed, the directories come in listing order,
            // which decides between files with the same name.
            dirs.extend(below.into_iter().rev());
        }
    }
    files
}

/// Stream and timestamp of `Opdebug.Node_OpDebug.{task}[.{stream}].{timestamp}…`, with any suffix.
fn parse_debug_name(name: &str) -> Option<(Option<&str>, String)> {
    let rest = name.strip_prefix(op_debug::FILE_NAME_PREFIX)?;
    let mut fields = rest.split('.');
    if !is_digits(fields.next()?) {
        return None;
    }
    let second = fields.next()?;
    // The older form has no stream. The second field is a stream only if the third has digits;
    // otherwise it is the timestamp.
    if is_digits(second)
        && let Some(timestamp) = fields.next().and_then(leading_digits)
    {
        return Some((Some(second), timestamp));
    }
    Some((None, leading_digits(second)?))
}

fn leading_digits(text: &str) -> Option<String> {
    let n = text.bytes().take_while(u8::is_ascii_digit).count();
    (n > 0).then(|| text[..n].to_owned())
}

fn no_stream(name: &str) -> ToolFailure {
    ToolFailure::unexpected(format!("there is no stream id in the name '{name}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_records() {
        let cases = [
            ("Opdebug.Node_OpDebug.1.2.300", Some((Some("2"), "300"))),
            (
                "Opdebug.Node_OpDebug.1.2.300.4.1.0.0",
                Some((Some("2"), "300")),
            ),
            ("Opdebug.Node_OpDebug.1.2.300x", Some((Some("2"), "300"))),
            ("Opdebug.Node_OpDebug.1.300", Some((None, "300"))),
            ("Opdebug.Node_OpDebug.1.300.output", Some((None, "300"))),
            ("Opdebug.Node_OpDebug.1", None),
            ("Opdebug.Node_OpDebug.x.2.300", None),
            ("OpDebug.Node_Opdebug.1.2.300", None),
        ];
        for (name, expected) in cases {
            let found = parse_debug_name(name);
            let found = found
                .as_ref()
                .map(|(stream, time)| (*stream, time.as_str()));
            assert_eq!(found, expected, "{name}");
        }
        assert!(order("0099") < order("100"));
    }
}
