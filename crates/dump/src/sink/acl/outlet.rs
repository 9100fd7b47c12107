//! Where the bytes of a file go: to disk, or to a function.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::{SinkError, WrittenFiles};
use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::file_format::mapping_csv;
use opscope_store::tree::acl::AclPlace;

/// Maximum number of bytes of a file that a function gets at once.
pub const CHUNK_BYTES_MAX: usize = 128 << 20;

/// Takes the chunks of files. After an error the file's tensors count as failed, and its other
/// chunks are not passed on.
pub type ChunkFunction = dyn Fn(&FileChunk<'_>) -> Result<(), SinkError> + Send + Sync;

/// A piece of a file. The pieces of a file come in order, one after the other, and never empty.
#[derive(Clone, Copy, Debug)]
pub struct FileChunk<'a> {
    /// The absolute path that the file would have, its name however long.
    pub path: &'a Path,
    /// The bytes, in several pieces to avoid copying them together.
    pub parts: &'a [&'a [u8]],
    /// Bytes in all parts together.
    pub n_bytes: usize,
    /// Whether it is the file's last.
    pub is_last: bool,
}

pub(super) enum Outlet {
    Files {
        creator: Arc<Creator>,
        /// Keeps the lines of `mapping.csv` in the order of their files.
        mapping: Mutex<()>,
    },
    Function {
        function: Arc<ChunkFunction>,
        /// Held for a whole file: functions may expect the chunks of one file in a row.
        turn: Mutex<()>,
    },
}

impl Outlet {
    pub(super) fn files(creator: Arc<Creator>) -> Outlet {
        Outlet::Files {
            creator,
            mapping: Mutex::new(()),
        }
    }

    pub(super) fn function(function: Arc<ChunkFunction>) -> Outlet {
        Outlet::Function {
            function,
            turn: Mutex::new(()),
        }
    }

    pub(super) fn is_function(&self) -> bool {
        matches!(self, Outlet::Function { .. })
    }

    /// Puts a file there, under `short_name` if its own is too long for a file system. `None` if
    /// the name is taken.
    pub(super) fn put(
        &self,
        place: &AclPlace,
        short_name: Option<String>,
        parts: &[&[u8]],
    ) -> Result<Option<WrittenFiles>, SinkError> {
        let n_bytes = parts.iter().map(|part| part.len() as u64).sum();
        match self {
            Outlet::Files { creator, mapping } => {
                let is_new = match short_name {
                    None => creator.create_file(&place.dir.join(&place.file_name), parts)?,
                    Some(short_name) => create_mapped(creator, mapping, place, &short_name, parts)?,
                };
                Ok(is_new.then_some(WrittenFiles {
                    n_files: 1,
                    n_bytes,
                    ..WrittenFiles::default()
                }))
            }
            Outlet::Function { function, turn } => {
                let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
                let path = place.dir.join(&place.file_name);
                hand_over(&**function, &path, parts, CHUNK_BYTES_MAX)?;
                Ok(Some(WrittenFiles {
                    // The function decides whether to write a file from the bytes.
                    n_files: 0,
                    n_bytes,
                    ..WrittenFiles::default()
                }))
            }
        }
    }
}

/// Creates a file under a short name and adds it to `mapping.csv`; `false` if the name is taken.
fn create_mapped(
    creator: &Creator,
    mapping: &Mutex<()>,
    place: &AclPlace,
    short_name: &str,
    parts: &[&[u8]],
) -> Result<bool, StoreError> {
    creator.create_dir(&place.dir)?;
    // The line is written first: a name without a file is harmless, a file without a name is lost.
    // Lines are appended whole, and the lock keeps them in the order of their files.
    let guard = mapping.lock().unwrap_or_else(PoisonError::into_inner);
    let path = place.dir.join(short_name);
    if creator.exists(&path) {
        return Ok(false);
    }
    let line = mapping_csv::line(short_name, &place.file_name);
    creator.append_line(&place.dir.join(mapping_csv::FILE_NAME), &line)?;
    drop(guard);
    creator.create_file(&path, parts)
}

/// Cuts the file into chunks of at most `bytes_max`, parts joined and split as needed.
fn hand_over(
    function: &ChunkFunction,
    path: &Path,
    parts: &[&[u8]],
    bytes_max: usize,
) -> Result<(), SinkError> {
    let mut rest: usize = parts.iter().map(|part| part.len()).sum();
    let mut chunk: Vec<&[u8]> = Vec::new();
    let mut n_bytes = 0;
    for mut part in parts.iter().copied() {
        while !part.is_empty() {
            let (head, tail) = part.split_at(part.len().min(bytes_max - n_bytes));
            chunk.push(head);
            part = tail;
            n_bytes += head.len();
            rest -= head.len();
            if n_bytes == bytes_max || rest == 0 {
                function(&FileChunk {
                    path,
                    parts: &chunk,
                    n_bytes,
                    is_last: rest == 0,
                })?;
                chunk.clear();
                n_bytes = 0;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts the file whose parts are separated by `|`; the last chunk is marked.
    fn check(parts: &str, bytes_max: usize, expected: &[&str]) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let function: Box<ChunkFunction> = Box::new({
            let seen = seen.clone();
            move |chunk| {
                assert_eq!(chunk.path, Path::new("/d/f"));
                let bytes = chunk.parts.concat();
                assert_eq!(bytes.len(), chunk.n_bytes);
                let text = String::from_utf8(bytes).unwrap();
                let mark = if chunk.is_last { "!" } else { "" };
                seen.lock().unwrap().push(text + mark);
                Ok(())
            }
        });
        let parts: Vec<&[u8]> = parts.split('|').map(str::as_bytes).collect();
        hand_over(&*function, Path::new("/d/f"), &parts, bytes_max).unwrap();
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn chunks_are_full_but_for_the_last() {
        check("abc||de", 10, &["abcde!"]);
        check("abc|de", 5, &["abcde!"]);
        check("abc|de", 2, &["ab", "cd", "e!"]);
        check("abcdef", 3, &["abc", "def!"]);
        check("", 3, &[]);
    }
}
