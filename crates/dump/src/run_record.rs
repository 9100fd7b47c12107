//! The record of a run: begun with the dump, ended with it.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{FirstNonFinite, SessionSummary};
use opscope_engine::Engine;
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::run_json::{
    CONFIGURATION_BYTES_MAX, ConfigurationFile, ModelFile, NonFiniteFinding, OverflowFinding,
    ProgramVersion, RunRecord, RunState,
};
use opscope_store::run_file::RunFile;
use opscope_store::temporary::LeftOvers;
use opscope_store::{StoreError, regular_file};
use opscope_tensor::digest::{hex, xxh3_128, xxh3_128_reader};

use crate::open_dump::OpenDump;
use crate::request::DumpRequest;
use crate::run_facts::now;

/// The record of a running run. Dropped without an end, it records that the run failed.
pub struct RunRecorder {
    /// None if the run writes no dump.
    file: Option<Arc<RunFile>>,
    left_overs: LeftOvers,
    is_ended: bool,
    begin_error: Option<StoreError>,
}

impl RunRecorder {
    /// Writes the record of a run into the `dump` of `request`. If the directory is created only on
    /// the first write, the record waits for that too. `left_overs` were cleaned up before.
    /// [`RunRecorder::begun`] returns whether the record could be written.
    pub fn begin(
        dump: &OpenDump,
        request: &DumpRequest,
        record: RunRecord,
        left_overs: LeftOvers,
    ) -> RunRecorder {
        let file = dump.written_place().map(|place| {
            let configuration = request.configuration.as_deref();
            let record = RunRecord {
                configuration: configuration.map(configuration_file),
                ..record
            };
            place.run_file(&request.plan, record)
        });
        let mut begin_error = None;
        if let Some(file) = &file {
            // A lazy dump has no directory yet and may never have one; its sink writes the record
            // just before the first file.
            dump.set_run(file);
            if file.root().is_dir() {
                begin_error = file.begin().err();
            }
        }
        RunRecorder {
            file,
            left_overs,
            is_ended: false,
            begin_error,
        }
    }

    /// Whether the record was written at the beginning; an error is reported once.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refused.
    pub fn begun(&mut self) -> Result<(), StoreError> {
        self.begin_error.take().map_or(Ok(()), Err)
    }

    /// Adds what a session did.
    pub fn add(&self, n_steps: u64, summary: &SessionSummary) {
        if let Some(file) = &self.file {
            add_steps(file, n_steps, summary);
        }
    }

    /// Changes what the end will say.
    pub fn update(&self, change: impl FnOnce(&mut RunRecord)) {
        if let Some(file) = &self.file {
            file.update(change);
        }
    }

    /// The counts of the unfinished files of killed runs that were cleaned up so far.
    pub fn left_overs(&self, dump: &OpenDump) -> LeftOvers {
        self.left_overs + dump.left_overs()
    }

    /// Writes the end.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn finish(mut self, dump: &OpenDump, end: RunState) -> Result<(), StoreError> {
        // A sink of MindSpore's cleans up each directory when it first comes there, so the count is
        // complete only now.
        self.left_overs = self.left_overs(dump);
        self.end(end)
    }

    fn end(&mut self, end: RunState) -> Result<(), StoreError> {
        self.is_ended = true;
        let Some(file) = &self.file else {
            return Ok(());
        };
        let left_overs = self.left_overs;
        file.update(|record| record.left_overs = left_overs);
        file.finish(end, now())
    }
}

impl Drop for RunRecorder {
    fn drop(&mut self) {
        // A caller that drops it already has an error to report.
        if !self.is_ended {
            let _ = self.end(RunState::Failed);
        }
    }
}

/// Adds the steps of a session to the record of its run.
pub fn add_steps(run: &RunFile, n_steps: u64, summary: &SessionSummary) {
    run.update(|record| {
        record.n_steps += n_steps;
        add_summary(record, summary);
    });
}

/// Says in the record which engine runs the models.
pub fn note_engine(record: &mut RunRecord, engine: &dyn Engine) {
    record.engine = ProgramVersion {
        name: engine.name().to_owned(),
        version: engine.version().map(str::to_owned),
    };
    let library = engine.library();
    record.engine_library = library.map(|path| path.display().to_string());
}

/// Describes a model for the record. A file that cannot be read any more has no digest.
pub fn model_file(name: &str, path: Option<&Path>, graph: &str) -> ModelFile {
    let file = path.and_then(|path| regular_file::open(path).ok());
    // Piece by piece: a model may take a large part of the memory.
    let digest = file.and_then(|(file, _)| xxh3_128_reader(file).ok());
    ModelFile {
        name: name.to_owned(),
        file: path
            .and_then(Path::file_name)
            .map(|name| name.to_string_lossy().into_owned()),
        n_bytes: digest.map(|(_, n_bytes)| n_bytes),
        xxh3_128: digest.map(|(digest, _)| hex(&digest)),
        graph: graph.to_owned(),
    }
}

/// Describes a configuration for the record. The file was read before; one that has vanished since
/// has a path only.
fn configuration_file(path: &Path) -> ConfigurationFile {
    let bytes = FileBytes::open(path).ok();
    let bytes = bytes.as_ref().map(AsRef::as_ref).unwrap_or_default();
    let is_short = bytes.len() <= CONFIGURATION_BYTES_MAX;
    ConfigurationFile {
        path: path.to_string_lossy().into_owned(),
        xxh3_128: hex(&xxh3_128(bytes)),
        text: is_short.then(|| String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// Adds what the session did to the record: counts are summed up, of findings the first stays.
fn add_summary(record: &mut RunRecord, summary: &SessionSummary) {
    // The total is the sum of the counts by reason and not a separate counter, so `fields` lacks
    // it.
    let dropped = ("n_dropped", summary.counters.n_dropped);
    for (name, n) in summary.counters.fields().into_iter().chain([dropped]) {
        let sum = record.counters.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(n);
    }
    for (reason, n) in summary.counters.dropped.by_reason() {
        if n > 0 {
            let name = format!("n_dropped_{reason}");
            let sum = record.counters.entry(name).or_default();
            *sum = sum.saturating_add(n);
        }
    }
    // Sessions of a run follow one another: a finding of an earlier one is the earlier finding.
    if let (None, Some(error)) = (&record.first_error, &summary.first_error) {
        record.first_error = Some(chain(error));
    }
    if let (None, Some(first)) = (&record.first_non_finite, &summary.first_non_finite) {
        record.first_non_finite = Some(non_finite_finding(first));
    }
    let deliberate = &summary.deliberate_infinities;
    if deliberate.n_operators > 0 {
        let told = record.deliberate_infinities.get_or_insert_default();
        told.n_operators = told.n_operators.saturating_add(deliberate.n_operators);
        if let (None, Some(first)) = (&told.first, &deliberate.first) {
            told.first = Some(non_finite_finding(first));
        }
    }
    if let (None, Some(first)) = (&record.first_overflow, &summary.first_overflow) {
        record.first_overflow = Some(OverflowFinding {
            step: first.step,
            task_id: first.task_id,
            op_type: first.op_type.clone(),
            op_name: first.op_name.clone(),
            status: first.status,
        });
    }
}

/// The same as records of runs have it.
pub fn non_finite_finding(first: &FirstNonFinite) -> NonFiniteFinding {
    NonFiniteFinding {
        step: first.step,
        graph: first.graph.clone(),
        task_id: first.task_id,
        op_type: first.op_type.clone(),
        op_name: first.op_name.clone(),
        module: first.call_site.module.to_string(),
        source: first.call_site.source.to_string(),
        slot: format!("{}.{}", first.side.name(), first.index),
        element: first.element.map(|element| element as u64),
        // JSON has no number for NaN or an infinity.
        value: match first.value {
            value if value.is_nan() => "NaN",
            value if value > 0.0 => "Inf",
            _ => "-Inf",
        }
        .to_owned(),
        needed: first.needed.filter(|needed| needed.is_finite()),
        origin: first.origin.name().to_owned(),
        nan: first.counts.n_nan,
        pos_inf: first.counts.n_pos_inf,
        neg_inf: first.counts.n_neg_inf,
    }
}

/// An error with its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}
