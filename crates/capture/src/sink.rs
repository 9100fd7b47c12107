//! Where records go.

mod acl;
mod memory;
mod stats;

use opscope_store::StoreError;
use opscope_store::file_format::stats_csv::Columns;
use opscope_store::record::Record;
use thiserror::Error;

pub use acl::AclSink;
pub use memory::MemorySink;
pub use stats::{StatsRow, StatsSink};

/// Takes records, from several threads at once and in any order.
pub trait Sink: Send + Sync {
    /// Keeps `record`. When it returns, the record's memory may be freed.
    ///
    /// # Errors
    /// [`SinkError`] if nothing of the record was kept; the session counts it as failed.
    fn write(&self, record: &Record) -> Result<Written, SinkError>;
}

/// What to write of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// All of it.
    Tensors,
    /// A row of these statistics.
    Statistics(Columns),
}

/// What became of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files created.
    pub n_files: u64,
    /// Bytes kept, headers included.
    pub n_bytes: u64,
}

/// Why a sink refused a record.
#[derive(Debug, Error)]
pub enum SinkError {
    /// A file could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sink itself broke.
    #[error("the sink panicked: {0}")]
    Panicked(String),
    /// Any other reason.
    #[error("{0}")]
    Other(String),
}
