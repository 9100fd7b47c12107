//! The tensor file that carries an overflow record.

use opscope_tensor::{DType, Layout};

use super::file::{VERSION, with_length};
use super::header::{DumpHeader, OriginalOp, TensorEntry};
use super::{dtype_code, layout_code};
use crate::file_format::op_debug::OverflowRecord;

/// The operator in the header of files with an overflow record.
pub const RECORD_OP_NAME: &str = "Node_OpDebug";

/// The whole bytes of a file that carries `record`, made at `dump_time` (microseconds since
/// 1970-01-01 UTC): one output, a `uint8` tensor.
pub fn op_debug_file(record: &OverflowRecord, dump_time: u64) -> Vec<u8> {
    let payload = record.encode();
    let n_bytes = payload.len() as u64;
    let data_type = dtype_code(DType::U8).unwrap_or_default();
    let format = layout_code(Layout::Nd);
    let output = TensorEntry {
        data_type,
        format,
        shape: Some(vec![n_bytes]),
        original_op: Some(OriginalOp {
            name: RECORD_OP_NAME.to_owned(),
            output_index: 0,
            data_type,
            format,
        }),
        size: n_bytes,
        // Present and without dimensions, as devices write it.
        original_shape: Some(Vec::new()),
        ..TensorEntry::default()
    };
    let header = DumpHeader {
        version: VERSION.to_owned(),
        dump_time,
        outputs: vec![output],
        op_name: RECORD_OP_NAME.to_owned(),
        ..DumpHeader::default()
    };
    [with_length(&header), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_format::dump_data::DumpFile;
    use crate::file_format::op_debug::{AiCore, BlockRecord, TaskInfo};

    /// The worked example of the public overflow document, in the header that devices write.
    const EXAMPLE: &[u8] =
        include_bytes!("../../../tests/golden/Opdebug.Node_OpDebug.57.563.1634155934600000");

    #[test]
    fn the_documented_example_is_written_byte_for_byte() {
        let task = TaskInfo {
            model_id: 514,
            stream_id: 563,
            task_id: 57,
            task_type: 0,
            pc_start: 0x1008_005b_0000,
            para_base: 0x1008_0029_7000,
        };
        let record = OverflowRecord::Blocks(BlockRecord {
            ai_core: AiCore {
                task,
                kernel_code: 0x1008_005a_e000,
                block_idx: 1,
                status: 32,
            },
            ..BlockRecord::default()
        });
        let bytes = op_debug_file(&record, 1_634_155_934_600_000);
        assert_eq!(bytes.len(), 2121);
        assert_eq!(bytes, EXAMPLE);
        let file = DumpFile::from_bytes(bytes).unwrap();
        assert_eq!(file.n_header_bytes(), 65);
        let tensor = file.tensors().next().unwrap();
        assert_eq!(OverflowRecord::decode(tensor.bytes).unwrap(), record);
    }
}
