//! Sinks that write a dump, and those that count or look on the way to one.

mod acl;
mod ledger;
mod mindspore;
mod native;
mod once;
mod range;
mod refusals;
mod spool;
mod stats;
mod volume;

pub use acl::{AclSink, CHUNK_BYTES_MAX, ChunkFunction, FileChunk};
pub use mindspore::{MindSporeOptions, MindSporeSink, RuntimeMode};
pub use native::{NativeContent, NativeSink};
pub use once::FileSharing;
pub use range::{
    DistinctRows, RangeReport, RangeRow, RangeRows, RangeSink, RangeTotal, SmallLosses,
};
pub use spool::{SpooledRows, StoredRow, StoredRows};
pub use stats::{StatsRow, StatsRows, StatsSink};
pub use volume::{FileAmount, OperatorVolume, Volume, VolumeSink};
