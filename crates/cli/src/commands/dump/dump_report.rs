//! Results of a run under a dump.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opscope_capture::{Purpose, SessionSummary};
use opscope_dump::{DryRunForecast, RangeReport, StatsRows};
use opscope_store::record::ModelId;
use opscope_store::temporary::LeftOvers;

use crate::engine::EngineInUse;

/// The content of the closing report.
pub(crate) struct DumpReport {
    pub(crate) engine: Arc<EngineInUse>,
    pub(crate) title: String,
    pub(crate) model: ModelId,
    pub(crate) purpose: Purpose,
    pub(crate) n_steps: u64,
    pub(crate) summary: SessionSummary,
    /// Wall time of all steps, until the last byte was passed to the operating system.
    pub(crate) time: Duration,
    /// Wall time of one step without the dump.
    pub(crate) baseline: Option<Duration>,
    pub(crate) dump_dirs: Vec<PathBuf>,
    /// The directory of all dumps, unless that is a common parent.
    pub(crate) tree_dir: Option<PathBuf>,
    /// Reasons why the dump cannot store tensors, with counts.
    pub(crate) refused: Vec<(String, u64)>,
    /// Directory of failed operators.
    pub(crate) failure_dir: Option<PathBuf>,
    /// Whether only some tensors are written whole.
    pub(crate) has_rules: bool,
    /// Forecast of a dry run.
    pub(crate) forecast: Option<DryRunForecast>,
    /// Whether the inputs of a dry run are random.
    pub(crate) has_random_inputs: bool,
    pub(crate) stats: Option<StatsRows>,
    pub(crate) ranges: Option<RangeReport>,
    /// Counts of removed unfinished files of earlier, killed runs.
    pub(crate) left_overs: LeftOvers,
}
