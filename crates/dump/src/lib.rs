//! How a dump begins and ends.
//!
//! A plan says what a session keeps; this crate brings it together with the place where it is kept:
//! the directory, the sinks that write the vendors' trees there, and the record of the run beside
//! them. The command line, AscendCL and Python begin their dumps here.

mod run_record;
mod sink;

pub use run_record::{add_summary, non_finite_finding, now, plan_in_short};
pub use sink::{
    AclSink, Amount, CHUNK_BYTES_MAX, Chunk, ChunkFunction, Dedup, DistinctRows, MindSporeOptions,
    MindSporeSink, OperatorVolume, RangeRow, RangeRows, RangeSink, RuntimeMode, SpooledRows,
    StatsRow, StatsRows, StatsSink, StoredRow, StoredRows, Volume, VolumeSink,
};
