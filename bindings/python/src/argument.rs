//! Arguments of pyACL's functions.
//!
//! pyACL parses arguments with C's types, and programs rely on it: `-1` is the greatest index.
//! Numbers that C would truncate are truncated here; a value of another type is a `TypeError`.
//! Errors state the expected type and the actual value; PyO3 adds the argument's name.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A size, an index, an address or a handle: 64 bits, from any integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordArg(pub(crate) usize);

/// A model id, a kind or flags: 32 bits, from any integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word32Arg(pub(crate) u32);

/// A switch: 8 bits from any integer, or a numpy boolean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteArg(pub(crate) u8);

/// A text without NUL.
#[derive(Clone, Debug)]
pub(crate) struct TextArg(pub(crate) String);

/// A path without NUL: a text, or an argument of `os.fspath`.
#[derive(Clone, Debug)]
pub(crate) struct FilePath(PathBuf);

/// A C number, which must be in range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberArg<T>(pub(crate) T);

/// A sequence other than a text.
#[derive(Clone, Debug)]
pub(crate) struct ListArg<T>(pub(crate) Vec<T>);

/// Names an argument type in errors.
pub(crate) trait ArgumentWords {
    /// The name with an article.
    const WORDS: &'static str;
}

/// Names each type.
macro_rules! expected {
    ($($kind:ty: $words:literal),+ $(,)?) => {
        $(impl ArgumentWords for $kind {
            const WORDS: &'static str = $words;
        })+
    };
}

expected!(
    i8: "a whole number of 8 bits",
    i16: "a whole number of 16 bits",
    u8: "a whole number of 8 bits that is not negative",
    i32: "a whole number of 32 bits",
    i64: "a whole number of 64 bits",
    u64: "a whole number of 64 bits that is not negative",
    u16: "a whole number of 16 bits that is not negative",
    f32: "a number",
    f64: "a number",
    WordArg: "a whole number",
    ByteArg: "a whole number or a truth value",
    TextArg: "a text",
    ListArg<i64>: "a list of whole numbers",
);

/// The same error with the expected type and the actual value. Errors raised by the value's own
/// code stay as they are.
pub(crate) fn told(value: &Bound<'_, PyAny>, expected: &str, error: PyErr) -> PyErr {
    let message = match message(value, expected) {
        Ok(message) => message,
        Err(failure) => return failure,
    };
    if error.is_instance_of::<PyTypeError>(value.py()) {
        PyTypeError::new_err(message)
    } else if error.is_instance_of::<PyOverflowError>(value.py()) {
        PyOverflowError::new_err(message)
    } else {
        error
    }
}

fn message(value: &Bound<'_, PyAny>, expected: &str) -> PyResult<String> {
    let kind = value.get_type().name()?;
    // The Python part of the package formats values too, and both share the wording.
    let shown = value.py().import("opscope._argument")?;
    let shown = shown.call_method1("shown", (value,))?;
    Ok(format!("{expected} is expected, got {shown} ({kind})"))
}

/// [`told`] for an argument of a wrong type.
pub(crate) fn wrong_type(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    told(
        value,
        &format!("{name}: {expected}"),
        PyTypeError::new_err(()),
    )
}

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
    // Most numbers fit and return above. A number out of range is truncated below; anything else is
    // not a number.
    if !error.is_instance_of::<PyOverflowError>(value.py()) {
        return Err(told(value, WordArg::WORDS, error));
    }
    // Two's complement, as C truncates it: -1 has all bits set.
    let integer = value.call_method0("__index__")?;
    integer.bitand(u64::MAX)?.extract()
}

impl<'py> FromPyObject<'_, 'py> for WordArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = lowest_bits(&value)?;
        usize::try_from(number)
            .map(WordArg)
            .map_err(|_| PyOverflowError::new_err("the number has more bits than an address"))
    }
}

impl<'py> FromPyObject<'_, 'py> for Word32Arg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // The lowest 32 bits, as C's conversion keeps them.
        let [a, b, c, d, ..] = lowest_bits(&value)?.to_le_bytes();
        Ok(Word32Arg(u32::from_le_bytes([a, b, c, d])))
    }
}

impl<'py> FromPyObject<'_, 'py> for ByteArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // First, because a numpy boolean is not an integer.
        if let Ok(is_on) = value.extract::<bool>() {
            return Ok(ByteArg(u8::from(is_on)));
        }
        let [lowest, ..] = lowest_bits(&value)?.to_le_bytes();
        Ok(ByteArg(lowest))
    }
}

impl<'py> FromPyObject<'_, 'py> for TextArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text: PyResult<String> = value.extract();
        let text = text.map_err(|error| told(&value, TextArg::WORDS, error))?;
        // C would end the text there, which would silently change the call.
        if text.contains('\0') {
            return Err(PyValueError::new_err("embedded null character"));
        }
        Ok(TextArg(text))
    }
}

impl<'py> FromPyObject<'_, 'py> for FilePath {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let path: PyResult<PathBuf> = value.extract();
        let path = path.map_err(|error| told(&value, "a path", error))?;
        if has_nul(path.as_os_str()) {
            return Err(PyValueError::new_err("embedded null character"));
        }
        Ok(FilePath(path))
    }
}

impl<'py, T> FromPyObject<'_, 'py> for NumberArg<T>
where
    T: ArgumentWords + for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number: PyResult<T> = value.extract();
        let number = number.map_err(|error| told(&value, T::WORDS, error));
        number.map(NumberArg)
    }
}

impl<'py, T> FromPyObject<'_, 'py> for ListArg<T>
where
    T: ArgumentWords + for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // Items are read one by one, so that an error shows the wrong one instead of the whole
        // list.
        let items: PyResult<Vec<Bound<'py, PyAny>>> = value.extract();
        let items =
            items.map_err(|error| told(&value, &format!("a list, each {}", T::WORDS), error))?;
        let mut values = Vec::with_capacity(items.len());
        for item in &items {
            let value: PyResult<T> = item.extract();
            values.push(value.map_err(|error| told(item, T::WORDS, error))?);
        }
        Ok(ListArg(values))
    }
}

fn has_nul(text: &OsStr) -> bool {
    text.as_encoded_bytes().contains(&0)
}

/// A Python function.
///
/// # Errors
///
/// `TypeError` if it is not callable.
pub(crate) fn callable(name: &str, function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if function.is_callable() {
        Ok(function.clone().unbind())
    } else {
        Err(wrong_type(name, function, "a function"))
    }
}
