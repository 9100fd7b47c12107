//! The elements of a slot.

use opscope_tensor::digest::xxh3_128;
use opscope_tensor::{DType, Layout, Shape, TensorView, stats};
use thiserror::Error;

use super::ExecutionSlot;
use crate::compare::whole::{WholeTensor, read_all};
use crate::elements::{
    ElementNumbers, ElementWindows, ElementsAccess, ElementsError, LastFile, NumpyArray,
    WantedLayout,
};

/// The elements of a slot as they are stored.
pub struct LoadedSlot {
    array: NumpyArray,
    layout: Layout,
}

/// Why there are no elements.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The dump has statistics of it only.
    #[error("the dump has no elements of it")]
    NoElements,
    /// The file cannot be read, or is damaged.
    #[error("{0}")]
    Damaged(String),
    /// It is in parts, and as a whole too large for memory.
    #[error("the tensor is in parts, and larger than {N_WHOLE_BYTES_MAX} bytes together")]
    InParts,
    /// The elements cannot be read.
    #[error(transparent)]
    Elements(#[from] ElementsError),
}

/// Maximum number of bytes of a tensor in parts that is put together in memory. Comparing reads
/// larger ones a piece at a time; what looks at them otherwise does without.
const N_WHOLE_BYTES_MAX: u64 = 64 << 20;

impl LoadedSlot {
    /// The elements as they are, in row-major order.
    pub fn into_array(self) -> NumpyArray {
        self.array
    }

    /// The elements in their own dtype.
    pub fn view(&self) -> TensorView<'_> {
        TensorView {
            dtype: self.array.dtype,
            shape: &self.array.shape,
            layout: self.layout,
            bytes: self.array.bytes(),
        }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.array.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &Shape {
        &self.array.shape
    }
}

impl ExecutionSlot {
    /// Calls `work` with the stored elements; `file` stays open for the following slots.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn with_elements<R>(
        &self,
        file: &mut LastFile,
        work: impl FnOnce(TensorView<'_>) -> R,
    ) -> Result<R, LoadError> {
        self.check()?;
        if let Some(whole) = self.whole() {
            return Ok(work(gathered(whole)?.view()));
        }
        let layout = self.layout.unwrap_or(Layout::Nd);
        Ok(file.with_stored(&self.elements_record(), |view| {
            work(TensorView { layout, ..view })
        })?)
    }

    /// The statistics of the stored elements, and their digest if `has_digest`.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn element_numbers(
        &self,
        file: &mut LastFile,
        has_digest: bool,
    ) -> Result<ElementNumbers, LoadError> {
        self.check()?;
        if let Some(whole) = self.whole() {
            let gathered = gathered(whole)?;
            let digest = has_digest.then(|| xxh3_128(gathered.view().bytes));
            return Ok((digest, stats(gathered.view())));
        }
        Ok(file.numbers(&self.elements_record(), has_digest)?)
    }

    fn check(&self) -> Result<(), LoadError> {
        if let Some(problem) = &self.problem {
            return Err(LoadError::Damaged(problem.clone()));
        }
        if !self.has_elements {
            return Err(LoadError::NoElements);
        }
        Ok(())
    }

    /// The stored elements, read in windows.
    ///
    /// # Errors
    /// [`LoadError`].
    pub(crate) fn windows(&self) -> Result<ElementWindows, LoadError> {
        self.check()?;
        Ok(ElementWindows::open(&self.elements_record())?)
    }

    /// The elements as stored, or in another layout, cropped to their original shape.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(&self, layout: Option<Layout>) -> Result<LoadedSlot, LoadError> {
        self.check()?;
        if let Some(whole) = self.whole() {
            return gathered(whole);
        }
        let relayout = layout.map(|target| WantedLayout {
            target,
            shape: None,
        });
        Ok(LoadedSlot {
            array: NumpyArray::stored(
                &self.elements_record(),
                relayout.as_ref(),
                ElementsAccess::Read,
            )?,
            layout: layout.or(self.layout).unwrap_or(Layout::Nd),
        })
    }
}

/// All elements of a tensor in parts.
fn gathered(whole: &WholeTensor) -> Result<LoadedSlot, LoadError> {
    if whole.n_bytes() > N_WHOLE_BYTES_MAX {
        return Err(LoadError::InParts);
    }
    let bytes = read_all(whole)?;
    let dims = whole.shape.iter().map(|&dim| usize::try_from(dim));
    let dims: Result<Vec<usize>, _> = dims.collect();
    let shape = dims.ok().and_then(|dims| Shape::new(dims).ok());
    Ok(LoadedSlot {
        array: NumpyArray::in_memory(whole.dtype, shape.ok_or(LoadError::InParts)?, bytes),
        layout: Layout::Nd,
    })
}
