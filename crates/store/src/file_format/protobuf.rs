//! The protobuf wire format, as far as message headers need it.
//!
//! Source: the public encoding guide of Protocol Buffers. Fields may come in any order; unknown
//! fields are skipped.

use crate::FormatError;

/// Maximum nesting of (long deprecated) groups.
const GROUP_DEPTH_MAX: u32 = 32;

/// One field's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// An integer, boolean or enumeration.
    Varint(u64),
    /// Eight bytes, little-endian.
    Fixed64(u64),
    /// A string, byte string, message or packed list, with the offset of its first byte.
    Bytes(&'a [u8], u64),
    /// Four bytes, little-endian.
    Fixed32(u32),
    /// A group, skipped.
    Group,
}

/// Walks over the fields of one message.
pub struct MessageReader<'a> {
    bytes: &'a [u8],
    pos: usize,
    base: u64,
}

impl<'a> MessageReader<'a> {
    /// Reads `bytes`, which begin at byte `base` of the file.
    pub fn new(bytes: &'a [u8], base: u64) -> MessageReader<'a> {
        MessageReader {
            bytes,
            pos: 0,
            base,
        }
    }

    /// Offset in the file of the byte that is read next.
    pub fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }

    /// The next field's number and content, or `None` at the end of the message.
    ///
    /// # Errors
    /// [`FormatError`] if the bytes end early or are not a field.
    pub fn field(&mut self) -> Result<Option<(u32, FieldValue<'a>)>, FormatError> {
        if self.pos == self.bytes.len() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        let value = match wire_type {
            0 => FieldValue::Varint(self.varint()?),
            1 => FieldValue::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                // A wrong length is reported at its own offset, not after it.
                let at = self.offset();
                let len = self.varint()?;
                let start = self.offset();
                FieldValue::Bytes(self.take(len, at)?, start)
            }
            3 => {
                self.skip_group(number, 0)?;
                FieldValue::Group
            }
            5 => FieldValue::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(self.error("a protobuf field", format!("wire type {other}"))),
        };
        Ok(Some((number, value)))
    }

    /// The next integer of a packed list, which are all of the bytes; `None` at its end.
    ///
    /// # Errors
    /// [`FormatError`] if the list breaks off in the middle of an integer.
    pub fn packed(&mut self) -> Result<Option<u64>, FormatError> {
        if self.pos == self.bytes.len() {
            return Ok(None);
        }
        self.varint().map(Some)
    }

    fn tag(&mut self) -> Result<(u32, u64), FormatError> {
        let at = self.offset();
        let tag = self.varint()?;
        match u32::try_from(tag >> 3) {
            // The wire type takes 3 of a tag's 32 bits, and no field has the number 0.
            Ok(number) if number > 0 && number < 1 << 29 => Ok((number, tag & 7)),
            _ => Err(FormatError::new(
                at,
                "a protobuf field number",
                format!("tag {tag}"),
            )),
        }
    }

    fn varint(&mut self) -> Result<u64, FormatError> {
        let start = self.pos;
        let mut value = 0_u64;
        // 64 bits take ten bytes at most. Bits of the tenth beyond them fall away, as in protobuf's
        // own parsers.
        for (i, &byte) in self.bytes[start..].iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.pos = start + i + 1;
                return Ok(value);
            }
        }
        Err(self.error("a protobuf integer", "bytes that do not end one"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        match self.bytes[self.pos..].first_chunk::<N>() {
            Some(chunk) => {
                self.pos += N;
                Ok(*chunk)
            }
            None => Err(self.error(format!("{N} bytes"), "the end of the message")),
        }
    }

    fn take(&mut self, len: u64, at: u64) -> Result<&'a [u8], FormatError> {
        let rest = &self.bytes[self.pos..];
        match usize::try_from(len).ok().and_then(|len| rest.get(..len)) {
            Some(bytes) => {
                self.pos += bytes.len();
                Ok(bytes)
            }
            None => Err(FormatError::new(
                at,
                format!("a length of at most {}", rest.len()),
                format!("{len}"),
            )),
        }
    }

    fn skip_group(&mut self, group: u32, depth: u32) -> Result<(), FormatError> {
        if depth == GROUP_DEPTH_MAX {
            return Err(self.error("less nesting", format!("{GROUP_DEPTH_MAX} nested groups")));
        }
        loop {
            let (number, wire_type) = self.tag()?;
            match wire_type {
                0 => drop(self.varint()?),
                1 => drop(self.array::<8>()?),
                2 => {
                    let at = self.offset();
                    let len = self.varint()?;
                    self.take(len, at)?;
                }
                3 => self.skip_group(number, depth + 1)?,
                // The end of another group means that the nesting is broken.
                4 if number == group => return Ok(()),
                5 => drop(self.array::<4>()?),
                other => return Err(self.error("a protobuf field", format!("wire type {other}"))),
            }
        }
    }

    fn error(&self, expected: impl Into<String>, found: impl Into<String>) -> FormatError {
        FormatError::new(self.offset(), expected, found)
    }
}

/// Reads a `repeated uint64`, packed or one by one, into `out`.
///
/// # Errors
/// [`FormatError`] if a packed list breaks off in the middle of an integer.
pub fn read_repeated_u64(value: FieldValue<'_>, out: &mut Vec<u64>) -> Result<(), FormatError> {
    match value {
        // Writers of proto2 do not pack lists, and protobuf asks every parser to take both forms.
        FieldValue::Varint(v) => out.push(v),
        FieldValue::Bytes(bytes, base) => {
            let mut reader = MessageReader::new(bytes, base);
            while let Some(number) = reader.packed()? {
                out.push(number);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Appends fields to a message. Default values (0, empty) are left out, as proto3 asks.
#[derive(Default)]
pub struct MessageWriter(Vec<u8>);

impl MessageWriter {
    /// The bytes written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// An integer or enumeration field; nothing if it is 0.
    pub fn varint(&mut self, number: u32, value: u64) {
        if value != 0 {
            self.varint_always(number, value);
        }
    }

    /// A string field; nothing if it is empty.
    pub fn string(&mut self, number: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(number, text.as_bytes());
        }
    }

    /// A message field, present even when it is empty.
    pub fn message(&mut self, number: u32, fill: impl FnOnce(&mut MessageWriter)) {
        // The length comes first and has a varying width itself, so the content is made before it.
        let mut inner = MessageWriter::default();
        fill(&mut inner);
        self.bytes(number, &inner.0);
    }

    /// A packed `repeated uint64` field; nothing if the list is empty.
    pub fn packed_u64(&mut self, number: u32, values: &[u64]) {
        if !values.is_empty() {
            let mut inner = MessageWriter::default();
            values.iter().for_each(|&v| inner.raw_varint(v));
            self.bytes(number, &inner.0);
        }
    }

    /// An integer field, present even when it is 0.
    pub fn varint_always(&mut self, number: u32, value: u64) {
        self.raw_varint(u64::from(number) << 3);
        self.raw_varint(value);
    }

    /// A float field, present even when it is 0.
    pub fn float(&mut self, number: u32, value: f32) {
        self.raw_varint(u64::from(number) << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A double field, present even when it is 0.
    pub fn double(&mut self, number: u32, value: f64) {
        self.raw_varint(u64::from(number) << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A field of bytes, present even when it is empty.
    pub fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.header(number, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// The number and the length of a field of bytes, which the caller writes after it.
    pub fn header(&mut self, number: u32, n_bytes: u64) {
        self.raw_varint(u64::from(number) << 3 | 2);
        self.raw_varint(n_bytes);
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let mut writer = MessageWriter::default();
        writer.varint(1, 300);
        writer.varint(2, 0);
        writer.string(3, "ab");
        writer.packed_u64(4, &[1, u64::MAX]);
        writer.message(5, |_| {});
        let bytes = writer.into_bytes();
        let mut reader = MessageReader::new(&bytes, 100);
        assert_eq!(reader.field().unwrap(), Some((1, FieldValue::Varint(300))));
        assert_eq!(
            reader.field().unwrap(),
            Some((3, FieldValue::Bytes(b"ab", 105)))
        );
        let (number, value) = reader.field().unwrap().unwrap();
        let mut dims = Vec::new();
        read_repeated_u64(value, &mut dims).unwrap();
        assert_eq!((number, dims), (4, vec![1, u64::MAX]));
        assert!(matches!(
            reader.field().unwrap(),
            Some((5, FieldValue::Bytes(b"", _)))
        ));
        assert_eq!(reader.field().unwrap(), None);
    }

    #[test]
    fn broken_bytes_name_their_offset() {
        let cases: [(&[u8], u64); 5] = [
            (&[0x08, 0x80], 11),       // an integer that does not end
            (&[0x12, 0x05, 0x00], 11), // a length past the end
            (&[0x09, 0, 0], 11),       // eight bytes of which two are there
            (&[0x0e, 0], 11),          // wire type 6
            (&[0x00, 0], 10),          // field number 0
        ];
        for (bytes, offset) in cases {
            let error = MessageReader::new(bytes, 10).field().unwrap_err();
            assert_eq!(error.offset, offset, "{bytes:x?}: {error}");
        }
    }

    #[test]
    fn groups_are_skipped() {
        let bytes = [0x0b, 0x10, 0x01, 0x13, 0x14, 0x0c, 0x18, 0x07];
        let mut reader = MessageReader::new(&bytes, 0);
        assert_eq!(reader.field().unwrap(), Some((1, FieldValue::Group)));
        assert_eq!(reader.field().unwrap(), Some((3, FieldValue::Varint(7))));
        let deep = [0x0b; 100];
        assert!(MessageReader::new(&deep, 0).field().is_err());
    }
}
