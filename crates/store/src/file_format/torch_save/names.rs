//! Names of tensors by where they are among plain data.

use std::collections::HashMap;
use std::fmt::Write;

use crate::FormatError;

/// A step from a value to one in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PathStep<'a> {
    /// To the value of a key that is text.
    Text(&'a str),
    /// To the value of a key that is a number, or to the item at a position.
    Number(i64),
    /// To something that nothing names: an item of a set, or the value of another key.
    Unnamed,
}

impl PathStep<'_> {
    /// Bytes that the step may take in a name.
    pub(super) fn n_bytes(&self) -> usize {
        match self {
            PathStep::Text(text) => text.len().saturating_add(1),
            // As many as the lowest number has, and a point.
            PathStep::Number(_) | PathStep::Unnamed => 21,
        }
    }
}

/// A name in two forms.
pub(super) struct PathName {
    /// Steps with `.` between them: `model.layer1.weight`, `outputs.0`.
    joined: String,
    /// The same so that no other path is written like it: `["model"]["layer1.weight"]`,
    /// `["outputs"][0]`.
    exact: String,
}

impl PathName {
    /// The name of a path; `None` if a step has no name.
    pub(super) fn new(path: &[PathStep<'_>]) -> Option<PathName> {
        let (mut joined, mut exact) = (String::new(), String::new());
        for (position, step) in path.iter().enumerate() {
            if position > 0 {
                joined.push('.');
            }
            // Writing to text does not fail.
            let _ = match step {
                PathStep::Text(text) => {
                    joined.push_str(text);
                    write!(exact, "[{text:?}]")
                }
                PathStep::Number(number) => {
                    let _ = write!(joined, "{number}");
                    write!(exact, "[{number}]")
                }
                PathStep::Unnamed => return None,
            };
        }
        // A tensor without a name is the whole file; one under an empty key is not.
        if joined.is_empty() {
            joined.clone_from(&exact);
        }
        Some(PathName { joined, exact })
    }
}

/// A distinct name for each path: joined, or exact where several paths join to the same name.
pub(super) fn distinct_names(paths: Vec<PathName>) -> Result<Vec<String>, FormatError> {
    // All of them become exact, so that no name depends on which tensor comes first.
    let mut n_joined: HashMap<String, usize> = HashMap::new();
    for path in &paths {
        *n_joined.entry(path.joined.clone()).or_default() += 1;
    }
    let names = paths.into_iter().map(|path| {
        let is_alone = n_joined.get(&path.joined) == Some(&1);
        if is_alone { path.joined } else { path.exact }
    });
    let names: Vec<String> = names.collect();
    // A key can look like the exact form of another path.
    let mut n_named: HashMap<&str, usize> = HashMap::new();
    for name in &names {
        let n = n_named.entry(name).or_default();
        *n += 1;
        if *n > 1 {
            let found = format!("`{}` twice", super::pickle::excerpt(name));
            return Err(FormatError::new(0, "a unique name for each tensor", found));
        }
    }
    Ok(names)
}
