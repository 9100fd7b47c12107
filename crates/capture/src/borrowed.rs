//! Tensors in memory that an engine lends for the time of one call.

use std::sync::Arc;

use opscope_tensor::{Tensor, TensorError, TensorView};
use thiserror::Error;

use crate::pool::Pool;

/// Why a tensor in borrowed memory could not be taken. It counts as not shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BorrowError {
    /// Its bytes do not fit its description.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The copy finds no memory.
    #[error("no memory for a copy of {n_bytes} bytes")]
    Memory {
        /// Bytes of the tensor.
        n_bytes: usize,
    },
    /// To see who overwrites a value takes memory that stays readable.
    #[error("a value in borrowed memory cannot be watched")]
    Watched,
}

/// The same tensor in memory that outlives the call.
///
/// This is the only place where borrowed bytes are copied: a session that needs no more than numbers
/// about them can take those here instead.
pub(crate) fn copy(pool: &Arc<Pool>, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
    // Before anything is allocated for bytes that nobody can use.
    view.check()?;
    let bytes = pool.copy(view.bytes).map_err(|_| BorrowError::Memory {
        n_bytes: view.bytes.len(),
    })?;
    let tensor = Tensor::new(view.dtype, view.shape.clone(), Arc::new(bytes))?;
    Ok(tensor.with_layout(view.layout))
}
