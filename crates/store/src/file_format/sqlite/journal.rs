//! The journal of a transaction that did not end: the pages as they were before it.
//!
//! A process killed while writing leaves it next to its database, whose pages may be partly old and
//! partly new. SQLite writes the old pages back when it next opens the database. Here they replace
//! the new ones in memory.

use std::collections::HashMap;

use super::be_u32;
use crate::FormatError;
use crate::file_bytes::FileBytes;

/// How each part of a journal begins.
const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// Bytes of a part's header without what fills its sector.
const HEADER_BYTES: usize = 28;
/// Bytes of a record in addition to the page: its number before, a checksum after it.
const FRAME_BYTES: usize = 8;
/// The number of pages that means as many as there are.
const UNCOUNTED: u32 = u32::MAX;
/// Sizes of sectors that a header may say.
const SECTOR_BYTES: std::ops::RangeInclusive<usize> = 32..=65_536;
/// Every so many bytes of a page, from its end, are in the checksum.
const CHECKSUM_STEP: usize = 200;
/// The byte of a database at which a page holds locks, and no content.
const LOCK_BYTE: usize = 1 << 30;

/// The pages that a transaction has changed, as they were before.
pub(super) struct Rollback {
    bytes: FileBytes,
    /// Where each page begins in the journal.
    starts: HashMap<u32, usize>,
    page_bytes: usize,
    /// The pages that the database had.
    pub(super) n_pages: u32,
}

/// The header of a part.
struct PartHeader {
    n_records: u32,
    nonce: u32,
    n_pages: u32,
    sector_bytes: usize,
    page_bytes: usize,
}

impl Rollback {
    /// Reads a journal. None if it undoes nothing: one that is empty or blanked belongs to a
    /// transaction that ended.
    ///
    /// # Errors
    /// [`FormatError`], about the journal, if its sizes are none that it can have with this
    /// database.
    pub(super) fn read(
        bytes: FileBytes,
        page_bytes: usize,
    ) -> Result<Option<Rollback>, FormatError> {
        let Some(first) = part_header(bytes.as_ref(), 0) else {
            return Ok(None);
        };
        let is_sector =
            first.sector_bytes.is_power_of_two() && SECTOR_BYTES.contains(&first.sector_bytes);
        if !is_sector || first.page_bytes != page_bytes || first.n_pages == 0 {
            let expected = format!("a journal of pages of {page_bytes} bytes");
            let found = format!(
                "{} pages of {} in sectors of {}",
                first.n_pages, first.page_bytes, first.sector_bytes
            );
            return Err(FormatError::new(16, expected, found));
        }
        let mut rollback = Rollback {
            starts: HashMap::new(),
            page_bytes,
            n_pages: first.n_pages,
            bytes,
        };
        let sector_bytes = first.sector_bytes;
        let mut next = Some((0, first));
        while let Some((at, header)) = next {
            let end = rollback.add_part(at + sector_bytes, &header);
            // Another part begins at the next sector, unless the journal breaks off.
            let at = end.map(|end| end.next_multiple_of(sector_bytes));
            next = at.and_then(|at| Some((at, part_header(rollback.bytes.as_ref(), at)?)));
        }
        Ok(Some(rollback))
    }

    /// The page as it was before; none if the transaction has not changed it.
    pub(super) fn page(&self, number: u32) -> Option<&[u8]> {
        let start = *self.starts.get(&number)?;
        self.bytes
            .as_ref()
            .get(start..start.checked_add(self.page_bytes)?)
    }

    fn lock_page(&self) -> u32 {
        u32::try_from(LOCK_BYTE / self.page_bytes + 1).unwrap_or(0)
    }

    /// Takes the records of a part. Returns where it ends; none if it breaks off. SQLite stops
    /// there as well: records behind it were not on the disk before the database was changed.
    fn add_part(&mut self, start: usize, header: &PartHeader) -> Option<usize> {
        let journal = self.bytes.as_ref();
        let record_bytes = self.page_bytes + FRAME_BYTES;
        let n_there = journal.len().saturating_sub(start) / record_bytes;
        let is_counted = header.n_records != UNCOUNTED;
        let n_records = if is_counted {
            header.n_records as usize
        } else {
            n_there
        };
        let mut at = start;
        for _ in 0..n_records.min(n_there) {
            let number = be_u32(journal, at)?;
            let start = at + 4;
            let page = journal.get(start..start + self.page_bytes)?;
            let checksum = be_u32(journal, start + self.page_bytes)?;
            if number == 0 || number == self.lock_page() {
                return None;
            }
            // The first record of a page has it as it was before the transaction.
            if number <= self.n_pages && !self.starts.contains_key(&number) {
                if checksum != checksum_of(page, header.nonce) {
                    return None;
                }
                self.starts.insert(number, start);
            }
            at += record_bytes;
        }
        (n_records <= n_there).then_some(at)
    }
}

fn part_header(journal: &[u8], at: usize) -> Option<PartHeader> {
    let header = journal.get(at..)?.get(..HEADER_BYTES)?;
    header.starts_with(&MAGIC).then_some(())?;
    Some(PartHeader {
        n_records: be_u32(header, 8)?,
        nonce: be_u32(header, 12)?,
        n_pages: be_u32(header, 16)?,
        sector_bytes: be_u32(header, 20)? as usize,
        page_bytes: be_u32(header, 24)? as usize,
    })
}

fn checksum_of(page: &[u8], nonce: u32) -> u32 {
    let mut sum = nonce;
    let mut at = page.len().saturating_sub(CHECKSUM_STEP);
    while at > 0 {
        sum = sum.wrapping_add(page.get(at).copied().map_or(0, u32::from));
        at = at.saturating_sub(CHECKSUM_STEP);
    }
    sum
}
