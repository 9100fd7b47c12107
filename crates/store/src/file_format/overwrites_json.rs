//! `overwrites.json`: the watched values that a run has overwritten, and after which operators.
//!
//! An object; unknown keys are ignored, and missing keys have their default. `docs/watch.md` lists
//! them.

use serde::Deserialize;

use super::json_object;
use crate::FormatError;

/// The name used in error messages.
pub const FORMAT_NAME: &str = "list of overwritten values";
/// Maximum size of a file.
pub const FILE_BYTES_MAX: usize = 64 << 20;
/// Maximum number of kept entries; writers list 1000.
const N_ENTRIES_MAX: usize = 10_000;

/// The list of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OverwriteList {
    /// Overwritten values that the run counted, listed or not.
    pub n_overwrites: u64,
    /// The first of them, in the order in which they were seen.
    pub overwrites: Vec<OverwriteEntry>,
}

/// A watched value that held something else than at the look before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OverwriteEntry {
    /// Execution of the model.
    pub step: Option<u64>,
    /// Name of the operator after which the change was seen.
    pub seen_after: String,
    /// Its type.
    pub seen_after_type: String,
    /// Its task.
    pub seen_after_task_id: Option<u32>,
    /// Name of the next operator, if the change was made between the two.
    pub seen_before: Option<String>,
    /// Its type.
    pub seen_before_type: Option<String>,
    /// Name of the operator or parameter whose value changed.
    pub watched: String,
    /// Its type.
    pub watched_type: String,
    /// Which of its outputs.
    pub output: u32,
    /// Start and end of the bytes of elements that changed, the end excluded; the first ranges.
    pub byte_ranges: Vec<[u64; 2]>,
    /// Number of such ranges, listed or not.
    pub n_byte_ranges: u64,
    /// Bytes in all of them.
    pub n_bytes: u64,
    /// The first element that changed, counted in memory order.
    pub first_element: Option<u64>,
    /// Its value before, as text.
    pub before: String,
    /// Its value afterwards.
    pub after: String,
    /// How it was done, of programs of PyTorch.
    pub kind: Option<String>,
    /// The program's line of the operator.
    pub source: Option<String>,
    /// The program's line of the value.
    pub watched_source: Option<String>,
}

/// Reads a file's bytes.
///
/// # Errors
/// [`FormatError`] if there are too many, or if they are not a JSON object with keys of the right
/// types.
pub fn parse(bytes: &[u8]) -> Result<OverwriteList, FormatError> {
    let mut list: OverwriteList = json_object::decode(bytes, FILE_BYTES_MAX, FORMAT_NAME)?;
    // Omitted values are still counted.
    let n_listed = list.overwrites.len() as u64;
    list.n_overwrites = list.n_overwrites.max(n_listed);
    list.overwrites.truncate(N_ENTRIES_MAX);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_all_are_counted() {
        let text = r#"{"n_overwrites": 0, "later": 1, "overwrites": [
            {"step": 3, "seen_after": "b", "seen_after_task_id": 2, "watched": "a", "output": 1,
             "byte_ranges": [[4, 8]], "n_byte_ranges": 1, "n_bytes": 4, "first_element": 1,
             "before": "1", "after": "nan"}]}"#;
        let list = parse(text.as_bytes()).unwrap();
        assert_eq!(list.n_overwrites, 1);
        let [entry] = &list.overwrites[..] else {
            panic!("{list:?}");
        };
        assert_eq!((entry.step, entry.seen_after_task_id), (Some(3), Some(2)));
        assert_eq!((entry.byte_ranges[0], entry.output), ([4, 8], 1));
        assert_eq!(
            (entry.kind.as_deref(), entry.seen_after_type.as_str()),
            (None, "")
        );
    }

    #[test]
    fn other_files_are_refused() {
        for text in [
            "",
            "[]",
            "{",
            r#"{"overwrites": 1}"#,
            r#"{"overwrites": [{"output": -1}]}"#,
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(parse(b"{}").unwrap(), OverwriteList::default());
    }
}
