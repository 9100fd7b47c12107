//! numpy's archive of named arrays: a zip file of npy files.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use opscope_tensor::Tensor;
use zip::ZipArchive;

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
    let bad_archive = |error| StoreError::corrupt(FORMAT_NAME, path)(not_a_zip(0, &error));
    let file = File::open(path).map_err(StoreError::io("open", path))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(bad_archive)?;
    let mut arrays = Vec::with_capacity(archive.len());
    for i in 0..archive.len() {
        let member = archive.by_index(i).map_err(bad_archive)?;
        let name = member.name().map_err(bad_archive)?.into_owned();
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        let start = member.data_start().unwrap_or(0);
        let size = member.size();
        let bytes = npy::from_reader(member, size).map_err(StoreError::io("unpack", path))?;
        let tensor = npy::from_bytes(bytes).map_err(|error| {
            let found = format!("{} (in array `{name}`)", error.found);
            StoreError::corrupt(FORMAT_NAME, path)(FormatError { found, ..error }.shifted(start))
        })?;
        arrays.push((name, tensor));
    }
    Ok(arrays)
}

fn not_a_zip(offset: u64, error: &zip::result::ZipError) -> FormatError {
    FormatError::new(offset, "a zip archive", error.to_string())
}
