//! Tensors in memory that an engine lends for the time of one call.

use std::sync::Arc;

use opscope_store::record::Side;
use opscope_tensor::{Memo, Observed, Tensor, TensorError, TensorView};
use thiserror::Error;

use super::{Probe, is_enough};
use crate::Place;
use crate::pool::Pool;
use crate::session::Shared;
use crate::{GraphInput, Role};

/// Smaller tensors are always copied: to wait for a writer costs more.
const LENT_BYTES_MIN: usize = 1 << 20;

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

impl Probe {
    /// [`Probe::input`] for an engine that uses the memory for something else soon after the call: what
    /// the plan wants is copied, once, or looked at on the spot if numbers about it are all that is kept.
    ///
    /// # Errors
    /// [`BorrowError`] if the plan wants the tensor and it cannot be taken; it counts as not shown.
    pub fn input_borrowed(
        &mut self,
        index: usize,
        view: TensorView<'_>,
    ) -> Result<(), BorrowError> {
        if self.lacks_input(index) {
            let tensor = self.take((Side::Input, index), view)?;
            self.input(index, tensor);
        }
        Ok(())
    }

    /// [`Probe::output`] for such an engine.
    ///
    /// # Errors
    /// As for [`Probe::input_borrowed`]; [`BorrowError::Watched`] of a value that is to be watched.
    pub fn output_borrowed(
        &mut self,
        index: usize,
        view: TensorView<'_>,
    ) -> Result<(), BorrowError> {
        if self.lacks_output(index) {
            if self.kept.role == Role::Watched {
                return Err(BorrowError::Watched);
            }
            let tensor = self.take((Side::Output, index), view)?;
            self.output(index, tensor);
        }
        Ok(())
    }

    /// Whether an engine that lends memory should show a tensor of `n_bytes` where it is, and let go of the memory
    /// only when nobody holds the tensor any more, soon after [`Probe::submit`]: a copy would take more than
    /// copies should, of which there are `n_bytes_held` already. Never where the model must not wait, or where
    /// tensors are held until the end of the step.
    pub fn is_to_be_lent(&self, n_bytes: usize, n_bytes_held: usize) -> bool {
        let shared = &self.shared;
        let is_too_much = n_bytes >= LENT_BYTES_MIN
            && n_bytes.saturating_add(n_bytes_held) as u64 > shared.queue.bytes_max();
        (shared.is_large(n_bytes) || is_too_much)
            && shared.queue.may_wait()
            && !shared.sink.keeps_tensors()
            && self.kept.parameters.is_empty()
            && self.kept.role != Role::Watched
            && self.views.is_empty()
    }

    /// A tensor at this place, elements and all if something is to be computed of them.
    fn take(&self, place: Place, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
        match self.is_part(place) {
            true => take_whole(&self.shared, view),
            false => take(&self.shared, view),
        }
    }

    /// Whether the plan wants this input and it was not shown yet.
    fn lacks_input(&self, index: usize) -> bool {
        let (kept, Some(open)) = (&self.kept, &self.open) else {
            return false;
        };
        let is_here = |i: &usize, beside: &[GraphInput]| beside[*i].position == index;
        let is_wanted = kept.inputs.contains(&index)
            || [&kept.graph_inputs, &kept.parameters]
                .iter()
                .any(|beside| beside.iter().any(|input| input.position == index));
        // A call fills every place that the tensor has.
        let is_shown = open.record.inputs.iter().any(|(shown, _)| *shown == index)
            || (open.graph_inputs.iter()).any(|(i, _)| is_here(i, &kept.graph_inputs))
            || (open.parameters.iter()).any(|(i, _)| is_here(i, &kept.parameters));
        let place = (Side::Input, index);
        is_wanted && !is_shown || self.is_part(place) && !open.parts.has(place)
    }

    /// The same of an output.
    fn lacks_output(&self, index: usize) -> bool {
        let Some(open) = &self.open else {
            return false;
        };
        let is_shown = open.record.outputs.iter().any(|(shown, _)| *shown == index);
        let place = (Side::Output, index);
        self.kept.outputs.contains(&index) && !is_shown
            || self.is_part(place) && !open.parts.has(place)
    }
}

/// The tensor without its memory, if the sink needs numbers only; else a copy.
pub(crate) fn take(shared: &Shared, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
    // Before anything is computed from, or allocated for, bytes that nobody can use.
    view.check()?;
    if !shared.is_reducing {
        return copy(&shared.pool, view);
    }
    let memo = Arc::new(Memo::default());
    match is_enough(shared, Observed::new(view, &memo)) {
        true => Ok(Tensor::from_memo(view, memo)?),
        false => Ok(copy(&shared.pool, view)?.with_memo(memo)),
    }
}

/// A copy, even if the sink needs numbers only.
pub(crate) fn take_whole(shared: &Shared, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
    view.check()?;
    copy(&shared.pool, view)
}

/// The same tensor in memory that outlives the call.
fn copy(pool: &Arc<Pool>, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
    let bytes = pool.copy(view.bytes).map_err(|_| BorrowError::Memory {
        n_bytes: view.bytes.len(),
    })?;
    let tensor = Tensor::new(view.dtype, view.shape.clone(), Arc::new(bytes))?;
    Ok(tensor.with_layout(view.layout))
}
