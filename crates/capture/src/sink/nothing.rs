//! A sink that discards its records.

use opscope_store::record::Record;
use opscope_tensor::TensorObserver;

use super::{Sink, SinkError, TensorSummarizer, WrittenFiles};

/// Accepts everything and stores nothing, for callers that want only the counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn write(&self, _: &Record) -> Result<WrittenFiles, SinkError> {
        Ok(WrittenFiles::default())
    }

    fn takes_device_numbers(&self) -> bool {
        true
    }

    fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
        Some(self)
    }
}

impl TensorSummarizer for NoSink {
    /// The session looks for NaN and infinities, which the statistics have.
    fn summarize(&self, tensor: TensorObserver<'_>) -> bool {
        let _ = tensor.stats();
        true
    }
}
