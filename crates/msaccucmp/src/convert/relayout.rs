//! Conversion to another layout.

use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Layout};

use super::plain;
use crate::array::Array;
use crate::custom::{Call, Custom};
use crate::dtype::{self, Decoded};
use crate::failure::{Code, Failure};
use crate::layout::{self, Converted, Request};
use crate::options::OutputKind;
use crate::output::Output;
use crate::slice::{self, Cut};
use crate::source::{Source, SourceTensor};
use crate::{formats, log};
use opscope_analysis::names;

/// Groups are handed to converters from this number on.
const GROUPS_MIN: i32 = 2;

/// The change of layout that `-f` and the options that belong to it ask for.
pub(super) struct Relayout {
    pub(super) target: Layout,
    pub(super) wanted: Option<Vec<usize>>,
    pub(super) pick: Option<Pick>,
    pub(super) custom: Option<Custom>,
}

/// The only tensor to convert.
#[derive(Clone, Copy)]
pub(super) struct Pick {
    pub(super) side: SlotSide,
    pub(super) index: usize,
}

/// Why a file, or some of its tensors, could not be converted.
pub(super) struct FileFailure {
    pub(super) failure: Failure,
    /// The tensors, if it is not the whole file.
    pub(super) tensors: Vec<String>,
}

impl From<Failure> for FileFailure {
    fn from(failure: Failure) -> FileFailure {
        FileFailure {
            failure,
            tensors: Vec::new(),
        }
    }
}

/// A converted tensor and the layout that its name carries.
struct Product<'a> {
    array: Array<'a>,
    format: &'static str,
    dump_dtype: DType,
}

/// Converts the tensors of a file. A tensor that fails leaves the others alone; the last failure is
/// the file's.
pub(super) fn convert(
    output: &Output,
    kind: OutputKind,
    relayout: &Relayout,
    source: &Source,
) -> Result<(), FileFailure> {
    let path = log::quoted(&source.path);
    log::info(&format!(
        "Start to transfer format for the dump file {path}."
    ));
    source
        .tensors()
        .try_for_each(|tensor| dtype::check(&tensor))?;
    let mut tensors: Vec<SourceTensor<'_>> = source.tensors().collect();
    if let Some(Pick { side, index }) = relayout.pick {
        let n = source.side(side).count();
        if index >= n {
            let message = format!(
                "The {} index ({index}) is out of range [0, {n}). Please check the index.",
                side.name()
            );
            return Err(Failure::new(Code::IndexOutOfBounds, message).into());
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
        // An exception that the reference does not catch leaves its loop; later tensors are not
        // tried.
        if matches!(failure, Failure::Unexpected(_)) {
            return Err(failure.into());
        }
        let failure = failure.logged();
        let label = tensor.label();
        log::error(&format!("Failed to convert format for {label} of {path}"));
        let failed = failed.get_or_insert_with(|| FileFailure::from(failure.clone()));
        // The last failure is the one that the reference returns.
        failed.failure = failure;
        failed.tensors.push(label);
        // With this form a tensor that cannot be brought to the layout is written as it is.
        if kind == OutputKind::MsNpy && relayout.pick.is_none() {
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

impl Relayout {
    fn convert_tensor<'a>(
        &self,
        source: &Source,
        tensor: &SourceTensor<'a>,
    ) -> Result<Product<'a>, Failure> {
        let (from, from_name) = formats::from_code(tensor.entry.format)?;
        let decoded = dtype::decode(tensor)?;
        let from = as_dumped(from, &decoded.dims, tensor);
        let own_shape = || -> Vec<usize> {
            let dims = tensor.entry.original_shape.iter().flatten();
            dims.map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX))
                .collect()
        };
        let wanted = self.wanted.clone().unwrap_or_else(own_shape);
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
                .map_err(|reason| Failure::new(Code::InvalidDumpData, reason))?;
            return Ok(Product {
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
        if !is_cut {
            log::error(&format!(
                "Failed to slice data for '{}' from {:?} to {wanted:?}.",
                source.path.display(),
                array.dims()
            ));
        }
        let format = if is_cut { target_name } else { from_name };
        Ok(Product {
            array,
            format,
            dump_dtype,
        })
    }

    /// The user's converter, or else the reference's own.
    fn run<'a>(
        &self,
        from: Layout,
        decoded: Decoded<'a>,
        wanted: &[usize],
        groups: i32,
    ) -> Result<Converted<'a>, Failure> {
        let to = self.target;
        let call = Call {
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
            Some(result) => result.map(Converted::from),
            None => {
                let request = Request {
                    array: decoded.array,
                    dims: &decoded.dims,
                    wanted,
                    groups,
                };
                layout::convert(from, to, request).ok_or_else(|| {
                    Failure::new(Code::Format, format!("Not supported from {from} to {to}."))
                })?
            }
        };
        result.map_err(|reason| conversion_failure(from, to, &reason))
    }
}

fn conversion_failure(from: Layout, to: Layout, reason: &str) -> Failure {
    let message = format!("Failed to execute 'convert' in 'convert_{from}_to_{to}'. {reason}");
    Failure::new(Code::Conversion, message)
}

/// The layouts of images have four axes; a tensor with another number of them counts as `ND`.
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

/// Cuts to the wanted shape; `false` if that is impossible and the tensor is left whole.
fn cut<'a>(converted: Converted<'a>, wanted: &[usize]) -> Result<(Array<'a>, bool), Failure> {
    let unexpected = Failure::Unexpected;
    if wanted.is_empty() {
        return Ok((converted.into_array().map_err(unexpected)?, true));
    }
    match slice::plan(converted.dims(), wanted) {
        Cut::Keep => Ok((converted.into_array().map_err(unexpected)?, true)),
        Cut::Impossible => Ok((converted.into_array().map_err(unexpected)?, false)),
        Cut::To { dims, ends } => {
            let cut = converted.cut(&dims, &ends).map_err(unexpected)?;
            Ok((cut.into_array().map_err(unexpected)?, true))
        }
    }
}

fn write(
    output: &Output,
    kind: OutputKind,
    source: &Source,
    tensor: &SourceTensor<'_>,
    product: &Product<'_>,
) -> Result<(), Failure> {
    let (side, i) = (tensor.side.name(), tensor.index);
    let (file, format, dims) = (&source.file_name, product.format, product.array.dims());
    let bin_stem = || {
        let dtype = dtype::file_name_part(product.dump_dtype)?;
        let dims = names::join(dims, "_");
        Ok::<_, Failure>(format!("{file}.{side}.{i}.{dims}.{dtype}.{format}"))
    };
    let path = match kind {
        OutputKind::Npy => {
            let stem = format!("{file}.{side}.{i}.{}", names::join(dims, "x"));
            output.npy(&stem, ".npy", &product.array)?
        }
        OutputKind::MsNpy => {
            let file = names::mindspore(file, &source.op_name);
            output.npy(
                &format!("{file}.{side}.{i}.{format}"),
                ".npy",
                &product.array,
            )?
        }
        OutputKind::Bin => output.bin(&bin_stem()?, &product.array)?,
        // The reference gives array files the name of plain ones here.
        OutputKind::Pt => output.npy(&bin_stem()?, ".bin", &product.array)?,
    };
    let (label, path) = (tensor.label(), log::quoted(&path));
    log::info(&format!("The data of {label} has been saved to {path}."));
    Ok(())
}
