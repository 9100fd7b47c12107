//! From [`DumpHeader`] to bytes.

use super::{DumpHeader, SLOT_FIELD, TensorEntry};
use crate::file_format::protobuf::MessageWriter;

impl DumpHeader {
    /// The bytes of the header, fields in ascending order, defaults left out.
    pub fn encode(&self) -> Vec<u8> {
        // This is the form that protobuf's own writers give a proto3 message, so the bytes equal
        // those of a device.
        let mut writer = MessageWriter::default();
        writer.string(1, &self.version);
        writer.varint(2, self.dump_time);
        for output in &self.outputs {
            writer.message(3, |w| output.encode_output(w));
        }
        for input in &self.inputs {
            writer.message(4, |w| input.encode_input(w));
        }
        for buffer in &self.buffers {
            writer.message(5, |w| {
                w.varint(1, buffer.buffer_type.into());
                w.varint(3, buffer.size);
            });
        }
        writer.string(6, &self.op_name);
        for attr in &self.attrs {
            writer.message(7, |w| {
                w.string(1, &attr.name);
                w.string(2, &attr.value);
            });
        }
        for space in &self.spaces {
            writer.message(8, |w| {
                w.varint(1, space.space_type.into());
                w.varint(3, space.size);
                w.varint(4, space.arg_index.into());
            });
        }
        writer.string(9, &self.dfx_message);
        writer.into_bytes()
    }
}

impl TensorEntry {
    fn encode_output(&self, w: &mut MessageWriter) {
        w.varint(1, self.data_type.into());
        w.varint(2, self.format.into());
        encode_shape(w, 3, self.shape.as_deref());
        if let Some(original) = &self.original_op {
            w.message(4, |w| {
                w.string(1, &original.name);
                w.varint(2, original.output_index.into());
                w.varint(3, original.data_type.into());
                w.varint(4, original.format.into());
            });
        }
        w.varint(6, self.size);
        encode_shape(w, 7, self.original_shape.as_deref());
        w.varint(8, sign_extended(self.sub_format));
        w.varint(9, self.address);
        for range in &self.dim_ranges {
            w.message(10, |w| {
                w.varint(1, sign_extended(range.start));
                w.varint(2, sign_extended(range.end));
            });
        }
        w.varint(11, self.offset);
        w.varint(12, self.arg_index.into());
        self.encode_slot(w);
    }

    fn encode_input(&self, w: &mut MessageWriter) {
        w.varint(1, self.data_type.into());
        w.varint(2, self.format.into());
        encode_shape(w, 3, self.shape.as_deref());
        w.varint(5, self.size);
        encode_shape(w, 6, self.original_shape.as_deref());
        w.varint(7, sign_extended(self.sub_format));
        w.varint(8, self.address);
        w.varint(9, self.offset);
        w.varint(10, self.arg_index.into());
        w.varint(11, self.input_type.into());
        self.encode_slot(w);
    }

    fn encode_slot(&self, w: &mut MessageWriter) {
        // Slot 0 differs from an absent one, and the writer leaves zeros out otherwise.
        if let Some(slot) = self.slot {
            w.varint_always(SLOT_FIELD, slot.into());
        }
    }
}

/// Protobuf writes a negative `int32` as a 64-bit integer.
fn sign_extended(value: i32) -> u64 {
    i64::from(value) as u64
}

fn encode_shape(writer: &mut MessageWriter, number: u32, dims: Option<&[u64]>) {
    // `message` writes an empty body as well, so a scalar's shape differs from a missing one.
    if let Some(dims) = dims {
        writer.message(number, |w| w.packed_u64(1, dims));
    }
}
