//! Array files that numpy's `load` accepts, including some that Opscope does not write.

use std::path::Path;

use opscope_store::file_format::npy::{self, NpyHeader};
use opscope_store::regular_file;
use opscope_tensor::{DType, Tensor};

/// The magic bytes of zip archives, which numpy reads as archives of arrays.
const ARCHIVE_MAGICS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// The offset of a file's minor version, and the last version that Python 2 wrote.
const MINOR_VERSION_AT: usize = 7;
const PYTHON_2_VERSION_MAX: u8 = 2;
/// Element types that numpy reads and this tool does not support: dates, durations, and floats
/// longer than 64 bits.
const OTHER_KINDS: [&str; 5] = ["m8", "M8", "f16", "c32", "V"];

/// An array, in C order and little-endian.
pub(super) struct LoadedArray {
    pub(super) tensor: Tensor,
    /// Whether the file is big-endian.
    pub(super) is_big_endian: bool,
}

/// Why an array could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LoadFailure {
    /// numpy refuses the file.
    Refused(String),
    /// numpy reads elements of an unsupported type; with the shape, if the header has one.
    OtherType(String, Option<Vec<usize>>),
    /// numpy raises an exception that the reference does not catch.
    Exception(String),
}

/// Reads an array file. Trailing bytes are ignored, as in numpy.
pub(super) fn load(path: &Path) -> Result<LoadedArray, LoadFailure> {
    let metadata = regular_file::check(path);
    let bytes = metadata.and_then(|metadata| regular_file::read(path, metadata.len()));
    from_bytes(bytes.map_err(|error| LoadFailure::Refused(error.to_string()))?)
}

fn from_bytes(mut bytes: Vec<u8>) -> Result<LoadedArray, LoadFailure> {
    if bytes.is_empty() {
        return Err(LoadFailure::Refused(
            "The file size is zero. Please check the dump file.".into(),
        ));
    }
    if ARCHIVE_MAGICS.iter().any(|magic| bytes.starts_with(magic)) {
        return Err(LoadFailure::Exception("the file is an archive".into()));
    }
    let minor = bytes.get(MINOR_VERSION_AT).copied().unwrap_or_default();
    if bytes.starts_with(b"\x93NUMPY") && minor != 0 {
        return Err(LoadFailure::Refused(format!(
            "the second number of the version is {minor}"
        )));
    }
    let (header, n_header) =
        NpyHeader::decode(&bytes).map_err(|error| of_header(&bytes, error.to_string()))?;
    let n_data = header.n_data_bytes();
    let end = n_data.and_then(|n| n_header.checked_add(n));
    if let Some(end) = end.filter(|&end| end < bytes.len()) {
        bytes.truncate(end);
    }
    let is_text = header.dtype == DType::String;
    let dims = header.shape.dims().to_vec();
    if is_text && end.is_some_and(|end| end <= bytes.len()) {
        let message = "elements are text".to_owned();
        return Err(LoadFailure::OtherType(message, Some(dims)));
    }
    let is_big_endian = header.is_big_endian && header.dtype.bytes() != Some(1);
    let tensor = npy::from_bytes(bytes).map_err(|error| LoadFailure::Refused(error.to_string()))?;
    Ok(LoadedArray {
        tensor,
        is_big_endian,
    })
}

/// The failure for a header that describes no numeric array, with numpy's message.
fn of_header(bytes: &[u8], reason: String) -> LoadFailure {
    let Some(text) = header_text(bytes) else {
        return LoadFailure::Refused(reason);
    };
    let version = bytes.get(MINOR_VERSION_AT - 1).copied();
    if version.is_some_and(|version| version <= PYTHON_2_VERSION_MAX) && has_open_bracket(&text) {
        // numpy searches it for Python 2 numbers, and Python's tokenizer fails.
        return LoadFailure::Exception("EOF in multi-line statement".into());
    }
    let dims = extents(&text);
    let is_other = after(&text, "'descr':").is_some_and(|descr| {
        let descr = descr.trim_start();
        let code = descr.trim_start_matches(['\'', '"', '<', '>', '|', '=']);
        descr.starts_with('[') || OTHER_KINDS.iter().any(|kind| code.starts_with(kind))
    });
    match dims {
        Some(dims) if is_other => LoadFailure::OtherType(reason, Some(dims)),
        _ => LoadFailure::Refused(reason),
    }
}

/// The dictionary of a complete header.
fn header_text(bytes: &[u8]) -> Option<String> {
    let (start, n) = match bytes.get(MINOR_VERSION_AT - 1)? {
        1 => (
            10,
            u64::from(u16::from_le_bytes(bytes.get(8..10)?.try_into().ok()?)),
        ),
        2 | 3 => (
            12,
            u64::from(u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?)),
        ),
        _ => return None,
    };
    let end = usize::try_from(n).ok()?.checked_add(start)?;
    let text = bytes
        .starts_with(b"\x93NUMPY")
        .then(|| bytes.get(start..end))??;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn after<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.split_once(key).map(|(_, rest)| rest)
}

/// The shape, if it is a tuple of natural numbers.
fn extents(text: &str) -> Option<Vec<usize>> {
    let shape = after(text, "'shape':")?.trim_start().strip_prefix('(')?;
    let (shape, _) = shape.split_once(')')?;
    let words = shape
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    words.map(|word| word.parse().ok()).collect()
}

/// Whether a bracket outside of quotes is unclosed.
fn has_open_bracket(text: &str) -> bool {
    let mut depth = 0_i64;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
    }
    depth > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of version `version.0` with a dictionary and data bytes.
    fn file(version: u8, descr: &str, shape: &str, n_data: usize) -> Vec<u8> {
        let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = u32::try_from(text.len()).unwrap().to_le_bytes();
        let n = if version == 1 { 2 } else { 4 };
        let head = [b"\x93NUMPY", &[version, 0][..], &length[..n]].concat();
        [head, text.into_bytes(), vec![0; n_data]].concat()
    }

    #[test]
    fn files_are_taken_as_numpy_takes_them() {
        let with_minor = |minor: u8| {
            let mut bytes = file(1, "'<f4'", "(2,)", 8);
            bytes[MINOR_VERSION_AT] = minor;
            bytes
        };
        let cases = [
            (file(1, "'<f4'", "(2,)", 8), "array"),
            (file(2, "'<f4'", "(2,)", 8), "array"),
            (file(3, "'<f4'", "(2,)", 8), "array"),
            (file(1, "'<f4'", "(2,)", 9), "array"),
            (file(1, "'<f4'", "(2,)", 80), "array"),
            (file(1, "'>f4'", "(2,)", 8), "other order"),
            (file(1, "'|u1'", "(2,)", 8), "array"),
            (file(1, "'<f4'", "(2,)", 7), "refused"),
            (file(4, "'<f4'", "(2,)", 8), "refused"),
            (with_minor(1), "refused"),
            (file(1, "'|O'", "(2,)", 8), "refused"),
            (file(1, "'<f4'", "(-2,)", 8), "refused"),
            (file(1, "'<U2'", "(2,)", 16), "other type"),
            (file(1, "'<U2'", "(2,)", 15), "refused"),
            (file(1, "'|S2'", "(2,)", 9), "other type"),
            (file(1, "'<M8[s]'", "(2,)", 16), "other type"),
            (file(1, "'<f16'", "(2,)", 32), "other type"),
            (file(1, "[('a', '<f4')]", "(2,)", 8), "other type"),
            (file(1, "'<f4'", "(2,", 8), "exception"),
            (file(3, "'<f4'", "(2,", 8), "refused"),
            (b"PK\x03\x04".to_vec(), "exception"),
            (b"1 2 3\n".to_vec(), "refused"),
            (Vec::new(), "refused"),
        ];
        for (bytes, expected) in cases {
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            let found = match from_bytes(bytes) {
                Ok(array) if array.is_big_endian => "other order",
                Ok(_) => "array",
                Err(LoadFailure::Refused(_)) => "refused",
                Err(LoadFailure::OtherType(_, dims)) => {
                    assert_eq!(dims, Some(vec![2]), "{shown}");
                    "other type"
                }
                Err(LoadFailure::Exception(_)) => "exception",
            };
            assert_eq!(found, expected, "{shown}");
        }
    }
}
