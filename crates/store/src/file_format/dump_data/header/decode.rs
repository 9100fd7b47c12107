//! From bytes to [`DumpHeader`].

use super::{
    BufferEntry, DimRange, DumpHeader, HeaderAttribute, OriginalOp, SLOT_FIELD, SpaceEntry,
    TensorEntry,
};
use crate::FormatError;
use crate::file_format::protobuf::{FieldValue, MessageReader, read_repeated_u64};

impl DumpHeader {
    /// Reads a header whose first byte is byte `base` of the file.
    ///
    /// # Errors
    /// [`FormatError`] if the bytes are not a `DumpData` message. Unknown fields are skipped.
    pub fn decode(bytes: &[u8], base: u64) -> Result<DumpHeader, FormatError> {
        let mut header = DumpHeader::default();
        let mut reader = MessageReader::new(bytes, base);
        while let Some(field) = reader.field()? {
            match field {
                (1, FieldValue::Bytes(text, at)) => header.version = string(text, at)?,
                (2, FieldValue::Varint(v)) => header.dump_time = v,
                (3, FieldValue::Bytes(b, at)) => header.outputs.push(TensorEntry::output(b, at)?),
                (4, FieldValue::Bytes(b, at)) => header.inputs.push(TensorEntry::input(b, at)?),
                (5, FieldValue::Bytes(b, at)) => header.buffers.push(BufferEntry::decode(b, at)?),
                (6, FieldValue::Bytes(text, at)) => header.op_name = string(text, at)?,
                (7, FieldValue::Bytes(b, at)) => header.attrs.push(HeaderAttribute::decode(b, at)?),
                (8, FieldValue::Bytes(b, at)) => header.spaces.push(SpaceEntry::decode(b, at)?),
                (9, FieldValue::Bytes(text, at)) => header.dfx_message = string(text, at)?,
                _ => {}
            }
        }
        Ok(header)
    }
}

impl TensorEntry {
    fn output(bytes: &[u8], base: u64) -> Result<TensorEntry, FormatError> {
        // `original_op` shifts the numbers of outputs from 4 on, so inputs need a separate match.
        let mut entry = TensorEntry::default();
        let mut reader = MessageReader::new(bytes, base);
        while let Some(field) = reader.field()? {
            match field {
                (3, FieldValue::Bytes(b, at)) => merge_shape(&mut entry.shape, b, at)?,
                // Protobuf merges a message that comes twice in a field that is not repeated.
                (4, FieldValue::Bytes(b, at)) => {
                    entry.original_op.get_or_insert_default().merge(b, at)?;
                }
                // Writers leave this field empty and write the elements after the header, so only
                // its length is kept.
                (5, FieldValue::Bytes(b, _)) => entry.n_inline_bytes = b.len() as u64,
                (6, FieldValue::Varint(v)) => entry.size = v,
                (7, FieldValue::Bytes(b, at)) => merge_shape(&mut entry.original_shape, b, at)?,
                // Protobuf extends the sign of a negative `int32` to 64 bits, which the cast cuts
                // off.
                (8, FieldValue::Varint(v)) => entry.sub_format = v as i32,
                (9, FieldValue::Varint(v)) => entry.address = v,
                (10, FieldValue::Bytes(b, at)) => entry.dim_ranges.push(DimRange::decode(b, at)?),
                // Copies of the message disagree: the graph engine's has `arg_index` at 11 and no
                // offset. Only files of failing operators set either.
                (11, FieldValue::Varint(v)) => entry.offset = v,
                (12, FieldValue::Varint(v)) => entry.arg_index = v as u32,
                other => entry.common_field(other),
            }
        }
        Ok(entry)
    }

    fn input(bytes: &[u8], base: u64) -> Result<TensorEntry, FormatError> {
        let mut entry = TensorEntry::default();
        let mut reader = MessageReader::new(bytes, base);
        while let Some(field) = reader.field()? {
            match field {
                (3, FieldValue::Bytes(b, at)) => merge_shape(&mut entry.shape, b, at)?,
                (4, FieldValue::Bytes(b, _)) => entry.n_inline_bytes = b.len() as u64,
                (5, FieldValue::Varint(v)) => entry.size = v,
                (6, FieldValue::Bytes(b, at)) => merge_shape(&mut entry.original_shape, b, at)?,
                (7, FieldValue::Varint(v)) => entry.sub_format = v as i32,
                (8, FieldValue::Varint(v)) => entry.address = v,
                (9, FieldValue::Varint(v)) => entry.offset = v,
                (10, FieldValue::Varint(v)) => entry.arg_index = v as u32,
                (11, FieldValue::Varint(v)) => entry.input_type = v as u32,
                other => entry.common_field(other),
            }
        }
        Ok(entry)
    }

    fn common_field(&mut self, field: (u32, FieldValue<'_>)) {
        match field {
            (1, FieldValue::Varint(v)) => self.data_type = v as u32,
            (2, FieldValue::Varint(v)) => self.format = v as u32,
            (SLOT_FIELD, FieldValue::Varint(v)) => self.slot = u32::try_from(v).ok(),
            _ => {}
        }
    }
}

impl OriginalOp {
    fn merge(&mut self, bytes: &[u8], base: u64) -> Result<(), FormatError> {
        let mut reader = MessageReader::new(bytes, base);
        while let Some(field) = reader.field()? {
            match field {
                (1, FieldValue::Bytes(text, at)) => self.name = string(text, at)?,
                (2, FieldValue::Varint(v)) => self.output_index = v as u32,
                (3, FieldValue::Varint(v)) => self.data_type = v as u32,
                (4, FieldValue::Varint(v)) => self.format = v as u32,
                _ => {}
            }
        }
        Ok(())
    }
}

impl DimRange {
    fn decode(bytes: &[u8], base: u64) -> Result<DimRange, FormatError> {
        let mut range = DimRange::default();
        let mut reader = MessageReader::new(bytes, base);
        while let Some(field) = reader.field()? {
            match field {
                (1, FieldValue::Varint(v)) => range.start = v as i32,
                (2, FieldValue::Varint(v)) => range.end = v as i32,
                _ => {}
            }
        }
        Ok(range)
    }
}

impl BufferEntry {
    fn decode(bytes: &[u8], base: u64) -> Result<BufferEntry, FormatError> {
        let mut buffer = BufferEntry::default();
        let mut reader = MessageReader::new(bytes, base);
        while let Some(field) = reader.field()? {
            match field {
                (1, FieldValue::Varint(v)) => buffer.buffer_type = v as u32,
                // Field 2 would be the bytes themselves, which follow the header instead.
                (3, FieldValue::Varint(v)) => buffer.size = v,
                _ => {}
            }
        }
        Ok(buffer)
    }
}

impl SpaceEntry {
    fn decode(bytes: &[u8], base: u64) -> Result<SpaceEntry, FormatError> {
        let mut space = SpaceEntry::default();
        let mut reader = MessageReader::new(bytes, base);
        while let Some(field) = reader.field()? {
            match field {
                (1, FieldValue::Varint(v)) => space.space_type = v as u32,
                (3, FieldValue::Varint(v)) => space.size = v,
                (4, FieldValue::Varint(v)) => space.arg_index = v as u32,
                _ => {}
            }
        }
        Ok(space)
    }
}

impl HeaderAttribute {
    fn decode(bytes: &[u8], base: u64) -> Result<HeaderAttribute, FormatError> {
        let mut attr = HeaderAttribute::default();
        let mut reader = MessageReader::new(bytes, base);
        while let Some(field) = reader.field()? {
            match field {
                (1, FieldValue::Bytes(text, at)) => attr.name = string(text, at)?,
                (2, FieldValue::Bytes(text, at)) => attr.value = string(text, at)?,
                _ => {}
            }
        }
        Ok(attr)
    }
}

fn merge_shape(dims: &mut Option<Vec<u64>>, bytes: &[u8], base: u64) -> Result<(), FormatError> {
    // A message without dimensions is the shape of a scalar, which differs from no shape at all.
    let dims = dims.get_or_insert_default();
    let mut reader = MessageReader::new(bytes, base);
    while let Some((number, value)) = reader.field()? {
        if number == 1 {
            read_repeated_u64(value, dims)?;
        }
    }
    Ok(())
}

fn string(bytes: &[u8], at: u64) -> Result<String, FormatError> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            // The vendor's parser refuses such a file, too.
            let at = at + error.valid_up_to() as u64;
            Err(FormatError::new(at, "UTF-8 text", "bytes that are not"))
        }
    }
}
