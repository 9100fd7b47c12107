//! How a dump begins and ends.
//!
//! A [`DumpRequest`] contains what to dump, in which format and where. [`DumpRequest::open`]
//! creates the directory and the sinks; sessions of `capture` write to the [`OpenDump`] that it
//! returns, and a [`RunRecorder`] writes the record of the run. The command line, AscendCL and
//! Python begin their dumps here.

mod destination;
mod dry_run;
mod failure_dump;
pub mod held;
mod model;
mod open_dump;
mod request;
mod run_facts;
mod run_record;
mod sink;
mod transcribe;

pub use destination::{DumpDialect, DumpPlace, dump_times, free_time};
pub use dry_run::{DryRun, DryRunForecast};
pub use failure_dump::{FailureDump, FollowedEnvironment, follow_environment};
pub use model::input_names;
pub use open_dump::{DumpOptions, OpenDump};
pub use request::{DumpForm, DumpRequest, NativeOptions};
pub use run_facts::now;
pub use run_record::{RunRecorder, add_steps, model_file, non_finite_finding, note_engine};
pub use sink::{
    AclSink, CHUNK_BYTES_MAX, ChunkFunction, DistinctRows, FileAmount, FileChunk, FileSharing,
    MindSporeOptions, MindSporeSink, NativeContent, NativeSink, OperatorVolume, RangeReport,
    RangeRow, RangeRows, RangeSink, RangeTotal, RuntimeMode, SmallLosses, SpooledRows, StatsRow,
    StatsRows, StatsSink, StoredRow, StoredRows, Volume, VolumeSink,
};
pub use transcribe::{TranscriptionError, TranscriptionReport, copy_graphs, transcribe};
