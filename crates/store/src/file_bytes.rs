//! A file's bytes, read or mapped.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Files up to this size are read; larger ones are mapped into memory.
const READ_BYTES_MAX: u64 = 64 << 10;

/// All bytes of a file. Large files are mapped into memory, not read.
pub struct FileBytes(Bytes);

enum Bytes {
    Read(Vec<u8>),
    Mapped(memmap2::Mmap),
}

impl FileBytes {
    /// Reads or maps a file. A file that somebody truncates while it is mapped ends the process, as
    /// with any mapping.
    ///
    /// # Errors
    /// What the operating system reports; a directory is refused.
    pub fn open(path: &Path) -> io::Result<FileBytes> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if metadata.is_file() && metadata.len() > READ_BYTES_MAX {
            return map(&file).map(|map| FileBytes(Bytes::Mapped(map)));
        }
        let mut bytes = Vec::with_capacity(metadata.len().min(READ_BYTES_MAX) as usize);
        file.read_to_end(&mut bytes)?;
        Ok(FileBytes(Bytes::Read(bytes)))
    }
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> FileBytes {
        FileBytes(Bytes::Read(bytes))
    }
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }
}

#[expect(unsafe_code, reason = "mapping a file is unsafe by signature")]
fn map(file: &File) -> io::Result<memmap2::Mmap> {
    // SAFETY: the mapping is read-only and private to this process. Another process that truncates
    // the file meanwhile causes a fault, not undefined reads; `FileBytes::open` documents it.
    unsafe { memmap2::Mmap::map(file) }
}
