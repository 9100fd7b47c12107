//! A file's bytes, read or mapped.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use opscope_tensor::SharedBytes;
use rustix::fs::{MemfdFlags, copy_file_range, memfd_create};
use rustix::io::Errno;

use crate::regular_file;

/// Files up to this size are read; larger ones are mapped into memory.
const READ_BYTES_MAX: u64 = 64 << 10;

/// All bytes of a file. Large files are mapped into memory, not read. Copies share them.
#[derive(Clone)]
pub struct FileBytes(MappedBytes);

#[derive(Clone)]
enum MappedBytes {
    Read(Arc<Vec<u8>>),
    Mapped(Arc<(memmap2::Mmap, File)>),
    /// Of no file, or of a part of one.
    Shared(SharedBytes),
}

impl FileBytes {
    /// Reads or maps a file. Truncating a file while it is mapped ends the process, as with any
    /// mapping.
    ///
    /// # Errors
    /// As for [`regular_file::open`].
    pub fn open(path: &Path) -> io::Result<FileBytes> {
        FileBytes::of_opened(regular_file::open(path)?)
    }

    /// [`FileBytes::open`] of a file that was found in a dump, where no symbolic link is followed.
    ///
    /// # Errors
    /// As for [`regular_file::open_in_dump`].
    pub fn open_in_dump(path: &Path) -> io::Result<FileBytes> {
        FileBytes::of_opened(regular_file::open_in_dump(path)?)
    }

    fn of_opened((file, metadata): (File, Metadata)) -> io::Result<FileBytes> {
        if metadata.len() > READ_BYTES_MAX {
            let map = map(&file, &memmap2::MmapOptions::new())?;
            return Ok(FileBytes(MappedBytes::Mapped(Arc::new((map, file)))));
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        // Bytes that are appended meanwhile are left out, as of a file that is mapped.
        file.take(metadata.len()).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }

    /// Bytes in memory, as if they were a file's.
    pub fn shared(bytes: SharedBytes) -> FileBytes {
        FileBytes(MappedBytes::Shared(bytes))
    }

    /// Reads or maps a part of a file.
    ///
    /// # Errors
    /// Any that the operating system reports; [`io::ErrorKind::UnexpectedEof`] if the file does not
    /// reach as far.
    pub fn part(file: &File, offset: u64, n_bytes: usize) -> io::Result<FileBytes> {
        if n_bytes as u64 <= READ_BYTES_MAX {
            let mut bytes = vec![0; n_bytes];
            file.read_exact_at(&mut bytes, offset)?;
            return Ok(bytes.into());
        }
        let end = offset.checked_add(n_bytes as u64);
        let n_file = file.metadata()?.len();
        // A mapping beyond the end would be made, and end the process when it is read.
        if end.is_none_or(|end| end > n_file) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut options = memmap2::MmapOptions::new();
        options.offset(offset).len(n_bytes);
        Ok(FileBytes::shared(Arc::new(map(file, &options)?)))
    }

    /// A file of which only the start is available, for readers that need no more: the rest reads
    /// as zeros, and takes no memory.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn begun(start: &[u8], n_bytes: u64) -> io::Result<FileBytes> {
        let file = File::from(memfd_create("opscope-head", MemfdFlags::CLOEXEC)?);
        file.set_len(n_bytes.max(start.len() as u64))?;
        file.write_all_at(start, 0)?;
        let map = map(&file, &memmap2::MmapOptions::new())?;
        Ok(FileBytes(MappedBytes::Mapped(Arc::new((map, file)))))
    }

    /// Appends a part of the file to `out`. If possible, the kernel copies mapped parts without a
    /// detour through this process's memory.
    ///
    /// # Errors
    /// Any that the operating system reports; [`io::ErrorKind::UnexpectedEof`] if there is no such
    /// part.
    pub fn copy_to(&self, range: Range<usize>, out: &mut File) -> io::Result<()> {
        let bytes = self.as_ref().get(range.clone());
        let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
        let n_copied = match &self.0 {
            MappedBytes::Read(_) | MappedBytes::Shared(_) => 0,
            MappedBytes::Mapped(mapped) => copy_in_kernel(&mapped.1, range.start, bytes.len(), out),
        };
        out.write_all(bytes.get(n_copied..).unwrap_or_default())
    }

    /// The position of a slice of its bytes in the file; `None` for other bytes.
    pub fn range_of(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let whole = self.as_ref();
        let start = bytes.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        let end = start.checked_add(bytes.len())?;
        (end <= whole.len()).then_some(start..end)
    }
}

/// Returns how many bytes were copied: fewer if the file systems cannot do it, or something failed
/// that writing will report.
fn copy_in_kernel(file: &File, start: usize, n_bytes: usize, out: &File) -> usize {
    let mut at = start as u64;
    let mut n_copied = 0;
    while n_copied < n_bytes {
        match copy_file_range(file, Some(&mut at), out, None, n_bytes - n_copied) {
            Ok(0) => break,
            Ok(n) => n_copied += n,
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    n_copied
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> FileBytes {
        FileBytes(MappedBytes::Read(Arc::new(bytes)))
    }
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            MappedBytes::Read(bytes) => bytes,
            MappedBytes::Mapped(mapped) => &mapped.0,
            MappedBytes::Shared(bytes) => (**bytes).as_ref(),
        }
    }
}

#[expect(unsafe_code, reason = "mapping a file is unsafe by signature")]
fn map(file: &File, options: &memmap2::MmapOptions) -> io::Result<memmap2::Mmap> {
    // SAFETY: the mapping is read-only and private to this process. Another process that truncates
    // the file meanwhile causes a fault, not undefined reads; `FileBytes::open` documents it.
    unsafe { options.map(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_copied_whether_read_or_mapped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for n_bytes in [100, READ_BYTES_MAX as usize + 5000] {
            let content: Vec<u8> = (0..n_bytes).map(|i| (i % 251) as u8).collect();
            std::fs::write(&path, &content).unwrap();
            let bytes = FileBytes::open(&path).unwrap();
            let part = &bytes.as_ref()[7..n_bytes - 3];
            assert_eq!(bytes.range_of(part), Some(7..n_bytes - 3));
            assert_eq!(bytes.range_of(&content), None);
            let out = dir.path().join("out");
            let mut file = File::create(&out).unwrap();
            file.write_all(b"head").unwrap();
            bytes.copy_to(7..n_bytes - 3, &mut file).unwrap();
            file.write_all(b"tail").unwrap();
            let expected = [b"head", part, b"tail"].concat();
            assert!(std::fs::read(&out).unwrap() == expected);
            assert!(bytes.copy_to(0..n_bytes + 1, &mut file).is_err());
        }
    }
}
