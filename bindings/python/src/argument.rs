//! What Python values mean as arguments.
//!
//! pyACL parses arguments with C's types, and programs rely on it: `-1` is the greatest index. Numbers
//! that C would cut off are cut off here; a value of another type is a `TypeError`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A size, an index, an address or a handle: 64 bits, of any integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word(pub(crate) usize);

/// A model id, a kind or flags: 32 bits, of any integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word32(pub(crate) u32);

/// A switch: 8 bits of any integer, or a truth value of numpy's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Byte(pub(crate) u8);

/// A text without NUL.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String);

/// A path without NUL: a text, or what `os.fspath` takes.
#[derive(Clone, Debug)]
pub(crate) struct FilePath(PathBuf);

impl FilePath {
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }
}

/// The lowest 64 bits of any integer.
fn lowest_bits(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let error = match value.extract::<u64>() {
        Ok(number) => return Ok(number),
        Err(error) => error,
    };
    if !error.is_instance_of::<PyOverflowError>(value.py()) {
        return Err(error);
    }
    let integer = value.call_method0("__index__")?;
    integer.bitand(u64::MAX)?.extract()
}

impl<'py> FromPyObject<'_, 'py> for Word {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = lowest_bits(&value)?;
        usize::try_from(number)
            .map(Word)
            .map_err(|_| PyOverflowError::new_err("the number has more bits than an address"))
    }
}

impl<'py> FromPyObject<'_, 'py> for Word32 {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let [a, b, c, d, ..] = lowest_bits(&value)?.to_le_bytes();
        Ok(Word32(u32::from_le_bytes([a, b, c, d])))
    }
}

impl<'py> FromPyObject<'_, 'py> for Byte {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(is_on) = value.extract::<bool>() {
            return Ok(Byte(u8::from(is_on)));
        }
        let [lowest, ..] = lowest_bits(&value)?.to_le_bytes();
        Ok(Byte(lowest))
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text: String = value.extract()?;
        if text.contains('\0') {
            return Err(PyValueError::new_err("embedded null character"));
        }
        Ok(Text(text))
    }
}

impl<'py> FromPyObject<'_, 'py> for FilePath {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let path: PathBuf = value.extract()?;
        if has_nul(path.as_os_str()) {
            return Err(PyValueError::new_err("embedded null character"));
        }
        Ok(FilePath(path))
    }
}

fn has_nul(text: &OsStr) -> bool {
    text.as_encoded_bytes().contains(&0)
}

/// A function of Python's.
///
/// # Errors
/// `TypeError` if it cannot be called.
pub(crate) fn callable(function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if function.is_callable() {
        Ok(function.clone().unbind())
    } else {
        Err(PyTypeError::new_err("the function cannot be called"))
    }
}
