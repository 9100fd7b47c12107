//! Conversion without a change of layout.

use opscope_analysis::names;
use opscope_store::record::SlotSide;

use crate::array::ElementArray;
use crate::dtype::{self, NumpyTensor};
use crate::failure::ToolFailure;
use crate::options::ToolOutput;
use crate::output::OutputFolder;
use crate::source::{DumpSource, SourceTensor};
use crate::{formats, log};

/// The header's `buffer_type`; the reference knows only the first.
const L1_BUFFER: u32 = 0;

/// Writes every tensor, buffer and workspace of a file.
///
/// All tensors are checked before the first is written. A tensor with too few bytes for its shape
/// is skipped.
pub(super) fn convert(
    output: &OutputFolder,
    kind: ToolOutput,
    source: &DumpSource,
) -> Result<(), ToolFailure> {
    source
        .tensors()
        .try_for_each(|tensor| dtype::check(&tensor))?;
    for side in [SlotSide::Input, SlotSide::Output] {
        if source.side(side).next().is_none() {
            warn_missing(source, side.name());
        }
        for tensor in source.side(side) {
            let (label, path) = (tensor.label(), log::quoted(&source.path));
            log::info(&format!("Start to parse the data of {label} in {path}."));
            write(output, kind, source, &tensor)?;
        }
    }
    write_rest(output, source)
}

/// Writes one tensor.
pub(super) fn write(
    output: &OutputFolder,
    kind: ToolOutput,
    source: &DumpSource,
    tensor: &SourceTensor<'_>,
) -> Result<(), ToolFailure> {
    let decoded = dtype::decode(tensor)?;
    let (side, i) = (tensor.side.name(), tensor.index);
    let file = &source.file_name;
    let path = match kind {
        ToolOutput::Npy => {
            let stem = format!("{file}.{side}.{i}");
            let Some(array) = shaped(decoded, tensor) else {
                return Ok(());
            };
            output.npy(&stem, ".npy", &array)?
        }
        ToolOutput::MsNpy => {
            let (_, format) = formats::from_code(tensor.entry.format)?;
            let file = names::mindspore(file, &source.op_name);
            let stem = format!("{file}.{side}.{i}.{format}");
            let Some(array) = shaped(decoded, tensor) else {
                return Ok(());
            };
            output.npy(&stem, ".npy", &array)?
        }
        ToolOutput::Bin => {
            let (_, format) = formats::from_code(tensor.entry.format)?;
            let dtype = dtype::file_name_part(decoded.dump_dtype)?;
            let n = decoded.array.n_elements();
            output.bin(
                &format!("{file}.{side}.{i}.{n}.{dtype}.{format}"),
                &decoded.array,
            )?
        }
        ToolOutput::Pt => {
            let Some(array) = shaped(decoded, tensor) else {
                return Ok(());
            };
            output.torch(&format!("{file}.{side}.{i}"), &array)?
        }
    };
    let (label, path) = (tensor.label(), log::quoted(&path));
    log::info(&format!("The data of {label} has been parsed into {path}."));
    Ok(())
}

/// The tensor in its shape; a scalar gets one axis. `None`, with a message, if there are too few
/// bytes.
fn shaped<'a>(decoded: NumpyTensor<'a>, tensor: &SourceTensor<'_>) -> Option<ElementArray<'a>> {
    let dims = if decoded.dims.is_empty() {
        vec![1]
    } else {
        decoded.dims
    };
    match decoded.array.reshape(&dims) {
        Ok(array) => Some(array),
        Err(reason) => {
            log::error(&format!(
                "Failed to write the data of {}. {reason}",
                tensor.label()
            ));
            None
        }
    }
}

/// Writes buffers and workspaces unchanged.
fn write_rest(output: &OutputFolder, source: &DumpSource) -> Result<(), ToolFailure> {
    if source.buffers().next().is_none() {
        warn_missing(source, "buffer data");
    }
    for (i, (entry, bytes)) in source.buffers().enumerate() {
        let kind = if entry.buffer_type == L1_BUFFER {
            "l1"
        } else {
            "None"
        };
        let path = output.raw(&format!("{}.{kind}buffer.{i}", source.file_name), bytes)?;
        let path = log::quoted(&path);
        log::info(&format!(
            "The data of {kind}buffer:{i} has been parsed into {path}."
        ));
    }
    if source.spaces().next().is_none() {
        warn_missing(source, "space data");
    }
    for (i, bytes) in source.spaces().enumerate() {
        let path = output.raw(&format!("{}.space.{i}", source.file_name), bytes)?;
        let path = log::quoted(&path);
        log::info(&format!(
            "The data of space:{i} has been parsed into {path}."
        ));
    }
    Ok(())
}

fn warn_missing(source: &DumpSource, what: &str) {
    log::warning(&format!(
        "There is no {what} in {}.",
        log::quoted(&source.path)
    ));
}
