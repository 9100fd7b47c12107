//! Reading statistics files.

use std::io::Read;
use std::path::Path;

use super::{DESCRIPTION, FILE_NAME_SUFFIX};
use crate::file_format::byte_order_mark;
use crate::{FormatError, StoreError, regular_file};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "statistics";
/// Maximum number of columns of a file.
const N_COLUMNS_MAX: usize = 64;
/// Maximum size of a file.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The content of a statistics file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsTable {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The cells of each tensor, as many as there are columns.
    pub rows: Vec<Vec<String>>,
}

/// Whether a file of this name may hold statistics. One that goes by digits may hold anything.
pub fn may_be_table(real_name: &str) -> bool {
    real_name.ends_with(FILE_NAME_SUFFIX) || real_name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads a file if its content begins as that of statistics does.
///
/// # Errors
/// [`StoreError`] if it cannot be read, is too large, or is damaged further on.
pub fn read_if_table(path: &Path) -> Result<Option<StatsTable>, StoreError> {
    let io = || StoreError::io("read", path);
    let (file, _) = regular_file::open(path).map_err(io())?;
    let mut start = Vec::new();
    // A file that goes by digits may be a tensor file of any size, so only its start is read.
    let n_start = (byte_order_mark::N_BYTES + DESCRIPTION.len()) as u64;
    file.take(n_start).read_to_end(&mut start).map_err(io())?;
    if !byte_order_mark::bytes_behind(&start).starts_with(DESCRIPTION.as_bytes()) {
        return Ok(None);
    }
    read_file(path).map(Some)
}

/// Reads a file whose name says that it holds statistics.
///
/// # Errors
/// [`StoreError`] if it cannot be read, is too large, or holds something else.
pub fn read_file(path: &Path) -> Result<StatsTable, StoreError> {
    let bytes = regular_file::read(path, FILE_BYTES_MAX).map_err(StoreError::io("read", path))?;
    parse(&String::from_utf8_lossy(&bytes)).map_err(StoreError::corrupt(FORMAT_NAME, path))
}

/// Reads a file of either form.
///
/// # Errors
/// [`FormatError`] if the first line is another, or a row has another number of cells than it.
pub fn parse(text: &str) -> Result<StatsTable, FormatError> {
    rows_after(text, DESCRIPTION)
}

/// Reads a table whose first line begins with `description`.
pub(super) fn rows_after(text: &str, description: &str) -> Result<StatsTable, FormatError> {
    let mut at = byte_order_mark::n_bytes(text.as_bytes());
    let text = byte_order_mark::behind(text);
    let mut lines = text.split_inclusive('\n').map(|line| {
        let start = at;
        at += line.len();
        (start as u64, line.trim_end_matches(['\n', '\r']))
    });
    let (_, header) = lines.next().unwrap_or_default();
    let columns: Vec<&str> = header.split(',').take(N_COLUMNS_MAX + 1).collect();
    let is_known = header.starts_with(description) && columns.len() <= N_COLUMNS_MAX;
    if !is_known {
        let found: String = header.chars().take(40).collect();
        let expected = format!("a line that begins with `{description}`");
        return Err(FormatError::new(0, expected, format!("`{found}`")));
    }
    let mut rows = Vec::new();
    for (start, line) in lines.filter(|(_, line)| !line.is_empty()) {
        // Counting first keeps a line of nothing but commas from taking memory for each.
        let n_cells = line.split(',').count();
        if n_cells != columns.len() {
            let expected = format!("{} cells", columns.len());
            return Err(FormatError::new(start, expected, n_cells.to_string()));
        }
        rows.push(line.split(',').map(str::to_owned).collect());
    }
    Ok(StatsTable {
        columns: columns.into_iter().map(str::to_owned).collect(),
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_and_what_is_none() {
        let header = format!("{DESCRIPTION},Count,l2norm");
        let table = parse(&format!("{header}\nOutput,0,8,DT_FLOAT,ND,2,2,1.5\n")).unwrap();
        assert_eq!(table.columns.len(), 8);
        assert_eq!(table.rows[0][7], "1.5");
        assert!(parse(&header).unwrap().rows.is_empty());
        let error = parse(&format!("{header}\nOutput,0\n")).unwrap_err();
        assert_eq!(error.offset, header.len() as u64 + 1);
        assert!(parse("").is_err());
        assert!(parse("a,b\n").is_err());
        assert!(parse(&format!("{DESCRIPTION}{}", ",".repeat(100))).is_err());
    }
}
