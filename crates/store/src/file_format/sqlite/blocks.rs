//! Blocks of a database file, read on demand.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use super::PAGE_BYTES_MAX;
use crate::file_parts::{FilePart, FileParts};

/// A database file. Blocks stay in memory once read, because pages refer to them.
pub(super) struct FileBlocks {
    file: FileParts,
    /// Blocks of [`PAGE_BYTES_MAX`] bytes. No page spans two, because both sizes are powers of two.
    blocks: Vec<OnceLock<FilePart>>,
}

impl FileBlocks {
    pub(super) fn new(file: FileParts) -> FileBlocks {
        let n_blocks = file.n_bytes().div_ceil(PAGE_BYTES_MAX);
        FileBlocks {
            file,
            blocks: (0..n_blocks).map(|_| OnceLock::new()).collect(),
        }
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.file.n_bytes()
    }

    /// The first bytes of the file.
    pub(super) fn start(&self) -> &[u8] {
        self.file.start()
    }

    /// The bytes of a page; `None` beyond the end of the file.
    ///
    /// # Errors
    /// As for [`FileParts::part`].
    pub(super) fn page(&self, range: Range<usize>) -> io::Result<Option<&[u8]>> {
        let block_idx = range.start / PAGE_BYTES_MAX;
        let Some(block) = self.blocks.get(block_idx) else {
            return Ok(None);
        };
        let start = block_idx * PAGE_BYTES_MAX;
        let bytes = match block.get() {
            Some(bytes) => bytes,
            None => {
                let end = (start + PAGE_BYTES_MAX).min(self.file.n_bytes());
                let read = self.file.part(start..end)?;
                block.get_or_init(|| read)
            }
        };
        let in_block = range.start - start..range.end.saturating_sub(start);
        Ok(bytes.as_ref().get(in_block))
    }
}
