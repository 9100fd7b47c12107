//! A tensor's elements on their way from a dump to another file.

use std::borrow::Cow;

use opscope_store::file_format::dump_data::{DumpTensor, layout_from_code};
use opscope_tensor::convert::dtype::{DecodeError, Decoded, decode};
use opscope_tensor::{DType, Layout, Shape};

use super::ConvertError;
use crate::describe::{shape_of, slot_name};

/// Elements in the dump's dtype, or in numpy's once they were decoded.
#[derive(Clone, Debug)]
pub(crate) struct Elements<'a> {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// Its number if it has no name.
    pub(crate) layout: Result<Layout, u32>,
    pub(crate) bytes: Cow<'a, [u8]>,
}

impl<'a> Elements<'a> {
    /// The elements that a file holds. Bytes beyond those that dtype and shape ask for are left out:
    /// device buffers are often longer than their tensors.
    pub(crate) fn of(tensor: &DumpTensor<'a>) -> Result<Elements<'a>, ConvertError> {
        let slot = || slot_name(tensor);
        let code = tensor.entry.data_type;
        let dtype = tensor
            .entry
            .dtype()
            .ok_or_else(|| ConvertError::UnknownDtype { slot: slot(), code })?;
        let shape = shape_of(tensor.entry).map_err(|source| ConvertError::Shape {
            slot: slot(),
            source,
        })?;
        let bytes = match shape.n_bytes(dtype) {
            Ok(n_bytes) => tensor.bytes.get(..n_bytes).unwrap_or(tensor.bytes),
            Err(_) => tensor.bytes,
        };
        let format = tensor.entry.format & 0xff;
        Ok(Elements {
            dtype,
            shape,
            layout: layout_from_code(format).ok_or(format),
            bytes: Cow::Borrowed(bytes),
        })
    }

    /// The elements as they are, if there are as many bytes as dtype and shape ask for.
    pub(crate) fn check_size(self) -> Result<Elements<'a>, DecodeError> {
        let (expected, found) = (self.shape.n_bytes(self.dtype)?, self.bytes.len());
        if expected == found {
            return Ok(self);
        }
        Err(DecodeError::Size {
            dtype: self.dtype,
            shape: self.shape,
            expected,
            found,
        })
    }

    /// The elements in a dtype that numpy has.
    pub(crate) fn decode(self) -> Result<Elements<'a>, DecodeError> {
        let layout = self.layout;
        let decoded = match self.bytes {
            Cow::Borrowed(bytes) => decode(self.dtype, &self.shape, bytes)?,
            Cow::Owned(bytes) => {
                let Decoded {
                    dtype,
                    shape,
                    bytes: decoded,
                } = decode(self.dtype, &self.shape, &bytes)?;
                let bytes = match decoded {
                    Cow::Owned(bytes) => bytes,
                    // Decoding changed nothing.
                    Cow::Borrowed(_) => bytes,
                };
                Decoded {
                    dtype,
                    shape,
                    bytes: Cow::Owned(bytes),
                }
            }
        };
        Ok(Elements {
            dtype: decoded.dtype,
            shape: decoded.shape,
            layout,
            bytes: decoded.bytes,
        })
    }

    /// The layout's name, or `#` and its number.
    pub(crate) fn layout_name(&self) -> String {
        match self.layout {
            Ok(layout) => layout.name().to_owned(),
            Err(code) => format!("#{code}"),
        }
    }
}

/// The tensor in a dtype that numpy has.
pub(crate) fn decode_tensor<'a>(tensor: &DumpTensor<'a>) -> Result<Decoded<'a>, ConvertError> {
    let elements = Elements::of(tensor)?;
    let decoded = elements.decode().map_err(|source| ConvertError::Decode {
        slot: slot_name(tensor),
        source,
    })?;
    Ok(Decoded {
        dtype: decoded.dtype,
        shape: decoded.shape,
        bytes: decoded.bytes,
    })
}
