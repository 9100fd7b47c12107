//! numpy's archive of named arrays: a zip file of npy files.

use std::io::{Cursor, Read, Seek};
use std::path::Path;

use opscope_tensor::{DType, Tensor};
use zip::ZipArchive;
use zip::result::ZipError;

use super::npy;
use crate::{FormatError, StoreError};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "npz";

/// Reads every array of an archive, in archive order, under its name without `.npy`.
///
/// # Errors
/// [`StoreError::Io`] if it cannot be read, [`StoreError::Corrupt`] if it is no zip file or a member
/// is no array. Members that are encrypted, or packed in other ways than numpy's, are refused.
pub fn read_file(path: &Path) -> Result<Vec<(String, Tensor)>, StoreError> {
    read_file_as(path, |_| None)
}

/// [`read_file`] with the dtypes that the arrays of each name may have in disguise.
///
/// # Errors
/// As for [`read_file`] and [`npy::read_file_as`].
pub fn read_file_as(
    path: &Path,
    wanted: impl Fn(&str) -> Option<DType>,
) -> Result<Vec<(String, Tensor)>, StoreError> {
    let file = std::fs::File::open(path).map_err(StoreError::io("open", path))?;
    let reader = std::io::BufReader::new(file);
    read(reader, wanted).map_err(StoreError::corrupt(FORMAT_NAME, path))
}

/// Reads every array of an archive in memory.
///
/// # Errors
/// [`FormatError`] as described at [`read_file`].
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, FormatError> {
    read(Cursor::new(bytes), |_| None)
}

fn read(
    reader: impl Read + Seek,
    wanted: impl Fn(&str) -> Option<DType>,
) -> Result<Vec<(String, Tensor)>, FormatError> {
    let mut archive = ZipArchive::new(reader).map_err(|error| not_a_zip(0, &error))?;
    let mut arrays = Vec::new();
    for i in 0..archive.len() {
        let mut member = archive.by_index(i).map_err(|error| not_a_zip(0, &error))?;
        let start = member.data_start().unwrap_or(0);
        let name = member
            .name()
            .map_err(|error| not_a_zip(start, &error))?
            .into_owned();
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        let size = member.size();
        let bytes = npy::read_at_most(&mut member, size).map_err(|error| {
            FormatError::new(
                start,
                format!("{size} packed bytes of array `{name}`"),
                error.to_string(),
            )
        })?;
        let tensor = npy::from_bytes_as(bytes, wanted(&name)).map_err(|error| {
            let found = format!("{} (in array `{name}`)", error.found);
            FormatError { found, ..error }.shifted(start)
        })?;
        arrays.push((name, tensor));
    }
    Ok(arrays)
}

fn not_a_zip(offset: u64, error: &ZipError) -> FormatError {
    FormatError::new(offset, "a zip archive of arrays", error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use opscope_tensor::Shape;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn arrays_come_under_their_names() {
        let shape = Shape::new([2]).unwrap();
        let mut array = npy::encode_header(DType::U8, &shape).unwrap();
        array.extend([7, 8]);
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["b.npy", "a/b.npy", "plain"] {
            archive
                .start_file(name, SimpleFileOptions::default())
                .unwrap();
            archive.write_all(&array).unwrap();
        }
        let bytes = archive.finish().unwrap().into_inner();
        let arrays = from_bytes(&bytes).unwrap();
        let names: Vec<_> = arrays.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a/b", "plain"]);
        assert_eq!(arrays[1].1.bytes(), [7, 8]);
        for n in 0..bytes.len() {
            assert!(from_bytes(&bytes[..n]).is_err(), "{n}");
        }
    }
}
