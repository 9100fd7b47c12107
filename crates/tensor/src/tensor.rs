//! A tensor's description together with its bytes.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::memo::TensorMemo;
use crate::text::{self, TextError};
use crate::{DType, DeviceElements, Layout, Shape, ShapeError, TensorIdentity};

/// Owned bytes that may be read from any thread.
///
/// An engine that shares its tensors by reference count hands over the count: cloning costs one
/// atomic addition and copies no data.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Where a tensor's elements are.
#[derive(Clone)]
pub enum TensorElements {
    /// In the host's memory: dense, row-major and little-endian.
    Host(SharedBytes),
    /// In the memory of a device. The host receives a copy, or numbers computed from them, later.
    Device(Arc<DeviceElements>),
    /// No longer in memory. Only the numbers in the tensor's [`TensorMemo`] are still known.
    Dropped,
}

/// The host's memory does not hold the elements of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the elements of the tensor are not in the host's memory")]
pub struct HostAccessError;

/// A description and the place of the elements that it describes.
///
/// Clones share the elements and the numbers computed from them.
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    layout: Layout,
    /// Stored separately, because queues and counters need it after the elements are dropped.
    n_bytes: usize,
    elements: TensorElements,
    identity: Option<TensorIdentity>,
    memo: Arc<TensorMemo>,
}

/// A tensor whose bytes are borrowed. Elements are dense, row-major and little-endian.
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    /// Type of the elements.
    pub dtype: DType,
    /// Dimensions.
    pub shape: &'a Shape,
    /// Meaning of the axes.
    pub layout: Layout,
    /// The elements.
    pub bytes: &'a [u8],
}

/// Bytes that do not fit the description of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorError {
    /// The number of bytes differs from what dtype and shape require.
    #[error("{dtype} tensor of shape {shape} takes {expected} bytes, found {found}")]
    Size {
        /// Type of the elements.
        dtype: DType,
        /// Dimensions.
        shape: Shape,
        /// Bytes that dtype and shape require.
        expected: usize,
        /// The actual number of bytes.
        found: usize,
    },
    /// Bytes that are not valid texts.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The shape itself is unusable.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

impl Tensor {
    /// Combines a description and bytes; the layout is `ND`.
    ///
    /// # Errors
    /// [`TensorError`] if the number of bytes is not exactly what dtype and shape require, or if
    /// bytes of [`DType::String`] are not in the form of [`text`]. Other types without a fixed
    /// width take any number of bytes.
    pub fn new(dtype: DType, shape: Shape, data: SharedBytes) -> Result<Tensor, TensorError> {
        let bytes = (*data).as_ref();
        check(dtype, &shape, bytes)?;
        let n_bytes = bytes.len();
        Ok(Tensor {
            dtype,
            shape,
            layout: Layout::Nd,
            n_bytes,
            elements: TensorElements::Host(data),
            identity: None,
            memo: Arc::default(),
        })
    }

    /// [`Tensor::new`] for bytes held in a vector.
    ///
    /// # Errors
    /// As for [`Tensor::new`].
    pub fn from_vec(dtype: DType, shape: Shape, data: Vec<u8>) -> Result<Tensor, TensorError> {
        Tensor::new(dtype, shape, Arc::new(data))
    }

    /// The same tensor with another layout.
    #[must_use]
    pub fn with_layout(self, layout: Layout) -> Tensor {
        Tensor { layout, ..self }
    }

    /// The same tensor with an identity, which the engine's other references to it share.
    #[must_use]
    pub fn with_identity(self, identity: TensorIdentity) -> Tensor {
        Tensor {
            identity: Some(identity),
            ..self
        }
    }

    /// The same tensor without its elements. Only the numbers in its memo remain.
    #[must_use]
    pub fn without_elements(self) -> Tensor {
        Tensor {
            elements: TensorElements::Dropped,
            ..self
        }
    }

    /// A tensor that looks like `view` and has no elements: only the numbers in `memo` are known.
    ///
    /// # Errors
    /// As for [`Tensor::new`].
    pub fn from_memo(view: TensorView<'_>, memo: Arc<TensorMemo>) -> Result<Tensor, TensorError> {
        view.check()?;
        Ok(Tensor {
            dtype: view.dtype,
            shape: view.shape.clone(),
            layout: view.layout,
            n_bytes: view.bytes.len(),
            elements: TensorElements::Dropped,
            identity: None,
            memo,
        })
    }

    /// Only the place of elements on a device is known, so nothing is checked.
    pub(crate) fn with_device_elements(
        (dtype, shape): (DType, Shape),
        n_bytes: usize,
        elements: Arc<DeviceElements>,
    ) -> Tensor {
        Tensor {
            dtype,
            shape,
            layout: Layout::Nd,
            n_bytes,
            elements: TensorElements::Device(elements),
            identity: None,
            memo: Arc::default(),
        }
    }

    /// The same tensor, which remembers in `memo` what is computed from it.
    ///
    /// `memo` has to belong to a tensor of the same dtype, shape and elements.
    #[must_use]
    pub fn with_memo(self, memo: Arc<TensorMemo>) -> Tensor {
        Tensor { memo, ..self }
    }

    /// Returns the memo of results computed from its elements.
    pub fn memo(&self) -> &Arc<TensorMemo> {
        &self.memo
    }

    /// Its identity among the engine's tensors; `None` if the engine does not provide one.
    pub fn identity(&self) -> Option<&TensorIdentity> {
        self.identity.as_ref()
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Dimensions.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Meaning of the axes.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of bytes that the elements take, wherever they are.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Where the elements are.
    pub fn elements(&self) -> &TensorElements {
        &self.elements
    }

    /// Whether the elements are still in memory, of the host or of a device.
    pub fn has_elements(&self) -> bool {
        match self.elements {
            TensorElements::Host(_) | TensorElements::Device(_) => true,
            TensorElements::Dropped => false,
        }
    }

    /// Returns the elements, if they are in the host's memory.
    ///
    /// # Errors
    /// [`HostAccessError`] if they are not.
    pub fn host_bytes(&self) -> Result<&[u8], HostAccessError> {
        match &self.elements {
            TensorElements::Host(bytes) => Ok((**bytes).as_ref()),
            TensorElements::Device(_) | TensorElements::Dropped => Err(HostAccessError),
        }
    }

    /// Returns the elements, if they are on a device.
    pub fn device_elements(&self) -> Option<&Arc<DeviceElements>> {
        match &self.elements {
            TensorElements::Device(elements) => Some(elements),
            TensorElements::Host(_) | TensorElements::Dropped => None,
        }
    }

    /// Borrows the tensor, if its elements are in the host's memory.
    ///
    /// # Errors
    /// [`HostAccessError`] if they are not.
    pub fn host_view(&self) -> Result<TensorView<'_>, HostAccessError> {
        Ok(TensorView {
            dtype: self.dtype,
            shape: &self.shape,
            layout: self.layout,
            bytes: self.host_bytes()?,
        })
    }
}

impl<'a> TensorView<'a> {
    /// A tensor without a layout.
    pub fn new(dtype: DType, shape: &'a Shape, bytes: &'a [u8]) -> TensorView<'a> {
        TensorView {
            dtype,
            shape,
            layout: Layout::Nd,
            bytes,
        }
    }

    /// Whether the bytes fit the description, as [`Tensor::new`] asks for it.
    ///
    /// # Errors
    /// As for [`Tensor::new`].
    pub fn check(&self) -> Result<(), TensorError> {
        check(self.dtype, self.shape, self.bytes)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {} {})", self.dtype, self.shape, self.layout)
    }
}

fn check(dtype: DType, shape: &Shape, bytes: &[u8]) -> Result<(), TensorError> {
    if dtype == DType::String {
        return Ok(text::check(shape, bytes)?);
    }
    let found = bytes.len();
    let expected = match shape.n_bytes(dtype) {
        // Opaque bytes may be as many as they like.
        Err(ShapeError::Unsized(_)) => return Ok(()),
        other => other?,
    };
    if expected == found {
        return Ok(());
    }
    Err(TensorError::Size {
        dtype,
        shape: shape.clone(),
        expected,
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_must_fit_exactly() {
        let shape = Shape::new([2, 2]).unwrap();
        assert!(Tensor::from_vec(DType::F32, shape.clone(), vec![0; 16]).is_ok());
        for wrong in [0, 15, 17] {
            let error = Tensor::from_vec(DType::F32, shape.clone(), vec![0; wrong]).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("float32 tensor of shape [2,2] takes 16 bytes, found {wrong}")
            );
        }
    }

    #[test]
    fn cloning_shares_the_bytes() {
        let tensor = Tensor::from_vec(DType::U8, Shape::scalar(), vec![7]).unwrap();
        let clone = tensor.clone();
        assert!(std::ptr::eq(
            tensor.host_bytes().unwrap(),
            clone.host_bytes().unwrap()
        ));
    }
}
