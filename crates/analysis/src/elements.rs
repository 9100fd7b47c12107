//! Elements of a tensor between a dump and an array, another layout or another file.

mod array;
mod error;
pub(crate) mod open_files;
mod pace;
mod relayout;
mod windows;

use std::borrow::Cow;

use opscope_store::reader::{DumpTerm, OpenedTensor};
use opscope_tensor::convert::dtype::{DecodeError, DecodedElements, decode};
use opscope_tensor::{DType, Layout, Shape};

pub use array::{ElementNumbers, ElementsAccess, LastFile, NumpyArray, stats_of};
pub use error::ElementsError;
pub use pace::limit_reading;
pub use relayout::{RelayoutError, WantedLayout};
pub(crate) use windows::ElementWindows;

/// Elements in the dump's dtype, or in NumPy's after decoding.
#[derive(Clone, Debug)]
pub(crate) struct DumpElements<'a> {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// The layout, or its number if it has no name.
    pub(crate) layout: Result<Layout, u32>,
    pub(crate) bytes: Cow<'a, [u8]>,
}

impl<'a> DumpElements<'a> {
    /// The elements of a tensor in a file. Surplus bytes are ignored: device buffers are often
    /// longer than their tensors.
    pub(crate) fn from_tensor(tensor: OpenedTensor<'a>) -> Result<DumpElements<'a>, ElementsError> {
        let stored = tensor.stored;
        let dtype = match &stored.dtype {
            DumpTerm::Number(code) => {
                return Err(ElementsError::UnknownDtype {
                    slot: stored.label(),
                    code: *code,
                });
            }
            known => known.value().unwrap_or(DType::Undefined),
        };
        let shape = stored.element_shape();
        let shape = shape.map_err(|source| ElementsError::Shape {
            slot: stored.label(),
            source,
        })?;
        if let DumpTerm::Word(word, None) = &stored.dtype
            && tensor.bytes.is_empty()
            && shape.n_elements() > 0
        {
            return Err(ElementsError::OtherKind {
                slot: stored.label(),
                word: word.clone(),
            });
        }
        let bytes = match shape.n_bytes(dtype) {
            Ok(n_bytes) => tensor.bytes.get(..n_bytes).unwrap_or(tensor.bytes),
            Err(_) => tensor.bytes,
        };
        let layout = match &stored.layout {
            DumpTerm::Number(code) => Err(*code),
            known => Ok(known.value().unwrap_or(Layout::Nd)),
        };
        Ok(DumpElements {
            dtype,
            shape,
            layout,
            bytes: Cow::Borrowed(bytes),
        })
    }

    /// Returns the elements unchanged if the byte count matches dtype and shape.
    pub(crate) fn check_size(self) -> Result<DumpElements<'a>, DecodeError> {
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

    /// Converts the elements to a dtype that NumPy has.
    pub(crate) fn decode(self) -> Result<DumpElements<'a>, DecodeError> {
        let layout = self.layout;
        let decoded = match self.bytes {
            Cow::Borrowed(bytes) => decode(self.dtype, &self.shape, bytes)?,
            Cow::Owned(bytes) => {
                let DecodedElements {
                    dtype,
                    shape,
                    bytes: decoded,
                } = decode(self.dtype, &self.shape, &bytes)?;
                let bytes = match decoded {
                    Cow::Owned(bytes) => bytes,
                    // The bytes did not need decoding.
                    Cow::Borrowed(_) => bytes,
                };
                DecodedElements {
                    dtype,
                    shape,
                    bytes: Cow::Owned(bytes),
                }
            }
        };
        Ok(DumpElements {
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

/// Decodes a tensor to a dtype that NumPy has.
pub(crate) fn decode_tensor(
    tensor: OpenedTensor<'_>,
) -> Result<DecodedElements<'_>, ElementsError> {
    let elements = DumpElements::from_tensor(tensor)?;
    let decoded = elements.decode().map_err(|source| ElementsError::Decode {
        slot: tensor.stored.label(),
        source,
    })?;
    Ok(DecodedElements {
        dtype: decoded.dtype,
        shape: decoded.shape,
        bytes: decoded.bytes,
    })
}
