//! The tree of a table: pages that point to others, and leaves with rows.

use super::record::{self, SqlValue, varint};
use super::{Database, HEADER_BYTES, Page};
use crate::file_bytes::range_in;
use crate::{FormatError, check_memory};

/// The kinds of pages, which their first byte says.
const INTERIOR: u8 = 0x05;
const LEAF: u8 = 0x0d;
/// Bytes before the list of a page's cells.
const INTERIOR_BYTES: usize = 12;
const LEAF_BYTES: usize = 8;
/// Maximum number of levels of pages; as many as SQLite itself follows.
const DEPTH_MAX: usize = 20;

/// A row, of which only the start has been read.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its number.
    pub number: i64,
    /// Where it begins in the file.
    pub at: u64,
    n_bytes: usize,
    /// The part in its leaf.
    start: &'a [u8],
    /// The offset of that part in the file; `None` for the journal.
    start_at: Option<u64>,
    /// The first page with what does not fit there, if anything is left.
    next_page: u32,
}

/// The memory into which rows are put together, one after the other.
#[derive(Default)]
pub struct RowBuffer(Vec<u8>);

/// Goes through the rows of a table by their numbers.
pub struct Rows<'a> {
    database: &'a Database,
    /// The page and the next of its cells, from the root down.
    levels: Vec<(TreePage<'a>, usize)>,
    /// The next page to descend to, and the offset of its number.
    down: Option<(u32, u64)>,
    /// The pages that were read: each belongs to one place of one table.
    seen: PageSet,
    last: Option<i64>,
}

#[derive(Clone, Copy)]
struct TreePage<'a> {
    page: Page<'a>,
    /// Where its header begins: behind that of the file on the first page.
    start: usize,
    is_leaf: bool,
    n_cells: usize,
}

impl Row<'_> {
    /// The offset of a value of the row in the file; `None` if several pages hold it, or the
    /// journal.
    pub fn place_of(&self, value: &[u8]) -> Option<u64> {
        let range = range_in(self.start, value)?;
        self.start_at?.checked_add(range.start as u64)
    }
}

impl<'a> Rows<'a> {
    pub(super) fn new(database: &'a Database, root: u32) -> Rows<'a> {
        Rows {
            database,
            levels: Vec::new(),
            down: Some((root, 0)),
            seen: PageSet::new(database.n_pages),
            last: None,
        }
    }

    /// The next row; none at the end.
    ///
    /// # Errors
    /// [`FormatError`] if a page is damaged, is reached twice, or lies too deep, and if rows are
    /// not in order.
    pub fn next_row(&mut self) -> Result<Option<Row<'a>>, FormatError> {
        loop {
            if let Some((number, at)) = self.down.take() {
                let page = self.open(number, at)?;
                self.levels.push((page, 0));
            }
            let Some((page, cell)) = self.levels.last_mut() else {
                return Ok(None);
            };
            // Advance before reading this cell: after an error it is not read again.
            let (page, cell) = (*page, std::mem::replace(cell, *cell + 1));
            // An interior page has one child more than cells, on the right of all of them.
            let n_children = page.n_cells + usize::from(!page.is_leaf);
            if cell >= n_children {
                self.levels.pop();
            } else if page.is_leaf {
                let row = page.row(cell, self.database)?;
                // `find` goes down by keys, and would miss rows that are out of order.
                if self.last.is_some_and(|last| last >= row.number) {
                    let last = self.last.unwrap_or_default();
                    let expected = format!("a row behind {last}");
                    return Err(FormatError::new(row.at, expected, row.number.to_string()));
                }
                self.last = Some(row.number);
                return Ok(Some(row));
            } else {
                self.down = Some(page.child(cell)?);
            }
        }
    }

    /// The row of a number; `None` if it is missing. [`Rows::next_row`] continues after it.
    ///
    /// # Errors
    /// As for [`Rows::next_row`].
    pub fn find(&mut self, number: i64) -> Result<Option<Row<'a>>, FormatError> {
        while let Some((down, at)) = self.down.take() {
            let page = self.open(down, at)?;
            let mut cell = 0;
            if !page.is_leaf {
                // The child on the left of a key has all rows up to it.
                cell = page.first_cell(|cell| Ok(page.key(cell)? >= number))?;
                self.down = Some(page.child(cell)?);
                cell += 1;
            }
            self.levels.push((page, cell));
        }
        // The cell that was chosen is the row itself, or the first behind the gap where it would
        // be.
        while let Some(row) = self.next_row()? {
            if row.number >= number {
                return Ok(Some(row).filter(|row| row.number == number));
            }
        }
        Ok(None)
    }

    /// Puts a row together and takes it apart into its values.
    ///
    /// # Errors
    /// [`FormatError`] if a part of it is missing or its values are damaged.
    pub fn read<'b>(
        &mut self,
        row: &Row<'a>,
        buffer: &'b mut RowBuffer,
    ) -> Result<Vec<SqlValue<'b>>, FormatError>
    where
        'a: 'b,
    {
        // A row in one piece stays in the file. Tensors are the largest rows and rarely are in one.
        let bytes: &'b [u8] = if row.start.len() == row.n_bytes {
            row.start
        } else {
            self.gather(row, &mut buffer.0)?;
            &buffer.0
        };
        record::values(bytes).map_err(|error| {
            let expected = format!("{} of row {}", error.expected, row.number);
            FormatError::new(row.at, expected, error.found)
        })
    }

    fn open(&mut self, number: u32, at: u64) -> Result<TreePage<'a>, FormatError> {
        if self.levels.len() == DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} levels of pages");
            return Err(FormatError::new(at, expected, "more"));
        }
        let page = self.database.page(number, at)?;
        self.seen.add(number, at)?;
        TreePage::read(page)
    }

    fn gather(&mut self, row: &Row<'_>, bytes: &mut Vec<u8>) -> Result<(), FormatError> {
        bytes.clear();
        check_memory(row.n_bytes as u64).map_err(|error| {
            FormatError::new(row.at, "a row that fits memory", error.to_string())
        })?;
        bytes.extend_from_slice(row.start);
        let (mut next, mut at) = (row.next_page, row.at);
        while bytes.len() < row.n_bytes {
            let page = self.database.page(next, at)?;
            self.seen.add(next, at)?;
            // The first four bytes of such a page are the number of the one behind it.
            let content = page.bytes.get(4..).unwrap_or_default();
            let n_wanted = content.len().min(row.n_bytes - bytes.len());
            bytes.extend_from_slice(content.get(..n_wanted).unwrap_or_default());
            (next, at) = (page.u32(0)?, page.base);
        }
        Ok(())
    }
}

impl<'a> TreePage<'a> {
    fn read(page: Page<'a>) -> Result<TreePage<'a>, FormatError> {
        // Places of cells count from the page's first byte all the same.
        let start = if page.number == 1 { HEADER_BYTES } else { 0 };
        let kind = page.bytes.get(start).copied().unwrap_or(0);
        if kind != LEAF && kind != INTERIOR {
            return Err(page.error(start, "a page of a table", format!("kind {kind}")));
        }
        let tree_page = TreePage {
            page,
            start,
            is_leaf: kind == LEAF,
            n_cells: usize::from(page.u16(start + 3)?),
        };
        // Checked once here, so that no cell's place is read from beyond the page.
        if tree_page.cells_end() > page.bytes.len() {
            let expected = "a list of cells that fits the page";
            return Err(page.error(start + 3, expected, tree_page.n_cells.to_string()));
        }
        Ok(tree_page)
    }

    fn cells_start(&self) -> usize {
        self.start
            + if self.is_leaf {
                LEAF_BYTES
            } else {
                INTERIOR_BYTES
            }
    }

    fn cells_end(&self) -> usize {
        self.cells_start() + 2 * self.n_cells
    }

    /// Where a cell begins in the page.
    fn cell(&self, cell: usize) -> Result<usize, FormatError> {
        let at = self.cells_start() + 2 * cell;
        let pos = usize::from(self.page.u16(at)?);
        // Cells fill the page from its end. One inside the list would be read as places and as
        // content.
        if pos < self.cells_end() || pos >= self.page.bytes.len() {
            return Err(self
                .page
                .error(at, "a place of a cell in the page", pos.to_string()));
        }
        Ok(pos)
    }

    /// The number of a child, and its offset. After the last cell it is the right-most child.
    fn child(&self, cell: usize) -> Result<(u32, u64), FormatError> {
        let is_right = cell == self.n_cells;
        let pos = if is_right {
            self.start + LEAF_BYTES
        } else {
            self.cell(cell)?
        };
        Ok((self.page.u32(pos)?, self.page.base + pos as u64))
    }

    /// The largest number of a row below the child on the left of a cell.
    fn key(&self, cell: usize) -> Result<i64, FormatError> {
        let pos = self.cell(cell)? + 4;
        let (key, _) = varint(self.page.bytes, pos).ok_or_else(|| {
            self.page
                .error(pos, "a number of a row", "the end of the page")
        })?;
        Ok(key.cast_signed())
    }

    /// The first cell for which `is_past` holds, as it then does for all later ones.
    fn first_cell(
        &self,
        is_past: impl Fn(usize) -> Result<bool, FormatError>,
    ) -> Result<usize, FormatError> {
        let (mut start, mut end) = (0, self.n_cells);
        while start < end {
            let middle = start.midpoint(end);
            if is_past(middle)? {
                end = middle;
            } else {
                start = middle + 1;
            }
        }
        Ok(start)
    }

    fn row(&self, cell: usize, database: &Database) -> Result<Row<'a>, FormatError> {
        let page = self.page;
        let at = self.cell(cell)?;
        let number_at = |pos| {
            let number = varint(page.bytes, pos);
            number.ok_or_else(|| page.error(pos, "a number", "the end of the page"))
        };
        let (n_bytes, pos) = number_at(at)?;
        let (number, pos) = number_at(pos)?;
        // A row cannot have more bytes than all pages, whatever it says: that bounds what is
        // allocated for it.
        let n_file = u64::from(database.n_pages).saturating_mul(database.page_bytes as u64);
        let n_bytes = usize::try_from(n_bytes)
            .ok()
            .filter(|&n| n as u64 <= n_file);
        let n_bytes =
            n_bytes.ok_or_else(|| page.error(at, "a row that fits the file", "a longer one"))?;
        let n_start = n_in_leaf(n_bytes, database.usable);
        let start = page.bytes.get(pos..).and_then(|rest| rest.get(..n_start));
        let start = start.ok_or_else(|| {
            page.error(
                at,
                format!("{n_start} bytes of a row"),
                "the end of the page",
            )
        })?;
        let has_more = n_start < n_bytes;
        Ok(Row {
            number: number.cast_signed(),
            at: page.base + at as u64,
            n_bytes,
            start,
            start_at: page.is_in_file.then_some(page.base + pos as u64),
            next_page: if has_more {
                page.u32(pos + n_start)?
            } else {
                0
            },
        })
    }
}

/// Bytes of a row in its leaf: all of them if they fit, otherwise at least the fewest, and so many
/// that the last further page is full.
fn n_in_leaf(n_bytes: usize, usable: usize) -> usize {
    // 35 bytes hold the header of a leaf, the cell's place, two numbers and the next page. The
    // other numbers are SQLite's own: they leave room for four keys on a page of an index, and hold
    // for tables too.
    let most = usable - 35;
    if n_bytes <= most {
        return n_bytes;
    }
    let fewest = (usable - 12) * 32 / 255 - 23;
    let filling = fewest + (n_bytes - fewest) % (usable - 4);
    if filling <= most { filling } else { fewest }
}

/// A set of pages, to detect repeated ones: a few bytes could form an endless tree.
struct PageSet(Vec<u64>);

impl PageSet {
    fn new(n_pages: u32) -> PageSet {
        PageSet(vec![0; n_pages as usize / 64 + 1])
    }

    fn add(&mut self, page: u32, at: u64) -> Result<(), FormatError> {
        let word = self.0.get_mut(page as usize / 64);
        let bit = 1 << (page % 64);
        match word {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                Ok(())
            }
            _ => Err(FormatError::new(
                at,
                "each page once",
                format!("page {page} again"),
            )),
        }
    }
}
