//! Where records go.

mod memory;
mod nothing;

use std::ops::Add;
use std::sync::Arc;

use opscope_store::StoreError;
use opscope_store::record::{ModelId, Record, SlotSide};
use opscope_tensor::{HostAccessError, TensorObserver};
use thiserror::Error;

use crate::overflow::OperatorOverflow;
use crate::{GraphView, OperatorFailure, SelectedOperators};

pub use memory::MemorySink;
pub use nothing::NoSink;

/// Receives records, from several threads concurrently and in any order.
pub trait Sink: Send + Sync {
    /// Keeps `record`. When it returns, the record's memory may be freed.
    ///
    /// # Errors
    /// [`SinkError`] if nothing of the record was kept; the session counts it as failed.
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError>;

    /// Whether the sink keeps tensors after [`Sink::write`]. If not, they may be in the engine's
    /// own memory, and the engine waits until they are released.
    fn keeps_tensors(&self) -> bool {
        false
    }

    /// Whether the session must find the first NaN and infinities. Otherwise no tensor is searched
    /// for them.
    fn wants_non_finite(&self) -> bool {
        true
    }

    /// Whether statistics computed on a device may replace a tensor's elements. They are then in
    /// the memo of a tensor without elements, and its sums are within bounds.
    fn takes_device_numbers(&self) -> bool {
        false
    }

    /// Keeps `record`, whose operator overflowed, and how.
    ///
    /// # Errors
    /// As for [`Sink::write`].
    fn write_overflow(
        &self,
        record: &Record,
        _overflow: &OperatorOverflow,
    ) -> Result<WrittenFiles, SinkError> {
        self.write(record)
    }

    /// Keeps `record`, whose operator failed, and why. Called on the engine's thread.
    ///
    /// # Errors
    /// As for [`Sink::write`].
    fn write_failure(
        &self,
        record: &Record,
        _failure: &OperatorFailure,
    ) -> Result<WrittenFiles, SinkError> {
        self.write(record)
    }

    /// Notifies the sink of a model before it runs.
    ///
    /// # Errors
    /// [`SinkError`] if a file that accompanies the records could not be written.
    fn open_model(
        &self,
        _model: &Arc<ModelId>,
        _graph: GraphView<'_>,
        _selected: &SelectedOperators,
    ) -> Result<WrittenFiles, SinkError> {
        Ok(WrittenFiles::default())
    }

    /// Notifies the sink that a selected step begins.
    ///
    /// # Errors
    /// As for [`Sink::open_model`].
    fn begin_step(&self, _model: &ModelId, _step: u64) -> Result<WrittenFiles, SinkError> {
        Ok(WrittenFiles::default())
    }

    /// Notifies the sink that a selected step is over: all its records were written, or lost and
    /// counted. Called once for each step that began, except those with a tap still in them when
    /// the session ends.
    ///
    /// # Errors
    /// As for [`Sink::open_model`].
    fn end_step(&self, _model: &ModelId, _step: u64) -> Result<WrittenFiles, SinkError> {
        Ok(WrittenFiles::default())
    }

    /// Notifies the sink that there are no more records.
    ///
    /// # Errors
    /// As for [`Sink::open_model`].
    fn finish(&self) -> Result<WrittenFiles, SinkError> {
        Ok(WrittenFiles::default())
    }

    /// The part that computes what the sink needs of a tensor before its record is written; `None`
    /// if the sink only writes elements.
    fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
        None
    }

    /// The part that is faster with several records at once, if there is one.
    fn batch_preparer(&self) -> Option<&dyn BatchPreparer> {
        None
    }

    /// The part that removes steps again, if the sink can.
    fn step_remover(&self) -> Option<&dyn StepRemover> {
        None
    }
}

/// Computes what a sink needs of tensors while they are probably still in a cache.
pub trait TensorSummarizer {
    /// Computes what the sink needs of the elements of `tensor` and stores it in the tensor's memo
    /// ([`TensorObserver::stats`], [`TensorObserver::keep`]). Called on the engine's thread; a
    /// tensor that several operators share is computed once.
    ///
    /// Returns whether that is all that the sink needs: then the record has no elements of the
    /// tensor.
    fn summarize(&self, tensor: TensorObserver<'_>) -> bool;

    /// [`TensorSummarizer::summarize`] for elements that are contiguous in memory, but not in
    /// row-major order; the first element comes first. Returns `false` if the memo would depend on
    /// the order; then it is not used.
    fn summarize_permuted(&self, _tensor: TensorObserver<'_>) -> bool {
        false
    }
}

/// Computes what is cheaper for several records together.
pub trait BatchPreparer {
    /// Maximum number of records that a writer should take from the queue together.
    fn batch_size(&self) -> usize;

    /// How many of them a writer should wait for while one of them has elements. With fewer, less
    /// of the engine's memory is in use, and it is inspected while still in a cache.
    fn n_awaited(&self) -> usize {
        self.batch_size()
    }

    /// Prepares records that are about to be written one by one.
    fn prepare_batch(&self, records: &[&Record]);
}

/// Removes the files that a sink has written for a step.
pub trait StepRemover {
    /// Starts remembering the files of each step. Called before anything else, if at all.
    fn remember_steps(&self);

    /// Removes the files of a step whose records are all written. Files from other sources stay.
    ///
    /// # Errors
    /// [`SinkError`] if something could not be removed; the rest is removed anyway.
    fn remove_step(&self, model: &ModelId, step: u64) -> Result<StepRemoval, SinkError>;

    /// Forgets a step that will never be removed.
    fn keep_step(&self, _model: &ModelId, _step: u64) {}
}

/// Files and bytes written for a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenFiles {
    /// Files created, links included.
    pub n_files: u64,
    /// Those of the files that are further names of bytes that were there already.
    pub n_linked: u64,
    /// Bytes kept, headers included.
    pub n_bytes: u64,
    /// Bytes of the linked files, which are not in `n_bytes`: what links saved.
    pub n_bytes_linked: u64,
    /// Tensors of the record that the form of the dump has no place for.
    pub n_refused: u64,
    /// Tensors whose elements were all written.
    pub whole: WholeTensors,
}

/// Tensors that were written with all their elements, by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WholeTensors {
    /// Number of inputs.
    pub n_inputs: u64,
    /// Bytes of their elements.
    pub n_input_bytes: u64,
    /// Number of outputs.
    pub n_outputs: u64,
    /// Bytes of their elements.
    pub n_output_bytes: u64,
}

impl WholeTensors {
    /// One tensor.
    pub fn one(side: SlotSide, n_bytes: u64) -> WholeTensors {
        match side {
            SlotSide::Input => WholeTensors {
                n_inputs: 1,
                n_input_bytes: n_bytes,
                ..WholeTensors::default()
            },
            SlotSide::Output => WholeTensors {
                n_outputs: 1,
                n_output_bytes: n_bytes,
                ..WholeTensors::default()
            },
        }
    }

    /// All tensors of `record`.
    pub fn all(record: &Record) -> WholeTensors {
        record
            .slots()
            .map(|(side, _, tensor)| WholeTensors::one(side, tensor.n_bytes() as u64))
            .fold(WholeTensors::default(), Add::add)
    }
}

opscope_tensor::add_fields!(WholeTensors: n_inputs, n_input_bytes, n_outputs, n_output_bytes);

/// The result of taking a step back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepRemoval {
    /// Files, included in [`WrittenFiles::n_files`].
    pub n_files: u64,
    /// Bytes, included in [`WrittenFiles::n_bytes`].
    pub n_bytes: u64,
    /// Files that stay because they were changed, replaced or removed by others.
    pub n_left: u64,
}

opscope_tensor::add_fields!(StepRemoval: n_files, n_bytes, n_left);

opscope_tensor::add_fields!(WrittenFiles: n_files, n_linked, n_bytes, n_bytes_linked, n_refused, whole);

/// Why a sink refused a record.
#[derive(Debug, Error)]
pub enum SinkError {
    /// A file could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sink itself broke.
    #[error("the sink panicked: {0}")]
    Panicked(String),
    /// Elements that have to be written are not in the host's memory.
    #[error(transparent)]
    Elements(#[from] HostAccessError),
    /// Any other reason.
    #[error("{0}")]
    Other(String),
}
