//! Files that people write: YAML, or JSON where the name ends so.

use std::io::Read;
use std::path::{Path, PathBuf};

use opscope_store::regular_file;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Maximum size of a file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Why a file of the user could not be used.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// It cannot be read.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is longer than anything that people write.
    #[error("`{}` has more than {FILE_BYTES_MAX} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// Its content is not as expected.
    #[error("`{}`, line {line}, column {column}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// The problem.
        message: String,
    },
}

/// Reads a file as JSON if its name ends in `.json`, and as YAML otherwise.
///
/// # Errors
/// [`DocumentError`] with line and column.
pub fn read_document<T: DeserializeOwned>(path: &Path) -> Result<T, DocumentError> {
    let failed = |source| DocumentError::Io {
        path: path.to_owned(),
        source,
    };
    let (file, _) = regular_file::open(path).map_err(failed)?;
    let mut text = String::new();
    // One byte more than allowed reveals a file that is too long; a size queried earlier could
    // change.
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    if read.map_err(failed)? as u64 > FILE_BYTES_MAX {
        let path = path.to_owned();
        return Err(DocumentError::TooLong { path });
    }
    let is_json = path.extension().is_some_and(|end| end == "json");
    let parsed = if is_json {
        of_json(&text)
    } else {
        of_yaml(&text)
    };
    parsed.map_err(|(line, column, message)| DocumentError::Content {
        path: path.to_owned(),
        line,
        column,
        message,
    })
}

type Fault = (u64, u64, String);

fn of_json<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line() as u64, error.column() as u64);
        let message = error.to_string();
        // `serde_json` ends its messages with the position, which `DocumentError` adds itself.
        let place = format!(" at line {line} column {column}");
        let message = message.strip_suffix(&place).unwrap_or(&message).to_owned();
        (line, column, message)
    })
}

fn of_yaml<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    // A message is one line; a snippet of the file takes several.
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location();
        let (line, column) = place.map_or((1, 1), |place| (place.line(), place.column()));
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        // The place is already in front of the message.
        let message = message.split(" at line ").next().unwrap_or(message);
        (line, column, message.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn both_languages_and_their_faults() {
        let dir = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            read_document::<BTreeMap<String, f64>>(&path)
        };
        assert_eq!(read("a.yaml", "x: 1\ny: 2.5\n").unwrap()["y"], 2.5);
        assert_eq!(read("a.json", r#"{"x": 1, "y": 2.5}"#).unwrap()["y"], 2.5);
        for (name, text) in [
            ("a.yaml", "x: 1\ny: [\n"),
            ("a.json", "{\"x\": 1,\n\"y\": a}"),
        ] {
            let error = read(name, text).unwrap_err();
            let DocumentError::Content { line, .. } = &error else {
                panic!("{error}");
            };
            assert!(*line >= 2, "{error}");
        }
        let error = read("b.yaml", "x: 1\ny: word\n").unwrap_err().to_string();
        assert!(error.contains("line 2, column 4"), "{error}");
        assert!(matches!(
            read_document::<()>(&dir.path().join("none")),
            Err(DocumentError::Io { .. })
        ));
    }
}
