//! Conversion to another layout.

use opscope_analysis::names;
use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Layout};

use super::plain;
use crate::array::ElementArray;
use crate::custom::{ConverterCall, UserConverters};
use crate::dtype::{self, NumpyTensor};
use crate::failure::{ErrorCode, ToolFailure};
use crate::layout::{self, ConversionResult, LayoutRequest};
use crate::options::ToolOutput;
use crate::output::OutputFolder;
use crate::slice::{self, SliceCut};
use crate::source::{DumpSource, SourceTensor};
use crate::{formats, log};

/// Converters get the number of groups from this number on.
const GROUPS_MIN: i32 = 2;

/// The change of layout requested by `-f` and the related options.
pub(super) struct LayoutChange {
    pub(super) target: Layout,
    pub(super) wanted: Option<Vec<usize>>,
    pub(super) pick: Option<ChosenTensor>,
    pub(super) custom: Option<UserConverters>,
}

/// The only tensor to convert.
#[derive(Clone, Copy)]
pub(super) struct ChosenTensor {
    pub(super) side: SlotSide,
    pub(super) index: usize,
}

/// Why a file, or some of its tensors, could not be converted.
pub(super) struct FileFailure {
    pub(super) failure: ToolFailure,
    /// The failed tensors, unless it is the whole file.
    pub(super) tensors: Vec<String>,
}

impl From<ToolFailure> for FileFailure {
    fn from(failure: ToolFailure) -> FileFailure {
        FileFailure {
            failure,
            tensors: Vec::new(),
        }
    }
}

/// A converted tensor and the layout in its file name.
struct ConvertedTensor<'a> {
    array: ElementArray<'a>,
    format: &'static str,
    dump_dtype: DType,
}

/// Converts the tensors of a file. A failing tensor does not affect the others; the last failure is
/// the file's.
pub(super) fn convert(
    output: &OutputFolder,
    kind: ToolOutput,
    relayout: &LayoutChange,
    source: &DumpSource,
) -> Result<(), FileFailure> {
    let path = log::quoted(&source.path);
    log::info(&format!(
        "Start to transfer format for the dump file {path}."
    ));
    source
        .tensors()
        .try_for_each(|tensor| dtype::check(&tensor))?;
    let mut tensors: Vec<SourceTensor<'_>> = source.tensors().collect();
    if let Some(ChosenTensor { side, index }) = relayout.pick {
        let n = source.side(side).count();
        if index >= n {
            let message = format!(
                "The {} index ({index}) is out of range [0, {n}). Please check the index.",
                side.name()
            );
            return Err(ToolFailure::new(ErrorCode::IndexOutOfBounds, message).into());
        }
        tensors.retain(|tensor| (tensor.side, tensor.index) == (side, index));
    }
    let mut failed: Option<FileFailure> = None;
    for tensor in &tensors {
        let result = relayout
            .convert_tensor(source, tensor)
            .and_then(|product| write(output, kind, source, tensor, &product));
        let Err(failure) = result else {
            continue;
        };
        // An exception that the reference does not catch ends its loop; later tensors are not
        // tried.
        if matches!(failure, ToolFailure::Unexpected(_)) {
            return Err(failure.into());
        }
        let failure = failure.logged();
        let label = tensor.label();
        log::error(&format!("Failed to convert format for {label} of {path}"));
        let failed = failed.get_or_insert_with(|| FileFailure::from(failure.clone()));
        // The reference returns the last failure.
        failed.failure = failure;
        failed.tensors.push(label);
        // With this output a tensor that cannot be converted is written unchanged.
        if kind == ToolOutput::MsNpy && relayout.pick.is_none() {
            plain::write(output, kind, source, tensor)?;
        }
    }
    match failed {
        None => Ok(()),
        Some(failed) => {
            log::error(&format!(
                "Failed to convert format for {}.",
                source.path.display()
            ));
            Err(failed)
        }
    }
}

impl LayoutChange {
    fn convert_tensor<'a>(
        &self,
        source: &DumpSource,
        tensor: &SourceTensor<'a>,
    ) -> Result<ConvertedTensor<'a>, ToolFailure> {
        let (from, from_name) = formats::from_code(tensor.entry.format)?;
        let decoded = dtype::decode(tensor)?;
        let from = as_dumped(from, &decoded.dims, tensor);
        // Without `-s` the wanted shape is the original shape in the header.
        let wanted = self.wanted.clone().unwrap_or_else(|| {
            let dims = tensor.entry.original_shape.iter().flatten();
            dims.map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX))
                .collect()
        });
        if from == Layout::FractalNz {
            layout::check_wanted_shape(&decoded.dims, &wanted)?;
        }
        let label = tensor.label();
        let shape = &decoded.dims;
        log::info(&format!(
            "Before transferring the format, the data of {label} is {from}{shape:?}."
        ));
        let target_name = formats::name(self.target).unwrap_or_default();
        let dump_dtype = decoded.dump_dtype;
        if from == self.target {
            log::info(&format!(
                "There is no need to transfer format because the format ({from_name}) is the same \
                 for {label} of {}.",
                log::quoted(&source.path)
            ));
            let array = decoded
                .array
                .reshape(&decoded.dims)
                .map_err(|reason| ToolFailure::new(ErrorCode::InvalidDumpData, reason))?;
            return Ok(ConvertedTensor {
                array,
                format: target_name,
                dump_dtype,
            });
        }
        let converted = self.run(from, decoded, &wanted, tensor.entry.sub_format)?;
        let shape = converted.dims();
        log::info(&format!(
            "After transferring the format, the data of {label} is {target_name}{shape:?}."
        ));
        let (array, is_cut) = cut(converted, &wanted)?;
        // A tensor that cannot be cut is still written, under the name of its original layout.
        if !is_cut {
            log::error(&format!(
                "Failed to slice data for '{}' from {:?} to {wanted:?}.",
                source.path.display(),
                array.dims()
            ));
        }
        let format = if is_cut { target_name } else { from_name };
        Ok(ConvertedTensor {
            array,
            format,
            dump_dtype,
        })
    }

    /// Runs the user's converter, or else the reference's.
    fn run<'a>(
        &self,
        from: Layout,
        decoded: NumpyTensor<'a>,
        wanted: &[usize],
        groups: i32,
    ) -> Result<ConversionResult<'a>, ToolFailure> {
        let to = self.target;
        let call = ConverterCall {
            array: &decoded.array,
            dims: &decoded.dims,
            wanted,
            groups: (groups >= GROUPS_MIN).then_some(groups),
        };
        let custom = self
            .custom
            .as_ref()
            .and_then(|custom| custom.convert(from, to, &call));
        let result = match custom {
            Some(result) => result.map(ConversionResult::from),
            None => {
                let request = LayoutRequest {
                    array: decoded.array,
                    dims: &decoded.dims,
                    wanted,
                    groups,
                };
                layout::convert(from, to, request).ok_or_else(|| {
                    ToolFailure::new(
                        ErrorCode::Format,
                        format!("Not supported from {from} to {to}."),
                    )
                })?
            }
        };
        result.map_err(|reason| conversion_failure(from, to, &reason))
    }
}

fn conversion_failure(from: Layout, to: Layout, reason: &str) -> ToolFailure {
    let message = format!("Failed to execute 'convert' in 'convert_{from}_to_{to}'. {reason}");
    ToolFailure::new(ErrorCode::Conversion, message)
}

/// Image layouts have four axes; a tensor with another number of axes counts as `ND`.
fn as_dumped(layout: Layout, dims: &[usize], tensor: &SourceTensor<'_>) -> Layout {
    let has_four_axes = matches!(layout, Layout::Nchw | Layout::Nhwc | Layout::Hwcn);
    if !has_four_axes || dims.len() == 4 {
        return layout;
    }
    log::warning(&format!(
        "The format({layout}) of the dump data is 4 dimensions, but the shape {dims:?} is not 4 \
         dimensions, the real format is ND for {}.",
        tensor.label()
    ));
    Layout::Nd
}

/// Cuts to the wanted shape; `false` if that is impossible and the tensor stays whole.
fn cut<'a>(
    converted: ConversionResult<'a>,
    wanted: &[usize],
) -> Result<(ElementArray<'a>, bool), ToolFailure> {
    let unexpected = ToolFailure::Unexpected;
    if wanted.is_empty() {
        return Ok((converted.into_array().map_err(unexpected)?, true));
    }
    match slice::plan(converted.dims(), wanted) {
        SliceCut::Keep => Ok((converted.into_array().map_err(unexpected)?, true)),
        SliceCut::Impossible => Ok((converted.into_array().map_err(unexpected)?, false)),
        SliceCut::To { dims, ends } => {
            let cut = converted.cut(&dims, &ends).map_err(unexpected)?;
            Ok((cut.into_array().map_err(unexpected)?, true))
        }
    }
}

fn write(
    output: &OutputFolder,
    kind: ToolOutput,
    source: &DumpSource,
    tensor: &SourceTensor<'_>,
    product: &ConvertedTensor<'_>,
) -> Result<(), ToolFailure> {
    let (side, i) = (tensor.side.name(), tensor.index);
    let (file, format, dims) = (&source.file_name, product.format, product.array.dims());
    let path = match kind {
        ToolOutput::Npy => {
            let stem = format!("{file}.{side}.{i}.{}", names::join(dims, "x"));
            output.npy(&stem, ".npy", &product.array)?
        }
        ToolOutput::MsNpy => {
            let file = names::mindspore(file, &source.op_name);
            output.npy(
                &format!("{file}.{side}.{i}.{format}"),
                ".npy",
                &product.array,
            )?
        }
        ToolOutput::Bin | ToolOutput::Pt => {
            let dtype = dtype::file_name_part(product.dump_dtype)?;
            let dims = names::join(dims, "_");
            let stem = format!("{file}.{side}.{i}.{dims}.{dtype}.{format}");
            match kind {
                // The reference names array files like plain ones here.
                ToolOutput::Pt => output.npy(&stem, ".bin", &product.array)?,
                _ => output.bin(&stem, &product.array)?,
            }
        }
    };
    let (label, path) = (tensor.label(), log::quoted(&path));
    log::info(&format!("The data of {label} has been saved to {path}."));
    Ok(())
}
