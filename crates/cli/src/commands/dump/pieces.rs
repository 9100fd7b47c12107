//! Tables printed without holding all rows in memory.

use std::io::Write;

use opscope_capture::SinkError;

use crate::exit::{CommandFailure, CommandResult, PARTIAL};
use crate::format;

/// Rows laid out at once.
const N_ROWS_AT_ONCE: usize = 4096;

pub(super) fn unreadable(error: SinkError) -> CommandFailure {
    CommandFailure::new(PARTIAL, error)
}

/// Prints a table, iterating over its rows twice. Columns in the second header are right-aligned.
pub(super) fn print_in_pieces<I>(
    out: &mut impl Write,
    (header, right): (&[&str], &[&str]),
    rows: impl Fn() -> CommandResult<I>,
) -> CommandResult
where
    I: Iterator<Item = Result<Vec<String>, SinkError>>,
{
    // The rows are in a file because they may exceed memory. A first pass measures the column
    // widths.
    let mut table = format::TableInPieces::new(header, right);
    in_pieces(rows()?, |piece| {
        table.widen(piece);
        Ok(())
    })?;
    in_pieces(rows()?, |piece| {
        Ok(writeln!(out, "{}", table.piece(piece))?)
    })?;
    writeln!(out)?;
    Ok(())
}

/// Calls a function with successive batches of rows; once if there are none.
fn in_pieces(
    rows: impl Iterator<Item = Result<Vec<String>, SinkError>>,
    mut each: impl FnMut(Vec<Vec<String>>) -> CommandResult,
) -> CommandResult {
    let mut rows = rows.peekable();
    // The first iteration also runs without rows, because an empty table has a header.
    loop {
        let piece = rows.by_ref().take(N_ROWS_AT_ONCE);
        each(piece.collect::<Result<_, _>>().map_err(unreadable)?)?;
        if rows.peek().is_none() {
            return Ok(());
        }
    }
}
