//! Reading the file.

use super::{COMMON_COLUMNS, NULL, StatisticSubject};
use crate::FormatError;
use crate::file_format::byte_order_mark;
use crate::record::SlotSide;

/// Fields between the operator's name and the shape.
const N_MIDDLE_FIELDS: usize = 7;
/// Maximum number of dimensions read for one shape.
const AXES_MAX: usize = 1 << 10;

/// A file's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatisticRows {
    /// Titles of the columns after the shape.
    pub columns: Vec<String>,
    /// Each tensor with its values as text, one for each column; none where the file has `null`, or
    /// too few values.
    pub rows: Vec<(StatisticSubject, Vec<Option<String>>)>,
    /// Lines other than rows.
    pub errors: Vec<FormatError>,
}

/// Reads a file's text.
///
/// Names may hold commas, since fields are parsed from both ends of a line. An invalid line is
/// noted in [`StatisticRows::errors`], and the others are still read.
///
/// # Errors
/// [`FormatError`] if the first line is not the header.
pub fn parse(text: &str) -> Result<StatisticRows, FormatError> {
    let common = COMMON_COLUMNS.join(",");
    let n_mark = byte_order_mark::n_bytes(text.as_bytes());
    let text = byte_order_mark::behind(text);
    let first = text.lines().next().unwrap_or_default();
    let columns = first.trim_end().strip_prefix(&common).ok_or_else(|| {
        let found: String = first.chars().take(60).collect();
        FormatError::new(0, format!("the header `{common}`"), format!("`{found}`"))
    })?;
    let columns = columns.split(',').map(str::trim);
    let mut table = StatisticRows {
        columns: columns
            // The rest of the line begins with a comma, which adds an empty title in front.
            .filter(|c| !c.is_empty())
            .map(str::to_owned)
            .collect(),
        ..StatisticRows::default()
    };
    let mut offset = n_mark;
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        // A file that two runs wrote can have the header twice.
        if line.is_empty() || line.starts_with(&common) {
            continue;
        }
        match row(line, table.columns.len()) {
            Some(row) => table.rows.push(row),
            None => {
                let found: String = line.chars().take(60).collect();
                let expected = "a row: names, numbers, a shape in quotes, values";
                let error = FormatError::new(start as u64, expected, format!("`{found}`"));
                table.errors.push(error);
            }
        }
    }
    Ok(table)
}

fn row(line: &str, n_columns: usize) -> Option<(StatisticSubject, Vec<Option<String>>)> {
    // Names may hold quotes and brackets, so the last such place is the shape's. Versions up to 2.7
    // write parentheses.
    let starts = [",\"[", ",\"("].into_iter().filter_map(|s| line.rfind(s));
    let (head, rest) = line.split_at(starts.max()?);
    let (shape, values) = rest.get(3..)?.split_once('"')?;
    let shape = shape.strip_suffix([']', ')'])?;
    // Commas in an operator's name are not escaped, so the fields after it count from the right.
    let mut fields = head.rsplitn(N_MIDDLE_FIELDS + 1, ',');
    let dtype = fields.next()?;
    let n_bytes = fields.next()?.parse().ok()?;
    let slot = fields.next()?.parse().ok()?;
    let side = match fields.next()? {
        "input" => SlotSide::Input,
        "output" => SlotSide::Output,
        _ => return None,
    };
    let timestamp = fields.next()?.parse().ok()?;
    let stream_id = fields.next()?.parse().ok()?;
    let task_id = fields.next()?.parse().ok()?;
    let (op_type, op_name) = fields.next()?.split_once(',')?;
    let subject = StatisticSubject {
        op_type: op_type.to_owned(),
        op_name: op_name.to_owned(),
        task_id,
        stream_id,
        timestamp,
        side,
        slot,
        n_bytes,
        dtype: dtype.to_owned(),
        shape: extents(shape)?,
    };
    let mut values = values.strip_prefix(',').unwrap_or(values).split(',');
    // Rows of version 2.10 end with a comma and old ones do not; going by columns takes both.
    let values = (0..n_columns)
        .map(|_| {
            values.next().and_then(|text| {
                let text = text.trim();
                (!text.is_empty() && text != NULL).then(|| text.to_owned())
            })
        })
        .collect();
    Some((subject, values))
}

fn extents(text: &str) -> Option<Vec<u64>> {
    let dims = text.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    let dims: Option<Vec<u64>> = dims
        // One more than is allowed shows that there are too many.
        .take(AXES_MAX + 1)
        .map(|dim| dim.parse().ok())
        .collect();
    dims.filter(|dims| dims.len() <= AXES_MAX)
}
