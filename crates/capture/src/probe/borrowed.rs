//! Tensors in memory that an engine lends for the time of one call.

use opscope_store::record::SlotSide;
use opscope_tensor::{Tensor, TensorView};

use super::Probe;
use crate::{BorrowError, SlotPosition, WatchRole};

/// Smaller tensors are always copied: to wait for a writer costs more.
const LENT_BYTES_MIN: usize = 1 << 20;

impl Probe {
    /// [`Probe::input`] for an engine that reuses the memory soon after the call. Selected tensors
    /// are copied once, or inspected on the spot if only their statistics are kept.
    ///
    /// # Errors
    /// [`BorrowError`] if the plan wants the tensor and it cannot be taken; it counts as not shown.
    pub fn input_borrowed(
        &mut self,
        index: usize,
        view: TensorView<'_>,
    ) -> Result<(), BorrowError> {
        if self.lacks_input(index) {
            let tensor = self.take((SlotSide::Input, index), view)?;
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
            if self.context.kept.role == WatchRole::Watched {
                return Err(BorrowError::Watched);
            }
            let tensor = self.take((SlotSide::Output, index), view)?;
            self.output(index, tensor);
        }
        Ok(())
    }

    /// Whether an engine that lends memory should pass a tensor of `n_bytes` in place and release
    /// the memory only when the last reference is dropped, soon after [`Probe::submit`]: a copy
    /// would exceed the limit on copies, of which there are `n_bytes_held` already. Always false
    /// where the model must not wait, or where tensors are held until the end of the step.
    pub fn is_to_be_lent(&self, n_bytes: usize, n_bytes_held: usize) -> bool {
        let (intake, kept) = (&self.context.intake, &self.context.kept);
        let writer = &intake.writer;
        let is_too_much = n_bytes >= LENT_BYTES_MIN
            && n_bytes.saturating_add(n_bytes_held) as u64 > writer.queue.bytes_max();
        (intake.tensors.is_large(n_bytes) || is_too_much)
            && writer.queue.may_wait()
            && !writer.sink.keeps_tensors()
            && kept.parameters.is_empty()
            && kept.role != WatchRole::Watched
            && self.context.views.is_empty()
    }

    /// A tensor at this place, elements and all if something is to be computed of them.
    fn take(&self, place: SlotPosition, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
        let tensors = &self.context.intake.tensors;
        if self.is_part(place) {
            tensors.take_whole(view)
        } else {
            tensors.take(view)
        }
    }

    /// Whether the plan wants this input and it was not shown yet.
    fn lacks_input(&self, index: usize) -> bool {
        let (kept, Some(shown)) = (&self.context.kept, &self.shown) else {
            return false;
        };
        let is_wanted = kept.inputs.contains(&index)
            || [&kept.graph_inputs, &kept.parameters]
                .iter()
                .any(|beside| beside.iter().any(|input| input.position == index));
        // A call fills every place that the tensor has.
        let is_shown = shown.record.inputs.iter().any(|(shown, _)| *shown == index)
            || (shown.graph_inputs.iter()).any(|(i, _)| kept.graph_inputs[*i].position == index)
            || (shown.parameters.iter()).any(|(i, _)| kept.parameters[*i].position == index);
        let place = (SlotSide::Input, index);
        is_wanted && !is_shown || self.is_part(place) && !shown.parts.has(place)
    }

    /// The same of an output.
    fn lacks_output(&self, index: usize) -> bool {
        let Some(shown) = &self.shown else {
            return false;
        };
        let is_shown = shown
            .record
            .outputs
            .iter()
            .any(|(shown, _)| *shown == index);
        let place = (SlotSide::Output, index);
        self.context.kept.outputs.contains(&index) && !is_shown
            || self.is_part(place) && !shown.parts.has(place)
    }
}
