//! The zip file around a pickle and its storages. Its members lie in it as they are.

use std::collections::HashMap;
use std::ops::Range;

use zip::CompressionMethod;

use super::pickle::excerpt;
use crate::FormatError;
use crate::file_bytes::FileBytes;
use crate::file_format::npz::{checked_zip, not_a_zip};
use crate::file_parts::{FilePart, FileParts};

/// Maximum number of members of a file.
const N_MEMBERS_MAX: usize = 1 << 17;
/// The beginning of a zip file.
const MAGIC: [u8; 4] = *b"PK\x03\x04";
/// Where a member's header has the length of its name, and where the name begins.
const NAME_LENGTH_AT: usize = 26;
const NAME_AT: usize = 30;
/// The member with the pickle, inside a directory of any name.
const PICKLE: &str = "data.pkl";
/// The directory of storages.
const STORAGES: &str = "data/";
/// The member that says how numbers are stored.
const BYTE_ORDER: &str = "byteorder";

/// The parts of a file.
pub(super) struct TorchArchive {
    /// The bytes of the pickle.
    pub(super) pickle_bytes: FilePart,
    /// Where the pickle is.
    pub(super) pickle: Range<usize>,
    /// Whether the most significant byte of a number comes first.
    pub(super) is_big_endian: bool,
    storages: HashMap<String, Range<usize>>,
}

/// Whether a zip file begins with a pickle, or has one somewhere.
pub(super) fn has_pickle(file: &FileParts) -> bool {
    if !file.start().starts_with(&MAGIC) {
        return false;
    }
    // The first member is enough, so that a file whose end is missing is still known for what it
    // is.
    if first_name(file.start()).is_some_and(|name| pickle_dir(&name).is_some()) {
        return true;
    }
    let zip = zip::ZipArchive::new(file.reader());
    zip.is_ok_and(|zip| {
        let mut names = zip.file_names().filter_map(Result::ok);
        names.any(|name| pickle_dir(&name).is_some())
    })
}

fn first_name(file: &[u8]) -> Option<String> {
    let length = file.get(NAME_LENGTH_AT..)?.first_chunk::<2>()?;
    let name = file.get(NAME_AT..)?;
    let name = name.get(..usize::from(u16::from_le_bytes(*length)))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The directory of the pickle, with `/`; none if the name is that of something else.
fn pickle_dir(name: &str) -> Option<&str> {
    let dir = name.strip_suffix(PICKLE)?;
    let inner = dir.strip_suffix('/')?;
    (!inner.is_empty() && !inner.contains('/')).then_some(dir)
}

impl TorchArchive {
    /// Looks up where everything is.
    pub(super) fn new(file: &FileParts) -> Result<TorchArchive, FormatError> {
        let (mut zip, names) = checked_zip(file.reader(), N_MEMBERS_MAX)?;
        let list_start = zip.central_directory_start();
        let mut dirs = names.iter().filter_map(|name| pickle_dir(name));
        let (Some(dir), None) = (dirs.next(), dirs.next()) else {
            let expected = format!("one member `{PICKLE}` in a directory");
            return Err(FormatError::new(list_start, expected, "none, or several"));
        };
        let mut archive = TorchArchive {
            pickle: 0..0,
            pickle_bytes: FilePart::from(FileBytes::from(Vec::new())),
            // Files of older versions do not say: they are little-endian for `torch.load` as well.
            is_big_endian: false,
            storages: HashMap::new(),
        };
        // Everything is looked up at once: the list is read from front to end, and keys come in any
        // order.
        for (index, name) in names.iter().enumerate() {
            let Some(name) = name.strip_prefix(dir) else {
                continue;
            };
            let storage = name.strip_prefix(STORAGES);
            if storage.is_none() && ![PICKLE, BYTE_ORDER].contains(&name) {
                continue;
            }
            let member = zip.by_index_raw(index);
            let member = member.map_err(|error| not_a_zip(list_start, &error))?;
            let start = member.data_start().unwrap_or(list_start);
            // PyTorch compresses nothing; stored entries can be used in place.
            let is_stored = member.compression() == CompressionMethod::Stored
                && member.compressed_size() == member.size();
            if !is_stored || member.encrypted() {
                let found = format!("`{}`, which is packed", excerpt(name));
                let expected = "members that are stored as they are";
                return Err(FormatError::new(start, expected, found));
            }
            // Sizes are those of the list at the file's end, and may be anything.
            let end = start.checked_add(member.size());
            let range = usize::try_from(start).ok().zip(end.and_then(to_usize));
            let range = range.map(|(start, end)| start..end);
            let Some(range) = range.filter(|range| range.end <= file.n_bytes()) else {
                let expected = format!("{} bytes of `{}`", member.size(), excerpt(name));
                return Err(FormatError::new(start, expected, "the file's end"));
            };
            match (name, storage) {
                (_, Some(key)) => drop(archive.storages.insert(key.to_owned(), range)),
                (PICKLE, _) => archive.pickle = range,
                _ => archive.is_big_endian = is_big_endian(file, range)?,
            }
        }
        let pickle = file.part(archive.pickle.clone());
        archive.pickle_bytes = pickle.map_err(FormatError::unreadable)?;
        Ok(archive)
    }

    /// Where the storage of a key is.
    pub(super) fn storage(&self, key: &str) -> Option<Range<usize>> {
        self.storages.get(key).cloned()
    }
}

fn to_usize(n: u64) -> Option<usize> {
    usize::try_from(n).ok()
}

fn is_big_endian(file: &FileParts, range: Range<usize>) -> Result<bool, FormatError> {
    let start = range.start as u64;
    let word = file.part(range).map_err(FormatError::unreadable)?;
    match word.as_ref() {
        b"little" => Ok(false),
        b"big" => Ok(true),
        other => {
            let found = String::from_utf8_lossy(other);
            let expected = "`little` or `big`";
            Err(FormatError::new(start, expected, excerpt(&found)))
        }
    }
}
