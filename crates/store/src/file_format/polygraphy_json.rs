//! Polygraphy's JSON: arrays by the names of an ONNX model's values, for each runner and iteration.
//!
//! `docs/formats/polygraphy.md` describes the format. Source: what Polygraphy 0.53 writes, and its
//! own reader. Each array is a numpy file in base64, which is decoded only on request.

mod base64;
mod document;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use opscope_tensor::{DType, Shape};

use self::base64::Base64Reader;
use self::document::{Document, EncodedArray, NamedArrays};
use super::json_object;
use super::npy::{self, ItemForm, NpyHeader, StreamError, StreamLength};
use crate::{FormatError, check_memory, regular_file};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "Polygraphy JSON";
/// The suffix of file names.
pub const SUFFIX: &str = ".json";
/// Maximum number of arrays in a file.
pub const N_ARRAYS_MAX: usize = 1 << 20;
/// Digits of a file's name in a directory with one file for each iteration.
const ITERATION_DIGITS: usize = 10;
/// Bytes at the beginning of a file that are searched for [`SIGNS`].
const START_BYTES: usize = 64 << 10;
/// Texts that no other JSON has. An array may be so long that the class comes after
/// [`START_BYTES`], but each begins with numpy's magic.
const SIGNS: [&[u8]; 3] = [
    b"\"polygraphy_class\"",
    b"\"polygraphy_serialized_json_type\"",
    b"\"k05VTVBZ",
];

/// An array of a file.
pub struct PolygraphyArray<'a> {
    /// The name of the value.
    pub name: String,
    /// The tool that ran the model; `None` for the inputs of a run.
    pub runner: Option<String>,
    /// Which run of the model, counted from 0.
    pub iteration: u64,
    encoded: EncodedArray<'a>,
    /// Where the base64 text begins in the file.
    offset: u64,
}

/// Dtype and shape of an array, and the position of its elements in the data read so far.
pub struct ReadArray {
    /// Type of the elements.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Shape,
    /// Where they are.
    pub range: Range<usize>,
}

/// Whether the first bytes of a file are those of Polygraphy's JSON.
pub fn has_signs(bytes: &[u8]) -> bool {
    let start = bytes.get(..START_BYTES).unwrap_or(bytes);
    let is_json = matches!(start.trim_ascii_start().first(), Some(b'{' | b'['));
    is_json
        && SIGNS
            .iter()
            .any(|sign| start.windows(sign.len()).any(|part| part == *sign))
}

/// Whether a file has the name and the first bytes of Polygraphy's JSON; `false` if it cannot be
/// read.
pub fn is_file(path: &Path, file_name: &str) -> bool {
    file_name.ends_with(SUFFIX)
        && regular_file::open(path)
            .is_ok_and(|(file, _)| start_of(file).is_ok_and(|b| has_signs(&b)))
}

fn start_of(file: File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.take(START_BYTES as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// The iteration in the name of a file with a single iteration.
pub fn iteration_of(file_name: &str) -> Option<u64> {
    let digits = file_name.strip_suffix(SUFFIX)?;
    let is_number = digits.len() == ITERATION_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// The arrays of a file in their order.
///
/// # Errors
/// [`FormatError`] if the file is damaged or of another kind, has more than [`N_ARRAYS_MAX`]
/// arrays, or has a name twice where names are keys.
pub fn decode(file: &[u8]) -> Result<Vec<PolygraphyArray<'_>>, FormatError> {
    let document: Document<'_> = serde_json::from_slice(file)
        .map_err(|error| json_object::not_decoded(file, "outputs or inputs of runs", &error))?;
    let mut arrays = Vec::new();
    match document {
        Document::Inputs(iterations) => add_iterations(None, iterations, file, &mut arrays)?,
        Document::Results(runners) => {
            let mut seen = HashSet::new();
            for (runner, iterations) in runners {
                if !seen.insert(runner.clone()) {
                    let found = format!("`{runner}` twice");
                    return Err(FormatError::new(0, "a unique name for each runner", found));
                }
                add_iterations(Some(&runner), iterations, file, &mut arrays)?;
            }
        }
    }
    Ok(arrays)
}

fn add_iterations<'a>(
    runner: Option<&str>,
    iterations: Vec<NamedArrays<'a>>,
    file: &'a [u8],
    arrays: &mut Vec<PolygraphyArray<'a>>,
) -> Result<(), FormatError> {
    for (iteration, NamedArrays(members)) in (0..).zip(iterations) {
        if arrays.len().saturating_add(members.len()) > N_ARRAYS_MAX {
            let expected = format!("at most {N_ARRAYS_MAX} arrays");
            return Err(FormatError::new(0, expected, "more"));
        }
        let members = members.into_iter().map(|(name, encoded)| PolygraphyArray {
            name,
            runner: runner.map(str::to_owned),
            iteration,
            offset: encoded.offset_in(file),
            encoded,
        });
        arrays.extend(members);
    }
    Ok(())
}

impl PolygraphyArray<'_> {
    /// Size of the numpy file.
    fn n_bytes(&self) -> u64 {
        self.encoded.text().map_or(0, base64::n_bytes)
    }

    fn reader(&self) -> Result<Base64Reader<'_>, FormatError> {
        let text = self.encoded.text();
        let text = text.map_err(|found| self.error("an array of numpy's", found))?;
        Base64Reader::new(text).map_err(|error| self.error("base64", &error.to_string()))
    }

    /// The header of the numpy file, which must match the length of the text.
    ///
    /// # Errors
    /// [`FormatError`] if it is damaged, or if the value is not a numpy array.
    fn header(&self) -> Result<(NpyHeader, usize), FormatError> {
        let mut start = Vec::new();
        let header = npy::stream_header(&mut self.reader()?, &mut start);
        let (header, n_header) = header.map_err(|error| self.damaged(error))?;
        let n_bytes = header.n_data_bytes().map(|n| n as u64 + n_header as u64);
        if n_bytes != Some(self.n_bytes()) {
            let expected = format!("as many bytes as {} {} has", header.dtype, header.shape);
            return Err(self.error(&expected, &format!("{} in all", self.n_bytes())));
        }
        Ok((header, n_header))
    }

    /// Dtype, shape and bytes of the elements, which are decoded only if they are text. A value
    /// that is not a numpy array has no dtype and no bytes.
    ///
    /// # Errors
    /// [`FormatError`] if the array is damaged.
    pub fn describe(&self) -> Result<ReadArray, FormatError> {
        if self.encoded.text().is_err() {
            let (dtype, shape) = (DType::Undefined, Shape::new([0]).unwrap_or_default());
            return Ok(ReadArray {
                dtype,
                shape,
                range: 0..0,
            });
        }
        let (header, _) = self.header()?;
        if header.dtype == DType::String {
            return self.read(&mut Vec::new());
        }
        let n_bytes = header.n_data_bytes().unwrap_or(usize::MAX);
        let (dtype, shape) = (header.dtype, header.shape);
        Ok(ReadArray {
            dtype,
            shape,
            range: 0..n_bytes,
        })
    }

    /// Appends the elements, in row-major order and little-endian.
    ///
    /// # Errors
    /// [`FormatError`] if the array is damaged, does not fit in memory, or is not a numpy array.
    pub fn read(&self, out: &mut Vec<u8>) -> Result<ReadArray, FormatError> {
        let (header, n_header) = self.header()?;
        let start = out.len();
        let n_max = self.n_bytes().saturating_add(start as u64);
        check_memory(n_max).map_err(|error| self.error("as much memory", &error.to_string()))?;
        let is_in_order = !header.is_fortran_order || header.shape.n_axes() < 2;
        let is_plain = header.items == ItemForm::Numbers && !header.is_big_endian && is_in_order;
        let mut reader = self.reader()?;
        if !is_plain {
            let n_bytes = self.n_bytes();
            let length = StreamLength {
                n_bytes,
                n_bytes_max: n_bytes,
            };
            let array =
                npy::read_array(reader, length, None).map_err(|error| self.damaged(error))?;
            let elements = array.host_bytes();
            let elements = elements.map_err(|error| self.error("elements", &error.to_string()))?;
            out.extend_from_slice(elements);
            let (dtype, shape) = (array.dtype(), array.shape().clone());
            return Ok(ReadArray {
                dtype,
                shape,
                range: start..out.len(),
            });
        }
        // Elements that need no change are decoded directly to their place, without a separate
        // array.
        let passed = io::copy(&mut reader.by_ref().take(n_header as u64), &mut io::sink());
        let read = passed.and_then(|_| reader.read_to_end(out));
        read.map_err(|error| self.damaged(error.into()))?;
        let (dtype, shape) = (header.dtype, header.shape);
        Ok(ReadArray {
            dtype,
            shape,
            range: start..out.len(),
        })
    }

    fn damaged(&self, error: StreamError) -> FormatError {
        match error {
            StreamError::Io(error) => self.error("base64", &error.to_string()),
            StreamError::Format(error) => {
                let expected = format!("{} at byte {} of its array", error.expected, error.offset);
                self.error(&expected, &error.found)
            }
        }
    }

    fn error(&self, expected: &str, found: &str) -> FormatError {
        FormatError::new(
            self.offset,
            expected,
            format!("{found} (in `{}`)", self.name),
        )
    }
}

/// Bytes that all of the arrays take when they are decoded.
pub fn n_bytes<'a>(arrays: impl Iterator<Item = &'a PolygraphyArray<'a>>) -> u64 {
    arrays.fold(0, |sum, array| sum.saturating_add(array.n_bytes()))
}

#[cfg(test)]
mod tests;
