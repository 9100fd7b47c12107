//! Converts overflow records to JSON.

use opscope_store::file_format::op_debug::{
    ACC_TYPE_OFFSET, BLOCK_RECORD_BYTES, OverflowRecord, has_magic,
};
use opscope_store::record::SlotSide;

use crate::array::SaveOrder;
use crate::failure::{ErrorCode, ToolFailure};
use crate::output::OutputFolder;
use crate::source::{DumpSource, SourceTensor};
use crate::{dtype, log};

/// Writes each output of the file as a record, regardless of the requested kind of file.
pub(super) fn convert(output: &OutputFolder, source: &DumpSource) -> Result<(), ToolFailure> {
    source
        .tensors()
        .try_for_each(|tensor| dtype::check(&tensor))?;
    for tensor in source.side(SlotSide::Output) {
        let record = decode(source, &tensor)?;
        let name = format!("{}.output.{}.json", source.file_name, tensor.index);
        let path = output.text(&name, &record.to_json_text())?;
        let (label, path) = (tensor.label(), log::quoted(&path));
        log::info(&format!("The data of {label} has been parsed into {path}."));
    }
    Ok(())
}

fn decode(source: &DumpSource, tensor: &SourceTensor<'_>) -> Result<OverflowRecord, ToolFailure> {
    let decoded = dtype::decode(tensor)?;
    let bytes = decoded.array.bytes_in_order(SaveOrder::C);
    let record = OverflowRecord::decode(&bytes).map_err(|error| {
        let is_type = error.offset == ACC_TYPE_OFFSET as u64 && bytes.len() >= ACC_TYPE_OFFSET + 4;
        let message = format!(
            "Failed to parse dump file \"{}\". {error}",
            source.path.display()
        );
        match (has_magic(&bytes), is_type) {
            (false, _) => {
                log::error(&format!(
                    "The data size ({}) of {} is not equal to {BLOCK_RECORD_BYTES}.",
                    bytes.len(),
                    tensor.label()
                ));
                ToolFailure::new(ErrorCode::InvalidDumpData, message)
            }
            (true, true) => ToolFailure::new(ErrorCode::OverflowType, message),
            (true, false) => ToolFailure::unexpected(message),
        }
    })?;
    if let OverflowRecord::Accelerator(record) = &record {
        if !record.is_valid() {
            let valid = record.valid;
            log::error(&format!(
                "The value of valid in the OpDebug file is {valid}, it is not 1"
            ));
        }
        let (found, expected) = (record.data_len, record.expected_data_len());
        if found != expected {
            log::error(&format!(
                "The value of data_len in the OpDebug file is {found}, it is not equal the expect \
                 value {expected}"
            ));
        }
    }
    Ok(record)
}
