//! The `DumpData` message: the description of a file's tensors.

mod decode;
mod encode;

/// The header of a tensor file. Numbers are kept as in the file, known or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpHeader {
    /// Format version; `2.0` today.
    pub version: String,
    /// When the file was made, in microseconds since 1970-01-01 UTC.
    pub dump_time: u64,
    /// The operator's outputs.
    pub outputs: Vec<TensorEntry>,
    /// The operator's inputs.
    pub inputs: Vec<TensorEntry>,
    /// On-chip buffers.
    pub buffers: Vec<BufferEntry>,
    /// The operator's name before characters were replaced for the file name.
    pub op_name: String,
    /// Free attributes.
    pub attrs: Vec<HeaderAttribute>,
    /// Workspaces.
    pub spaces: Vec<SpaceEntry>,
    /// Text that exception dumps carry.
    pub dfx_message: String,
}

/// One input or output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorEntry {
    /// Number of the dtype.
    pub data_type: u32,
    /// Number of the layout in the low 8 bits.
    pub format: u32,
    /// Dimensions as stored; absent and empty both mean a scalar.
    pub shape: Option<Vec<u64>>,
    /// The operator before fusion that produced it (outputs only).
    pub original_op: Option<OriginalOp>,
    /// Length of tensor bytes inside the header, which readers ignore.
    pub n_inline_bytes: u64,
    /// Bytes in the payload.
    pub size: u64,
    /// Dimensions before the layout was changed for the device.
    pub original_shape: Option<Vec<u64>>,
    /// Group count or C0 code; 0 for plain layouts.
    pub sub_format: i32,
    /// Device address.
    pub address: u64,
    /// Valid ranges of the axes (outputs only).
    pub dim_ranges: Vec<DimRange>,
    /// Offset on the device.
    pub offset: u64,
    /// Position among the kernel's arguments (exception dumps).
    pub arg_index: u32,
    /// The real kind of an exception dump's input (inputs only).
    pub input_type: u32,
    /// Position among the operator's inputs or outputs, where it differs from that in the file. A
    /// field of ours, which other readers skip.
    pub slot: Option<u32>,
}

/// Number of [`TensorEntry::slot`], far from the vendor's.
const SLOT_FIELD: u32 = 1000;

/// The operator before fusion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginalOp {
    /// Its name.
    pub name: String,
    /// Which of its outputs.
    pub output_index: u32,
    /// Number of that output's dtype.
    pub data_type: u32,
    /// Number of that output's layout.
    pub format: u32,
}

/// A range of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DimRange {
    /// First position.
    pub start: i32,
    /// Last position.
    pub end: i32,
}

/// An on-chip buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferEntry {
    /// Kind of buffer; 0 is L1.
    pub buffer_type: u32,
    /// Bytes in the payload.
    pub size: u64,
}

/// A workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceEntry {
    /// Kind of workspace; 0 is a log.
    pub space_type: u32,
    /// Bytes in the payload.
    pub size: u64,
    /// Position among the kernel's arguments (exception dumps).
    pub arg_index: u32,
}

/// A name with a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderAttribute {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = TensorEntry> {
        let shape = proptest::option::of(proptest::collection::vec(any::<u64>(), 0..5));
        (
            any::<u32>(),
            any::<u32>(),
            shape.clone(),
            shape,
            any::<u64>(),
            any::<i32>(),
            any::<u64>(),
        )
            .prop_map(
                |(data_type, format, shape, original_shape, size, sub_format, address)| {
                    TensorEntry {
                        data_type,
                        format,
                        shape,
                        original_shape,
                        size,
                        sub_format,
                        address,
                        ..TensorEntry::default()
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn encoding_and_decoding_is_the_identity(
            mut outputs in proptest::collection::vec(entry(), 0..3),
            inputs in proptest::collection::vec(entry(), 0..3),
            op_name in ".{0,40}",
            dump_time in any::<u64>(),
        ) {
            if let Some(output) = outputs.first_mut() {
                output.dim_ranges = vec![DimRange { start: -1, end: 4 }];
                output.original_op = Some(OriginalOp { name: "x".into(), ..OriginalOp::default() });
            }
            let header = DumpHeader {
                version: "2.0".into(), dump_time, outputs, inputs, op_name,
                buffers: vec![BufferEntry { buffer_type: 0, size: 6 }],
                spaces: vec![SpaceEntry { space_type: 0, size: 5, arg_index: 2 }],
                attrs: vec![HeaderAttribute { name: "a".into(), value: "b".into() }],
                dfx_message: "x".into(),
            };
            prop_assert_eq!(DumpHeader::decode(&header.encode(), 8).unwrap(), header);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = DumpHeader::decode(&bytes, 8);
        }
    }

    /// A header recorded on an Ascend device and published in MindSpore's tests (Apache-2.0).
    #[test]
    fn the_published_header_is_written_byte_for_byte() {
        let header = DumpHeader {
            version: "2.0".into(),
            dump_time: 1_634_155_934_514_051,
            outputs: vec![TensorEntry {
                data_type: 2,
                format: 2,
                shape: Some(vec![2]),
                original_shape: Some(vec![2]),
                size: 4,
                ..TensorEntry::default()
            }],
            op_name: "Default/Add-op0".into(),
            ..DumpHeader::default()
        };
        let expected = b"\x0a\x032.0\x10\x83\xf7\xef\x9f\x99\xc8\xf3\x02\x1a\x10\x08\x02\x10\x02\
            \x1a\x03\x0a\x01\x02\x30\x04\x3a\x03\x0a\x01\x02\x32\x0fDefault/Add-op0";
        assert_eq!(header.encode(), expected);
        assert_eq!(DumpHeader::decode(expected, 8).unwrap(), header);
    }
}
