//! Rows of a step that is not over: frames that are appended one after the other.
//!
//! A frame is whole or it is none, whenever its writer is killed. `docs/formats/native.md` has the
//! bytes.

use std::sync::Arc;

use opscope_tensor::digest::xxh3_128;

use super::SlotRow;
use super::columns::{self, CellKind};
use super::row::KnownTexts;
use crate::FormatError;

/// How such a file begins.
pub const MAGIC: &[u8; 8] = b"OPSROWS1";
/// Bytes of a frame's head: the length of its rows and their number.
const HEAD_BYTES: usize = 8;
/// Size of the checksum after the rows.
const CHECKSUM_BYTES: usize = 8;
/// Bytes that a row takes at the least: which cells differ, and which of those are there.
const ROW_BYTES_MIN: usize = 16;
/// Maximum number of axes of a shape.
const N_AXES_MAX: usize = 1 << 10;

/// Appends a frame with `rows` to `out`.
///
/// # Errors
/// [`std::io::ErrorKind::InvalidInput`] if the rows take 4 GiB or more.
pub fn encode(rows: &mut [SlotRow], out: &mut Vec<u8>) -> std::io::Result<()> {
    let start = out.len();
    out.extend([0; HEAD_BYTES]);
    // Each frame is independent, so that it can be read without those before it.
    let mut last = SlotRow::default();
    for row in &mut *rows {
        encode_row(&mut last, row, out);
        last.clone_from(row);
    }
    let n_bytes = u32::try_from(out.len() - start - HEAD_BYTES);
    let (Ok(n_bytes), Ok(n_rows)) = (n_bytes, u32::try_from(rows.len())) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    out[start..start + 4].copy_from_slice(&n_bytes.to_le_bytes());
    out[start + 4..start + HEAD_BYTES].copy_from_slice(&n_rows.to_le_bytes());
    let checksum = checksum(&out[start..]);
    out.extend(checksum);
    Ok(())
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub struct JournalContent {
    /// The rows, in the order in which they were written.
    pub rows: Vec<SlotRow>,
    /// Bytes at the end that are the beginning of a frame whose writer was stopped.
    pub n_unfinished: usize,
    /// Damage after these rows, if any.
    pub error: Option<FormatError>,
}

/// Reads the rows of a journal up to where it ends or is damaged.
pub fn decode(bytes: &[u8]) -> JournalContent {
    let mut content = JournalContent::default();
    if !bytes.starts_with(MAGIC) {
        // Also the magic may be unfinished.
        if MAGIC.starts_with(bytes) {
            content.n_unfinished = bytes.len();
        } else {
            let found = format!("{:02x?}", bytes.get(..MAGIC.len()).unwrap_or(bytes));
            content.error = Some(FormatError::new(0, "`OPSROWS1`", found));
        }
        return content;
    }
    let mut texts = KnownTexts::default();
    let mut offset = MAGIC.len();
    while offset < bytes.len() {
        match frame(bytes, offset, &mut texts, &mut content.rows) {
            Ok(Some(end)) => offset = end,
            Ok(None) => {
                content.n_unfinished = bytes.len() - offset;
                break;
            }
            Err(error) => {
                content.error = Some(error);
                break;
            }
        }
    }
    content
}

/// Reads a single frame that is whole, from its head to its checksum.
///
/// # Errors
/// [`FormatError`] if it is damaged; its offset counts from the frame.
pub fn decode_frame(bytes: &[u8]) -> Result<Vec<SlotRow>, FormatError> {
    let mut rows = Vec::new();
    match frame(bytes, 0, &mut KnownTexts::default(), &mut rows)? {
        Some(end) if end == bytes.len() => Ok(rows),
        _ => {
            let found = format!("{} bytes", bytes.len());
            Err(FormatError::new(0, "a frame of rows", found))
        }
    }
}

/// Reads the frame at `offset` and returns where it ends; `None` if it is unfinished.
fn frame(
    bytes: &[u8],
    offset: usize,
    texts: &mut KnownTexts,
    rows: &mut Vec<SlotRow>,
) -> Result<Option<usize>, FormatError> {
    let rest = &bytes[offset..];
    let Some((head, _)) = rest.split_first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let [a, b, c, d, e, f, g, h] = *head;
    let n_bytes = u32::from_le_bytes([a, b, c, d]) as usize;
    let n_rows = u32::from_le_bytes([e, f, g, h]) as usize;
    // The head is checked with the rows: a length that turned over would read as an unfinished
    // frame or as another one.
    let n_checked = HEAD_BYTES + n_bytes;
    let Some(checked) = rest.get(..n_checked) else {
        return Ok(None);
    };
    let Some(found) = rest.get(n_checked..n_checked + CHECKSUM_BYTES) else {
        return Ok(None);
    };
    let wrong = |at: usize, expected: &str, found: String| {
        FormatError::new((offset + at) as u64, expected, found)
    };
    if checksum(checked) != *found {
        return Err(wrong(
            n_checked,
            "the checksum of the rows before",
            format!("{found:02x?}"),
        ));
    }
    // Rows that are all alike still have their masks, which bounds what is allocated.
    if n_rows > n_bytes / ROW_BYTES_MIN {
        let expected = format!("at most {} rows", n_bytes / ROW_BYTES_MIN);
        return Err(wrong(4, &expected, n_rows.to_string()));
    }
    let mut cursor = Cursor {
        bytes: &checked[HEAD_BYTES..],
        start: offset + HEAD_BYTES,
        at: 0,
    };
    let n_before = rows.len();
    let mut last = SlotRow::default();
    for _ in 0..n_rows {
        match cursor.row(&last, texts) {
            Ok(row) => {
                last.clone_from(&row);
                rows.push(row);
            }
            Err(error) => {
                rows.truncate(n_before);
                return Err(error);
            }
        }
    }
    // Rows that end early would leave unchecked bytes.
    if cursor.at != n_bytes {
        rows.truncate(n_before);
        let found = format!("{} bytes more", n_bytes - cursor.at);
        return Err(wrong(HEAD_BYTES + cursor.at, "the end of the frame", found));
    }
    Ok(Some(offset + n_checked + CHECKSUM_BYTES))
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let digest = xxh3_128(bytes);
    std::array::from_fn(|i| digest[i])
}

/// Cells that are as in the row before are left out.
fn encode_row(last: &mut SlotRow, row: &mut SlotRow, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; ROW_BYTES_MIN]);
    let (mut changed, mut present) = (0_u64, 0_u64);
    for (i, column) in columns::ALL.iter().enumerate() {
        let is_there = match column.cell {
            CellKind::Int(cell) => {
                let value = *cell(row);
                if value == *cell(last) {
                    continue;
                }
                value.map(|value| write_int(value, out)).is_some()
            }
            CellKind::Text(cell) => {
                let text = cell(row);
                if is_same_text(text, cell(last)) {
                    continue;
                }
                text.as_ref().map(|text| write_text(text, out)).is_some()
            }
            CellKind::Shape => {
                if row.shape == last.shape {
                    continue;
                }
                row.shape
                    .as_ref()
                    .map(|shape| write_shape(shape, out))
                    .is_some()
            }
            CellKind::Count(nth) => {
                let value = row.statistics.counts[nth];
                if value == last.statistics.counts[nth] {
                    continue;
                }
                value.map(|value| write_int(value, out)).is_some()
            }
            CellKind::Number(nth) => {
                // Bits, as a NaN equals nothing and zeros have signs.
                let value = row.statistics.numbers[nth].map(f64::to_bits);
                if value == last.statistics.numbers[nth].map(f64::to_bits) {
                    continue;
                }
                value.map(|bits| out.extend(bits.to_le_bytes())).is_some()
            }
        };
        changed |= 1 << i;
        present |= u64::from(is_there) << i;
    }
    out[start..start + 8].copy_from_slice(&changed.to_le_bytes());
    out[start + 8..start + ROW_BYTES_MIN].copy_from_slice(&present.to_le_bytes());
}

fn is_same_text(a: &Option<Arc<str>>, b: &Option<Arc<str>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        (None, None) => true,
        _ => false,
    }
}

/// Seven bits in a byte, the sign first.
fn write_int(value: i64, out: &mut Vec<u8>) {
    let mut rest = (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    write_int(i64::try_from(text.len()).unwrap_or(i64::MAX), out);
    out.extend_from_slice(text.as_bytes());
}

fn write_shape(shape: &[i64], out: &mut Vec<u8>) {
    write_int(i64::try_from(shape.len()).unwrap_or(i64::MAX), out);
    for &extent in shape {
        write_int(extent, out);
    }
}

/// A position among the rows of a frame.
struct Cursor<'a> {
    bytes: &'a [u8],
    /// Where they begin in the file.
    start: usize,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn row(&mut self, last: &SlotRow, texts: &mut KnownTexts) -> Result<SlotRow, FormatError> {
        let changed = u64::from_le_bytes(self.array()?);
        let present = u64::from_le_bytes(self.array()?);
        // Bits of columns that a later version may add.
        if changed >> columns::ALL.len() != 0 || present & !changed != 0 {
            return Err(self.wrong("cells of columns that are known", format!("{changed:#x}")));
        }
        let mut row = last.clone();
        for (i, column) in columns::ALL.iter().enumerate() {
            if changed >> i & 1 == 0 {
                continue;
            }
            let is_there = present >> i & 1 == 1;
            match column.cell {
                CellKind::Int(cell) => *cell(&mut row) = self.optional(is_there, Cursor::int)?,
                CellKind::Text(cell) => {
                    let text = self.optional(is_there, Cursor::text)?;
                    *cell(&mut row) = text.map(|text| texts.share(text));
                }
                CellKind::Shape => row.shape = self.optional(is_there, Cursor::shape)?,
                CellKind::Count(nth) => {
                    row.statistics.counts[nth] = self.optional(is_there, Cursor::int)?;
                }
                CellKind::Number(nth) => {
                    let bits = self.optional(is_there, Cursor::array)?;
                    row.statistics.numbers[nth] = bits.map(f64::from_le_bytes);
                }
            }
        }
        Ok(row)
    }

    fn optional<T>(
        &mut self,
        is_there: bool,
        read: impl FnOnce(&mut Self) -> Result<T, FormatError>,
    ) -> Result<Option<T>, FormatError> {
        if is_there {
            return read(self).map(Some);
        }
        Ok(None)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(array) = rest.first_chunk::<N>() else {
            return Err(self.wrong(&format!("{N} bytes"), format!("{}", rest.len())));
        };
        self.at += N;
        Ok(*array)
    }

    fn int(&mut self) -> Result<i64, FormatError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte holds the last bit alone.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
            }
        }
        Err(self.wrong("a number of 64 bits", "a longer one".to_owned()))
    }

    fn length(&mut self, n_max: usize) -> Result<usize, FormatError> {
        let length = self.int()?;
        let fitting = usize::try_from(length).ok().filter(|n| *n <= n_max);
        fitting.ok_or_else(|| self.wrong(&format!("a length up to {n_max}"), length.to_string()))
    }

    fn text(&mut self) -> Result<&'a str, FormatError> {
        let n = self.length(self.bytes.len().saturating_sub(self.at))?;
        let bytes = self.bytes.get(self.at..self.at + n).unwrap_or_default();
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|error| self.wrong("text in UTF-8", error.to_string()))?;
        self.at += n;
        Ok(text)
    }

    fn shape(&mut self) -> Result<Arc<[i64]>, FormatError> {
        let n = self.length(N_AXES_MAX)?;
        (0..n).map(|_| self.int()).collect()
    }

    fn wrong(&self, expected: &str, found: String) -> FormatError {
        FormatError::new((self.start + self.at) as u64, expected, found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::slot_table::{NUMBER_NAMES, StatisticsCells};

    fn rows() -> impl Strategy<Value = Vec<SlotRow>> {
        let row = (
            proptest::option::of(any::<i64>()),
            proptest::option::of(".{0,8}"),
            proptest::option::of(proptest::collection::vec(any::<i64>(), 0..4)),
            proptest::option::of(any::<f64>()),
        );
        let row = row.prop_map(|(int, text, shape, number)| {
            let text: Option<Arc<str>> = text.map(Into::into);
            SlotRow {
                step: int,
                slot: int.map(i64::wrapping_neg),
                op_name: text.clone(),
                value: text,
                shape: shape.map(Into::into),
                statistics: StatisticsCells {
                    numbers: [number; NUMBER_NAMES.len()],
                    ..StatisticsCells::default()
                },
                ..SlotRow::default()
            }
        });
        proptest::collection::vec(row, 0..6)
    }

    proptest! {
        #[test]
        fn rows_come_back(mut first in rows(), mut second in rows()) {
            let mut file = MAGIC.to_vec();
            encode(&mut first, &mut file).unwrap();
            let n_first = file.len();
            encode(&mut second, &mut file).unwrap();
            let text = |rows: &[SlotRow]| format!("{rows:?}");
            let all: Vec<SlotRow> = first.iter().chain(&second).cloned().collect();
            let read = decode(&file);
            prop_assert!(read.error.is_none() && read.n_unfinished == 0);
            prop_assert_eq!(text(&read.rows), text(&all));
            // Safe to stop anywhere: earlier rows are there.
            for end in 0..file.len() {
                let read = decode(&file[..end]);
                prop_assert!(read.error.is_none(), "{:?}", read.error);
                let n = if end < n_first { 0 } else { first.len() };
                prop_assert_eq!(text(&read.rows), text(&all[..n]));
                let whole = [0, MAGIC.len(), n_first].contains(&end);
                prop_assert_eq!(read.n_unfinished == 0, whole);
            }
            // Any byte that turns over is noticed.
            for at in 0..file.len() {
                let mut damaged = file.clone();
                damaged[at] ^= 1;
                let read = decode(&damaged);
                prop_assert!(read.error.is_some() || read.n_unfinished > 0, "byte {}", at);
            }
        }
    }
}
