//! numpy's array file in [Zstandard frames](super::zstd).
//!
//! The content is a file of [`npy`], byte for byte; the name gets `.zst` appended. The shape in its
//! header limits the memory for reading, so that a small file cannot request any amount.
//! `docs/formats/npy.md` describes both.

use std::io::Read;
use std::path::Path;

use opscope_tensor::{DType, Tensor};

use super::npy::{self, HEADER_BYTES_MAX, NpyHeader};
use super::zstd;
use crate::file_bytes::FileBytes;
use crate::{FormatError, StoreError, regular_file};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "npy.zst";
/// How names of array files end.
pub const PLAIN_SUFFIX: &str = ".npy";
/// How names of compressed array files end.
pub const SUFFIX: &str = ".npy.zst";
/// Largest array file that is decompressed into memory.
pub const CONTENT_BYTES_MAX: usize = 16 << 30;
/// Bytes in which nearly every header ends.
const START_BYTES: usize = 4 << 10;
/// Bytes in which every header ends that is read at all: magic, version and length come before it.
const START_BYTES_MAX: usize = HEADER_BYTES_MAX + 12;

/// The name of an array file without its suffix, and whether the file is compressed; `None` for
/// other files.
pub fn split_name(file_name: &str) -> Option<(&str, bool)> {
    let plain = file_name.strip_suffix(PLAIN_SUFFIX);
    plain
        .map(|stem| (stem, false))
        .or_else(|| Some((file_name.strip_suffix(SUFFIX)?, true)))
}

/// Whether a file is compressed, by its name or its first bytes.
pub fn is_compressed(file_name: &str, bytes: &[u8]) -> bool {
    // One of them may be missing: files get other names, and frames may follow a skippable one.
    file_name.ends_with(SUFFIX) || bytes.starts_with(&zstd::MAGIC)
}

/// The whole array file in `bytes`, checked against the size in its header.
///
/// # Errors
/// [`FormatError`] if the frames are damaged, or hold no npy file, one of another size than its
/// shape requires, or one above [`CONTENT_BYTES_MAX`]. Offsets are those in `bytes`; the error says
/// if the header in the frames is invalid.
pub fn decode(bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut decoder = zstd::Decoder::new(bytes)?;
    let (header, n_header) = start(&mut decoder)?;
    let (dtype, shape) = (header.dtype, &header.shape);
    // A frame need not state the size of its content, and does not if it was made from a pipe. The
    // array's header always does.
    let n_content = header
        .n_data_bytes()
        .and_then(|n| n.checked_add(n_header))
        .filter(|&n| n <= CONTENT_BYTES_MAX);
    let Some(n_content) = n_content else {
        let expected = format!("at most {CONTENT_BYTES_MAX} bytes (`zstd -d` makes a plain file)");
        return Err(FormatError::new(0, expected, format!("{dtype} {shape}")));
    };
    decoder.finish(n_content).map_err(|error| FormatError {
        expected: format!("{} for an array of {dtype} {shape}", error.expected),
        ..error
    })
}

/// The header of the array file in `bytes`, and where its data begin. The data are not read.
///
/// # Errors
/// As for [`decode`], as far as the header goes.
pub fn header(bytes: &[u8]) -> Result<(NpyHeader, usize), FormatError> {
    let (header, n_header) = start(&mut zstd::Decoder::new(bytes)?)?;
    header.items.check_known()?;
    Ok((header, n_header))
}

fn start(decoder: &mut zstd::Decoder<'_>) -> Result<(NpyHeader, usize), FormatError> {
    let start = decoder.start(START_BYTES)?;
    let header = match NpyHeader::decode_any(start) {
        Err(_) if start.len() >= START_BYTES => {
            NpyHeader::decode_any(decoder.start(START_BYTES_MAX)?)
        }
        header => header,
    };
    header.map_err(|error| FormatError {
        found: format!("{} (counted in the decompressed file)", error.found),
        ..error
    })
}

fn is_compressed_file(path: &Path) -> Result<bool, StoreError> {
    let (file, _) = regular_file::open(path).map_err(StoreError::io("open", path))?;
    let mut start = Vec::new();
    let read = file.take(zstd::MAGIC.len() as u64).read_to_end(&mut start);
    read.map_err(StoreError::io("read", path))?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(is_compressed(&file_name, &start))
}

/// The header of an array file, compressed or not.
///
/// # Errors
/// As for [`npy::read_file`] and [`decode`], as far as the header goes.
pub fn read_header(path: &Path) -> Result<NpyHeader, StoreError> {
    if !is_compressed_file(path)? {
        return npy::read_header(path);
    }
    let bytes = FileBytes::open(path).map_err(StoreError::io("open", path))?;
    zstd::Decoder::new(bytes.as_ref())
        .and_then(|mut decoder| start(&mut decoder))
        .map(|(header, _)| header)
        .map_err(StoreError::corrupt(FORMAT_NAME, path))
}

/// Reads an array file, compressed or not.
///
/// # Errors
/// As for [`npy::read_file`] and [`decode`].
pub fn read_file(path: &Path) -> Result<Tensor, StoreError> {
    read_file_as(path, None)
}

/// [`npy::read_file_as`] of an array file, compressed or not.
///
/// # Errors
/// As for [`npy::read_file_as`] and [`decode`].
pub fn read_file_as(path: &Path, wanted: Option<DType>) -> Result<Tensor, StoreError> {
    if !is_compressed_file(path)? {
        return npy::read_file_as(path, wanted);
    }
    let bytes = FileBytes::open(path).map_err(StoreError::io("open", path))?;
    decode(bytes.as_ref())
        .and_then(|content| npy::from_bytes_as(content, wanted))
        .map_err(StoreError::corrupt(FORMAT_NAME, path))
}

#[cfg(test)]
mod tests;
