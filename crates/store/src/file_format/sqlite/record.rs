//! The values of a row: a list of types, then the contents one behind the other.

/// Maximum number of values of a row.
pub(super) const N_VALUES_MAX: usize = 64;
/// The first type with a variable length: even ones are bytes, odd ones are text.
const FIRST_WITH_LENGTH: u64 = 12;

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SqlValue<'a> {
    /// None.
    Null,
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// Text; whether it is in UTF-8 is left to the reader.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

/// Why a row is invalid. The offset is that of the row, as its parts may be anywhere in the file.
#[derive(Debug)]
pub(super) struct RowError {
    pub(super) expected: String,
    pub(super) found: String,
}

impl<'a> SqlValue<'a> {
    /// The text; `None` for other types, and for bytes that are not UTF-8.
    pub fn text(&self) -> Option<&'a str> {
        match self {
            SqlValue::Text(bytes) => str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The words for its type.
    pub fn kind(&self) -> &'static str {
        match self {
            SqlValue::Null => "nothing",
            SqlValue::Integer(_) => "a whole number",
            SqlValue::Real(_) => "a number",
            SqlValue::Text(bytes) if str::from_utf8(bytes).is_ok() => "text",
            SqlValue::Text(_) => "text that is no UTF-8",
            SqlValue::Blob(_) => "bytes",
        }
    }
}

impl RowError {
    pub(super) fn new(expected: impl Into<String>, found: impl Into<String>) -> RowError {
        RowError {
            expected: expected.into(),
            found: found.into(),
        }
    }
}

/// The number at `pos`, most significant bits first, and where it ends: seven bits of each byte,
/// and all of the ninth.
pub(super) fn varint(bytes: &[u8], pos: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (i, &byte) in bytes.get(pos..)?.iter().take(9).enumerate() {
        if i == 8 {
            return Some((value << 8 | u64::from(byte), pos + 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, pos + i + 1));
        }
    }
    None
}

/// Takes a row apart.
///
/// # Errors
/// [`RowError`] if types and contents are not exactly the row, or if it has more than
/// [`N_VALUES_MAX`] values.
pub(super) fn values(row: &[u8]) -> Result<Vec<SqlValue<'_>>, RowError> {
    let (n_header, mut pos) =
        varint(row, 0).ok_or_else(|| RowError::new("a length of types", "none"))?;
    let n_header = usize::try_from(n_header)
        .ok()
        .filter(|n| (pos..=row.len()).contains(n));
    let n_header = n_header.ok_or_else(|| RowError::new("types within the row", "more"))?;
    let types = row.get(..n_header).unwrap_or_default();
    let mut rest = row.get(n_header..).unwrap_or_default();
    // Types come first and contents behind them, so that both are walked side by side.
    let mut values = Vec::new();
    while pos < n_header {
        let Some((kind, end)) = varint(types, pos) else {
            return Err(RowError::new("a type of a value", "the end of the types"));
        };
        if values.len() == N_VALUES_MAX {
            return Err(RowError::new(
                format!("at most {N_VALUES_MAX} values"),
                "more",
            ));
        }
        let n_bytes =
            n_bytes_of(kind).ok_or_else(|| RowError::new("a type of a value", kind.to_string()))?;
        let Some((content, behind)) = usize::try_from(n_bytes)
            .ok()
            .and_then(|n| rest.split_at_checked(n))
        else {
            return Err(RowError::new(
                format!("{n_bytes} bytes of a value"),
                rest.len().to_string(),
            ));
        };
        values.push(value_of(kind, content));
        (rest, pos) = (behind, end);
    }
    if rest.is_empty() {
        Ok(values)
    } else {
        Err(RowError::new(
            "the end of the row",
            format!("{} bytes more", rest.len()),
        ))
    }
}

/// Bytes of a content by its type; none of types that no file has.
fn n_bytes_of(kind: u64) -> Option<u64> {
    Some(match kind {
        0 | 8 | 9 => 0,
        1..=4 => kind,
        5 => 6,
        6 | 7 => 8,
        FIRST_WITH_LENGTH.. => (kind - FIRST_WITH_LENGTH) / 2,
        _ => return None,
    })
}

fn value_of(kind: u64, content: &[u8]) -> SqlValue<'_> {
    match kind {
        0 => SqlValue::Null,
        7 => SqlValue::Real(f64::from_bits(integer(content).cast_unsigned())),
        // Two numbers have dedicated types, and no content.
        8 => SqlValue::Integer(0),
        9 => SqlValue::Integer(1),
        _ if kind < FIRST_WITH_LENGTH => SqlValue::Integer(integer(content)),
        _ if kind.is_multiple_of(2) => SqlValue::Blob(content),
        _ => SqlValue::Text(content),
    }
}

/// A whole number of up to eight bytes, most significant first.
fn integer(bytes: &[u8]) -> i64 {
    let is_negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    // Starting from all bits set extends the sign to the bytes that are not there.
    let start = if is_negative { -1 } else { 0 };
    bytes
        .iter()
        .fold(start, |value: i64, &byte| value << 8 | i64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_apart_whole_or_not_at_all() {
        let check = |row: &[u8], expected: &str| {
            let found = match values(row) {
                Ok(values) => format!("{values:?}"),
                Err(error) => format!("{}, found {}", error.expected, error.found),
            };
            assert_eq!(found, expected, "{row:?}");
        };
        check(&[1], "[]");
        check(&[4, 0, 8, 9], "[Null, Integer(0), Integer(1)]");
        check(&[3, 1, 2, 0xff, 0x01, 0x00], "[Integer(-1), Integer(256)]");
        check(&[2, 5, 0x80, 0, 0, 0, 0, 0], "[Integer(-140737488355328)]");
        check(&[2, 7, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], "[Real(1.5)]");
        check(&[3, 12, 15, b'a'], "[Blob([]), Text([97])]");
        check(&[2, 10], "a type of a value, found 10");
        check(&[2, 16, 1], "2 bytes of a value, found 1");
        check(&[1, 1], "the end of the row, found 1 bytes more");
        check(&[9, 1], "types within the row, found more");
        check(&[0], "types within the row, found more");
        check(&[2, 0x81], "a type of a value, found the end of the types");
        check(&[], "a length of types, found none");
        check(
            &[[66].as_slice(), &[0; 65]].concat(),
            "at most 64 values, found more",
        );
        // A length without any content.
        let long = [&[10][..], &[0xff; 9]].concat();
        assert!(values(&long).is_err());
    }

    #[test]
    fn numbers_take_one_to_nine_bytes() {
        let check = |bytes: &[u8], expected| assert_eq!(varint(bytes, 0), expected, "{bytes:?}");
        check(&[0x7f], Some((127, 1)));
        check(&[0x81, 0x00], Some((128, 2)));
        check(&[0xff; 9], Some((u64::MAX, 9)));
        check(&[0xff; 8], None);
        check(&[], None);
    }
}
