//! Databases of SQLite, read without its library: the rows of tables, and nothing else.
//!
//! A database is a list of pages of one size. A table is a tree of pages, whose leaves hold the
//! rows by their numbers; a row that does not fit its page goes on in a chain of further ones. The
//! first page has the tree that lists the tables. No statement is ever run, so that views, triggers
//! and virtual tables of a database do nothing. Source: "Database File Format" in SQLite's
//! documentation.

mod blocks;
mod columns;
mod journal;
mod record;
mod tree;

use std::path::{Path, PathBuf};

use self::blocks::FileBlocks;
use self::journal::Rollback;
use crate::file_bytes::FileBytes;
use crate::file_parts::FileParts;
use crate::{FormatError, StoreError, regular_file};

pub use record::SqlValue;
pub use tree::{Row, RowBuffer, Rows};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "SQLite";
/// How every database begins.
const MAGIC: [u8; 16] = *b"SQLite format 3\0";
/// The suffix of the journal of a transaction that did not end.
pub const JOURNAL_SUFFIX: &str = "-journal";
/// The suffix of the log with the changes that the database does not have yet.
const LOG_SUFFIX: &str = "-wal";
/// Bytes of the header, before the tree of the first page.
const HEADER_BYTES: usize = 100;
/// The smallest page.
const PAGE_BYTES_MIN: usize = 512;
/// The number that encodes the largest page size, which does not fit in two bytes.
const LARGEST_PAGE: u16 = 1;
const PAGE_BYTES_MAX: usize = 65_536;
/// The fewest bytes of a page that are left when others are kept for extensions.
const USABLE_BYTES_MIN: usize = 480;
const UTF_8: u32 = 1;

/// A database, opened as it was before a transaction that did not end.
pub struct Database {
    blocks: FileBlocks,
    rollback: Option<Rollback>,
    page_bytes: usize,
    /// Bytes of a page that hold anything.
    usable: usize,
    n_pages: u32,
}

/// A table of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlTable {
    /// The page at the root of its tree.
    root: u32,
    /// Names of the columns in the order of a row's values.
    pub columns: Vec<String>,
}

/// A page and where it is.
#[derive(Clone, Copy)]
struct Page<'a> {
    number: u32,
    /// The bytes that hold anything.
    bytes: &'a [u8],
    /// Where it begins in the file.
    base: u64,
    /// Whether the page is in the file, not in the journal.
    is_in_file: bool,
}

/// Whether a file begins as a database.
pub fn has_magic(file: &[u8]) -> bool {
    file.starts_with(&MAGIC)
}

impl Database {
    /// Opens a database without writing any other file. An unfinished transaction is undone in
    /// memory.
    ///
    /// # Errors
    /// [`StoreError`] if the file or its journal cannot be read or is damaged, and if changes are
    /// in a write-ahead log.
    pub fn open(path: &Path) -> Result<Database, StoreError> {
        let file = FileParts::open(path).map_err(StoreError::io("read", path))?;
        // Without the log's changes, values would be missing in silence.
        let log = beside(path, LOG_SUFFIX);
        if regular_file::check(&log).is_ok_and(|metadata| metadata.len() > 0) {
            let reason = format!(
                "expected no write-ahead log, found `{}`; `pragma wal_checkpoint` puts its content into \
                 the database",
                log.display()
            );
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
            return Err(StoreError::io("read", path)(error));
        }
        let journal = beside(path, JOURNAL_SUFFIX);
        let journal = match FileBytes::open(&journal) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(StoreError::io("read", &journal)(error)),
        };
        Database::from_bytes(file, journal).map_err(StoreError::corrupt(FORMAT_NAME, path))
    }

    /// A database and the journal of its transaction that did not end.
    ///
    /// # Errors
    /// [`FormatError`] if the header or the journal is damaged, or if texts are not in UTF-8.
    pub fn from_bytes(
        file: FileParts,
        journal: Option<FileBytes>,
    ) -> Result<Database, FormatError> {
        let blocks = FileBlocks::new(file);
        let file = blocks.start();
        if !has_magic(file) {
            return Err(FormatError::new(0, "the magic of SQLite", "other bytes"));
        }
        let page_bytes = page_bytes(file)?;
        let rollback = match journal {
            Some(journal) => Rollback::read(journal, page_bytes)?,
            None => None,
        };
        let n_in_file = u32::try_from(blocks.n_bytes() / page_bytes).unwrap_or(u32::MAX);
        // The header lies on the first page, which the journal may have to undo: so the page is
        // read through a database that knows the file's size alone.
        let mut database = Database {
            rollback,
            page_bytes,
            usable: page_bytes,
            n_pages: n_in_file.max(1),
            blocks,
        };
        let page = database.page(1, 0)?;
        let usable = check_header(page.bytes)?;
        let n_pages = match &database.rollback {
            Some(rollback) => rollback.n_pages,
            None => n_pages(page.bytes, n_in_file)?,
        };
        (database.usable, database.n_pages) = (usable, n_pages);
        Ok(database)
    }

    /// The table of a name, in any case.
    ///
    /// # Errors
    /// [`FormatError`] if the list of tables is damaged or has none of this name, if it is a view
    /// or a virtual table, and if its statement has more than names and types of columns.
    pub fn table(&self, name: &str) -> Result<SqlTable, FormatError> {
        let mut rows = self.rows_of_tree(1);
        let mut buffer = RowBuffer::default();
        while let Some(row) = rows.next_row()? {
            let values = rows.read(&row, &mut buffer)?;
            let [kind, of_name, _, root, sql] = values[..] else {
                let found = format!("{} values", values.len());
                return Err(FormatError::new(
                    row.at,
                    "the five values of a table",
                    found,
                ));
            };
            let (Some(kind), Some(of_name)) = (kind.text(), of_name.text()) else {
                return Err(FormatError::new(
                    row.at,
                    "the kind and name of a table",
                    "other values",
                ));
            };
            // No index can have a table's name, but triggers can.
            if !of_name.eq_ignore_ascii_case(name) || kind == "trigger" {
                continue;
            }
            let wrong =
                |found: String| FormatError::new(row.at, format!("the table `{name}`"), found);
            let root = match root {
                SqlValue::Integer(root) if kind == "table" => u32::try_from(root).unwrap_or(0),
                _ => 0,
            };
            if root == 0 {
                let is_view = kind == "view";
                let found = if is_view { "a view" } else { "a virtual table" };
                return Err(wrong(found.to_owned()));
            }
            let columns = sql.text().and_then(columns::names);
            let columns = columns.ok_or_else(|| wrong("columns that are not plain".to_owned()))?;
            return Ok(SqlTable { root, columns });
        }
        let found = "none of this name";
        Err(FormatError::new(
            HEADER_BYTES as u64,
            format!("the table `{name}`"),
            found,
        ))
    }

    /// All rows of a table by their numbers.
    pub fn rows(&self, table: &SqlTable) -> Rows<'_> {
        self.rows_of_tree(table.root)
    }

    fn rows_of_tree(&self, root: u32) -> Rows<'_> {
        Rows::new(self, root)
    }

    /// A page. `at` is the offset of its number.
    fn page(&self, number: u32, at: u64) -> Result<Page<'_>, FormatError> {
        let wrong = || {
            let expected = format!("a page from 1 to {}", self.n_pages);
            FormatError::new(at, expected, number.to_string())
        };
        if number == 0 || number > self.n_pages {
            return Err(wrong());
        }
        // A page in the journal is as it was before the transaction that did not end.
        let before = self.rollback.as_ref().and_then(|undo| undo.page(number));
        let start = (number as usize - 1).checked_mul(self.page_bytes);
        let range = start.and_then(|start| Some(start..start.checked_add(self.page_bytes)?));
        let range = range.ok_or_else(wrong)?;
        let base = range.start as u64;
        let bytes = match before {
            Some(bytes) => Some(bytes),
            None => self.blocks.page(range).map_err(|error| {
                FormatError::new(base, "a page that can be read", error.to_string())
            })?,
        };
        let bytes = bytes.and_then(|bytes| bytes.get(..self.usable));
        Ok(Page {
            number,
            bytes: bytes.ok_or_else(wrong)?,
            base,
            is_in_file: before.is_none(),
        })
    }
}

impl Page<'_> {
    fn error(
        &self,
        pos: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> FormatError {
        FormatError::new(self.base + pos as u64, expected, found)
    }

    fn u16(&self, pos: usize) -> Result<u16, FormatError> {
        let bytes = self.bytes.get(pos..).and_then(|rest| rest.first_chunk());
        let bytes = bytes.ok_or_else(|| self.error(pos, "2 bytes", "the end of the page"))?;
        Ok(u16::from_be_bytes(*bytes))
    }

    fn u32(&self, pos: usize) -> Result<u32, FormatError> {
        let bytes = self.bytes.get(pos..).and_then(|rest| rest.first_chunk());
        let bytes = bytes.ok_or_else(|| self.error(pos, "4 bytes", "the end of the page"))?;
        Ok(u32::from_be_bytes(*bytes))
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn be_u32(bytes: &[u8], pos: usize) -> Option<u32> {
    let bytes = bytes.get(pos..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

fn page_bytes(file: &[u8]) -> Result<usize, FormatError> {
    let at = MAGIC.len();
    let number = file.get(at..).and_then(|rest| rest.first_chunk());
    let number = number.map_or(0, |bytes| u16::from_be_bytes(*bytes));
    let n_bytes = if number == LARGEST_PAGE {
        PAGE_BYTES_MAX
    } else {
        usize::from(number)
    };
    if n_bytes.is_power_of_two() && n_bytes >= PAGE_BYTES_MIN {
        Ok(n_bytes)
    } else {
        Err(FormatError::new(
            at as u64,
            "a size of pages",
            number.to_string(),
        ))
    }
}

/// Checks the fields of the header that change how pages are read. Returns the bytes of a page that
/// hold anything.
fn check_header(page: &[u8]) -> Result<usize, FormatError> {
    let kept = page.get(20).copied().map_or(0, usize::from);
    let usable = page.len().saturating_sub(kept);
    if usable < USABLE_BYTES_MIN {
        let expected = format!("{USABLE_BYTES_MIN} bytes of a page that are not kept for others");
        return Err(FormatError::new(20, expected, usable.to_string()));
    }
    let encoding = be_u32(page, 56).unwrap_or(0);
    // A database without any table has no encoding yet.
    if encoding > UTF_8 {
        return Err(FormatError::new(
            56,
            "texts in UTF-8",
            format!("encoding {encoding}"),
        ));
    }
    Ok(usable)
}

/// The number of pages, which counts if the last change was made by a library that knew of it.
fn n_pages(page: &[u8], n_in_file: u32) -> Result<u32, FormatError> {
    let is_known = be_u32(page, 24) == be_u32(page, 92);
    let known = be_u32(page, 28).filter(|&known| known > 0 && is_known);
    let n_pages = known.unwrap_or(n_in_file);
    if n_pages > n_in_file {
        let expected = format!("at most {n_in_file} pages, which the file has");
        return Err(FormatError::new(28, expected, n_pages.to_string()));
    }
    Ok(n_pages)
}

#[cfg(test)]
mod tests;
