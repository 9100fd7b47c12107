//! A file's bytes in memory.

use std::fs::{File, Metadata};
use std::io;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use opscope_tensor::SharedBytes;

use crate::kept_open::KeptOpen;
use crate::memory::free_memory_bytes;
use crate::regular_file;

/// Smaller parts are read without a look at the free memory.
const ASK_FREE_BYTES_MIN: usize = 64 << 20;

/// Parts up to this size are never mapped.
const MAP_BYTES_MIN: usize = 64 << 10;

/// Sizes of reused buffers: the system takes longer to provide fresh memory than to fill it.
const REUSED_BYTES: RangeInclusive<usize> = 1 << 18..=64 << 20;
/// Number of buffers that a thread keeps for reuse: one for each side of a comparison.
const N_SPARE_MAX: usize = 2;

thread_local! {
    static SPARE: KeptOpen<Vec<u8>> = const { KeptOpen::new() };
}

/// Runs `work`; meanwhile this thread reuses the buffers of large parts that it read.
pub fn reuse_buffers<R>(work: impl FnOnce() -> R) -> R {
    KeptOpen::during(&SPARE, work)
}

/// A buffer that the thread reuses for the next part once all owners have dropped it.
struct ReusedBuffer(Vec<u8>);

impl Drop for ReusedBuffer {
    fn drop(&mut self) {
        if !REUSED_BYTES.contains(&self.0.capacity()) {
            return;
        }
        // A thread that ends has already dropped its list.
        let _ = SPARE.try_with(|spare| {
            if let Some(mut spare) = spare.list()
                && spare.len() < N_SPARE_MAX
            {
                spare.push(std::mem::take(&mut self.0));
            }
        });
    }
}

/// A buffer of `n_bytes` bytes with arbitrary content.
fn buffer_of(n_bytes: usize) -> Vec<u8> {
    let known = SPARE.with(|spare| {
        let mut spare = spare.list()?;
        let fitting = n_bytes..=n_bytes.saturating_mul(2);
        match spare
            .iter()
            .position(|buffer| fitting.contains(&buffer.len()))
        {
            Some(position) => Some(spare.swap_remove(position)),
            None => {
                // Buffers of other sizes must not keep this size out.
                if REUSED_BYTES.contains(&n_bytes) && spare.len() == N_SPARE_MAX {
                    spare.remove(0);
                }
                None
            }
        }
    });
    match known {
        Some(mut buffer) => {
            buffer.truncate(n_bytes);
            buffer
        }
        None => vec![0; n_bytes],
    }
}

/// All bytes of a file or of a part of it. Copies share them.
///
/// The bytes are read, so a later change of the file has no effect on them. Only a part that
/// exceeds the free memory is mapped.
#[derive(Clone)]
pub struct FileBytes(HeldBytes);

#[derive(Clone)]
enum HeldBytes {
    Read(Arc<ReusedBuffer>),
    Mapped(Arc<memmap2::Mmap>),
    /// Bytes with another owner.
    Shared(SharedBytes),
}

impl FileBytes {
    /// Reads a file.
    ///
    /// # Errors
    /// As for [`regular_file::open`]; [`io::ErrorKind::UnexpectedEof`] if the file becomes shorter
    /// meanwhile.
    pub fn open(path: &Path) -> io::Result<FileBytes> {
        FileBytes::read_opened(regular_file::open(path)?)
    }

    /// [`FileBytes::open`] of a file that was found in a dump, where no symbolic link is followed.
    ///
    /// # Errors
    /// As for [`regular_file::open_in_dump`]; [`io::ErrorKind::UnexpectedEof`] if the file becomes
    /// shorter meanwhile.
    pub fn open_in_dump(path: &Path) -> io::Result<FileBytes> {
        FileBytes::read_opened(regular_file::open_in_dump(path)?)
    }

    fn read_opened((file, metadata): (File, Metadata)) -> io::Result<FileBytes> {
        // Bytes that are appended meanwhile are left out.
        let n_bytes = usize::try_from(metadata.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        FileBytes::read_part(&file, 0..n_bytes)
    }

    /// Bytes in memory, as if they were a file's.
    pub fn shared(bytes: SharedBytes) -> FileBytes {
        FileBytes(HeldBytes::Shared(bytes))
    }

    /// Reads a part of a file. A part that exceeds the free memory is mapped instead.
    ///
    /// # Errors
    /// Any that the operating system reports; [`io::ErrorKind::UnexpectedEof`] if the file ends
    /// before the part does.
    pub fn read_part(file: &File, range: Range<usize>) -> io::Result<FileBytes> {
        // The size may come from a table that has nothing to do with the file.
        check_reaches(file, &range)?;
        let n_bytes = range.len();
        let is_large = n_bytes >= ASK_FREE_BYTES_MIN;
        if is_large && free_memory_bytes().is_some_and(|n_free| n_bytes as u64 > n_free) {
            return FileBytes::map_part(file, range);
        }
        let mut bytes = buffer_of(n_bytes);
        file.read_exact_at(&mut bytes, range.start as u64)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => cut_off(&range),
                _ => error,
            })?;
        Ok(bytes.into())
    }

    /// Maps a part of a file.
    ///
    /// Using the bytes after another program has truncated the file raises SIGBUS. Only unnamed
    /// files, which other programs cannot reach, and arrays that document it are mapped.
    ///
    /// # Errors
    /// As for [`FileBytes::read_part`].
    pub fn map_part(file: &File, range: Range<usize>) -> io::Result<FileBytes> {
        check_reaches(file, &range)?;
        // A mapping costs more than reading a few pages.
        if range.len() <= MAP_BYTES_MIN {
            return FileBytes::read_part(file, range);
        }
        let mut options = memmap2::MmapOptions::new();
        options.offset(range.start as u64).len(range.len());
        let map = map(file, &options)?;
        Ok(FileBytes(HeldBytes::Mapped(Arc::new(map))))
    }

    /// The position of a slice of these bytes; `None` for other bytes.
    pub fn range_of(&self, bytes: &[u8]) -> Option<Range<usize>> {
        range_in(self.as_ref(), bytes)
    }
}

/// The position of a slice of `whole`; `None` for other bytes.
pub(crate) fn range_in(whole: &[u8], bytes: &[u8]) -> Option<Range<usize>> {
    let start = bytes.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(bytes.len())?;
    (end <= whole.len()).then_some(start..end)
}

/// Reads at most `n_bytes` bytes at the beginning of a file.
pub(crate) fn read_start(file: &File, n_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(n_bytes);
    let mut at = 0;
    bytes.resize(n_bytes, 0);
    while at < n_bytes {
        match file.read_at(&mut bytes[at..], at as u64) {
            Ok(0) => break,
            Ok(n) => at += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(at);
    Ok(bytes)
}

fn check_reaches(file: &File, range: &Range<usize>) -> io::Result<()> {
    if range.end as u64 > file.metadata()?.len() {
        return Err(cut_off(range));
    }
    Ok(())
}

/// The error about a file that is shorter than when it was opened, or than a table says.
pub(crate) fn cut_off(range: &Range<usize>) -> io::Error {
    let reason = format!(
        "the file ends before byte {}: another program has truncated or replaced it",
        range.end
    );
    io::Error::new(io::ErrorKind::UnexpectedEof, reason)
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> FileBytes {
        FileBytes(HeldBytes::Read(Arc::new(ReusedBuffer(bytes))))
    }
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            HeldBytes::Read(bytes) => &bytes.0,
            HeldBytes::Mapped(map) => map,
            HeldBytes::Shared(bytes) => (**bytes).as_ref(),
        }
    }
}

#[expect(unsafe_code, reason = "mapping a file is unsafe by signature")]
fn map(file: &File, options: &memmap2::MmapOptions) -> io::Result<memmap2::Mmap> {
    // SAFETY: the mapping is read-only, and nothing in this process writes to the file while it is
    // mapped. Another program that truncates the file causes a fault, which `map_part` documents.
    unsafe { options.map(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let content: Vec<u8> = (0..200_000).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = File::open(&path).unwrap();
        for range in [0..0, 0..200_000, 7..199_997, 5000..5001, 200_000..200_000] {
            let expected = &content[range.clone()];
            let read = FileBytes::read_part(&file, range.clone()).unwrap();
            let mapped = FileBytes::map_part(&file, range.clone()).unwrap();
            assert_eq!([read.as_ref(), mapped.as_ref()], [expected; 2], "{range:?}");
        }
        for range in [0..200_001, 200_000..200_001, 300_000..300_001] {
            for result in [
                FileBytes::read_part(&file, range.clone()),
                FileBytes::map_part(&file, range.clone()),
            ] {
                let error = result.err().unwrap();
                assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{range:?}");
            }
        }
        for n_bytes in [0, 1, 200_000, 300_000] {
            let expected = &content[..n_bytes.min(200_000)];
            assert_eq!(read_start(&file, n_bytes).unwrap(), expected);
        }
    }

    #[test]
    fn a_reused_buffer_has_the_bytes_of_the_next_part() {
        let file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..3 << 20).map(|i| (i / 4096) as u8).collect();
        file.write_all_at(&content, 0).unwrap();
        reuse_buffers(|| {
            for range in [0..3 << 20, 5..2 << 20, 1 << 20..3 << 20, 7..9] {
                let held = FileBytes::read_part(&file, 9..2 << 20).unwrap();
                let part = FileBytes::read_part(&file, range.clone()).unwrap();
                assert!(part.as_ref() == &content[range.clone()], "{range:?}");
                drop(part);
                // A buffer in use is not reused.
                let _ = FileBytes::read_part(&file, range).unwrap();
                assert!(held.as_ref() == &content[9..2 << 20]);
            }
        });
    }

    #[test]
    fn bytes_stay_when_the_file_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let content = vec![7; 1 << 20];
        std::fs::write(&path, &content).unwrap();
        let bytes = FileBytes::open(&path).unwrap();
        std::fs::write(&path, b"short").unwrap();
        assert!(bytes.as_ref() == content);
        assert_eq!(bytes.range_of(&bytes.as_ref()[7..9]), Some(7..9));
        assert_eq!(bytes.range_of(&content), None);
    }
}
