//! Undoing the layout of a device.

use opscope_store::file_format::dump_data::layout_code;
use opscope_tensor::Layout;

use super::align::{AlignmentContext, IMAGE_AXES, is, reshape};
use super::dump::FileTensor;
use super::stop::CompareStop;
use crate::array::ElementArray;
use crate::formats;
use crate::layout::ConversionResult;
use crate::slice::{self, SliceCut};

/// A device tensor in its layout before the device's. If it cannot be converted it stays unchanged,
/// as in the reference.
pub(super) fn restore(tensor: &FileTensor) -> Result<ElementArray<'_>, CompareStop> {
    match try_restore(tensor)? {
        Some(array) => Ok(array),
        None => tensor.decode(),
    }
}

fn try_restore(tensor: &FileTensor) -> Result<Option<ElementArray<'_>>, CompareStop> {
    let plain = |dims| Ok(reshape(tensor.decode()?, dims).ok());
    let is_image = [Layout::Nchw, Layout::Nhwc, Layout::Hwcn]
        .iter()
        .any(|&layout| is(tensor.format, layout));
    let nd = layout_code(Layout::Nd);
    // An image layout needs four axes; with another number the elements are already plain.
    let from = if is_image && tensor.dims.len() != IMAGE_AXES {
        nd
    } else {
        tensor.format
    };
    // The number of axes of the original shape determines its layout.
    let to = match tensor.original.len() {
        4 => layout_code(Layout::Nchw),
        2 | 3 => nd,
        _ => from,
    };
    if from == to {
        return plain(&tensor.dims);
    }
    let alignment = AlignmentContext {
        op_name: "",
        custom: None,
        is_between_originals: false,
        is_listing: false,
    };
    let converted = formats::from_code(from)
        .and_then(|(from, _)| Ok((from, formats::from_code(to)?.0)))
        .map_err(CompareStop::from)
        .and_then(|(from, to)| {
            let (dims, wanted) = (&tensor.dims, &tensor.original);
            alignment.run(from, to, tensor.decode()?, dims, wanted, tensor.groups)
        });
    let Ok(converted) = converted else {
        return plain(&tensor.dims);
    };
    let restored = match slice::plan(converted.dims(), &tensor.original) {
        SliceCut::To { dims, ends } => converted.cut(&dims, &ends),
        SliceCut::Keep | SliceCut::Impossible => Ok(converted),
    };
    Ok(restored.and_then(ConversionResult::into_array).ok())
}
