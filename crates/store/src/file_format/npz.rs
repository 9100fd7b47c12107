//! numpy's archive of named arrays: a zip file of npy files.
//!
//! Arrays are read one by one on request, as many bytes as their headers state. The archive's own
//! sizes are checked first, because a few kilobytes can claim any amount.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use opscope_tensor::{DType, Tensor};
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use super::npy::{self, NpyHeader, StreamError, StreamLength};
use crate::{FormatError, StoreError, regular_file};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "npz";
/// How names of archives end.
pub const SUFFIX: &str = ".npz";
/// Maximum number of arrays of an archive.
pub const N_MEMBERS_MAX: usize = 1 << 16;
/// Maximum expansion of one packed byte.
const EXPANSION_MAX: u64 = 1032;

/// An archive that is open.
pub struct Archive {
    path: PathBuf,
    members: ZipMembers<BufReader<File>>,
}

impl Archive {
    /// Opens an archive and reads the list of its arrays.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot be read, [`StoreError::Corrupt`] if it is not a zip file,
    /// has more than [`N_MEMBERS_MAX`] arrays, two of one name, or two that share bytes.
    pub fn open(path: &Path) -> Result<Archive, StoreError> {
        let (file, _) = regular_file::open(path).map_err(StoreError::io("open", path))?;
        let members = ZipMembers::new(BufReader::new(file));
        Ok(Archive {
            path: path.to_owned(),
            members: members.map_err(StoreError::corrupt(FORMAT_NAME, path))?,
        })
    }

    /// Names of the arrays, in archive order, without `.npy`.
    pub fn names(&self) -> &[String] {
        &self.members.names
    }

    /// The header of an array.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if there is none of this name, or it has no header.
    pub fn header(&mut self, name: &str) -> Result<NpyHeader, StoreError> {
        let header = self.members.header(name);
        header.map_err(StoreError::corrupt(FORMAT_NAME, &self.path))
    }

    /// Reads an array; `wanted` is the dtype that it may have in disguise.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] as for [`npy::read_file_as`]. Arrays that are encrypted, or packed
    /// in other ways than numpy's, are refused.
    pub fn read(&mut self, name: &str, wanted: Option<DType>) -> Result<Tensor, StoreError> {
        let tensor = self.members.read(name, wanted);
        tensor.map_err(StoreError::corrupt(FORMAT_NAME, &self.path))
    }
}

/// Reads every array of an archive, in archive order, under its name without `.npy`.
///
/// # Errors
/// As for [`Archive::open`] and [`Archive::read`].
pub fn read_file(path: &Path) -> Result<Vec<(String, Tensor)>, StoreError> {
    let mut archive = Archive::open(path)?;
    let names = archive.names().to_vec();
    names
        .into_iter()
        .map(|name| Ok((name.clone(), archive.read(&name, None)?)))
        .collect()
}

/// Reads every array of an archive in memory.
///
/// # Errors
/// [`FormatError`] as described at [`read_file`].
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, FormatError> {
    let mut members = ZipMembers::new(Cursor::new(bytes))?;
    let names = members.names.clone();
    names
        .into_iter()
        .map(|name| Ok((name.clone(), members.read(&name, None)?)))
        .collect()
}

/// The arrays of a zip file.
struct ZipMembers<R> {
    zip: ZipArchive<R>,
    names: Vec<String>,
    by_name: HashMap<String, usize>,
}

impl<R: Read + Seek> ZipMembers<R> {
    fn new(reader: R) -> Result<ZipMembers<R>, FormatError> {
        let (zip, mut names) = checked_zip(reader, N_MEMBERS_MAX)?;
        for name in &mut names {
            if name.ends_with(".npy") {
                name.truncate(name.len() - ".npy".len());
            }
        }
        let by_name: HashMap<String, usize> = names.iter().cloned().zip(0..).collect();
        // Names that differ by `.npy` alone are two for the zip library and one here.
        if by_name.len() < names.len() {
            return Err(two_of_one_name(&zip));
        }
        Ok(ZipMembers {
            zip,
            names,
            by_name,
        })
    }

    fn header(&mut self, name: &str) -> Result<NpyHeader, FormatError> {
        self.with_member(name, |member, _| {
            let (header, _) = npy::stream_header(member, &mut Vec::new())?;
            Ok(header)
        })
    }

    fn read(&mut self, name: &str, wanted: Option<DType>) -> Result<Tensor, FormatError> {
        self.with_member(name, |member, length| {
            npy::read_array(member, length, wanted)
        })
    }

    fn with_member<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut ZipFile<'_, R>, StreamLength) -> Result<T, StreamError>,
    ) -> Result<T, FormatError> {
        let Some(&index) = self.by_name.get(name) else {
            let start = self.zip.central_directory_start();
            let found = self.names.join("`, `");
            return Err(FormatError::new(
                start,
                format!("an array `{name}`"),
                format!("`{found}`"),
            ));
        };
        let member = self.zip.by_index(index);
        let mut member = member.map_err(|error| not_a_zip(0, &error))?;
        let start = member.data_start().unwrap_or(0);
        let length = StreamLength {
            n_bytes: member.size(),
            // The size above is a claim; deflate sets this limit whatever is claimed.
            n_bytes_max: member.compressed_size().saturating_mul(EXPANSION_MAX),
        };
        read(&mut member, length).map_err(|error| match error {
            StreamError::Io(error) => {
                let expected = format!("{} packed bytes of array `{name}`", length.n_bytes);
                FormatError::new(start, expected, error.to_string())
            }
            StreamError::Format(error) => {
                let found = format!("{} (in array `{name}`)", error.found);
                FormatError { found, ..error }.shifted(start)
            }
        })
    }
}

/// Opens a zip file and reads its list; the names are in its order.
pub(super) fn checked_zip<R: Read + Seek>(
    reader: R,
    n_members_max: usize,
) -> Result<(ZipArchive<R>, Vec<String>), FormatError> {
    let mut zip = ZipArchive::new(reader).map_err(|error| not_a_zip(0, &error))?;
    let list_start = zip.central_directory_start();
    let wrong = |expected: &str, found: String| FormatError::new(list_start, expected, found);
    if zip.len() > n_members_max {
        let expected = format!("at most {n_members_max} arrays");
        return Err(wrong(&expected, zip.len().to_string()));
    }
    let mut names: Vec<String> = Vec::with_capacity(zip.len());
    for name in zip.file_names() {
        let name = name.map_err(|error| not_a_zip(list_start, &error))?;
        names.push(name.into_owned());
    }
    if zip.has_duplicate_names() {
        return Err(two_of_one_name(&zip));
    }
    // Entries that share packed bytes let a small archive expand to any amount of data.
    let overlap = zip.has_overlapping_files();
    if overlap.map_err(|error| not_a_zip(list_start, &error))? {
        let found = "arrays that share bytes, or reach into the list".to_owned();
        return Err(wrong("separate bytes for each array", found));
    }
    Ok((zip, names))
}

fn two_of_one_name<R: Read + Seek>(zip: &ZipArchive<R>) -> FormatError {
    let start = zip.central_directory_start();
    FormatError::new(
        start,
        "a unique name for each array",
        "two arrays of one name",
    )
}

pub(super) fn not_a_zip(offset: u64, error: &ZipError) -> FormatError {
    FormatError::new(offset, "a zip archive of arrays", error.to_string())
}

#[cfg(test)]
mod tests;
