//! A file whose parts are read on demand.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::file_bytes::{self, FileBytes};
use crate::regular_file;

/// Number of bytes that opening a file reads. Smaller files are then in memory as a whole.
const START_BYTES: usize = 64 << 10;

/// An open file. The start of a large file is in memory, and other parts are read on demand. Copies
/// share the open file.
#[derive(Clone)]
pub struct FileParts {
    /// The first bytes; all bytes if `file` is `None`.
    start: FileBytes,
    file: Option<Arc<File>>,
    n_bytes: usize,
}

/// Bytes of a file, read or mapped.
#[derive(Clone)]
pub struct FilePart {
    bytes: FileBytes,
    range: Range<usize>,
}

impl FileParts {
    /// Opens a file.
    ///
    /// # Errors
    /// As for [`regular_file::open`].
    pub fn open(path: &Path) -> io::Result<FileParts> {
        FileParts::of_opened(regular_file::open(path)?)
    }

    /// [`FileParts::open`] of a file that was found in a dump, where no symbolic link is followed.
    ///
    /// # Errors
    /// As for [`regular_file::open_in_dump`].
    pub fn open_in_dump(path: &Path) -> io::Result<FileParts> {
        FileParts::of_opened(regular_file::open_in_dump(path)?)
    }

    fn of_opened((file, metadata): (File, Metadata)) -> io::Result<FileParts> {
        let n_bytes = usize::try_from(metadata.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let start = file_bytes::read_start(&file, n_bytes.min(START_BYTES))?;
        let is_whole = n_bytes <= START_BYTES;
        Ok(FileParts {
            // A small file may have become shorter since `metadata`.
            n_bytes: if is_whole { start.len() } else { n_bytes },
            start: start.into(),
            file: (!is_whole).then(|| Arc::new(file)),
        })
    }

    /// A file of `n_bytes` bytes of which only the first are available.
    pub(crate) fn only_start(start: FileBytes, n_bytes: usize) -> FileParts {
        FileParts {
            start,
            file: None,
            n_bytes,
        }
    }

    /// Size of the file when it was opened.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// The first bytes: the whole of a small file, and enough of a large one to detect its format.
    pub fn start(&self) -> &[u8] {
        self.start.as_ref()
    }

    /// Reads a part.
    ///
    /// # Errors
    /// Any that the operating system reports; [`io::ErrorKind::UnexpectedEof`] if the file ends
    /// before the part does.
    pub fn part(&self, range: Range<usize>) -> io::Result<FilePart> {
        self.part_by(range, FileBytes::read_part)
    }

    /// Like [`FileParts::part`], but maps parts that are not in memory.
    ///
    /// # Errors
    /// As for [`FileBytes::map_part`], which also restricts its use.
    pub fn mapped_part(&self, range: Range<usize>) -> io::Result<FilePart> {
        self.part_by(range, FileBytes::map_part)
    }

    fn part_by(
        &self,
        range: Range<usize>,
        bring: impl FnOnce(&File, Range<usize>) -> io::Result<FileBytes>,
    ) -> io::Result<FilePart> {
        if self.start().get(range.clone()).is_some() {
            return Ok(FilePart {
                bytes: self.start.clone(),
                range,
            });
        }
        let is_range = range.start <= range.end && range.end <= self.n_bytes;
        match &self.file {
            Some(file) if is_range => Ok(FilePart::from(bring(file, range)?)),
            _ => Err(file_bytes::cut_off(&range)),
        }
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// As for [`FileParts::part`].
    pub fn whole(&self) -> io::Result<FilePart> {
        self.part(0..self.n_bytes)
    }

    /// Reads the length in the first 8 bytes and a header of that length. If it exceeds
    /// `n_bytes_max` or the file, the [start](FileParts::start) alone, whose length is then refused.
    ///
    /// # Errors
    /// As for [`FileParts::part`].
    pub(crate) fn length_and_header(&self, n_bytes_max: usize) -> io::Result<FilePart> {
        let length = self.start().first_chunk().copied().map(u64::from_le_bytes);
        let end = length
            .and_then(|length| usize::try_from(length).ok())
            .filter(|&length| length <= n_bytes_max)
            .and_then(|length| length.checked_add(size_of::<u64>()))
            .filter(|&end| end <= self.n_bytes);
        self.part(0..end.unwrap_or(self.start().len()))
    }

    /// A reader of the whole file.
    pub(crate) fn reader(&self) -> PartsReader<'_> {
        PartsReader {
            parts: self,
            at: 0,
            buffer: FilePart::from(FileBytes::from(Vec::new())),
            buffer_at: 0,
        }
    }
}

impl From<FileBytes> for FileParts {
    fn from(bytes: FileBytes) -> FileParts {
        let n_bytes = bytes.as_ref().len();
        FileParts::only_start(bytes, n_bytes)
    }
}

impl From<FilePart> for FileParts {
    fn from(part: FilePart) -> FileParts {
        let n_bytes = part.as_ref().len();
        let start = if part.range == (0..part.bytes.as_ref().len()) {
            part.bytes
        } else {
            FileBytes::shared(Arc::new(part))
        };
        FileParts::only_start(start, n_bytes)
    }
}

impl From<Vec<u8>> for FileParts {
    fn from(bytes: Vec<u8>) -> FileParts {
        FileBytes::from(bytes).into()
    }
}

impl FilePart {
    /// The part that consists of a slice of these bytes; `None` for other bytes.
    pub fn part_of(&self, bytes: &[u8]) -> Option<FilePart> {
        Some(FilePart {
            range: self.bytes.range_of(bytes)?,
            bytes: self.bytes.clone(),
        })
    }
}

impl From<FileBytes> for FilePart {
    fn from(bytes: FileBytes) -> FilePart {
        FilePart {
            range: 0..bytes.as_ref().len(),
            bytes,
        }
    }
}

impl AsRef<[u8]> for FilePart {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.bytes.as_ref().get(self.range.clone());
        bytes.unwrap_or_default()
    }
}

/// Reads a file through a buffer, for libraries that seek.
pub(crate) struct PartsReader<'a> {
    parts: &'a FileParts,
    at: u64,
    buffer: FilePart,
    buffer_at: u64,
}

impl Read for PartsReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n_file = self.parts.n_bytes();
        let Some(at) = usize::try_from(self.at).ok().filter(|&at| at < n_file) else {
            return Ok(0);
        };
        if self.buffered().is_empty() {
            let end = at.saturating_add(START_BYTES).min(n_file);
            self.buffer = self.parts.part(at..end)?;
            self.buffer_at = self.at;
        }
        let n = self.buffered().read(out)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl PartsReader<'_> {
    /// The bytes of the buffer from the current position on.
    fn buffered(&self) -> &[u8] {
        let start = self.at.checked_sub(self.buffer_at);
        let start = start.and_then(|start| usize::try_from(start).ok());
        let rest = start.and_then(|start| self.buffer.as_ref().get(start..));
        rest.unwrap_or_default()
    }
}

impl Seek for PartsReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => (self.parts.n_bytes() as u64).checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_wherever_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for n in [0, 9, START_BYTES, START_BYTES + 1, 3 * START_BYTES + 5] {
            let content: Vec<u8> = (0..n).map(|i| (i % 251) as u8).collect();
            std::fs::write(&path, &content).unwrap();
            for parts in [FileParts::open(&path).unwrap(), content.clone().into()] {
                assert_eq!(parts.n_bytes(), n);
                for range in [0..n, n / 2..n, n..n, 0..n.min(START_BYTES + 1)] {
                    let expected = &content[range.clone()];
                    let part = parts.part(range.clone()).unwrap();
                    assert!(part.as_ref() == expected, "{n} {range:?}");
                    let mapped = parts.mapped_part(range.clone()).unwrap();
                    assert!(mapped.as_ref() == expected, "{n} {range:?}");
                    let inner = part.as_ref();
                    let inner = part.part_of(&inner[inner.len() / 3..]).unwrap();
                    assert!(inner.as_ref() == &expected[expected.len() / 3..]);
                    assert!(part.part_of(&content).is_none() || content.is_empty());
                }
                let beyond = parts.part(n / 2..n + 1).err().unwrap();
                assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
                let mut reader = parts.reader();
                reader.seek(SeekFrom::End(-(n as i64 / 3))).unwrap();
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest).unwrap();
                assert!(rest == content[n - n / 3..]);
            }
        }
    }

    #[test]
    fn a_truncated_file_has_no_parts_beyond_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let parts = FileParts::open(&path).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(100_000)
            .unwrap();
        assert!(parts.part(90_000..100_000).is_ok());
        let error = parts.part(90_000..1 << 20).err().unwrap().to_string();
        assert!(error.contains("truncated or replaced"), "{error}");
    }

    #[test]
    fn a_header_follows_its_length() {
        for (length, n_bytes_max, expected) in [(2, 10, 10), (2, 1, 12), (5, 10, 12), (4, 10, 12)] {
            let content = [&u64::to_le_bytes(length)[..], b"abcd"].concat();
            let parts = FileParts::from(content);
            let header = parts.length_and_header(n_bytes_max).unwrap();
            assert_eq!(header.as_ref().len(), expected, "{length} {n_bytes_max}");
        }
        let short = FileParts::from(vec![1, 2]);
        assert_eq!(short.length_and_header(10).unwrap().as_ref(), [1, 2]);
    }
}
