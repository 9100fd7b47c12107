//! The elements of a listed tensor.

use std::borrow::Cow;
use std::ops::Range;

use half::f16;
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::dump_data::{DumpTensor, PayloadKind};
use opscope_tensor::convert::dtype::DecodeError;
use opscope_tensor::{DType, Layout, Shape, Stats, StatsError, TensorView, stats};
use thiserror::Error;

use super::Item;
use crate::convert::{ConvertError, Elements, Relayout};
use crate::tensor_file::TensorFile;

/// Elements that numpy can hold: little-endian, side by side, in row-major order.
pub struct Array {
    /// Type of the elements.
    pub dtype: DType,
    /// Extents.
    pub shape: Shape,
    bytes: Bytes,
}

enum Bytes {
    /// A part of a file, which may be mapped into memory.
    Lent(FileBytes, Range<usize>),
    Own(Vec<u8>),
}

/// Why there are no elements, or no statistics of them.
#[derive(Debug, Error)]
pub enum ItemError {
    /// Only statistics were dumped.
    #[error("the dump has statistics of this tensor and no elements")]
    NoElements,
    /// The file cannot be read or is damaged, or the elements do not fit what is said of them.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The elements have no order.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

impl Array {
    /// The elements.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Lent(bytes, range) => bytes.as_ref().get(range.clone()).unwrap_or_default(),
            Bytes::Own(bytes) => bytes,
        }
    }
}

impl Item {
    /// The elements, in another layout if that is asked for.
    ///
    /// Floats that numpy lacks become `float32`, integers the next wider ones; nothing is copied where
    /// the file's bytes are the array.
    ///
    /// # Errors
    /// [`ItemError`].
    pub fn array(&self, relayout: Option<&Relayout>) -> Result<Array, ItemError> {
        self.with_elements(|slot, elements, tensor| {
            let is_half = elements.dtype == DType::F16;
            let elements = match relayout {
                None => elements,
                Some(relayout) => {
                    let result = relayout.apply(elements, tensor.entry);
                    result.map_err(|source| ConvertError::Relayout {
                        slot: slot.to_owned(),
                        source,
                    })?
                }
            };
            let decoded = elements.decode().map_err(failed(slot))?;
            if decoded.dtype == DType::F16 && !is_half {
                return Ok(widen(decoded));
            }
            Ok(decoded)
        })
    }

    /// The elements in the dtype that the file has, in another layout if that is asked for.
    ///
    /// # Errors
    /// [`ItemError`].
    pub fn stored(&self, relayout: Option<&Relayout>) -> Result<Array, ItemError> {
        self.with_elements(|slot, elements, tensor| {
            let Some(relayout) = relayout else {
                return Ok(elements.check_size().map_err(failed(slot))?);
            };
            let result = relayout.apply(elements, tensor.entry);
            let failed = |source| ConvertError::Relayout {
                slot: slot.to_owned(),
                source,
            };
            Ok(result.map_err(failed)?)
        })
    }

    /// The bytes as stored, after the order of bytes and axes: with elements of one or two bytes as
    /// `uint8` or `uint16` of the tensor's shape, otherwise as one axis of `uint8`.
    ///
    /// # Errors
    /// [`ItemError`].
    pub fn raw(&self) -> Result<Array, ItemError> {
        self.with_elements(|_, elements, _| {
            let expected = elements.shape.n_bytes(elements.dtype);
            let is_whole = expected == Ok(elements.bytes.len());
            let (dtype, shape) = match elements.dtype.bytes() {
                Some(1) if is_whole => (DType::U8, elements.shape),
                Some(2) if is_whole => (DType::U16, elements.shape),
                // As many as there are fit the address space.
                _ => (
                    DType::U8,
                    Shape::new([elements.bytes.len()]).unwrap_or_default(),
                ),
            };
            Ok(Elements {
                dtype,
                shape,
                layout: elements.layout,
                bytes: elements.bytes,
            })
        })
    }

    /// Statistics of the elements, computed.
    ///
    /// # Errors
    /// [`ItemError`].
    pub fn stats(&self) -> Result<Stats, ItemError> {
        let file = self.file()?;
        let tensor = self.find(&file)?;
        let slot = file.slot_of(&tensor);
        let elements = Elements::of(&tensor)?;
        // Bytes of unknown meaning are no numbers, whatever their count.
        if elements.dtype.bits().is_none() {
            return Err(StatsError::Dtype(elements.dtype).into());
        }
        let elements = elements.check_size().map_err(failed(&slot))?;
        Ok(stats(TensorView {
            dtype: elements.dtype,
            shape: &elements.shape,
            layout: Layout::Nd,
            bytes: &elements.bytes,
        })?)
    }

    fn file(&self) -> Result<TensorFile, ItemError> {
        let place = self.elements.as_ref().ok_or(ItemError::NoElements)?;
        let file = TensorFile::open(&self.path, &place.real_name);
        Ok(file.map_err(ConvertError::from)?)
    }

    /// The tensor in its file, which may have become another since it was listed.
    fn find<'f>(&self, file: &'f TensorFile) -> Result<DumpTensor<'f>, ItemError> {
        let place = self.elements.as_ref().ok_or(ItemError::NoElements)?;
        let (kind, index) = place.tensor.unwrap_or((PayloadKind::Output, 0));
        let n = file.tensors().filter(|tensor| tensor.kind == kind).count();
        let found = file.tensors().find(|t| (t.kind, t.index) == (kind, index));
        let slot = || format!("{}.{index}", kind.name());
        Ok(found.ok_or_else(|| ConvertError::NoSlot { slot: slot(), n })?)
    }

    fn with_elements(
        &self,
        bring: impl for<'f> FnOnce(
            &str,
            Elements<'f>,
            &DumpTensor<'f>,
        ) -> Result<Elements<'f>, ItemError>,
    ) -> Result<Array, ItemError> {
        let file = self.file()?;
        let (dtype, shape, found) = {
            let tensor = self.find(&file)?;
            let slot = file.slot_of(&tensor);
            let Elements {
                dtype,
                shape,
                bytes,
                ..
            } = bring(&slot, Elements::of(&tensor)?, &tensor)?;
            let found = match bytes {
                Cow::Borrowed(bytes) => file.range_of(bytes).ok_or_else(|| bytes.to_vec()),
                Cow::Owned(bytes) => Err(bytes),
            };
            (dtype, shape, found)
        };
        let bytes = match found {
            Ok(range) => Bytes::Lent(file.into_bytes(), range),
            Err(bytes) => Bytes::Own(bytes),
        };
        Ok(Array {
            dtype,
            shape,
            bytes,
        })
    }
}

fn failed(slot: &str) -> impl FnOnce(DecodeError) -> ConvertError {
    let slot = slot.to_owned();
    move |source| ConvertError::Decode { slot, source }
}

fn widen(elements: Elements<'_>) -> Elements<'static> {
    let halves = elements.bytes.as_chunks::<2>().0.iter();
    let bytes = halves
        .flat_map(|&half| f16::from_le_bytes(half).to_f32().to_le_bytes())
        .collect();
    Elements {
        dtype: DType::F32,
        shape: elements.shape,
        layout: elements.layout,
        bytes: Cow::Owned(bytes),
    }
}
