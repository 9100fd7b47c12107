//! The tensor file of AscendCL data dump: a length, a protobuf header, the tensors' bytes.
//!
//! `docs/formats/dump_data.md` draws the bytes. Field numbers, enumerations and the order of the
//! payload follow the public `DumpData` message and its readers.

mod exception_file;
mod file;
mod header;
mod op_debug_file;

pub use super::ascend_codes::{dtype_code, dtype_from_code, layout_code, layout_from_code};
pub use exception_file::exception_prelude;
pub use file::{
    CheckedHead, DumpFile, DumpTensor, LENGTH_BYTES, PayloadKind, PayloadPiece, VERSION, prelude,
    with_length,
};
pub use header::{
    BufferEntry, DimRange, DumpHeader, HeaderAttribute, OriginalOp, SpaceEntry, TensorEntry,
};
pub use op_debug_file::{RECORD_OP_NAME, op_debug_file};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "DumpData";
/// Longest header that is accepted; protobuf itself ends there.
pub const HEADER_BYTES_MAX: u64 = i32::MAX as u64;
