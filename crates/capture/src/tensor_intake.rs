//! How a tensor gets from the engine's memory into a record: by reference, as a copy, or as numbers
//! about it only.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use opscope_tensor::{Tensor, TensorError, TensorMemo, TensorObserver, TensorView};
use thiserror::Error;

use crate::pool::Pool;
use crate::{Sink, TensorSummarizer};

/// Largest tensor, in bytes, that is inspected on the engine's thread. Above this size, refetching
/// it in a parallel writer is cheaper.
const SUMMARIZED_AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// Tensors above this fraction of the queue's budget are large: they are not held in addition to
/// the engine's own memory.
const LARGE_PART: u64 = 4;

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

/// Takes tensors on the engine's thread.
pub(crate) struct TensorIntake {
    sink: Arc<dyn Sink>,
    /// Whether the sink inspects tensors before they are queued.
    summarizes_early: bool,
    /// Maximum number of bytes of a tensor that may wait for a writer in memory that the engine
    /// does without.
    waiting_bytes_max: u64,
    pool: Arc<Pool>,
}

impl TensorIntake {
    /// `may_summarize` is false if the elements are needed after the sink.
    pub(crate) fn new(
        sink: Arc<dyn Sink>,
        may_summarize: bool,
        queue_bytes_max: u64,
    ) -> TensorIntake {
        TensorIntake {
            summarizes_early: may_summarize && sink.summarizer().is_some(),
            sink,
            waiting_bytes_max: queue_bytes_max / LARGE_PART,
            // Copies wait in the queue, so keeping more buffers than fit there would be of no use.
            pool: Arc::new(Pool::new(queue_bytes_max)),
        }
    }

    /// Memory for copies.
    pub(crate) fn pool(&self) -> Arc<Pool> {
        self.pool.clone()
    }

    /// Whether a tensor takes so much of the queue's budget that the engine should wait until it is
    /// inspected, rather than go on while its memory is held.
    pub(crate) fn is_large(&self, n_bytes: usize) -> bool {
        n_bytes as u64 > self.waiting_bytes_max
    }

    /// Lets the sink inspect a tensor while it is in a cache, and releases it if the sink has seen
    /// enough, so that the engine may reuse its memory at once. Tensors larger than a cache are
    /// left to the writers, which run in parallel, unless they would take up too much of the queue.
    pub(crate) fn summarize(&self, tensor: Tensor) -> Tensor {
        let n_bytes = tensor.n_bytes();
        if n_bytes <= SUMMARIZED_AT_ONCE_BYTES_MAX || self.is_large(n_bytes) {
            self.summarize_at_once(tensor)
        } else {
            tensor
        }
    }

    /// The same, however large the tensor is.
    pub(crate) fn summarize_at_once(&self, tensor: Tensor) -> Tensor {
        // Elements that are on a device, or gone, cannot be inspected here.
        if tensor.host_bytes().is_ok() && self.is_enough(tensor.observed()) {
            tensor.without_elements()
        } else {
            tensor
        }
    }

    /// Whether the sink needs no more of a tensor than numbers, which are in its memo now.
    pub(crate) fn is_enough(&self, tensor: TensorObserver<'_>) -> bool {
        self.is_enough_by(tensor, |summarizer| summarizer.summarize(tensor))
    }

    /// The same of elements that lie side by side in another order than row-major.
    pub(crate) fn is_enough_permuted(&self, tensor: TensorObserver<'_>) -> bool {
        self.is_enough_by(tensor, |summarizer| summarizer.summarize_permuted(tensor))
    }

    fn is_enough_by(
        &self,
        tensor: TensorObserver<'_>,
        summarize: impl FnOnce(&dyn TensorSummarizer) -> bool,
    ) -> bool {
        let Some(summarizer) = self.sink.summarizer().filter(|_| self.summarizes_early) else {
            return false;
        };
        // The sink's own code must not take the engine's thread with it.
        catch_unwind(AssertUnwindSafe(|| {
            let is_enough = summarize(summarizer);
            if is_enough {
                // Writers search the first NaN and infinity, but the elements are dropped by then.
                tensor.non_finite_places();
            }
            is_enough
        }))
        .unwrap_or(false)
    }

    /// Whether numbers that a device has computed are all that is wanted of its tensors.
    pub(crate) fn takes_device_numbers(&self) -> bool {
        self.summarizes_early && self.sink.takes_device_numbers()
    }

    /// Takes a tensor in borrowed memory: without its elements if the sink needs numbers only, else
    /// as a copy.
    pub(crate) fn take(&self, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
        // Checked before computing from, or allocating for, unusable bytes.
        view.check()?;
        let memo = Arc::new(TensorMemo::default());
        if self.is_enough(TensorObserver::new(view, &memo)) {
            return Ok(Tensor::from_memo(view, memo)?);
        }
        // The sink may have left something in the memo although it needs the elements too.
        Ok(self.copy(view)?.with_memo(memo))
    }

    /// Takes a tensor in borrowed memory as a copy, even if the sink needs numbers only.
    pub(crate) fn take_whole(&self, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
        view.check()?;
        self.copy(view)
    }

    fn copy(&self, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
        let bytes = self
            .pool
            .copy(view.bytes)
            .map_err(|_| BorrowError::Memory {
                n_bytes: view.bytes.len(),
            })?;
        let tensor = Tensor::new(view.dtype, view.shape.clone(), Arc::new(bytes))?;
        Ok(tensor.with_layout(view.layout))
    }
}
