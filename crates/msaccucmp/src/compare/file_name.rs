//! Parses the names of dump files.

use std::collections::HashMap;
use std::path::Path;

use opscope_store::decimal::is_digits;

use super::stop::CompareStop;

const NPY: &str = ".npy";
const STANDARD: &str = ".pb";
const QUANT: &str = ".quant";
/// Markers in the names of manual slices and of sub-graphs.
const SLICE: &str = "_lxslice";
const SUB_GRAPH: &str = "_sgt_graph";
const SUB_GRAPH_NUMBER: &str = "sgt_graph_";
/// Longer names have the kind of task as the fourth field from the end.
const FIELDS_WITHOUT_TASK: usize = 5;
const TASK_FIELD_FROM_END: usize = 4;
const FFTS_TASK: &str = "4";
const TIMESTAMP_LENGTH: usize = 16;
/// Maximum length of a timestamp.
const DIGITS_MAX: usize = 255;

/// The framework and side that wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DumpFileKind {
    /// The device.
    Offline,
    /// The original framework: `.pb`.
    Standard,
    /// The quantised original: `.quant`.
    Quant,
    /// Either original, as arrays.
    Numpy,
}

/// The relation between the files of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskMode {
    /// Each file is a whole run.
    Normal,
    /// Files are slices cut by the runtime.
    Automatic,
    /// Files are slices cut by the compiler.
    Manual,
}

/// The kind and the key of a file, or `None` for skipped names.
pub(super) fn parse(name: &str) -> Option<(DumpFileKind, String)> {
    for (suffix, kind) in [
        (NPY, DumpFileKind::Numpy),
        (STANDARD, DumpFileKind::Standard),
        (QUANT, DumpFileKind::Quant),
    ] {
        if let Some(stem) = name.strip_suffix(suffix) {
            return Some((kind, original_key(stem, kind == DumpFileKind::Numpy)?));
        }
    }
    Some((DumpFileKind::Offline, offline_name(name)?.to_owned()))
}

/// `{name}.{index}` of `{name}.{index}.{time}`.
fn original_key(stem: &str, allows_dots: bool) -> Option<String> {
    let (key, time) = stem.rsplit_once('.')?;
    let (name, index) = key.rsplit_once('.')?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|b| is_name_byte(b) || (allows_dots && b == b'.'));
    (is_name && is_digits(index) && is_digits(time) && time.len() <= DIGITS_MAX)
        .then(|| key.to_owned())
}

/// The second field of a device's file name; anything may follow the first digit of the fourth.
fn offline_name(name: &str) -> Option<&str> {
    let mut fields = name.split('.');
    let [op_type, op_name, task] = [fields.next()?, fields.next()?, fields.next()?];
    let starts_with_digit = fields.next()?.starts_with(|c: char| c.is_ascii_digit());
    (is_name(op_type) && is_name(op_name) && is_digits(task) && starts_with_digit)
        .then_some(op_name)
}

/// Whether a text is a valid field of a name.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_name_byte)
}

/// The operator's type in a path's file name; `NaN` if the name is not a device's.
pub(super) fn op_type(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    // Merged slices have a `*` in place of their numbers.
    match offline_name(&name.replace('*', "0")) {
        Some(_) => name.split('.').next().unwrap_or_default(),
        None => super::metrics::NAN,
    }
}

/// The key without markers of sub-graphs and slices; `None` for skipped slices.
pub(super) fn without_marks(key: &str, has_rule: bool) -> Result<Option<String>, CompareStop> {
    // Rules use the names of operators before slicing.
    if has_rule && key.contains(SLICE) {
        let key = without_slice(key);
        return Ok((!key.contains(SLICE)).then_some(key));
    }
    let mut key = key;
    if key.contains(SLICE) {
        let (start, end) = numbered(key, "lxslice")
            .next()
            .ok_or_else(CompareStop::index)?;
        if end == key.len() {
            key = &key[..start.saturating_sub(1)];
        }
    }
    if key.contains(SUB_GRAPH) {
        let (_, end) = numbered(key, SUB_GRAPH_NUMBER)
            .last()
            .ok_or_else(CompareStop::index)?;
        if end != key.len() {
            // Any single character separates the number from the name.
            key = key.get(end + 1..).unwrap_or_default();
        }
    }
    Ok((!key.contains(SLICE)).then(|| key.to_owned()))
}

/// The name without the numbers of slices.
pub(super) fn without_slice(name: &str) -> String {
    let mut out = String::new();
    let mut copied = 0;
    for (start, end) in numbered(name, SLICE) {
        out.push_str(&name[copied..start]);
        copied = end;
    }
    out + &name[copied..]
}

/// Positions of `word` followed by digits, from left to right.
fn numbered<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let found = text.match_indices(word);
    found.filter_map(move |(start, _)| {
        let after = &text[start + word.len()..];
        let n_digits = after.bytes().take_while(u8::is_ascii_digit).count();
        (n_digits > 0).then_some((start, start + word.len() + n_digits))
    })
}

/// The relation of a file to others of its operator; `None` if the kind of task is unknown.
pub(super) fn task_mode(name: &str) -> Option<TaskMode> {
    if name.ends_with(NPY) {
        return Some(TaskMode::Normal);
    }
    let fields: Vec<&str> = name.split('.').collect();
    if fields.len() <= FIELDS_WITHOUT_TASK {
        return Some(TaskMode::Normal);
    }
    match fields[fields.len() - TASK_FIELD_FROM_END] {
        FFTS_TASK if name.contains(SLICE) => Some(TaskMode::Manual),
        FFTS_TASK => Some(TaskMode::Automatic),
        "0" | "1" | "2" | "3" => Some(TaskMode::Normal),
        _ => None,
    }
}

/// The sort key of a list of files.
#[derive(Clone, Copy)]
pub(super) enum SortBy {
    /// The last field, or the third for originals.
    Time,
    /// The fifth field.
    SliceTime,
    /// The last but one field.
    Thread,
    /// The last digit of the second field.
    Slice,
}

/// The sort key of a file; names without one get a substitute.
pub(super) fn sort_key(
    path: &Path,
    by: SortBy,
    mapping: &HashMap<String, String>,
) -> Result<u64, CompareStop> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let real = if is_digits(&name) {
        match mapping.get(name.as_ref()) {
            Some(real) => real.as_str(),
            // The reference's substitute: small, so that such names come first.
            None => return Ok(1),
        }
    } else {
        name.as_ref()
    };
    let fields: Vec<&str> = real.split('.').collect();
    let (text, otherwise) = match by {
        SortBy::Time if [NPY, STANDARD, QUANT].iter().any(|s| real.ends_with(s)) => {
            (fields.get(2), 0)
        }
        SortBy::Time => (fields.last(), 0),
        SortBy::SliceTime => (fields.get(4), 0),
        SortBy::Thread => (fields.len().checked_sub(2).and_then(|i| fields.get(i)), 2),
        SortBy::Slice => {
            let last = fields.get(1).and_then(|field| field.chars().last());
            // Only the last digit: the reference missorts more than ten slices.
            let digit = last.ok_or_else(CompareStop::index)?.to_digit(10);
            return Ok(digit.map_or(3, u64::from));
        }
    };
    let text = text.ok_or_else(CompareStop::index)?;
    let is_time = matches!(by, SortBy::Time | SortBy::SliceTime);
    if !is_digits(text) || (is_time && text.len() != TIMESTAMP_LENGTH) {
        return Ok(otherwise);
    }
    Ok(text.parse().unwrap_or(u64::MAX))
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_names() {
        for (name, expected) in [
            (
                "Add.net_add.3.7.17",
                Some((DumpFileKind::Offline, "net_add")),
            ),
            ("Add.net_add.3.17", Some((DumpFileKind::Offline, "net_add"))),
            ("Add.a.3.1x", Some((DumpFileKind::Offline, "a"))),
            ("Add.a.3", None),
            ("Add.a b.3.7.17", None),
            ("notes.md", None),
            ("a.b.0.17.npy", Some((DumpFileKind::Numpy, "a.b.0"))),
            ("a.0.17.pb", Some((DumpFileKind::Standard, "a.0"))),
            ("a.b.0.17.pb", None),
            ("a.0.x.quant", None),
        ] {
            let found = parse(name);
            let found = found.as_ref().map(|(kind, key)| (*kind, key.as_str()));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn marks_are_taken_off() {
        let cases = [
            ("a_sgt_graph_0_op", false, Some("op")),
            ("a_sgt_graph_0", false, Some("a_sgt_graph_0")),
            (
                "a_sgt_graph_0_b_sgt_graph_12_op_lxslice3",
                false,
                Some("op"),
            ),
            ("op_lxslice3_x", false, None),
            (
                "a_sgt_graph_0_op_lxslice3_x",
                true,
                Some("a_sgt_graph_0_op_x"),
            ),
            ("plain", true, Some("plain")),
        ];
        for (key, has_rule, expected) in cases {
            let found = without_marks(key, has_rule).unwrap();
            assert_eq!(found.as_deref(), expected, "{key}");
        }
        assert!(without_marks("a_lxslice", false).is_err());
        assert!(without_marks("a_sgt_graph", false).is_err());
    }

    #[test]
    fn modes_and_types() {
        assert_eq!(task_mode("A.b.1.2.17"), Some(TaskMode::Normal));
        assert_eq!(task_mode("A.b.1.2.17.4.0.1.0"), Some(TaskMode::Automatic));
        assert_eq!(
            task_mode("A.b_lxslice0.1.2.17.4.0.1.0"),
            Some(TaskMode::Manual)
        );
        assert_eq!(task_mode("A.b.1.2.17.9.0.1.0"), None);
        assert_eq!(op_type("/x.y/A.b.1.2.*"), "A");
        assert_eq!(op_type("/x.y/b.npy"), "NaN");
    }
}
