//! The fields of the message, each checked for the form that it has on the wire.

use std::ops::Range;

use crate::FormatError;
use crate::file_format::protobuf::{FieldValue, MessageReader, read_repeated_u64};

const DIMS: u32 = 1;
const DATA_TYPE: u32 = 2;
const SEGMENT: u32 = 3;
pub(super) const FLOAT_DATA: u32 = 4;
pub(super) const INT32_DATA: u32 = 5;
pub(super) const STRING_DATA: u32 = 6;
pub(super) const INT64_DATA: u32 = 7;
const NAME: u32 = 8;
const RAW_DATA: u32 = 9;
pub(super) const DOUBLE_DATA: u32 = 10;
pub(super) const UINT64_DATA: u32 = 11;
const DOC_STRING: u32 = 12;
const EXTERNAL_DATA: u32 = 13;
const DATA_LOCATION: u32 = 14;
const METADATA: u32 = 16;
/// Key and value of an entry about the location of elements.
const ENTRY_KEY: u32 = 1;
const ENTRY_VALUE: u32 = 2;
/// The number of the place that is another file.
const EXTERNAL: u64 = 1;
/// Maximum number of axes; more than any library allows.
const N_AXES_MAX: usize = 64;

/// The content of a message, apart from elements that are written one by one.
#[derive(Default)]
pub(super) struct TensorFields {
    pub(super) dims: Vec<u64>,
    pub(super) data_type: u64,
    pub(super) name: String,
    /// Where the elements are, if they are there as bytes.
    pub(super) raw: Option<Range<usize>>,
    /// The field with elements that are written one by one; 0 if there is none.
    pub(super) typed: u32,
    has_segment: bool,
    is_external: bool,
    /// The file with the elements, if another has them.
    location: Option<String>,
}

impl TensorFields {
    /// # Errors
    /// [`FormatError`] if a field is unknown, has another form than its own, or is there twice.
    pub(super) fn read(file: &[u8]) -> Result<TensorFields, FormatError> {
        let mut fields = TensorFields::default();
        let mut reader = MessageReader::new(file, 0);
        let mut seen = [false; METADATA as usize + 1];
        loop {
            let at = reader.offset();
            let Some((number, value)) = reader.field()? else {
                return Ok(fields);
            };
            if matches!(
                number,
                DATA_TYPE | NAME | RAW_DATA | DOC_STRING | DATA_LOCATION
            ) {
                let Some(seen) = seen.get_mut(number as usize).filter(|seen| !**seen) else {
                    return Err(FormatError::new(
                        at,
                        "a field once",
                        format!("{number} twice"),
                    ));
                };
                *seen = true;
            }
            fields.add(number, value, at)?;
        }
    }

    fn add(&mut self, number: u32, value: FieldValue<'_>, at: u64) -> Result<(), FormatError> {
        match (number, value) {
            (DIMS, FieldValue::Varint(_) | FieldValue::Bytes(..)) => {
                let n_bytes = match value {
                    FieldValue::Bytes(bytes, _) => bytes.len(),
                    _ => 1,
                };
                // A number has ten bytes at most, so that this bounds the list before it is made.
                if n_bytes > N_AXES_MAX * 10 {
                    return Err(too_many_axes(at));
                }
                read_repeated_u64(value, &mut self.dims)?;
                if self.dims.len() > N_AXES_MAX {
                    return Err(too_many_axes(at));
                }
            }
            (DATA_TYPE, FieldValue::Varint(number)) => self.data_type = number,
            (SEGMENT, FieldValue::Bytes(..)) => self.has_segment = true,
            (NAME, FieldValue::Bytes(bytes, at)) => self.name = text(bytes, at)?,
            (DOC_STRING, FieldValue::Bytes(bytes, at)) => drop(text(bytes, at)?),
            (RAW_DATA, FieldValue::Bytes(bytes, start)) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                self.raw = Some(start..start.saturating_add(bytes.len()));
            }
            (EXTERNAL_DATA, FieldValue::Bytes(bytes, at)) => self.add_entry(bytes, at)?,
            (DATA_LOCATION, FieldValue::Varint(place @ (0 | EXTERNAL))) => {
                self.is_external |= place == EXTERNAL;
            }
            (METADATA, FieldValue::Bytes(..)) => {}
            _ if is_typed(number, value) => {
                if self.typed != 0 && self.typed != number {
                    let found = format!("fields {} and {number}", self.typed);
                    return Err(FormatError::new(at, "elements in one field", found));
                }
                self.typed = number;
            }
            _ => {
                let found = format!("field {number} as it is here");
                return Err(FormatError::new(at, "a field of a tensor", found));
            }
        }
        Ok(())
    }

    /// Adds a pair of texts about the location of elements.
    fn add_entry(&mut self, bytes: &[u8], base: u64) -> Result<(), FormatError> {
        let (mut key, mut value) = (String::new(), String::new());
        let mut reader = MessageReader::new(bytes, base);
        while let Some((number, content)) = reader.field()? {
            match (number, content) {
                (ENTRY_KEY, FieldValue::Bytes(bytes, at)) => key = text(bytes, at)?,
                (ENTRY_VALUE, FieldValue::Bytes(bytes, at)) => value = text(bytes, at)?,
                _ => {
                    let found = format!("field {number}");
                    return Err(FormatError::new(base, "a key and a value", found));
                }
            }
        }
        self.is_external = true;
        if key == "location" {
            self.location = Some(value);
        }
        Ok(())
    }

    /// # Errors
    /// [`FormatError`] if the elements are elsewhere, only a part, or there in two forms.
    pub(super) fn check_is_whole(&self) -> Result<(), FormatError> {
        let found = if self.is_external {
            let file = self.location.as_deref().unwrap_or_default();
            format!("elements in another file, `{file}`")
        } else if self.has_segment {
            "a part of a tensor".to_owned()
        } else if let (Some(_), 1..) = (&self.raw, self.typed) {
            format!("raw bytes and field {}", self.typed)
        } else {
            return Ok(());
        };
        Err(FormatError::new(
            0,
            "all elements, once, in the file",
            found,
        ))
    }
}

/// Whether a field has elements one by one, and each has the form that its type has on the wire.
fn is_typed(number: u32, value: FieldValue<'_>) -> bool {
    match (number, value) {
        (STRING_DATA, FieldValue::Bytes(..)) => true,
        (FLOAT_DATA, FieldValue::Bytes(bytes, _)) => bytes.len().is_multiple_of(4),
        (DOUBLE_DATA, FieldValue::Bytes(bytes, _)) => bytes.len().is_multiple_of(8),
        (INT32_DATA | INT64_DATA | UINT64_DATA, FieldValue::Bytes(bytes, _)) => {
            // A bit of the last byte marks the end of a number.
            bytes.last().is_none_or(|last| last & 0x80 == 0)
        }
        (FLOAT_DATA, FieldValue::Fixed32(_)) | (DOUBLE_DATA, FieldValue::Fixed64(_)) => true,
        (INT32_DATA | INT64_DATA | UINT64_DATA, FieldValue::Varint(_)) => true,
        _ => false,
    }
}

fn text(bytes: &[u8], at: u64) -> Result<String, FormatError> {
    let text = str::from_utf8(bytes);
    let text = text.map_err(|_| FormatError::new(at, "text in UTF-8", "other bytes"))?;
    Ok(text.to_owned())
}

fn too_many_axes(at: u64) -> FormatError {
    FormatError::new(at, format!("at most {N_AXES_MAX} axes"), "more")
}
