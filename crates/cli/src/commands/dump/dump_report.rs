//! Everything that a run under a dump leaves to report.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opscope_capture::{Purpose, SessionSummary};
use opscope_dump::{DryRunForecast, RangeReport, StatsRows};
use opscope_store::record::ModelId;
use opscope_store::temporary::LeftOvers;

use crate::engine::EngineInUse;

/// Everything the closing report tells.
pub(crate) struct DumpReport {
    pub(crate) engine: Arc<EngineInUse>,
    pub(crate) title: String,
    pub(crate) model: ModelId,
    pub(crate) purpose: Purpose,
    pub(crate) n_steps: u64,
    pub(crate) summary: SessionSummary,
    /// Wall time of all steps until the last byte was handed to the operating system.
    pub(crate) time: Duration,
    /// Wall time of one step without the dump.
    pub(crate) baseline: Option<Duration>,
    pub(crate) dump_dirs: Vec<PathBuf>,
    /// The directory that holds all of them, where that is not a common parent.
    pub(crate) tree_dir: Option<PathBuf>,
    /// Why tensors have no place in the dump, and how many.
    pub(crate) refused: Vec<(String, u64)>,
    /// Where operators that failed are.
    pub(crate) failure_dir: Option<PathBuf>,
    /// Whether only some tensors are written whole.
    pub(crate) has_rules: bool,
    /// Forecast of what would have been written, if nothing is.
    pub(crate) forecast: Option<DryRunForecast>,
    /// Whether the inputs of a dry run are made up.
    pub(crate) has_random_inputs: bool,
    pub(crate) stats: Option<StatsRows>,
    pub(crate) ranges: Option<RangeReport>,
    /// Counts of the unfinished files of earlier, killed runs that were removed.
    pub(crate) left_overs: LeftOvers,
}
